/*
 * phases.c - what was the highest in this part of the program's life (see phases.h)?
 *
 * For each domain whose peak is the highest so far: book the maximum, write down what each site held at it, and make that record the one
 * in force. Then begin the phase. If a higher maximum has come meanwhile, do it all once more.
 *
 * Invariants, tested by number in tests/unit/shim/moments/test_phases.c:
 *   N1  a domain's kept_peak_bytes is never below the highest of the phases that have ended.
 *   N2  the record in force says at every instruction what sites held at that peak: there are two records, and only the other one is
 *       written. While the record is newer than kept_peak_bytes, the domain's own word still says the same.
 *   N3  the capture does not grow with the number of phases: a record is written anew into its room. It gets a larger room only if more
 *       sites held something than ever before.
 *   N4  a phase whose predecessor's peak cannot be kept does not begin.
 *
 * Not chosen  a second word in each site: every event would have to look at it, or a phase to change all sites at once.
 */
#include "moments/phases.h"

#include <stddef.h>
#include <string.h>

#include "base/wait_lock.h"
#include "capture/capture_file.h"
#include "sites/callbacks.h"
#include "sites/site_table.h"

#define TRIES_MAX 8u // while other threads reach one maximum after the other
#define LOOKS_MAX 8u

static struct wait_lock lock;

/* The domains at one try. */
struct domains_seen {
	struct kmem_peak_word words[KMEM_DOMAINS_MAX];
	bool is_raised[KMEM_DOMAINS_MAX]; // higher than what is kept
	bool is_any_raised;
};

/* Index + 1 of the record in force. relaxed, here and for the other one: only the holder of the lock writes them. */
static uint32_t
index_in_force(void)
{
	return (uint32_t)atomic_load_explicit(&capture_file_timeline()->kept_peak, memory_order_relaxed); // once of twice
}

static struct kmem_kept_peak *
record_at(uint32_t index_plus_one)
{
	return index_plus_one != 0 ? capture_file_item(KMEM_SECTION_RECORDS, index_plus_one) : NULL;
}

static void
settle(struct peak_batch *heap, struct domains_seen *now)
{
	now->is_any_raised = false;
	for (unsigned i = 0; i < KMEM_DOMAINS_MAX; i++) {
		struct kmem_domain_row *row = capture_file_domain(i);

		now->words[i] = peak_settle(&row->peak, i == KMEM_DOMAIN_HEAP ? heap : NULL);
		now->is_raised[i] = kmem_peak_high(now->words[i]) > phases_kept_bytes(row);
		now->is_any_raised |= now->is_raised[i];
	}
}

/* A word that its thread may be changing: looked at until it stands still. */
static struct kmem_peak_word
word_of(const struct kmem_site *site)
{
	struct kmem_peak_word word = peak_load_in_order(&site->peak);

	for (unsigned look = 0; look < LOOKS_MAX; look++) {
		struct kmem_peak_word again = peak_load_in_order(&site->peak);

		if (again.now == word.now && again.high == word.high)
			break;
		word = again;
	}
	return word;
}

/*
 * What each site held at the peak that is to be kept, in order. Where the peak kept before is the higher one, that is written on.
 *
 * to       NULL: they are only counted
 * returns  how many there are; no more than `most` are written
 */
static uint32_t
write_sites(const struct domains_seen *now, struct kmem_kept_site *to, uint32_t most)
{
	const struct kmem_kept_peak *before = record_at(index_in_force());
	uint32_t before_count = before != NULL ? before->site_count : 0;
	uint32_t records = capture_file_count(KMEM_SECTION_SITES);
	uint32_t next = 0;
	uint32_t count = 0;

	for (uint32_t i = 1; i <= records; i++) {
		const struct kmem_site *site = site_table_at(i);
		uint32_t domain = __atomic_load_n(&site->domain, __ATOMIC_RELAXED) % KMEM_DOMAINS_MAX; // as in held_sites.c
		bool was_kept = next < before_count && before->sites[next].site == i;
		uint64_t bytes = was_kept ? before->sites[next++].peak_bytes : 0;

		if (now->is_raised[domain])
			bytes = kmem_site_high_bytes(now->words[domain], word_of(site));
		if (bytes == 0)
			continue;
		if (to != NULL && count < most)
			to[count] = (struct kmem_kept_site){ .peak_bytes = bytes, .site = i };
		count++;
	}
	return count;
}

/* The record that is not in force, with room for so many; NULL: there is none. */
static struct kmem_kept_peak *
other_record(uint32_t sites)
{
	_Atomic uint64_t *spare = &capture_file_timeline()->kept_spare;
	struct kmem_kept_peak *old = record_at((uint32_t)atomic_load_explicit(spare, memory_order_relaxed));
	uint64_t bytes = sizeof(*old) + (sites + sites / 2) * (uint64_t)sizeof(old->sites[0]);
	uint32_t index;

	if (old != NULL && old->record.bytes >= sizeof(*old) + sites * (uint64_t)sizeof(old->sites[0]))
		return old;
	bytes = (bytes + 4095) / 4096 * 4096;
	if (capture_file_is_large(0))
		return NULL;

	struct kmem_kept_peak *fresh = capture_file_append(KMEM_SECTION_RECORDS, bytes, &index);

	if (fresh == NULL)
		return NULL;
	fresh->record.type = KMEM_RECORD_KEPT_PEAK;
	fresh->record.bytes = (uint32_t)bytes;
	atomic_store_explicit(spare, index + 1, memory_order_relaxed);
	return fresh;
}

/* N2. False: there is no room, or more sites came to hold something than were counted. */
static bool
keep(const struct domains_seen *now)
{
	struct kmem_timeline *timeline = capture_file_timeline();
	struct kmem_kept_peak *to = other_record(write_sites(now, NULL, 0));
	uint32_t before = index_in_force();
	uint32_t index = (uint32_t)atomic_load_explicit(&timeline->kept_spare, memory_order_relaxed);

	if (to == NULL)
		return false;

	uint32_t room = (uint32_t)((to->record.bytes - sizeof(*to)) / sizeof(to->sites[0]));

	to->site_count = write_sites(now, to->sites, room);
	if (to->site_count > room)
		return false;
	to->reserved = 0;
	capture_file_seal_record(&to->record);
	/* release: the record before the word that leads to it (F1). Pairs with the reader, which is another process. */
	atomic_store_explicit(&timeline->kept_peak, kmem_twice(index), memory_order_release);
	atomic_store_explicit(&timeline->kept_spare, before, memory_order_relaxed);
	for (unsigned i = 0; i < KMEM_DOMAINS_MAX; i++) {
		if (now->is_raised[i])
			atomic_store_explicit(&capture_file_domain(i)->kept_peak_bytes, kmem_peak_high(now->words[i]),
			                      memory_order_relaxed);
	}
	return true;
}

/* In the domains where none began yet. How many are left. */
static unsigned
begin(struct phases_row rows[KMEM_DOMAINS_MAX])
{
	unsigned left = 0;

	for (unsigned i = 0; i < KMEM_DOMAINS_MAX; i++) {
		struct kmem_domain_row *row = capture_file_domain(i);
		int64_t now;

		if (rows[i].is_begun != 0)
			continue;

		struct kmem_peak_word ended = peak_load(&row->peak);

		if (ended.now == 0 && ended.high == 0) { // nothing has ever been there
			rows[i].is_begun = 1;
			continue;
		}
		rows[i].is_begun = peak_begin_phase(&row->peak, phases_kept_bytes(row), &ended);
		if (rows[i].is_begun == 0) {
			ended = peak_load(&row->peak);
			left++;
		}
		now = kmem_peak_now_signed(ended);
		rows[i].live_bytes = now > 0 ? (uint64_t)now : 0;
		rows[i].peak_bytes = kmem_domain_peak_bytes(ended);
	}
	return left;
}

bool
phases_next(struct peak_batch *heap, struct phases_row rows[KMEM_DOMAINS_MAX])
{
	struct domains_seen now;

	record_callbacks.needs_file();
	if (!wait_lock_take(&lock))
		return false;
	memset(rows, 0, KMEM_DOMAINS_MAX * sizeof(rows[0]));
	for (unsigned i = 0; i < TRIES_MAX; i++) {
		settle(heap, &now);
		if (now.is_any_raised)
			(void)keep(&now); // where it fails, nothing begins (N4)
		if (begin(rows) == 0)
			break;
	}
	wait_lock_give(&lock);
	return true;
}

void
phases_look(const struct peak_batch *heap, struct phases_row rows[KMEM_DOMAINS_MAX])
{
	for (unsigned i = 0; i < KMEM_DOMAINS_MAX; i++) {
		struct kmem_peak_word word = peak_load_in_order(&capture_file_domain(i)->peak);
		int64_t now = kmem_peak_now_signed(word) + (i == KMEM_DOMAIN_HEAP && heap != NULL ? heap->pending_bytes : 0);
		uint64_t live_bytes = now > 0 ? (uint64_t)now : 0;
		uint64_t peak_bytes = kmem_domain_peak_bytes(word);

		rows[i] = (struct phases_row){ .live_bytes = live_bytes,
			                           .peak_bytes = peak_bytes > live_bytes ? peak_bytes : live_bytes };
	}
}
