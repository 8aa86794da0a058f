/*
 * kernel_spec.c - finds, wraps, writes and removes kernel specifications (see kernel_spec.h).
 *
 * The order of folders is that of jupyter_core. Which Python environment is meant is told by the environment variables of virtualenv and
 * conda, else by the first `jupyter` and `python3` in PATH.
 *
 * When failing  see kernel_spec.h. What was there before is still there.
 */
#include "jupyter/kernel_spec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/make_folders.h"
#include "base/memory.h"
#include "base/output.h"
#include "base/read_each.h"
#include "base/regular_file.h"
#include "jupyter/pyenv.h"
#include "version.h"

#define PLACES_MAX 24
#define FOLDER_MODE 0755
#define LAUNCHER_AT 3               // among the words that kernel_spec_wrap() gets
#define PICTURE_MAX_BYTES (1 << 20) // of a logo or a style sheet; what is larger is none

static const char file_name[] = "kernel.json";
static const char native_name[] = "python3";

struct places {
	size_t count;
	char paths[PLACES_MAX][PATH_MAX]; // each holds folders of kernels
};

static void
add_place(struct places *places, const char *path, const char *below)
{
	char wanted[PATH_MAX];

	if (path == NULL || path[0] != '/' || places->count == PLACES_MAX ||
	    snprintf(wanted, sizeof(wanted), "%s%s", path, below) >= (int)sizeof(wanted))
		return;
	for (size_t i = 0; i < places->count; i++) {
		if (strcmp(places->paths[i], wanted) == 0)
			return;
	}
	(void)snprintf(places->paths[places->count++], PATH_MAX, "%s", wanted);
}

/*
 * /venv for a program /venv/bin/NAME that a shell would run; false = there is none. Links are not followed: a venv is made of them. Of
 * a shim of pyenv, what it would run.
 */
static bool
prefix_of_program(const char *name, char prefix[PATH_MAX])
{
	const char *path = getenv("PATH");

	while (path != NULL && path[0] != '\0') {
		size_t length = strcspn(path, ":");
		char program[PATH_MAX];

		bool is_there = snprintf(program, sizeof(program), "%.*s/%s", (int)length, path, name) < (int)sizeof(program) &&
		                program[0] == '/' && access(program, X_OK) == 0;

		if (is_there && length > 4 && strncmp(path + length - 4, "/bin", 4) == 0) {
			(void)snprintf(prefix, PATH_MAX, "%.*s", (int)length - 4, path);
			return true;
		}
		if (is_there && length > 6 && strncmp(path + length - 6, "/shims", 6) == 0 &&
		    pyenv_prefix(path, (int)length - 6, prefix))
			return true;
		path += length + (path[length] == ':' ? 1 : 0);
	}
	return false;
}

/* Prefixes of the Python environments that may be meant, the likeliest first. */
static void
fill_prefixes(struct places *prefixes)
{
	char prefix[PATH_MAX];

	prefixes->count = 0;
	add_place(prefixes, getenv("VIRTUAL_ENV"), "");
	add_place(prefixes, getenv("CONDA_PREFIX"), "");
	if (prefix_of_program("jupyter", prefix))
		add_place(prefixes, prefix, "");
	if (prefix_of_program("python3", prefix))
		add_place(prefixes, prefix, "");
	add_place(prefixes, "/usr", "");
}

static void
add_of_user(struct places *places)
{
	const char *data = getenv("JUPYTER_DATA_DIR");
	const char *xdg = getenv("XDG_DATA_HOME");

	if (data != NULL && data[0] != '\0')
		add_place(places, data, "/kernels");
	else if (xdg != NULL && xdg[0] != '\0')
		add_place(places, xdg, "/jupyter/kernels");
	else
		add_place(places, getenv("HOME"), "/.local/share/jupyter/kernels");
}

static void
add_of_environments(struct places *places)
{
	OWNED struct places *prefixes = memory_zeroed(1, sizeof(*prefixes));

	fill_prefixes(prefixes);
	for (size_t i = 0; i < prefixes->count; i++) {
		if (strcmp(prefixes->paths[i], "/usr") != 0) // comes last
			add_place(places, prefixes->paths[i], "/share/jupyter/kernels");
	}
}

static bool
prefers_environment(void)
{
	const char *wish = getenv("JUPYTER_PREFER_ENV_PATH");

	if (wish != NULL)
		return wish[0] != '\0' && strchr("0nNfF", wish[0]) == NULL;
	return getenv("VIRTUAL_ENV") != NULL || getenv("CONDA_PREFIX") != NULL;
}

static struct places *
find_places(void)
{
	struct places *places = memory_zeroed(1, sizeof(*places));
	const char *asked = getenv("JUPYTER_PATH");
	OWNED char *list = memory_text(asked != NULL ? asked : "");
	char *rest = list;
	const char *path;

	while ((path = strsep(&rest, ":")) != NULL)
		add_place(places, path, "/kernels");
	if (prefers_environment())
		add_of_environments(places);
	add_of_user(places);
	add_place(places, getenv("HOME"), "/.local/share/jupyter/kernels"); // of Python's user site
	add_of_environments(places);
	add_place(places, "/usr/local", "/share/jupyter/kernels");
	add_place(places, "/usr", "/share/jupyter/kernels");
	add_place(places, getenv("HOME"), "/.ipython/kernels");
	return places;
}

void
kernel_spec_free(struct kernel_spec *spec)
{
	json_decref(spec->root);
	spec->root = NULL;
}

/* ENOENT in errno, and no line, where there is none. */
static bool
read_spec(const char *kernels, const char *name, struct kernel_spec *spec, struct fail *fail)
{
	*spec = (struct kernel_spec){ .root = NULL };
	(void)snprintf(spec->name, sizeof(spec->name), "%s", name);
	if (snprintf(spec->folder, sizeof(spec->folder), "%s/%s", kernels, name) >= (int)sizeof(spec->folder)) {
		errno = ENOENT;
		return false;
	}
	const char *path = TEXT(PATH_MAX + sizeof(file_name) + 1, "%s/%s", spec->folder, file_name);
	int file = regular_file_open(path, O_RDONLY, NULL);

	if (file < 0) {
		int error = errno;

		(void)fail_set(fail, EXIT_USAGE, "%s: %s", path, regular_file_why(error));
		errno = error;
		return false;
	}
	spec->root = json_read_file(file, path, fail);
	errno = 0;
	if (spec->root == NULL)
		return false;

	const json_t *arguments = json_object_get(spec->root, "argv");

	for (size_t i = 0; i < json_array_size(arguments); i++) {
		if (!json_is_string(json_array_get(arguments, i)))
			arguments = NULL;
	}
	if (json_array_size(arguments) != 0)
		return true;
	kernel_spec_free(spec);
	return fail_set(fail, EXIT_USAGE,
	                "%s: \"argv\" is missing or is not a list of texts: it says how the kernel is started", path);
}

/* As it is written in this folder of kernels: for Jupyter, capitals make no other name. */
static void
find_name(const char *kernels, const char *wanted, char name[NAME_MAX + 1])
{
	(void)snprintf(name, NAME_MAX + 1, "%s", wanted);
	EACH_NAME (own, kernels) {
		if (strcasecmp(own, wanted) == 0)
			(void)snprintf(name, NAME_MAX + 1, "%s", own);
	}
}

/* The interpreter that is next to a folder of kernels: PREFIX/bin/python of PREFIX/share/jupyter/kernels/NAME. */
static bool
python_of_folder(const char *folder, char python[PATH_MAX])
{
	static const char inside[] = "/share/jupyter/kernels/";
	const char *at = strstr(folder, inside);

	if (at == NULL)
		return false;
	for (const char *next; (next = strstr(at + 1, inside)) != NULL;)
		at = next;
	for (int i = 0; i < 2; i++) {
		if (snprintf(python, PATH_MAX, "%.*s/bin/%s", (int)(at - folder), folder, i == 0 ? "python" : "python3") <
		        PATH_MAX &&
		    access(python, X_OK) == 0)
			return true;
	}
	return false;
}

/* Jupyter puts its own interpreter for the bare word "python". It would not see that word behind the launcher's. */
static void
name_interpreter(struct kernel_spec *spec)
{
	json_t *arguments = json_object_get(spec->root, "argv");
	const char *first = json_string_value(json_array_get(arguments, 0));
	OWNED struct places *prefixes = NULL;
	char python[PATH_MAX];

	if (strncmp(first, "python", 6) != 0 || first[6 + strspn(first + 6, "0123456789.")] != '\0')
		return;
	if (python_of_folder(spec->folder, python)) {
		(void)json_array_set_new(arguments, 0, json_string(python));
		return;
	}
	prefixes = memory_zeroed(1, sizeof(*prefixes));
	fill_prefixes(prefixes);
	for (size_t i = 0; i < prefixes->count; i++) {
		const char *program = TEXT(PATH_MAX + 16, "%s/bin/%s", prefixes->paths[i], first);

		if (access(program, X_OK) == 0) {
			(void)json_array_set_new(arguments, 0, json_string(program));
			break;
		}
	}
}

/* The kernel that Jupyter has without a file: ipykernel of its own environment. */
static bool
make_native(struct kernel_spec *spec)
{
	static const char *const patterns[] = { "/lib/python3*/site-packages/ipykernel/__init__.py",
		                                    "/lib/python3/dist-packages/ipykernel/__init__.py" };
	OWNED struct places *prefixes = memory_zeroed(1, sizeof(*prefixes));
	bool is_made = false;

	fill_prefixes(prefixes);
	for (size_t i = 0; i < prefixes->count && !is_made; i++) {
		for (size_t k = 0; k < sizeof(patterns) / sizeof(patterns[0]) && !is_made; k++) {
			char text[PATH_MAX + 80];
			glob_t found;

			(void)snprintf(text, sizeof(text), "%s%s", prefixes->paths[i], patterns[k]);
			if (glob(text, 0, NULL, &found) != 0)
				continue;
			globfree(&found);
			(void)snprintf(text, sizeof(text), "%s/bin/python3", prefixes->paths[i]);
			*spec = (struct kernel_spec){ .root = json_pack("{s:[s,s,s,s,s],s:s,s:s,s:{s:b}}", "argv", text, "-m",
				                                            "ipykernel_launcher", "-f", "{connection_file}",
				                                            "display_name", "Python 3 (ipykernel)", "language",
				                                            "python", "metadata", "debugger", 1) };
			(void)snprintf(spec->name, sizeof(spec->name), "%s", native_name);
			is_made = spec->root != NULL;
		}
	}
	return is_made;
}

bool
kernel_spec_find(const char *name, struct kernel_spec *spec, struct fail *fail)
{
	OWNED struct places *places = find_places();
	bool is_known = false;
	bool is_found = false;

	for (size_t i = 0; i < places->count && !is_known; i++) {
		char own[NAME_MAX + 1];

		find_name(places->paths[i], name, own);
		is_found = read_spec(places->paths[i], own, spec, fail);
		is_known = is_found ||
		           (errno != ENOENT && errno != ENOTDIR); // one that cannot be read hides others, for Jupyter too
	}
	if (!is_known && strcasecmp(name, native_name) == 0)
		is_known = is_found = make_native(spec);
	if (!is_known)
		return fail_set(fail, EXIT_USAGE,
		                "%s: no such kernel: jupyter kernelspec list shows all; activate the environment that has it",
		                name);
	if (is_found)
		name_interpreter(spec);
	return is_found;
}

struct kernel_specs
kernel_specs_list(bool has_others)
{
	OWNED struct places *places = find_places();
	struct kernel_spec native;
	bool has_native = false;
	struct kernel_specs all = { .count = 0 };
	size_t room = 0;

	for (size_t i = 0; i < places->count; i++) {
		struct dirent **entries;
		int entry_count = scandir(places->paths[i], &entries, NULL, alphasort);

		for (int k = 0; k < entry_count; k++) {
			struct kernel_spec spec;
			struct fail fail;

			if (entries[k]->d_name[0] != '.' && read_spec(places->paths[i], entries[k]->d_name, &spec, &fail)) {
				has_native = has_native || strcasecmp(spec.name, native_name) == 0;
				if (has_others || kernel_spec_wraps(&spec) != NULL) {
					*MEMORY_NEXT(all.specs, all.count, room) = spec;
				} else {
					kernel_spec_free(&spec);
				}
			}
			free(entries[k]);
		}
		if (entry_count >= 0)
			free(entries);
	}
	if (has_others && !has_native && make_native(&native)) {
		*MEMORY_NEXT(all.specs, all.count, room) = native;
	}
	return all;
}

void
kernel_specs_free(struct kernel_specs *kernels)
{
	for (size_t i = 0; i < kernels->count; i++)
		kernel_spec_free(&kernels->specs[i]);
	free(kernels->specs);
}

/* Of ours: /bin/sh -c SCRIPT LAUNCHER run --kernel ... -- PROGRAM ... */
const char *
kernel_spec_launcher(const struct kernel_spec *spec)
{
	const json_t *arguments = json_object_get(spec->root, "argv");

	return kernel_spec_wraps(spec) != NULL ? json_string_value(json_array_get(arguments, LAUNCHER_AT)) : NULL;
}

const char *
kernel_spec_program(const struct kernel_spec *spec)
{
	const json_t *arguments = json_object_get(spec->root, "argv");
	size_t at = LAUNCHER_AT;

	if (kernel_spec_wraps(spec) == NULL)
		return json_string_value(json_array_get(arguments, 0));
	while (at < json_array_size(arguments) && strcmp(json_string_value(json_array_get(arguments, at)), "--") != 0)
		at++;
	return json_string_value(json_array_get(arguments, at + 1)); // NULL beyond the end
}

bool
kernel_spec_is_name(const char *name)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

	return name[0] != '\0' && name[strspn(name, allowed)] == '\0';
}

const char *
kernel_spec_wraps(const struct kernel_spec *spec)
{
	const json_t *mark = json_object_get(json_object_get(spec->root, "metadata"), "kmemshim");

	return json_string_value(json_object_get(mark, "wraps"));
}

const char *
kernel_spec_title(const struct kernel_spec *spec)
{
	const char *title = json_string_value(json_object_get(spec->root, "display_name"));

	return title != NULL && title[0] != '\0' ? title : spec->name;
}

bool
kernel_spec_is_ipython(const struct kernel_spec *spec)
{
	const json_t *arguments = json_object_get(spec->root, "argv");

	for (size_t i = 0; i < json_array_size(arguments); i++) {
		if (strncmp(json_string_value(json_array_get(arguments, i)), "ipykernel", 9) == 0)
			return true;
	}
	return false;
}

void
kernel_spec_wrap(struct kernel_spec *spec, const char *const *launcher)
{
	static const char suffix[] = " (ipykernel)";
	json_t *words = json_array();
	json_t *metadata = json_object_get(spec->root, "metadata");
	const char *title = kernel_spec_title(spec);
	size_t length = strlen(title);

	for (; *launcher != NULL; launcher++)
		(void)json_array_append_new(words, json_string(*launcher));
	(void)json_array_extend(words, json_object_get(spec->root, "argv"));
	(void)json_object_set_new(spec->root, "argv", words);
	if (length >= sizeof(suffix) && strcmp(title + length - (sizeof(suffix) - 1), suffix) == 0)
		length -= sizeof(suffix) - 1;

	OWNED char *new_title = memory_printed("%.*s (kmemshim)", (int)length, title);

	(void)json_object_set_new(spec->root, "display_name", json_string(new_title));
	if (!json_is_object(metadata)) {
		metadata = json_object();
		(void)json_object_set_new(spec->root, "metadata", metadata);
	}
	(void)json_object_set_new(metadata, "kmemshim",
	                          json_pack("{s:s,s:s}", "wraps", spec->name, "version", KMEMSHIM_VERSION_TEXT));
}

void
kernel_spec_tell_name(struct kernel_spec *spec, const char *name)
{
	const char *title = kernel_spec_title(spec);
	OWNED char *longer = memory_printed("%.*s, %s)", (int)strlen(title) - 1, title, name);

	(void)json_object_set_new(spec->root, "display_name", json_string(longer));
}

bool
kernel_spec_place(enum kernel_spec_place place, const char *prefix, char folder[PATH_MAX], struct fail *fail)
{
	OWNED struct places *places = memory_zeroed(1, sizeof(*places));

	if (place == KERNEL_SPEC_OF_USER)
		add_of_user(places);
	else if (place == KERNEL_SPEC_OF_ENVIRONMENT)
		add_of_environments(places);
	else
		add_place(places, prefix, "/share/jupyter/kernels");

	bool is_known = places->count != 0;

	if (is_known)
		(void)snprintf(folder, PATH_MAX, "%s", places->paths[0]);
	return is_known ||
	       fail_set(fail, EXIT_USAGE,
	                place == KERNEL_SPEC_OF_USER ? "jupyter: there is no home folder: set HOME, or give --prefix DIR"
	                : place == KERNEL_SPEC_OF_ENVIRONMENT
	                    ? "jupyter: --sys-prefix: no Python environment is active: activate one, or give --prefix DIR"
	                    : "jupyter: --prefix: the folder must be absolute");
}

static bool
copy_file(const char *from, const char *to, struct fail *fail)
{
	struct stat status;
	OWNED_FILE int file = regular_file_open(from, O_RDONLY, &status);

	if (file < 0 || status.st_size > PICTURE_MAX_BYTES) {
		return true; // a kernel without its logo is a kernel
	}

	OWNED char *bytes = memory_zeroed((size_t)status.st_size + 1, 1);
	ssize_t length = read(file, bytes, (size_t)status.st_size);

	struct output_file *output = output_open(to, OUTPUT_OF_ALL, fail);

	if (output != NULL && length > 0)
		(void)fwrite(bytes, 1, (size_t)length, output_stream(output));
	return output != NULL && output_close(output, fail);
}

static bool
copy_pictures(const char *from, const char *to, struct fail *fail)
{
	EACH_NAME (name, from) {
		if (name[0] != '.' && strcmp(name, file_name) != 0 &&
		    !copy_file(TEXT(2 * PATH_MAX, "%s/%s", from, name), TEXT(2 * PATH_MAX, "%s/%s", to, name), fail))
			return false;
	}
	return true;
}

bool
kernel_spec_write(const struct kernel_spec *spec, const char *kernels, const char *name, bool is_forced,
                  char written[PATH_MAX], struct fail *fail)
{
	struct kernel_spec present;
	bool is_there = read_spec(kernels, name, &present, fail);
	bool is_others = is_there ? kernel_spec_wraps(&present) == NULL : errno != ENOENT;

	if (is_there)
		kernel_spec_free(&present);
	if (is_others && !is_forced)
		return fail_set(fail, EXIT_USAGE,
		                "%s/%s: there is a kernel that kmemshim did not write: give another --name, or --force",
		                kernels, name);
	if (snprintf(written, PATH_MAX, "%s/%s", kernels, name) >= PATH_MAX)
		return fail_set(fail, EXIT_USAGE, "%.200s...: the path is too long", kernels);
	if (!make_folders(written, FOLDER_MODE))
		return fail_set(fail, EXIT_USAGE, "%s: cannot make this folder: %s: give --user or --prefix DIR", written,
		                strerror(errno));
	if (!copy_pictures(spec->folder, written, fail))
		return false;

	struct output_file *output = output_open(TEXT(PATH_MAX + sizeof(file_name) + 1, "%s/%s", written, file_name),
	                                         OUTPUT_OF_ALL, fail);

	if (output == NULL)
		return false;
	if (json_dumpf(spec->root, output_stream(output), JSON_INDENT(1)) == 0)
		(void)fputc('\n', output_stream(output));
	return output_close(output, fail);
}

bool
kernel_spec_remove(const struct kernel_spec *spec, struct fail *fail)
{
	EACH_NAME (name, spec->folder)
		(void)unlink(TEXT(2 * PATH_MAX, "%s/%s", spec->folder, name));
	return rmdir(spec->folder) == 0 ||
	       fail_set(fail, EXIT_USAGE, "%s: cannot be removed: %s", spec->folder, strerror(errno));
}
