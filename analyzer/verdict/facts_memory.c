/*
 * facts_memory.c - where is what was in memory, and how much of it was freed and is kept by malloc?
 *
 * Lines hold what was asked for and is still live. Memory is also filled by freed blocks that malloc keeps, by libraries with allocators of
 * their own, by files, by other processes of the container, and by the recorder. What was never touched takes no memory.
 *
 * malloc gives back what lies at the end of its heap and, when it is asked to (malloc_trim), whole pages without a block. If few blocks
 * lie between many that were freed, their pages stay. A sample compares the pages of malloc with the blocks
 * that are live (shim/periodic/resident_heap.h). After that, or where no sample was taken, there are sums: what malloc has in memory,
 * less what is live.
 *
 * When failing  without a sample of the resident set nothing is known: then everything that was asked for counts as memory.
 */

#include "base/amount.h"
#include "base/items.h"
#include "base/order.h"
#include "verdict/facts.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define EXPLAINING_PART 3                // a line with less than this part of what was in memory does not explain it
#define WORTH_BYTES (UINT64_C(64) << 20) // in memory; less is the program and its libraries
#define UNTOUCHED_BYTES (UINT64_C(16) << 20)
#define UNTOUCHED_PART 8                // of what was asked for
#define STACK_BYTES (UINT64_C(8) << 20) // of a thread, by default
#define LATER_PART 4                    // of what a container has: less may be the kernel's, which no look counts
#define FREED_BYTES (UINT64_C(32) << 20)
#define FREED_PART 4                     // of what was in memory
#define MALLOC_WORDS_BYTES 24            // of a block, at most as a rule
#define MOST (UINT64_C(1) << 48)         // of bytes and blocks: a capture may say anything
#define LOOK_LATE_NS UINT64_C(100000000) // a sample so shortly before the end shows the end
#define CHANGED_PART 8                   // where memory has changed by this part, the sample is too old
#define LAST_PART 16                     // of the run: its last moments
#define LAST_NS UINT64_C(1000000000) // or so long, in so much of the run: a busy machine lets a process that ends wait
#define LAST_LONG_PART 4             //
#define LAST_VOLUME_PART 8           // of what was freed
#define FALLEN_PART 4                // this part of what was live was freed since the sample

/* ---- what is in memory of lines ---- */

struct ranked *
verdict_rank(const struct verdict_facts *facts, const struct ranking *in_memory, const struct ranking *asked)
{
	struct ranked *ranked = rank_run(facts->finished, facts->refused != NULL ? asked : in_memory, NULL);

	EACH (line, ranked->lines, ranked->line_count) {
		line->live_bytes = verdict_less_untouched(facts, line->live_bytes, line->untouched_bytes);
		line->leaking_bytes = verdict_less_untouched(facts, line->leaking_bytes, line->leaking_untouched_bytes);
		line->peak_bytes = verdict_less_untouched(facts, line->peak_bytes, line->peak_untouched_bytes);
	}
	return ranked;
}

uint64_t
verdict_less_untouched(const struct verdict_facts *facts, uint64_t asked_bytes, uint64_t untouched_bytes)
{
	if (facts->refused != NULL)
		return asked_bytes;
	return asked_bytes > untouched_bytes ? asked_bytes - untouched_bytes : 0;
}

bool
verdict_tells_in_memory(uint64_t in_memory_bytes, uint64_t untouched_bytes)
{
	return untouched_bytes > in_memory_bytes / UNTOUCHED_PART;
}

uint64_t
verdict_untouched_bytes(const struct model_process *process, const struct model_domain *domain)
{
	const struct kmem_resident *look = process->resident;
	unsigned part = domain->id.kind == DOMAIN_MMAP ? KMEM_RESIDENT_MMAP : KMEM_RESIDENT_PYTHON_ARENA;

	if (domain->untouched_bytes != 0)
		return domain->untouched_bytes;
	if (look == NULL || (part != KMEM_RESIDENT_MMAP && domain->id.kind != DOMAIN_PYTHON_ARENA) ||
	    (!process->is_finalizing && look->monotonic_ns + LOOK_LATE_NS < model_ended_ns(process)) ||
	    look->part_bytes[part] >= domain->live_bytes)
		return 0;
	return domain->live_bytes - look->part_bytes[part];
}

void
verdict_find_untouched(struct verdict_facts *facts, const struct ranked *live)
{
	const struct rank_line *most = NULL;
	uint64_t asked_bytes = 0;
	uint64_t untouched_bytes = 0;

	for (size_t i = 0; i < live->line_count && facts->refused == NULL; i++) {
		const struct rank_line *line = &live->lines[i];

		if (domain_is_address_space(facts->model->domains[line->domain].id.kind))
			continue;
		asked_bytes += line->live_bytes + line->untouched_bytes;
		untouched_bytes += line->untouched_bytes;
		if (!line->is_import && (most == NULL || line->untouched_bytes > most->untouched_bytes))
			most = line;
	}
	if (most != NULL && most->untouched_bytes >= UNTOUCHED_BYTES &&
	    most->untouched_bytes >= asked_bytes / UNTOUCHED_PART && most->untouched_bytes >= untouched_bytes / 2)
		facts->untouched = *most;
}

bool
verdict_is_peak_told_in_memory(const struct verdict_facts *facts)
{
	return verdict_tells_in_memory(facts->peak_bytes, facts->peak_untouched_bytes);
}

uint64_t
verdict_peak_told_bytes(const struct verdict_facts *facts, uint64_t in_memory_bytes, uint64_t untouched_bytes)
{
	return in_memory_bytes + (verdict_is_peak_told_in_memory(facts) || facts->refused != NULL ? 0 : untouched_bytes);
}

bool
verdict_is_in_memory_told(const struct verdict_facts *facts)
{
	return verdict_tells_in_memory(facts->live_bytes, facts->untouched_bytes) || facts->untouched.site_count != 0;
}

uint64_t
verdict_told_live_bytes(const struct verdict_facts *facts)
{
	return facts->live_bytes + (verdict_is_in_memory_told(facts) ? 0 : facts->untouched_bytes);
}

/* ---- what was freed ---- */

/* Of malloc's pages; 0 where they were not sampled. */
static uint64_t
freed_at_sample(const struct model_heap_sample *look)
{
	return look->sampled_pages != 0 ? look->empty_bytes + amount_less(look->sparse_bytes, look->sparse_live_bytes) : 0;
}

/* When the interpreter began to end, what is live and the last sample were frozen: nothing is told of what came after. */
static const struct kmem_heartbeat *
beat_after_sample(const struct model_process *process)
{
	const struct kmem_heartbeat *last = model_last_beat(process);

	return last != NULL && !process->is_finalizing && last->monotonic_ns >= process->resident->monotonic_ns ? last
	                                                                                                        : NULL;
}

/* What was live about the time of the look: at the heartbeats before and after it, the greater or the lesser; or at the end, which was looked at. */
static uint64_t
live_at_sample(const struct model_process *process, uint64_t of_two(uint64_t, uint64_t))
{
	bool has_ended = process->state == KMEM_STATE_CLEAN_EXIT &&
	                 model_ended_ns(process) <= process->resident->monotonic_ns + LOOK_LATE_NS;
	uint64_t before_bytes = 0;

	if (process->is_finalizing || has_ended)
		return process->live_bytes;

	EACH (beat, process->heartbeats, process->heartbeat_count) {
		if (beat->monotonic_ns > process->resident->monotonic_ns)
			return of_two(before_bytes, beat->live_bytes);
		before_bytes = beat->live_bytes;
	}
	return of_two(before_bytes, process->live_bytes);
}

/* What malloc needs for so much that is live: its own words and rounding too, in blocks of the size that is usual in the heap. */
static uint64_t
needed_for(const struct model *model, uint64_t live_bytes)
{
	uint64_t allocated_bytes = 0;
	uint64_t allocated_count = 0;
	uint64_t live_count = 0;

	live_bytes = amount_lesser(live_bytes, MOST);
	EACH (domain, model->domains, model->domain_count) {
		if (!domain_is_heap(domain->id.kind))
			continue;
		allocated_bytes += amount_lesser(domain->allocated_bytes, MOST);
		allocated_count += amount_lesser(domain->allocated_count, MOST);
		live_count += amount_lesser(domain->live_count, MOST);
	}
	if (allocated_bytes == 0)
		return live_bytes * 2;

	double count = (double)live_bytes / (double)allocated_bytes * (double)allocated_count;

	/* The blocks of all processes are no one process's. */
	return live_bytes + live_bytes / 16 +
	       MALLOC_WORDS_BYTES * amount_greater(model->process_count == 1 ? amount_lesser(live_count, MOST) : 0,
	                                           count < (double)MOST ? (uint64_t)count : MOST);
}

static uint64_t
malloc_at_sample(const struct model_process *process)
{
	return process->resident->part_bytes[KMEM_RESIDENT_BRK] + process->resident->part_bytes[KMEM_RESIDENT_HEAP];
}

/* What was live then and can be nowhere else than in malloc's pages is not free, whatever the map of blocks said. */
static uint64_t
free_at_most(const struct model *model, const struct model_process *process)
{
	uint64_t live_bytes = live_at_sample(process, amount_lesser);

	EACH (domain, model->domains, model->domain_count) {
		uint64_t elsewhere_bytes = domain_is_heap(domain->id.kind) ? domain->untouched_bytes : domain->peak_bytes;

		live_bytes -= amount_lesser(live_bytes, domain_is_host(domain->id.kind) ? elsewhere_bytes : 0);
	}
	return malloc_at_sample(process) - amount_lesser(malloc_at_sample(process), live_bytes);
}

/* Where nobody looked at malloc's pages: what it had more than was live, at least. 0: not known. */
static uint64_t
freed_at_least(const struct model *model, const struct model_process *process)
{
	uint64_t malloc_bytes = malloc_at_sample(process);
	uint64_t live_bytes = live_at_sample(process, amount_greater);

	return live_bytes != 0 ? amount_less(malloc_bytes, needed_for(model, live_bytes)) : 0;
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
 * How much was freed and kept since the last sample? For processes whose memory has changed since then, and was nearly all malloc's, or of
 * known lines, at the sample. At the last heartbeat malloc had what was resident, less what was not malloc's at the sample; what recording
 * took counts twice if memory grew. Of that, what was not live was freed. freed_bytes 0: not known.
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

	if (last == NULL || last->live_bytes == 0 || unclear_bytes > sampled_bytes / CHANGED_PART / 2)
		return freed;

	bool has_grown = last->resident_bytes >= sampled_bytes / CHANGED_PART * (CHANGED_PART + 1);

	freed.has_fallen = has_fallen_since(process, last);
	if (!has_grown && !freed.has_fallen)
		return freed;

	uint64_t others_bytes = sampled_bytes - malloc_at_sample(process) + (has_grown ? look[KMEM_RESIDENT_OWN] : 0);
	uint64_t live_bytes = process->live_bytes != 0 ? amount_lesser(last->live_bytes, process->live_bytes)
	                                               : last->live_bytes;

	freed.resident_bytes = last->resident_bytes;
	freed.heap_bytes = amount_less(last->resident_bytes, others_bytes);
	freed.freed_bytes = amount_less(freed.heap_bytes, needed_for(model, live_bytes));
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
		.freed_bytes = is_sampled ? amount_lesser(freed_at_sample(look), free_at_most(model, process))
		                          : freed_at_least(model, process),
		.empty_bytes = amount_lesser(look->empty_bytes, free_at_most(model, process)),
		.sparse_bytes = look->sparse_bytes,
		.sparse_live_bytes = look->sparse_live_bytes,
	};

	/* It was given back after the look. */
	if (last != NULL && last->resident_bytes != 0 &&
	    last->resident_bytes < amount_less(freed.resident_bytes, freed.freed_bytes / 2))
		freed.freed_bytes = 0;
	return freed;
}

struct verdict_freed
verdict_freed_of(const struct model *model, const struct model_process *process)
{
	const struct verdict_freed none = { .freed_bytes = 0 };

	/* Blocks of the parent's, or that were not recorded, are live too. */
	if (process->resident == NULL || process->losses[KMEM_LOST_EVENTS] != 0 || process->inherited_bytes != 0)
		return none;

	struct verdict_freed freed = freed_then(model, process);
	struct verdict_freed since = freed_since(model, process);

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
	freed.freed_bytes = amount_lesser(freed.freed_bytes, freed.resident_bytes); // a capture may say anything
	return freed.freed_bytes >= FREED_BYTES && freed.freed_bytes >= freed.resident_bytes / FREED_PART ? freed : none;
}

/*
 * Was most of it live until the last moments, and next to nothing allocated since? Points of the history know what was allocated; a long run
 * has few of them, and heartbeats between.
 */
static bool
was_freed_last(const struct verdict_freed *freed)
{
	const struct model_process *process = freed->process;
	uint64_t high_bytes = process->live_bytes + freed->freed_bytes / 2;
	size_t low = process->point_count; // from here on little is live

	while (low > 0 && process->points[low - 1].live_bytes < high_bytes)
		low--;
	if (low == 0 || low == process->point_count)
		return false;

	const struct model_point *end = &process->points[process->point_count - 1];
	uint64_t low_ns = process->points[low].monotonic_ns;

	for (size_t i = process->heartbeat_count;
	     i-- > 0 && process->heartbeats[i].live_bytes < high_bytes &&
	     process->heartbeats[i].monotonic_ns > process->points[low - 1].monotonic_ns;)
		low_ns = amount_lesser(low_ns, process->heartbeats[i].monotonic_ns);

	uint64_t run_ns = end->monotonic_ns - process->points[0].monotonic_ns;
	uint64_t last_ns = amount_greater(run_ns / LAST_PART, amount_lesser(run_ns / LAST_LONG_PART, LAST_NS));

	return end->monotonic_ns - low_ns <= last_ns &&
	       end->volume_bytes - process->points[low].volume_bytes <= freed->freed_bytes / LAST_VOLUME_PART;
}

/*
 * What lines held until the program ended was freed by its end: main returned, and its variables were destroyed. Who exits next needs no
 * memory back. Mappings and devices are not malloc's.
 */
static bool
was_freed_by_ending(const struct verdict_facts *facts)
{
	uint64_t released_bytes = 0;
	uint64_t swept_bytes = 0;

	if ((facts->end != VERDICT_END_OK && facts->end != VERDICT_END_FAILED) ||
	    facts->memory.freed.process != facts->process || facts->memory.freed.freed_bytes == 0)
		return false;
	if (was_freed_last(&facts->memory.freed))
		return true;
	EACH (site, facts->model->sites, facts->model->site_count) {
		if (!domain_is_heap(facts->model->domains[site->domain].id.kind) ||
		    &facts->model->processes[site->process] != facts->process)
			continue;
		swept_bytes += amount_lesser(site->swept_bytes, MOST);
		released_bytes += amount_lesser(site->released_bytes, MOST);
	}
	/* Of what exit handlers release, the last sample has any part, also nothing: then all of it must be theirs. */
	return swept_bytes >= facts->memory.freed.freed_bytes / 2 || released_bytes >= facts->memory.freed.freed_bytes;
}

/* The lines whose few blocks keep most of the pages. */
static void
find_pinning(struct verdict_facts *facts)
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

/* The line at which so much of files is mapped that most of the pages of files in memory can be no other's. */
static void
find_files(struct verdict_facts *facts)
{
	struct verdict_memory *memory = &facts->memory;
	struct rank_line most = { .site_count = 0 };
	struct ranked *ranked = verdict_rank(facts, &rank_sites, &rank_sites_asked);
	uint64_t others_bytes = 0;

	EACH (line, ranked->lines, ranked->line_count) {
		if (facts->model->domains[line->domain].id.kind != DOMAIN_FILE)
			continue;
		others_bytes += line->live_bytes;
		if (line->live_bytes > most.live_bytes)
			most = *line;
	}
	others_bytes -= most.live_bytes;
	if (most.live_bytes >= memory->files_bytes / 2 && others_bytes < memory->files_bytes / 2)
		memory->files = most;
	memory->is_written_first = memory->written_bytes != 0 && memory->files.site_count != 0 &&
	                           memory->parts[0].bytes == memory->written_bytes;
	rank_free(ranked);
}

/* The line that built so much of what a child inherited that most of what is in memory of that can be no other's. */
static void
find_inherited(struct verdict_memory *memory, const struct model *model, const struct model_process *child)
{
	struct verdict_built built = verdict_built_most(model, child);
	uint64_t others_bytes = child->inherited_bytes - amount_lesser(child->inherited_bytes, built.bytes);

	memory->inherited_bytes = child->resident->part_bytes[KMEM_RESIDENT_INHERITED];
	memory->inherited.site_count = 0;
	if (built.site != NULL && built.bytes >= memory->inherited_bytes / 2 && others_bytes < memory->inherited_bytes / 2)
		memory->inherited = (struct rank_line){
			.where = built.site->where, .largest = built.site, .domain = built.site->domain, .site_count = 1
		};
}

/* Of those that few blocks keep, what is worth a sentence. */
uint64_t
verdict_sparse_of(const struct verdict_freed *freed)
{
	uint64_t bytes = amount_less(freed->freed_bytes, freed->empty_bytes);

	return freed->sparse_bytes != 0 && bytes >= freed->freed_bytes / 10 ? bytes : 0;
}

bool
verdict_is_freed_first(const struct verdict_facts *facts)
{
	return facts->memory.freed.freed_bytes > facts->top_live.live_bytes;
}

/* ---- where it is ---- */

enum part {
	PART_LINES,
	PART_SHARED,
	PART_FREED,
	PART_ARENAS,
	PART_MALLOC,
	PART_RESERVED,
	PART_FILES,
	PART_WRITTEN,
	PART_PROGRAM,
	PART_OWN,
	PART_INHERITED,
	PART_COPIED,
	PART_STACKS,
	PART_OTHER,
	PART_LATER,
	PART_MEMORY_FILES,
	PART_CACHED,
	PART_OTHERS,
	PART_UNKNOWN_OTHERS,
	PARTS
};
static_assert((int)PARTS <= VERDICT_PARTS_MAX, "");

static const struct {
	const char *name;
	enum verdict_bar bar;
} part_rows[] = {
	[PART_LINES] = { "live at recorded lines", VERDICT_BAR_LINES },
	[PART_SHARED] = { "shared memory that recorded lines mapped", VERDICT_BAR_LINES },
	[PART_FREED] = { "freed memory that malloc keeps", VERDICT_BAR_FREED },
	[PART_ARENAS] = { "free in arenas of small Python objects", VERDICT_BAR_FREED },
	[PART_MALLOC] = { "malloc's, beyond what is live", VERDICT_BAR_FREED }, // its pages were not sampled
	[PART_RESERVED] = { "memory that libraries manage themselves: no line of it is known", VERDICT_BAR_LIBRARIES },
	[PART_FILES] = { "pages of files and shared memory", VERDICT_BAR_FILES },
	[PART_WRITTEN] = { "written pages of private mappings of files (anonymous memory)", VERDICT_BAR_LINES },
	[PART_PROGRAM] = { "the program and its libraries", VERDICT_BAR_LIBRARIES },
	[PART_OWN] = { "the recorder's own", VERDICT_BAR_RECORDER },
	[PART_INHERITED] = { "memory from before the fork", VERDICT_BAR_FORK },
	[PART_COPIED] = { "pages that forked children copied by writing to them", VERDICT_BAR_FORK },
	[PART_STACKS] = { "stacks of threads", VERDICT_BAR_UNKNOWN },
	[PART_OTHER] = { "memory that is not attributed", VERDICT_BAR_UNKNOWN },
	[PART_LATER] = { "newer than the last sample of its mappings", VERDICT_BAR_LATER },
	[PART_MEMORY_FILES] = { "files that lie in memory (/dev/shm, other tmpfs folders)", VERDICT_BAR_FILES },
	[PART_CACHED] = { "contents of files on disk", VERDICT_BAR_FILES },
	[PART_OTHERS] = { "other processes, and the kernel's for all", VERDICT_BAR_OTHERS },
	// nobody looked at what the container had
	[PART_UNKNOWN_OTHERS] = { "other processes, and pages of files", VERDICT_BAR_OTHERS },
};
static_assert(COUNT_OF(part_rows) == PARTS, "each has a name");

static const char *const bar_names[] = {
#define BAR_NAME(bar, name) name,
	VERDICT_BAR_ROWS(BAR_NAME)
};

static uint64_t
live_of(const struct model *model, enum domain_kind kind)
{
	const struct model_domain *found = FIRST(domain, model->domains, model->domain_count, domain->id.kind == kind);

	return found != NULL ? amount_less(found->live_bytes, found->untouched_bytes) : 0;
}

/* Arenas of small Python objects that are recorded one by one, as blocks of the heap (--python-objects). */
static uint64_t
recorded_arenas(const struct model *model)
{
	return SUM_OF(site, model->sites, model->site_count,
	              (site->stack_flags & KMEM_STACK_ARENA) != 0 && model->domains[site->domain].id.kind == DOMAIN_RESERVED
	                  ? site->live_bytes
	                  : 0);
}

/* What a forked child has in malloc's pages of its parent's. No block of the child's lies there, and none of it was freed. */
static uint64_t
inherited_malloc(const struct model_process *child)
{
	return amount_lesser(amount_less(malloc_at_sample(child), child->live_bytes), child->inherited_heap_bytes);
}

/*
 * What a process has of its parent's is the parent's: no other counts it but by what it copied. But the parent may have ended, or have
 * unmapped it.
 */
static void
add_inherited(const struct model *model, const struct model_process *child, bool is_parent_there, uint64_t parts[PARTS])
{
	uint64_t bytes = child->resident->part_bytes[KMEM_RESIDENT_INHERITED];
	uint64_t copied_bytes = amount_lesser(child->copied_bytes,
	                                      bytes + inherited_malloc(child)); // it may have given some back

	if (is_parent_there) {
		const uint64_t *parents = model->processes[child->parent].resident->part_bytes;

		bytes = amount_less(bytes, parents[KMEM_RESIDENT_HEAP] + parents[KMEM_RESIDENT_PYTHON_ARENA] +
		                               parents[KMEM_RESIDENT_MMAP] + parents[KMEM_RESIDENT_RESERVED] +
		                               parents[KMEM_RESIDENT_OTHER] + parents[KMEM_RESIDENT_INHERITED]);
	} else {
		bytes += inherited_malloc(child);
	}
	parts[PART_COPIED] += copied_bytes;
	parts[PART_INHERITED] = amount_greater(parts[PART_INHERITED], amount_less(bytes, copied_bytes));
}

/*
 * Of one process. What malloc keeps was seen at the look; where nobody looked at its pages it is what it has more than is live at the
 * end, which can be told of a session of one process alone.
 */
static void
add_process(const struct verdict_facts *facts, const struct model_process *process, uint64_t parts[PARTS])
{
	const uint64_t *look = process->resident->part_bytes;
	uint64_t inherited_bytes = inherited_malloc(process);
	uint64_t malloc_bytes = malloc_at_sample(process) - inherited_bytes;
	bool is_alone = facts->model->process_count == 1;
	uint64_t library_bytes = is_alone
	                             ? amount_lesser(live_of(facts->model, DOMAIN_LIBRARY), look[KMEM_RESIDENT_RESERVED])
	                             : 0;
	uint64_t shared_bytes = amount_lesser(live_of(facts->model, DOMAIN_SHARED), look[KMEM_RESIDENT_SHARED]);
	uint64_t freed_bytes = amount_lesser(amount_less(freed_at_sample(&process->heap_sample), inherited_bytes),
	                                     malloc_bytes);
	uint64_t beyond_bytes = 0;
	uint64_t arena_bytes = is_alone ? amount_lesser(recorded_arenas(facts->model),
	                                                look[KMEM_RESIDENT_RESERVED] - library_bytes)
	                                : 0;
	uint64_t heap_bytes = live_of(facts->model, DOMAIN_HEAP) + live_of(facts->model, DOMAIN_HEAP_SAMPLE);
	uint64_t object_bytes; // that are in these arenas, at least
	struct verdict_freed freed = verdict_freed_of(facts->model, process);

	if (freed.has_fallen) // since the look
		freed_bytes = amount_lesser(amount_greater(freed.freed_bytes, freed_bytes), malloc_bytes);

	if (process->heap_sample.sampled_pages == 0 && is_alone && freed_bytes == 0)
		// malloc's own words
		beyond_bytes = amount_less(malloc_bytes, heap_bytes / 16 * 17);
	object_bytes = amount_lesser(arena_bytes, amount_less(heap_bytes, malloc_bytes - freed_bytes));

	uint64_t rest_bytes = is_alone ? amount_lesser(look[KMEM_RESIDENT_PYTHON_ARENA],
	                                               SUM_OF(site, facts->model->sites, facts->model->site_count,
	                                                      site->is_rest_of_arenas ? site->live_bytes : 0))
	                               : 0;

	parts[PART_MALLOC] += beyond_bytes;
	parts[PART_ARENAS] += arena_bytes - object_bytes + rest_bytes;
	parts[PART_LINES] += object_bytes + malloc_bytes - freed_bytes - beyond_bytes + look[KMEM_RESIDENT_MMAP] +
	                     look[KMEM_RESIDENT_PYTHON_ARENA] - rest_bytes + library_bytes;
	parts[PART_FREED] += freed_bytes;
	parts[PART_RESERVED] += look[KMEM_RESIDENT_RESERVED] - library_bytes - arena_bytes;
	parts[PART_OWN] += look[KMEM_RESIDENT_OWN];
	parts[PART_STACKS] += look[KMEM_RESIDENT_STACKS];
	parts[PART_OTHER] += look[KMEM_RESIDENT_OTHER];
	/* Processes of one program have these together. */
	parts[PART_SHARED] = amount_greater(parts[PART_SHARED], shared_bytes);
	parts[PART_FILES] = amount_greater(parts[PART_FILES],
	                                   look[KMEM_RESIDENT_FILE] + look[KMEM_RESIDENT_SHARED] - shared_bytes);
	parts[PART_PROGRAM] = amount_greater(parts[PART_PROGRAM], look[KMEM_RESIDENT_PROGRAM]);
}

ORDER_OF(compare_parts, struct verdict_part, order_numbers(b->bytes, a->bytes) ?: strcmp(a->name, b->name))

/*
 * Where the most threads were started whose stacks are there: each has an area of its own, which the loader allocates with the stack. The
 * first thread has none, and so few as have most of it only with large stacks are not too many.
 */
static const struct model_site *
find_starter(const struct model *model, const bool *is_meant, uint64_t stacks_bytes)
{
	const struct model_site *found = NULL;

	EACH (site, model->sites, model->site_count) {
		if (site->where != NULL && site->process_count == 1 && is_meant[site->process] &&
		    site->live_count >= stacks_bytes / STACK_BYTES && (found == NULL || site->live_count > found->live_count) &&
		    ANY(frame, site->frames, site->frame_count, strcmp((*frame)->function, "_dl_allocate_tls") == 0))
			found = site;
	}
	return found;
}

/*
 * What the container had in use beyond the processes that are meant. Their pages of files are in what it had of files, once for all. What came
 * after the look is of nobody knows whom.
 */
static void
add_container(const struct model *model, struct verdict_memory *memory, uint64_t beyond_bytes, uint64_t parts[PARTS])
{
	const struct model_process *newest = NULL;
	uint64_t shared_bytes = 0;

	EACH (process, model->processes, model->process_count) {
		if (process->resident == NULL || process->container.anonymous_bytes == 0)
			continue;
		shared_bytes = amount_greater(shared_bytes, process->resident->part_bytes[KMEM_RESIDENT_SHARED]);
		if (newest == NULL || process->resident->monotonic_ns > newest->resident->monotonic_ns)
			newest = process;
	}
	if (newest == NULL) {
		parts[PART_UNKNOWN_OTHERS] = beyond_bytes;
		return;
	}
	parts[PART_MEMORY_FILES] = amount_lesser(beyond_bytes,
	                                         amount_less(newest->container.memory_files_bytes, shared_bytes));
	beyond_bytes -= parts[PART_MEMORY_FILES];
	parts[PART_CACHED] = amount_lesser(
		beyond_bytes, amount_less(newest->container.cached_bytes, parts[PART_PROGRAM] + parts[PART_FILES]));
	const struct kmem_container *seen = &newest->container;
	uint64_t later_bytes = amount_less(memory->bytes, seen->anonymous_bytes + seen->memory_files_bytes +
	                                                      seen->cached_bytes + parts[PART_LATER]);

	beyond_bytes -= parts[PART_CACHED];
	if (later_bytes >= memory->bytes / LATER_PART)
		parts[PART_UNKNOWN_OTHERS] = memory->unknown_bytes = amount_lesser(beyond_bytes, later_bytes);
	parts[PART_OTHERS] = beyond_bytes - parts[PART_UNKNOWN_OTHERS];
}

/*
 * A page of a private mapping of a file is memory of the process's own from the first write to it on. A look finds all pages of the mapping; the
 * container counts what is private. Of one process that has all that is charged there, what is more than can be elsewhere was written.
 */
static uint64_t
written_bytes(const struct verdict_facts *facts)
{
	const struct model_process *process = facts->process;
	uint64_t files_bytes = facts->memory.files_bytes;

	if (facts->model->process_count != 1 || facts->charged_bytes > facts->memory.bytes)
		return 0;
	uint64_t elsewhere_bytes = amount_less(process->resident->resident_bytes, files_bytes);
	uint64_t written = amount_lesser(files_bytes, amount_less(process->container.anonymous_bytes, elsewhere_bytes));

	return written > files_bytes / 2 ? written : 0;
}

/* Those that are, the largest first; and their sums by kind, for the bar. */
static void
keep_parts(struct verdict_memory *memory, const uint64_t parts[PARTS])
{
	for (unsigned i = 0; i < PARTS; i++) {
		if (parts[i] != 0)
			memory->parts[memory->part_count++] = (struct verdict_part){ part_rows[i].name, part_rows[i].bar,
				                                                         parts[i] };
		memory->bar[part_rows[i].bar].bytes += parts[i];
	}
	for (unsigned i = 0; i < VERDICT_BARS; i++) {
		memory->bar[i].name = bar_names[i];
		memory->bar[i].bar = i;
	}
	SORT(memory->parts, memory->part_count, compare_parts);
}

/* The kernel's line about the kill is newer than any sample. */
static uint64_t
last_seen_bytes(const struct verdict_facts *facts, const struct model_process *process)
{
	const struct kmem_heartbeat *last = beat_after_sample(process);
	uint64_t logged_bytes = process == facts->process ? facts->log.resident_bytes : 0;
	uint64_t sampled_bytes = amount_greater(last != NULL ? last->resident_bytes : 0, process->resident->resident_bytes);

	return amount_greater(sampled_bytes, logged_bytes);
}

void
verdict_memory_gather(struct verdict_facts *facts, const bool *is_meant, uint64_t end_ns)
{
	struct verdict_memory *memory = &facts->memory;
	uint64_t parts[PARTS] = { 0 };
	uint64_t last_bytes = 0;

	for (size_t i = 0; i < facts->model->process_count; i++) {
		const struct model_process *process = &facts->model->processes[i];

		if (!is_meant[i] || process->resident == NULL)
			continue;
		add_process(facts, process, parts);
		add_inherited(facts->model, process,
		              process->parent >= 0 && is_meant[process->parent] &&
		                  facts->model->processes[process->parent].resident != NULL,
		              parts);
		if (process->resident->part_bytes[KMEM_RESIDENT_INHERITED] > memory->inherited_bytes)
			find_inherited(memory, facts->model, process);

		last_bytes += last_seen_bytes(facts, process);
		memory->sample_bytes += process->resident->resident_bytes;
		if (end_ns > process->resident->monotonic_ns && !process->is_finalizing)
			memory->age_ns = amount_greater(memory->age_ns, end_ns - process->resident->monotonic_ns);
	}
	if (memory->sample_bytes == 0)
		return;
	parts[PART_LATER] = last_bytes - memory->sample_bytes;
	for (unsigned i = 0; i < PARTS; i++)
		memory->bytes += parts[i];
	memory->lines_bytes = parts[PART_LINES] + parts[PART_SHARED];
	memory->own_bytes = parts[PART_OWN];
	memory->program_bytes = parts[PART_PROGRAM];
	memory->files_bytes = parts[PART_FILES];
	memory->written_bytes = parts[PART_WRITTEN] = written_bytes(facts);
	parts[PART_FILES] -= memory->written_bytes;
	/* Of whoever the kernel killed for the container's limit all that was charged there is the question. */
	if (facts->cgroup_kills != 0 && facts->charged_bytes > memory->bytes && facts->limit_bytes != UINT64_MAX) {
		uint64_t beyond_bytes = facts->charged_bytes - memory->bytes;

		memory->bytes = facts->charged_bytes;
		add_container(facts->model, memory, beyond_bytes, parts);
		memory->is_of_container = true;
		memory->memory_files_bytes = parts[PART_MEMORY_FILES];
		memory->others_bytes = parts[PART_OTHERS];
	}
	memory->stacks_bytes = parts[PART_STACKS];
	memory->starter = memory->stacks_bytes >= WORTH_BYTES ? find_starter(facts->model, is_meant, memory->stacks_bytes)
	                                                      : NULL;
	keep_parts(memory, parts);
	for (size_t i = 0; i < facts->model->process_count; i++) {
		const struct model_process *process = &facts->model->processes[i];
		struct verdict_freed freed = verdict_freed_of(facts->model, process);

		if ((!is_meant[i] && process != facts->process) || freed.freed_bytes <= memory->freed.freed_bytes)
			continue;
		memory->freed = freed;
		if (end_ns > process->resident->monotonic_ns && !process->is_finalizing)
			memory->freed.age_ns = end_ns - process->resident->monotonic_ns;
	}
	if (memory->files_bytes >= WORTH_BYTES)
		find_files(facts);
	if (was_freed_by_ending(facts))
		memory->freed = (struct verdict_freed){ .freed_bytes = 0 };
	if (memory->freed.freed_bytes != 0)
		find_pinning(facts);
}

uint64_t
verdict_end_resident_bytes(const struct verdict_facts *facts)
{
	const struct model_process *process = facts->process;
	uint64_t most_bytes = process->launcher != NULL ? process->launcher->max_resident_bytes : 0;
	bool is_over = facts->end == VERDICT_END_OK || facts->end == VERDICT_END_FAILED;

	return is_over && process->resident != NULL &&
	               process->resident->resident_bytes < most_bytes - most_bytes / CHANGED_PART
	           ? process->resident->resident_bytes
	           : 0;
}

bool
verdict_was_mostly_released(const struct verdict_facts *facts)
{
	const struct verdict_memory *memory = &facts->memory;

	return facts->live_bytes < memory->lines_bytes / 2 && memory->lines_bytes >= memory->bytes / EXPLAINING_PART;
}

bool
verdict_holds_a_third(const struct verdict_facts *facts, uint64_t bytes)
{
	/* Code of libraries is not what anybody asks about: PyTorch brings 400 MiB. */
	return bytes >= amount_less(facts->memory.bytes, facts->memory.program_bytes) / EXPLAINING_PART;
}

/* Does the first line explain what was in memory? */
bool
verdict_is_explained(const struct verdict_facts *facts)
{
	const struct verdict_memory *memory = &facts->memory;
	uint64_t line_bytes = facts->top_live.live_bytes;

	return memory->bytes < WORTH_BYTES ||
	       (verdict_holds_a_third(facts, line_bytes) && line_bytes >= memory->memory_files_bytes);
}

bool
verdict_has_bar(const struct verdict_facts *facts)
{
	return facts->memory.bytes != 0 && facts->end != VERDICT_END_OK && facts->end != VERDICT_END_ELSEWHERE &&
	       facts->refused == NULL && facts->asked.name == NULL && facts->process->state != KMEM_STATE_EXEC_REPLACED;
}
