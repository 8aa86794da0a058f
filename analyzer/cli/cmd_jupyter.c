/*
 * cmd_jupyter.c - kmemshim jupyter: installs, lists and removes kernels that are recorded.
 *
 * When failing  one line, and nothing is changed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/make_folders.h"
#include "base/memory.h"
#include "base/output.h"
#include "base/place.h"
#include "base/read_each.h"
#include "base/regular_file.h"
#include "cli/command.h"
#include "cli/options.h"
#include "jupyter/kernels.h"
#include "launch/launcher.h"
#include "launch/program.h"
#include "version.h"

#define FOLDER_MODE 0755
#define PICTURE_MAX_BYTES (1 << 20) // what is larger is cut

#define INSTALL_OPTIONS                                                                                              \
	(OPTION_BIT(OPTION_WRAP) | OPTION_BIT(OPTION_USER) | OPTION_BIT(OPTION_SYS_PREFIX) | OPTION_BIT(OPTION_PREFIX) | \
	 OPTION_BIT(OPTION_FORCE) | OPTION_BIT(OPTION_GUARD) | OPTION_BIT(OPTION_GUARD_ACTION) |                         \
	 OPTION_BIT(OPTION_NO_GUARD) | OPTION_BIT(OPTION_KEEP))

static bool
check_install(const struct options *options, struct fail *fail)
{
	uint64_t places = options->given &
	                  (OPTION_BIT(OPTION_USER) | OPTION_BIT(OPTION_SYS_PREFIX) | OPTION_BIT(OPTION_PREFIX));

	if ((places & (places - 1)) != 0)
		return fail_set(fail, EXIT_USAGE, "jupyter: give one of --user, --sys-prefix and --prefix");
	return !options->has_no_guard || (options->guard == NULL && options->guard_action == NULL) ||
	       fail_set(fail, EXIT_USAGE, "jupyter: --no-guard: give it without --guard and --guard-action");
}

/* What kernels.py takes. */
static json_t *
request_of(const struct options *options)
{
	char self[PATH_MAX];

	program_own(self);
	return json_pack("{s:s,s:s,s:s,s:s?,s:s?,s:s?,s:s?,s:s?,s:b,s:b,s:b,s:b,s:o}", "what", options->arguments[0],
	                 "self", self, "version", KMEMSHIM_VERSION_TEXT, "wrap", options->wrap, "name", options->name,
	                 "prefix", options->prefix, "guard", options->guard, "guard_action", options->guard_action,
	                 "sys_prefix", options->is_in_environment, "force", options->is_forced, "no_guard",
	                 options->has_no_guard, "all", options->has_all, "keep",
	                 options_has(options, OPTION_KEEP) ? json_integer((json_int_t)options->keep) : json_null());
}

static bool
put_file(const char *folder, const char *name, const void *bytes, size_t length, struct fail *fail)
{
	struct output_file *output = output_open(TEXT(2 * PATH_MAX, "%s/%s", folder, name), OUTPUT_OF_ALL, fail);

	if (output == NULL)
		return false;
	(void)fwrite(bytes, 1, length, output_stream(output));
	return output_close(output, fail);
}

static bool
write_kernel(const json_t *answer, const char *folder, struct fail *fail)
{
	OWNED char *picture = memory_zeroed(PICTURE_MAX_BYTES, 1);
	const json_t *path;
	size_t i;

	if (!make_folders(folder, FOLDER_MODE))
		return fail_set(fail, EXIT_USAGE, "%s: cannot make this folder: %s: give --user or --prefix DIR", folder,
		                strerror(errno));
	json_array_foreach(json_object_get(answer, "pictures"), i, path)
	{
		OWNED_FILE int file = regular_file_open(json_string_value(path), O_RDONLY, NULL);
		ssize_t length = read(file, picture, PICTURE_MAX_BYTES); // a kernel without its logo is a kernel

		if (length > 0 && !put_file(folder, place_base(json_string_value(path)), picture, (size_t)length, fail))
			return false;
	}

	const char *text = json_string_value(json_object_get(answer, "text"));

	return put_file(folder, "kernel.json", text, strlen(text), fail);
}

static bool
remove_kernel(const char *folder, struct fail *fail)
{
	EACH_NAME (name, folder)
		(void)unlink(TEXT(2 * PATH_MAX, "%s/%s", folder, name));
	if (rmdir(folder) != 0)
		return fail_set(fail, EXIT_USAGE, "%s: cannot be removed: %s", folder, strerror(errno));
	(void)printf("Removed the kernel %s from %s.\n", place_base(folder), folder);
	return true;
}

/* Does what Python found to be done. */
static bool
carry_out(const json_t *answer, struct fail *fail)
{
	const char *folder = json_string_value(json_object_get(answer, "folder"));
	const json_t *each;
	size_t i;

	if (folder != NULL && !write_kernel(answer, folder, fail))
		return false;
	json_array_foreach(json_object_get(answer, "remove"), i, each)
	{
		if (!remove_kernel(json_string_value(each), fail))
			return false;
	}
	json_array_foreach(json_object_get(answer, "say"), i, each)
	{
		(void)puts(json_string_value(each));
	}
	return output_finish(fail);
}

bool
cmd_jupyter(const struct options *options, struct fail *fail)
{
	const char *what = options->arguments[0];
	char shim[PATH_MAX];

	if (strcmp(what, "install") != 0 && (options->given & INSTALL_OPTIONS) != 0)
		return fail_set(fail, EXIT_USAGE, "jupyter %s: takes only --name", what);
	if (strcmp(what, "uninstall") != 0 && options->has_all)
		return fail_set(fail, EXIT_USAGE, "jupyter %s: --all is for uninstall", what);
	if (options->has_all && options->name != NULL)
		return fail_set(fail, EXIT_USAGE, "jupyter uninstall: give one of --name and --all");
	if (strcmp(what, "install") == 0 && (!check_install(options, fail) || !launcher_find_shim(NULL, shim, fail)))
		return false;
	if (strcmp(what, "install") != 0 && strcmp(what, "list") != 0 && strcmp(what, "uninstall") != 0)
		return fail_set(fail, EXIT_USAGE, "jupyter %s: there is install, list, and uninstall", what);

	json_t *answer = kernels_ask(request_of(options), fail);
	bool is_done = answer != NULL && carry_out(answer, fail);

	json_decref(answer);
	return is_done;
}
