/*
 * cmd_export.c - kmemshim export and kmemshim tree: a capture by its stacks, for another program or for a person.
 */
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/output.h"
#include "base/progress.h"
#include "cli/cmd_report.h"
#include "cli/command.h"
#include "export/export.h"
#include "page/page.h"
#include "report/render.h"

/* A report, and the format in which it is wanted. */
struct wanted {
	const struct options *options;
	const struct export_format *format;
	const struct export_value *value;
};

/* Writes each of several processes alone: the sum of all does not say how much of a line each held. */
static bool
write_processes(const struct wanted *wanted, const struct report *whole, FILE *stream, struct fail *fail)
{
	const struct report_options all = { .top = UINT64_MAX };
	const struct export_run run = export_run_of(whole);

	for (size_t i = 0; i < whole->process_count; i++) {
		struct opened_report opened;
		struct model *model = cmd_report_load_quietly(wanted->options, whole->processes[i].of.path, fail);

		if (!cmd_report_open(wanted->options, model, &rank_peak, &all, &opened, fail))
			return false;
		opened.report->domain = wanted->options->domain; // where it has nothing of that there is no row
		export_rows_of(opened.report, &run, stream);
		cmd_report_close(&opened);
	}
	return true;
}

static bool
write_format(const struct wanted *wanted, const struct report *report, FILE *stream, struct fail *fail)
{
	bool is_written = true;

	if (wanted->format->is_by_process && report->process_count > 1)
		is_written = write_processes(wanted, report, stream, fail);
	else if (wanted->format->write == NULL)
		page_render(report, &(struct page_options){ .has_source = !wanted->options->has_no_source }, stream);
	else
		wanted->format->write(report, wanted->value, stream);
	progress_end();
	return is_written;
}

static bool
write_export(const struct wanted *wanted, const struct report *report, struct fail *fail)
{
	if (wanted->options->output == NULL)
		return write_format(wanted, report, stdout, fail) && output_finish(fail);

	struct output_file *file = output_open(wanted->options->output, OUTPUT_OWN, fail);

	if (file == NULL)
		return false;
	if (write_format(wanted, report, output_stream(file), fail))
		return output_close(file, fail);
	output_drop(file);
	return false;
}

/* NULL and *fail: there is no such value. */
static const struct export_value *
value_of(const struct options *options, struct fail *fail)
{
	const struct export_value *value = export_value_find(options->value != NULL ? options->value : "peak");

	if (value == NULL)
		(void)fail_set(fail, EXIT_USAGE, "%s: --value %s: there are peak, live, leaked and allocated",
		               options->command->name, options->value);
	return value;
}

bool
cmd_export(const struct options *options, struct fail *fail)
{
	const struct export_format *format = export_format_find(options->formats != NULL ? options->formats : "");
	const struct report_options all = { .top = UINT64_MAX, .domain = options->domain };
	struct opened_report opened;
	char names[128];

	if (format == NULL)
		return fail_set(fail, EXIT_USAGE, "export: give --format and one of %s", export_format_names(names));

	const struct export_value *value = value_of(options, fail);

	if (value == NULL)
		return false;
	if (options->value != NULL && !format->has_value)
		return fail_set(fail, EXIT_USAGE, "export: --value: %s has all of them: leave it out", format->name);
	if (format->write != NULL && options->has_no_source)
		return fail_set(fail, EXIT_USAGE, "export: --no-source: %s has no source text: leave it out", format->name);
	if (format->write == NULL && options->domain != NULL)
		return fail_set(fail, EXIT_USAGE, "export: --domain: %s has all domains: leave it out", format->name);
	if (format->is_binary && options->output == NULL && isatty(STDOUT_FILENO) == 1)
		return fail_set(fail, EXIT_USAGE, "export: %s is nothing for a terminal: give -o FILE", format->name);
	if (options->output != NULL && !output_may_write(options->output, options->is_forced, fail))
		return false;

	const char *capture = options->argument_count != 0 ? options->arguments[0] : NULL;
	bool is_done = cmd_report_open(options, cmd_report_load(options, capture, NULL, fail), &rank_peak, &all, &opened,
	                               fail);

	is_done = is_done && write_export(&(struct wanted){ .options = options, .format = format, .value = value },
	                                  opened.report, fail);
	cmd_report_close(&opened);
	return is_done;
}

bool
cmd_report_tree(struct report *report, const struct options *options, uint64_t top, struct document *document,
                struct fail *fail)
{
	const struct export_value *value = value_of(options, fail);
	enum grouping grouping;

	(void)top;
	if (value == NULL || !cmd_report_grouping(options, &grouping, fail))
		return false;

	render_tree(report,
	            &(struct tree_options){ .heading = value->heading,
	                                    .bytes_of = value->of,
	                                    .is_peak = strcmp(value->name, "peak") == 0,
	                                    .is_of_all_time = strcmp(value->name, "allocated") == 0,
	                                    .is_native = options->is_native,
	                                    .has_all = options->has_all,
	                                    .grouping = grouping },
	            document);
	return true;
}
