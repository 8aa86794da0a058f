/*
 * frame_rules.c - whose code is this frame (see frame_rules.h)?
 *
 * The lists are what comes with systems, interpreters and compilers; the unknown counts as the user's own, since hiding
 * somebody's code is worse than showing a library.
 */
#include "frame_rules.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

#define COUNT_OF(list) (sizeof(list) / sizeof((list)[0]))

static bool
starts_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

static bool
starts_with_any(const char *text, const char *const *starts, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (starts_with(text, starts[i]))
			return true;
	}
	return false;
}

static bool
is_in_packages(const char *path)
{
	return strstr(path, "/site-packages/") != NULL || strstr(path, "/dist-packages/") != NULL;
}

/* ".../lib/python3.11/json/decoder.py", ".../lib64/python3.9/...", ".../python311.zip/..." */
static bool
is_in_standard_library(const char *path)
{
	for (const char *at = path; (at = strstr(at, "/python3")) != NULL; at++) {
		bool is_in_lib = (at - path >= 4 && strncmp(at - 4, "/lib", 4) == 0) ||
		                 (at - path >= 6 && strncmp(at - 6, "/lib64", 6) == 0);
		const char *end = at + 8 + strspn(at + 8, ".0123456789t");

		if ((is_in_lib && *end == '/') || starts_with(end - (end[-1] == '.'), ".zip/"))
			return true;
	}
	return false;
}

/* Files that exist only as names: cells, prompts and exec'ed text are the user's, what libraries generate is not. */
static bool
is_user_pseudo_file(const char *file)
{
	static const char *const starts[] = { "<string>", "<stdin>", "<console>", "<input>", "<ipython-input-", "<cell",
		                              "<command-", "<notebook", "<doctest " };

	return starts_with_any(file, starts, COUNT_OF(starts));
}

/* Is `path`, seen from `directory`, below `folder`? */
static bool
is_below(const char *folder, const char *directory, const char *path)
{
	size_t length = strlen(folder);
	size_t directory_length = strlen(directory);

	while (length > 1 && folder[length - 1] == '/')
		length--;
	if (path[0] == '/')
		return strncmp(path, folder, length) == 0 && (path[length] == '/' || folder[length - 1] == '/');
	if (starts_with(path, "./"))
		path += 2;
	if (path[0] == '\0' || path[0] == '<' || starts_with(path, "../"))
		return false;
	if (directory_length >= length) // the folder is the directory or above it
		return strncmp(directory, folder, length) == 0 &&
		       (directory[length] == '/' || directory[length] == '\0' || folder[length - 1] == '/');
	/* The folder is below the directory: the rest of its name must begin the path. */
	return strncmp(folder, directory, directory_length) == 0 && folder[directory_length] == '/' &&
	       strncmp(path, folder + directory_length + 1, length - directory_length - 1) == 0 &&
	       path[length - directory_length - 1] == '/';
}

static bool
is_user_python(const struct model_frame *frame)
{
	if (frame->file[0] == '<')
		return is_user_pseudo_file(frame->file);
	return frame->file[0] != '\0' && !is_in_packages(frame->file) && !is_in_standard_library(frame->file);
}

static bool
is_user_module(const struct model_frame *frame)
{
	static const char *const folders[] = { "/lib/", "/lib32/", "/lib64/", "/libx32/", "/usr/lib/", "/usr/lib32/",
		                               "/usr/lib64/", "/usr/libx32/", "/usr/libexec/", "/usr/local/lib/",
		                               "/usr/local/lib64/", "/snap/core", "/nix/store/" };
	static const char *const names[] = { "libpython", "libkmemshim", "linux-vdso", "[vdso]", "ld-linux", "ld-musl",
		                             "libc.so", "libc-", "libm.so", "libstdc++", "libc++", "libgcc_s", "libgomp",
		                             "libpthread", "libdl.so", "librt.so", "libjemalloc", "libtcmalloc",
		                             "libmimalloc", "libcuda", "libnvidia" };
	const char *after;

	if (frame->module_path[0] != '/' || is_in_packages(frame->module_path) ||
	    is_in_standard_library(frame->module_path) ||
	    starts_with_any(frame->module_path, folders, COUNT_OF(folders)) ||
	    starts_with_any(frame->module, names, COUNT_OF(names)))
		return false;
	if (!starts_with(frame->module, "python"))
		return true;
	after = frame->module + strlen("python"); // "python", "python3", "python3.11", "python3.13t", "python3-dbg"
	after += strspn(after, "0123456789.td");
	return *after != '\0' && *after != '-';
}

/* Inlined or instantiated library code in the user's own module, and the start-up code of every program. */
static bool
is_foreign_function(const struct model_frame *frame)
{
	static const char *const functions[] = { "std::", "__gnu_cxx::", "__cxxabiv1::", "operator new", "operator delete",
		                                 "core::ops::", "core::iter::", "core::ptr::", "core::option::",
		                                 "core::result::", "alloc::vec::", "alloc::raw_vec::", "alloc::boxed::",
		                                 "alloc::string::", "alloc::slice::", "alloc::alloc::", "<alloc::",
		                                 "<core::", "<std::", "__rust_", "__rg_", "__rdl_", "__libc_", "__cxa_",
		                                 "_GLOBAL__sub_" };
	static const char *const files[] = { "/usr/include/", "/usr/lib/", "/usr/local/include/", "/rustc/",
		                             "/usr/src/", "library/core/src/", "library/alloc/src/",
		                             "library/std/src/" };

	return strcmp(frame->function, "_start") == 0 ||
	       starts_with_any(frame->function, functions, COUNT_OF(functions)) ||
	       starts_with_any(frame->file, files, COUNT_OF(files)) || strstr(frame->file, "/include/c++/") != NULL;
}

void
frame_rules_judge(const struct frame_rules *rules, struct model_frame *frame, bool is_library)
{
	if (rules->project != NULL)
		frame->is_user = is_below(rules->project, rules->directory, frame->file) ||
		                 is_below(rules->project, rules->directory, frame->module_path);
	else if (frame->kind == MODEL_FRAME_PYTHON)
		frame->is_user = !is_library && is_user_python(frame);
	else
		frame->is_user = is_user_module(frame) && !is_foreign_function(frame);
	if (frame->kind == MODEL_FRAME_NATIVE && frame_rules_is_allocator(frame))
		frame->is_user = false;
}

bool
frame_rules_is_allocator(const struct model_frame *frame)
{
	static const char *const names[] = {
		"malloc", "calloc", "realloc", "reallocarray", "free", "memalign", "aligned_alloc", "posix_memalign",
		"valloc", "pvalloc", "strdup", "strndup", "asprintf", "vasprintf", "getdelim", "getline", "mmap",
		"mmap64", "mremap", "xmalloc", "xcalloc", "xrealloc", "xstrdup", "xstrndup", "xzalloc", "xmemdup",
		"g_malloc", "g_malloc0", "g_malloc_n", "g_malloc0_n", "g_realloc", "g_realloc_n", "g_try_malloc",
		"g_strdup", "g_slice_alloc", "g_slice_alloc0", "je_malloc", "mi_malloc", "tc_malloc", "emalloc",
		"ecalloc", "erealloc", "exchange_malloc",
	};
	static const char *const starts[] = {
		"operator new", "operator delete", "__libc_malloc", "__libc_calloc", "__libc_realloc", "__libc_memalign",
		"__gnu_cxx::new_allocator", "__gnu_cxx::malloc_allocator", "std::__new_allocator", "std::allocator",
		"std::pmr::", "__rust_alloc", "__rust_realloc", "__rdl_", "__rg_", "alloc::alloc::", "PyMem_",
		"_PyMem_", "PyObject_Malloc", "PyObject_Calloc", "PyObject_Realloc", "_PyObject_Malloc",
		"_PyObject_Calloc", "_PyObject_Realloc", "pymalloc_", "_PyObject_Arena",
	};

	if (frame->kind != MODEL_FRAME_NATIVE)
		return false;
	if (starts_with(frame->module, "libkmemshim"))
		return true;
	for (size_t i = 0; i < COUNT_OF(names); i++) {
		if (strcmp(frame->function, names[i]) == 0)
			return true;
	}
	return starts_with_any(frame->function, starts, COUNT_OF(starts));
}

/* A line that can be opened: not "<string>", which dataclasses and namedtuples also use. */
static bool
is_openable(const struct model_frame *frame)
{
	return strcmp(frame->file, "<string>") != 0;
}

static const struct model_frame *
where_without_user_code(const struct model_frame *const *frames, uint32_t count)
{
	const struct model_frame *importlib = NULL;
	const struct model_frame *native = NULL;

	for (uint32_t i = 0; i < count; i++) {
		const struct model_frame *frame = frames[i];

		if (frame->kind == MODEL_FRAME_PYTHON && !frame->is_importlib)
			return frame;
		if (frame->kind == MODEL_FRAME_PYTHON && importlib == NULL)
			importlib = frame;
		if (frame->kind == MODEL_FRAME_NATIVE && native == NULL && frame->function[0] != '\0' &&
		    !frame_rules_is_allocator(frame))
			native = frame;
	}
	return importlib != NULL ? importlib : native;
}

const struct model_frame *
frame_rules_where(const struct model_frame *const *frames, uint32_t count)
{
	const struct model_frame *weak = NULL; // the user's, but says little
	bool has_python = false;

	for (uint32_t i = 0; i < count && !has_python; i++)
		has_python = frames[i]->kind == MODEL_FRAME_PYTHON;
	for (uint32_t i = 0; i < count; i++) {
		const struct model_frame *frame = frames[i];
		bool has_line = frame->file[0] != '\0' && frame->line != 0;
		bool is_named = frame->function[0] != '\0';

		if (!frame->is_user)
			continue;
		if (frame->kind == MODEL_FRAME_PYTHON ? is_openable(frame) : has_python ? has_line : is_named)
			return frame;
		if (weak == NULL && (frame->kind == MODEL_FRAME_PYTHON || !has_python))
			weak = frame;
	}
	return weak != NULL ? weak : where_without_user_code(frames, count);
}
