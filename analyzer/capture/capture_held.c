/*
 * capture_held.c - what did each record hold at another moment (see capture_held.h)?
 */
#include "capture/capture_held.h"

#include "base/amount.h"
#include "capture/capture_copy.h"
#include "capture/capture_reader.h"
#include "kmem_words.h"

bool
capture_held_is_possible(const struct capture *capture, const struct kmem_record *record,
                         const struct kmem_exit_site *sites, uint32_t count, uint32_t generation_count)
{
	uint64_t before = (uint64_t)((const char *)sites - (const char *)record);
	uint32_t last = 0;

	if (before + count * (uint64_t)sizeof(*sites) + generation_count * (uint64_t)sizeof(struct kmem_generations) >
	    record->bytes)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		if (!capture_is_sum(sites[i].live_bytes) || !capture_is_sum(sites[i].live_count) || sites[i].site <= last ||
		    sites[i].site > capture_site_count(capture) || sites[i].generations > generation_count)
			return false;
		last = sites[i].site;
	}
	return true;
}

const struct kmem_exit_site *
capture_held_next(const struct kmem_exit_site *sites, uint32_t count, uint32_t site, uint32_t *next)
{
	return *next < count && sites[*next].site == site ? &sites[(*next)++] : NULL;
}

struct kmem_site *
capture_site_copy(struct capture *capture, size_t index)
{
	return (struct kmem_site *)(void *)capture->sections[KMEM_SECTION_SITES].bytes + index;
}

void
capture_held_set(struct capture *capture, uint32_t number, const struct kmem_exit_site *then,
                 const struct kmem_generations *copies)
{
	struct kmem_site *site = capture_site_copy(capture, number - 1);

	SET(site->freed_bytes, COPY_OF(site->allocated_bytes) - (uint64_t)(then != NULL ? then->live_bytes : 0));
	SET(site->freed_count, COPY_OF(site->allocated_count) - (uint64_t)(then != NULL ? then->live_count : 0));
	if (copies != NULL && COPY_OF(site->generations) != 0)
		capture_rewind_generations(capture, number,
		                           then != NULL && then->generations != 0 ? &copies[then->generations - 1] : NULL);
}

void
capture_held_rewind(struct capture *capture, const struct kmem_exit_site *sites, uint32_t count,
                    const struct kmem_generations *copies)
{
	uint32_t next = 0;

	for (uint32_t i = 1; i <= capture_site_count(capture); i++)
		capture_held_set(capture, i, capture_held_next(sites, count, i, &next), copies);
}

void
capture_held_take_off(struct kmem_site *site, const struct kmem_site *then)
{
	uint64_t bytes = COPY_OF(then->allocated_bytes) - COPY_OF(then->freed_bytes);
	uint64_t count = COPY_OF(then->allocated_count) - COPY_OF(then->freed_count);
	struct kmem_peak_word peak = site->peak;

	SET(site->freed_bytes, COPY_OF(site->allocated_bytes) -
	                           amount_less(COPY_OF(site->allocated_bytes) - COPY_OF(site->freed_bytes), bytes));
	SET(site->freed_count, COPY_OF(site->allocated_count) -
	                           amount_less(COPY_OF(site->allocated_count) - COPY_OF(site->freed_count), count));
	site->peak = kmem_peak_pack(amount_less(kmem_peak_now(peak), bytes), amount_less(kmem_peak_high(peak), bytes),
	                            kmem_peak_epoch(peak));
}
