/*
 * library_map.c - pages of the reservations of libraries' own allocators (see library_map.h).
 *
 * A word for each page says which booking it belongs to. Words lie in windows of 1024 pages, found by address in a table that is never
 * emptied but by a fork; only windows in which pages were booked are memory.
 *
 * Invariants, tested by number in tests/unit/shim/tables/test_library_map.c, Y3 in tests/stress/tracker_library.c:
 *   Y1  a booking has as many pages as words lead to it; without any it is free.
 *   Y2  after a sample the pages that are booked are those that it found in memory, but for those for which there was no booking.
 *   Y3  all of this is read and written under the lock only; pages[] belongs to the thread that samples.
 *   Y4  no page is booked that was cut or given back between the question whether it is in memory and the booking.
 */
#include "tables/library_map.h"

#include <stddef.h>
#include <string.h>

#include "base/raw_sys.h"
#include "base/wait_lock.h"
#include "kmem_format.h"

#define WINDOWS_MAX 16384u          // a power of two
#define WINDOW_PAGES UINT64_C(1024) // their words are a page
#define WINDOW_BYTES (WINDOW_PAGES * LIBRARY_MAP_PAGE_BYTES)
#define RUN_PAGES UINT64_C(16)      // that are booked at once
#define AT_ONCE (16 * WINDOW_PAGES) // pages asked for with one call
#define KNOWN 4096u                 // a power of two

struct reservation {
	uint64_t start;
	uint64_t end;
	uint64_t pc;
};

struct booking {
	uint32_t site; // index + 1; of a free one the number of the next
	uint32_t pages;
	uint32_t fresh; // of these, since it was asked
	uint8_t generation;
};

_Atomic bool library_map_is_any;

static void complete(void);
static struct wait_lock lock = WAIT_LOCK_COMPLETED_BY(complete);
static struct reservation reservations[LIBRARY_MAP_RESERVATIONS_MAX];
static uint32_t reservation_count;
static uint64_t windows[WINDOWS_MAX]; // number of the window + 1; 0 = free
static uint32_t *words;               // [WINDOWS_MAX][WINDOW_PAGES]: number of the booking, 0 = none
static uint32_t windows_max;
static bool is_stuck;                                     // no address space for the words
static struct booking bookings[LIBRARY_MAP_BOOKINGS_MAX]; // number 0 is none
static uint32_t used_bookings;
static uint32_t free_bookings;
static uint32_t known[KNOWN];        // by site and generation: the booking of these that was made last
static unsigned char pages[AT_ONCE]; // that a sample asks for
static struct {
	uint64_t start;
	uint64_t end; // 0 = for none
	bool is_stale;
} asked; // for these, without the lock

/* ---- words ---- */

/* The words of the window, NULL: there are none, or no room for any. */
static uint32_t *
window_at(uint64_t addr, bool creates)
{
	uint64_t number = addr / WINDOW_BYTES + 1;

	if (words == NULL && creates && !is_stuck) {
		size_t most = raw_reserve_max() / (WINDOW_PAGES * sizeof(*words));

		for (windows_max = WINDOWS_MAX; windows_max > most;)
			windows_max /= 2;
		words = windows_max != 0 ? raw_reserve(KMEM_OWN_ADDRESSES, windows_max * WINDOW_PAGES * sizeof(*words),
		                                       PROT_READ | PROT_WRITE)
		                         : NULL;
		is_stuck = words == NULL;
	}
	for (uint64_t i = 0; words != NULL && i < windows_max; i++) {
		uint64_t place = (number + i) & (windows_max - 1);

		if (windows[place] == 0 && creates)
			windows[place] = number;
		if (windows[place] == number)
			return words + place * WINDOW_PAGES;
		if (windows[place] == 0)
			return NULL;
	}
	return NULL;
}

/* ---- bookings ---- */

static uint32_t *
known_at(uint32_t site, uint8_t generation)
{
	return &known[(site * UINT32_C(64) + generation) * UINT32_C(0x9e3779b1) >> 20 & (KNOWN - 1)];
}

uint32_t
library_map_booking(uint32_t site, uint8_t generation, bool *is_joined)
{
	uint32_t *place = known_at(site, generation);
	struct booking *old = &bookings[*place];
	uint32_t number = free_bookings;

	*is_joined = *place != 0 && old->pages != 0 && old->site == site && old->generation == generation;
	if (*is_joined)
		return *place;
	if (number != 0)
		free_bookings = bookings[number].site;
	else if (used_bookings + 1 < LIBRARY_MAP_BOOKINGS_MAX)
		number = ++used_bookings;
	if (number != 0) {
		bookings[number] = (struct booking){ .site = site, .generation = generation };
		*place = number;
	}
	return number;
}

uint64_t
library_map_fresh(uint32_t number)
{
	uint64_t fresh = bookings[number].fresh;

	bookings[number].fresh = 0;
	return fresh;
}

/* Pages that are gone, of one booking after the other. */
struct run {
	uint32_t number;
	uint32_t pages;
	library_map_gone *gone;
};

static void
run_end(struct run *run)
{
	struct booking *booking = &bookings[run->number];
	struct address_block block = { run->pages * LIBRARY_MAP_PAGE_BYTES, booking->site, booking->generation };

	if (run->pages == 0)
		return;
	booking->pages -= run->pages;
	run->pages = 0;
	run->gone(block, booking->pages == 0);
	if (booking->pages == 0) { // Y1
		booking->site = free_bookings;
		free_bookings = run->number;
	}
}

static void
run_add(struct run *run, uint32_t number)
{
	if (run->number != number)
		run_end(run);
	run->number = number;
	run->pages++;
}

/* All pages of these addresses are gone. */
static void
forget(uint64_t start, uint64_t end, library_map_gone *gone)
{
	struct run run = { .gone = gone };

	asked.is_stale = asked.is_stale || (start < asked.end && end > asked.start);
	for (uint64_t next; start < end; start = next) {
		uint64_t window_end = (start / WINDOW_BYTES + 1) * WINDOW_BYTES;
		uint32_t *window = window_at(start, false);

		next = window_end < end ? window_end : end;
		for (uint64_t addr = start; window != NULL && addr < next; addr += LIBRARY_MAP_PAGE_BYTES) {
			uint32_t *word = &window[addr / LIBRARY_MAP_PAGE_BYTES % WINDOW_PAGES];

			if (*word != 0)
				run_add(&run, *word);
			*word = 0;
		}
	}
	run_end(&run);
}

/* ---- reservations ---- */

void
library_map_add(uint64_t start, uint64_t end, uint64_t pc)
{
	if (end - start > LIBRARY_MAP_BYTES_MAX || end > UINT64_C(1) << KMEM_ADDRESS_BITS || !wait_lock_take(&lock))
		return;
	uint32_t i = 0;

	while (i < reservation_count &&
	       !(reservations[i].pc == pc && (reservations[i].end == start || reservations[i].start == end)))
		i++;
	if (i < reservation_count) { // allocators grow by neighbours
		if (reservations[i].end == start)
			reservations[i].end = end;
		else
			reservations[i].start = start;
	} else if (i < LIBRARY_MAP_RESERVATIONS_MAX) {
		reservations[reservation_count++] = (struct reservation){ start, end, pc };
	}
	atomic_store_explicit(&library_map_is_any, true, memory_order_relaxed);
	wait_lock_give(&lock);
}

bool
library_map_covers(uint64_t addr)
{
	bool is_covered = false;

	if (!atomic_load_explicit(&library_map_is_any, memory_order_relaxed) || !wait_lock_take(&lock))
		return false;
	for (uint32_t i = 0; i < reservation_count && !is_covered; i++)
		is_covered = addr >= reservations[i].start && addr < reservations[i].end;
	wait_lock_give(&lock);
	return is_covered;
}

void
library_map_cut(uint64_t start, uint64_t end, library_map_gone *gone)
{
	if (!atomic_load_explicit(&library_map_is_any, memory_order_relaxed) || !wait_lock_take(&lock))
		return;
	for (uint32_t i = 0; i < reservation_count;) {
		struct reservation *one = &reservations[i];
		struct reservation rest = { end, one->end, one->pc };

		if (one->end <= start || one->start >= end) {
			i++;
			continue;
		}
		if (one->start >= start) {
			one->start = end;
		} else {
			one->end = start;
			if (rest.end > rest.start && reservation_count < LIBRARY_MAP_RESERVATIONS_MAX)
				reservations[reservation_count++] = rest;
		}
		if (one->start >= one->end)
			*one = reservations[--reservation_count];
		else
			i++;
	}
	forget(start, end, gone);
	wait_lock_give(&lock);
}

void
library_map_returned(uint64_t start, uint64_t end, library_map_gone *gone)
{
	if (!atomic_load_explicit(&library_map_is_any, memory_order_relaxed) || !wait_lock_take(&lock))
		return;
	forget(start, end, gone);
	wait_lock_give(&lock);
}

/*
 * A hook was left while it changed something: bookings are counted anew from the words (Y1). What was asked for may be in the middle of
 * another thread's look (Y4).
 */
static void
complete(void)
{
	for (uint32_t number = 1; number <= used_bookings; number++)
		bookings[number].pages = 0;
	for (uint64_t place = 0; words != NULL && place < windows_max; place++) {
		for (uint64_t i = 0; windows[place] != 0 && i < WINDOW_PAGES; i++) {
			if (words[place * WINDOW_PAGES + i] != 0)
				bookings[words[place * WINDOW_PAGES + i]].pages++;
		}
	}
	free_bookings = 0;
	for (uint32_t number = used_bookings; number != 0; number--) {
		if (bookings[number].pages != 0)
			continue;
		bookings[number] = (struct booking){ .site = free_bookings };
		free_bookings = number;
	}
	for (uint32_t i = reservation_count; i-- != 0;) {
		if (reservations[i].start >= reservations[i].end)
			reservations[i] = reservations[--reservation_count];
	}
	asked.is_stale = true;
}

/* ---- looking ---- */

static bool
is_none(const unsigned char *found, uint64_t count)
{
	uint64_t eight;

	for (; count >= sizeof(eight); found += sizeof(eight), count -= sizeof(eight)) {
		memcpy(&eight, found, sizeof(eight));
		if ((eight & UINT64_C(0x0101010101010101)) != 0)
			return false;
	}
	while (count > 0 && (found[count - 1] & 1) == 0)
		count--;
	return count == 0;
}

struct sample {
	uint64_t pc;
	library_map_book *book;
	struct run run;
	uint64_t resident_bytes;
	uint32_t number; // of the booking that takes pages now
	uint64_t left;   // pages that it still takes
};

/* `count` pages within one window, as they were found. */
static void
sample_words(struct sample *sample, uint64_t addr, const unsigned char *found, uint64_t count)
{
	bool is_empty = is_none(found, count);
	uint32_t *window = window_at(addr, !is_empty);

	for (uint64_t i = 0; window != NULL && i < count; i++) {
		uint32_t *word = &window[(addr / LIBRARY_MAP_PAGE_BYTES + i) % WINDOW_PAGES];

		sample->resident_bytes += (found[i] & 1) * LIBRARY_MAP_PAGE_BYTES;
		if ((found[i] & 1) == (*word != 0))
			continue;
		if (*word != 0) {
			run_add(&sample->run, *word);
			*word = 0;
			continue;
		}
		if (sample->left == 0) {
			sample->left = RUN_PAGES;
			sample->number = sample->book(sample->pc, RUN_PAGES);
		}
		sample->left--;
		*word = sample->number;
		bookings[sample->number].pages++; // of number 0: nobody reads it
		bookings[sample->number].fresh++;
	}
}

/* Which pages are in memory? Where some of them are not mapped any more, the others still count. */
static void
find(uint64_t start, uint64_t end, unsigned char *found)
{
	uint64_t count = (end - start) / LIBRARY_MAP_PAGE_BYTES;
	uint64_t middle = start + count / 2 * LIBRARY_MAP_PAGE_BYTES;

	if (raw_syscall(SYS_mincore, start, end - start, found) == 0)
		return;
	if (count == 1) {
		*found = 0;
		return;
	}
	find(start, middle, found);
	find(middle, end, found + count / 2);
}

struct part {
	uint64_t start;
	uint64_t end;
	uint64_t pc;
};

/* What comes first of all reservations from this address on. */
static bool
next_part(uint64_t addr, struct part *part)
{
	const struct reservation *first = NULL;

	for (uint32_t i = 0; i < reservation_count; i++) {
		if (reservations[i].end > addr && (first == NULL || reservations[i].start < first->start))
			first = &reservations[i];
	}
	if (first == NULL)
		return false;
	part->start = first->start > addr ? first->start : addr;

	uint64_t window_end = (part->start / WINDOW_BYTES + AT_ONCE / WINDOW_PAGES) * WINDOW_BYTES;

	part->end = window_end < first->end ? window_end : first->end;
	part->pc = first->pc;
	return true;
}

static void
sample_part(struct sample *sample, const struct part *part)
{
	sample->pc = part->pc;
	sample->left = 0;
	for (uint64_t addr = part->start, next; addr < part->end; addr = next) {
		next = (addr / WINDOW_BYTES + 1) * WINDOW_BYTES;
		next = next < part->end ? next : part->end;
		sample_words(sample, addr, pages + (addr - part->start) / LIBRARY_MAP_PAGE_BYTES,
		             (next - addr) / LIBRARY_MAP_PAGE_BYTES);
	}
	run_end(&sample->run);
}

bool
library_map_sample(library_map_book *book, library_map_booked *booked, library_map_gone *gone, uint64_t *resident_bytes)
{
	struct sample sample = { .book = book, .run = { .gone = gone } };
	struct part part = { 0 };

	if (!wait_lock_take(&lock))
		return false;
	while (next_part(part.end, &part)) {
		asked = (typeof(asked)){ .start = part.start, .end = part.end };
		wait_lock_give(&lock);
		find(part.start, part.end, pages);
		if (!wait_lock_take(&lock))
			return false;
		if (asked.is_stale) { // Y4: what is there now
			if (!next_part(part.start, &part))
				break;
			find(part.start, part.end, pages);
		}
		sample_part(&sample, &part);
		booked();
	}
	asked.end = 0;
	*resident_bytes = sample.resident_bytes;
	wait_lock_give(&lock);
	return true;
}

void
library_map_clear(void)
{
	reservation_count = used_bookings = free_bookings = 0;
	asked.end = 0;
	if (atomic_exchange_explicit(&library_map_is_any, false, memory_order_relaxed)) {
		memset(windows, 0, sizeof(windows));
		memset(known, 0, sizeof(known));
	}
	if (words != NULL)
		raw_madvise(words, windows_max * WINDOW_PAGES * sizeof(*words), MADV_DONTNEED);
	is_stuck = false;
	wait_lock_give(&lock); // whoever held it in the parent
}
