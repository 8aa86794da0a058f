/*
 * doctor_debug.c - which large libraries have no debug symbols, and where are they to be had? See doctor.h.
 *
 * Without them functions have names, where the file still has a symbol table, but no lines. Nothing is fetched: the files of dpkg and
 * the names of Debian's packages tell. The C library is left out: nobody looks for a line in it.
 */
#include "base/memory.h"
#include "base/place.h"
#include "base/read_each.h"
#include "doctor/doctor.h"

#include <stdlib.h>
#include <string.h>

#include "base/items.h"
#include "base/units.h"
#include "base/ask_command.h"
#include "doctor/doctor_elf.h"

#define TOLD_MAX 3
#define LARGE_BYTES (256 << 10)
#define PACKAGE_BYTES 128
#define NEXT_BYTES (2 * PATH_MAX)

struct large {
	const char *path;
	struct doctor_elf elf;
	char package[PACKAGE_BYTES]; // "" = of none
};

/* Keeps it among the largest, the largest first. */
static void
consider(struct large largest[TOLD_MAX], size_t *count, const char *path)
{
	struct large large = { .path = path };
	size_t at;

	if (place_is_of_libc(path) || !doctor_elf_read(path, &large.elf) || large.elf.has_debug_symbols ||
	    large.elf.size_bytes < LARGE_BYTES)
		return;
	for (at = 0; at < *count && largest[at].elf.size_bytes >= large.elf.size_bytes;)
		at++;
	if (at == TOLD_MAX)
		return;
	*count += *count < TOLD_MAX;
	memmove(&largest[at + 1], &largest[at], (*count - at - 1) * sizeof(largest[0]));
	largest[at] = large;
}

struct owners {
	struct large *largest;
	size_t count;
};

/* /usr/lib/x and /lib/x are one file where /lib is a link to /usr/lib; dpkg knows either. */
static const char *
without_usr(const char *path)
{
	return strncmp(path, "/usr/", 5) == 0 ? path + 4 : path;
}

/* "libssl3:amd64: /usr/lib/x86_64-linux-gnu/libssl.so.3"; errors are other lines. */
static void
take_owner(void *context, char *line)
{
	const struct owners *owners = context;
	const char *path = strstr(line, ": /");

	for (size_t i = 0; path != NULL && i < owners->count; i++) {
		if (strcmp(without_usr(path + 2), without_usr(owners->largest[i].path)) == 0)
			(void)snprintf(owners->largest[i].package, PACKAGE_BYTES, "%.*s", (int)strcspn(line, ":, "), line);
	}
}

static void
find_packages(struct large *largest, size_t count)
{
	struct owners owners = { largest, count };
	const char *words[2 + 2 * TOLD_MAX + 1] = { "dpkg-query", "-S" };
	char with_usr[TOLD_MAX][PATH_MAX + 8];
	size_t used = 2;

	for (size_t i = 0; i < count; i++) {
		(void)snprintf(with_usr[i], sizeof(with_usr[i]), "/usr%s", without_usr(largest[i].path));
		words[used++] = without_usr(largest[i].path);
		words[used++] = with_usr[i];
	}
	if (count > 0)
		ask_command(words, NULL, take_owner, &owners);
}

/* Debian makes NAME-dbgsym of a package, but of two sources, which make one package for all of theirs. */
static void
name_debug_package(const char *package, char name[PACKAGE_BYTES + 8])
{
	const char *python = strncmp(package, "lib", 3) == 0 ? package + 3 : package;

	if (strcmp(package, "libc6") == 0)
		(void)snprintf(name, PACKAGE_BYTES + 8, "libc6-dbg");
	else if (strncmp(python, "python3.", 8) == 0)
		(void)snprintf(name, PACKAGE_BYTES + 8, "python3.%.*s-dbg", (int)strspn(python + 8, "0123456789"), python + 8);
	else
		(void)snprintf(name, PACKAGE_BYTES + 8, "%s-dbgsym", package);
}

/* Does a file, or one of a folder, name an archive of debug symbols? */
static bool
names_archive(const char *path)
{
	EACH_NAME (name, path) {
		if (names_archive(TEXT(PATH_MAX, "%s/%s", path, name)))
			return true;
	}
	return doctor_elf_has_text(path, "debian-debug", NULL) || doctor_elf_has_text(path, "ddebs.", NULL);
}

/* The line of apt's sources that -dbgsym packages come from; "" = it is there, or this is neither Debian nor Ubuntu. */
static void
name_archive(char line[160])
{
	static const char *const folders[] = { "/etc/apt/sources.list", "/etc/apt/sources.list.d" };
	char suite[64] = "";
	bool is_ubuntu = false;

	line[0] = '\0';
	EACH_LINE (row, "/etc/os-release") {
		(void)sscanf(row, "VERSION_CODENAME=%60[a-z]", suite);
		is_ubuntu = is_ubuntu || strncmp(row, "ID=ubuntu", 9) == 0;
	}
	if (ANY(folder, folders, COUNT_OF(folders), names_archive(*folder)) || suite[0] == '\0')
		return;
	(void)snprintf(line, 160,
	               is_ubuntu ? "deb http://ddebs.ubuntu.com %s main universe"
	                         : "deb http://deb.debian.org/debian-debug %s-debug main",
	               suite);
}

static void
name_mend(const struct large *large, char next[NEXT_BYTES])
{
	const char *servers = getenv("DEBUGINFOD_URLS");
	char package[PACKAGE_BYTES + 8];
	char archive[160];

	if (large->package[0] != '\0') {
		name_debug_package(large->package, package);
		name_archive(archive);
		if (strstr(package, "-dbgsym") != NULL && archive[0] != '\0')
			(void)snprintf(next, NEXT_BYTES, "apt install %s, of `%s`", package, archive);
		else
			(void)snprintf(next, NEXT_BYTES, "apt install %s", package);
	} else if (servers != NULL && servers[0] != '\0' && large->elf.build_id[0] != '\0') {
		(void)snprintf(next, NEXT_BYTES,
		               "kmemshim asks no server: `debuginfod-find debuginfo %s` does; put the file there as "
		               "/usr/lib/debug/.build-id/%.2s/%s.debug",
		               large->path, large->elf.build_id, large->elf.build_id + 2);
	} else if (strstr(large->path, "/site-packages/") != NULL || strstr(large->path, "/dist-packages/") != NULL) {
		(void)snprintf(next, NEXT_BYTES, "build it from source with -g, if its lines matter: wheels come without");
	} else {
		(void)snprintf(next, NEXT_BYTES, "build it with -g, and do not strip it");
	}
}

void
doctor_check_debug(struct doctor *doctor)
{
	char next[NEXT_BYTES];
	struct large largest[TOLD_MAX];
	size_t count = 0;

	/* Of an interpreter the program's own lines are in another language. */
	if (doctor->python == NULL && doctor->program.path[0] != '\0')
		consider(largest, &count, doctor->program.path);
	for (size_t i = 0; i < doctor->library_count; i++)
		consider(largest, &count, doctor->libraries[i]);
	find_packages(largest, count);
	for (size_t i = 0; i < count; i++) {
		name_mend(&largest[i], next);
		doctor_add(doctor, DOCTOR_NOTE, largest[i].path, next,
		           "has no debug symbols (%s): its functions may have names, its lines are unknown",
		           UNITS_BYTES(largest[i].elf.size_bytes));
	}
}
