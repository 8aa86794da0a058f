/*
 * verdict_memory.c - where was what was in memory, and is the first line what filled it?
 *
 * Lines are of what was asked for and is still live. Memory is also filled by what was freed and malloc keeps, by libraries that
 * manage their own, by files, by other processes of the container, by the recorder. A line that holds less than a third of all that
 * is never named before it was said where the rest is. What was asked for and never touched fills nothing.
 *
 * When failing  without a look at the resident set nothing is said: then everything that was asked for counts as memory.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text_clean.h"
#include "base/units.h"
#include "model/model_library.h"
#include "verdict/verdict_tell.h"

#define EXPLAINING_PART 3                // of what was in memory: a line with less does not explain it
#define WORTH_BYTES (UINT64_C(64) << 20) // in memory; less is the program and its libraries
#define TOLD_PART 20                     // of what was in memory: smaller parts are summed up
#define TOLD_MAX 5
#define UNTOUCHED_BYTES (UINT64_C(16) << 20)
#define UNTOUCHED_PART 8 // of what was asked for
#define OLD_PART 8       // memory differs by that much: the look was of another time
#define OLD_NS UINT64_C(1000000000)

/* ---- what is in memory of lines ---- */

struct ranked *
verdict_rank(const struct verdict_facts *facts, const struct ranking *in_memory, const struct ranking *asked)
{
	struct ranked *ranked = rank_run(facts->model, facts->refused != NULL ? asked : in_memory, NULL);

	for (size_t i = 0; i < ranked->line_count; i++) {
		struct rank_line *line = &ranked->lines[i];

		line->live_bytes = verdict_less_untouched(facts, line->live_bytes, line->untouched_bytes);
		line->leaking_bytes = verdict_less_untouched(facts, line->leaking_bytes, line->leaking_untouched_bytes);
		line->peak_bytes = verdict_less_untouched(facts, line->peak_bytes, line->untouched_bytes);
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

void
verdict_find_untouched(struct verdict_facts *facts, const struct ranked *live)
{
	const struct rank_line *most = NULL;
	uint64_t asked_bytes = 0;

	for (size_t i = 0; i < live->line_count && facts->refused == NULL; i++) {
		const struct rank_line *line = &live->lines[i];

		if (rank_is_address_space(facts->model->domains[line->domain].name))
			continue;
		asked_bytes += line->live_bytes + line->untouched_bytes;
		if (most == NULL || line->untouched_bytes > most->untouched_bytes)
			most = line;
	}
	if (most != NULL && most->untouched_bytes >= UNTOUCHED_BYTES &&
	    most->untouched_bytes >= asked_bytes / UNTOUCHED_PART)
		facts->untouched = *most;
}

void
verdict_tell_untouched(const struct verdict_facts *facts, struct verdict *verdict)
{
	const struct rank_line *line = &facts->untouched;
	char asked[UNITS_TEXT_BYTES];
	char held[UNITS_TEXT_BYTES];
	char place[PLACE_TEXT_BYTES];

	say(verdict, " Of the %s that %s asked for, only %s %s in memory.",
	    units_bytes(line->live_bytes + line->untouched_bytes, asked), verdict_line_text(line, place),
	    units_bytes(line->live_bytes, held), facts->end == VERDICT_END_RUNNING ? "is" : "was");
}

/* ---- where it is ---- */

enum part {
	PART_LINES,
	PART_FREED,
	PART_MALLOC,
	PART_RESERVED,
	PART_FILES,
	PART_PROGRAM,
	PART_OWN,
	PART_INHERITED,
	PART_STACKS,
	PART_OTHER,
	PART_LATER,
	PART_OTHERS,
	PARTS
};
static_assert((int)PARTS <= VERDICT_PARTS_MAX, "");

static const char *const part_names[PARTS] = {
	[PART_LINES] = "live at recorded lines",
	[PART_FREED] = "freed memory that malloc keeps",
	[PART_MALLOC] = "malloc's, beyond what is live", // nobody looked at its pages
	[PART_RESERVED] = "memory that libraries manage themselves, of which no line is known",
	[PART_FILES] = "pages of files and shared memory",
	[PART_PROGRAM] = "the program and its libraries",
	[PART_OWN] = "what recording takes",
	[PART_INHERITED] = "memory from before the fork",
	[PART_STACKS] = "stacks of threads",
	[PART_OTHER] = "memory that is not attributed",
	[PART_LATER] = "newer than the last look at its mappings",
	[PART_OTHERS] = "other processes, and pages of files",
};

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

static uint64_t
live_of(const struct model *model, const char *name)
{
	for (size_t i = 0; i < model->domain_count; i++) {
		if (strcmp(model->domains[i].name, name) == 0)
			return model->domains[i].live_bytes -
			       lesser(model->domains[i].live_bytes, model->domains[i].untouched_bytes);
	}
	return 0;
}

/*
 * Of one process. What malloc keeps was seen at the look; where nobody looked at its pages it is what it has more than is live at the
 * end, which can be told of a session of one process alone.
 */
static void
add_process(const struct verdict_facts *facts, const struct model_process *process, uint64_t parts[PARTS])
{
	const uint64_t *look = process->resident->part_bytes;
	uint64_t malloc_bytes = look[KMEM_RESIDENT_BRK] + look[KMEM_RESIDENT_HEAP];
	bool is_alone = facts->model->process_count == 1;
	uint64_t library_bytes = is_alone ? lesser(live_of(facts->model, "library"), look[KMEM_RESIDENT_RESERVED]) : 0;
	uint64_t shared_bytes = is_alone ? lesser(live_of(facts->model, "shared"), look[KMEM_RESIDENT_SHARED]) : 0;
	uint64_t freed_bytes = lesser(verdict_freed_at_sample(&process->heap_sample), malloc_bytes);
	uint64_t beyond_bytes = 0;
	struct verdict_freed freed = verdict_freed_of(facts->model, process);

	if (freed.has_fallen) // since the look
		freed_bytes = lesser(greater(freed.freed_bytes, freed_bytes), malloc_bytes);

	if (process->heap_sample.sampled_pages == 0 && is_alone && freed_bytes == 0)
		// malloc's own words
		beyond_bytes = malloc_bytes - lesser(malloc_bytes, live_of(facts->model, "heap") / 16 * 17);
	parts[PART_MALLOC] += beyond_bytes;
	parts[PART_LINES] += malloc_bytes - freed_bytes - beyond_bytes + look[KMEM_RESIDENT_MMAP] +
	                     look[KMEM_RESIDENT_PYTHON_ARENA] + library_bytes + shared_bytes;
	parts[PART_FREED] += freed_bytes;
	parts[PART_RESERVED] += look[KMEM_RESIDENT_RESERVED] - library_bytes;
	parts[PART_OWN] += look[KMEM_RESIDENT_OWN];
	parts[PART_STACKS] += look[KMEM_RESIDENT_STACKS];
	parts[PART_OTHER] += look[KMEM_RESIDENT_OTHER];
	/* Processes of one program have these together. */
	parts[PART_FILES] = greater(parts[PART_FILES],
	                            look[KMEM_RESIDENT_FILE] + look[KMEM_RESIDENT_SHARED] - shared_bytes);
	parts[PART_PROGRAM] = greater(parts[PART_PROGRAM], look[KMEM_RESIDENT_PROGRAM]);
	parts[PART_INHERITED] = greater(parts[PART_INHERITED], look[KMEM_RESIDENT_INHERITED]);
}

static int
compare_parts(const void *left, const void *right)
{
	uint64_t a = ((const struct verdict_part *)left)->bytes;
	uint64_t b = ((const struct verdict_part *)right)->bytes;

	return a < b   ? 1
	       : a > b ? -1
	               : strcmp(((const struct verdict_part *)left)->name, ((const struct verdict_part *)right)->name);
}

static uint64_t
last_resident_bytes(const struct model_process *process)
{
	const struct kmem_heartbeat *last = process->heartbeat_count != 0
	                                        ? &process->heartbeats[process->heartbeat_count - 1]
	                                        : NULL;

	return last != NULL && last->monotonic_ns >= process->resident->monotonic_ns ? last->resident_bytes : 0;
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
		last_bytes += greater(last_resident_bytes(process), process->resident->resident_bytes);
		memory->sample_bytes += process->resident->resident_bytes;
		if (end_ns > process->resident->monotonic_ns && !process->is_finalizing)
			memory->age_ns = greater(memory->age_ns, end_ns - process->resident->monotonic_ns);
	}
	if (memory->sample_bytes == 0)
		return;
	parts[PART_LATER] = memory->later_bytes = last_bytes - memory->sample_bytes;
	for (unsigned i = 0; i < PARTS; i++)
		memory->bytes += parts[i];
	memory->process_bytes = memory->bytes;
	memory->lines_bytes = parts[PART_LINES];
	/* Of whoever the kernel killed for the container's limit all that was charged there is the question. */
	if (facts->cgroup_kills != 0 && facts->charged_bytes > memory->bytes && facts->limit_bytes != UINT64_MAX) {
		parts[PART_OTHERS] = facts->charged_bytes - memory->bytes;
		memory->bytes = facts->charged_bytes;
		memory->is_of_container = true;
	}
	for (unsigned i = 0; i < PARTS; i++) {
		if (parts[i] != 0)
			memory->parts[memory->part_count++] = (struct verdict_part){ part_names[i], parts[i] };
	}
	qsort(memory->parts, memory->part_count, sizeof(memory->parts[0]), compare_parts);
	for (size_t i = 0; i < facts->model->process_count; i++) {
		const struct model_process *process = &facts->model->processes[i];
		struct verdict_freed freed = verdict_freed_of(facts->model, process);

		if ((!is_meant[i] && process != facts->process) || freed.freed_bytes <= memory->freed.freed_bytes)
			continue;
		memory->freed = freed;
		if (end_ns > process->resident->monotonic_ns && !process->is_finalizing)
			memory->freed.age_ns = end_ns - process->resident->monotonic_ns;
	}
	if (memory->freed.freed_bytes != 0)
		verdict_find_pinning(facts);
}

/* ---- words ---- */

/* Does the first line explain what was in memory? */
static bool
is_explained(const struct verdict_facts *facts)
{
	return facts->memory.bytes < WORTH_BYTES || facts->top_live.live_bytes >= facts->memory.bytes / EXPLAINING_PART;
}

/* Also where the look is of another time than what is told beside it. */
static void
say_age(const struct verdict_memory *memory, struct verdict *verdict)
{
	char bytes[UNITS_TEXT_BYTES];

	if (memory->age_ns < OLD_NS || memory->later_bytes < memory->sample_bytes / OLD_PART)
		return;
	say(verdict, " That look was %.1f s before the end, when %s was in memory.", (double)memory->age_ns / 1e9,
	    units_bytes(memory->process_bytes - memory->later_bytes, bytes));
}

static void
say_parts(const struct verdict_facts *facts, struct verdict *verdict)
{
	const struct verdict_memory *memory = &facts->memory;
	uint64_t rest_bytes = 0;
	char bytes[UNITS_TEXT_BYTES];

	(void)units_bytes(memory->bytes, bytes);
	if (memory->is_of_container)
		say(verdict, " Of the %s that the container had in use at the last look", bytes);
	else
		say(verdict, " Of the %s that %s in memory at the last %s", bytes,
		    facts->live_count > 1 ? "its processes had" : "it had", memory->later_bytes != 0 ? "heartbeat" : "look");
	for (size_t i = 0; i < memory->part_count; i++) {
		if (i >= TOLD_MAX || (i != 0 && memory->parts[i].bytes < memory->bytes / TOLD_PART)) {
			rest_bytes += memory->parts[i].bytes;
			continue;
		}
		say(verdict, "%s %s was %s", i == 0 ? "," : ";", units_bytes(memory->parts[i].bytes, bytes),
		    memory->parts[i].name);
	}
	if (rest_bytes != 0)
		say(verdict, "; %s was the rest", units_bytes(rest_bytes, bytes));
	say(verdict, ".");
	say_age(memory, verdict);
	/* Lines are told as they are at the end: of what was there at the look that may be the smaller part. */
	if (facts->live_bytes < memory->lines_bytes / 2 && memory->lines_bytes >= memory->bytes / EXPLAINING_PART)
		say(verdict, " Most of what lines held then was released afterwards.");
	else if (facts->top_live.site_count != 0)
		say(verdict, " No line holds a third of it.");
}

void
verdict_tell_memory(const struct verdict_facts *facts, struct verdict *verdict)
{
	if (!is_explained(facts))
		say_parts(facts, verdict);
	verdict_tell_freed(facts, verdict);
}

/* ---- what to do ---- */

/* The heap of one of the processes is another allocator's, which stands before the recorder: what the note says of it; NULL = of none. */
static const char *
hidden_heap(const struct model *model)
{
	for (size_t i = 0; i < model->process_count; i++) {
		for (size_t n = 0; n < model->processes[i].note_count; n++) {
			if (strncmp(model->processes[i].notes[n], KMEM_NOTE_HIDDEN_HEAP, sizeof(KMEM_NOTE_HIDDEN_HEAP) - 1) == 0)
				return model->processes[i].notes[n];
		}
	}
	return NULL;
}

void
verdict_tell_hidden_heap(const struct verdict_facts *facts, struct verdict *verdict)
{
	if (hidden_heap(facts->model) != NULL)
		say(verdict,
		    " The heap is missing in these figures: another malloc stands before the recorder's (see the notes).");
}

void
verdict_advise_hidden_heap(const struct verdict_facts *facts, struct verdict *verdict)
{
	const char *note = hidden_heap(facts->model);
	char *next;

	if (note == NULL || strstr(note, "LD_PRELOAD") == NULL) // it is part of the program
		return;
	next = memory_text(verdict->next);
	(void)snprintf(verdict->next, sizeof(verdict->next),
	               "put libkmemshim.so first in LD_PRELOAD and record it again: then the heap is in the figures%s%s",
	               strncmp(next, "nothing needs doing", 19) == 0 ? "" : "; or ",
	               strncmp(next, "nothing needs doing", 19) == 0 ? "" : next);
	free(next);
}

void
verdict_advise_library(const struct verdict_facts *facts, struct verdict *verdict)
{
	const struct model_site *site = facts->top_live.site_count != 0 ? facts->top_live.largest : NULL;
	const struct model_library_switch *one = site != NULL && site->library != NULL ? model_library_switch(site) : NULL;
	const struct model_runtime *runtime = site != NULL ? model_runtime_of(facts->model, site) : NULL;
	char place[PLACE_TEXT_BYTES];
	size_t used = strlen(verdict->next);

	if (one != NULL)
		(void)snprintf(verdict->next + used, sizeof(verdict->next) - used,
		               "; with `kmemshim run --system-allocators -- " VERDICT_COMMAND "` (%s) %s", one->setting,
		               one->effect);
	if (runtime == NULL || strstr(verdict->next, verdict_line_text(&facts->top_live, place)) == NULL)
		return;
	// its own code: who asked for the objects is not known
	if (site->where != NULL && site->where->kind == MODEL_FRAME_NATIVE)
		say_next(verdict, "%s", runtime->advice);
	else
		(void)snprintf(verdict->next + used, sizeof(verdict->next) - used, "; or %s", runtime->advice);
}
