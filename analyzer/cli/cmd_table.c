/*
 * cmd_table.c - what the commands that read a capture have in common.
 *
 * When failing  the reader's or the writer's line is passed up.
 */
#include "cli/cmd_table.h"

#include <stdio.h>
#include <unistd.h>

#include "base/output.h"
#include "model/model_load.h"
#include "capture/capture_folder.h"
#include "report/render.h"

#define JSON_FRAMES_BYTES (UINT64_C(512) << 20) // without --top: what a reader of JSON can still hold

bool
cmd_table_check_project(const struct model *model, const char *project, struct fail *fail)
{
	if (project == NULL)
		return true;
	for (size_t i = 0; i < model->site_count; i++) {
		if (model->sites[i].where != NULL && model->sites[i].where->is_user)
			return true;
	}
	return fail_set(fail, EXIT_USAGE, "--project %s: %s: no line would be yours", project,
	                access(project, F_OK) == 0 ? "no code below it allocated anything"
	                                           : "there is no such folder, and no code below it in the capture");
}

struct model *
cmd_table_load(const struct options *options, const char *capture, const char *session, struct fail *fail)
{
	const struct model_options wanted = {
		.capture = capture,
		.session = session,
		.sysroot = options->sysroot,
		.project = options->project,
		.wrappers = options->wrappers,
		.is_salvage = options->is_salvage,
		.wants_symbols = true,
	};

	struct model *model = model_load(&wanted, fail);

	if (model == NULL)
		return NULL;
	if (model->capture_damage_count != 0)
		(void)fprintf(stderr, "kmemshim: %s; %zu damaged place%s in all, the rest was read\n", model->damages[0],
		              model->damaged_places, model->damaged_places == 1 ? "" : "s");
	if (model->distrusted != NULL)
		(void)fprintf(stderr, "kmemshim: %s\n", model->distrusted);
	if (!cmd_table_check_project(model, options->project, fail)) {
		model_free(model);
		return NULL;
	}
	if (session == NULL && model->session_count > 1)
		(void)fprintf(stderr, "kmemshim: %s: holds %zu sessions, this is the newest: name a file for another one\n",
		              capture != NULL ? capture : CAPTURE_FOLDER_DEFAULT, model->session_count);
	return model;
}

struct report_options
cmd_table_rows(const struct options *options, uint64_t text_top)
{
	return (struct report_options){
		.domain = options->domain,
		.top = options->has_top   ? options->top
		       : options->is_json ? UINT64_MAX
		                          : text_top,
		.frames_bytes = options->has_top ? UINT64_MAX : JSON_FRAMES_BYTES,
	};
}

bool
cmd_table_run(const struct ranking *ranking, const struct options *options, struct fail *fail)
{
	const struct report_options rows = cmd_table_rows(options, CMD_TABLE_TOP);
	const struct render_options look = { .is_native = options->is_native };
	struct model *model = cmd_table_load(options, options->argument_count != 0 ? options->arguments[0] : NULL, NULL,
	                                     fail);
	struct report *report = model != NULL ? report_build(model, ranking, &rows, fail) : NULL;
	bool is_done = report != NULL;

	if (is_done && options->is_json) {
		render_json(report, stdout);
	} else if (is_done) {
		render_text_lines(report, &look, stdout);
		render_text_losses(report, stdout);
		render_text_peak_error(report, stdout);
	}
	is_done = is_done && output_finish(fail);
	report_free(report);
	model_free(model);
	return is_done;
}
