/*
 * grouping.c - to which function, file, module, package or thread does a site belong (see grouping.h)?
 *
 * When failing  what is not known is a group of its own.
 */
#include "report/grouping.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "analysis/rank.h"
#include "base/items.h"
#include "base/text_clean.h"
#include "base/text_start.h"
#include "model/frame_rules.h"
#include "verdict/words.h"

#define OWN_CODE "your own code"
#define UNKNOWN "unknown place"

static const char *const names[] = {
	[GROUPING_LINE] = "line",     [GROUPING_FUNCTION] = "function", [GROUPING_FILE] = "file",
	[GROUPING_MODULE] = "module", [GROUPING_PACKAGE] = "package",   [GROUPING_THREAD] = "thread",
};
static_assert(COUNT_OF(names) == GROUPINGS, "each has a name");

bool
grouping_of(const char *word, enum grouping *grouping)
{
	for (unsigned i = 0; i < GROUPINGS; i++) {
		if (strcmp(word, names[i]) == 0) {
			*grouping = (enum grouping)i;
			return true;
		}
	}
	return false;
}

const char *
grouping_name(enum grouping grouping)
{
	return names[grouping];
}

/* ---- of one frame ---- */

static void
put(char text[PLACE_TEXT_BYTES], const char *what)
{
	(void)snprintf(text, PLACE_TEXT_BYTES, "%s", what);
	(void)text_clean(text, strlen(text));
}

static void
put_function(const struct model_frame *frame, char text[PLACE_TEXT_BYTES])
{
	(void)place_text(frame->file, 0, frame->function, frame->module, 0, text);
}

static void
put_file(const struct model_frame *frame, char text[PLACE_TEXT_BYTES])
{
	const char *name = frame->file[0] != '\0' ? place_short(frame->file) : frame->module;

	put(text, name[0] != '\0' ? name : UNKNOWN);
}

/* Names the file of an extension module for its import: "_umath.cpython-311-x86_64-linux-gnu.so" is _umath. */
static bool
cut_ending(char *text, bool is_python)
{
	const char *const endings[] = { is_python ? ".py" : ".cpython-", is_python ? ".pyc" : ".abi3.so" };
	char *base = text + (place_base(text) - text);

	for (size_t i = 0; i < COUNT_OF(endings); i++) {
		char *end = strstr(base, endings[i]);

		if (end == NULL || (is_python && end[strlen(endings[i])] != '\0'))
			continue;
		*end = '\0';
		return true;
	}
	return false;
}

/*
 * "pandas/core/frame.py" is pandas.core.frame, "pkg/__init__.py" is pkg; native code that is no extension module has its object's name.
 */
static void
put_module(const struct model_frame *frame, char text[PLACE_TEXT_BYTES])
{
	static const char folder[] = "lib-dynload/";
	bool is_python = frame->kind == MODEL_FRAME_PYTHON;
	const char *path = is_python ? frame->file : frame->module_path;
	const char *name = !is_python && frame->is_user ? place_base(path) : place_short(path);

	put(text, name[0] == '\0' ? UNKNOWN : text_starts(name, folder) ? name + strlen(folder) : name);
	if (text[0] == '<' || !cut_ending(text, is_python))
		return;
	if (text_ends(text, "/__init__") && text[strlen("/__init__")] != '\0')
		*strrchr(text, '/') = '\0';
	for (char *at = text; *at != '\0'; at++)
		*at = *at == '/' ? '.' : *at;
}

bool
grouping_of_frame(enum grouping grouping, const struct report_frame *frame, char text[PLACE_TEXT_BYTES])
{
	char name[FRAME_RULES_NAME_BYTES];
	enum frame_origin origin;

	switch (grouping) {
	case GROUPING_LINE:
	case GROUPING_THREAD: // below the thread lines are lines
	case GROUPINGS:
		(void)verdict_frame_text(&frame->of, text);
		return true;
	case GROUPING_FUNCTION:
		put_function(&frame->of, text);
		return true;
	case GROUPING_FILE:
		put_file(&frame->of, text);
		return true;
	case GROUPING_MODULE:
		put_module(&frame->of, text);
		return true;
	case GROUPING_PACKAGE:
		origin = frame_rules_origin(&frame->of, name);
		put(text, origin == FRAME_ORIGIN_USER ? OWN_CODE : name);
		return origin != FRAME_ORIGIN_RUNTIME;
	}
	return false;
}

/* ---- of a site ---- */

/* The installed package that the line called first; else the module of the standard library, else the shared object. */
static const struct model_frame *
called_by_line(const struct model_site *site, char package[FRAME_RULES_NAME_BYTES])
{
	const struct model_frame *found = NULL;
	enum frame_origin best = FRAME_ORIGIN_RUNTIME;
	uint32_t where = 0;

	package[0] = '\0';
	while (where < site->frame_count && site->frames[where] != site->where)
		where++;
	for (uint32_t i = where + (where < site->frame_count); i > 0; i--) {
		const struct model_frame *frame = site->frames[i - 1];
		char name[FRAME_RULES_NAME_BYTES];
		enum frame_origin origin = frame_rules_origin(frame, name);

		if (origin == FRAME_ORIGIN_USER || origin >= best)
			continue;
		best = origin;
		found = frame;
		memcpy(package, name, sizeof(name));
	}
	return found;
}

static void
group_by_package(const struct model_site *site, char group[PLACE_TEXT_BYTES], char part[PLACE_TEXT_BYTES])
{
	char name[FRAME_RULES_NAME_BYTES];
	const struct model_frame *called = called_by_line(site, name);

	if (rank_is_import(site)) {
		put(group, site->import[0] != '\0' ? site->import : GROUPING_IMPORTS);
		put(part, site->import[0] != '\0' ? "its import" : "");
	} else if (called != NULL) {
		put(group, name);
		put(part, called->function[0] != '\0' ? called->function : called->module);
		(void)cut_ending(part, false);
	} else {
		put(group, site->where == NULL ? UNKNOWN : site->is_rest_of_arenas ? site->where->function : OWN_CODE);
		put(part, "");
		if (site->where != NULL && !site->is_rest_of_arenas)
			put_function(site->where, part);
	}
}

/* The innermost frame that is not of a runtime: allocators and interpreters only carry out what others ask for. */
static const struct model_frame *
who_asked(const struct model_site *site)
{
	char name[FRAME_RULES_NAME_BYTES];

	const struct model_frame *const *found = FIRST(frame, site->frames, site->frame_count,
	                                               frame_rules_origin(*frame, name) != FRAME_ORIGIN_RUNTIME);

	return found != NULL ? *found : site->where;
}

/* ---- threads ---- */

/* Every thread begins in these: they do not say what the thread is for. */
static bool
is_thread_start(const struct model_frame *frame)
{
	static const char *const functions[] = { "start_thread",     "clone",     "clone3",
		                                     "__clone",          "__clone3",  "execute_native_thread_routine",
		                                     "pythread_wrapper", "thread_run" };
	static const char *const starts[] = { "std::thread::", "std::__invoke", "std::invoke" };

	if (frame->kind == MODEL_FRAME_PYTHON)
		return text_ends(frame->file, "/threading.py") || text_ends(frame->file, "/concurrent/futures/thread.py") ||
		       text_ends(frame->file, "/multiprocessing/pool.py");
	return ANY(function, functions, COUNT_OF(functions), strcmp(frame->function, *function) == 0) ||
	       ANY(start, starts, COUNT_OF(starts), text_starts(frame->function, *start));
}

/* The interpreter's own frames around what a thread runs. */
static bool
is_plumbing(const struct model_frame *frame)
{
	char name[FRAME_RULES_NAME_BYTES];

	return is_thread_start(frame) || frame->function[0] == '\0' ||
	       (frame->kind == MODEL_FRAME_NATIVE && frame_rules_origin(frame, name) == FRAME_ORIGIN_RUNTIME);
}

void
grouping_thread(const struct report_site *site, char text[PLACE_TEXT_BYTES])
{
	uint32_t outermost = site->of.frame_count;
	char what[PLACE_TEXT_BYTES];

	/* Frames that stand for those of another thread say who is to blame, not which thread it was. */
	while (outermost > 0 && report_frame(site, outermost - 1).relation != MODEL_RELATION_OWN)
		outermost--;
	if (site->of.frame_count == 0 || site->of.is_rest_of_arenas) {
		put(text, site->of.is_rest_of_arenas && site->of.where != NULL ? site->of.where->function : "unknown thread");
		return;
	}
	if (outermost == site->of.frame_count && !is_thread_start(site->of.frames[outermost - 1])) {
		put(text, "main thread");
		return;
	}
	while (outermost > 0 && is_plumbing(site->of.frames[outermost - 1]))
		outermost--;
	if (outermost == 0) {
		put(text, "threads of libraries");
		return;
	}
	put_function(site->of.frames[outermost - 1], what);
	(void)snprintf(text, PLACE_TEXT_BYTES, "threads of %.200s", what);
}

void
grouping_of_site(enum grouping grouping, const struct report_site *site, char group[PLACE_TEXT_BYTES],
                 char part[PLACE_TEXT_BYTES])
{
	static const struct model_frame nowhere = { .function = "", .file = "", .module = "", .module_path = "" };
	const struct model_frame *where = grouping == GROUPING_MODULE ? who_asked(&site->of) : site->of.where;

	where = where != NULL ? where : &nowhere;
	part[0] = '\0';
	if (grouping == GROUPING_PACKAGE) {
		group_by_package(&site->of, group, part);
	} else if (rank_is_import(&site->of)) {
		put(group, GROUPING_IMPORTS);
	} else if (site->of.is_rest_of_arenas) {
		put(group, site->of.where != NULL ? site->of.where->function : UNKNOWN);
	} else if (grouping == GROUPING_THREAD) {
		grouping_thread(site, group);
		(void)verdict_frame_text(where, part);
	} else if (grouping == GROUPING_FILE) {
		put_file(where, group);
		put(part, where->function);
	} else if (grouping == GROUPING_MODULE) {
		put_module(where, group);
		put(part, where->function);
	} else {
		put_function(where, group);
		(void)verdict_frame_text(where, part);
	}
}
