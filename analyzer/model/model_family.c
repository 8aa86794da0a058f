/*
 * model_family.c - what do the processes of a session have to do with each other?
 *
 * A forked child names the largest records of its parent's capture: here they become sites. Images that were replaced by an exec that
 * nobody saw are marked so. Sums over processes count processes that ran one after the other as if they had run at the same time: the
 * highest sum over those that did run at the same time stands beside them.
 *
 * When failing  a record that the parent's capture does not have is left out.
 */
#include <stdlib.h>
#include <string.h>

#include "base/amount.h"
#include "base/memory.h"
#include "base/order.h"
#include "capture/capture_copy.h"
#include "kmem_words.h"
#include "model/model_build.h"

#define COPIED_BYTES (UINT64_C(4) << 20) // the recorder does not look for less

/* What is known of one process while the model is made. */
struct build_member {
	uint32_t *sites; // of its capture: index in build.sites + 1
	size_t site_count;
	uint32_t inherited_count;
	struct kmem_inherited_site inherited[KMEM_INHERITED_SITES_MAX];
	uint32_t domains[KMEM_DOMAINS_MAX]; // as struct domain_rows
	uint64_t peak_bytes[KMEM_DOMAINS_MAX];
	uint64_t live_bytes[KMEM_DOMAINS_MAX];
};

/* Returns true for 0, too: nothing was written, or it is being written. */
static bool
agrees(struct capture *capture, const char *what, uint32_t wanted, uint32_t found)
{
	if (wanted != 0 && wanted != found)
		capture_damaged(capture, "section \"head\": %s: checksum wanted 0x%08x, found 0x%08x: left out", what, wanted,
		                found);
	return wanted != 0 && wanted == found;
}

void
model_family_add(struct build *build, struct capture *capture, const struct domain_rows *rows, uint32_t *sites)
{
	static const unsigned private_domains[] = { KMEM_DOMAIN_HEAP, KMEM_DOMAIN_MMAP, KMEM_DOMAIN_PYTHON_ARENA,
		                                        KMEM_DOMAIN_PYTHON_OBJECT, KMEM_DOMAIN_HEAP_SAMPLE };
	const struct kmem_inherited *stored = &capture->header->inherited;
	struct model_process *process = &build->processes[build->process_count - 1];

	struct build_member *member = MEMORY_AT(build->members, build->member_room, build->process_count - 1);

	member->sites = sites;
	member->site_count = capture_site_count(capture);
	memcpy(member->domains, rows->index, sizeof(member->domains));
	for (unsigned i = 0; i < KMEM_DOMAINS_MAX; i++) {
		const struct domain_sum *sum = &rows->sums[i];

		member->peak_bytes[i] = kmem_domain_peak_bytes(sum->peak);
		member->live_bytes[i] = sum->allocated_bytes > sum->freed_bytes ? sum->allocated_bytes - sum->freed_bytes : 0;
	}
	if (capture->identity->is_forked == 0)
		return;
	for (size_t i = 0; i < sizeof(private_domains) / sizeof(private_domains[0]); i++)
		process->inherited_bytes += capture_domain(capture, private_domains[i])->inherited_bytes;
	process->inherited_heap_bytes = capture_domain(capture, KMEM_DOMAIN_HEAP)->inherited_bytes +
	                                capture_domain(capture, KMEM_DOMAIN_HEAP_SAMPLE)->inherited_bytes;
	if (agrees(capture, "what it copied", COPY_OF(stored->figures_checksum), kmem_inherited_figures(stored))) {
		process->copied_bytes = COPY_OF(stored->copied_bytes);
		process->private_dirty_bytes = COPY_OF(stored->private_dirty_bytes);
		process->faulted_bytes = COPY_OF(stored->faulted_bytes);
	}
	if (agrees(capture, "what it inherited", stored->sites_checksum, kmem_inherited_sites(stored)) &&
	    stored->site_count <= KMEM_INHERITED_SITES_MAX) {
		member->inherited_count = stored->site_count;
		memcpy(member->inherited, stored->sites, member->inherited_count * sizeof(member->inherited[0]));
	}
	for (uint32_t i = 0; i < member->inherited_count; i++) {
		uint32_t twice = COPY_OF(member->inherited[i].copied_samples);

		if (!kmem_twice_16_agrees(twice)) {
			capture_damaged(capture,
			                "section \"head\": what it copied of record %u: 0x%08x is not a doubled number: left out",
			                member->inherited[i].site, twice);
			twice = 0;
		}
		atomic_store_explicit(&member->inherited[i].copied_samples, twice & UINT16_MAX, memory_order_relaxed);
	}
}

/* The site of the model that the parent's record became; NULL = none. */
static const struct model_site *
site_of(const struct build *build, const struct build_member *parent, uint32_t record)
{
	if (record == 0 || record > parent->site_count || parent->sites[record - 1] == 0)
		return NULL;
	return &build->sites[parent->sites[record - 1] - 1];
}

ORDER_OF(compare_built, struct model_built, order_numbers(b->live_bytes, a->live_bytes))

/* Subtracts the objects that are known by line from what the arenas held then. */
static void
split_arenas(const struct build *build, struct model_built *built, size_t count)
{
	uint64_t objects_bytes = 0;

	for (size_t i = 0; i < count; i++) // what is left of their samples at the end says nothing of then
		objects_bytes += build->domains[built[i].site->domain].id.kind == DOMAIN_PYTHON_OBJECT ? built[i].live_bytes
		                                                                                       : 0;
	for (size_t i = 0; i < count; i++) {
		if (built[i].site->is_rest_of_arenas)
			built[i].live_bytes -= built[i].live_bytes < objects_bytes ? built[i].live_bytes : objects_bytes;
	}
	SORT(built, count, compare_built);
}

/* A sample lies among other objects, any of which may have been written to: all lines together get no more than was copied. */
static void
estimate_copies(const struct model_process *process, struct model_built *built, size_t count, uint64_t sample_bytes)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < count; i++) {
		if (built[i].copied_bytes > built[i].live_bytes)
			built[i].copied_bytes = built[i].live_bytes;
		sum += built[i].copied_bytes;
	}

	double share = sum > process->copied_bytes ? (double)process->copied_bytes / (double)sum : 1;

	for (size_t i = 0; i < count; i++) {
		uint64_t error_bytes = model_estimate_error(sample_bytes, built[i].copied_bytes);

		built[i].copied_bytes = (uint64_t)((double)built[i].copied_bytes * share);
		built[i].copied_error_bytes = (uint64_t)((double)error_bytes * share);
	}
}

/* Records of several threads are one site. */
static void
resolve(struct build *build, struct model_process *process, const struct build_member *member)
{
	uint64_t sample_bytes = amount_greater(KMEM_PYTHON_SAMPLE_BYTES, build->heap_sample_bytes);
	const struct build_member *parent;
	struct model_built *built;

	if (process->parent < 0 || member->inherited_count == 0)
		return;
	parent = &build->members[process->parent];
	built = text_pool_room(build->pool, member->inherited_count * sizeof(*built));
	for (uint32_t i = 0; i < member->inherited_count; i++) {
		const struct model_site *site = site_of(build, parent, member->inherited[i].site);
		size_t place = 0;

		while (place < process->built_count && built[place].site != site)
			place++;
		if (site == NULL)
			continue;
		if (place == process->built_count)
			built[process->built_count++] = (struct model_built){ .site = site };
		built[place].live_bytes += member->inherited[i].live_bytes;
		built[place].copied_bytes += COPY_OF(member->inherited[i].copied_samples) * sample_bytes;
	}
	estimate_copies(process, built, process->built_count, sample_bytes);
	split_arenas(build, built, process->built_count);
	process->built = built;
}

/*
 * Another image of the same process began later, and not by fork: then the earlier one has ended. Where no mark says so, the exec was a
 * raw system call, or the mark was lost.
 */
static void
mark_replaced(struct build *build)
{
	for (size_t i = 0; i < build->process_count; i++) {
		struct model_process *process = &build->processes[i];

		for (size_t j = i + 1;
		     j < build->process_count && process->state != KMEM_STATE_CLEAN_EXIT && process->ended_monotonic_ns == 0;
		     j++) { // in order of start
			const struct kmem_identity *later = build->processes[j].identity;

			if (later->pid == process->identity->pid && later->start_ticks == process->identity->start_ticks &&
			    later->is_forked == 0 && strcmp(later->boot_id, process->identity->boot_id) == 0) {
				process->state = KMEM_STATE_EXEC_REPLACED;
				process->ended_monotonic_ns = later->start_monotonic_ns;
				process->is_alive = false;
			}
		}
	}
}

bool
model_is_copied_known(const struct model_process *process)
{
	return process->inherited_bytes == 0 || process->private_dirty_bytes != 0 ||
	       (process->state != KMEM_STATE_RUNNING && process->faulted_bytes != 0 &&
	        process->faulted_bytes < process->peak_bytes + COPIED_BYTES);
}

uint64_t
model_together(const struct model_process *processes, size_t count, const uint64_t *values)
{
	uint64_t highest = 0;

	for (size_t i = 0; i < count; i++) { // a sum is highest when somebody has just begun
		uint64_t at_ns = processes[i].identity->start_monotonic_ns;
		uint64_t sum = 0;

		for (size_t j = 0; values[i] != 0 && j < count; j++) {
			if (processes[j].identity->start_monotonic_ns <= at_ns &&
			    (model_ended_ns(&processes[j]) ?: UINT64_MAX) > at_ns)
				sum += values[j];
		}
		if (sum > highest)
			highest = sum;
	}
	return highest;
}

static void
sum_together(struct build *build)
{
	OWNED uint64_t *peaks = memory_zeroed(build->process_count, sizeof(*peaks));
	OWNED uint64_t *lives = memory_zeroed(build->process_count, sizeof(*lives));

	for (size_t domain = 0; domain < build->domain_count; domain++) {
		for (size_t i = 0; i < build->process_count; i++) {
			const struct build_member *member = &build->members[i];

			peaks[i] = lives[i] = 0;
			for (unsigned row = 0; row < KMEM_DOMAINS_MAX; row++) {
				if (member->domains[row] == domain) {
					peaks[i] = member->peak_bytes[row];
					lives[i] = member->live_bytes[row];
				}
			}
		}
		build->domains[domain].concurrent_peak_bytes = model_together(build->processes, build->process_count, peaks);
		build->domains[domain].together_live_bytes = model_together(build->processes, build->process_count, lives);
	}
}

/*
 * Without a mark nobody knows how long the process lived on after its last heartbeat. But it did live when it started its own children.
 */
static bool
may_have_ended_before(const struct build *build, size_t index, size_t later)
{
	const struct model_process *process = &build->processes[index];
	uint64_t seen_ns = model_last_seen_ns(process);

	for (size_t i = 0; i < build->process_count; i++) {
		const struct model_process *child = &build->processes[i];

		if (child->parent == (int)index && child->identity->start_monotonic_ns > seen_ns)
			seen_ns = child->identity->start_monotonic_ns;
	}
	return !process->is_alive && model_ended_ns(process) == 0 &&
	       seen_ns < build->processes[later].identity->start_monotonic_ns;
}

size_t
model_family_unknown_ends(const struct build *build)
{
	size_t count = 0;
	size_t last = 0;

	for (size_t i = 1; i < build->process_count; i++) {
		if (build->processes[i].identity->start_monotonic_ns > build->processes[last].identity->start_monotonic_ns)
			last = i;
	}
	for (size_t i = 0; i < build->process_count; i++)
		count += i != last && may_have_ended_before(build, i, last);
	return count;
}

void
model_family_link(struct build *build)
{
	mark_replaced(build);
	for (size_t i = 0; i < build->process_count; i++)
		resolve(build, &build->processes[i], &build->members[i]);
	sum_together(build);
}

void
model_family_free(struct build *build)
{
	for (size_t i = 0; build->members != NULL && i < build->process_count; i++)
		free(build->members[i].sites);
	free(build->members);
}
