/*
 * cmd_baseline.c - kmemshim baseline: what good runs held, for `check` to compare with.
 */
#include "baseline.h"
#include "cmd_table.h"
#include "command.h"
#include "model.h"
#include "output.h"
#include "rank.h"
#include "verdict.h"

static bool
add_run(struct baseline_builder *builder, const struct options *options, const char *path, struct fail *fail)
{
	struct model *model = cmd_table_load(options, path, fail);
	struct verdict verdict;

	if (model == NULL)
		return false;
	rank_leaks_classify(model);
	verdict_decide(model, verdict_now(), &verdict);
	if (verdict.end != VERDICT_END_OK)
		(void)fprintf(stderr, "kmemshim: %s: this run did not end well, its figures may be no good measure: %s\n", path,
		              verdict.text);
	baseline_add_run(builder, model);
	model_free(model);
	return true;
}

static bool
run(const struct options *options, int *status, struct fail *fail)
{
	struct baseline_builder *builder;
	struct baseline *baseline;
	struct output_file *file;
	bool is_done = true;

	*status = EXIT_OK;
	if (options->output == NULL)
		return fail_set(fail, EXIT_USAGE, "baseline: where to write is missing: add -o base.json");
	builder = baseline_begin();
	for (int i = 0; i < options->argument_count && is_done; i++)
		is_done = add_run(builder, options, options->arguments[i], fail);
	baseline = baseline_finish(builder);
	file = is_done ? output_open(options->output, fail) : NULL;
	is_done = file != NULL;
	if (is_done) {
		baseline_write(baseline, output_stream(file));
		is_done = output_close(file, fail);
	}
	baseline_free(baseline);
	return is_done;
}

const struct command command_baseline = {
	.name = "baseline",
	.arguments = "RUN... -o FILE",
	.summary = "write down what good runs held, for check",
	.details = "Several runs of the same code make a better baseline: noise shows as their spread.\n",
	.options = OPTIONS_OF_READERS | OPTION_BIT(OPTION_OUTPUT),
	.arguments_min = 1,
	.arguments_max = -1,
	.run = run,
};
