/*
 * python_runtime.c - finds the interpreter by its exported symbols and checks it; see python_runtime.h.
 *
 * Static data is enough: nothing here needs an initialised interpreter. In a process without one the cost is a few symbols that
 * are not found in each object.
 *
 * Not chosen  a hook of dlopen(): a frame of ours between the program and the loader changes where libraries are searched. The
 *             first stack that leads into an object is early enough, for nobody calls Python before Python has allocated.
 */
#include "python/python_runtime.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/loaded_object.h"
#include "base/settings.h"
#include "capture/capture_file.h"
#include "kmem_words.h"
#include "python/python_code.h"
#include "python/python_memory.h"

static const _Atomic uint64_t not_finalizing;

struct python_runtime python_runtime = { .finalizing_word = &not_finalizing };

struct python_runtime python_runtime_second = { .finalizing_word = &not_finalizing };

void (*python_runtime_on_death)(uint64_t code);

static char notes[2][200]; // of interpreters that are not read; for the captures of forked children too
static _Atomic uint32_t note_count;

static void
code_died(void *code)
{
	python_code_forget((uint64_t)code);
	if (python_runtime_on_death != NULL)
		python_runtime_on_death((uint64_t)code);
	python_runtime.code_dealloc(code);
}

static void
code_of_second_died(void *code)
{
	python_code_forget((uint64_t)code);
	python_runtime_second.code_dealloc(code);
}

/* 3.8 to 3.10 have no Py_Version: "3.10.13 (main, ...)", "3.9.0rc2+ (...)". 0 when it is not that. */
static uint32_t
parse_version(const char *text)
{
	static const struct {
		char letter;
		uint32_t level;
	} levels[] = { { 'a', 0xa }, { 'b', 0xb }, { 'r', 0xc } };
	unsigned long part[3] = { 0 };
	uint32_t level = 0xf;
	uint32_t serial = 0;
	char *end = (char *)text;

	for (unsigned i = 0; i < 3; i++) {
		part[i] = strtoul(text, &end, 10);
		if (end == text || part[i] > 255 || (i < 2 && *end != '.'))
			return 0;
		text = end + 1;
	}
	for (unsigned i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
		if (*end == levels[i].letter) {
			level = levels[i].level;
			serial = (uint32_t)strtoul(end + strcspn(end, "0123456789"), NULL, 10) & 0xf;
		}
	return (uint32_t)(part[0] << 24 | part[1] << 16 | part[2] << 8) | level << 4 | serial;
}

static struct elf_object main_program;

/* An interpreter that is being looked at. */
struct candidate {
	struct python_runtime *runtime;
	const struct elf_object *object;
};

/*
 * The address of one of the interpreter's names. A main program that is not position-independent may hold copies of a library's
 * data, to which the library itself refers: of the first library's.
 */
static uint64_t
look_up(const struct candidate *of, const char *name)
{
	const struct elf_object *object = of->object;
	uint64_t addr = of->runtime == &python_runtime ? elf_symbols_addr(&main_program, name) : 0;

	return addr != 0 ? addr : elf_symbols_addr(object, name);
}

/* The executable segment around `addr`; the whole object, where program headers are not at its start. */
static bool
find_text(const struct candidate *of, uint64_t addr)
{
	struct loaded_object object;
	const Elf64_Phdr *segments;
	unsigned count = 0;

	if (!loaded_object_find(addr, &object))
		return false;
	of->runtime->text_addr = object.start_addr;
	of->runtime->text_end = object.end_addr;
	segments = loaded_object_headers(&object, &count);
	for (unsigned i = 0; i < count; i++) {
		uint64_t start = object.link_map->l_addr + segments[i].p_vaddr;

		if (segments[i].p_type == PT_LOAD && (segments[i].p_flags & PF_X) != 0 && addr >= start &&
		    addr < start + segments[i].p_memsz) {
			of->runtime->text_addr = start;
			of->runtime->text_end = start + segments[i].p_memsz;
			return true;
		}
	}
	return segments == NULL;
}

/* Fills in the symbols. False with a clause when one is missing. */
static bool
find_symbols(const struct candidate *of, char *why, size_t why_size)
{
	const struct {
		const char *name;
		uint64_t *addr;
	} wanted[] = {
		{ "_PyRuntime", &of->runtime->addr },
		{ "PyType_Type", &of->runtime->interpreter.types.type },
		{ "PyCode_Type", &of->runtime->interpreter.types.code },
		{ "PyFrame_Type", &of->runtime->interpreter.types.frame },
		{ "PyGen_Type", &of->runtime->interpreter.types.generator },
		{ "PyUnicode_Type", &of->runtime->interpreter.types.string },
		{ "PyBytes_Type", &of->runtime->interpreter.types.bytes },
	};

	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		*wanted[i].addr = look_up(of, wanted[i].name);
		if (*wanted[i].addr == 0) {
			diag_format(why, why_size, "symbol %s is not exported", wanted[i].name);
			return false;
		}
	}

	uint64_t current = look_up(of, "PyThreadState_GetUnchecked"); // 3.13

	if (current == 0)
		current = look_up(of, "_PyThreadState_UncheckedGet");

	uint64_t own = look_up(of, "PyGILState_GetThisThreadState");

	if (current == 0 || own == 0) {
		diag_format(why, why_size, "the functions that give the thread state are not exported");
		return false;
	}
	memcpy(&of->runtime->current_state, &current, sizeof(current));
	memcpy(&of->runtime->thread_state, &own, sizeof(own));
	return true;
}

/* Not needed for frames. */
static void
find_allocators(const struct candidate *of)
{
	static const struct {
		const char *name;
		size_t offset;
	} wanted[] = {
		{ "PyMem_GetAllocator", offsetof(struct python_allocators, get) },
		{ "PyMem_SetAllocator", offsetof(struct python_allocators, set) },
		{ "PyObject_GetArenaAllocator", offsetof(struct python_allocators, get_arena) },
		{ "PyObject_SetArenaAllocator", offsetof(struct python_allocators, set_arena) },
		{ "_PyMem_GetCurrentAllocatorName", offsetof(struct python_allocators, name) },
	};

	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		uint64_t function = look_up(of, wanted[i].name);

		memcpy((char *)&of->runtime->allocators + wanted[i].offset, &function, sizeof(function));
	}
}

static void
find_objects(const struct candidate *of)
{
	static const struct {
		const char *name;
		size_t offset;
	} wanted[] = {
		{ "PyImport_GetModuleDict", offsetof(struct python_objects, modules) },
		{ "PyDict_GetItemString", offsetof(struct python_objects, item) },
		{ "PyObject_GetAttrString", offsetof(struct python_objects, attribute) },
		{ "Py_DecRef", offsetof(struct python_objects, release) },
		{ "PyErr_Occurred", offsetof(struct python_objects, has_error) },
		{ "PyErr_Clear", offsetof(struct python_objects, clear_error) },
		{ "PyModule_Type", offsetof(struct python_objects, module) },
		{ "PyMethodDescr_Type", offsetof(struct python_objects, method_descriptor) },
	};
	bool is_complete = true;

	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		uint64_t found = look_up(of, wanted[i].name);

		memcpy((char *)&of->runtime->objects + wanted[i].offset, &found, sizeof(found));
		is_complete = is_complete && found != 0;
	}
	of->runtime->objects.is_complete = is_complete;
}

static uint32_t
find_version(const struct candidate *of)
{
	uint64_t version = look_up(of, "Py_Version"); // 3.11
	const char *(*get_version)(void);

	if (version != 0)
		return (uint32_t)python_memory_u64(version);

	uint64_t function = look_up(of, "Py_GetVersion");

	if (function == 0)
		return 0;
	memcpy(&get_version, &function, sizeof(function));
	return parse_version(get_version());
}

static void
find_evaluator(const struct candidate *of)
{
	Elf64_Sym symbol;

	if (!elf_symbols_find(of->object, "_PyEval_EvalFrameDefault", &symbol))
		return;
	of->runtime->evaluator_addr = of->object->load_bias + symbol.st_value;
	of->runtime->evaluator_end = of->runtime->evaluator_addr + symbol.st_size;
}

static void
find_runners(const struct candidate *of)
{
	static const char *const names[] = { "Py_RunMain", "Py_BytesMain", "Py_Main" };

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		Elf64_Sym symbol;

		if (elf_symbols_find(of->object, names[i], &symbol))
			of->runtime->runners[i] = (struct python_function){
				of->object->load_bias + symbol.st_value, of->object->load_bias + symbol.st_value + symbol.st_size
			};
	}
}

bool
python_runtime_runs_programs(uint64_t pc)
{
	for (unsigned i = 0; i < sizeof(python_runtime.runners) / sizeof(python_runtime.runners[0]); i++) {
		if (pc > python_runtime.runners[i].start && pc <= python_runtime.runners[i].end)
			return true;
	}
	return false;
}

/* Of the code type. */
static uint64_t
dealloc_slot(const struct python_runtime *runtime)
{
	return runtime->interpreter.types.code + PYTHON_TYPE_DEALLOC(&runtime->interpreter.layout);
}

/* All checks; fills in `python_runtime`. */
static bool
understand(const struct candidate *of, char *why, size_t why_size)
{
	const uint64_t *offsets = (const uint64_t *)look_up(of, "_PyRuntime");
	uint32_t version_hex = of->runtime->interpreter.version_hex;
	bool is_free_threaded = python_layout_is_free_threaded(version_hex, offsets);
	const struct python_layout *row = python_layout_find(version_hex, is_free_threaded);

	if (row == NULL) {
		diag_format(why, why_size, "no table of offsets for this version");
		return false;
	}
	of->runtime->interpreter.layout = *row;
	if (!find_symbols(of, why, why_size) ||
	    !python_layout_refine(&of->runtime->interpreter.layout, offsets, version_hex, why, why_size) ||
	    !python_layout_check(&of->runtime->interpreter.layout, &of->runtime->interpreter.types, why, why_size))
		return false;

	Elf64_Sym symbol = { 0 };

	(void)elf_symbols_find(of->object, "_PyRuntime", &symbol);
	of->runtime->end = of->runtime->addr + symbol.st_size;

	uint64_t dealloc = python_memory_u64(dealloc_slot(of->runtime));

	if (dealloc == 0 || !find_text(of, dealloc)) {
		diag_format(why, why_size, "type code has no tp_dealloc");
		return false;
	}
	memcpy(&of->runtime->code_dealloc, &dealloc, sizeof(dealloc));
	find_evaluator(of);
	find_allocators(of);
	find_objects(of);
	find_runners(of);
	return true;
}

/*
 * From here on every death of a code object is heard. Until the first walk there is nothing to forget, so it
 * does not matter which function a thread in the middle of a death has read. release: the runtime before
 * code_died() can be called; its caller loads the slot as plain C, which on x86-64 is an acquire.
 */
static void
listen_for_deaths(const struct python_runtime *runtime)
{
	_Atomic uint64_t *slot = (_Atomic uint64_t *)dealloc_slot(runtime);

	atomic_store_explicit(slot, (uint64_t)(runtime == &python_runtime ? code_died : code_of_second_died),
	                      memory_order_release);
}

/* Says it in the capture that is open now, and in those of children. */
static void
note(const char *who, const char *why)
{
	uint32_t number = atomic_fetch_add_explicit(&note_count, 1, memory_order_relaxed);

	if (number >= sizeof(notes) / sizeof(notes[0]))
		return;
	diag_format(notes[number], sizeof(notes[number]), "%s: %s; " KMEM_NOTE_NATIVE_ONLY, who, why);
	capture_file_note(notes[number]);
}

/* Others that run Python code: their frames are laid out in another way each. */
static void
note_stranger(const struct elf_object *object, const char *path)
{
	static _Atomic bool is_noted;
	const char *slash = strrchr(path, '/');
	const char *name = slash != NULL ? slash + 1 : path;
	const char *what = NULL;
	const char *why = "only the frames of CPython are read";

	if (elf_symbols_addr(object, "rpython_startup_code") != 0)
		what = "PyPy";
	else if (strncmp(name, "libpythonvm", 11) == 0)
		what = "GraalPy";
	/* Linked in without its symbols, from 3.10 on. */
	if (what == NULL && (path[0] == '\0' || strstr(name, "python") != NULL) &&
	    elf_symbols_file_has_section(path[0] == '\0' ? "/proc/self/exe" : path, ".PyRuntime")) {
		what = "Python";
		why = "its symbols are hidden";
	}
	if (what != NULL && !atomic_exchange_explicit(&is_noted, true, memory_order_relaxed))
		note(what, why);
}

/* False when another thread is at it, or it was seen before. */
static bool
claim(struct python_runtime *runtime)
{
	int state = atomic_load_explicit(&runtime->state, memory_order_relaxed); // nobody has written what follows it yet

	return (state == PYTHON_RUNTIME_NEVER_LOOKED || state == PYTHON_RUNTIME_NOT_FOUND) &&
	       atomic_compare_exchange_strong_explicit(&runtime->state, &state, PYTHON_RUNTIME_BUSY, memory_order_relaxed,
	                                               memory_order_relaxed);
}

static bool has_started; // what was loaded with the program has been looked at

/* `path` is the loader's own text. */
static void
look_closely(const struct candidate *of, const char *path)
{
	struct python_runtime *runtime = of->runtime;
	char why[120] = "";
	char who[32];

	runtime->is_late = has_started;
	runtime->interpreter.version_hex = find_version(of);
	runtime->path = path;

	uint32_t version_hex = runtime->interpreter.version_hex;
	bool is_understood = understand(of, why, sizeof(why));

	if (is_understood) {
		atomic_store_explicit(
			&runtime->finalizing_word,
			(const _Atomic uint64_t *)(runtime->addr + runtime->interpreter.layout.runtime_finalizing),
			memory_order_relaxed);
		listen_for_deaths(runtime);
	} else {
		diag_format(who, sizeof(who), "Python %u.%u.%u", version_hex >> 24, version_hex >> 16 & 0xff,
		            version_hex >> 8 & 0xff);
		note(who, why);
	}
	if (runtime == &python_runtime)
		atomic_store_explicit(&capture_file_header()->python_version, kmem_twice(version_hex), memory_order_relaxed);
	diag_debug("Python %x: %s", version_hex, is_understood ? "frames are read" : why);
	atomic_store_explicit(&runtime->state, is_understood ? PYTHON_RUNTIME_FOUND : PYTHON_RUNTIME_REFUSED,
	                      memory_order_release);
}

void
python_runtime_look_at(const struct elf_object *object, const char *path)
{
	struct candidate of = { &python_runtime, object };

	if (!settings.python)
		return;

	uint64_t addr = elf_symbols_addr(object, "_PyRuntime");

	if (addr == 0) {
		note_stranger(object, path);
		return;
	}
	if (claim(&python_runtime)) {
		look_closely(&of, path);
		return;
	}
	/* acquire: pairs with look_closely(). */
	int state = atomic_load_explicit(&python_runtime.state, memory_order_acquire);

	of.runtime = &python_runtime_second;
	if ((state == PYTHON_RUNTIME_FOUND || state == PYTHON_RUNTIME_REFUSED) && python_runtime.addr != addr &&
	    claim(of.runtime))
		look_closely(&of, path);
}

void
python_runtime_find(void)
{
	struct loader_walk walk;

	for (loader_walk_begin(&walk);
	     loader_walk_next(&walk) && walk.stays;) { // what is loaded later is looked at by its first stack
		if (main_program.dynamic_addr == 0)
			main_program = walk.elf;
		python_runtime_look_at(&walk.elf, walk.node->l_name);
	}
	has_started = true;
}

void
python_runtime_pin(void)
{
	struct python_runtime *const runtimes[] = { &python_runtime, &python_runtime_second };

	for (unsigned i = 0; i < 2; i++) {
		struct python_runtime *runtime = runtimes[i];

		/* acquire: pairs with look_closely(). */
		if (atomic_load_explicit(&runtime->state, memory_order_acquire) != PYTHON_RUNTIME_FOUND ||
		    runtime->path[0] == '\0' || atomic_exchange_explicit(&runtime->is_pinned, true, memory_order_relaxed))
			continue;
		if (dlopen(runtime->path, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE) == NULL)
			(void)dlerror(); // ours, not the program's
	}
}

void
python_runtime_forked(void)
{
	struct python_runtime *const runtimes[] = { &python_runtime, &python_runtime_second };

	for (unsigned i = 0; i < 2; i++) {
		if (atomic_load_explicit(&runtimes[i]->state, memory_order_relaxed) == PYTHON_RUNTIME_BUSY)
			atomic_store_explicit(&runtimes[i]->state, PYTHON_RUNTIME_NOT_FOUND,
			                      memory_order_relaxed); // a thread that is not in this process was looking
	}
	atomic_store_explicit(&capture_file_header()->python_version, kmem_twice(python_runtime.interpreter.version_hex),
	                      memory_order_relaxed);
	for (uint32_t i = 0; i < sizeof(notes) / sizeof(notes[0]); i++) {
		if (notes[i][0] != '\0')
			capture_file_note(notes[i]);
	}
}

bool
python_runtime_has_interpreter(void)
{
	const _Atomic uint64_t *head = (const _Atomic uint64_t *)(python_runtime.addr +
	                                                          python_runtime.interpreter.layout.runtime_interpreters);

	return atomic_load_explicit(head, memory_order_relaxed) != 0; // nothing is read through it
}
