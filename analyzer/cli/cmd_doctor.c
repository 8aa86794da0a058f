/*
 * cmd_doctor.c - kmemshim doctor: what would keep this program from being recorded?
 *
 * One line for each finding: problem, note or ok, where, what is wrong, what to do next.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/output.h"
#include "cli/command.h"
#include "cli/options.h"
#include "doctor/doctor.h"

static bool
is_jupyter(const char *command)
{
	const char *slash = strrchr(command, '/');

	return strncmp(slash != NULL ? slash + 1 : command, "jupyter", 7) == 0;
}

bool
cmd_doctor(const struct options *options, struct fail *fail)
{
	struct doctor doctor = { .count = 0 };

	doctor_check_place(&doctor, options->output);
	doctor_check_limits(&doctor);
	doctor_check_environment(&doctor);
	if (options->argument_count > 0)
		doctor_check_program(&doctor, options->arguments);
	doctor_check_cuda(&doctor);
	doctor_check_debug(&doctor);
	doctor_try(&doctor);
	if (options->argument_count == 0 || is_jupyter(options->arguments[0]))
		doctor_check_kernels(&doctor);
	doctor_leave_place(&doctor);
	if (options->is_json)
		doctor_render_json(&doctor, stdout);
	else
		doctor_render_text(&doctor, stdout);
	for (size_t i = 0; i < doctor.count; i++) {
		if (doctor.findings[i].level == DOCTOR_PROBLEM)
			*options->status = EXIT_PROBLEM;
	}
	doctor_free(&doctor);
	return output_finish(fail);
}
