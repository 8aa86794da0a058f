/*
 * marks.h - which moments have a name, and what was held then?
 *
 * A mark is a name and a few figures. A snapshot is a mark with what each record held. Both stand in rings in the head of the capture;
 * a place keeps its record, so that the file does not grow with their number.
 *
 * Context     inside the reentry guard, while recording is on.
 * Safe from   any hook on any thread. One thread writes at a time. A second thread waits a little with a mark, and not at all with a
 *             snapshot: that becomes a mark alone.
 * When full   the oldest of its kind is replaced. Where a record has no room the largest sites are kept, or the mark alone.
 */
#ifndef MARKS_H
#define MARKS_H

#include <stdatomic.h>
#include <stdint.h>

#include "capture/capture_file.h"
#include "kmem_format.h"

/* name: as given, any bytes; its first KMEM_MARK_NAME_BYTES - 1 are kept, whole characters of UTF-8. */
void marks_note(enum kmem_mark_kind kind, const char *name);
void marks_snapshot(enum kmem_mark_kind kind, const char *name);

/* The guard was passed: `record` is what it keeps, 0 = nothing. A request was refused; the first ones have a mark, one a second at most. */
void marks_guard(uint32_t record);
void marks_refused(unsigned domain);

/* At a beat: snapshots at the high-water mark and at even distances. */
void marks_beat(uint64_t live_bytes, uint64_t resident_bytes, uint64_t now_ns);

/* Does what a command asks, and what is due at an even distance. */
__attribute__((noinline, cold)) void marks_serve(void);

/* relaxed: whether to look. What was asked is guarded by its checksum. */
extern _Atomic uint64_t marks_served; // number of the latest request that was looked at

/* Now and then, from a slow path: one compare. */
static inline void
marks_look(void)
{
	uint64_t number = __atomic_load_n(&capture_file_timeline()->request.number, __ATOMIC_RELAXED);

	if (__builtin_expect(number != atomic_load_explicit(&marks_served, memory_order_relaxed), 0))
		marks_serve();
}

void marks_forked(void); // forked child: one thread, an empty capture

#endif
