/*
 * cmd_report.c - the commands that read a capture: report, why, peak, leaks, sites, tree, waste, annotate.
 *
 * When failing  the reader's or the writer's line is passed up.
 */
#include "base/memory.h"
#include "cli/cmd_report.h"

#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/document.h"
#include "base/items.h"
#include "base/json_fields.h"
#include "base/output.h"
#include "base/progress.h"
#include "base/text_clean.h"
#include "base/units.h"
#include "capture/capture_folder.h"
#include "capture/running_capture.h"
#include "cli/command.h"
#include "diff/diff.h"
#include "jupyter/kernel_life.h"
#include "holders/holders.h"
#include "holders/lost.h"
#include "doctor/doctor.h"
#include "model/model_load.h"
#include "page/page.h"
#include "report/render.h"

#define JSON_FRAMES_BYTES (UINT64_C(512) << 20) // without --top: what a reader of JSON can still hold

bool
cmd_report_check_project(const struct model *model, const char *project, struct fail *fail)
{
	if (project == NULL)
		return true;
	return ANY(site, model->sites, model->site_count, site->where != NULL && site->where->is_user) ||
	       fail_set(fail, EXIT_USAGE, "--project %s: %s: no line would be yours", project,
	                access(project, F_OK) == 0 ? "no code below it allocated anything"
	                                           : "there is no such folder, and no code below it in the capture");
}

struct model_options
cmd_report_model_options(const struct options *options, const char *capture, const char *session)
{
	return (struct model_options){
		.capture = capture,
		.session = session,
		.sysroot = options->sysroot,
		.project = options->project,
		.wrappers = options->wrappers,
		.is_salvage = options->is_salvage,
		.at = options->at,
		.since = options->since,
		.is_of_phase = options->is_of_phase,
		.wants_symbols = true,
	};
}

struct model *
cmd_report_load(const struct options *options, const char *capture, const char *session, struct fail *fail)
{
	struct model_options wanted = cmd_report_model_options(options, capture, session);
	char path[RUNNING_CAPTURE_PATH_BYTES];

	if (running_capture_is_process(capture)) {
		if (!running_capture_path(options->command->name, capture, path, fail))
			return NULL;
		wanted.capture = path;
	}
	progress_allow();

	struct model *model = model_load(&wanted, fail);

	if (model == NULL)
		return NULL;
	if (model->capture_damage_count != 0)
		(void)fprintf(stderr, "kmemshim: %s\n", model_damage_text(model, (char[MODEL_DAMAGE_BYTES]){ 0 }));
	if (options->at != NULL)
		(void)fprintf(stderr, "kmemshim: live figures are those of the snapshot \"%s\"; the others are of the end\n",
		              options->at);
	if (options->since != NULL)
		(void)fprintf(stderr,
		              "kmemshim: what lines hold and held at the peak is told without what was held at \"%s\"\n",
		              options->since);
	if (model->distrusted != NULL)
		(void)fprintf(stderr, "kmemshim: %s\n", model->distrusted);
	if (!cmd_report_check_project(model, options->project, fail)) {
		model_free(model);
		return NULL;
	}
	if (session == NULL && model->session_count > 1)
		(void)fprintf(stderr, "kmemshim: %s: has %zu sessions, this is the newest: give a file to see another one\n",
		              capture != NULL ? capture : CAPTURE_FOLDER_DEFAULT, model->session_count);
	return model;
}

struct model *
cmd_report_load_quietly(const struct options *options, const char *capture, struct fail *fail)
{
	const struct model_options wanted = cmd_report_model_options(options, capture, NULL);

	return model_load(&wanted, fail);
}

/* Reads the capture of the process that passed its guard once more, as of that moment, and tells what was held then. */
static bool
tell_guard(const struct options *options, struct report *report, const struct model *model, struct model **then,
           struct fail *fail)
{
	const struct report_options rows = { .top = UINT64_MAX };
	struct model_options wanted = cmd_report_model_options(options, NULL, NULL);

	*then = NULL;
	wanted.is_at_guard = true;
	wanted.at = NULL;
	for (size_t i = 0; i < model->process_count && report->guard.of.number != 0; i++) {
		if (model->processes[i].identity->pid == report->guard.pid && model->processes[i].guard.number != 0)
			wanted.capture = model->processes[i].path;
	}
	if (wanted.capture == NULL)
		return true;
	*then = model_load(&wanted, fail);

	struct report *of_then = *then != NULL ? report_build(*then, &rank_sites, &rows, fail) : NULL;

	if (of_then != NULL)
		report_tell_guard(report, of_then);
	return of_then != NULL;
}

void
cmd_report_close(struct opened_report *opened)
{
	report_free(opened->report);
	model_free(opened->then);
	model_free(opened->model);
	*opened = (struct opened_report){ .report = NULL };
}

bool
cmd_report_open(const struct options *options, struct model *model, const struct ranking *ranking,
                const struct report_options *rows, struct opened_report *opened, struct fail *fail)
{
	*opened = (struct opened_report){ .model = model };
	opened->report = model != NULL ? report_build(model, ranking, rows, fail) : NULL;
	if (opened->report != NULL && tell_guard(options, opened->report, model, &opened->then, fail))
		return true;
	cmd_report_close(opened);
	return false;
}

/* text_top: how many lines of code a text shows without --top. */
static struct report_options
rows_of(const struct options *options, uint64_t text_top)
{
	bool has_top = options_has(options, OPTION_TOP);

	return (struct report_options){
		.domain = options->domain,
		.top = has_top            ? options->top
		       : options->is_json ? UINT64_MAX
		                          : text_top,
		.frames_bytes = has_top ? UINT64_MAX : JSON_FRAMES_BYTES,
	};
}

static bool
has_devices(const struct report *report)
{
	return ANY(domain, report->domains, report->domain_count, domain->is_device);
}

bool
cmd_report_page(struct report *report, const struct options *options, uint64_t top, struct document *document,
                struct fail *fail)
{
	const struct {
		const struct ranking *ranking;
		enum render_scope scope;
		const char *heading;
	} tables[] = {
		{ &rank_peak, RENDER_HOST, NULL },
		{ &rank_leaks, RENDER_HOST, NULL },
		{ &rank_peak, RENDER_DEVICES, "Held on devices at the peak" },
		{ &rank_leaks, RENDER_DEVICES, "Still held on devices, leaks first" },
	};
	const struct report_options rows = rows_of(options, top);

	render_verdict(report, document);
	render_guard(report, document);
	for (size_t i = 0; i < COUNT_OF(tables); i++) {
		const struct render_options wanted = {
			.is_native = options->is_native,
			.scope = options->domain != NULL ? RENDER_ALL : tables[i].scope,
			.heading = tables[i].heading,
		};

		if (report->domain_count == 0 ||
		    (tables[i].scope == RENDER_DEVICES && (options->domain != NULL || !has_devices(report))))
			continue; // nothing was allocated there
		if (!report_rank(report, tables[i].ranking, &rows, fail))
			return false;
		render_lines(report, &wanted, document);
	}
	document_add(document, DOCUMENT_LINE, NULL, "%s", "");
	render_totals(report, document);
	if (report->domain == NULL)
		render_marks(report, options->has_all, document);
	if (options->has_all)
		render_efforts(report, document);
	document_add(document, DOCUMENT_LINE, NULL, "%s", "");
	render_remarks(report, document);
	return true;
}

bool
cmd_report_grouping(const struct options *options, enum grouping *grouping, struct fail *fail)
{
	*grouping = GROUPING_LINE;
	if (options->by != NULL && !grouping_of(options->by, grouping))
		return fail_set(fail, EXIT_USAGE, "%s: --by \"%s\": expected " GROUPING_NAMES, options->command->name,
		                options->by);
	return options->by == NULL || !options->is_json ||
	       fail_set(fail, EXIT_USAGE, "%s: --by is for the text: leave out --json, which has all lines",
	                options->command->name);
}

bool
cmd_report_table(struct report *report, const struct options *options, uint64_t top, struct document *document,
                 struct fail *fail)
{
	const struct render_options wanted = { .is_native = options->is_native };
	enum grouping grouping;

	if (!cmd_report_grouping(options, &grouping, fail))
		return false;
	if (grouping == GROUPING_LINE)
		render_lines(report, &wanted, document);
	else
		render_groups(report, grouping, options_top(options, top), document);
	render_losses(report, document);
	render_peak_error(report, document);
	return true;
}

bool
cmd_report_verdict(struct report *report, const struct options *options, uint64_t top, struct document *document,
                   struct fail *fail)
{

	(void)options;
	(void)top;
	(void)fail;
	render_verdict(report, document);
	render_guard(report, document);
	return true;
}

bool
cmd_report_waste(struct report *report, const struct options *options, uint64_t top, struct document *document,
                 struct fail *fail)
{
	(void)fail;
	render_waste(report, options_top(options, top), document);
	return true;
}

bool
cmd_report_annotate(struct report *report, const struct options *options, uint64_t top, struct document *document,
                    struct fail *fail)
{
	const struct annotate_options wanted = { .file = options->arguments[0], .has_all = options->has_all };

	(void)top;
	return render_annotate(report, &wanted, document, stderr, fail);
}

bool
cmd_report_is_whole(const struct model *model, const char *path, struct fail *fail)
{
	uint64_t unrecorded = model_unrecorded_bytes(model);

	if (model->capture_damage_count != 0)
		return fail_set(
			fail, EXIT_CAPTURE,
			"%s; figures are compared of whole captures: record again, or use --salvage to compare what is intact",
			model->damages[0]);
	return unrecorded == 0 ||
	       fail_set(
			   fail, EXIT_CAPTURE,
			   "%s: allocations of %s were not recorded, for lack of room; figures are compared of whole captures: record "
			   "again with more address space (ulimit -v) or disk, or use --salvage to compare what was recorded",
			   path, UNITS_BYTES(unrecorded));
}

/* The folder of the kernel's life that is meant. One line names it, for there may be others. */
static bool
find_kernel(const struct options *options, char life[PATH_MAX], struct fail *fail)
{
	char home[PATH_MAX];

	if (options->argument_count != 0)
		return fail_set(fail, EXIT_USAGE, "%s: give --kernel or a capture, not both", options->command->name);
	if (!kernel_life_home(NULL, home, fail) || !kernel_life_is_there(home, fail) ||
	    !kernel_life_newest(home, life, fail))
		return false;
	(void)fprintf(stderr, "kmemshim: this is the kernel of %s\n", life);
	return true;
}

static bool
check_page(const struct options *options, struct fail *fail)
{
	if (options->html == NULL && (options->has_no_source || options->is_forced))
		return fail_set(fail, EXIT_USAGE, "report: --no-source and --force are for --html: give all");
	if (options->html != NULL && (options->is_json || options_has(options, OPTION_TOP) || options->domain != NULL))
		return fail_set(fail, EXIT_USAGE,
		                "report: --html has all that there is: give it without --json, --top and --domain");
	return options->html == NULL || output_may_write(options->html, options->is_forced, fail);
}

/* Says so on stderr, since the page may go to standard output. A pipe has no size, and needs no line. */
static void
say_written(const char *path)
{
	struct stat entry;

	if (stat(path, &entry) != 0 || !S_ISREG(entry.st_mode))
		return;
	(void)fprintf(stderr, "kmemshim: written: %s (%s). Open it in a browser.\n",
	              text_cleaned(TEXT(PATH_MAX, "%s", path)), UNITS_BYTES((uint64_t)entry.st_size));
}

/* report: of all lines, by what they held at the peak. */
static bool
write_page(const struct options *options, const struct report *report, struct fail *fail)
{
	const struct page_options wanted = { .has_source = !options->has_no_source };
	struct output_file *file = output_open(options->html, OUTPUT_OWN, fail);

	if (file == NULL)
		return false;
	page_render(report, &wanted, output_stream(file));
	if (!output_close(file, fail))
		return false;
	say_written(options->html);
	return true;
}

bool
cmd_report(const struct options *options, struct fail *fail)
{
	const struct question *question = options->command->question;
	struct report_options rows = rows_of(options, question->text_top);
	const char *capture = options->argument_count > question->capture_argument
	                          ? options->arguments[question->capture_argument]
	                          : NULL;
	struct document document = { .count = 0 };
	char life[PATH_MAX];

	if (!check_page(options, fail) || !cmd_report_grouping(options, &(enum grouping){ GROUPING_LINE }, fail) ||
	    (options->is_kernel && !find_kernel(options, life, fail)))
		return false;

	struct model *model = cmd_report_load(options, options->is_kernel ? life : capture, NULL, fail);

	if (options->html != NULL)
		rows = (struct report_options){ .top = UINT64_MAX };
	if (question->is_verdict_only)
		rows = (struct report_options){ .domain = options->domain, .is_verdict_of_domain = options->domain != NULL };
	struct opened_report opened;
	bool is_done = cmd_report_open(options, model, question->ranking, &rows, &opened, fail);

	if (is_done && options->html != NULL)
		is_done = write_page(options, opened.report, fail);
	else if (is_done && options->is_json)
		render_json(opened.report, stdout);
	else if (is_done && (is_done = question->show(opened.report, options, question->text_top, &document, fail)))
		document_put(&document, stdout);
	document_clear(&document);
	is_done = is_done && output_finish(fail);
	cmd_report_close(&opened);
	return is_done;
}

bool
cmd_schema(const struct options *options, struct fail *fail)
{
	static const struct json_object *const documents[] = { &report_object, &diff_object, &doctor_object,
		                                                   &model_holders_object, &lost_object };
	const char *of = options->argument_count > 0 ? options->arguments[0] : documents[0]->name;
	const struct json_object *const *found = FIRST(document, documents, COUNT_OF(documents),
	                                               strcmp((*document)->name, of) == 0);

	if (found == NULL)
		return fail_set(fail, EXIT_USAGE, "schema: %s: there are report, diff, doctor, holders and lost", of);
	json_schema_write(*found, stdout);
	return output_finish(fail);
}
