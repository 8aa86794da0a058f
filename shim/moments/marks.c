/*
 * marks.c - which moments have a name, and what was held then (see marks.h)?
 *
 * Invariants, tested by number in tests/unit/shim/moments/test_marks.c:
 *   M1  a mark's checksum is 0 while it or its record is written and stored last (release), so a reader takes whole ones only, and who
 *       is killed at any instruction leaves one less, not a damaged one.
 *   M2  the capture does not grow with the number of marks: a place keeps its record, and takes a larger one only when more is held than
 *       ever before there, within BUDGET_BYTES in all.
 *   M3  states at even distances: of n places at most n are used, each one distance after the one before; with all in use every other one
 *       is given up and the distance doubles.
 *
 * Not chosen  a ring of the last n states at a fixed distance: after a week it would show the last minutes.
 */
#include "moments/marks.h"

#include <stddef.h>
#include <string.h>

#include "base/arch.h"
#include "base/clock.h"
#include "base/settings.h"
#include "base/turn.h"
#include "kmem_words.h"
#include "moments/held_sites.h"
#include "sites/callbacks.h"
#include "tables/generations.h"
#include "tables/peak.h"

#define BUDGET_BYTES (UINT64_C(32) << 20)
#define WAIT_TRIES 20000 // a mark is written in less than a microsecond
#define REFUSED_MARKS_MAX 16u
#define REFUSED_PERIOD_NS UINT64_C(1000000000)
#define EVEN_FIRST_NS UINT64_C(250000000)
#define HIGH_WATER_LEAST_BYTES (UINT64_C(4) << 20)
#define FIRST_NAMED KMEM_MARKS_PLAIN
#define FIRST_EVEN (FIRST_NAMED + KMEM_SNAPSHOTS_NAMED)
#define FIRST_HIGH_WATER (FIRST_EVEN + KMEM_SNAPSHOTS_EVEN)

_Atomic uint64_t marks_served;

static struct turn marking;
static struct turn taking;
static _Atomic uint64_t resident_bytes_seen; // relaxed: a figure
static uint32_t plain_count;                 // whose turn of marking it is

static struct {
	uint64_t spent_bytes; // of the file, by records
	uint32_t named_count;
	uint32_t high_water_count;
	uint32_t even_count;
	uint8_t even[KMEM_SNAPSHOTS_EVEN]; // places in the order of time, then those that are free
	uint64_t even_distance_ns;
} taken; // whose turn of taking it is

/* relaxed, both: thresholds; who takes a snapshot sets them, and one that is taken twice is no harm. */
static _Atomic uint64_t next_even_ns;
static _Atomic uint64_t next_high_bytes = HIGH_WATER_LEAST_BYTES;

/* relaxed, both: bounds, which two threads at once may pass by one. */
static _Atomic uint32_t refused_count;
static _Atomic uint64_t next_refused_ns;

static uint64_t
live_bytes_now(void)
{
#define NOW(domain) kmem_peak_now_signed(peak_load(&capture_file_domain(domain)->peak))
	int64_t sum = KMEM_HOST_DOMAINS(NOW);

	return sum > 0 ? (uint64_t)sum : 0;
}

/* The first bytes of a text that are whole characters, or what is no UTF-8 at all. */
static size_t
cut(const char *text, size_t length)
{
	size_t end = length;

	while (end > 0 && length - end < 3 && ((unsigned char)text[end] & 0xc0) == 0x80)
		end--;
	return ((unsigned char)text[end] & 0xc0) == 0x80 ? length : end;
}

static void
set_name(struct kmem_mark *mark, const char *name)
{
	size_t length = strnlen(name, KMEM_MARK_NAME_BYTES);

	mark->is_cut = length == KMEM_MARK_NAME_BYTES;
	if (mark->is_cut)
		length = cut(name, KMEM_MARK_NAME_BYTES - 1);
	memcpy(mark->name, name, length);
}

static struct kmem_mark
mark_now(enum kmem_mark_kind kind, const char *name)
{
	struct kmem_timeline *timeline = capture_file_timeline();
	struct kmem_mark mark = {
		.kind = kind,
		.sequence = atomic_fetch_add_explicit(&timeline->mark_sequence, 1, memory_order_relaxed) + 1,
		.monotonic_ns = clock_now_ns(),
		.step = atomic_load_explicit(&timeline->steps.count, memory_order_relaxed),
		.volume_bytes = atomic_load_explicit(&capture_file_header()->volume_bytes, memory_order_relaxed),
		.resident_bytes = atomic_load_explicit(&resident_bytes_seen, memory_order_relaxed),
		.live_bytes = (int64_t)live_bytes_now(),
		.clock = generations_clock(),
		.step_source = atomic_load_explicit(&timeline->steps.source, memory_order_relaxed),
	};

	set_name(&mark, name);
	return mark;
}

static struct kmem_mark *
place_at(uint32_t place)
{
	return &capture_file_timeline()->marks[place];
}

/* From now on nobody reads it, nor its record (M1). */
static void
void_place(struct kmem_mark *to)
{
	atomic_store_explicit(&to->checksum, 0, memory_order_relaxed);
	atomic_thread_fence(memory_order_release); // the 0 before new contents
}

static void
store(struct kmem_mark *to, const struct kmem_mark *mark)
{
	uint32_t checksum = kmem_mark_checksum(mark);

	void_place(to);
	memcpy((char *)to + offsetof(struct kmem_mark, kind), (const char *)mark + offsetof(struct kmem_mark, kind),
	       sizeof(*mark) - offsetof(struct kmem_mark, kind));
	atomic_store_explicit(&to->checksum, checksum, memory_order_release); // M1
}

static void
store_plain(const struct kmem_mark *mark)
{
	for (unsigned tries = 0; !turn_take(&marking); tries++) {
		if (tries == WAIT_TRIES) // its number is missing: that tells
			return;
		arch_pause();
	}
	store(place_at(plain_count++ % KMEM_MARKS_PLAIN), mark);
	turn_give(&marking);
}

void
marks_note(enum kmem_mark_kind kind, const char *name)
{
	struct kmem_mark mark = mark_now(kind, name);

	record_callbacks.needs_file();
	store_plain(&mark);
}

void
marks_guard(uint32_t record)
{
	struct kmem_mark mark = mark_now(KMEM_MARK_GUARD, "guard");

	mark.record = record;
	store_plain(&mark);
}

void
marks_refused(unsigned domain)
{
	uint64_t now_ns = clock_now_ns();

	if (now_ns < atomic_load_explicit(&next_refused_ns, memory_order_relaxed) ||
	    atomic_fetch_add_explicit(&refused_count, 1, memory_order_relaxed) >= REFUSED_MARKS_MAX)
		return;
	atomic_store_explicit(&next_refused_ns, now_ns + REFUSED_PERIOD_NS, memory_order_relaxed);
	struct kmem_mark mark = mark_now(KMEM_MARK_REFUSED, capture_file_domain(domain)->name);

	store_plain(&mark);
}

/* ---- snapshots: the caller has is_taking ---- */

static uint64_t
budget(void)
{
	uint64_t quarter = settings.capture_max / 4;

	return quarter != 0 && quarter < BUDGET_BYTES ? quarter : BUDGET_BYTES;
}

/* The place's record with its room, or a larger one; NULL: there is none. */
static struct kmem_snapshot *
room_for(struct kmem_mark *place, uint64_t bytes)
{
	uint32_t record = __atomic_load_n(&place->record,
	                                  __ATOMIC_RELAXED); // once of twice: a capture that is given up has 0 there
	struct kmem_snapshot *old = record != 0 ? capture_file_item(KMEM_SECTION_RECORDS, record) : NULL;
	uint64_t wanted = (bytes + bytes / 2 + 4095) / 4096 * 4096;
	struct kmem_snapshot *fresh = NULL;
	uint32_t index;

	if (old != NULL && old->record.bytes >= bytes)
		return old;
	if (taken.spent_bytes + wanted <= budget() && !capture_file_is_large(0))
		fresh = capture_file_append(KMEM_SECTION_RECORDS, wanted, &index);
	if (fresh == NULL)
		return old;
	taken.spent_bytes += wanted;
	fresh->record.type = KMEM_RECORD_SNAPSHOT;
	fresh->record.bytes = (uint32_t)wanted;
	place->record = index + 1;
	return fresh;
}

static void
take_into(uint32_t place, enum kmem_mark_kind kind, const char *name)
{
	struct kmem_mark *to = place_at(place);
	struct kmem_mark mark = mark_now(kind, name);
	struct kmem_snapshot *snapshot;
	struct held_sites found;

	held_sites_measure(kind == KMEM_MARK_HIGH_WATER, &found);
	void_place(to);
	snapshot = room_for(to, sizeof(*snapshot) + held_sites_bytes(&found));

	uint32_t room_bytes = snapshot != NULL ? snapshot->record.bytes : 0;

	if (room_bytes >= sizeof(*snapshot)) { // not of a capture that was given up
		struct held_written done = held_sites_write(&found, snapshot->sites, room_bytes - sizeof(*snapshot));

		snapshot->sequence = mark.sequence;
		snapshot->site_count = done.sites;
		snapshot->generation_count = done.generations;
		snapshot->left_out = done.left_out;
		snapshot->left_out_bytes = done.left_out_bytes;
		capture_file_seal_record(&snapshot->record);
		mark.record = to->record;
	}
	store(to, &mark);
}

/* M3. KMEM_SNAPSHOTS_EVEN: not now; every other one was given up, and the latest that stays is younger than the new distance. */
static uint32_t
even_place(uint64_t now_ns)
{
	uint32_t most = (uint32_t)settings.snapshots;
	uint64_t before_ns = taken.even_distance_ns;

	if (taken.even_distance_ns == 0) {
		taken.even_distance_ns = EVEN_FIRST_NS;
		for (uint32_t i = 0; i < KMEM_SNAPSHOTS_EVEN; i++)
			taken.even[i] = (uint8_t)i;
	}
	if (taken.even_count >= most) {
		uint8_t kept[KMEM_SNAPSHOTS_EVEN];
		uint32_t count = 0;

		for (uint32_t i = 1; i < most; i += 2)
			kept[count++] = taken.even[i];
		taken.even_count = count;
		for (uint32_t i = 0; i < most; i += 2) {
			void_place(place_at(FIRST_EVEN + taken.even[i]));
			kept[count++] = taken.even[i];
		}
		memcpy(taken.even, kept, count);
		taken.even_distance_ns *= 2;
		if (most % 2 == 0) {
			atomic_store_explicit(&next_even_ns, now_ns + before_ns, memory_order_relaxed);
			return KMEM_SNAPSHOTS_EVEN;
		}
	}
	atomic_store_explicit(&next_even_ns, now_ns + taken.even_distance_ns, memory_order_relaxed);
	return taken.even[taken.even_count++];
}

static void
take(enum kmem_mark_kind kind, const char *name, uint64_t now_ns)
{
	uint32_t place;

	record_callbacks.needs_file();
	if (!turn_take(&taking)) {
		if (kind == KMEM_MARK_PROGRAM || kind == KMEM_MARK_OUTSIDE)
			marks_note(kind, name);
		return;
	}
	if (kind == KMEM_MARK_HIGH_WATER)
		take_into(FIRST_HIGH_WATER + taken.high_water_count++ % KMEM_SNAPSHOTS_HIGH_WATER, kind, name);
	else if (kind != KMEM_MARK_EVEN)
		take_into(FIRST_NAMED + taken.named_count++ % KMEM_SNAPSHOTS_NAMED, kind, name);
	else if ((place = even_place(now_ns)) < KMEM_SNAPSHOTS_EVEN)
		take_into(FIRST_EVEN + place, kind, name);
	turn_give(&taking);
}

void
marks_snapshot(enum kmem_mark_kind kind, const char *name)
{
	take(kind, name, 0);
}

static void
take_even(uint64_t now_ns)
{
	uint64_t due_ns = atomic_load_explicit(&next_even_ns, memory_order_relaxed);

	if (settings.snapshots == 0 || now_ns < due_ns)
		return;
	if (due_ns == 0) // the start
		atomic_store_explicit(&next_even_ns, now_ns + EVEN_FIRST_NS, memory_order_relaxed);
	else
		take(KMEM_MARK_EVEN, "", now_ns);
}

void
marks_beat(uint64_t live_bytes, uint64_t resident_bytes, uint64_t now_ns)
{
	atomic_store_explicit(&resident_bytes_seen, resident_bytes, memory_order_relaxed);
	if (live_bytes >= atomic_load_explicit(&next_high_bytes, memory_order_relaxed)) {
		atomic_store_explicit(&next_high_bytes, live_bytes + live_bytes / 8, memory_order_relaxed);
		marks_snapshot(KMEM_MARK_HIGH_WATER, "");
	}
	take_even(now_ns);
	marks_look();
}

void
marks_serve(void)
{
	struct kmem_timeline *timeline = capture_file_timeline();
	uint64_t seen = atomic_load_explicit(&marks_served, memory_order_relaxed);
	struct kmem_request request;

	memcpy(&request, &timeline->request,
	       sizeof(request)); // perhaps half of it: the checksum tells, and the next look has it
	if (request.checksum != kmem_request_checksum(&request) || request.number == seen)
		return;
	/* One thread serves it. relaxed: nothing else follows from it. */
	if (!atomic_compare_exchange_strong_explicit(&marks_served, &seen, request.number, memory_order_relaxed,
	                                             memory_order_relaxed))
		return;
	request.name[sizeof(request.name) - 1] = '\0';
	if (request.wants == 2)
		marks_snapshot(KMEM_MARK_OUTSIDE, request.name);
	else
		marks_note(KMEM_MARK_OUTSIDE, request.name);
	/* release: the mark before the word that says that it is there. Pairs with the command's read. */
	atomic_store_explicit(&timeline->request_done, request.number, memory_order_release);
}

void
marks_forked(void)
{
	memset(&taken, 0, sizeof(taken));
	plain_count = 0;
	atomic_store_explicit(&marks_served, 0, memory_order_relaxed);
	atomic_store_explicit(&refused_count, 0, memory_order_relaxed);
	atomic_store_explicit(&next_refused_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&next_even_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&next_high_bytes, HIGH_WATER_LEAST_BYTES, memory_order_relaxed);
}
