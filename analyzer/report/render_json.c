/*
 * render_json.c - the report as JSON: one row per field. report.schema.json is made from the same rows (make schema).
 *
 * When failing  errors stay in the stream.
 */
#include <stdlib.h>
#include <uthash.h>

#include "base/hash_free.h"
#include "base/json_fields.h"
#include "base/memory.h"
#include "report/render.h"
#include "report/report.h"

#define SITES_INLINE_DEPTH 2 // one site is one line

/* is_known: NULL, or whether a struct is there at all. */
#define OBJECT(name_, is_known, meaning_) \
	static const struct json_object name_##_object = { #name_, meaning_, name_##_fields, sizeof(OWNER), is_known }

/* Is there a value? Asked of a member of the owner. */
#define JSON_KNOWN(name, condition)               \
	static bool name(const void *owner)           \
	{                                             \
		return ((const OWNER *)owner)->condition; \
	}

/* A member of the model's struct that the owner has as `of`. */
#define JSON_OF(member, meaning_, ...) JSON_FIELD_AS(#member, of.member, meaning_, __VA_ARGS__)

/* --- places ------------------------------------------------------------------------------------------------------ */

#define RELATION                                                                                                    \
	JSON_FIELD(                                                                                                     \
		relation,                                                                                                   \
		"Left out unless the thread had no Python frames and this one is another thread's. while: the user's line " \
		"at which a Python thread was seen last. started by: where the thread was created, or given this work.",    \
		.without = JSON_LEFT_OUT, .value_of = report_relation)

#define OWNER struct report_place
JSON_KNOWN(is_place_known, is_known)

static const struct json_field place_fields[] = {
	JSON_FIELD(
		file,
		"Source file as the program or its debug information names it, \"cell In[12]\" or \"cell #HASH\" for a cell of a notebook; \"\" when unknown."),
	JSON_FIELD(line, "Line, from 1; 0 when unknown."),
	JSON_FIELD(
		function,
		"Function; the qualified name where Python has it, demangled without arguments for C++ and Rust; \"\" when unknown."),
	JSON_FIELD(module, "Base name of the ELF object or of the Python file; \"\" when unknown."),
	JSON_FIELD(
		offset,
		"Left out unless the module is known and neither function nor file is: the address in the module, as addr2line takes it; of a call, the instruction behind it.",
		.without = JSON_LEFT_OUT),
	RELATION,
	JSON_FIELD(source,
	           "Text of the line, at most 200 bytes; null = not known, or the file on disk is not the one that ran.",
	           .without = JSON_NULL),
	JSON_FIELD(is_source_changed,
	           "The file is there, but it was changed after the program started: its line is not shown."),
	{ .name = NULL },
};
OBJECT(place, is_place_known, "A line of code.");
#undef OWNER

#define WHERE(meaning_) \
	JSON_FIELD_OF(JSON_OBJECT, "where", where, meaning_, .object = &place_object, .without = JSON_NULL)

/* --- verdict ----------------------------------------------------------------------------------------------------- */

#define OWNER struct report_pinning
static const struct json_field pinning_fields[] = {
	WHERE("The line."),
	JSON_FIELD_AS("sparse_page_bytes", pinned_bytes, "Pages that its blocks keep."),
	{ .name = NULL },
};
OBJECT(pinning, NULL, "A line of which few blocks keep many nearly empty pages in memory.");
#undef OWNER

#define OWNER struct verdict_part
static const struct json_field memory_part_fields[] = {
	JSON_FIELD(name, ""),
	JSON_FIELD(bytes, ""),
	{ .name = NULL },
};
OBJECT(memory_part, NULL, "A part of what was in memory.");
#undef OWNER

#define OWNER struct report_memory
JSON_KNOWN(is_much_freed, of.freed.freed_bytes != 0)

static const struct json_field most_fragmented_fields[] = {
	JSON_FIELD_AS("pid", fragmented_pid, "Process id."),
	JSON_FIELD_OF(
		JSON_OBJECTS, "kept_by", pinning,
		"Lines of which few blocks keep nearly empty pages, the most first, as far as pages were sampled; of all processes.",
		.object = &pinning_object, .count_offset = offsetof(OWNER, pinning_count)),
	{ .name = NULL },
};
OBJECT(most_fragmented, is_much_freed,
       "The process that freed_resident_bytes is of. All its figures are in processes[].fragmentation.");

static const struct json_field memory_fields[] = {
	JSON_OF(bytes, "Sum of the parts."),
	JSON_FIELD_AS("sampled_bytes", of.sample_bytes,
	              "Of these, what samples of the mappings saw; the rest was only seen in sums, later or elsewhere."),
	JSON_OF(age_ns, "From the oldest of these samples to the end, or to the last heartbeat."),
	JSON_FIELD_AS(
		"freed_resident_bytes", of.freed.freed_bytes,
		"Freed memory that malloc did not give back, where it is a quarter of what was in memory and 32 MiB; else 0. Of the process where it is most."),
	JSON_FIELD_AS("freed_empty_bytes", of.freed.empty_bytes,
	              "Of that, pages without a block: malloc_trim() gives these back."),
	JSON_FIELD_WHOLE(JSON_OBJECT, "fragmentation", "null = freed_resident_bytes is 0.",
	                 .object = &most_fragmented_object, .without = JSON_NULL),
	JSON_FIELD_OF(JSON_OBJECTS, "parts", of.parts, "The largest first.", .object = &memory_part_object,
	              .count_offset = offsetof(OWNER, of.part_count)),
	{ .name = NULL },
};
OBJECT(
	memory, NULL,
	"What was in memory of the processes that ran at the end, when it was sampled last. Of a process that the kernel killed for its container's limit: of all that was charged there.");
#undef OWNER

#define OWNER struct report_finding
static const struct json_field finding_fields[] = {
	JSON_FIELD_OF(JSON_ENUM, "kind", kind, "What it is about; analyzer/verdict/findings.h says more.",
	              .value_of = report_finding_kind),
	JSON_FIELD(bytes, "The amount that it is about; 0 = none."),
	JSON_FIELD(share_ppm, "Of the whole that its sentence names, in parts per million; 0 = none."),
	JSON_FIELD(where, "The line of code, as texts write it; null = none.", .without = JSON_NULL),
	JSON_FIELD(confidence, "How far the evidence carries.", .value_of = report_confidence),
	{ .name = NULL },
};
OBJECT(finding, NULL, "What the facts amount to; one or two sentences of the text.");
#undef OWNER

#define OWNER struct report_verdict
static const struct json_field verdict_fields[] = {
	JSON_FIELD(
		cause,
		"container-limit: killed because a cgroup's limit was reached. machine-memory: killed because the machine was out of memory. shm-full: SIGBUS with a full /dev/shm. device-memory: ended after a device refused memory. request-refused: ended after a host request was refused. low-memory-daemon: killed by another program while memory was low. time-up: its limit of processor time was used up, or timeout(1) ended it. file-size-limit: SIGXFSZ. stack-overflow: it crashed where its stack could not grow, as the kernel's log shows. aborted: SIGABRT. crashed, signal, failed, exited: as the wait status says; the findings tell how near the limits were. child-killed: the program did well, or was stopped by a signal, but the kernel killed a child of it for memory. gone: no clean-exit mark, and nobody saw how. machine-restarted: this boot began right after its last sign of life. hardware: a log says that memory or a GPU failed under it. not-closed: another boot or machine, nothing can be said.",
		.value_of = report_cause),
	JSON_FIELD(confidence, "How far the evidence carries.", .value_of = report_confidence),
	JSON_FIELD(text, "A paragraph for a person."),
	JSON_FIELD(next, "One thing to do."),
	JSON_FIELD_OF(JSON_OBJECTS, "findings", findings, "What text says, in its order.", .object = &finding_object,
	              .is_pointer = true, .count_offset = offsetof(OWNER, finding_count)),
	JSON_FIELD_OF(JSON_TEXTS, "advice", advice, "Names of what next says, in its order.",
	              .count_offset = offsetof(OWNER, advice_count)),
	JSON_FIELD_OF(JSON_OBJECT, "memory", memory, "null = memory was never sampled.", .object = &memory_object,
	              .is_pointer = true, .without = JSON_NULL),
	JSON_FIELD_AS("nonresident_bytes", untouched_bytes,
	              "Requested and not in memory, if the text mentions it; else 0."),
	JSON_FIELD(
		domain,
		"Only of `why --domain`: the domain that text and next are about. cause and confidence are the program's.",
		.without = JSON_LEFT_OUT),
	{ .name = NULL },
};
OBJECT(verdict, NULL, "Why the program ended.");
#undef OWNER

/* --- totals ------------------------------------------------------------------------------------------------------ */

#define OWNER struct device_part
static const struct json_field device_part_fields[] = {
	JSON_FIELD(name, ""),
	JSON_FIELD(live_bytes, ""),
	{ .name = NULL },
};
OBJECT(device_part, NULL, "A part of what is live on a device: tensors, what PyTorch's cache keeps, a library.");
#undef OWNER

#define PARTS(meaning_)                                                                        \
	JSON_FIELD_OF(JSON_OBJECTS, "parts", parts.parts, meaning_, .object = &device_part_object, \
	              .count_offset = offsetof(OWNER, parts.part_count))

#define ESTIMATE                                                                                                                                                             \
	JSON_FIELD_AS(                                                                                                                                                           \
		"is_estimated", estimate.is_estimated,                                                                                                                               \
		"Bytes are estimates: small Python objects (domain python/object; their counts are, too), what they leave of arenas (python/arena), or a library's own allocator."), \
		JSON_FIELD_AS(                                                                                                                                                       \
			"error_bytes", estimate.error_bytes,                                                                                                                             \
			"In 95 of 100 cases live_bytes is right to within this. null = exact, or the error is not known.",                                                               \
			.without = JSON_NULL),                                                                                                                                           \
		JSON_FIELD_AS("peak_error_bytes", estimate.peak_error_bytes, "The same of peak_bytes.", .without = JSON_NULL)
#define SAMPLES                                                                                                    \
	JSON_FIELD_AS(                                                                                                 \
		"samples", estimate.samples,                                                                               \
		"Of domain python/object: live objects that were sampled, from which live_bytes is estimated; else null.", \
		.without = JSON_NULL)

#define OWNER struct report_domain
static const struct json_field domain_fields[] = {
	JSON_OF(
		live_bytes,
		"Requested bytes not released at the end (or at the moment when Python began to shut down), all processes; without what children inherited."),
	JSON_OF(live_count, "Number of those blocks."),
	JSON_OF(peak_bytes,
	        "Highest live bytes: of the process when there is one, else the sum of each process's own peak."),
	JSON_OF(allocated_bytes, "Sum of all requested bytes, released or not."),
	JSON_OF(allocated_count, "Number of allocations."),
	JSON_OF(freed_bytes, "Sum of all released bytes."),
	JSON_OF(freed_count, "Number of releases."),
	JSON_OF(inherited_bytes, "Live in parents at fork, as seen by their children; in no other figure."),
	JSON_OF(
		concurrent_peak_bytes,
		"Highest sum of the peaks of processes that ran at the same time, or may have: nobody knows when a killed process ended. peak_bytes is the sum over all."),
	JSON_FIELD_AS("concurrent_live_bytes", of.together_live_bytes, "The same of what was live at their ends."),
	JSON_OF(peak_resident_bytes, "Resident set at the last heartbeat before the peak; 0 = not seen."),
	JSON_FIELD_AS("nonresident_bytes", of.untouched_bytes,
	              "Of live_bytes, not in memory when the resident set was sampled last; the sum of its sites'."),
	JSON_OF(
		returned_bytes,
		"Of live mappings, given back to the system by madvise, counted at each such call; they are live all the same."),
	ESTIMATE,
	JSON_FIELD(lost_sites, "Allocations of this domain counted without their stack: no room for more stacks."),
	JSON_FIELD(lost_stacks, "Allocations of this domain whose stack could not be taken."),
	JSON_FIELD_AS(
		"is_at_refused_request", of.is_at_refusal,
		"Of a device, or its tensors: live figures are those of the moment when it refused a request that ended a process. What that process released afterwards counts as live."),
	PARTS("Of a device (cuda:N): what its live bytes are made of, largest first. Empty for other domains."),
	{ .name = NULL },
};
OBJECT(domain, NULL, "Totals of one domain.");
#undef OWNER

static void
put_totals(struct json_write *json, const void *owner)
{
	const struct report *report = owner;

	for (size_t i = 0; i < report->domain_count; i++)
		json_object_write(json, report->domains[i].of.name, &domain_object, &report->domains[i]);
}

/* --- losses ------------------------------------------------------------------------------------------------------ */

typedef uint64_t report_losses[KMEM_LOSS_COUNT];
#define OWNER report_losses
#define LOSS(name_, number, meaning_)                                                               \
	{                                                                                               \
		.name = name_, .meaning = meaning_, .kind = JSON_U64, .offset = (number) * sizeof(uint64_t) \
	}
static const struct json_field losses_fields[] = {
	LOSS("lost_events", KMEM_LOST_EVENTS, "Allocations that were seen but not recorded, because no table had room."),
	LOSS("lost_event_bytes", KMEM_LOST_EVENT_BYTES, "Requested bytes of lost_events."),
	LOSS("lost_sites", KMEM_LOST_SITES,
	     "Allocations counted at the one site that stands for every stack for which there was no room."),
	LOSS("lost_stacks", KMEM_LOST_STACKS, "Allocations whose stack could not be taken."),
	LOSS(
		"lost_unknown_frees", KMEM_LOST_UNKNOWN_FREES,
		"Releases of addresses that were never seen given out: blocks from before the recording. No figure is wrong for it."),
	LOSS("lost_missed_frees", KMEM_LOST_MISSED_FREES, "Addresses given out again without a release that was seen."),
	LOSS("lost_reentrant", KMEM_LOST_REENTRANT,
	     "Allocations made while the thread was inside the recorder (signal handlers)."),
	LOSS("lost_unwinds", KMEM_LOST_UNWINDS, "Native stacks that ended before the outermost frame."),
	LOSS("lost_python_frames", KMEM_LOST_PYTHON_FRAMES, "Python frames that failed a validity check."),
	LOSS(
		"lost_python_text", KMEM_LOST_PYTHON_TEXT,
		"How often a Python function on a stack had no room for its name or lines; one function may be counted more than once."),
	LOSS("lost_modules", KMEM_LOST_MODULES, "Shared objects that could not be described."),
	LOSS("lost_teardown_events", KMEM_LOST_TEARDOWN_EVENTS,
	     "Events, mostly releases, after Python began to shut down; left out on purpose."),
	LOSS("lost_growth", KMEM_LOST_GROWTH, "How often the capture could not grow."),
	LOSS("lost_fallback_unwinds", KMEM_LOST_FALLBACK_UNWINDS,
	     "Stacks that needed the slow unwinder; a cost, not a loss."),
	LOSS(
		"lost_native_paths", KMEM_LOST_NATIVE_PATHS,
		"Lines of Python with thousands of native stacks; their further small blocks are listed without native frames."),
	LOSS(
		"lost_inherited_frees", KMEM_LOST_INHERITED_FREES,
		"Releases, in forked children, of blocks that they inherited; not a loss: they are in no figure of the child."),
	LOSS(
		"lost_contexts", KMEM_LOST_CONTEXTS,
		"Contexts of a device's driver beyond the 64 that are distinguished. What they held when they ended is still counted."),
	{ .name = NULL },
};
OBJECT(losses, NULL, "What could not be recorded.");
#undef OWNER

#define LOSSES(member, meaning_) JSON_FIELD_OF(JSON_OBJECT, "losses", member, meaning_, .object = &losses_object)

/* --- processes --------------------------------------------------------------------------------------------------- */

#define OWNER struct report_built
static const struct json_field built_fields[] = {
	JSON_FIELD_OF(JSON_KEY, "key", key, "As in sites."),
	JSON_FIELD(live_bytes, "When the parent forked."),
	JSON_FIELD(copied_bytes,
	           "Of these, in pages that the child copied; only of small Python objects, 0 = none, or not known. "
	           "All lines together: no more than copied_bytes of the process."),
	JSON_FIELD(is_estimated, "copied_bytes is estimated from samples."),
	JSON_FIELD(error_bytes, "How far copied_bytes may be off by chance, in 95 of 100 cases.", .without = JSON_NULL),
	{ .name = NULL },
};
OBJECT(built, NULL, "A call site of the parent.");
#undef OWNER

#define OWNER struct model_heap_sample
JSON_KNOWN(are_pages_sampled, sampled_pages != 0)

static const struct json_field heap_pages_fields[] = {
	JSON_FIELD(sampled_pages, "How many pages were sampled."),
	JSON_FIELD(bytes, "All of them."),
	JSON_FIELD(empty_bytes, "Pages without a live block: malloc_trim() gives them back."),
	JSON_FIELD(sparse_bytes, "Pages of which live blocks fill less than half."),
	JSON_FIELD(sparse_live_bytes, "Requested bytes of the blocks in these."),
	{ .name = NULL },
};
OBJECT(heap_pages, are_pages_sampled,
       "Malloc's pages that were in memory then, without those of blocks of 1 MiB and more, from a sample.");
#undef OWNER

#define OWNER struct report_fragmentation
JSON_KNOWN(is_fragmented, of.freed_bytes != 0)

static const struct json_field fragmentation_fields[] = {
	JSON_OF(freed_bytes, "Freed and still in memory."),
	JSON_FIELD(live_bytes, "The rest of heap_bytes, with malloc's own words."),
	JSON_OF(heap_bytes, "Malloc's pages in memory, without those of blocks of 1 MiB and more."),
	JSON_OF(resident_bytes, "Of the process, then."),
	JSON_FIELD(share_ppm, "freed_bytes of resident_bytes, in parts per million."),
	JSON_OF(
		empty_bytes,
		"Pages without a live block: malloc_trim() gives them back. As of the sample; 0 too where pages were not sampled, or memory grew since."),
	JSON_OF(sparse_bytes, "Pages of which live blocks fill less than half."),
	JSON_OF(sparse_live_bytes, "Requested bytes of the blocks in these."),
	JSON_FIELD_AS("is_after_last_sample", of.is_later,
	              "From sums at the last heartbeat: what is live fell, or memory grew, after the last sample."),
	{ .name = NULL },
};
OBJECT(
	fragmentation, is_fragmented,
	"Freed memory that malloc did not give back, where it is a quarter of what the process had in memory and 32 MiB. When it was sampled last or, where more is known by that, at the last heartbeat.");
#undef OWNER

#define OWNER struct report_process
JSON_KNOWN(is_resident_sampled, resident_parts != NULL)
JSON_KNOWN(has_exited, exit_status >= 0)
JSON_KNOWN(has_limit, limit_bytes != UINT64_MAX)

static const struct json_field resident_fields[] = {
	JSON_FIELD_AS("bytes", resident_sampled_bytes, "Sum of the parts."),
	JSON_FIELD_AS(
		"age_ns", resident_age_ns,
		"From that sample to the end of the process or, where that is not known, to the last heartbeat, which saw resident_bytes; 0 too when all figures are of the moment before Python ended."),
	JSON_FIELD_OF(
		JSON_COUNTERS, "parts", resident_parts,
		"By what lies there: brk, heap (malloc's other mappings), mmap, reserved, python/arena, shared, file, program, stacks, kmemshim, inherited (from before the fork), not attributed.",
		.is_pointer = true, .counters = KMEM_RESIDENT_PARTS, .name_of = report_resident_name),
	JSON_FIELD_OF(
		JSON_COUNTERS, "kmemshim", of.own_bytes,
		"The part kmemshim by use: addresses (which line each block is of), sites, stack rules, threads, capture (pages of the file), library (and what is small).",
		.counters = KMEM_OWN_PARTS, .name_of = report_own_name),
	JSON_FIELD_OF(JSON_OBJECT, "heap_pages", of.heap_sample, "null = pages were not sampled.",
	              .object = &heap_pages_object, .without = JSON_NULL),
	{ .name = NULL },
};
OBJECT(
	resident, is_resident_sampled,
	"What the resident set was made of when its mappings were sampled last, which may be older than resident_bytes.");

static const char *const states[] = { "starting", "running", "exited",  "exec-replaced",
	                                  "signal",   "gone",    "unknown", NULL };

#undef OWNER
#define OWNER struct report_steps
static bool
are_there_steps(const void *owner)
{
	return ((const OWNER *)owner)->count != 0;
}

static const struct json_field steps_fields[] = {
	JSON_FIELD(count, "How many were begun."),
	JSON_FIELD(
		source,
		"program: it said so (kmemshim_step()). loop: rounds of the outermost loop that was seen. cells: of a notebook.",
		.value_of = report_step_source),
	JSON_FIELD(is_estimated, "count is from samples."),
	JSON_FIELD(file, "Of a loop: source file of the line that comes again; \"\" when unknown."),
	JSON_FIELD(line, "Its line; 0 when unknown."),
	JSON_FIELD(function, "Its function; \"\" when unknown."),
	JSON_FIELD(ns, "Duration of one, on average, in nanoseconds; null = not known.", .without = JSON_NULL),
	{ .name = NULL },
};
OBJECT(steps, are_there_steps, "What the process does again and again.");
#undef OWNER

#define OWNER struct report_mark
static const struct json_field mark_fields[] = {
	JSON_OF(sequence, "Its number in the process; --at takes it as #NUMBER."),
	JSON_OF(name, "As it was given, at most 55 bytes; \"\" when it has none."),
	JSON_OF(is_cut, "The name was longer."),
	JSON_FIELD(
		kind,
		"program: kmemshim_mark() or kmemshim_snapshot(). outside: kmemshim mark or snapshot. guard: the guard was passed. refused: a request was refused. even: run --snapshots. high-water: live bytes were the highest so far.",
		.value_of = report_mark_kind),
	JSON_FIELD(age_ns, "Since the start of the process, nanoseconds."),
	JSON_OF(step, "Steps that were begun until then."),
	JSON_OF(live_bytes, "Requested bytes live then: heap, mmap, shared, python/arena and library, about."),
	JSON_OF(resident_bytes, "Resident set at the heartbeat before; null = not known.", .without = JSON_NULL),
	JSON_OF(is_snapshot, "What each line held then is in the capture."),
	JSON_OF(left_out, "Of that, small sites that had no room."),
	{ .name = NULL },
};
OBJECT(mark, NULL, "A moment with a name.");
#undef OWNER

#define OWNER struct report_timeline_line
static const struct json_field timeline_line_fields[] = {
	JSON_FIELD(domain, "Domain."),
	JSON_FIELD_OF(JSON_OBJECT, "where", where, "Line of the user's code; null = not known.", .object = &place_object,
	              .without = JSON_NULL),
	JSON_FIELD(is_import, "What an import left behind."),
	JSON_FIELD(import, "Of imports: the top-level module; null = none, or not known.", .without = JSON_NULL),
	{ .name = NULL },
};
OBJECT(timeline_line, NULL, "A line of code of the timeline.");
#undef OWNER

static bool
has_point_limit(const void *owner)
{
	return ((const struct report_point *)owner)->of.limit_bytes != UINT64_MAX;
}

#define OWNER struct report_point
static const struct json_field point_fields[] = {
	JSON_FIELD(age_ns, "Since the start of the process, nanoseconds."),
	JSON_OF(
		is_end,
		"What was live when the process was gone, or when it was read. If the end is not known, age_ns is that of the last sample."),
	JSON_OF(resident_bytes, "Resident set; null = not known.", .without = JSON_NULL),
	JSON_OF(limit_bytes, "Memory limit in force; null = none or not known.", .without = JSON_NULL,
	        .is_known = has_point_limit),
	JSON_OF(step, "Steps that were begun until then."),
	JSON_OF(volume_bytes, "Allocated until then, in all."),
	JSON_OF(live_bytes, "Requested bytes live: heap, mmap, shared, python/arena and library."),
	JSON_FIELD_OF(JSON_NUMBERS, "domain_bytes", domain_bytes, "Live bytes of each of the timeline's domains.",
	              .count_offset = offsetof(OWNER, domain_count)),
	JSON_FIELD_OF(JSON_NUMBERS, "line_bytes", line_bytes,
	              "Live bytes at each of its lines. Call sites that were not among the 32 largest then are left out.",
	              .count_offset = offsetof(OWNER, line_count)),
	{ .name = NULL },
};
OBJECT(point, NULL, "What the process held at a moment.");
#undef OWNER

static bool
has_points(const void *timeline)
{
	return ((const struct report_timeline *)timeline)->point_count != 0;
}

#define OWNER struct report_timeline
static const struct json_field timeline_fields[] = {
	JSON_FIELD_OF(JSON_TEXTS, "domains", domain_names, "Domains that held anything.",
	              .count_offset = offsetof(OWNER, domain_count)),
	JSON_FIELD_OF(JSON_OBJECTS, "lines", lines,
	              "Those that held most at any point, the most first: of host memory, then of devices.",
	              .object = &timeline_line_object, .is_pointer = true, .count_offset = offsetof(OWNER, line_count)),
	JSON_FIELD_OF(JSON_OBJECTS, "points", points, "Oldest first.", .object = &point_object, .is_pointer = true,
	              .count_offset = offsetof(OWNER, point_count)),
	{ .name = NULL },
};
OBJECT(timeline, has_points, "What the process held over time.");
#undef OWNER

#define OWNER struct report_process
static const struct json_field process_fields[] = {
	JSON_FIELD(pid, "Process id."),
	JSON_FIELD(parent_pid, "Process id of its parent at start."),
	JSON_OF(path, "Capture file."),
	JSON_OF(name, "Script, or base name of the executable."),
	JSON_FIELD(command, "Command line as a shell would take it; cut after 4096 bytes."),
	JSON_FIELD(directory, "Working directory at start."),
	JSON_FIELD(
		state,
		"signal: ended by a signal, seen by the launcher. gone: not alive, no clean-exit mark, same boot. unknown: not closed, another boot or machine.",
		.values = states),
	JSON_FIELD(exit_status, "Exit status; null = not known, or ended by a signal.", .without = JSON_NULL,
	           .is_known = has_exited),
	JSON_FIELD(signal, "Signal that ended it; null = none or not known.", .without = JSON_NULL),
	JSON_FIELD(python_version, "\"3.11.7\"; null = no interpreter.", .without = JSON_NULL),
	JSON_FIELD(tool_version, "Version of the recorder."),
	JSON_FIELD(start_realtime_ns, "Start, nanoseconds since 1970."),
	JSON_OF(live_bytes, "Requested bytes live: heap, mmap, shared, python/arena and library."),
	JSON_FIELD(
		peak_bytes,
		"The highest that was seen: its largest domain's peak, or the sum of what was live at a heartbeat or at the end."),
	JSON_OF(allocated_bytes, "Sum of all requested bytes, all domains."),
	JSON_FIELD_AS("refused_request_count", of.failed_count,
	              "Requests that the system refused, also those that are not in refused_requests any more."),
	JSON_OF(
		inherited_bytes,
		"Of a forked child: live in its parent at fork, in memory that is private to a process; in no other figure."),
	JSON_OF(
		copied_bytes,
		"Of inherited memory, copied by writing to it: at least so much, in whole pages, so that it may be more than inherited_bytes."),
	JSON_FIELD(is_copied_known, "False: it was not sampled before the process ended, or up to now."),
	JSON_FIELD_OF(JSON_OBJECTS, "inherited_sites", built, "What held most of what it inherited, the most first.",
	              .object = &built_object, .is_pointer = true, .count_offset = offsetof(OWNER, of.built_count)),
	JSON_FIELD(resident_bytes, "Resident set at the last heartbeat; 0 = none."),
	JSON_FIELD_WHOLE(JSON_OBJECT, "resident", "null = it was never sampled.", .object = &resident_object,
	                 .without = JSON_NULL),
	JSON_FIELD_OF(JSON_OBJECT, "fragmentation", fragmentation, "null = it is less, or was never sampled.",
	              .object = &fragmentation_object, .without = JSON_NULL),
	JSON_FIELD(limit_bytes, "Memory limit in force at the last heartbeat; null = none or not known.",
	           .without = JSON_NULL, .is_known = has_limit),
	LOSSES(of.losses, "What this process could not record."),
	JSON_FIELD_OF(JSON_OBJECT, "steps", steps, "null = none were seen.", .object = &steps_object, .without = JSON_NULL),
	JSON_FIELD_OF(JSON_OBJECTS, "marks", marks, "Moments with a name, the oldest first.", .object = &mark_object,
	              .is_pointer = true, .count_offset = offsetof(OWNER, of.mark_count)),
	JSON_FIELD_OF(JSON_OBJECT, "timeline", timeline, "null = the capture has no points of that.",
	              .object = &timeline_object, .without = JSON_NULL),
	JSON_FIELD_OF(JSON_TEXTS, "notes", of.notes, "What the recorder had to say, one line each.",
	              .count_offset = offsetof(OWNER, of.note_count)),
	{ .name = NULL },
};
OBJECT(process, NULL, "One process image, or one forked child.");
#undef OWNER

/* --- refused requests --------------------------------------------------------------------------------------------- */

#define OWNER struct report_holder
static const struct json_field holder_fields[] = {
	JSON_FIELD(domain, "Domain."),
	JSON_FIELD(is_estimated, "live_bytes and live_count are estimated, as in lines."),
	JSON_FIELD(live_bytes, "Requested bytes that it held then."),
	JSON_FIELD(live_count, "Number of those blocks."),
	WHERE("The line; null when unknown."),
	{ .name = NULL },
};
OBJECT(holder, NULL, "A line of code when a device refused, or when the guard was passed.");
#undef OWNER

/* --- the guard --------------------------------------------------------------------------------------------------- */

#define OWNER struct verdict_forecast
static bool
is_foreseen(const void *owner)
{
	return ((const OWNER *)owner)->bytes_per_minute != 0;
}

static const struct json_field forecast_fields[] = {
	JSON_FIELD(bytes_per_minute, "How much the resident set grows."),
	JSON_FIELD(minutes, "Until the limit is reached, from the last heartbeat."),
	JSON_FIELD(steps, "Of the process, in these minutes, about; null = not known.", .without = JSON_NULL),
	JSON_FIELD(used_bytes, "In use of the limit at the last heartbeat."),
	JSON_FIELD(limit_bytes, "The limit in force."),
	{ .name = NULL },
};
OBJECT(forecast, is_foreseen, "A line accumulates, and memory grows steadily.");
#undef OWNER

#define OWNER struct report_guard
static bool
was_guard_passed(const void *owner)
{
	return ((const OWNER *)owner)->of.number != 0;
}

static const struct json_field guard_fields[] = {
	JSON_FIELD_AS("number", of.number, "How often this process passed it; what follows is of the last time."),
	JSON_FIELD(pid, "The process."),
	JSON_FIELD_AS("used_bytes", of.used_bytes, "In use of the limit then."),
	JSON_FIELD_AS("guard_bytes", of.guard_bytes, "Where the guard was."),
	JSON_FIELD_AS("limit_bytes", of.limit_bytes, "The limit in force; of addresses, what recording leaves of it."),
	JSON_FIELD(limit, "Whose limit.", .value_of = report_guard_limit),
	JSON_FIELD(action, "What was done.", .value_of = report_guard_action),
	JSON_FIELD(is_action_in_vain, "SIGINT is ignored there, or nobody could run the command."),
	JSON_FIELD_AS("request_bytes", of.request_bytes,
	              "Of the request that would have passed it; null = it was passed by what is in memory.",
	              .without = JSON_NULL),
	JSON_FIELD(before_end_ns, "From then to the end of the process, or to the last heartbeat."),
	JSON_FIELD(live_bytes, "Held by all lines then, imports included, devices and address space left out."),
	JSON_FIELD_OF(JSON_OBJECTS, "lines", lines, "The lines that held most then; 10 at most.", .object = &holder_object,
	              .count_offset = offsetof(OWNER, line_count)),
	JSON_FIELD_OF(JSON_OBJECT, "look", look,
	              "What kept them alive, at the first passing or a later one; null = not examined.",
	              .object = &model_holders_object, .is_pointer = true, .without = JSON_NULL),
	{ .name = NULL },
};
OBJECT(guard, was_guard_passed, "A process passed its guard (--guard, KMEMSHIM_GUARD).");
#undef OWNER

#define OWNER struct report_request
JSON_KNOWN(has_driver_said, of.total_bytes != 0)
JSON_KNOWN(is_composed, is_composed)

static const struct json_field held_fields[] = {
	JSON_FIELD_AS("live_bytes", parts.live_bytes, "What the driver had given out there."),
	JSON_FIELD_AS("tensor_bytes", parts.tensor_bytes, "PyTorch's tensors, a part of live_bytes."),
	PARTS("They add up to live_bytes, as in totals."),
	JSON_OF(pool_kept_bytes,
	        "What the driver's pools (cudaMallocAsync) kept there and gave to nobody, to a part in a thousand."),
	JSON_FIELD(
		untracked_bytes,
		"In use on the device and in neither live_bytes nor pool_kept_bytes: contexts, kernels, other processes; null = the driver did not say.",
		.without = JSON_NULL, .is_known = has_driver_said),
	JSON_FIELD(pinned_bytes, "Host memory that the driver had given out."),
	JSON_FIELD(managed_bytes, "Managed memory, on either side."),
	JSON_FIELD_OF(JSON_OBJECTS, "lines", holders,
	              "The lines that held most of the tensors, or of the device where no tensors are recorded; 3 at most.",
	              .object = &holder_object, .count_offset = offsetof(OWNER, holder_count)),
	{ .name = NULL },
};
OBJECT(held, is_composed, "What the process held on the device at that moment.");

static const struct json_field request_fields[] = {
	JSON_OF(bytes, "Requested bytes."),
	JSON_FIELD(domain, "Domain."),
	JSON_FIELD(
		state,
		"pending: the process still runs and has not allocated there since. recovered: it went on; of a device, its thread got as much later, or enough to go on with. fatal: it ended with it.",
		.value_of = report_request_state),
	JSON_OF(error, "errno, or the CUDA result."),
	JSON_FIELD(pid, "Process id."),
	WHERE("The line that asked; null when unknown."),
	JSON_FIELD(device, "The device that had no more (cuda:N); null = host memory, or memory of no single device.",
	           .without = JSON_NULL),
	JSON_OF(free_bytes, "Free on the device, as its driver said right after; null = it did not say.",
	        .without = JSON_NULL, .is_known = has_driver_said),
	JSON_OF(total_bytes, "Memory of the device, by the same source.", .without = JSON_NULL,
	        .is_known = has_driver_said),
	JSON_FIELD_WHOLE(
		JSON_OBJECT, "held",
		"null = host memory, or no snapshot was taken: of a program that is refused all the time, snapshots take a fiftieth of its time at most.",
		.object = &held_object, .without = JSON_NULL),
	{ .name = NULL },
};
OBJECT(request, NULL, "A request for memory that the system refused.");
#undef OWNER

/* --- lines and sites --------------------------------------------------------------------------------------------- */

#define OWNER struct model_site
static const struct json_field leak_fields[] = {
	JSON_FIELD_OF(
		JSON_ENUM, "class", leak,
		"none: holds nothing. steady: holds something, does not accumulate. too-short: too few generations to judge. backlog: released late or in bursts, or less than it took. filling: keeps its blocks, but adds fewer and fewer, as a cache that fills. leak: still holds blocks from nearly every generation. swept: it accumulated until the peak, then was released as the program ended. import: left behind by importing a library.",
		.value_of = report_leak_class),
	JSON_FIELD(generations_alive, "Generations (ticks of allocated bytes or blocks) of which blocks are still live."),
	JSON_FIELD(generations_total, "Generations since the site first allocated."),
	JSON_FIELD(bytes_per_generation, "Live bytes per generation that is still alive; 0 without generations."),
	JSON_FIELD(steps,
	           "Steps of the process that holds most of it since the site first allocated, about; null = not known.",
	           .without = JSON_NULL),
	{ .name = NULL },
};
OBJECT(leak, NULL, "Does it accumulate? Judged by surviving generations.");
#undef OWNER

#define OWNER struct model_type
static const struct json_field type_fields[] = {
	JSON_FIELD(name, ""),
	JSON_FIELD(count, ""),
	{ .name = NULL },
};
OBJECT(type, NULL, "Python objects of one type.");
#undef OWNER

/* What a line and a site have in common. */
#define HELD                                                                                                                                                                        \
	JSON_OF(live_bytes, "Requested bytes of blocks that were not released."),                                                                                                       \
		JSON_OF(live_count, "Number of those blocks."),                                                                                                                             \
		JSON_FIELD_AS("released_at_exit_bytes", of.released_bytes,                                                                                                                  \
	                  "How much of live_bytes was released after the program began to exit."),                                                                                      \
		JSON_OF(peak_bytes, "Requested bytes held here at the moment of the domain's peak, of each process its own."),                                                              \
		JSON_OF(allocated_bytes, "Sum of all requested bytes, released or not."),                                                                                                   \
		JSON_OF(allocated_count, "Number of allocations."),                                                                                                                         \
		JSON_FIELD_AS(                                                                                                                                                              \
			"nonresident_bytes", of.untouched_bytes,                                                                                                                                \
			"Of live_bytes, not in memory when the resident set was sampled last (never touched, given back, or swapped out). The rest counts as memory; rows are ordered by it."), \
		JSON_FIELD_AS("large_bytes", of.large_bytes,                                                                                                                                \
	                  "Blocks and mappings of 1 MiB and more that were live at that sample."),                                                                                      \
		JSON_FIELD_AS("large_resident_bytes", of.large_resident_bytes, "Of these, in memory."),                                                                                     \
		JSON_FIELD_AS(                                                                                                                                                              \
			"sparse_page_bytes", of.pinned_bytes,                                                                                                                                   \
			"Estimate, at that sample: pages of malloc that are less than half full and that its blocks keep; a page is shared out among the sites in it."),                        \
		JSON_FIELD_AS(                                                                                                                                                              \
			"library", estimate.library,                                                                                                                                            \
			"Of domain library: whose own allocator grew here; what it holds is an estimate. null = another domain.",                                                               \
			.without = JSON_NULL),                                                                                                                                                  \
		ESTIMATE, SAMPLES
#define IMPORT                                                                                                                                  \
	JSON_FIELD(                                                                                                                                 \
		import,                                                                                                                                 \
		"What importing this top-level module left behind, whichever line imported it; null = not from an import, or its module is not known.", \
		.without = JSON_NULL)
#define TYPES(member, count, ...)                                                                                                                                               \
	JSON_FIELD_OF(                                                                                                                                                              \
		JSON_OBJECTS, "types", member,                                                                                                                                          \
		"Python objects that were alive at the last sample, estimated, the most frequent type first, 4 at most; empty when they were not recorded one by one, or hold little.", \
		.object = &type_object, .count_offset = offsetof(OWNER, count), .is_count_short = true, __VA_ARGS__)

#define OWNER struct line_growth
static bool
is_growth_known(const void *owner)
{
	return ((const OWNER *)owner)->is_known;
}

static const struct json_field growth_fields[] = {
	JSON_FIELD_OF(
		JSON_ENUM, "pace", pace,
		"What stays of each quarter of what was allocated since it began. even: about as much. faster: more and more. bursts: anything else.",
		.value_of = report_line_pace),
	JSON_FIELD(since_ms, "When it began to hold memory, since the start of its process, about."),
	JSON_FIELD(bytes, "What it holds."),
	JSON_FIELD(whole_bytes, "What all lines of the process hold more than then; at least as much."),
	{ .name = NULL },
};
OBJECT(growth, is_growth_known, "Since when a line grows, how, and what part of its process's growth it is.");
#undef OWNER

#define OWNER struct line_steps
static bool
are_steps_known(const void *owner)
{
	return ((const OWNER *)owner)->count != 0;
}

static const struct json_field kept_in_steps_fields[] = {
	JSON_FIELD(count, "Steps of the process since the line began; of a loop, whose rounds are estimated, its blocks."),
	JSON_FIELD(bytes, "What it kept in each, as far as it grows."),
	JSON_FIELD(is_one_block, "One block in each, about; bytes are those of one."),
	JSON_FIELD(bytes_per_hour, "null = the run was too short to tell: less than a minute.", .without = JSON_NULL),
	{ .name = NULL },
};
OBJECT(kept_in_steps, are_steps_known, "What a line that accumulates kept in each step.");
#undef OWNER

#define OWNER struct report_release
static const struct json_field release_fields[] = {
	WHERE("The line that released them."),
	JSON_FIELD(count, "Watched blocks that it released."),
	{ .name = NULL },
};
OBJECT(release, NULL, "Who releases blocks of a line.");
#undef OWNER

#define OWNER struct report_kept
static bool
is_kept_known(const void *owner)
{
	return ((const OWNER *)owner)->through.is_known;
}

static const struct json_field kept_fields[] = {
	JSON_FIELD_OF(JSON_OBJECT, "through", through, "The caller.", .object = &place_object, .without = JSON_NULL),
	JSON_FIELD(live_count, "Blocks that were allocated through it and are alive."),
	JSON_FIELD(allocated_count, "All that were allocated through it."),
	JSON_FIELD(other_live_count, "The same of all other callers."),
	JSON_FIELD(other_allocated_count, ""),
	{ .name = NULL },
};
OBJECT(kept, is_kept_known,
       "The one caller whose blocks stay. Next to nothing is left of the blocks of other callers.");
#undef OWNER

#define OWNER struct report_line
static const struct json_field line_fields[] = {
	JSON_FIELD(domain, "Domain."),
	HELD,
	JSON_FIELD_OF(JSON_OBJECT, "leak", of.telling,
	              "Class of the line: the most telling of its sites; generations of its largest site of that class.",
	              .object = &leak_object, .is_pointer = true),
	JSON_OF(leaking_bytes, "Live bytes of those of its sites that are of class leak."),
	JSON_OF(
		swept_bytes,
		"Of class swept: bytes that the line held at its peak, about, by the last sample before it was released. Else 0."),
	JSON_FIELD_AS(
		"may_be_one_time_load", may_be_built_once,
		"Of class leak, but half of all that was allocated since it began is its own, or an import runs it: it may be a data set that was loaded once."),
	WHERE("The line; null when unknown."),
	IMPORT,
	TYPES(types, type_count),
	JSON_FIELD(
		watched_releases,
		"From a sample: blocks of the line that were watched and released, before the program began to exit; 0 = not known."),
	JSON_FIELD(temporary_releases,
	           "Of these, released before their thread allocated again; not known of small Python objects."),
	JSON_FIELD_OF(JSON_OBJECTS, "released_by", releases,
	              "The lines that released them, the most frequent first, 8 at most.", .object = &release_object,
	              .count_offset = offsetof(OWNER, release_count), .is_count_short = true),
	JSON_FIELD_OF(
		JSON_OBJECT, "growth", growth,
		"Of classes leak and backlog; null = not known: several processes, or the process has not grown since.",
		.object = &growth_object, .without = JSON_NULL),
	JSON_FIELD(filled_bytes,
	           "Of class filling: at so many bytes it seems to end, if it goes on as before; null = of another class.",
	           .without = JSON_NULL),
	JSON_FIELD_OF(
		JSON_OBJECT, "kept_in_steps", kept_in_steps,
		"Of class leak; null = not known: several processes, no steps, or rounds of a loop that its blocks do not confirm.",
		.object = &kept_in_steps_object, .without = JSON_NULL),
	JSON_FIELD_OF(
		JSON_OBJECT, "grows_with", grows_with,
		"A line before it in the ranking that leaks together with it: as many blocks, made by the same call; null = there is none.",
		.object = &place_object, .without = JSON_NULL),
	JSON_FIELD_OF(JSON_OBJECT, "kept", kept,
	              "Of lines that accumulate: the one caller whose blocks stay; null = there is no such caller.",
	              .object = &kept_object, .without = JSON_NULL),
	JSON_FIELD_OF(
		JSON_OBJECTS, "held_by", ways,
		"How its blocks were held when the guard was passed, or when a line was a leak that held much, those of most samples first; [] = nobody looked.",
		.object = &model_way_object, .is_pointer = true, .count_offset = offsetof(OWNER, way_count)),
	JSON_OF(first_site, "Place of its first site in the ranking, from 0."),
	JSON_OF(site_count, "How many sites it is the sum of; they follow each other in the ranking."),
	{ .name = NULL },
};
OBJECT(line, NULL, "One line of code in one domain.");
#undef OWNER

#define OWNER struct report_frame
static const char *
frame_kind(unsigned kind)
{
	return kind == MODEL_FRAME_NATIVE ? "native" : kind == MODEL_FRAME_PYTHON ? "python" : NULL;
}

static const struct json_field frame_fields[] = {
	JSON_FIELD_OF(JSON_ENUM, "kind", of.kind, "Frame of the interpreter or of the machine.", .value_of = frame_kind),
	JSON_OF(function, "\"\" when unknown."),
	JSON_OF(file, "\"\" when unknown."),
	JSON_OF(line, "0 when unknown."),
	JSON_OF(module, "Base name of the ELF object or of the Python file; \"\" when unknown."),
	JSON_FIELD(offset, "As in a place.", .without = JSON_LEFT_OUT),
	RELATION,
	JSON_OF(
		is_repeated,
		"Only there when true. Native code: the function called itself; further frames of it, between this frame and the next, are not stored.",
		.without = JSON_LEFT_OUT),
	{ .name = NULL },
};
OBJECT(frame, NULL, "One frame.");
#undef OWNER

static void put_frames(struct json_write *json, const void *owner);

#define OWNER struct report_site
static const struct json_field site_fields[] = {
	JSON_FIELD_OF(
		JSON_KEY, "key", of.key,
		"Stable across rebuilds, machines and edits elsewhere. The first 12 digits come from names alone; the last 4 tell sites apart that share those."),
	JSON_FIELD(domain, "Domain."),
	HELD,
	JSON_FIELD_OF(JSON_OBJECT, "leak", of, "Class of the site.", .object = &leak_object),
	WHERE(
		"Innermost frame of the user's own code (not the standard library, not site-packages, not an allocator); failing that the innermost that has a name; null when unknown."),
	IMPORT,
	JSON_OF(process_count, "Number of processes in which it was seen."),
	TYPES(of.types, of.type_count, .is_pointer = true),
	JSON_FIELD_OF(JSON_ENUM, "frames_missing", lost, "Why there are no frames; null = there are.", .without = JSON_NULL,
	              .value_of = report_lost_name),
	JSON_FIELD(
		is_python_only,
		"Python frames only: native ones were not recorded, for the site held little when its blocks came (KMEMSHIM_NATIVE=to-python records them always)."),
	JSON_FIELD_AS(
		"frames_omitted", of.omitted,
		"Frames left out of a long stack. Without --top the frames of all sites are at most 512 MiB of text: from then on a site has none in frames[] and their number here."),
	JSON_OF(frames_before_gap, "How many of frames[] stand before the gap."),
	JSON_FIELD_WHOLE(JSON_ROWS, "frames", "Innermost first.", .object = &frame_object, .put = put_frames),
	{ .name = NULL },
};
OBJECT(site, NULL, "One call site: one stack in one domain.");
#undef OWNER

/* A frame stands in many stacks: it is made once. One with a relation stands in few, and elsewhere without it. */
struct frame_text {
	const void *identity;
	char *text;
	size_t bytes;
	UT_hash_handle hh;
};

struct frame_texts {
	struct frame_text *texts; // uthash
	uint64_t bytes_left;      // for frames of further sites
};

static const struct frame_text *
find_frame_text(struct frame_texts *texts, const struct report_frame *frame)
{
	struct frame_text *found;
	struct json_write json = { .inline_depth = 0, .depth = 1 };

	HASH_FIND_PTR(texts->texts, &frame->identity, found);
	if (found != NULL)
		return found;
	found = memory_zeroed(1, sizeof(*found));
	found->identity = frame->identity;
	json.stream = open_memstream(&found->text, &found->bytes);
	if (json.stream == NULL)
		memory_exhausted();
	json_object_write(&json, NULL, &frame_object, frame);
	if (fclose(json.stream) != 0)
		memory_exhausted();
	HASH_ADD_PTR(texts->texts, identity, found);
	return found;
}

static void
free_frame_text(struct frame_text *text)
{
	free(text->text);
	free(text);
}

static void
put_frames(struct json_write *json, const void *owner)
{
	const struct report_site *site = owner;
	struct frame_texts *texts = json->context;

	for (uint32_t i = 0; i < site->of.frame_count; i++) {
		struct report_frame frame = report_frame(site, i);

		if (frame.relation[0] != '\0') {
			json_object_write(json, NULL, &frame_object, &frame);
			continue;
		}
		const struct frame_text *text = find_frame_text(texts, &frame);

		json_write_raw(json, text->text, text->bytes);
		texts->bytes_left -= text->bytes < texts->bytes_left ? text->bytes : texts->bytes_left;
	}
}

/* All frames of a site, or none when the room for frames is used up. */
static void
put_sites(struct json_write *json, const void *owner)
{
	const struct report *report = owner;
	const struct frame_texts *texts = json->context;

	for (size_t i = 0; i < report->site_count; i++) {
		struct report_site site = report_site(report, i);

		if (texts->bytes_left == 0) {
			site.of.omitted += site.of.frame_count;
			site.of.frame_count = site.of.frames_before_gap = 0;
		}
		json_object_write(json, NULL, &site_object, &site);
	}
}

static void
put_lines(struct json_write *json, const void *owner)
{
	const struct report *report = owner;

	for (size_t i = 0; i < report->line_count; i++) {
		struct report_line line = report_line(report, i);

		json_object_write(json, NULL, &line_object, &line);
	}
}

/* --- the whole --------------------------------------------------------------------------------------------------- */

static const char *const ranking_names[] = { "peak", "leaks", "sites", NULL };

#define OWNER struct report
static const struct json_field verify_fields[] = {
	JSON_FIELD_AS("checked", verify_checked, "Stacks taken twice."),
	JSON_FIELD_AS("mismatched", verify_mismatched, "Of these, how many differed."),
	{ .name = NULL },
};
OBJECT(verify, NULL, "Self-check of native stacks (KMEMSHIM_VERIFY).");

static const struct json_field report_fields[] = {
	JSON_FIELD_WHOLE(JSON_VERSION, "schema", "Version of this schema.", .version = REPORT_SCHEMA),
	JSON_FIELD(session, "Id that the processes of one run share."),
	JSON_FIELD(
		ranking,
		"What orders lines and sites. peak: by peak_bytes. leaks: classes leak and swept first, then too-short of which every generation is still alive, then the rest, by live_bytes. sites: by live_bytes. What imports left comes after what code of the program holds, address space (reserved, file) after memory.",
		.values = ranking_names),
	JSON_FIELD_OF(JSON_OBJECT, "verdict", verdict, "", .object = &verdict_object),
	JSON_FIELD_WHOLE(
		JSON_MAP, "totals",
		"By name of the domain: heap, mmap, reserved, file, shared, cuda:N, cuda/pinned, hip:N, ... Only those that were used.",
		.object = &domain_object, .put = put_totals),
	LOSSES(losses, "Of all processes."),
	JSON_FIELD(
		peak_error_bytes,
		"How far peaks of one process may be off at most, because threads add up small events first (KMEMSHIM_EXACT_PEAK=1 records them exactly); 0 = exact."),
	JSON_FIELD_AS("is_at_python_shutdown", is_finalizing,
	              "Live figures are those of the moment when Python began to shut down."),
	JSON_FIELD(
		is_at_exit,
		"Of a process, live figures are those of the moment when it began to exit, before exit handlers and destructors of static objects."),
	JSON_FIELD_WHOLE(JSON_OBJECT, "verify", "", .object = &verify_object),
	JSON_FIELD_OF(JSON_OBJECTS, "processes", processes, "The first process of the session first.",
	              .object = &process_object, .is_pointer = true, .count_offset = offsetof(OWNER, process_count)),
	JSON_FIELD_OF(JSON_OBJECT, "guard", guard, "null = there was none, or it was not passed.", .object = &guard_object,
	              .without = JSON_NULL),
	JSON_FIELD_OF(JSON_OBJECT, "forecast", forecast, "null = nothing grows steadily, or for too short a time.",
	              .object = &forecast_object, .without = JSON_NULL),
	JSON_FIELD_OF(JSON_OBJECTS, "refused_requests", requests, "Oldest first; the last 16 of each process.",
	              .object = &request_object, .is_pointer = true, .count_offset = offsetof(OWNER, request_count)),
	JSON_FIELD_OF(JSON_TEXTS, "damages", damages, "Captures or sections that could not be read whole, one line each.",
	              .count_offset = offsetof(OWNER, damage_count)),
	JSON_FIELD(line_total, "Number of all lines; lines[] has fewer with --top."),
	JSON_FIELD_WHOLE(JSON_ROWS, "lines", "Sums of the sites with the same where, in ranking order.",
	                 .object = &line_object, .put = put_lines),
	JSON_FIELD(site_total, "Number of all sites; sites[] has fewer with --top."),
	JSON_FIELD_WHOLE(JSON_ROWS, "sites",
	                 "In ranking order: those of the first line first, the largest first inside each line.",
	                 .object = &site_object, .put = put_sites),
	{ .name = NULL },
};
OBJECT(
	report, NULL,
	"What `kmemshim report|why|peak|leaks|sites --json` print. Bytes are requested bytes unless the name says otherwise; numbers are integers; texts are UTF-8. A field that goes away or means something else comes with a new schema number.");
#undef OWNER

void
render_json(const struct report *report, FILE *stream)
{
	struct frame_texts texts = { .bytes_left = report->frames_bytes };
	struct json_write json = { .stream = stream, .inline_depth = SITES_INLINE_DEPTH, .context = &texts };

	json_object_write(&json, NULL, &report_object, report);
	HASH_FREE(texts.texts, free_frame_text);
}

void
render_json_schema(FILE *stream)
{
	json_schema_write(&report_object, "https://kmemshim.invalid/report.schema.json", "kmemshim report, schema 2",
	                  stream);
}
