/*
 * cmd_clean.c - kmemshim clean: what did recordings leave on this machine, and how old is it?
 *
 * Of folders of the user's, only captures are removed: what else lies there somebody else has put there. What still runs stays, and
 * where that cannot be known, too.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/output.h"
#include "base/read_each.h"
#include "base/regular_file.h"
#include "base/units.h"
#include "capture/capture_folder.h"
#include "capture/capture_memory.h"
#include "capture/process_alive.h"
#include "cli/command.h"
#include "cli/options.h"
#include "jupyter/kernel_life.h"

struct left {
	uint64_t captures;
	uint64_t running;
	uint64_t bytes;
	uint64_t removed;
	time_t oldest; // 0 = there is none
	time_t newest;
};

static bool
is_capture(const char *name)
{
	const char *end = strrchr(name, '.');

	return end != NULL && strcmp(end, ".kmem") == 0;
}

/* Is it a capture whose program has ended? Then *status is of its file. */
static bool
has_ended(const char *path, struct stat *status, struct left *left)
{
	struct kmem_identity identity;

	capture_memory_settle(path);

	OWNED_FILE int file = regular_file_open(path, O_RDONLY, status);

	if (file < 0)
		return false;

	bool is_known = capture_memory_identity(file, &identity);
	bool runs = is_known && (process_is_hidden(&identity) || process_is_alive(&identity));

	left->running += runs;
	return is_known && !runs;
}

static void
look(const char *folder, bool is_removed, struct left *left)
{
	EACH_NAME (name, folder) {
		const char *path = TEXT(PATH_MAX + NAME_MAX + 2, "%s/%s", folder, name);
		struct stat status;

		if (!is_capture(name) || !has_ended(path, &status, left))
			continue;
		left->captures++;
		left->bytes += (uint64_t)status.st_size;
		left->newest = status.st_mtime > left->newest ? status.st_mtime : left->newest;
		if (left->oldest == 0 || status.st_mtime < left->oldest)
			left->oldest = status.st_mtime;
		if (is_removed && unlink(path) == 0)
			left->removed++;
	}
	if (left->removed != 0)
		(void)rmdir(folder); // if nothing else is in it
}

static const char *
day_of(time_t when, char text[16])
{
	struct tm day;

	if (localtime_r(&when, &day) == NULL || strftime(text, 16, "%Y-%m-%d", &day) == 0)
		text[0] = '\0';
	return text;
}

/* Returns whether there is something. */
static bool
tell(const char *folder, const struct left *left)
{
	char oldest[16];
	char newest[16];

	if (left->captures + left->running == 0)
		return false;
	(void)printf("%10s  %6s %s", UNITS_BYTES(left->bytes), UNITS_COUNT(left->captures),
	             left->captures == 1 ? "capture " : "captures");
	if (left->captures != 0)
		(void)printf("  %s to %s", day_of(left->oldest, oldest), day_of(left->newest, newest));
	(void)printf("  %s", folder);
	if (left->removed != 0)
		(void)printf("  removed%s", left->removed == left->captures ? "" : " in part");
	if (left->running != 0)
		(void)printf("  (%s more may still be written)", UNITS_COUNT(left->running));
	(void)putchar('\n');
	return true;
}

/* Of the lives of all kernels. */
static void
look_at_kernels(const char *home, struct left *left)
{
	EACH_NAME (life, home) {
		if (life[0] != '.')
			look(TEXT(PATH_MAX + NAME_MAX + 2, "%s/%s", home, life), false, left);
	}
}

static void
clean_kernels(const char *home, bool is_removed, struct left *left)
{
	struct left after = { 0 };

	look_at_kernels(home, left);
	if (!is_removed)
		return;
	kernel_life_prune(home, 0, "");
	look_at_kernels(home, &after);
	left->removed = left->captures - after.captures;
}

bool
cmd_clean(const struct options *options, struct fail *fail)
{
	char *here[] = { CAPTURE_FOLDER_DEFAULT };
	bool is_here = options->argument_count == 0;
	char **folders = is_here ? here : options->arguments;
	int count = is_here ? 1 : options->argument_count;
	char home[PATH_MAX];
	uint64_t found = 0;

	capture_memory_sweep();
	for (int i = 0; i < count; i++) {
		struct left left = { 0 };

		if (!is_here && access(folders[i], R_OK | X_OK) != 0)
			return fail_set(fail, EXIT_USAGE, "%s: %s", folders[i], strerror(errno));
		look(folders[i], options->is_removed, &left);
		found += tell(folders[i], &left);
	}
	if (is_here) {
		struct left left = { 0 };
		struct fail none;

		if (!kernel_life_home(NULL, home, fail))
			return false;
		if (kernel_life_is_there(home, &none))
			clean_kernels(home, options->is_removed, &left);
		found += tell(home, &left);
	}
	if (found == 0)
		(void)puts(is_here ? "nothing is left: no captures in ./" CAPTURE_FOLDER_DEFAULT ", and none of kernels"
		                   : "nothing is left there");
	else if (!options->is_removed)
		(void)printf("To remove what has ended: kmemshim clean --remove%s\n", is_here ? "" : " DIR...");
	return output_finish(fail);
}
