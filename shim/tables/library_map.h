/*
 * library_map.h - which pages of the reservations of libraries' own allocators are in use, and to whom are they booked?
 *
 * Some allocators (jemalloc, mimalloc, inside a library) reserve writable addresses and then just touch them: only the page itself shows
 * that it became memory. Here are the reservations, and for each page that was found in memory its booking. A booking is the growth that
 * one sample found at one line. It is one block until its last page is gone.
 *
 * Safe from   any thread, inside the reentry guard, with one lock (wait_lock.h); one sample at a time. mincore() is asked without the lock,
 *             and once more with it if pages have changed meanwhile. `book`, `booked` and `gone` are called under the lock.
 * When full   a reservation is not sampled (LIBRARY_MAP_RESERVATIONS_MAX of them, 64 GiB of pages, or of more than
 *             LIBRARY_MAP_BYTES_MAX); pages without a booking are found by the next sample.
 */
#ifndef LIBRARY_MAP_H
#define LIBRARY_MAP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "tables/address_table.h"

#define LIBRARY_MAP_RESERVATIONS_MAX 1024u
#define LIBRARY_MAP_BYTES_MAX ((uint64_t)256 << 30)
#define LIBRARY_MAP_BOOKINGS_MAX 32768u
#define LIBRARY_MAP_PAGE_BYTES UINT64_C(4096)

/* Was there ever a reservation in this process? relaxed: a thread that sees it late samples later. */
extern _Atomic bool library_map_is_any __attribute__((visibility("hidden")));

/* pc: the return address of whoever reserved it; 0 = not known */
void library_map_add(uint64_t start, uint64_t end, uint64_t pc);
bool library_map_covers(uint64_t addr);

/* What was booked is gone; is_whole: nothing is left of the booking. */
typedef void library_map_gone(struct address_block block, bool is_whole);

/* The addresses are no reservation any more; or they are, and their pages were given back. */
void library_map_cut(uint64_t start, uint64_t end, library_map_gone *gone);
void library_map_returned(uint64_t start, uint64_t end, library_map_gone *gone);

/*
 * Looks at all pages, part after part. `book` says to which booking the next so many pages belong, in a reservation that `pc` made: 0 =
 * to none. After each part `booked` is told: its pages may be gone as soon as it returns, and bookings be over. Returns the bytes that are
 * in memory. False: the lock could not be had; what was booked stays.
 */
typedef uint32_t library_map_book(uint64_t pc, uint64_t pages);
typedef void library_map_booked(void);
bool library_map_sample(library_map_book *book, library_map_booked *booked, library_map_gone *gone,
                        uint64_t *resident_bytes);

/* Pages that a booking got since this was asked last. */
uint64_t library_map_fresh(uint32_t booking);

/* For `book`: the booking of this site (index + 1) and generation, an old one (*is_joined) or a new one. 0 = there is no room. */
uint32_t library_map_booking(uint32_t site, uint8_t generation, bool *is_joined);

void library_map_clear(void); // forked child: one thread

#endif
