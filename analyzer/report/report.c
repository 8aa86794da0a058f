/*
 * report.c - makes the report from the model and a ranking.
 *
 * When failing  only for a domain that the capture does not have.
 */
#include "report/report_build.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "analysis/device_parts.h"
#include "analysis/refused_requests.h"
#include "analysis/model_finish.h"
#include "base/items.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/shell_words.h"
#include "verdict/words.h"

#define APART_PART 50 // of the peak: sums that differ by less are the same

static const char *
keep_text(struct report_rows *rows, char *text)
{
	*MEMORY_NEXT(rows->texts, rows->text_count) = text;
	return text;
}

/* --- memory ------------------------------------------------------------------------------------------------------ */

static struct report_fragmentation
fragmentation_of(const struct model *model, const struct model_process *process)
{
	struct verdict_freed of = verdict_freed_of(model, process);

	return (struct report_fragmentation){
		.of = of,
		.live_bytes = of.heap_bytes > of.freed_bytes ? of.heap_bytes - of.freed_bytes : 0,
		.share_ppm = verdict_share(of.freed_bytes, of.resident_bytes),
	};
}

static const struct report_memory *
memory_of(const struct report_rows *rows, const struct verdict_memory *from, struct report_memory *to)
{
	if (from->bytes == 0)
		return NULL;
	*to = (struct report_memory){ .of = *from };
	if (from->freed.freed_bytes != 0)
		to->fragmented_pid = from->freed.process->identity->pid;
	for (size_t i = 0; i < VERDICT_PINNING_MAX && from->freed.pinning[i].site_count != 0; i++)
		to->pinning[to->pinning_count++] = (struct report_pinning){
			report_place_of(rows, from->freed.pinning[i].largest), from->freed.pinning[i].pinned_bytes
		};
	return to;
}

/* --- domains and processes --------------------------------------------------------------------------------------- */

/* No source file may have changed since the first start of an interpreter, else of any process. 0 = a run of another machine or boot. */
static uint64_t
sources_since(const struct model *model)
{
	uint64_t since[2] = { UINT64_MAX, UINT64_MAX }; // of all, of interpreters

	for (size_t i = 0; i < model->process_count; i++) {
		const struct kmem_identity *identity = model->processes[i].identity;
		bool is_python = model->processes[i].python_version != 0;

		if (identity->boot_id[0] == '\0' || strcmp(identity->boot_id, verdict_now()->boot_id) != 0)
			return 0;
		for (int of = 0; of <= is_python; of++)
			since[of] = identity->start_realtime_ns < since[of] ? identity->start_realtime_ns : since[of];
	}
	return since[1] != UINT64_MAX ? since[1] : since[0];
}

/* NULL: no small object was sampled. */
static const struct model_domain *
find_objects(const struct model *model)
{
	return FIRST(domain, model->domains, model->domain_count, domain->id.kind == DOMAIN_PYTHON_OBJECT);
}

/* What is left of the arenas is a difference: it is off by as much as the estimate of the objects that was subtracted. */
struct report_estimate
report_estimate_of(const struct model *model, unsigned domain, uint64_t live_bytes, uint64_t peak_bytes,
                   const struct model_site *site, uint64_t samples)
{
	enum domain_kind kind = model->domains[domain].id.kind;
	bool is_rest = kind == DOMAIN_PYTHON_ARENA && model->sample_bytes != 0;
	const struct model_domain *objects = is_rest ? find_objects(model) : NULL;
	bool has_error = domain_is_sampled(kind) || objects != NULL;
	uint64_t sample_bytes = model_sample_bytes(model, objects != NULL ? DOMAIN_PYTHON_OBJECT : kind);

	if (objects != NULL) {
		live_bytes = objects->live_bytes;
		peak_bytes = objects->peak_bytes;
	}
	return (struct report_estimate){
		.library = site != NULL ? site->library : NULL,
		.is_estimated = is_rest || has_error || kind == DOMAIN_LIBRARY,
		.error_bytes = has_error ? model_estimate_error(sample_bytes, live_bytes) : 0,
		.peak_error_bytes = has_error ? model_estimate_error(sample_bytes, peak_bytes) : 0,
		.samples = samples,
		.is_rest_of_arenas = is_rest,
	};
}

static void
build_domains(struct report *report, const struct model *model)
{
	report->domain_count = model->domain_count;
	report->domains = memory_zeroed(model->domain_count, sizeof(*report->domains));
	for (size_t i = 0; i < model->domain_count; i++) {
		const struct model_domain *domain = &model->domains[i];
		struct report_domain *made = &report->domains[i];

		*made = (struct report_domain){
			.of = *domain,
			.estimate = report_estimate_of(model, (unsigned)i, domain->live_bytes, domain->peak_bytes, NULL, 0),
			.is_address_space = domain_is_address_space(domain->id.kind),
			.is_device = domain_is_driver(domain->id.kind),
		};
		if (!device_parts_of(model, (unsigned)i, NULL, &made->parts))
			made->parts.part_count = 0;
	}
	EACH (site, model->sites, model->site_count) {
		if ((site->stack_flags & KMEM_STACK_MERGED) != 0)
			report->domains[site->domain].lost_sites += site->allocated_count;
		if ((site->stack_flags & KMEM_STACK_NO_STACK) != 0)
			report->domains[site->domain].lost_stacks += site->allocated_count;
	}
}

static enum report_state
state_of(const struct model_process *process, const struct verdict_now *now)
{
	const struct kmem_launcher *launcher = process->launcher;

	if (launcher != NULL)
		return WIFSIGNALED(launcher->wait_status) ? REPORT_SIGNAL : REPORT_EXITED;
	if (process->state == KMEM_STATE_CLEAN_EXIT)
		return REPORT_EXITED;
	if (process->state == KMEM_STATE_EXEC_REPLACED)
		return REPORT_EXEC_REPLACED;
	if (process->is_alive)
		return process->state == KMEM_STATE_STARTING ? REPORT_STARTING : REPORT_RUNNING;
	if (process->identity->boot_id[0] == '\0' || strcmp(process->identity->boot_id, now->boot_id) != 0)
		return REPORT_UNKNOWN;
	return REPORT_GONE;
}

static const struct report_built *
make_built(struct report_rows *rows, const struct model_process *process)
{
	struct report_built *built = memory_zeroed(process->built_count, sizeof(*built));

	for (size_t i = 0; i < process->built_count; i++)
		built[i] = (struct report_built){
			.key = process->built[i].site->key,
			.live_bytes = process->built[i].live_bytes,
			.copied_bytes = process->built[i].copied_bytes,
			.is_estimated = process->built[i].copied_bytes != 0,
			.error_bytes = process->built[i].copied_error_bytes,
		};
	(void)keep_text(rows, (char *)built); // freed with the report
	return built;
}

/* From the last look to the end or, if not known, the last heartbeat. Once the interpreter ends all figures are of one moment. */
static uint64_t
resident_age_ns(const struct model_process *process)
{
	uint64_t until = model_ended_ns(process) ?: model_last_seen_ns(process);

	if (process->resident == NULL || process->is_finalizing || until < process->resident->monotonic_ns)
		return 0;
	return until - process->resident->monotonic_ns;
}

static void
add_efforts(struct report *report, const struct model_efforts *efforts)
{
	struct model_efforts *sum = &report->efforts;

	sum->events += efforts->events;
	for (unsigned i = 0; i < KMEM_EFFORT_COUNT; i++)
		sum->counts[i] += efforts->counts[i];
	if (efforts->longest_pause_ns > sum->longest_pause_ns) {
		sum->longest_pause_ns = efforts->longest_pause_ns;
		sum->longest_pause = efforts->longest_pause;
	}
}

static void
build_process(struct report *report, struct report_process *to, const struct model_process *process)
{
	const struct kmem_identity *identity = process->identity;
	const struct kmem_launcher *launcher = process->launcher;
	const struct kmem_heartbeat *last = model_last_beat(process);
	uint64_t most_bytes = verdict_most_resident_of(process);
	uint64_t seen_bytes = MOST_OF(beat, process->heartbeats, process->heartbeat_count, beat->resident_bytes);
	char version[32] = "";

	if (process->python_version != 0)
		(void)snprintf(version, sizeof(version), "%" PRIu32 ".%" PRIu32 ".%" PRIu32, process->python_version >> 24,
		               process->python_version >> 16 & 0xff, process->python_version >> 8 & 0xff);
	*to = (struct report_process){
		.of = *process,
		.pid = identity->pid,
		.parent_pid = identity->parent_pid,
		.command = keep_text(report->rows, shell_words_join(identity->command, identity->command_bytes)),
		.directory = identity->directory,
		.state = state_of(process, verdict_now()),
		.exit_status = process->state == KMEM_STATE_CLEAN_EXIT ? process->exit_code : -1,
		.python_version = keep_text(report->rows, memory_text(version)),
		.tool_version = identity->tool_version,
		.start_realtime_ns = identity->start_realtime_ns,
		.peak_bytes = verdict_peak_of(process),
		.is_copied_known = model_is_copied_known(process),
		.built = make_built(report->rows, process),
		.resident_bytes = last != NULL ? last->resident_bytes : 0,
		.limit_bytes = last != NULL ? last->limit_bytes : UINT64_MAX,
		.resident_parts = process->resident != NULL ? process->resident->part_bytes : NULL,
		.resident_sampled_bytes = process->resident != NULL ? process->resident->resident_bytes : 0,
		.fragmentation = fragmentation_of(report->rows->model, process),
		.resident_age_ns = resident_age_ns(process),
		.is_end_known = model_ended_ns(process) != 0,
		.machine_bytes = identity->machine_bytes,
		.max_resident_bytes = most_bytes,
		.max_charged_bytes = last != NULL && last->cgroup_bytes < last->resident_bytes &&
		                             seen_bytes >= most_bytes / 4 * 3
		                         ? MOST_OF(beat, process->heartbeats, process->heartbeat_count, beat->cgroup_bytes)
		                         : 0,
	};
	to->steps = report_steps_of(process, model_ended_ns(process) ?: model_last_seen_ns(process));
	struct report_mark *marks = report_marks_of(process);

	(void)keep_text(report->rows, (char *)marks); // freed with the report
	to->marks = marks;
	report_timeline_build(report->rows, process, &to->timeline);
	if (launcher != NULL && WIFEXITED(launcher->wait_status))
		to->exit_status = WEXITSTATUS(launcher->wait_status);
	if (launcher != NULL && WIFSIGNALED(launcher->wait_status)) {
		to->exit_status = -1;
		to->signal = WTERMSIG(launcher->wait_status);
	}
	for (unsigned i = 0; i < KMEM_LOSS_COUNT; i++)
		report->losses[i] += process->losses[i];
	add_efforts(report, &process->efforts);
	report->verify_checked += process->verify_checked;
	report->verify_mismatched += process->verify_mismatched;
	if (process->peak_error_bytes > report->peak_error_bytes)
		report->peak_error_bytes = process->peak_error_bytes;
	report->is_finalizing = report->is_finalizing || (process->is_finalizing && !process->is_at_exit);
	report->is_at_exit = report->is_at_exit || process->is_at_exit;
	report->after_exit_bytes += process->after_exit_bytes;
}

/* --- refused requests --------------------------------------------------------------------------------------------- */

ORDER_OF(compare_places, struct model_held, rank_compare_places(a->site, b->site))

ORDER_OF(compare_held, struct model_held, order_numbers(b->live_bytes, a->live_bytes) ?: compare_places(a, b))

/* The lines that held most of the domain. */
static void
add_holders(const struct report *report, const struct model *model, const struct model_failed *failed, unsigned domain,
            struct report_request *request)
{
	OWNED struct model_held *lines = memory_zeroed(failed->held_count, sizeof(*lines));
	size_t found = 0;
	size_t count = 0;

	EACH (held, failed->held, failed->held_count) {
		if (held->site->domain == domain && held->live_bytes != 0)
			lines[found++] = *held;
	}
	SORT(lines, found, compare_places);
	for (size_t i = 0; i < found; i++) {
		if (count != 0 && compare_places(&lines[count - 1], &lines[i]) == 0) {
			lines[count - 1].live_bytes += lines[i].live_bytes;
			lines[count - 1].live_count += lines[i].live_count;
		} else {
			lines[count++] = lines[i];
		}
	}
	SORT(lines, count, compare_held);
	for (size_t i = 0; i < count && i < REPORT_HOLDERS_MAX; i++)
		request->holders[request->holder_count++] = (struct report_holder){ .domain = model->domains[domain].name,
			                                                                .live_bytes = lines[i].live_bytes,
			                                                                .live_count = lines[i].live_count,
			                                                                .where = report_place_of(report->rows,
			                                                                                         lines[i].site) };
}

static uint64_t
held_in(const struct model *model, const struct model_failed *failed, enum domain_kind kind)
{
	return SUM_OF(bytes, failed->domain_bytes, failed->domain_count,
	              model->domains[bytes - failed->domain_bytes].id.kind == kind ? *bytes : 0);
}

static void
compose(const struct report *report, const struct model *model, const struct model_failed *failed,
        struct report_request *request)
{
	unsigned device = device_parts_device(model, failed->domain);
	const struct device_parts *parts = &request->parts;
	uint64_t used_bytes = failed->total_bytes - failed->free_bytes;

	if (!domain_is_driver(model->domains[failed->domain].id.kind))
		return;
	if (model->domains[device].id.kind == DOMAIN_DEVICE)
		request->device = model->domains[device].name;
	if (!failed->has_held)
		return;
	request->is_composed = true;
	request->pinned_bytes = held_in(model, failed, DOMAIN_PINNED);
	request->managed_bytes = held_in(model, failed, DOMAIN_MANAGED);
	if (device_parts_of(model, device, failed, &request->parts))
		add_holders(report, model, failed,
		            parts->tensor_bytes != 0 ? (unsigned)(parts->tensors - model->domains) : device, request);
	else
		request->parts = (struct device_parts){ .part_count = 0 };
	if (used_bytes > parts->live_bytes + failed->pool_kept_bytes)
		request->untracked_bytes = used_bytes - parts->live_bytes - failed->pool_kept_bytes;
}

static void
build_requests(struct report *report, const struct model *model)
{
	report->request_count = model->failed_count;
	report->requests = memory_zeroed(model->failed_count, sizeof(*report->requests));
	for (size_t i = 0; i < model->failed_count; i++) {
		const struct model_failed *failed = &model->failed[i];

		report->requests[i] = (struct report_request){
			.of = *failed,
			.domain = model->domains[failed->domain].name,
			.state = refusal_state(model, verdict_now(), failed),
			.pid = model->processes[failed->process].identity->pid,
			.where = report_place_of(report->rows, failed->site),
		};
		compose(report, model, failed, &report->requests[i]);
	}
}

/* --- the whole --------------------------------------------------------------------------------------------------- */

static bool
has_domain(const struct model *model, const char *wanted, struct fail *fail)
{
	char present[512] = "";

	for (size_t i = 0; i < model->domain_count; i++) {
		if (rank_domain_matches(model->domains[i].name, wanted))
			return true;
		TEXT_ADD(present, "%s%s", i != 0 ? ", " : "", model->domains[i].name);
	}
	return fail_set(fail, EXIT_USAGE, "--domain %s: nothing was recorded there; this capture has %s", wanted,
	                model->domain_count != 0 ? present : "no domain at all");
}

bool
report_has_domain(const struct report *report, const char *name)
{
	return rank_domain_matches(name, report->domain);
}

bool
report_sums_up(const struct report *report, unsigned domain)
{
	const struct report_domain *of = &report->domains[domain];

	return !of->is_address_space && (report->domain != NULL || !of->is_device) &&
	       report_has_domain(report, of->of.name);
}

bool
report_peaks_are_apart(const struct report *report, uint64_t peak_bytes)
{
	uint64_t most_bytes = report->processes[0].peak_bytes;

	for (size_t i = 0; i < report->domain_count; i++) {
		if (report_sums_up(report, (unsigned)i) && report->domains[i].of.peak_bytes > most_bytes)
			most_bytes = report->domains[i].of.peak_bytes;
	}
	return report->process_count == 1 && report->domain == NULL && peak_bytes > most_bytes + most_bytes / APART_PART;
}

bool
report_rank(struct report *report, const struct ranking *ranking, const struct report_options *options,
            struct fail *fail)
{
	struct report_rows *rows = report->rows;

	if (options->domain != NULL && !has_domain(rows->model, options->domain, fail))
		return false;
	rank_free(rows->ranked);
	rows->ranked = rank_run(rows->finished, ranking, options->domain);
	report->domain = options->domain;
	report->ranking = ranking->of;
	report->heading = ranking->heading;
	report->frames_bytes = options->frames_bytes;
	report->line_total = rows->ranked->line_count;
	report->site_total = rows->ranked->site_count;
	report->line_count = report->line_total < options->top ? report->line_total : (size_t)options->top;
	report->site_count = report->site_total < options->top ? report->site_total : (size_t)options->top;
	return true;
}

static const struct report_finding *
findings_of(struct report_rows *rows, size_t *count)
{
	*count = rows->verdict.finding_count;
	for (size_t i = 0; i < *count; i++) {
		const struct finding *from = &rows->verdict.findings[i];

		rows->findings[i] = (struct report_finding){
			.kind = from->kind,
			.bytes = from->bytes,
			.share_ppm = verdict_share(from->bytes, from->whole_bytes),
			.where = from->line.site_count != 0 ? verdict_line_text(&from->line, rows->places[i]) : NULL,
			.confidence = from->confidence,
		};
	}
	return rows->findings;
}

struct report *
report_build(struct model *model, const struct ranking *ranking, const struct report_options *options,
             struct fail *fail)
{
	struct report *report = memory_zeroed(1, sizeof(*report));
	struct report_rows *rows = memory_zeroed(1, sizeof(*rows));

	report->rows = rows;
	rows->finished = model_finish(model, verdict_now());
	rows->model = model;
	rows->sources = source_lines_new(sources_since(model), model->project);
	for (size_t i = 0; i < model->cell_count; i++)
		source_lines_add(rows->sources, model->cells[i].file, model->cells[i].text);
	if (!report_rank(report, ranking, options, fail)) {
		report_free(report);
		return NULL;
	}
	if (options->is_verdict_of_domain)
		verdict_decide_domain(rows->finished, verdict_now(), options->domain, &rows->verdict);
	else
		verdict_decide(rows->finished, verdict_now(), &rows->verdict);
	report->heap_sample_bytes = model->heap_sample_bytes;
	report->verdict = (struct report_verdict){
		.domain = options->is_verdict_of_domain ? options->domain : NULL,
		.cause = rows->verdict.cause,
		.confidence = rows->verdict.confidence,
		.headline = rows->verdict.said[RANK_HEADLINE],
		.next = rows->verdict.next,
		.evidence = rows->verdict.said[RANK_EVIDENCE],
		.text = rows->verdict.text,
		.has_ended_well = rows->verdict.has_ended_well,
		.needs_nothing = rows->verdict.needs_nothing,
	};
	EACH (part, rows->verdict.memory.bar, rows->verdict.has_bar ? VERDICT_BARS : 0) {
		if (part->bytes != 0)
			report->verdict.bar[report->verdict.bar_count++] = *part;
	}
	report->verdict.findings = findings_of(rows, &report->verdict.finding_count);
	report->verdict.advice = rows->verdict.advice;
	report->verdict.advice_count = rows->verdict.advice_count;
	report->verdict.untouched_bytes = rows->verdict.untouched_bytes;
	report->verdict.memory = memory_of(rows, &rows->verdict.memory, &rows->memory);
	report->session = model->session;
	report->argument = model->argument;
	report->is_damaged = model->needs_salvage;
	report->damage_count = model->damage_count;
	report->damages = model->damages;
	build_domains(report, model);
	report->process_count = model->process_count;
	report->unknown_end_count = model->unknown_end_count;
	report->processes = memory_zeroed(model->process_count, sizeof(*report->processes));
	for (size_t i = 0; i < model->process_count; i++)
		build_process(report, &report->processes[i], &model->processes[i]);
	build_requests(report, model);
	report->forecast = rows->verdict.forecast;
	report_guard_build(report, model, &rows->verdict);
	return report;
}

void
report_free(struct report *report)
{
	if (report == NULL)
		return;
	report_free(report->then);
	for (size_t i = 0; i < report->rows->text_count; i++)
		free(report->rows->texts[i]);
	free(report->rows->texts);
	source_lines_free(report->rows->sources);
	rank_free(report->rows->ranked);
	free(report->rows);
	for (size_t i = 0; i < report->process_count; i++)
		report_timeline_free(&report->processes[i].timeline);
	free(report->domains);
	free(report->processes);
	free(report->requests);
	free(report);
}
