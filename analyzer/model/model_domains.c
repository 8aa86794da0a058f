/*
 * model_domains.c - what did one process request in each domain, and how much at most at once?
 *
 * A domain's counters are the sums of its sites'. Its peak word may lag behind them, because threads add up small events
 * first: what the sites hold is put in the place of what the word says is live, before any peak is computed from it.
 *
 * Context     before the sites are merged.
 * When failing  a domain without a name is left out and told. Where sites are missing, because the file was cut or they were damaged, the head says what
 *               all of them held.
 */
#include <inttypes.h>
#include <string.h>

#include "base/amount.h"
#include "base/memory.h"
#include "capture/capture_copy.h"
#include "capture/capture_cross_check.h"
#include "kmem_words.h"
#include "model/model_build.h"

/* Adds what the domain's word says is live beyond what the sites before the cut hold. */
static void
add_missing(struct kmem_peak_word stored, struct domain_sum *sum)
{
	int64_t missing_bytes = kmem_peak_now_signed(stored) - (int64_t)model_signed_bytes(sum->peak.now);

	if (missing_bytes > 0) {
		sum->allocated_bytes += (uint64_t)missing_bytes;
		sum->peak.now += (uint64_t)missing_bytes;
	}
	sum->is_used = sum->is_used || kmem_domain_peak_bytes(stored) != 0;
}

static void
sum_sites(struct capture *capture, struct domain_rows *rows)
{
	memset(rows->sums, 0, sizeof(rows->sums));
	for (size_t i = 0; i < capture_site_count(capture); i++) {
		const struct kmem_site *site = capture_site(capture, i);
		struct domain_sum *sum = &rows->sums[site->domain % KMEM_DOMAINS_MAX];
		uint64_t allocated_count = COPY_OF(site->allocated_count);
		uint64_t freed_count = COPY_OF(site->freed_count);

		if (site->domain >= KMEM_DOMAINS_MAX)
			continue;
		sum->allocated_bytes += COPY_OF(site->allocated_bytes);
		sum->freed_bytes += COPY_OF(site->freed_bytes);
		sum->allocated_count += allocated_count;
		sum->freed_count += freed_count;
		sum->peak.now += kmem_peak_now(site->peak);
		sum->is_used = sum->is_used || allocated_count != 0 || freed_count != 0 || sum->freed_bytes != 0;
	}
	for (unsigned i = 0; i < KMEM_DOMAINS_MAX; i++) {
		struct kmem_peak_word stored = capture_domain(capture, i)->peak;

		if (capture->is_salvage && kmem_domain_peak_bytes(stored) > capture_most_bytes(capture, i)) {
			capture_damaged(capture, "section \"domains\": domain %u cannot have held %" PRIu64 " bytes", i,
			                kmem_domain_peak_bytes(stored));
			stored = (struct kmem_peak_word){ 0 };
		}
		if (capture->sections[KMEM_SECTION_SITES].is_cut || capture->sites_left_out != 0)
			add_missing(stored, &rows->sums[i]);
		rows->sums[i].peak = kmem_peak_pack(model_signed_bytes(rows->sums[i].peak.now), kmem_peak_high(stored),
		                                    kmem_peak_epoch(stored));
	}
}

static uint32_t
domain_by_name(struct build *build, const char *name, struct domain_id id)
{
	for (size_t i = 0; i < build->domain_count; i++) {
		if (build->domains[i].name == name) // both of the pool
			return (uint32_t)i;
	}
	*MEMORY_NEXT(build->domains, build->domain_count) = (struct model_domain){ .name = name, .id = id };
	return (uint32_t)build->domain_count - 1;
}

static void
add_domain(struct model_process *process, unsigned row_index, const struct kmem_domain_row *row,
           const struct domain_sum *sum, struct model_domain *domain)
{
	uint64_t live = sum->allocated_bytes > sum->freed_bytes ? sum->allocated_bytes - sum->freed_bytes : 0;
	uint64_t live_count = sum->allocated_count > sum->freed_count ? sum->allocated_count - sum->freed_count : 0;
	uint64_t peak = kmem_domain_peak_bytes(sum->peak);
	uint64_t resident = COPY_OF(row->peak_resident_bytes);

	domain->holder_count += peak != 0;
	domain->live_bytes += live;
	domain->live_count += live_count;
	domain->peak_bytes += peak;
	domain->allocated_bytes += sum->allocated_bytes;
	domain->allocated_count += sum->allocated_count;
	domain->freed_bytes += sum->freed_bytes;
	domain->freed_count += sum->freed_count;
	domain->inherited_bytes += row->inherited_bytes;
	domain->returned_bytes += COPY_OF(row->returned_bytes);
	if (resident > domain->peak_resident_bytes)
		domain->peak_resident_bytes = resident;

	process->allocated_bytes += sum->allocated_bytes;
	if (kmem_domain_is_private(row_index) || row_index == KMEM_DOMAIN_SHARED) {
		process->live_bytes += live;
		process->peak_bytes = amount_greater(process->peak_bytes, peak);
	}
}

/* "hip:0" for "cuda:0". */
static const char *
hip_name(struct build *build, const char *name)
{
	bool is_device = strncmp(name, "cuda", 4) == 0 && (name[4] == ':' || name[4] == '/');

	const char *text = TEXT(40, "%s%.32s", is_device ? "hip" : "", is_device ? name + 4 : name);
	return text_pool_add(build->pool, text, strlen(text));
}

void
model_add_domains(struct build *build, struct capture *capture, struct model_process *process, struct domain_rows *rows)
{
	bool is_hip = COPY_OF(capture->header->devices_are_hip) == KMEM_YES;

	sum_sites(capture, rows);
	for (unsigned i = 0; i < KMEM_DOMAINS_MAX; i++) {
		const struct kmem_domain_row *row = capture_domain(capture, i);
		size_t name_bytes = strnlen(row->name, sizeof(row->name));
		const char *name;

		rows->index[i] = DOMAIN_NONE;
		if (COPY_OF(row->is_used) == 0 && !rows->sums[i].is_used && row->inherited_bytes == 0)
			continue;
		if (name_bytes == 0 || name_bytes == sizeof(row->name)) {
			capture_damaged(capture, "section \"head\": domain %u has no name: its memory is left out", i);
			continue;
		}
		name = is_hip ? hip_name(build, row->name) : text_pool_add(build->pool, row->name, name_bytes);
		rows->index[i] = domain_by_name(build, name, domain_id_of(i, is_hip));
		add_domain(process, i, row, &rows->sums[i], &build->domains[rows->index[i]]);
	}
}
