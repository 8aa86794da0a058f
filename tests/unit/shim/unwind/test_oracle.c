/*
 * test_oracle.c - does KMEMSHIM_VERIFY find what is wrong, and keep the first of it?
 */
#include "dive.h"
#include "record/tracker_books.h"

#include "base/settings.h"
#include "sites/event_cache.h"
#include "sites/event_site.h"
#include "unwind/unwind_rules.h"

#define TURNS 6
#define NOTES 4 // that are kept

static struct native_stack stack;

static int
start_verifying(void **state)
{
	settings.verify_every = 1;
	return start_empty(state);
}

static unsigned
notes_of(const char *text)
{
	unsigned count = 0;

	for (uint32_t at = capture_file_header()->notes; at != 0;) {
		struct kmem_note *note = capture_file_item(KMEM_SECTION_RECORDS, at);

		count += memmem(note + 1, note->text_bytes, text, strlen(text)) != NULL;
		at = note->record.previous;
	}
	return count;
}

/* The hook. */
static NOINLINE void
walk(void)
{
	native_stack_walk(NULL, HERE, 0, &stack);
	KEEP_FRAME();
}

DIVE(walk)

/* A rule that skips one of the frames that call each other, all of one size. */
TEST(a_wrong_rule_is_counted_and_the_first_are_kept)
{
	const struct kmem_header *header = capture_file_header();
	struct unwind_entry *entry = unwind_rules.entries;
	uint64_t frame_bytes, right;

	dive(8);
	assert_int_equal(header->verify_checked, 1);
	assert_int_equal(header->verify_mismatched, 0);
	assert_int_equal(stack.pc[1], stack.pc[3]);
	frame_bytes = native_stack_sp(&stack, 3) - native_stack_sp(&stack, 2);
	while (entry->pc != stack.pc[3])
		entry++;
	right = entry->rule;
	entry->rule = (right & ~UNWIND_WORD_CFA_FROM_RBP & ((UINT64_C(1) << 36) - 1)) | 2 * frame_bytes << 36;
	for (unsigned turn = 1; turn <= TURNS; turn++) {
		dive(8);
		assert_true(stack.is_complete);
		assert_int_equal(header->verify_mismatched, turn);
	}
	assert_int_equal(header->verify_checked, 1 + TURNS);
	assert_int_equal(notes_of("unwinding differs from libunwind at frame "), NOTES);
	entry->rule = right;
	dive(8);
	assert_int_equal(header->verify_mismatched, TURNS);
}

/* The hook. */
static NOINLINE uint32_t
allocate(void)
{
	uint32_t site = event_site(thread_slot_here(), HERE, KMEM_DOMAIN_HEAP, 100, 1);

	KEEP_FRAME();
	return site;
}

/* An event for which another site is remembered. */
TEST(a_wrong_site_is_counted_and_the_first_are_kept)
{
	const struct kmem_header *header = capture_file_header();
	union event_unit *units = thread_slot_here()->events.units;
	uint32_t other = allocate();
	uint32_t site = 0;
	char text[100];
	uint64_t checked = 0;

	for (volatile unsigned turn = 0; turn < 10 + TURNS; turn++) {
		uint64_t mismatched = header->verify_mismatched;

		if (turn == 10) { // it is remembered
			checked = header->verify_checked;
			for (unsigned i = 1; i < EVENT_CACHE_UNITS; i++) {
				if (units[i].event.site == site && units[i].event.key.pc != 0)
					units[i].event.site = other;
			}
		}
		site = allocate();
		assert_int_equal(header->verify_mismatched - mismatched, turn >= 10);
	}
	assert_true(site != other);
	assert_int_equal(header->verify_checked, checked + 2 * TURNS); // the cache's, and libunwind's
	(void)snprintf(text, sizeof(text), "site %u was remembered, and site %u walked", other, site);
	assert_int_equal(notes_of(text), NOTES);
}

int
main(void)
{
	native_stack_start();
	thread_slot_start();
	return test_run(NULL, NULL, start_verifying, NULL);
}
