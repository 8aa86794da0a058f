/*
 * render_json_processes.c - a process in the JSON of the report: one row per field (see render_json.h).
 */
#include "report/render_json.h"

#define OWNER struct report_built
static const struct json_field built_fields[] = {
	JSON_FIELD_OF(JSON_KEY, "key", key, "As in sites."),
	JSON_FIELD(live_bytes, "When the parent forked."),
	JSON_FIELD(copied_bytes,
	           "Of these, in pages that the child copied; only of small Python objects, 0 = none, or not known. "
	           "All lines together: no more than copied_bytes of the process."),
	JSON_FIELD(is_estimated, "copied_bytes is estimated from samples."),
	JSON_FIELD(error_bytes, "How far copied_bytes may be off by chance, in 95 of 100 cases.", .without = JSON_NULL),
};
static JSON_OBJECT_OF(built, NULL, "A call site of the parent.");
#undef OWNER

#define OWNER struct model_heap_sample
JSON_KNOWN(are_pages_sampled, sampled_pages != 0)

static const struct json_field heap_pages_fields[] = {
	JSON_FIELD(sampled_pages, "How many pages were sampled."),
	JSON_FIELD(bytes, "All of them."),
	JSON_FIELD(empty_bytes, "Pages without a live block: malloc_trim() gives them back."),
	JSON_FIELD(sparse_bytes, "Pages of which live blocks fill less than half."),
	JSON_FIELD(sparse_live_bytes, "Requested bytes of the blocks in these."),
};
static JSON_OBJECT_OF(
	heap_pages, are_pages_sampled,
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
};
static JSON_OBJECT_OF(
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
	JSON_PART("heap_pages", of.heap_sample, heap_pages, "null = pages were not sampled."),
};
static JSON_OBJECT_OF(
	resident, is_resident_sampled,
	"What the resident set was made of when its mappings were sampled last, which may be older than resident_bytes.");

#undef OWNER
#define OWNER struct report_steps
JSON_KNOWN(are_there_steps, count != 0)

static const struct json_field steps_fields[] = {
	JSON_FIELD(count, "How many were begun."),
	JSON_FIELD_OF(
		JSON_ENUM, "source", source,
		"program: it said so (kmemshim_step()). loop: rounds of the outermost loop that was seen. cells: of a notebook.",
		.value_of = report_step_source),
	JSON_FIELD(is_estimated, "count is from samples."),
	JSON_FIELD(file, "Of a loop: source file of the line that comes again; \"\" when unknown."),
	JSON_FIELD(line, "Its line; 0 when unknown."),
	JSON_FIELD(function, "Its function; \"\" when unknown."),
	JSON_FIELD(ns, "Duration of one, on average, in nanoseconds; null = not known.", .without = JSON_NULL),
};
static JSON_OBJECT_OF(steps, are_there_steps, "What the process does again and again.");
#undef OWNER

#define OWNER struct report_mark
static const struct json_field mark_fields[] = {
	JSON_OF(sequence, "Its number in the process; --at takes it as #NUMBER."),
	JSON_OF(name, "As it was given, at most 55 bytes; \"\" when it has none."),
	JSON_OF(is_cut, "The name was longer."),
	JSON_FIELD_OF(
		JSON_ENUM, "kind", of.kind,
		"program: kmemshim_mark() or kmemshim_snapshot(). outside: kmemshim mark or snapshot. guard: the guard was passed. refused: a request was refused. even: run --snapshots. high-water: live bytes were the highest so far.",
		.value_of = report_mark_kind),
	JSON_FIELD(age_ns, "Since the start of the process, nanoseconds."),
	JSON_OF(step, "Steps that were begun until then."),
	JSON_OF(live_bytes, "Requested bytes live then: heap, mmap, shared, python/arena and library, about."),
	JSON_OF(resident_bytes, "Resident set at the heartbeat before; null = not known.", .without = JSON_NULL),
	JSON_OF(is_snapshot, "What each line held then is in the capture."),
	JSON_OF(left_out, "Of that, small sites that had no room."),
};
static JSON_OBJECT_OF(mark, NULL, "A moment with a name.");
#undef OWNER

#define OWNER struct report_timeline_line
static const struct json_field timeline_line_fields[] = {
	JSON_FIELD(domain, "Domain."),
	JSON_PART("where", where, place, "Line of the user's code; null = not known."),
	JSON_FIELD(is_import, "What an import left behind."),
	JSON_FIELD(import, "Of imports: the top-level module; null = none, or not known.", .without = JSON_NULL),
};
static JSON_OBJECT_OF(timeline_line, NULL, "A line of code of the timeline.");
#undef OWNER

#define OWNER struct report_point
JSON_KNOWN(has_point_limit, of.limit_bytes != UINT64_MAX)

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
};
static JSON_OBJECT_OF(point, NULL, "What the process held at a moment.");
#undef OWNER

#define OWNER struct report_timeline
JSON_KNOWN(has_points, point_count != 0)

static const struct json_field timeline_fields[] = {
	JSON_FIELD_OF(JSON_TEXTS, "domains", domain_names, "Domains that held anything.",
	              .count_offset = offsetof(OWNER, domain_count)),
	JSON_LIST("lines", lines, line_count, timeline_line,
	          "Those that held most at any point, the most first: of host memory, then of devices."),
	JSON_LIST("points", points, point_count, point, "Oldest first."),
};
static JSON_OBJECT_OF(timeline, has_points, "What the process held over time.");
#undef OWNER

#define OWNER struct report_process
static const struct json_field process_fields[] = {
	JSON_FIELD(pid, "Process id."),
	JSON_FIELD(parent_pid, "Process id of its parent at start."),
	JSON_OF(path, "Capture file."),
	JSON_OF(name, "Script, or base name of the executable."),
	JSON_FIELD(command, "Command line as a shell would take it; cut after 4096 bytes."),
	JSON_FIELD(directory, "Working directory at start."),
	JSON_FIELD_OF(
		JSON_ENUM, "state", state,
		"signal: ended by a signal, seen by the launcher. gone: not alive, no clean-exit mark, same boot. unknown: not closed, another boot or machine.",
		.value_of = report_state_name),
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
	JSON_FIELD(
		is_copied_known,
		"False: it was not sampled, and what it did since is not known, or was too much to say that it copied nothing."),
	JSON_LIST("inherited_sites", built, of.built_count, built, "What held most of what it inherited, the most first."),
	JSON_FIELD(resident_bytes, "Resident set at the last heartbeat; 0 = none."),
	JSON_FIELD_WHOLE(JSON_OBJECT, "resident", "null = it was never sampled.", .object = &resident_object,
	                 .without = JSON_NULL),
	JSON_PART("fragmentation", fragmentation, fragmentation, "null = it is less, or was never sampled."),
	JSON_FIELD(limit_bytes, "Memory limit in force at the last heartbeat; null = none or not known.",
	           .without = JSON_NULL, .is_known = has_limit),
	LOSSES(of.losses, "What this process could not record."),
	EFFORTS(of.efforts, ""),
	JSON_PART("steps", steps, steps, "null = none were seen."),
	JSON_LIST("marks", marks, of.mark_count, mark, "Moments with a name, the oldest first."),
	JSON_PART("timeline", timeline, timeline, "null = the capture has no points of that."),
	JSON_FIELD_OF(JSON_TEXTS, "notes", of.notes, "What the recorder had to say, one line each.",
	              .count_offset = offsetof(OWNER, of.note_count)),
};
JSON_OBJECT_OF(process, NULL, "One process image, or one forked child.");
#undef OWNER
