/*
 * render_json.c - the report as JSON: one row per field. `kmemshim schema` says the same rows.
 *
 * When failing  errors stay in the stream.
 */
#include "report/render_json.h"

#include "analysis/refused_requests.h"

#define SITES_INLINE_DEPTH 2 // one site is one line

/* --- places ------------------------------------------------------------------------------------------------------ */

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
};
JSON_OBJECT_OF(place, is_place_known, "A line of code.");
#undef OWNER

/* --- verdict ----------------------------------------------------------------------------------------------------- */

#define OWNER struct report_pinning
static const struct json_field pinning_fields[] = {
	WHERE("The line."),
	JSON_FIELD_AS("sparse_page_bytes", pinned_bytes, "Pages that its blocks keep."),
};
static JSON_OBJECT_OF(pinning, NULL, "A line of which few blocks keep many nearly empty pages in memory.");
#undef OWNER

#define OWNER struct verdict_part
static const struct json_field memory_part_fields[] = {
	JSON_FIELD(name, ""),
	JSON_FIELD(bytes, ""),
};
static JSON_OBJECT_OF(memory_part, NULL, "A part of what was in memory.");
#undef OWNER

#define OWNER struct report_memory
JSON_KNOWN(is_much_freed, of.freed.freed_bytes != 0)

static const struct json_field most_fragmented_fields[] = {
	JSON_FIELD_AS("pid", fragmented_pid, "Process id."),
	JSON_LIST(
		"kept_by", pinning, pinning_count, pinning,
		"Lines of which few blocks keep nearly empty pages, the most first, as far as pages were sampled; of all processes."),
};
static JSON_OBJECT_OF(most_fragmented, is_much_freed,
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
	JSON_LIST("parts", of.parts, of.part_count, memory_part, "The largest first."),
};
static JSON_OBJECT_OF(
	memory, NULL,
	"What was in memory of the processes that ran at the end, when it was sampled last. Of a process that the kernel killed for its container's limit: of all that was charged there.");
#undef OWNER

#define OWNER struct report_finding
static const struct json_field finding_fields[] = {
	JSON_FIELD_OF(JSON_ENUM, "kind", kind, "What it is about; analyzer/verdict/findings.h says more.",
	              .value_of = finding_name),
	JSON_FIELD(bytes, "The amount that it is about; 0 = none."),
	JSON_FIELD(share_ppm, "Of the whole that its sentence names, in parts per million; 0 = none."),
	JSON_FIELD(where, "The line of code, as texts write it; null = none.", .without = JSON_NULL),
	JSON_FIELD_OF(JSON_ENUM, "confidence", confidence, "How far the evidence carries.",
	              .value_of = verdict_confidence_name),
};
static JSON_OBJECT_OF(finding, NULL, "What the facts amount to; one or two sentences of the text.");
#undef OWNER

#define OWNER struct report_verdict
static const struct json_field verdict_fields[] = {
	JSON_FIELD_OF(
		JSON_ENUM, "cause", cause,
		"container-limit: killed because a cgroup's limit was reached. machine-memory: killed because the machine was out of memory. shm-full: SIGBUS with a full /dev/shm. device-memory: ended after a device refused memory. request-refused: ended after a host request was refused. low-memory-daemon: killed by another program while memory was low. time-up: its limit of processor time was used up, or timeout(1) ended it. file-size-limit: SIGXFSZ. stack-overflow: it crashed where its stack could not grow, as the kernel's log shows. aborted: SIGABRT. crashed, signal, failed, exited: as the wait status says; the findings tell how near the limits were. child-killed: the program did well, or was stopped by a signal, but the kernel killed a child of it for memory. gone: no clean-exit mark, and nobody saw how. machine-restarted: this boot began right after its last sign of life. hardware: a log says that memory or a GPU failed under it. not-closed: another boot or machine, nothing can be said.",
		.value_of = verdict_cause_name),
	JSON_FIELD_OF(JSON_ENUM, "confidence", confidence, "How far the evidence carries.",
	              .value_of = verdict_confidence_name),
	JSON_FIELD(headline, "For a person, first: the cause, the line, who holds it."),
	JSON_FIELD(next, "One thing to do."),
	JSON_LIST("bar", bar, bar_count, memory_part,
	          "Where the memory was that the headline names: parts of it, which add up to it. Empty = it names none."),
	JSON_FIELD(evidence, "What that rests on, and what else was found."),
	JSON_FIELD(text, "headline and evidence."),
	JSON_LIST("findings", findings, finding_count, finding, "What text says, in the order in which it was found."),
	JSON_FIELD_OF(JSON_TEXTS, "advice", advice, "Names of what next says, in its order.",
	              .count_offset = offsetof(OWNER, advice_count)),
	JSON_PART("memory", memory, memory, "null = memory was never sampled.", .is_pointer = true),
	JSON_FIELD_AS("nonresident_bytes", untouched_bytes,
	              "Requested and not in memory, if the text mentions it; else 0."),
	JSON_FIELD(
		domain,
		"Only of `why --domain`: the domain that text and next are about. cause and confidence are the program's.",
		.without = JSON_LEFT_OUT),
};
static JSON_OBJECT_OF(verdict, NULL, "Why the program ended.");
#undef OWNER

/* --- totals ------------------------------------------------------------------------------------------------------ */

#define OWNER struct device_part
static const struct json_field device_part_fields[] = {
	JSON_FIELD(name, ""),
	JSON_FIELD(live_bytes, ""),
};
static JSON_OBJECT_OF(device_part, NULL,
                      "A part of what is live on a device: tensors, what PyTorch's cache keeps, a library.");
#undef OWNER

#define PARTS(meaning_) JSON_LIST("parts", parts.parts, parts.part_count, device_part, meaning_)

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
};
static JSON_OBJECT_OF(domain, NULL, "Totals of one domain.");
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
};
JSON_OBJECT_OF(losses, NULL, "What could not be recorded.");
#undef OWNER

/* --- refused requests --------------------------------------------------------------------------------------------- */

#define OWNER struct report_holder
static const struct json_field holder_fields[] = {
	JSON_FIELD(domain, "Domain."),
	JSON_FIELD(is_estimated, "live_bytes and live_count are estimated, as in lines."),
	JSON_FIELD(live_bytes, "Requested bytes that it held then."),
	JSON_FIELD(live_count, "Number of those blocks."),
	WHERE("The line; null when unknown."),
};
static JSON_OBJECT_OF(holder, NULL, "A line of code when a device refused, or when the guard was passed.");
#undef OWNER

/* --- the guard --------------------------------------------------------------------------------------------------- */

#define OWNER struct verdict_forecast
JSON_KNOWN(is_foreseen, bytes_per_minute != 0)

static const struct json_field forecast_fields[] = {
	JSON_FIELD(bytes_per_minute, "How much the resident set grows."),
	JSON_FIELD(minutes, "Until the limit is reached, from the last heartbeat."),
	JSON_FIELD(steps, "Of the process, in these minutes, about; null = not known.", .without = JSON_NULL),
	JSON_FIELD(used_bytes, "In use of the limit at the last heartbeat."),
	JSON_FIELD(limit_bytes, "The limit in force."),
};
static JSON_OBJECT_OF(forecast, is_foreseen, "A line accumulates, and memory grows steadily.");
#undef OWNER

#define OWNER struct report_guard
JSON_KNOWN(was_guard_passed, of.number != 0)

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
	JSON_LIST("lines", lines, line_count, holder, "The lines that held most then; 10 at most."),
	JSON_PART("look", look, model_holders,
	          "What kept them alive, at the first passing or a later one; null = not examined.", .is_pointer = true),
};
static JSON_OBJECT_OF(guard, was_guard_passed, "A process passed its guard (--guard, KMEMSHIM_GUARD).");
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
	JSON_LIST("lines", holders, holder_count, holder,
	          "The lines that held most of the tensors, or of the device where no tensors are recorded; 3 at most."),
};
static JSON_OBJECT_OF(held, is_composed, "What the process held on the device at that moment.");

static const struct json_field request_fields[] = {
	JSON_OF(bytes, "Requested bytes."),
	JSON_FIELD(domain, "Domain."),
	JSON_FIELD_OF(
		JSON_ENUM, "state", state,
		"pending: the process still runs and has not allocated there since. recovered: it went on; of a device, its thread got as much later, or enough to go on with. fatal: it ended with it.",
		.value_of = refusal_state_name),
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
};
static JSON_OBJECT_OF(request, NULL, "A request for memory that the system refused.");
#undef OWNER

/* --- the whole --------------------------------------------------------------------------------------------------- */

#define OWNER struct report
static const struct json_field verify_fields[] = {
	JSON_FIELD_AS("checked", verify_checked, "Stacks taken twice."),
	JSON_FIELD_AS("mismatched", verify_mismatched, "Of these, how many differed."),
};
static JSON_OBJECT_OF(verify, NULL, "Self-check of native stacks (KMEMSHIM_VERIFY).");

static const struct json_field report_fields[] = {
	JSON_FIELD_WHOLE(JSON_VERSION, "schema", "Version of this schema.", .version = REPORT_SCHEMA),
	JSON_FIELD(session, "Id that the processes of one run share."),
	JSON_FIELD_OF(
		JSON_ENUM, "ranking", ranking,
		"What orders lines and sites. peak: by peak_bytes. leaks: classes leak and swept first, then too-short of which every generation is still alive, then the rest, by live_bytes. sites: by live_bytes. What imports left comes after what code of the program holds, address space (reserved, file) after memory.",
		.value_of = rank_name),
	JSON_FIELD_OF(JSON_OBJECT, "verdict", verdict, "", .object = &verdict_object),
	JSON_FIELD_WHOLE(
		JSON_MAP, "totals",
		"By name of the domain: heap, mmap, reserved, file, shared, cuda:N, cuda/pinned, hip:N, ... Only those that were used.",
		.object = &domain_object, .put = put_totals),
	LOSSES(losses, "Of all processes."),
	EFFORTS(efforts, "Of all processes."),
	JSON_FIELD(
		peak_error_bytes,
		"How far peaks of one process may be off at most, because threads add up small events first (KMEMSHIM_EXACT_PEAK=1 records them exactly); 0 = exact."),
	JSON_FIELD(
		heap_sample_bytes,
		"Of the heap a sample is recorded (KMEMSHIM_SAMPLE), in domain heap/sample: one block for so many bytes, on average; 0 = each block."),
	JSON_FIELD_AS("is_at_python_shutdown", is_finalizing,
	              "Live figures are those of the moment when Python began to shut down."),
	JSON_FIELD(
		is_at_exit,
		"Of a process, live figures are those of the moment when it began to exit, before exit handlers and destructors of static objects."),
	JSON_FIELD_WHOLE(JSON_OBJECT, "verify", "", .object = &verify_object),
	JSON_LIST("processes", processes, process_count, process, "The first process of the session first."),
	JSON_PART("guard", guard, guard, "null = there was none, or it was not passed."),
	JSON_PART("forecast", forecast, forecast, "null = nothing grows steadily, or for too short a time."),
	JSON_LIST("refused_requests", requests, request_count, request, "Oldest first; the last 16 of each process."),
	JSON_FIELD_OF(JSON_TEXTS, "damages", damages, "Captures or sections that could not be read whole, one line each.",
	              .count_offset = offsetof(OWNER, damage_count)),
	JSON_FIELD(line_total, "Number of all lines; lines[] has fewer with --top."),
	JSON_FIELD_WHOLE(JSON_ROWS, "lines", "Sums of the sites with the same where, in ranking order.",
	                 .object = &line_object, .put = render_json_lines),
	JSON_FIELD(site_total, "Number of all sites; sites[] has fewer with --top."),
	JSON_FIELD_WHOLE(JSON_ROWS, "sites",
	                 "In ranking order: those of the first line first, the largest first inside each line.",
	                 .object = &site_object, .put = render_json_sites),
};
JSON_OBJECT_OF(
	report, NULL,
	"What `kmemshim report|why|peak|leaks|sites --json` print. Bytes are requested bytes unless the name says otherwise; numbers are integers; texts are UTF-8. A field that goes away or means something else comes with a new schema number.");
#undef OWNER

void
render_json(const struct report *report, FILE *stream)
{
	struct frame_texts texts = { .bytes_left = report->frames_bytes };
	struct json_write json = { .stream = stream, .inline_depth = SITES_INLINE_DEPTH, .context = &texts };

	json_object_write(&json, NULL, &report_object, report);
	render_json_free(&texts);
}
