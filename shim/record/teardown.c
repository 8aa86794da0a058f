/*
 * teardown.c - is Python being torn down, and does the program go on afterwards (see teardown.h)?
 *
 * Not chosen  an exit handler of ours that tells the end from going on: handlers that run last are registered first, and ours is the
 *             first of all. To register another one when finalisation begins takes a lock, inside a hook.
 */
#include "record/teardown.h"

#include <dlfcn.h>
#include <stddef.h>

#include "base/elf_symbols.h"
#include "base/loaded_object.h"
#include "base/raw_sys.h"
#include "capture/capture_file.h"
#include "moments/exit_figures.h"
#include "sites/call_stack.h"
#include "sites/callbacks.h"
#include "sites/thread_attribution.h"
#include "sites/thread_slot.h"

#define GOES_ON_BYTES ((uint64_t)1 << 20)
#define ENTRIES_MAX (1u << 22)
#define UNKEPT_PER_TRY 1024u

struct entry {
	uint64_t bytes;
	_Atomic uint32_t site; // 0 = not written yet; stored last
	uint8_t generation;
	bool is_whole;
};
static_assert(sizeof(struct entry) == 16, "as small as what it remembers");

_Atomic int teardown_phase;

static _Atomic(struct entry *) entries; // stays once it is there
static _Atomic uint32_t entry_count;    // asked for, perhaps not written; may pass entry_room
static _Atomic uint32_t entry_room;     // set before `entries`; relaxed: those that race for it write the same
static _Atomic uint32_t unkept_count;   // released, and not in the list; relaxed: a sum
static _Atomic uint64_t bytes_since;    // asked for since the interpreter is gone; relaxed: an estimate
static uint64_t exit_addr;              // of libc's exit()
static uint64_t exit_end;

void
teardown_start(void)
{
	void *function = dlsym(RTLD_NEXT, "exit"); // not our hook: main's return goes past that
	struct loaded_object libc;
	Elf64_Sym symbol;

	if (!loaded_object_find((uint64_t)function, &libc))
		return;

	const struct elf_object elf = { .load_bias = libc.link_map->l_addr, .dynamic_addr = (uint64_t)libc.link_map->l_ld };

	if (!elf_symbols_find(&elf, "exit", &symbol))
		return;
	exit_addr = (uint64_t)function;
	exit_end = exit_addr + symbol.st_size;
}

/* exit() never returns: its call of the handlers may be its last instruction, and then the return address is the one behind it. */
static bool
is_exiting(void)
{
	struct call_stack_memory *memory = thread_slot_current != NULL ? &thread_slot_current->stack : NULL;
	const struct call_stack *stack = call_stack_take(memory, __builtin_frame_address(0), CALL_STACK_WHOLE);
	bool is_found = false;

	for (uint32_t i = 0; i < stack->frame_count && !is_found; i++)
		is_found = stack->frames[i] > exit_addr && stack->frames[i] <= exit_end;
	call_stack_give_back(memory, stack);
	return is_found;
}

static bool
goes_on(uint64_t bytes)
{
	if (!python_runtime_is_finalizing())
		return true;
	if (python_runtime_has_interpreter()) {
		atomic_store_explicit(&bytes_since, 0, memory_order_relaxed);
		return false;
	}
	if (atomic_fetch_add_explicit(&bytes_since, bytes, memory_order_relaxed) + bytes < GOES_ON_BYTES)
		return false;
	atomic_store_explicit(&bytes_since, 0, memory_order_relaxed);
	return !is_exiting();
}

static void
begin(void)
{
	int none = TEARDOWN_NONE;

	if (atomic_compare_exchange_strong_explicit(&teardown_phase, &none, TEARDOWN_ON, memory_order_relaxed,
	                                            memory_order_relaxed)) {
		atomic_store_explicit(&bytes_since, 0, memory_order_relaxed);
		if (!exit_figures_stand())
			record_callbacks.python_ends();
		atomic_store_explicit(&capture_file_header()->is_finalizing, KMEM_YES, memory_order_relaxed);
	}
}

enum teardown_answer
teardown_check(uint64_t bytes)
{
	int phase = atomic_load_explicit(&teardown_phase, memory_order_relaxed);

	if (phase == TEARDOWN_GONE) {
		if (!python_runtime_is_finalizing())
			(void)atomic_compare_exchange_strong_explicit(&teardown_phase, &phase, TEARDOWN_NONE, memory_order_relaxed,
			                                              memory_order_relaxed);
		return TEARDOWN_NO;
	}
	if (phase == TEARDOWN_NONE)
		begin();
	/* acquire: pairs with teardown_done(), of an earlier teardown. */
	else if (phase == TEARDOWN_ON && goes_on(bytes) &&
	         atomic_compare_exchange_strong_explicit(&teardown_phase, &phase, TEARDOWN_ENDING, memory_order_acquire,
	                                                 memory_order_relaxed)) // D1
		return TEARDOWN_OVER;
	capture_file_lost(KMEM_LOST_TEARDOWN_EVENTS, 1);
	return TEARDOWN_YES;
}

/* ---- what was released meanwhile ---- */

static uint32_t
room(void)
{
	return atomic_load_explicit(&entry_room, memory_order_relaxed);
}

static struct entry *
entries_here(void)
{
	struct entry *found = atomic_load_explicit(&entries, memory_order_acquire); // pairs with the installation below
	struct entry *fresh;
	size_t bytes = ENTRIES_MAX * sizeof(*fresh);

	/* Where the address space is used up the teardown itself makes room. */
	if (found != NULL || atomic_load_explicit(&unkept_count, memory_order_relaxed) % UNKEPT_PER_TRY != 0)
		return found;

	size_t most = raw_reserve_max(); // system calls: not for each block

	if (bytes > most)
		bytes = most / 4096 * 4096;
	fresh = raw_reserve(KMEM_OWN_OTHER, bytes, PROT_READ | PROT_WRITE);
	if (fresh == NULL)
		return NULL;
	// all that race here write the same
	atomic_store_explicit(&entry_room, (uint32_t)(bytes / sizeof(*fresh)), memory_order_relaxed);
	if (atomic_compare_exchange_strong_explicit(&entries, &found, fresh, memory_order_acq_rel, memory_order_acquire))
		return fresh;
	raw_unreserve(fresh, bytes);
	return found;
}

void
teardown_keep(struct address_block block, bool is_whole)
{
	struct entry *list = entries_here();
	/* acquire: pairs with teardown_done(): the thread that used the entry in an earlier teardown is done with it. */
	uint32_t number = list != NULL ? atomic_fetch_add_explicit(&entry_count, 1, memory_order_acquire) : 0;

	if (list == NULL || number >= room()) {
		atomic_fetch_add_explicit(&unkept_count, 1, memory_order_relaxed);
		return;
	}
	list[number].bytes = block.bytes;
	list[number].generation = block.generation;
	list[number].is_whole = is_whole;
	/* release: the rest first. Pairs with teardown_released(). */
	atomic_store_explicit(&list[number].site, block.site, memory_order_release);
}

bool
teardown_released(uint32_t number, struct teardown_release *release)
{
	struct entry *list = atomic_load_explicit(&entries, memory_order_acquire);
	uint32_t count = atomic_load_explicit(&entry_count, memory_order_relaxed);

	if (list == NULL || number >= count || number >= room())
		return false;
	/* acquire: pairs with teardown_keep(). An entry that is being written now is lost: its block stays alive in the books. */
	release->block.site = atomic_load_explicit(&list[number].site, memory_order_acquire);
	release->block.bytes = list[number].bytes;
	release->block.generation = list[number].generation;
	release->is_whole = list[number].is_whole;
	return true;
}

void
teardown_done(void)
{
	// the caller had it from teardown_released()
	struct entry *list = atomic_load_explicit(&entries, memory_order_relaxed);

	if (list != NULL)
		raw_madvise(list, room() * sizeof(*list), MADV_DONTNEED);
	atomic_store_explicit(&entry_count, 0, memory_order_release); // pairs with teardown_keep()
	capture_file_lost(KMEM_LOST_MISSED_FREES, atomic_exchange_explicit(&unkept_count, 0, memory_order_relaxed));
	atomic_store_explicit(&capture_file_header()->is_finalizing, 0, memory_order_relaxed);
	thread_attribution_over();
	/* release: the empty list first. Pairs with teardown_check(). */
	atomic_store_explicit(&teardown_phase, python_runtime_is_finalizing() ? TEARDOWN_GONE : TEARDOWN_NONE,
	                      memory_order_release);
}

void
teardown_forked(void)
{
	struct entry *list = atomic_load_explicit(&entries, memory_order_relaxed);

	if (list != NULL)
		raw_madvise(list, room() * sizeof(*list), MADV_DONTNEED);
	atomic_store_explicit(&entry_count, 0, memory_order_relaxed);
	atomic_store_explicit(&unkept_count, 0, memory_order_relaxed);
	atomic_store_explicit(&teardown_phase, TEARDOWN_NONE, memory_order_relaxed);
}
