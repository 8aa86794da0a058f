/*
 * verdict_freed.c - what was freed and is still in memory: fragmentation.
 *
 * malloc gives back what lies at the end of its heap, and where it is asked to (malloc_trim) whole pages without a block. Where few
 * blocks lie between many that were freed, the rest of their pages stays. At a look the pages of malloc are held against the blocks
 * that are live (shim/periodic/resident_heap.h). After that, or where nobody could look, there are sums: what malloc has in memory, less what is
 * live.
 *
 * When failing  without a look at the resident set nothing is said.
 */
#include <string.h>

#include "base/units.h"
#include "verdict/verdict_tell.h"

#define FREED_BYTES (UINT64_C(32) << 20)
#define FREED_PART 4                     // of what was in memory
#define MALLOC_WORDS_BYTES 24            // of a block, at most as a rule
#define MOST (UINT64_C(1) << 48)         // of bytes and blocks: a capture may say anything
#define MANY_THREADS 8                   // as many arenas as threads, up to eight for each processor
#define LOOK_LATE_NS UINT64_C(100000000) // who looked so shortly before the end looked at its end
#define CHANGED_PART 8                   // memory differs by that much: the look was of another time
#define FALLEN_PART 4                    // so much of what was live was freed since the look
#define OLD_NS UINT64_C(1000000000)

static uint64_t
lesser(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t
greater(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* ---- how much ---- */

uint64_t
verdict_freed_at_sample(const struct model_heap_sample *look)
{
	return look->sampled_pages != 0
	           ? look->empty_bytes + (look->sparse_bytes - lesser(look->sparse_bytes, look->sparse_live_bytes))
	           : 0;
}

static const struct kmem_heartbeat *
beat_after_sample(const struct model_process *process)
{
	const struct kmem_heartbeat *last = process->heartbeat_count != 0
	                                        ? &process->heartbeats[process->heartbeat_count - 1]
	                                        : NULL;

	return last != NULL && last->monotonic_ns >= process->resident->monotonic_ns ? last : NULL;
}

/* The most that was live about the time of the look: at the heartbeats before and after it, or at the end, which was looked at. */
static uint64_t
live_at_sample(const struct model_process *process)
{
	bool has_ended = process->state == KMEM_STATE_CLEAN_EXIT &&
	                 verdict_ended_ns(process) <= process->resident->monotonic_ns + LOOK_LATE_NS;
	uint64_t before_bytes = 0;

	if (process->is_finalizing || has_ended)
		return process->live_bytes;

	for (size_t i = 0; i < process->heartbeat_count; i++) {
		const struct kmem_heartbeat *beat = &process->heartbeats[i];

		if (beat->monotonic_ns > process->resident->monotonic_ns)
			return greater(before_bytes, beat->live_bytes);
		before_bytes = beat->live_bytes;
	}
	return greater(before_bytes, process->live_bytes);
}

/* What malloc needs for so much that is live: its own words and rounding too, in blocks of the size that is usual in the heap. */
static uint64_t
needed_for(const struct model *model, uint64_t live_bytes)
{
	const struct model_domain *heap = NULL;
	double count;

	live_bytes = lesser(live_bytes, MOST);
	for (size_t i = 0; i < model->domain_count; i++) {
		if (strcmp(model->domains[i].name, "heap") == 0)
			heap = &model->domains[i];
	}
	if (heap == NULL || heap->allocated_bytes == 0)
		return live_bytes * 2;
	count = (double)live_bytes / (double)heap->allocated_bytes * (double)heap->allocated_count;
	/* The blocks of all processes are no one process's. */
	return live_bytes + live_bytes / 16 +
	       MALLOC_WORDS_BYTES * greater(model->process_count == 1 ? lesser(heap->live_count, MOST) : 0,
	                                    count < (double)MOST ? (uint64_t)count : MOST);
}

static uint64_t
malloc_at_sample(const struct model_process *process)
{
	return process->resident->part_bytes[KMEM_RESIDENT_BRK] + process->resident->part_bytes[KMEM_RESIDENT_HEAP];
}

/* Where nobody looked at malloc's pages: what it had more than was live, at least. 0: not known. */
static uint64_t
freed_at_least(const struct model *model, const struct model_process *process)
{
	uint64_t malloc_bytes = malloc_at_sample(process);
	uint64_t live_bytes = live_at_sample(process);

	return live_bytes != 0 ? malloc_bytes - lesser(malloc_bytes, needed_for(model, live_bytes)) : 0;
}

static bool
has_fallen_since(const struct model_process *process, const struct kmem_heartbeat *last)
{
	uint64_t then_bytes = 0;

	for (size_t i = 0;
	     i < process->heartbeat_count && process->heartbeats[i].monotonic_ns <= process->resident->monotonic_ns; i++)
		then_bytes = process->heartbeats[i].live_bytes;
	return last->live_bytes < then_bytes - then_bytes / FALLEN_PART;
}

/*
 * Memory grew after the look, or what was live was freed, and at the look next to nothing was but malloc's and what has lines: at the
 * last heartbeat malloc had what was resident then, less what was not its at the look, and of what recording took twice as much where
 * memory grew. Less what was live then, or at the end, it was freed. freed_bytes 0: not known.
 */
static struct verdict_freed
freed_since(const struct model *model, const struct model_process *process)
{
	const uint64_t *look = process->resident->part_bytes;
	const struct kmem_heartbeat *last = beat_after_sample(process);
	uint64_t sampled_bytes = process->resident->resident_bytes;
	uint64_t unclear_bytes = look[KMEM_RESIDENT_RESERVED] + look[KMEM_RESIDENT_OTHER] + look[KMEM_RESIDENT_FILE] +
	                         look[KMEM_RESIDENT_SHARED];
	struct verdict_freed freed = { .process = process, .is_later = true };

	if (last == NULL || last->live_bytes == 0 || process->is_finalizing ||
	    unclear_bytes > sampled_bytes / CHANGED_PART / 2)
		return freed;

	bool has_grown = last->resident_bytes >= sampled_bytes / CHANGED_PART * (CHANGED_PART + 1);

	freed.has_fallen = has_fallen_since(process, last);
	if (!has_grown && !freed.has_fallen)
		return freed;

	uint64_t others_bytes = sampled_bytes - malloc_at_sample(process) + (has_grown ? look[KMEM_RESIDENT_OWN] : 0);
	uint64_t live_bytes = process->live_bytes != 0 ? lesser(last->live_bytes, process->live_bytes) : last->live_bytes;

	freed.resident_bytes = last->resident_bytes;
	freed.heap_bytes = last->resident_bytes - lesser(last->resident_bytes, others_bytes);
	freed.freed_bytes = freed.heap_bytes - lesser(freed.heap_bytes, needed_for(model, live_bytes));
	return freed;
}

static struct verdict_freed
freed_then(const struct model *model, const struct model_process *process)
{
	const struct model_heap_sample *look = &process->heap_sample;
	bool is_sampled = look->sampled_pages != 0;
	const struct kmem_heartbeat *last = beat_after_sample(process);
	struct verdict_freed freed = {
		.process = process,
		.resident_bytes = process->resident->resident_bytes,
		.heap_bytes = is_sampled ? look->bytes : malloc_at_sample(process),
		.freed_bytes = is_sampled ? verdict_freed_at_sample(look) : freed_at_least(model, process),
		.empty_bytes = look->empty_bytes,
		.sparse_bytes = look->sparse_bytes,
		.sparse_live_bytes = look->sparse_live_bytes,
	};

	/* It was given back after the look. */
	if (last != NULL && last->resident_bytes != 0 &&
	    last->resident_bytes < freed.resident_bytes - lesser(freed.freed_bytes / 2, freed.resident_bytes))
		freed.freed_bytes = 0;
	return freed;
}

struct verdict_freed
verdict_freed_of(const struct model *model, const struct model_process *process)
{
	const struct verdict_freed none = { .freed_bytes = 0 };
	struct verdict_freed freed;
	struct verdict_freed since;

	/* Blocks of the parent's, or that were not recorded, are live too. */
	if (process->resident == NULL || process->losses[KMEM_LOST_EVENTS] != 0 || process->inherited_bytes != 0)
		return none;
	freed = freed_then(model, process);
	since = freed_since(model, process);
	if (since.has_fallen && since.freed_bytes > freed.freed_bytes) {
		/* Pages that were nearly empty at the look are so still, or emptier. */
		since.empty_bytes = freed.empty_bytes;
		since.sparse_bytes = freed.sparse_bytes;
		since.sparse_live_bytes = freed.sparse_live_bytes;
		freed = since;
		// what pages say is worth more than sums, where it is nearly as much
	} else if (freed.freed_bytes < since.freed_bytes / 6 * 5) {
		freed = since;
	}
	freed.freed_bytes = lesser(freed.freed_bytes, freed.resident_bytes); // a capture may say anything
	return freed.freed_bytes >= FREED_BYTES && freed.freed_bytes >= freed.resident_bytes / FREED_PART ? freed : none;
}

/* ---- whose blocks ---- */

/* The lines whose few blocks keep most of the pages. */
void
verdict_find_pinning(struct verdict_facts *facts)
{
	struct verdict_freed *freed = &facts->memory.freed;
	struct ranked *ranked = verdict_rank(facts, &rank_sites, &rank_sites_asked);

	for (size_t i = 0; i < ranked->line_count; i++) {
		struct rank_line line = ranked->lines[i];

		for (size_t place = 0; place < VERDICT_PINNING_MAX && line.pinned_bytes != 0; place++) {
			struct rank_line less = freed->pinning[place];

			if (less.pinned_bytes >= line.pinned_bytes)
				continue;
			freed->pinning[place] = line;
			line = less;
		}
	}
	rank_free(ranked);
}

/* ---- words ---- */

/* Of those that few blocks keep, what is worth a sentence. */
static uint64_t
sparse_of(const struct verdict_freed *freed)
{
	uint64_t bytes = freed->freed_bytes - lesser(freed->freed_bytes, freed->empty_bytes);

	return freed->sparse_bytes != 0 && bytes >= freed->freed_bytes / 10 ? bytes : 0;
}

void
verdict_tell_freed(const struct verdict_facts *facts, struct verdict *verdict)
{
	const struct verdict_freed *freed = &facts->memory.freed;
	uint64_t live_bytes = freed->heap_bytes - lesser(freed->heap_bytes, freed->freed_bytes);
	char bytes[UNITS_TEXT_BYTES];
	char whole[UNITS_TEXT_BYTES];
	char share[UNITS_TEXT_BYTES];
	char place[PLACE_TEXT_BYTES];

	if (freed->freed_bytes == 0)
		return;
	say(verdict, " Freed memory was not given back (fragmentation): ");
	if (freed->is_later)
		say(verdict, "at the last heartbeat ");
	else if (freed->age_ns >= OLD_NS && facts->end != VERDICT_END_RUNNING)
		say(verdict, "%.1f s before the end ", (double)freed->age_ns / 1e9);
	say(verdict, "malloc ");
	if (facts->model->process_count > 1) {
		say(verdict, "of ");
		verdict_say_process(freed->process, verdict);
		say(verdict, " ");
	}
	say(verdict, "had %s in memory, of which about %s was live (%s).", units_bytes(freed->heap_bytes, whole),
	    units_bytes(live_bytes, bytes), units_share(verdict_share(live_bytes, freed->heap_bytes), share));
	if (freed->empty_bytes >= freed->freed_bytes / 10 && freed->empty_bytes != 0)
		say(verdict, " %s%s was pages without any block: malloc_trim(0) gives these back.",
		    freed->is_later ? "At least " : "", units_bytes(freed->empty_bytes, bytes));
	if (sparse_of(freed) == 0)
		return;
	say(verdict, " %s was pages that few blocks keep (%s in all)", units_bytes(freed->sparse_bytes, bytes),
	    units_bytes(freed->sparse_live_bytes, whole));
	if (freed->pinning[0].site_count != 0)
		say(verdict, ", most of them allocated at %s", verdict_line_text(&freed->pinning[0], place));
	say(verdict, ": they stay until these blocks are freed.");
}

/* ---- what to do ---- */

bool
verdict_is_freed_first(const struct verdict_facts *facts)
{
	return facts->memory.freed.freed_bytes > facts->top_live.live_bytes;
}

static const char *
trim_call(const struct verdict_facts *facts)
{
	return facts->memory.freed.process->python_version != 0 ? "ctypes.CDLL(None).malloc_trim(0)" : "malloc_trim(0)";
}

bool
verdict_advise_freed(const struct verdict_facts *facts, struct verdict *verdict)
{
	const struct verdict_freed *freed = &facts->memory.freed;
	bool is_empty_worth = freed->empty_bytes != 0 && freed->empty_bytes >= freed->freed_bytes / 4;
	bool is_sparse_worth = sparse_of(freed) >= freed->freed_bytes / 4 && sparse_of(freed) != 0;
	char place[PLACE_TEXT_BYTES];

	if (freed->freed_bytes == 0)
		return false;
	if (freed->empty_bytes == 0 && freed->sparse_bytes == 0) {
		say_next(
			verdict,
			"call %s when much was freed; where that does not help, few blocks keep whole pages: allocate those that stay "
			"apart from those that are freed",
			trim_call(facts));
		return true;
	}
	if (is_empty_worth)
		say_next(verdict, "call %s when much was freed", trim_call(facts));
	if (is_sparse_worth) {
		char first[sizeof(verdict->next)];

		(void)snprintf(first, sizeof(first), "%s", verdict->next);
		say_next(
			verdict,
			"%.400s%sallocate the blocks that stay%s%s%s apart from those that are freed: before them, or from a pool of their own",
			first, is_empty_worth ? "; and " : "", freed->pinning[0].site_count != 0 ? ", most of all those of " : "",
			freed->pinning[0].site_count != 0 ? verdict_line_text(&freed->pinning[0], place) : "",
			freed->pinning[0].site_count != 0 ? "," : "");
	}
	if (freed->process->thread_count > MANY_THREADS) {
		size_t used = strlen(verdict->next);

		(void)snprintf(verdict->next + used, sizeof(verdict->next) - used,
		               "; with %u threads also set MALLOC_ARENA_MAX=2", freed->process->thread_count);
	}
	return true;
}
