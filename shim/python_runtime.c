/*
 * python_runtime.c - finds the interpreter by its exported symbols and checks it; see python_runtime.h.
 *
 * Static data is enough: nothing here needs an initialised interpreter. In a process without one the cost is
 * one symbol that is not found and a look over the names of the loaded objects.
 */
#include "python_runtime.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "capture_file.h"
#include "diag.h"
#include "python_code.h"
#include "python_memory.h"

struct python_runtime python_runtime;

static char refusal[200]; // the note, for the captures of forked children too

static void
code_died(void *code)
{
	python_code_forget((uint64_t)code);
	python_runtime.code_dealloc(code);
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

/* Looks through the global scope; a miss leaves nothing behind that the program's dlerror() would see. */
static void *
look_up(void *scope, const char *name)
{
	void *symbol = dlsym(scope, name);

	if (symbol == NULL)
		dlerror();
	return symbol;
}

struct named_object {
	const char *prefix;
	char path[1024];
};

static int
find_named_object(struct dl_phdr_info *info, size_t size, void *context)
{
	struct named_object *wanted = context;
	const char *slash = strrchr(info->dlpi_name, '/');
	const char *name = slash == NULL ? info->dlpi_name : slash + 1;

	(void)size;
	if (strncmp(name, wanted->prefix, strlen(wanted->prefix)) != 0 ||
	    strlen(info->dlpi_name) >= sizeof(wanted->path))
		return 0;
	strcpy(wanted->path, info->dlpi_name);
	return 1;
}

/*
 * The scope in which the interpreter's names are found: RTLD_DEFAULT or a handle. A program that embeds
 * Python may have opened libpython for itself alone; that handle is kept, so that what we point into stays.
 */
static bool
find_scope(void **scope)
{
	struct named_object library = { .prefix = "libpython" };

	*scope = RTLD_DEFAULT;
	if (look_up(*scope, "_PyRuntime") != NULL)
		return true;
	if (dl_iterate_phdr(find_named_object, &library) == 0)
		return false;

	*scope = dlopen(library.path, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
	if (*scope == NULL) {
		dlerror();
		return false;
	}
	if (look_up(*scope, "_PyRuntime") != NULL)
		return true;
	dlclose(*scope);
	return false;
}

static int
find_text(struct dl_phdr_info *info, size_t size, void *context)
{
	uint64_t addr = *(const uint64_t *)context;

	(void)size;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uint64_t start = info->dlpi_addr + segment->p_vaddr;

		if (segment->p_type == PT_LOAD && (segment->p_flags & PF_X) != 0 && addr >= start &&
		    addr < start + segment->p_memsz) {
			python_runtime.text_addr = start;
			python_runtime.text_end = start + segment->p_memsz;
			return 1;
		}
	}
	return 0;
}

/* Fills in the symbols. False with a clause when one is missing. */
static bool
find_symbols(void *scope, char *why, size_t why_size)
{
	const struct {
		const char *name;
		uint64_t *addr;
	} wanted[] = {
		{ "_PyRuntime", &python_runtime.addr },
		{ "PyType_Type", &python_runtime.interpreter.types.type },
		{ "PyCode_Type", &python_runtime.interpreter.types.code },
		{ "PyFrame_Type", &python_runtime.interpreter.types.frame },
		{ "PyGen_Type", &python_runtime.interpreter.types.generator },
		{ "PyUnicode_Type", &python_runtime.interpreter.types.string },
		{ "PyBytes_Type", &python_runtime.interpreter.types.bytes },
	};

	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		*wanted[i].addr = (uint64_t)look_up(scope, wanted[i].name);
		if (*wanted[i].addr == 0) {
			diag_format(why, why_size, "symbol %s is not exported", wanted[i].name);
			return false;
		}
	}

	void *current = look_up(scope, "PyThreadState_GetUnchecked"); // 3.13

	if (current == NULL)
		current = look_up(scope, "_PyThreadState_UncheckedGet");

	void *own = look_up(scope, "PyGILState_GetThisThreadState");

	if (current == NULL || own == NULL) {
		diag_format(why, why_size, "the functions that give the thread state are not exported");
		return false;
	}
	memcpy(&python_runtime.current_state, &current, sizeof(current));
	memcpy(&python_runtime.thread_state, &own, sizeof(own));
	return true;
}

static uint32_t
find_version(void *scope)
{
	const unsigned long *version = look_up(scope, "Py_Version"); // 3.11
	const char *(*get_version)(void);
	void *function;

	if (version != NULL)
		return (uint32_t)*version;
	function = look_up(scope, "Py_GetVersion");
	if (function == NULL)
		return 0;
	memcpy(&get_version, &function, sizeof(function));
	return parse_version(get_version());
}

static void
find_evaluator(void *scope)
{
	void *function = look_up(scope, "_PyEval_EvalFrameDefault");
	const ElfW(Sym) *symbol = NULL;
	Dl_info info;

	if (function == NULL ||
	    dladdr1(function, &info, (void **)&symbol, RTLD_DL_SYMENT) == 0 || symbol == NULL)
		return;
	python_runtime.evaluator_addr = (uint64_t)function;
	python_runtime.evaluator_end = python_runtime.evaluator_addr + symbol->st_size;
}

/* Of the code type. */
static uint64_t
dealloc_slot(void)
{
	return python_runtime.interpreter.types.code + PYTHON_TYPE_DEALLOC(&python_runtime.interpreter.layout);
}

/* All checks; fills in `python_runtime`. */
static bool
understand(void *scope, char *why, size_t why_size)
{
	const uint64_t *offsets = look_up(scope, "_PyRuntime");
	uint32_t version_hex = python_runtime.interpreter.version_hex;
	bool is_free_threaded = python_layout_is_free_threaded(version_hex, offsets);
	const struct python_layout *row = python_layout_find(version_hex, is_free_threaded);

	if (row == NULL) {
		diag_format(why, why_size, "no table of offsets for this version");
		return false;
	}
	python_runtime.interpreter.layout = *row;
	if (!find_symbols(scope, why, why_size) ||
	    !python_layout_refine(&python_runtime.interpreter.layout, offsets, version_hex, why, why_size) ||
	    !python_layout_check(&python_runtime.interpreter.layout, &python_runtime.interpreter.types, why, why_size))
		return false;

	uint64_t dealloc = python_memory_u64(dealloc_slot());

	if (dealloc == 0 || dl_iterate_phdr(find_text, &dealloc) == 0) {
		diag_format(why, why_size, "type code has no tp_dealloc");
		return false;
	}
	memcpy(&python_runtime.code_dealloc, &dealloc, sizeof(dealloc));
	if (python_runtime.interpreter.layout.chain == PYTHON_CHAIN_OBJECTS)
		find_evaluator(scope);
	return true;
}

/*
 * From here on every death of a code object is heard. Until the first walk there is nothing to forget, so it
 * does not matter which function a thread in the middle of a death has read. release: `python_runtime` before
 * code_died() can be called; its caller loads the slot as plain C, which on x86-64 is an acquire.
 */
static void
listen_for_deaths(void)
{
	_Atomic uint64_t *slot = (_Atomic uint64_t *)dealloc_slot();

	atomic_store_explicit(slot, (uint64_t)code_died, memory_order_release);
}

/* Into the capture that is open now. */
static void
publish(void)
{
	atomic_store_explicit(&capture_file_header()->python_version,
	                      python_runtime.interpreter.version_hex, memory_order_relaxed);
	if (refusal[0] != '\0')
		capture_file_note(refusal);
}

void
python_runtime_find(void)
{
	uint32_t *version_hex = &python_runtime.interpreter.version_hex;
	int state = atomic_load_explicit(&python_runtime.state, memory_order_acquire);
	char why[120] = "";
	void *scope;

	if ((state != PYTHON_RUNTIME_NEVER_LOOKED && state != PYTHON_RUNTIME_NOT_FOUND) ||
	    !atomic_compare_exchange_strong_explicit(&python_runtime.state, &state, PYTHON_RUNTIME_BUSY,
	                                             memory_order_acquire, memory_order_relaxed))
		return;

	if (!find_scope(&scope)) {
		atomic_store_explicit(&python_runtime.state, PYTHON_RUNTIME_NOT_FOUND, memory_order_release);
		return;
	}
	*version_hex = find_version(scope);

	bool is_understood = understand(scope, why, sizeof(why));

	if (is_understood)
		listen_for_deaths();
	else
		diag_format(refusal, sizeof(refusal), "Python %u.%u.%u: %s; stacks are native only",
		            *version_hex >> 24, *version_hex >> 16 & 0xff, *version_hex >> 8 & 0xff, why);
	publish();
	diag_debug("Python %x: %s", *version_hex, is_understood ? "frames are read" : why);
	atomic_store_explicit(&python_runtime.state,
	                      is_understood ? PYTHON_RUNTIME_FOUND : PYTHON_RUNTIME_REFUSED,
	                      memory_order_release);
}

void
python_runtime_forked(void)
{
	int state = atomic_load_explicit(&python_runtime.state, memory_order_acquire);

	if (state == PYTHON_RUNTIME_BUSY) // a thread that is not in this process was looking
		atomic_store_explicit(&python_runtime.state, PYTHON_RUNTIME_NOT_FOUND, memory_order_relaxed);
	if (state == PYTHON_RUNTIME_FOUND || state == PYTHON_RUNTIME_REFUSED)
		publish();
}
