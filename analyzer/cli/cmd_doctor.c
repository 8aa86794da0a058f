/*
 * cmd_doctor.c - kmemshim doctor: what would keep this program from being recorded?
 *
 * One line for each finding: problem, note or ok, where, what is wrong, what to do next.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/json_write.h"
#include "base/output.h"
#include "cli/command.h"
#include "cli/options.h"
#include "launch/doctor.h"
#include "capture/capture_folder.h"

static const char *const level_names[] = { [DOCTOR_OK] = "ok", [DOCTOR_NOTE] = "note", [DOCTOR_PROBLEM] = "problem" };

static void
print_text(const struct doctor *doctor)
{
	for (size_t i = 0; i < doctor->count; i++) {
		const struct doctor_finding *finding = &doctor->findings[i];

		(void)printf("%-8s %s: %s%s%s\n", level_names[finding->level], finding->where, finding->what,
		             finding->next[0] != '\0' ? ": " : "", finding->next);
	}
}

static void
print_json(const struct doctor *doctor)
{
	struct json_write json = { .stream = stdout, .inline_depth = 2 };

	json_write_open(&json, NULL, '{');
	json_write_number(&json, "schema", 1);
	json_write_open(&json, "findings", '[');
	for (size_t i = 0; i < doctor->count; i++) {
		json_write_open(&json, NULL, '{');
		json_write_text(&json, "level", level_names[doctor->findings[i].level]);
		json_write_text(&json, "where", doctor->findings[i].where);
		json_write_text(&json, "what", doctor->findings[i].what);
		json_write_text(&json, "next", doctor->findings[i].next);
		json_write_close(&json, '}');
	}
	json_write_close(&json, ']');
	json_write_close(&json, '}');
}

bool
cmd_doctor(const struct options *options, int *status, struct fail *fail)
{
	const char *folder = options->output != NULL ? options->output : getenv("KMEMSHIM_OUT");
	bool is_named = folder != NULL && folder[0] != '\0';
	struct doctor doctor = { .count = 0 };

	doctor_check_place(&doctor, is_named ? folder : CAPTURE_FOLDER_DEFAULT, is_named);
	if (options->argument_count > 0)
		doctor_check_program(&doctor, options->arguments);
	doctor_try(&doctor, options->arguments);
	doctor_leave_place(&doctor);
	if (options->is_json)
		print_json(&doctor);
	else
		print_text(&doctor);
	for (size_t i = 0; i < doctor.count; i++) {
		if (doctor.findings[i].level == DOCTOR_PROBLEM)
			*status = EXIT_PROBLEM;
	}
	doctor_free(&doctor);
	return output_finish(fail);
}
