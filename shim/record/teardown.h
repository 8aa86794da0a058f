/*
 * teardown.h - is Python being torn down, and does the program go on afterwards?
 *
 * Python's teardown frees everything, so what counts for a program that ends is the state before it: from the moment when finalisation
 * begins nothing is booked. A program that embeds Python may go on after Py_Finalize(). So releases of that time are kept in a list, and
 * booked when it turns out that the program goes on:
 *
 *   - an interpreter is there again that is not finalising, or
 *   - the interpreter is gone, and since then GOES_ON_BYTES have been asked for outside exit()
 *
 * What was allocated between the beginning of the teardown and that moment is not known: KMEM_LOST_TEARDOWN_EVENTS counts it.
 *
 * Context     inside the reentry guard.
 * Safe from   any hook; no lock; one mapping at the first release of a teardown, or when there is room for it.
 * When full   releases beyond the list leave their blocks alive in the books, which matters only to a program that goes on: then they
 *             count as KMEM_LOST_MISSED_FREES.
 */
#ifndef TEARDOWN_H
#define TEARDOWN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "python/python_runtime.h"
#include "tables/address_table.h"

/*
 * Invariants, tested by number in tests/unit/shim/record/test_teardown.c:
 *   D1  one thread alone books the list; meanwhile events of others still count as the teardown's.
 *   D2  a release is in the list or in the books, never in both; so is a block.
 */
enum teardown_phase {
	TEARDOWN_NONE,
	TEARDOWN_ON,
	TEARDOWN_ENDING, // one thread books what was released
	// over, and nothing has been initialised since: the word that says "finalising" has not been cleared
	TEARDOWN_GONE,
};
extern _Atomic int teardown_phase;

enum teardown_answer {
	TEARDOWN_NO,
	TEARDOWN_YES,
	TEARDOWN_OVER, // this thread has to book what teardown_released() gives, then to call teardown_done()
};
enum teardown_answer teardown_check(uint64_t bytes); // the rest of teardown_ask()

/* Is there no teardown? relaxed: a thread that sees the change late books one event more. */
static inline bool
teardown_is_none(void)
{
	return __builtin_expect(!python_runtime_is_finalizing() &&
	                            atomic_load_explicit(&teardown_phase, memory_order_relaxed) == TEARDOWN_NONE,
	                        1);
}

/* bytes: what the event asks for. */
static inline enum teardown_answer
teardown_ask(uint64_t bytes)
{
	return teardown_is_none() ? TEARDOWN_NO : teardown_check(bytes);
}

struct teardown_release {
	struct address_block block; // bytes: those that were released
	bool is_whole;
};

/* A block of the books, or a part of it, was released during the teardown. */
void teardown_keep(struct address_block block, bool is_whole);

bool teardown_released(uint32_t number, struct teardown_release *release); // from 0; false behind the last one
void teardown_done(void);

void teardown_start(void);  // once, outside any hook
void teardown_forked(void); // forked child: one thread; nothing is in the books

#endif
