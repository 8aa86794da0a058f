/*
 * model_sites.c - what does each call site hold, all processes together?
 *
 * Sites with the same readable stack in the same domain are one: a pool of workers, a cell that was run again. Counters
 * add up. Generations do not, since every process has a clock of its own: those of the part that holds most are shown.
 *
 * Called by   model.c.
 * Safe from   one thread.
 * When failing  a site whose domain is unknown is left out and told.
 */
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "kmem_words.h"
#include "memory.h"
#include "model_build.h"

/* relaxed: a private copy that nobody changes */
#define COPY_OF(field) atomic_load_explicit(&(field), memory_order_relaxed)

struct site_key_pair {
	const struct build_stack *stack;
	uint64_t domain;
};

struct build_site {
	struct site_key_pair key;
	size_t index;                 // in build.sites
	UT_hash_handle hh;
};

/* Beside each model_site while sites are merged. */
struct site_state {
	uint64_t most_live_bytes;     // of one part
	size_t last_process;          // index + 1 of the one that was counted last
};

/* One part: what one site of one capture holds. */
struct part {
	uint64_t live_bytes;
	uint64_t live_count;
	uint32_t generations_alive;
	uint32_t generations_total;
	uint32_t recent_alive;
	uint32_t recent_total;
};

static uint64_t
difference(uint64_t allocated, uint64_t freed, uint64_t *impossible)
{
	if (freed <= allocated)
		return allocated - freed;
	(*impossible)++;
	return 0;
}

/*
 * The generations of a site, and those of them that still have live blocks. Blocks that are older than the counters make one
 * more, in front. A site that has not allocated in the latest quarter of its life does not accumulate any more: none of its
 * generations is recent.
 */
static void
count_generations(const struct kmem_generations *block, uint8_t first_epoch, uint64_t clock, struct part *part)
{
	uint64_t age = clock >= first_epoch ? clock - first_epoch : 0;
	uint32_t births = block != NULL ? COPY_OF(block->births) : 0;
	uint32_t count = births & 0xffff;
	uint64_t counted = 0;

	if (count == 0 || count > KMEM_GENERATION_BUCKETS) { // blocks of one generation only, or nobody could count them
		part->generations_total = (uint32_t)(age < KMEM_GENERATION_BUCKETS ? age : KMEM_GENERATION_BUCKETS - 1) + 1;
		part->generations_alive = part->live_count != 0;
		part->recent_total = (part->generations_total + 3) / 4;
		part->recent_alive = part->generations_total <= part->recent_total ? part->generations_alive : 0;
		return;
	}

	bool is_recent = clock <= (births >> 16) + age / 4 + 1;

	part->generations_total = count + 1;
	part->recent_total = (part->generations_total + 3) / 4;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t live = COPY_OF(block->live_count[i]);

		if (live > INT32_MAX) // a release that was seen before its birth, while the program runs
			live = 0;
		counted += live;
		part->generations_alive += live != 0;
		part->recent_alive += is_recent && live != 0 && i + 1 >= part->generations_total - part->recent_total;
	}
	part->generations_alive += part->live_count > counted;
}

static struct model_site *
find_or_add(struct build *build, const struct build_stack *stack, uint32_t domain)
{
	struct site_key_pair key = { stack, domain };
	struct build_site *found;
	struct model_site *site;

	HASH_FIND(hh, build->site_index, &key, sizeof(key), found);
	if (found != NULL)
		return &build->sites[found->index];

	build->sites = memory_grown(build->sites, &build->site_room, build->site_count + 1, sizeof(*build->sites));
	build->site_states = memory_grown(build->site_states, &build->site_state_room, build->site_count + 1,
	                                  sizeof(*build->site_states));
	build->site_states[build->site_count] = (struct site_state){ 0 };
	site = &build->sites[build->site_count];
	*site = (struct model_site){
		.domain = domain,
		.has_stack = stack->frame_count != 0,
		.stack_flags = (uint16_t)stack->flags,
		.frame_count = stack->frame_count,
		.frames = stack->frames,
		.omitted = stack->omitted,
		.frames_before_gap = stack->frames_before_gap,
		.where = stack->where,
	};
	found = memory_zeroed(1, sizeof(*found));
	found->key = key;
	found->index = build->site_count++;
	HASH_ADD(hh, build->site_index, key, sizeof(found->key), found);
	return site;
}

static void
add_part(struct build *build, struct model_site *site, const struct part *part, const struct kmem_site *stored,
         const struct kmem_domain_row *row)
{
	struct site_state *state = &build->site_states[site - build->sites];
	size_t process = build->process_count; // index + 1 of the capture's process, which was added before

	if (state->last_process != process)
		site->process_count++;
	if (state->last_process == 0 || part->live_bytes > state->most_live_bytes) {
		state->most_live_bytes = part->live_bytes;
		site->process = (unsigned)(process - 1);
		site->generations_alive = part->generations_alive;
		site->generations_total = part->generations_total;
		site->recent_alive = part->recent_alive;
		site->recent_total = part->recent_total;
	}
	state->last_process = process;
	site->live_bytes += part->live_bytes;
	site->live_count += part->live_count;
	site->peak_bytes += kmem_site_peak_bytes(row->peak, stored->peak);
	site->allocated_bytes += COPY_OF(stored->allocated_bytes);
	site->allocated_count += COPY_OF(stored->allocated_count);
	site->bytes_per_epoch = site->generations_alive != 0 ? site->live_bytes / site->generations_alive : 0;
}

/* A site that was never given anything still tells where a refused request came from. */
static bool
is_refused(const struct capture *capture, size_t index)
{
	for (unsigned i = 0; i < KMEM_FAILED_MAX; i++) {
		if (COPY_OF(capture->header->failed[i].sequence) != 0 && capture->header->failed[i].site == index + 1)
			return true;
	}
	return false;
}

uint32_t *
model_add_sites(struct build *build, struct capture *capture, const struct domain_rows *rows)
{
	struct process_stacks *stacks = process_stacks_new(build, capture);
	size_t count = capture_site_count(capture);
	uint64_t clock = COPY_OF(capture->header->generation_clock);
	uint32_t *merged = memory_zeroed(count, sizeof(*merged));
	uint64_t impossible = 0;
	uint64_t homeless = 0;
	uint32_t *site_total = &build->processes[build->process_count - 1].site_count;

	for (size_t i = 0; i < count; i++) {
		const struct kmem_site *stored = capture_site(capture, i);
		uint32_t domain = stored->domain < KMEM_DOMAINS_MAX ? rows->index[stored->domain] : DOMAIN_NONE;
		struct part part = { 0 };
		struct model_site *site;

		if (COPY_OF(stored->allocated_count) == 0 && !is_refused(capture, i)) // reserved, never used
			continue;
		if (domain == DOMAIN_NONE) {
			homeless++;
			continue;
		}
		part.live_bytes = difference(COPY_OF(stored->allocated_bytes), COPY_OF(stored->freed_bytes), &impossible);
		part.live_count = difference(COPY_OF(stored->allocated_count), COPY_OF(stored->freed_count), &impossible);
		count_generations(capture_generations(capture, i), stored->first_epoch, clock, &part);
		site = find_or_add(build, process_stacks_find(stacks, stored, i), domain);
		add_part(build, site, &part, stored, capture_domain(capture, stored->domain));
		merged[i] = (uint32_t)(site - build->sites) + 1;
		(*site_total)++;
	}
	if (homeless != 0)
		capture_damaged(capture, "section \"sites\": %llu sites belong to no domain of the file and are left out",
		                (unsigned long long)homeless);
	if (impossible != 0)
		capture_damaged(capture, "section \"sites\": %llu counters say that more was released than given out; taken as 0",
		                (unsigned long long)impossible);
	process_stacks_free(stacks);
	return merged;
}

void
model_sites_free(struct build *build)
{
	struct build_site *site;
	struct build_site *next;

	HASH_ITER(hh, build->site_index, site, next) {
		HASH_DEL(build->site_index, site);
		free(site);
	}
	free(build->site_states);
}
