/*
 * doctor_kernels.c - which of the notebook's kernels are recorded? See doctor.h.
 *
 * A kernel starts also when the installation that would record it is gone: its user does not notice, until it dies and nothing is said.
 *
 * When failing  without python3 in PATH there is no Jupyter, and nothing is said.
 */
#include "doctor/doctor.h"

#include <string.h>

#include "base/memory.h"
#include "jupyter/kernels.h"
#include "launch/launcher.h"

static const char *
text_of(const json_t *row, const char *name)
{
	return json_string_value(json_object_get(row, name));
}

void
doctor_check_kernels(struct doctor *doctor)
{
	struct fail fail;
	json_t *answer = kernels_ask(json_pack("{s:s}", "what", "judge"), &fail);
	const json_t *row;
	size_t i;

	json_array_foreach(json_object_get(answer, "rows"), i, row)
	{
		const char *where = TEXT(NAME_MAX + 16, "kernel %s", text_of(row, "name"));
		const char *launcher = text_of(row, "launcher");
		char shim[PATH_MAX];

		if (launcher == NULL)
			doctor_add(doctor, (enum doctor_level)json_integer_value(json_object_get(row, "level")), where,
			           text_of(row, "next"), "%s", text_of(row, "what"));
		else if (!launcher_find_shim(launcher, shim, &fail))
			doctor_add(doctor, DOCTOR_PROBLEM, where, text_of(row, "next"),
			           "is not recorded: the library of %s is gone", launcher);
		else
			doctor_add(doctor, DOCTOR_OK, where, "", "is recorded%s%s", strcmp(shim, doctor->shim) != 0 ? ", by " : "",
			           strcmp(shim, doctor->shim) != 0 ? launcher : "");
	}
	json_decref(answer);
}
