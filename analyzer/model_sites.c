/*
 * model_sites.c - what does each call site hold, all processes together?
 *
 * Sites with the same readable stack in the same domain are one: the threads of a process, a pool of workers, a cell that was
 * run again. First the records of one process are put together, since each thread has its own and books there what it released
 * of others: only their sum says what is held. Then counters of processes add up. Generations of processes do not, since every
 * process has a clock of its own: those of the part that holds most are shown.
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

#define REQUESTS_UNDER_WAY 64 // a birth is counted by generation first; one for each thread

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
	uint32_t first_record;        // index + 1 in the capture's sites; 0 between captures
};

/* One part: what all records of one site in one capture hold together. */
struct part {
	uint64_t allocated_bytes;
	uint64_t allocated_count;
	uint64_t freed_bytes;
	uint64_t freed_count;
	uint64_t peak_bytes;          // modulo 2^48 until all are added
	uint32_t birth_generations;   // the most of any record; 0 = nobody counted
	uint32_t birth_clock;         // the latest
	uint8_t first_epoch;          // the first
	int64_t born_alive[KMEM_GENERATION_BUCKETS];

	uint64_t live_bytes;
	uint64_t live_count;
	uint32_t generations_alive;
	uint32_t generations_total;
	uint32_t recent_alive;
	uint32_t recent_total;
	uint64_t volume_bytes;
};

static uint64_t
difference(uint64_t allocated, uint64_t freed, uint64_t *impossible)
{
	if (freed <= allocated)
		return allocated - freed;
	(*impossible)++;
	return 0;
}

/* Ticks of volume at which the clock shows this: the inverse of kmem_clock_at(). A damaged clock may show anything. */
static uint64_t
ticks_at(uint64_t clock)
{
	clock = clock < 255 ? clock : 255;
	return clock < 9 ? clock - (clock != 0) : ((clock - 9) % 8 + 8) << (clock - 9) / 8;
}

/*
 * Does it still allocate? A loop that leaks in every round has done so within the latest round. Since a data set was loaded, the
 * program may have allocated as much again, and nothing there: a quarter of the volume of all its active life is enough to tell.
 * Volume, not the clock: that one runs eight times per doubling, and would wait for several times the volume.
 */
static bool
is_active(uint64_t clock, const struct part *part)
{
	uint64_t first = ticks_at(part->first_epoch);
	uint64_t last = ticks_at(part->birth_clock + 1);
	uint64_t now = ticks_at(clock);

	return now <= last || now - last <= (last - first) / 4 + 1;
}

/*
 * The generations of a site, and those of them that still have live blocks. Blocks that are older than the counters make one
 * more, in front. Of a site that does not allocate any more none is recent, and all ticks since its first one are its generations:
 * else it would look like one that accumulates.
 */
static void
count_generations(uint64_t clock, struct part *part, uint64_t *unlikely)
{
	uint64_t age = clock >= part->first_epoch ? clock - part->first_epoch : 0;
	uint64_t counted = 0;

	part->volume_bytes = age != 0 ? (ticks_at(clock + 1) - ticks_at(part->first_epoch)) << KMEM_TICK_BYTES_LOG2 : 0;
	if (part->birth_generations == 0) { // blocks of one generation only, or nobody could count them
		part->generations_total = (uint32_t)(age < KMEM_GENERATION_BUCKETS ? age : KMEM_GENERATION_BUCKETS - 1) + 1;
		part->generations_alive = part->live_count != 0;
		part->recent_total = (part->generations_total + 3) / 4;
		part->recent_alive = part->generations_total <= part->recent_total ? part->generations_alive : 0;
		return;
	}

	bool is_recent = is_active(clock, part);

	part->generations_total = part->birth_generations + 1;
	if (!is_recent && age + 1 > part->generations_total)
		part->generations_total = (uint32_t)(age < 255 ? age : 255) + 1;
	part->recent_total = (part->generations_total + 3) / 4;
	for (uint32_t i = 0; i < part->birth_generations; i++) {
		uint64_t live = 0;

		*unlikely += part->born_alive[i] < 0;
		if (part->born_alive[i] > 0) // less: a release that was seen before its birth, while the program runs
			live = (uint64_t)part->born_alive[i];
		counted += live;
		part->generations_alive += live != 0;
		part->recent_alive += is_recent && live != 0 && i + 1 >= part->generations_total - part->recent_total;
	}
	part->generations_alive += part->live_count > counted;
	*unlikely += counted > part->live_count + REQUESTS_UNDER_WAY;
}

static void
add_generations(const struct kmem_generations *block, struct part *part)
{
	uint32_t births = block != NULL ? COPY_OF(block->births) : 0;
	uint32_t count = births & 0xffff;

	if (block == NULL || count > KMEM_GENERATION_BUCKETS)
		return;
	if (count > part->birth_generations)
		part->birth_generations = count;
	if (births >> 16 > part->birth_clock)
		part->birth_clock = births >> 16;
	for (uint32_t i = 0; i < KMEM_GENERATION_BUCKETS; i++) // a thread may only have released what others made
		part->born_alive[i] += (int32_t)COPY_OF(block->live_count[i]);
}

/* Puts together the records of one site, from `record` on. */
static void
read_part(struct capture *capture, const struct domain_rows *rows, uint32_t record, const uint32_t *next, struct part *part)
{
	memset(part, 0, sizeof(*part));
	part->first_epoch = UINT8_MAX;
	for (; record != 0; record = next[record - 1]) {
		const struct kmem_site *stored = capture_site(capture, record - 1);

		part->allocated_bytes += COPY_OF(stored->allocated_bytes);
		part->allocated_count += COPY_OF(stored->allocated_count);
		part->freed_bytes += COPY_OF(stored->freed_bytes);
		part->freed_count += COPY_OF(stored->freed_count);
		part->peak_bytes += kmem_site_peak_bytes(rows->sums[stored->domain].peak, stored->peak);
		if (stored->first_epoch < part->first_epoch)
			part->first_epoch = stored->first_epoch;
		add_generations(capture_generations(capture, record - 1), part);
	}
	part->peak_bytes = model_signed_bytes(part->peak_bytes);
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
	struct site_state *state = &build->site_states[site - build->sites];

	if (site->process_count++ == 0 || part->live_bytes > state->most_live_bytes) {
		state->most_live_bytes = part->live_bytes;
		site->process = (unsigned)(build->process_count - 1); // the capture's process was added before
		site->generations_alive = part->generations_alive;
		site->generations_total = part->generations_total;
		site->recent_alive = part->recent_alive;
		site->recent_total = part->recent_total;
		site->volume_bytes = part->volume_bytes;
	}
	site->live_bytes += part->live_bytes;
	site->live_count += part->live_count;
	site->peak_bytes += part->peak_bytes;
	site->allocated_bytes += part->allocated_bytes;
	site->allocated_count += part->allocated_count;
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

/* For each record of the capture the index of its site in build.sites + 1, 0 = left out. */
static uint32_t *
find_sites(struct build *build, struct capture *capture, const struct domain_rows *rows)
{
	struct process_stacks *stacks = process_stacks_new(build, capture);
	size_t count = capture_site_count(capture);
	uint32_t *sites = memory_zeroed(count, sizeof(*sites));
	uint64_t homeless = 0;

	for (size_t i = 0; i < count; i++) {
		const struct kmem_site *stored = capture_site(capture, i);
		uint32_t domain = stored->domain < KMEM_DOMAINS_MAX ? rows->index[stored->domain] : DOMAIN_NONE;
		bool is_used = COPY_OF(stored->allocated_count) != 0 || COPY_OF(stored->freed_count) != 0 ||
		               COPY_OF(stored->freed_bytes) != 0; // the last: parts of others' mappings

		if (!is_used && !is_refused(capture, i)) // reserved, never used
			continue;
		if (domain == DOMAIN_NONE)
			homeless++;
		else
			sites[i] = (uint32_t)(find_or_add(build, process_stacks_find(stacks, stored, i), domain) - build->sites) + 1;
	}
	if (homeless != 0)
		capture_damaged(capture, "section \"sites\": %llu sites belong to no domain of the file and are left out",
		                (unsigned long long)homeless);
	process_stacks_free(stacks);
	return sites;
}

uint32_t *
model_add_sites(struct build *build, struct capture *capture, const struct domain_rows *rows)
{
	uint32_t *sites = find_sites(build, capture, rows);
	size_t count = capture_site_count(capture);
	uint32_t *next = memory_zeroed(count, sizeof(*next)); // index + 1 of the next record of the same site
	struct model_process *process = &build->processes[build->process_count - 1];
	uint64_t clock = COPY_OF(capture->header->generation_clock);
	uint64_t impossible = 0;
	uint64_t unlikely = 0;

	for (size_t i = count; i-- > 0;) {
		if (sites[i] == 0)
			continue;
		next[i] = build->site_states[sites[i] - 1].first_record;
		build->site_states[sites[i] - 1].first_record = (uint32_t)i + 1;
	}
	for (size_t i = 0; i < count; i++) {
		struct part part;

		if (sites[i] == 0 || build->site_states[sites[i] - 1].first_record != i + 1)
			continue;
		build->site_states[sites[i] - 1].first_record = 0;
		read_part(capture, rows, (uint32_t)i + 1, next, &part);
		part.live_bytes = difference(part.allocated_bytes, part.freed_bytes, &impossible);
		part.live_count = difference(part.allocated_count, part.freed_count, &impossible);
		count_generations(clock, &part, &unlikely);
		add_part(build, &build->sites[sites[i] - 1], &part);
		process->site_count++;
	}
	if (impossible != 0)
		capture_damaged(capture, "section \"sites\": %llu counters say that more was released than given out; taken as 0",
		                (unsigned long long)impossible);
	if (unlikely != 0 && capture_is_final(capture))
		capture_damaged(capture, "section \"generations\": %llu counts of live blocks are more than there are, or less than none",
		                (unsigned long long)unlikely);
	free(next);
	return sites;
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
