/*
 * event_site.c - which site does this allocation belong to (see event_site.h)?
 *
 * Not chosen  brief stacks by the size of the request alone: many small blocks that stay are what native frames are needed for.
 *             A fixed number of bytes: one line of a framework holds megabytes in small blocks for a moment, a hundredth of
 *             its heap, and brings 80,000 native stacks.
 */
#include "event_site.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "call_stack.h"
#include "capture_file.h"
#include "kmem_words.h"
#include "peak.h"
#include "settings.h"
#include "site_table.h"

static bool
is_folded(uint32_t site)
{
	uint32_t stack = atomic_load_explicit(&site_table_at(site)->stack, memory_order_relaxed); // S2
	const struct kmem_stack *stored = capture_file_at(KMEM_SECTION_RECORDS, stack - 1);

	return (stored->record.flags & KMEM_STACK_FOLDED) != 0;
}

/* KMEMSHIM_VERIFY: every event is walked, and what was remembered is compared. */
static void
verify(uint32_t remembered, uint32_t walked)
{
	struct kmem_header *header = capture_file_header();

	atomic_fetch_add_explicit(&header->verify_checked, 1, memory_order_relaxed);
	if (remembered != walked)
		atomic_fetch_add_explicit(&header->verify_mismatched, 1, memory_order_relaxed);
}

static uint32_t
walk_to_site(struct thread_slot *slot, const void *hook_frame, unsigned domain, bool is_brief, uint8_t clock)
{
	struct call_stack_memory *memory = slot != NULL ? &slot->stack : NULL;
	const struct call_stack *stack = call_stack_take(memory, hook_frame, is_brief);
	uint32_t site = site_table_find(slot != NULL ? &slot->owner : NULL, stack, domain, clock);

	call_stack_give_back(memory, stack);
	return site;
}

/* What event_memo_find() did not find, or what is to be verified. */
static __attribute__((noinline)) uint32_t
walk_and_keep(struct thread_slot *slot, const void *hook_frame, uint32_t remembered, bool is_brief, uint8_t clock)
{
	uint32_t site = walk_to_site(slot, hook_frame, KMEM_DOMAIN_HEAP, is_brief, clock);

	if (remembered != 0)
		verify(remembered, site);
	else if (slot->stack.is_repeatable && site != 0 && !is_folded(site))
		event_memo_keep(&slot->events, slot->stack.has_native ? &slot->stack.memo : NULL, site);
	return site;
}

static __attribute__((noinline)) uint32_t
whole_site(struct thread_slot *slot, const void *hook_frame, uint8_t clock)
{
	uint32_t remembered = event_memo_find_whole(&slot->events, hook_frame);

	if (remembered != 0 && settings.verify_every == 0)
		return remembered;
	return walk_and_keep(slot, hook_frame, remembered, false, clock);
}

/* Would the brief site hold more than its share? What this thread gave out, less what others took back of it. */
static inline bool
is_much(uint32_t site, uint64_t bytes)
{
	int64_t heap = kmem_peak_now_signed(peak_load(&capture_file_domain(KMEM_DOMAIN_HEAP)->peak));
	int64_t share = heap >> EVENT_SITE_BRIEF_SHARE;
	int64_t most = share > EVENT_SITE_BRIEF_BYTES ? share : EVENT_SITE_BRIEF_BYTES;

	if (__builtin_expect(bytes >= (uint64_t)most, 0))
		return true;
	most -= (int64_t)bytes;
	return __builtin_expect(kmem_peak_now_signed(site_table_at(site)->peak) >= most, 0) &&
	       site_table_held(site) >= most;
}

uint32_t
event_site(struct thread_slot *slot, const void *hook_frame, unsigned domain, uint64_t bytes, uint8_t clock)
{
	if (slot == NULL || domain != KMEM_DOMAIN_HEAP || settings.native == SETTINGS_NATIVE_FULL)
		return walk_to_site(slot, hook_frame, domain, false, clock);

	uint32_t site = event_memo_find(&slot->events, hook_frame, settings.native == SETTINGS_NATIVE_BRIEF);
	bool is_brief = event_memo_is_brief(&slot->events);

	if (__builtin_expect(site == 0 || settings.verify_every != 0, 0))
		site = walk_and_keep(slot, hook_frame, site, is_brief, clock);
	if (is_brief && site != 0 && __builtin_expect(is_much(site, bytes), 0))
		return whole_site(slot, hook_frame, clock);
	return site;
}
