/*
 * doctor_preload.c - what else is preloaded, and names of settings: see doctor.h.
 */
#include "doctor/doctor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"

/* Recorders that replace the same functions. Allocators do not: ours goes first and calls them. */
static const char *const recorders[] = { "heaptrack",    "bytehound", "libmemray",  "libmtrace",
	                                     "libtotalview", "vgpreload", "libmemleak", "libscalene" };

static void
check_preloaded(struct doctor *doctor, const char *entry)
{
	const char *slash = strrchr(entry, '/');
	const char *name = slash != NULL ? slash + 1 : entry;

	if (strcmp(name, "libkmemshim.so") == 0) {
		doctor_add(doctor, DOCTOR_NOTE, "LD_PRELOAD", "if you do not want that, unset LD_PRELOAD",
		           "%s is set in this shell: every program that you start here is recorded", entry);
		return;
	}
	if (slash != NULL && access(entry, R_OK) != 0)
		doctor_add(doctor, DOCTOR_NOTE, "LD_PRELOAD", "correct the path",
		           "%s cannot be read: the loader prints an error at every start", entry);
	for (size_t i = 0; i < sizeof(recorders) / sizeof(recorders[0]); i++) {
		if (strstr(name, recorders[i]) != NULL)
			doctor_add(doctor, DOCTOR_PROBLEM, "LD_PRELOAD", "use only one of the two",
			           "%s records allocations too, and would record those of kmemshim", entry);
	}
}

/* The library looks at names that begin as its own do, and says so of those: others nobody reads. */
static void
check_names(struct doctor *doctor)
{
	for (char **variable = environ; *variable != NULL; variable++) {
		if (strncasecmp(*variable, "kmem", 4) == 0 && strncmp(*variable, "KMEMSHIM_", 9) != 0)
			doctor_add(doctor, DOCTOR_NOTE, "environment", "if it is meant for kmemshim, correct its name",
			           "%.*s is not a setting of kmemshim: their names begin with KMEMSHIM_",
			           (int)strcspn(*variable, "="), *variable);
	}
}

void
doctor_check_environment(struct doctor *doctor)
{
	const char *preload = getenv("LD_PRELOAD");
	char *list = memory_text(preload != NULL ? preload : "");
	char *save;

	for (char *entry = strtok_r(list, " :", &save); entry != NULL; entry = strtok_r(NULL, " :", &save))
		check_preloaded(doctor, entry);
	free(list);
	check_names(doctor);
}
