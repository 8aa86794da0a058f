/*
 * work_items.c - which line gave this item of work to another thread (see work_items.h)?
 *
 * A hash table of cache lines, as python_samples.c: an item has one line, in which it takes the place of itself, a free place, or an
 * older one. The stack of who puts an item in is not walked when its Python frames are those of the time before.
 *
 * Not chosen  the line of each queue in order, which takes less room where much waits: one item that goes past us would shift all that follow.
 */
#include "sites/work_items.h"

#include <stdatomic.h>
#include <stdint.h>

#include "python/python_code.h"
#include "python/python_frames.h"
#include "sites/stack_frames.h"
#include "sites/thread_attribution.h"
#include "sites/thread_slot.h"

#define LINE 8u
#define LINES 2048u
#define NUMBER_BITS 12u // of thread_attribution_admit(); an address has 47
static_assert(THREAD_ATTRIBUTION_LINES_MAX < 1u << NUMBER_BITS, "");

/* The item's address, and in the lowest bits the number of the line. 0 = free. relaxed: each word is the whole message. */
static _Alignas(64) _Atomic uint64_t table[LINES][LINE];

static uint64_t
hash_of(uint64_t addr)
{
	return (addr >> 4) * UINT64_C(0x9e3779b97f4a7c15);
}

static _Atomic uint64_t *
line_of(uint64_t addr)
{
	return table[hash_of(addr) >> 32 & (LINES - 1)];
}

static void
note(uint64_t addr, uint32_t number)
{
	_Atomic uint64_t *line = line_of(addr);
	unsigned place = hash_of(addr) >> 60 & (LINE - 1); // of an older one, when there is no other

	for (unsigned i = 0; i < LINE; i++) {
		uint64_t seen = atomic_load_explicit(&line[i], memory_order_relaxed);

		if (seen >> NUMBER_BITS == addr) {
			place = i;
			break;
		}
		if (seen == 0)
			place = i; // it may stand behind: all are looked at
	}
	atomic_store_explicit(&line[place], addr << NUMBER_BITS | number, memory_order_relaxed);
}

/* 0: it is not known. */
static uint32_t
take(uint64_t addr)
{
	_Atomic uint64_t *line = line_of(addr);

	for (unsigned i = 0; i < LINE; i++) {
		uint64_t seen = atomic_load_explicit(&line[i], memory_order_relaxed);

		if (seen >> NUMBER_BITS == addr && seen != 0) {
			(void)atomic_compare_exchange_strong_explicit(&line[i], &seen, 0, memory_order_relaxed,
			                                              memory_order_relaxed);
			return seen & ((1u << NUMBER_BITS) - 1);
		}
	}
	return 0;
}

/* The innermost line of the user's own; 0 = there is none, or there are too many. */
static uint32_t
own_line(struct thread_slot *slot)
{
	struct thread_attribution *own = &slot->parent;
	struct python_stack *python = &slot->stack.python;
	uint64_t digest;
	bool has_digest = python_frames_digest(&slot->events.chain, &digest) && digest != 0;

	digest += python_code_deaths();
	if (has_digest && digest == own->put_digest)
		return own->put_line;
	python_frames_walk(python);
	own->put_line = 0;
	own->put_digest = has_digest ? digest : 0;
	for (uint32_t i = 0; i < python->count; i++) {
		const struct python_frame *frame = &python->frames[i];

		if ((frame->code_flags & (KMEM_CODE_LIBRARY | KMEM_CODE_IMPORTLIB)) == 0) {
			own->put_line = thread_attribution_admit(call_stack_python_frame(frame));
			break;
		}
	}
	return own->put_line;
}

void
work_items_put(const void *item)
{
	struct thread_slot *slot = thread_slot_here();

	if (slot == NULL || !python_frames_available())
		return;

	uint32_t number = own_line(slot);

	note((uint64_t)item, number != 0 ? number : slot->parent.work_line);
}

void
work_items_got(const void *item)
{
	struct thread_slot *slot = thread_slot_here();

	if (slot != NULL)
		slot->parent.work_line = take((uint64_t)item);
}

void
work_items_forked(void)
{
	for (unsigned i = 0; i < LINES * LINE; i++) {
		if (atomic_load_explicit(&table[i / LINE][i % LINE], memory_order_relaxed) != 0) // a write would copy the page
			atomic_store_explicit(&table[i / LINE][i % LINE], 0, memory_order_relaxed);
	}
}
