/*
 * kernel_spec.h - which kernels does Jupyter know here, and how is one made that is recorded?
 *
 * A kernel specification is a folder NAME with a kernel.json: the command that starts the kernel, and what menus show. Ours starts
 * the command of another one through `kmemshim run --kernel`. It has a mark in its metadata. Python is not run for any of this.
 *
 * When failing  one line in `fail` (EXIT_USAGE).
 */
#ifndef KERNEL_SPEC_H
#define KERNEL_SPEC_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/fail.h"
#include "base/json_read.h"

struct kernel_spec {
	char folder[PATH_MAX]; // "" = made by us from an interpreter, and nowhere on disk
	char name[NAME_MAX + 1];
	json_t *root; // of kernel.json; has an "argv"
};

/* Finds a kernel where Jupyter would. Where no kernel python3 is on disk, Jupyter makes one from ipykernel; so do we. */
bool kernel_spec_find(const char *name, struct kernel_spec *spec, struct fail *fail);

struct kernel_specs {
	struct kernel_spec *specs;
	size_t count;
};

/* All that are ours, or all, in the order of Jupyter's folders: of two with one name it takes the first. What cannot be read is left out. */
struct kernel_specs kernel_specs_list(bool has_others);
#define OWNED_KERNELS __attribute__((cleanup(kernel_specs_free))) // before the declaration of a list
void kernel_specs_free(struct kernel_specs *kernels);

/* May a kernel have this name? Jupyter does not see others. */
bool kernel_spec_is_name(const char *name);

void kernel_spec_free(struct kernel_spec *spec);

/* "python3" for a kernel of ours that wraps python3; NULL = it is not ours. */
const char *kernel_spec_wraps(const struct kernel_spec *spec);

/* The command of an installation of kmemshim that starts a kernel of ours; NULL = it is not ours, or somebody changed it. */
const char *kernel_spec_launcher(const struct kernel_spec *spec);

/* The program of the kernel itself, behind the launcher of ours: "/venv/bin/python"; NULL = somebody changed it. */
const char *kernel_spec_program(const struct kernel_spec *spec);

/* "Python 3 (ipykernel)" */
const char *kernel_spec_title(const struct kernel_spec *spec);

/* IPython shows the verdict and knows cells; other kernels are recorded without that. */
bool kernel_spec_is_ipython(const struct kernel_spec *spec);

/*
 * Makes it ours.
 *
 * launcher   the words in front of its own command, ends with NULL: /bin/sh -c SCRIPT COMMAND ... --
 */
void kernel_spec_wrap(struct kernel_spec *spec, const char *const *launcher);

/* "Python 3 (kmemshim)" becomes "Python 3 (kmemshim, NAME)". */
void kernel_spec_tell_name(struct kernel_spec *spec, const char *name);

enum kernel_spec_place { KERNEL_SPEC_OF_USER, KERNEL_SPEC_OF_ENVIRONMENT, KERNEL_SPEC_OF_PREFIX };

/* The folder of kernels to install into. prefix: for KERNEL_SPEC_OF_PREFIX. */
bool kernel_spec_place(enum kernel_spec_place place, const char *prefix, char folder[PATH_MAX], struct fail *fail);

/*
 * Writes it as NAME below `kernels`, with the pictures of the folder that it came from.
 *
 * is_forced  also over a kernel that is not ours
 * written    out: its folder
 */
bool kernel_spec_write(const struct kernel_spec *spec, const char *kernels, const char *name, bool is_forced,
                       char written[PATH_MAX], struct fail *fail);

/* Removes its folder. */
bool kernel_spec_remove(const struct kernel_spec *spec, struct fail *fail);

#endif
