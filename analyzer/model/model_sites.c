/*
 * model_sites.c - what does each call site hold, all processes together?
 *
 * Sites with the same readable stack in the same domain are one: those of the threads of a process, of a pool of workers, of a cell that
 * was run again. First the records of one process are added up: each thread has its own record, and books there also what it released of
 * others' blocks, so only their sum says what is held. Then counters of processes are added up. Generations of processes are not, since
 * every process has a clock of its own: those of the process that holds most are shown.
 *
 * When failing  a site whose domain is unknown is left out and told.
 */
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/hash.h"
#include "base/items.h"
#include "base/memory.h"
#include "base/progress.h"
#include "base/units.h"
#include "capture/capture_copy.h"
#include "kmem_words.h"
#include "model/model_build.h"

struct site_key_pair {
	const struct build_stack *stack;
	uint64_t domain;
};

struct build_site {
	struct site_key_pair key;
	size_t index; // in build.sites
	UT_hash_handle hh;
};

/* What is known of one model_site while sites are merged. */
struct site_state {
	uint32_t first_record; // index + 1 in the capture's sites; 0 between captures
};

/* One part: what all records of one site in one capture hold together. */
struct part {
	uint64_t allocated_bytes;
	uint64_t allocated_count;
	uint64_t freed_bytes;
	uint64_t freed_count;
	uint64_t released_bytes; // since the program began to exit; below 0 modulo 2^64
	uint64_t peak_bytes;     // modulo 2^48 until all are added
	struct generation_sums generations;

	uint64_t live_bytes;
	uint64_t live_count;
	struct generation_counts counts;
	uint64_t samples; // as in struct model_site
};

static uint64_t
difference(uint64_t allocated, uint64_t freed, uint64_t *impossible)
{
	if (freed <= allocated)
		return allocated - freed;
	(*impossible)++;
	return 0;
}

/* Adds up the records of one site, from `record` on. */
static void
read_part(struct capture *capture, const struct domain_rows *rows, uint32_t record, const uint32_t *next,
          struct part *part)
{
	memset(part, 0, sizeof(*part));
	part->generations.first_generation = UINT8_MAX;
	for (; record != 0; record = next[record - 1]) {
		const struct kmem_site *stored = capture_site(capture, record - 1);

		part->allocated_bytes += COPY_OF(stored->allocated_bytes);
		part->allocated_count += COPY_OF(stored->allocated_count);
		part->generations.allocated_count += COPY_OF(stored->allocated_count);
		part->freed_bytes += COPY_OF(stored->freed_bytes);
		part->freed_count += COPY_OF(stored->freed_count);
		part->peak_bytes += kmem_site_peak_bytes(rows->sums[stored->domain].peak, stored->peak);
		if (capture->released_bytes != NULL)
			part->released_bytes += (uint64_t)capture->released_bytes[record - 1];
		if (stored->first_generation < part->generations.first_generation)
			part->generations.first_generation = stored->first_generation;
		const struct kmem_generations *block = capture_generations(capture, record - 1);

		model_generations_add(capture, block, &part->generations);
		part->generations.record_count++;
		part->generations.has_record[stored->first_generation] |= COPY_OF(stored->allocated_count) != 0;
		if (block == NULL)
			part->generations.alive_by_record[stored->first_generation] += (int64_t)(COPY_OF(stored->allocated_count) -
			                                                                         COPY_OF(stored->freed_count));
	}
	part->peak_bytes = model_signed_bytes(part->peak_bytes);
}

/* No site holds more than its domain ever did. */
static unsigned
limit_part(struct part *part, uint64_t most_bytes)
{
	bool is_live_beyond = part->live_bytes > most_bytes;
	bool is_peak_beyond = part->peak_bytes > most_bytes;

	if (is_live_beyond)
		part->live_bytes = 0;
	if (is_peak_beyond)
		part->peak_bytes = part->live_bytes;
	return (unsigned)is_live_beyond + (unsigned)is_peak_beyond;
}

/* For how many bytes a sample of that domain stands; 0 = its records are no samples. Of the heap that depends on the block: heap_samples.c. */
static uint64_t
sample_bytes_of(const struct capture *capture, unsigned domain, const struct part *part)
{
	uint64_t heap_bytes = capture_heap_sample_bytes(capture);

	if (domain != KMEM_DOMAIN_HEAP_SAMPLE || heap_bytes == 0)
		return domain == KMEM_DOMAIN_PYTHON_OBJECT ? capture_arenas_sample_bytes(capture) : 0;
	return heap_bytes + amount_lesser(part->allocated_bytes / (part->allocated_count ?: 1), heap_bytes) / 2;
}

/* Generations are counted of samples, not of the blocks that these stand for: so the counts become those of samples. */
static void
count_samples(struct part *part, uint64_t sample_bytes)
{
	part->samples = part->live_bytes / sample_bytes;
	part->generations.allocated_count = part->allocated_bytes / sample_bytes;
}

static struct model_site *
find_or_add(struct build *build, const struct build_stack *stack, uint32_t domain)
{
	struct site_key_pair key = { stack, domain };
	struct build_site *found;

	HASH_FIND(hh, build->site_index, &key, sizeof(key), found);
	if (found != NULL)
		return &build->sites[found->index];

	build->sites = memory_grown(build->sites, build->site_count, sizeof(*build->sites));
	build->site_states = memory_grown(build->site_states, build->site_count, sizeof(*build->site_states));
	build->site_states[build->site_count] = (struct site_state){ 0 };

	struct model_site *site = &build->sites[build->site_count];

	*site = (struct model_site){
		.domain = domain,
		.stack_flags = (uint16_t)stack->flags,
		.frame_count = stack->frame_count,
		.frames = stack->frames,
		.omitted = stack->omitted,
		.frames_before_gap = stack->frames_before_gap,
		.where = stack->where,
		.import = stack->import,
	};
	for (uint32_t i = 0; i < site->frame_count; i++) {
		if (site->frames[i] == site->where) {
			site->where_relation = model_relation_of(site, i);
			break;
		}
	}
	found = memory_zeroed(1, sizeof(*found));
	found->key = key;
	found->index = build->site_count++;
	HASH_ADD(hh, build->site_index, key, sizeof(found->key), found);
	return site;
}

static void
add_part(struct build *build, struct model_site *site, const struct part *part)
{
	if (site->process_count++ == 0 || part->live_bytes > site->most_live_bytes) {
		site->most_live_bytes = part->live_bytes;
		site->process = (unsigned)(build->process_count - 1); // the capture's process was added before
		site->generations_alive = part->counts.alive;
		site->generations_total = part->counts.total;
		site->recent_alive = part->counts.recent_alive;
		site->recent_total = part->counts.recent_total;
		site->volume_bytes = part->counts.volume_bytes;
		site->has_paused = part->counts.has_paused;
		site->born_generations = part->counts.born;
		site->span_bytes = part->counts.span_bytes;
		memcpy(site->quarters, part->counts.quarters, sizeof(site->quarters));
		site->survivors = part->counts.survivors;
		site->ticks = part->counts.ticks;
		site->steps = part->counts.steps;
		site->first_ms = part->counts.first_ms;
	}
	site->samples += part->samples;
	site->live_bytes += part->live_bytes;
	site->live_count += part->live_count;
	site->released_bytes += (int64_t)part->released_bytes > 0 ? part->released_bytes : 0;
	site->peak_bytes += part->peak_bytes;
	site->allocated_bytes += part->allocated_bytes;
	site->allocated_count += part->allocated_count;
	site->bytes_per_generation = site->generations_alive != 0 ? site->live_bytes / site->generations_alive : 0;
}

/* A site that was never given anything still tells where a refused request came from. */
static bool
is_refused(const struct capture *capture, size_t index)
{
	return ANY(request, capture->header->failed, KMEM_FAILED_MAX,
	           COPY_OF(request->sequence) != 0 && request->site == index + 1);
}

static void
note_refused(struct build *build, const struct capture *capture, size_t index, const struct model_site *site)
{
	for (unsigned i = 0; i < KMEM_FAILED_MAX; i++) {
		if (capture->header->failed[i].site == index + 1)
			build->refused_arenas[i] = (uint32_t)(site - build->sites) + 1;
	}
}

/* For each record of the capture the index of its site in build.sites + 1, 0 = left out. */
static uint32_t *
find_sites(struct build *build, struct capture *capture, const struct domain_rows *rows)
{
	struct process_stacks *stacks = process_stacks_new(build, capture);
	size_t count = capture_site_count(capture);
	uint32_t *sites = memory_zeroed(count, sizeof(*sites));
	uint64_t homeless = 0;

	for (size_t i = 0; i < count && capture_list(&capture->header->cells) != 0; i++)
		(void)process_stacks_find(stacks, capture_site(capture, i), i);
	process_stacks_settle_cells(stacks);
	memset(build->refused_arenas, 0, sizeof(build->refused_arenas));
	for (size_t i = 0; i < count; i++) {
		const struct kmem_site *stored = capture_site(capture, i);
		uint32_t domain = stored->domain < KMEM_DOMAINS_MAX ? rows->index[stored->domain] : DOMAIN_NONE;
		bool is_used = COPY_OF(stored->allocated_count) != 0 || COPY_OF(stored->freed_count) != 0 ||
		               COPY_OF(stored->freed_bytes) != 0 || // parts of others' mappings
		               (capture->released_bytes != NULL && capture->released_bytes[i] != 0);

		progress_show("reading call sites", i, count);
		if (!is_used && !is_refused(capture, i)) // reserved, never used
			continue;
		if (domain == DOMAIN_NONE) {
			homeless++;
			continue;
		}
		bool is_rest = stored->domain == KMEM_DOMAIN_PYTHON_ARENA && capture_arenas_sample_bytes(capture) != 0;
		const struct build_stack *stack = is_rest ? process_stacks_rest_of_arenas(stacks)
		                                          : process_stacks_find(stacks, stored, i);

		sites[i] = (uint32_t)(find_or_add(build, stack, domain) - build->sites) + 1;
		/* What is left of arenas has no line, but a refused request for one has. */
		if (is_rest && is_refused(capture, i))
			note_refused(build, capture, i, find_or_add(build, process_stacks_find(stacks, stored, i), domain));
	}
	if (homeless != 0)
		capture_damaged(capture, "section \"sites\": %llu site%s without a known domain: left out",
		                (unsigned long long)homeless, UNITS_S(homeless));
	model_add_releases(build, capture, stacks, sites);
	process_stacks_free(stacks);
	return sites;
}

uint32_t *
model_add_sites(struct build *build, struct capture *capture, const struct domain_rows *rows)
{
	uint32_t *sites = find_sites(build, capture, rows);
	size_t count = capture_site_count(capture);
	OWNED uint32_t *next = memory_zeroed(count, sizeof(*next)); // index + 1 of the next record of the same site
	struct model_process *process = &build->processes[build->process_count - 1];
	uint64_t clock = COPY_OF(capture->header->generation_clock);
	uint64_t sample_bytes = capture_arenas_sample_bytes(capture);
	uint64_t impossible = 0;
	uint64_t unlikely = 0;

	for (size_t i = count; i-- > 0;) {
		if (sites[i] == 0)
			continue;
		next[i] = build->site_states[sites[i] - 1].first_record;
		build->site_states[sites[i] - 1].first_record = (uint32_t)i + 1;
	}
	for (size_t i = 0; i < count; i++) {
		if (sites[i] != 0 && capture_site(capture, i)->slot > process->thread_count)
			process->thread_count = capture_site(capture, i)->slot;
	}
	for (size_t i = 0; i < count; i++) {
		struct part part;

		if (sites[i] == 0 || build->site_states[sites[i] - 1].first_record != i + 1)
			continue;
		build->site_states[sites[i] - 1].first_record = 0;
		read_part(capture, rows, (uint32_t)i + 1, next, &part);
		part.live_bytes = difference(part.allocated_bytes, part.freed_bytes, &impossible);
		part.live_count = difference(part.allocated_count, part.freed_count, &impossible);
		if (capture->is_salvage)
			unlikely += limit_part(&part, kmem_domain_peak_bytes(rows->sums[capture_site(capture, i)->domain].peak));
		unsigned domain = capture_site(capture, i)->domain;
		uint64_t of_domain_bytes = sample_bytes_of(capture, domain, &part);
		bool is_sampled = of_domain_bytes != 0;

		if (is_sampled)
			count_samples(&part, of_domain_bytes);
		part.counts = model_generations_count(&part.generations, capture->header, clock,
		                                      is_sampled ? part.samples : part.live_count);
		unlikely += part.counts.unlikely;
		build->sites[sites[i] - 1].is_rest_of_arenas = domain == KMEM_DOMAIN_PYTHON_ARENA && sample_bytes != 0;
		add_part(build, &build->sites[sites[i] - 1], &part);
	}
	if (impossible != 0)
		capture_damaged(capture, "section \"sites\": %llu counter%s released more than was allocated: treated as 0",
		                (unsigned long long)impossible, UNITS_S(impossible));
	/* A snapshot may have no generations: they are then those of the end, and more. */
	if (unlikely != 0 && capture_is_final(capture) && !capture->is_rewound)
		capture_damaged(capture, "section \"generations\": live blocks: %llu count%s cannot be right",
		                (unsigned long long)unlikely, UNITS_S(unlikely));
	return sites;
}

void
model_sites_free(struct build *build)
{
	HASH_FREE(build->site_index, free);
	free(build->site_states);
}
