/*
 * steps.h - what does the program do again and again?
 *
 * A step is a round of the outermost loop of the user's own code: a second clock beside what is allocated. Nobody tells us where loops
 * are. But if the line of an outer frame goes back, or comes again, between two allocations of a thread, that frame has begun a new round.
 * Only allocations of the slow paths are compared, so rounds may be missed: their number is an estimate. Steps that the program counts
 * itself (kmemshim_step()) and cells of a notebook are exact.
 *
 * Context     inside the reentry guard.
 * Safe from   any hook; each thread has memory of its own for it.
 * When failing  no steps: the clock goes by what is allocated.
 */
#ifndef STEPS_H
#define STEPS_H

#include <stdbool.h>
#include <stdint.h>

#define STEPS_PAIRS_BITS 8

enum steps_kind {
	STEPS_LINES,  // lines that go back
	STEPS_LINE,   // one line that comes again
	STEPS_CALLED, // a function that a library calls again: a request, a callback
};

/* A frame in which rounds are made. */
struct steps_loop {
	uint64_t outside; // digest of the frames outside of it; 0 = there is no loop
	uint64_t code;    // whose lines these are; native: 0
	uint64_t low;     // the line, or address, at which rounds begin; and the last one
	uint64_t high;
	uint32_t depth; // frames outside of it
	enum steps_kind kind;
	uint32_t rounds;
	uint32_t stack; // index + 1 of a stack that leads through it
};

/* What a thread remembers. Zeroed is empty. */
struct steps_thread {
	uint32_t last_site; // the latest that told something
	uint32_t unsaid;    // sites since then that told nothing
	uint32_t version;   // of the two loops
	uint64_t next_ticks;
	uint64_t count_before; // steps of the process, at the latest round of a loop that is not counted
	uint32_t rounds_alone; // of it, since that moved
	uint32_t called_line;  // at which a function was seen when a library had called it, or let it go on
	struct steps_loop current;
	struct steps_loop candidate; // it takes over when it has made some rounds
	struct {
		uint32_t from;
		uint32_t to;
		uint32_t version;
		uint32_t says;
		uint32_t line;               // of a function that was called
	} pairs[1u << STEPS_PAIRS_BITS]; // what was found out about two sites, one after the other
};

/*
 * The thread's latest allocation was at this site, index + 1.
 *
 * slot    the thread's number
 * events  that it made since the look before, about: where a line makes many small blocks between two looks, that it comes again is no round
 */
__attribute__((noinline, cold)) void steps_look(struct steps_thread *thread, uint16_t slot, uint32_t site,
                                                uint32_t events);

/* The program says that a step begins. */
void steps_next(void);

void steps_forked(void);

#endif
