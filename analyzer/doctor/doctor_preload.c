/*
 * doctor_preload.c - what else is preloaded, and names of settings: see doctor.h.
 *
 * The loader takes LD_PRELOAD before /etc/ld.so.preload, and `run` puts our library first: allocators in either stand behind it.
 */
#include "base/read_each.h"
#include "doctor/doctor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/items.h"
#include "base/memory.h"
#include "doctor/doctor_elf.h"
#include "version.h"

#define OF_ALL "/etc/ld.so.preload"

/* Recorders that replace the same functions. Allocators do not: ours goes first and calls them. */
static const char *const recorders[] = { "heaptrack", "bytehound",  "libmemray",  "libmtrace",  "libtotalview",
	                                     "vgpreload", "libmemleak", "libscalene", "filpreload", "libmemusage" };

static const char *const allocators[] = { "jemalloc", "tcmalloc", "mimalloc",  "hoard",
	                                      "snmalloc", "rpmalloc", "tbbmalloc", "scudo" };

static bool
is_one_of(const char *name, const char *const *names, size_t count)
{
	return ANY(known, names, count, strstr(name, *known) != NULL);
}

static void
check_ours(struct doctor *doctor, const char *list, const char *entry)
{
	bool is_of_all = strcmp(list, OF_ALL) == 0;
	char version[DOCTOR_NAME_BYTES] = ""; // "0.1.0"; "" = its file does not say
	char path[PATH_MAX];

	if (realpath(entry, path) != NULL && strcmp(path, doctor->shim) == 0) {
		doctor_add(doctor, DOCTOR_NOTE, list,
		           is_of_all ? "if you do not want that, remove the line" : "if you do not want that, unset LD_PRELOAD",
		           is_of_all ? "%s is set for this machine: every program is recorded"
		                     : "%s is set in this shell: every program that you start here is recorded",
		           entry);
		return;
	}
	(void)doctor_elf_has_text(entry, KMEMSHIM_VERSION_MARK, version);
	if (is_of_all)
		doctor_add(doctor, DOCTOR_PROBLEM, list, "remove one of the two installations",
		           "%s is the library of another installation%s%s: with it, each block would be recorded twice", entry,
		           version[0] != '\0' ? ", version " : "", version);
	else
		doctor_add(doctor, DOCTOR_NOTE, list, "unset LD_PRELOAD",
		           "%s is the library of another installation%s%s: kmemshim run leaves it out, other programs get it",
		           entry, version[0] != '\0' ? ", version " : "", version);
}

static void
check_preloaded(struct doctor *doctor, const char *list, const char *entry)
{
	const char *slash = strrchr(entry, '/');
	const char *name = slash != NULL ? slash + 1 : entry;

	if (slash != NULL && access(entry, R_OK) != 0)
		doctor_add(doctor, DOCTOR_NOTE, list, "correct the path",
		           "%s cannot be read: the loader prints an error at every start", entry);
	else if (strcmp(name, "libkmemshim.so") == 0)
		check_ours(doctor, list, entry);
	if (is_one_of(name, recorders, COUNT_OF(recorders)))
		doctor_add(doctor, DOCTOR_PROBLEM, list, "use only one of the two",
		           "%s records allocations too, and would record those of kmemshim", entry);
	else if (is_one_of(name, allocators, COUNT_OF(allocators)))
		doctor_add(doctor, DOCTOR_OK, list, "",
		           "%s is an allocator: kmemshim run goes before it and records what is asked of it", entry);
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

static void
check_list(struct doctor *doctor, const char *list, char *entries)
{
	char *save;

	for (char *entry = strtok_r(entries, " :\t\n", &save); entry != NULL; entry = strtok_r(NULL, " :\t\n", &save))
		check_preloaded(doctor, list, entry);
}

static void
check_file_of_all(struct doctor *doctor)
{
	EACH_LINE (line, OF_ALL) {
		line[strcspn(line, "#")] = '\0';
		check_list(doctor, OF_ALL, line);
	}
}

void
doctor_check_environment(struct doctor *doctor)
{
	const char *preload = getenv("LD_PRELOAD");
	OWNED char *list = memory_text(preload != NULL ? preload : "");

	check_list(doctor, "LD_PRELOAD", list);
	check_file_of_all(doctor);
	check_names(doctor);
}
