/*
 * history.c - what was held over time (see history.h)?
 *
 * Invariants, tested by number in tests/unit/shim/moments/test_history.c:
 *   H1  a point's checksum is 0 while the point is written, and is stored last (release). So a reader takes whole points only, and a
 *       process that is killed at any instruction leaves one point less, not a damaged one.
 *   H2  at most KMEM_HISTORY_POINTS points. When all places are in use, every second point is given up, and from then on the distance
 *       of new points is that of the points that stay. The point at which most was live stays.
 *   H3  a point's domain_bytes are the sums of all records, and its site_bytes those of all records with that stack and domain.
 *
 * Not chosen  a ring of the last points: after a week it would show the last minutes.
 *             To take what the domains' words say: what threads hold back is not in them.
 */
#include "moments/history.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory_limits.h"
#include "base/raw_sys.h"
#include "base/thread_stack.h"
#include "base/turn.h"
#include "kmem_words.h"
#include "sites/site_table.h"

#define COST_SHARE 1024u                // of the time that passes, at most one such part goes into points,
#define COST_FIRST_NS UINT64_C(2000000) // and so much more, at the start
#define POINT_NS UINT64_C(5000)         // about; a clock would count the time of other programs, too
#define RECORD_NS UINT64_C(10)          // of each record that is read
#define VOLUME_SHARE 16u
#define VOLUME_LEAST_BYTES (UINT64_C(256) << 10)
#define HIGHER_SHARE 16u // so much more than ever before is worth a point at any distance

_Atomic uint64_t history_next_volume = UINT64_MAX;

static struct turn taking;

static struct {
	uint16_t places[KMEM_HISTORY_POINTS]; // of those in use, in the order of time; then those that are free
	uint32_t count;                       // in use
	uint32_t room;                        // places that there are
	uint64_t number;
	uint64_t began_ns;
	uint64_t last_ns;
	uint64_t distance_ns;
	uint64_t spent_ns;
	uint64_t limit_bytes; // at the latest beat
	int64_t highest_bytes;
	uint16_t highest_place;
	bool has_begun;
} history; // whose is_taking is

/* ---- what is held ---- */

static struct {
	int64_t domain_bytes[KMEM_DOMAINS_MAX];
	struct held {
		int64_t bytes;
		uint32_t site;
	} sites[KMEM_HISTORY_SITES]; // the largest first
	uint32_t site_count;
} held; // the same

static void
keep_if_large(uint32_t site, int64_t bytes)
{
	uint32_t at = held.site_count;

	if (bytes <= 0 || (at == KMEM_HISTORY_SITES && bytes <= held.sites[at - 1].bytes))
		return;
	if (at == KMEM_HISTORY_SITES)
		at--;
	else
		held.site_count++;
	for (; at > 0 && held.sites[at - 1].bytes < bytes; at--)
		held.sites[at] = held.sites[at - 1];
	held.sites[at] = (struct held){ bytes, site };
}

static bool
is_shown(unsigned domain)
{
	return kmem_domain_is_memory(domain) || (domain >= KMEM_DOMAIN_TENSORS_FIRST && domain <= KMEM_DOMAIN_TENSORS_LAST);
}

static void
measure(void)
{
	uint32_t count = capture_file_count(KMEM_SECTION_SITES);

	memset(&held, 0, sizeof(held));
	for (uint32_t i = 1; i <= count; i++) {
		const struct kmem_site *site = site_table_at(i);
		int64_t bytes;

		if (!site_table_is_complete(site))
			continue;
		held.domain_bytes[site->domain % KMEM_DOMAINS_MAX] += site_table_live(site);
		if (is_shown(site->domain) && site_table_held_first(i, &bytes))
			keep_if_large(i, bytes);
	}
}

static int64_t
host_bytes(void)
{
#define HELD(domain) held.domain_bytes[domain]
	return KMEM_HOST_DOMAINS(HELD);
}

/* ---- places ---- */

/* NULL: the capture was given up, and all words in it are 0. */
static struct kmem_history_point *
point_at(uint32_t place)
{
	uint64_t part = atomic_load_explicit(&capture_file_header()->history[place / KMEM_HISTORY_PART_POINTS],
	                                     memory_order_relaxed); // our own

	if (part == 0)
		return NULL;
	return &((struct kmem_history *)capture_file_item(KMEM_SECTION_RECORDS, (uint32_t)part))
	            ->points[place % KMEM_HISTORY_PART_POINTS];
}

/* From now on nobody reads it (H1). */
static void
void_point(struct kmem_history_point *to)
{
	atomic_store_explicit(&to->checksum, 0, memory_order_relaxed);
	atomic_thread_fence(memory_order_release); // the 0 before new contents
}

/* One more part. False: all are there, or the capture has no room. */
static bool
grow(void)
{
	uint32_t part = history.room / KMEM_HISTORY_PART_POINTS;
	struct kmem_history *fresh;
	uint32_t index;

	if (part == KMEM_HISTORY_PARTS || capture_file_is_large(0))
		return false;
	fresh = capture_file_append(KMEM_SECTION_RECORDS, sizeof(*fresh), &index);
	if (fresh == NULL)
		return false;
	fresh->record.type = KMEM_RECORD_HISTORY;
	fresh->record.bytes = sizeof(*fresh);
	fresh->record.checksum = kmem_history_head_checksum(&fresh->record);
	/* release: the record before the word that leads to it (F1). Pairs with the reader. */
	atomic_store_explicit(&capture_file_header()->history[part], kmem_twice(index + 1), memory_order_release);
	for (uint32_t i = 0; i < KMEM_HISTORY_PART_POINTS; i++)
		history.places[history.room + i] = (uint16_t)(history.room + i);
	history.room += KMEM_HISTORY_PART_POINTS;
	return true;
}

/* H2. Of each two the later one stays, or the highest of all. There are two at least: it is called when there is no room. */
static void
thin(void)
{
	uint16_t given_up[KMEM_HISTORY_POINTS / 2];
	uint32_t kept = 0;
	uint32_t pairs = history.count / 2;

	for (uint32_t i = 0; i < pairs; i++) {
		uint16_t first = history.places[2 * i];
		uint16_t second = history.places[2 * i + 1];
		bool is_first_kept = first == history.highest_place;

		struct kmem_history_point *point;

		given_up[i] = is_first_kept ? second : first;
		if ((point = point_at(given_up[i])) != NULL)
			void_point(point);
		history.places[kept++] = is_first_kept ? first : second;
	}
	memcpy(&history.places[kept], given_up, pairs * sizeof(given_up[0]));
	history.count = kept;
	if (kept != 0)
		history.distance_ns = (history.last_ns - history.began_ns) / kept;
}

/* ---- one point ---- */

static struct kmem_history_point
point_now(uint64_t now_ns, uint64_t resident_bytes)
{
	const struct kmem_header *header = capture_file_header();
	struct kmem_history_point point = {
		.number = ++history.number,
		.monotonic_ns = now_ns,
		.resident_bytes = resident_bytes,
		.limit_bytes = history.limit_bytes,
		.volume_bytes = atomic_load_explicit(&header->volume_bytes, memory_order_relaxed),
		.step = atomic_load_explicit(&capture_file_timeline()->steps.count, memory_order_relaxed),
	};

	for (unsigned i = 0; i < KMEM_DOMAINS_MAX; i++) {
		if (held.domain_bytes[i] == 0)
			continue;
		if (point.domain_count == KMEM_HISTORY_DOMAINS) {
			point.left_out_domains++;
			continue;
		}
		point.domains[point.domain_count] = (uint8_t)i;
		point.domain_bytes[point.domain_count++] = held.domain_bytes[i];
	}
	point.site_count = (uint8_t)held.site_count;
	for (uint32_t i = 0; i < held.site_count; i++) {
		point.sites[i] = held.sites[i].site;
		point.site_bytes[i] = held.sites[i].bytes;
	}
	return point;
}

static void
store(struct kmem_history_point *to, const struct kmem_history_point *point)
{
	uint32_t checksum = kmem_history_checksum(point);

	void_point(to);
	memcpy((char *)to + offsetof(struct kmem_history_point, domain_count),
	       (const char *)point + offsetof(struct kmem_history_point, domain_count),
	       sizeof(*point) - offsetof(struct kmem_history_point, domain_count));
	atomic_store_explicit(&to->checksum, checksum, memory_order_release); // H1
}

/* The next point is due when a 16th more was allocated. */
static void
set_next_volume(void)
{
	uint64_t volume = atomic_load_explicit(&capture_file_header()->volume_bytes, memory_order_relaxed);
	uint64_t step = volume / VOLUME_SHARE > VOLUME_LEAST_BYTES ? volume / VOLUME_SHARE : VOLUME_LEAST_BYTES;

	atomic_store_explicit(&history_next_volume, volume + step, memory_order_relaxed);
}

/* live_bytes: INT64_MIN = not known. */
static bool
is_due(uint64_t now_ns, int64_t live_bytes)
{
	if (history.spent_ns > COST_FIRST_NS + (now_ns - history.began_ns) / COST_SHARE)
		return false;
	return now_ns - history.last_ns >= history.distance_ns ||
	       live_bytes > history.highest_bytes + history.highest_bytes / HIGHER_SHARE;
}

static void
take(uint64_t now_ns, uint64_t resident_bytes)
{
	struct kmem_history_point *to;

	if (capture_file_count(KMEM_SECTION_SITES) == 0) // a program that asked for nothing has no chunk for it either
		return;
	if (history.count == history.room && !grow()) {
		if (history.room == 0)
			return;
		thin();
	}

	uint32_t place = history.places[history.count];

	if ((to = point_at(place)) == NULL) {
		history.count = history.room = 0;
		return;
	}
	measure();

	struct kmem_history_point point = point_now(now_ns, resident_bytes);

	store(to, &point);
	history.count++;
	if (history.number == 1 || host_bytes() > history.highest_bytes) {
		history.highest_bytes = host_bytes();
		history.highest_place = (uint16_t)place;
	}
	history.last_ns = now_ns;
	history.spent_ns += POINT_NS + RECORD_NS * capture_file_count(KMEM_SECTION_SITES);
}

/* ---- when ---- */

void
history_beat(uint64_t live_bytes, uint64_t resident_bytes, uint64_t limit_bytes, uint64_t now_ns)
{
	if (!turn_take(&taking))
		return;
	if (!history.has_begun) {
		history.has_begun = true;
		history.began_ns = now_ns;
	}
	history.limit_bytes = limit_bytes;
	if (is_due(now_ns, (int64_t)live_bytes)) {
		take(now_ns, resident_bytes);
		set_next_volume();
	}
	turn_give(&taking);
}

static uint64_t
resident_now(void)
{
	int host_errno = errno;
	uint64_t bytes = raw_sys_may_call() ? memory_limits_resident(&capture_file_header()->identity) : 0;

	errno = host_errno;
	return bytes;
}

/* resident_bytes 0: to be asked for. */
static void
take_between_beats(uint64_t resident_bytes, bool is_last)
{
	if (!thread_stack_has_room() || !turn_take(&taking))
		return;

	uint64_t now_ns = clock_now_ns();

	if (history.has_begun && (is_last || is_due(now_ns, INT64_MIN)))
		take(now_ns, resident_bytes != 0 ? resident_bytes : resident_now());
	if (history.has_begun)
		set_next_volume();
	turn_give(&taking);
}

void
history_tick(uint64_t resident_bytes)
{
	take_between_beats(resident_bytes, false);
}

void
history_volume(void)
{
	take_between_beats(0, false);
}

void
history_exit(void)
{
	take_between_beats(0, true);
}

void
history_forked(void)
{
	memset(&history, 0, sizeof(history));
	atomic_store_explicit(&history_next_volume, UINT64_MAX, memory_order_relaxed);
}
