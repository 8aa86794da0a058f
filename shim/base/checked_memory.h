/*
 * checked_memory.h - can this memory of ours be read, and what is in it?
 *
 * For addresses that come from a walk and may be wrong: the kernel is asked, and refuses what is not mapped
 * or not readable instead of raising a signal.
 *
 * Safe from   any hook, any signal handler: system calls only; errno is kept.
 * When failing  what cannot be asked about is not readable.
 */
#ifndef CHECKED_MEMORY_H
#define CHECKED_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

#define CHECKED_PAGE_BYTES UINT64_C(4096) // of x86-64; larger pages only mean needless questions
#define CHECKED_WINDOW_BYTES 1024u        // a power of two that divides a page

/* Of the page with that address: what is mapped there is mapped up to here. */
static inline uint64_t
checked_memory_page_end(uint64_t addr)
{
	return (addr & ~(CHECKED_PAGE_BYTES - 1)) + CHECKED_PAGE_BYTES;
}

/* A copy of some aligned memory, so that neighbouring words cost one question. */
struct checked_window {
	bool needs_pipe; // a sandbox forbids to copy at once
	uint64_t addr;   // of words[]; CHECKED_WINDOW_EMPTY = nothing in it
	uint64_t words[CHECKED_WINDOW_BYTES / 8];
};
#define CHECKED_WINDOW_EMPTY 1

/* The aligned word at `addr` as it was when its window was copied. False: not aligned, or not readable. */
bool checked_memory_word(struct checked_window *window, uint64_t addr, uint64_t *value);

/*
 * The same for a walk, which goes on from page to page: what follows is copied along, as far as it can be read. addr == end: nothing
 * is in it.
 */
#define CHECKED_SPAN_BYTES (2 * CHECKED_PAGE_BYTES)
struct checked_span {
	uint64_t addr;
	uint64_t end;
	uint64_t words[CHECKED_SPAN_BYTES / 8];
};
bool checked_memory_span_word(struct checked_span *span, uint64_t addr, uint64_t *value);

/* Copies `bytes` from `addr`; false, and perhaps a part copied, when not all of it can be read. */
bool checked_memory_copy(void *to, uint64_t addr, uint64_t bytes);

/*
 * Looks at the pages of [addr, end) from the highest to the lowest, each with one system call, and stops at
 * the first that cannot be read. Pages that were never touched are mapped to the kernel's page of zeros.
 *
 * returns  the lowest page address such that all from there to `end` can be read; not above `addr` when the
 *          whole range can be, and not below `end` when nothing can
 */
uint64_t checked_memory_readable_from(uint64_t addr, uint64_t end);

#endif
