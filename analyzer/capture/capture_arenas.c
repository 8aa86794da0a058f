/*
 * capture_arenas.c - which part of Python's arenas is known by line (see capture_reader.h)?
 *
 * The records of a private copy are changed, as in capture_exit.c, so that nobody else needs to know that two domains hold the same
 * bytes. What is left of the arenas is free, or is kept for sizes that are rounded up, or was given out before recording. Which line made
 * the arenas grow says nothing of that: the model makes one site of their records.
 */
#include "capture/capture_copy.h"
#include "capture/capture_reader.h"

#include "base/amount.h"
#include "capture/capture_held.h"
#include "kmem_words.h"

/* What a domain holds. */
struct held {
	uint64_t live_bytes;
	uint64_t recorded_bytes; // of these, by records that are there; modulo 2^64 until all are added
	uint64_t peak_bytes;
};

static struct kmem_domain_row *
row_of(struct capture *capture, unsigned domain)
{
	return (struct kmem_domain_row *)(uintptr_t)capture_domain(capture, domain);
}

/* Where records are missing, because the file was cut or they were damaged, the head says what all of them held. */
static struct held
held_by(struct capture *capture, unsigned domain)
{
	bool is_incomplete = capture->sections[KMEM_SECTION_SITES].is_cut || capture->sites_left_out != 0;
	uint64_t told_bytes = amount_not_negative(kmem_peak_now_signed(row_of(capture, domain)->peak));
	struct held held = { 0 };

	for (size_t i = 0; i < capture_site_count(capture); i++) {
		const struct kmem_site *site = capture_site_copy(capture, i);

		if (site->domain == domain)
			held.recorded_bytes += COPY_OF(site->allocated_bytes) - COPY_OF(site->freed_bytes);
	}
	held.recorded_bytes = amount_not_negative((int64_t)held.recorded_bytes);
	held.live_bytes = is_incomplete && told_bytes > held.recorded_bytes ? told_bytes : held.recorded_bytes;
	held.peak_bytes = kmem_domain_peak_bytes(row_of(capture, domain)->peak);
	if (held.peak_bytes < held.live_bytes)
		held.peak_bytes = held.live_bytes;
	return held;
}

static uint64_t
scaled(uint64_t bytes, uint64_t from, uint64_t to)
{
	return bytes / from * to; // all are multiples of it
}

/* 48 bits that may be below 0. */
static uint64_t
scaled_signed(uint64_t word, uint64_t from, uint64_t to)
{
	int64_t bytes = (int64_t)(word << 16) >> 16;

	return (uint64_t)(bytes / (int64_t)from) * to;
}

/*
 * Each sample stands for `to` bytes and not for `from`, and for `peak_to` in what is said of the peak: chance at the peak says nothing
 * of what is alive. Shares of the peak are said anew, for all records in one epoch.
 */
static void
scale_objects(struct capture *capture, uint64_t from, uint64_t to, uint64_t peak_to)
{
	struct kmem_peak_word *row = &row_of(capture, KMEM_DOMAIN_PYTHON_OBJECT)->peak;
	struct kmem_peak_word before = *row;
	uint32_t epoch = kmem_peak_epoch(before);

	for (size_t i = 0; i < capture_site_count(capture); i++) {
		struct kmem_site *site = capture_site_copy(capture, i);

		if (site->domain != KMEM_DOMAIN_PYTHON_OBJECT)
			continue;
		SET(site->allocated_bytes, scaled(COPY_OF(site->allocated_bytes), from, to));
		SET(site->freed_bytes, scaled(COPY_OF(site->freed_bytes), from, to));
		site->peak = kmem_peak_pack(scaled_signed(site->peak.now, from, to),
		                            scaled_signed(kmem_site_peak_bytes(before, site->peak), from, peak_to), epoch);
		if (capture->released_bytes != NULL)
			capture->released_bytes[i] = (int64_t)((uint64_t)(capture->released_bytes[i] / (int64_t)from) * to);
	}
	*row = kmem_peak_pack(scaled_signed(before.now, from, to), scaled(kmem_domain_peak_bytes(before), from, peak_to),
	                      epoch);
	SET(((struct kmem_header *)(void *)capture->head)->python_sample_bytes, to);
}

/* Any of their records: the model makes one site of all. NULL: there is none, or it is missing. */
static struct kmem_site *
find_arenas(struct capture *capture)
{
	for (size_t i = 0; i < capture_site_count(capture); i++) {
		if (capture_site_copy(capture, i)->domain == KMEM_DOMAIN_PYTHON_ARENA)
			return capture_site_copy(capture, i);
	}
	return NULL;
}

/* All arenas together are less by so much; one record is. Shares of the peak are said anew, for all records in one epoch. */
static void
reduce(struct capture *capture, struct held all, struct held less)
{
	struct kmem_peak_word *row = &row_of(capture, KMEM_DOMAIN_PYTHON_ARENA)->peak;
	struct kmem_site *arenas = find_arenas(capture);
	uint64_t recorded_bytes = amount_lesser(less.live_bytes, all.recorded_bytes);
	uint32_t epoch = kmem_peak_epoch(*row);
	struct kmem_peak_word before = kmem_peak_pack(all.live_bytes, kmem_peak_high(*row), epoch);

	for (size_t i = 0; i < capture_site_count(capture); i++) {
		struct kmem_site *site = capture_site_copy(capture, i);
		bool is_first = site == arenas;

		if (site->domain != KMEM_DOMAIN_PYTHON_ARENA)
			continue;
		if (capture->released_bytes != NULL)
			capture->released_bytes[i] = 0; // what was in them was

		uint64_t share = kmem_site_peak_bytes(before, site->peak);

		site->peak = kmem_peak_pack(kmem_peak_now(site->peak) - (is_first ? recorded_bytes : 0),
		                            share - (is_first ? less.peak_bytes : 0), epoch);
	}
	if (arenas != NULL)
		SET(arenas->freed_bytes, COPY_OF(arenas->freed_bytes) + recorded_bytes);
	*row = kmem_peak_pack(all.live_bytes - less.live_bytes, all.peak_bytes - less.peak_bytes, epoch);
}

static void
reduce_inherited(struct capture *capture)
{
	struct kmem_domain_row *arenas = row_of(capture, KMEM_DOMAIN_PYTHON_ARENA);
	struct kmem_domain_row *objects = row_of(capture, KMEM_DOMAIN_PYTHON_OBJECT);

	if (objects->inherited_bytes > arenas->inherited_bytes)
		objects->inherited_bytes = arenas->inherited_bytes;
	arenas->inherited_bytes -= objects->inherited_bytes;
}

/* For how many bytes each may stand, so that all have room. */
static uint64_t
fitting(uint64_t sample_bytes, uint64_t objects_bytes, uint64_t room_bytes)
{
	if (objects_bytes <= room_bytes)
		return sample_bytes;
	return (uint64_t)((unsigned __int128)sample_bytes * room_bytes / objects_bytes);
}

uint64_t
capture_heap_sample_bytes(const struct capture *capture)
{
	return (uint32_t)COPY_OF(capture->header->heap_sample_bytes); // once of twice
}

uint64_t
capture_arenas_sample_bytes(const struct capture *capture)
{
	return (uint32_t)COPY_OF(capture->header->python_sample_bytes); // once of twice
}

void
capture_arenas_split(struct capture *capture)
{
	uint64_t sample_bytes = capture_arenas_sample_bytes(capture);
	struct held arenas = held_by(capture, KMEM_DOMAIN_PYTHON_ARENA);
	struct held objects = held_by(capture, KMEM_DOMAIN_PYTHON_OBJECT);
	uint64_t free_bytes; // in arenas that were inherited: objects of a forked child lie there, too

	reduce_inherited(capture);
	if (sample_bytes == 0 || arenas.peak_bytes == 0)
		return;
	free_bytes = row_of(capture, KMEM_DOMAIN_PYTHON_ARENA)->inherited_bytes;

	uint64_t fitting_bytes = fitting(sample_bytes, objects.live_bytes, amount_sum(arenas.live_bytes, free_bytes));
	uint64_t fitting_at_peak = fitting(sample_bytes, objects.peak_bytes, amount_sum(arenas.peak_bytes, free_bytes));

	if (fitting_bytes == 0 || fitting_at_peak == 0)
		return;
	if (fitting_bytes < sample_bytes || fitting_at_peak < sample_bytes) {
		scale_objects(capture, sample_bytes, fitting_bytes, fitting_at_peak);
		objects = held_by(capture, KMEM_DOMAIN_PYTHON_OBJECT);
	}
	/* Which objects lie in inherited arenas is not known: as few as can be. */
	objects.live_bytes = amount_lesser(objects.live_bytes, arenas.live_bytes);
	objects.peak_bytes = amount_lesser(objects.peak_bytes, arenas.peak_bytes);
	/* The rest was at its own highest at another moment: it is not less than what is left now. */
	if (arenas.peak_bytes - objects.peak_bytes < arenas.live_bytes - objects.live_bytes)
		objects.peak_bytes = arenas.peak_bytes - (arenas.live_bytes - objects.live_bytes);
	reduce(capture, arenas, objects);
}
