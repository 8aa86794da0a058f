/*
 * symbolizer.c - which function, file and line is at this address of an ELF file (see symbolizer.h)?
 *
 * Names come from debug information where there is some, else from the file's table of symbols. Answers are kept per address.
 */
#include "symbols/symbolizer.h"

#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <fcntl.h>
#include <libiberty/demangle.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uthash.h>

#include "base/hash.h"
#include "base/progress.h"
#include "base/memory.h"
#include "base/path_join.h"
#include "base/place.h"
#include "symbols/debug_gate.h"
#include "symbols/symbolizer_dwarf.h"
#include "symbols/symbolizer_frames.h"
#include "symbols/symbolizer_names.h"
#include "symbols/symbolizer_types.h"

#define NOTICES_MAX 8
#define BUILD_ID_SHOWN_BYTES 6 // of usually 20

struct answer {
	uint64_t address;
	size_t count;
	const struct symbol_frame *frames;
	UT_hash_handle hh;
};

struct symbolizer_file {
	struct symbolizer_identity identity;
	uint8_t build_id[64];
	bool was_opened;
	const char *absence;     // see symbolizer_absence()
	bool has_too_much;       // and that was said
	bool lacks_split;        // the same
	bool is_bearable;        // its own debug information can be unpacked
	const char *opened_path; // as it is on this machine: bytes, not for people
	Dwfl *dwfl;              // NULL: no names
	Dwfl_Module *module;
	GElf_Addr bias;                 // of libdwfl's addresses
	struct symbolizer_names *names; // NULL until one is asked for: a look into a process asks for types alone, mostly
	bool was_dwarf_read;
	struct symbolizer_dwarf *dwarf; // NULL: no debug information, or not read yet
	Dwarf_Addr dwarf_bias;
	struct symbolizer_types *types; // NULL until they are asked for
	struct answer *answers;
	struct symbolizer_file *next;
};

struct symbolizer {
	struct text_pool *pool;
	char *sysroot; // from the root on; NULL: none
	char *debug_folders;
	struct symbolizer_file *files;
	size_t missing_count;
	const char *first_missing;
	size_t notice_count;
	const char *notices[NOTICES_MAX + 1];
	bool has_summed_up;
	size_t asked; // addresses
};

static const struct symbol_frame unknown_frame = { .function = "", .file = "" };

struct symbolizer *
symbolizer_new(struct text_pool *pool, const char *sysroot)
{
	struct symbolizer *symbolizer = memory_zeroed(1, sizeof(*symbolizer));

	symbolizer->pool = pool;
	/* Of folders for debug files a relative one means something else; /proc/PID/root is no link that can be read. */
	if (sysroot != NULL && sysroot[0] != '/')
		symbolizer->sysroot = realpath(sysroot, NULL);
	if (sysroot != NULL && symbolizer->sysroot == NULL)
		symbolizer->sysroot = memory_text(sysroot);

	const char *prefix = sysroot != NULL ? symbolizer->sysroot : "";
	size_t bytes = strlen(prefix) + 64;

	symbolizer->debug_folders = memory_zeroed(1, bytes);
	(void)snprintf(symbolizer->debug_folders, bytes, "+:.debug:%s/usr/lib/debug%s", prefix,
	               sysroot != NULL ? ":/usr/lib/debug" : "");

	/* A report does not ask the network on its own. */
	(void)unsetenv("DEBUGINFOD_URLS");
	return symbolizer;
}

static void
free_file(struct symbolizer_file *file)
{
	HASH_FREE(file->answers, free);
	symbolizer_types_free(file->types);
	symbolizer_dwarf_free(file->dwarf);
	symbolizer_names_free(file->names);
	dwfl_end(file->dwfl);
	free(file);
}

void
symbolizer_free(struct symbolizer *symbolizer)
{
	if (symbolizer == NULL)
		return;
	for (struct symbolizer_file *file = symbolizer->files, *next; file != NULL; file = next) {
		next = file->next;
		free_file(file);
	}
	free(symbolizer->debug_folders);
	free(symbolizer->sysroot);
	free(symbolizer);
}

struct symbolizer_file *
symbolizer_file(struct symbolizer *symbolizer, const struct symbolizer_identity *identity)
{
	struct symbolizer_file *file;

	for (file = symbolizer->files; file != NULL; file = file->next) {
		if (file->identity.path == identity->path && // of the pool
		    file->identity.build_id_bytes == identity->build_id_bytes &&
		    file->identity.size_bytes == identity->size_bytes &&
		    memcmp(file->build_id, identity->build_id, identity->build_id_bytes) == 0)
			return file;
	}
	file = memory_zeroed(1, sizeof(*file));
	file->identity = *identity;
	if (file->identity.build_id_bytes > sizeof(file->build_id))
		file->identity.build_id_bytes = sizeof(file->build_id);
	memcpy(file->build_id, identity->build_id, file->identity.build_id_bytes);
	file->identity.build_id = file->build_id;
	file->next = symbolizer->files;
	symbolizer->files = file;
	return file;
}

static void
notice(struct symbolizer *symbolizer, const char *path, const char *text)
{
	if (symbolizer->notice_count == NOTICES_MAX)
		return;
	symbolizer->notices[symbolizer->notice_count++] = text_pool_add_text(symbolizer->pool,
	                                                                     TEXT(1024, "%s: %s", path, text));
}

static void
put_build_id(char text[2 * BUILD_ID_SHOWN_BYTES + 1], const uint8_t *build_id, size_t bytes)
{
	(void)snprintf(text, 2 * BUILD_ID_SHOWN_BYTES + 1, "none");
	for (size_t i = 0; i < bytes && i < BUILD_ID_SHOWN_BYTES; i++)
		(void)snprintf(text + 2 * i, 3, "%02x", build_id[i]);
}

/* found: the build-id of what lies there now; of no bytes: none. */
static void
note_other(struct symbolizer *symbolizer, struct symbolizer_file *file, const uint8_t *found, size_t bytes)
{
	char recorded[2 * BUILD_ID_SHOWN_BYTES + 1];
	char present[2 * BUILD_ID_SHOWN_BYTES + 1];
	char text[128] = "is not the file that was recorded (its size or time is another)";

	put_build_id(recorded, file->build_id, file->identity.build_id_bytes);
	put_build_id(present, found, bytes);
	if (file->identity.build_id_bytes != 0)
		(void)snprintf(text, sizeof(text), "is not the build that was recorded (build id %s, now %s)", recorded,
		               present);
	file->absence = text_pool_add_text(symbolizer->pool, text);
}

/* A regular file that can be what was recorded; -1: none. */
static int
open_candidate(struct symbolizer *symbolizer, struct symbolizer_file *file, const char *prefix)
{
	const struct symbolizer_identity *wanted = &file->identity;
	struct stat status;
	char path[4096];

	if (snprintf(path, sizeof(path), "%s%s", prefix, text_pool_original(symbolizer->pool, wanted->path)) >=
	    (int)sizeof(path))
		return -1;

	int fd = openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return -1;
	if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
		(void)close(fd);
		return -1;
	}

	/* Without a build-id size and time stand in; copies below a sysroot have times of their own. */
	uint64_t mtime_ns = (uint64_t)status.st_mtim.tv_sec * 1000000000u + (uint64_t)status.st_mtim.tv_nsec;
	bool is_same_size = wanted->size_bytes == 0 || wanted->size_bytes == (uint64_t)status.st_size;
	bool is_same_time = wanted->mtime_ns == 0 || prefix[0] != '\0' || wanted->mtime_ns == mtime_ns;

	if (wanted->build_id_bytes == 0 && (!is_same_size || !is_same_time)) {
		note_other(symbolizer, file, NULL, 0);
		(void)close(fd);
		return -1;
	}
	file->opened_path = text_pool_add_original(symbolizer->pool, path);
	file->is_bearable = debug_gate_is_bearable(fd);
	return fd;
}

/* Takes the descriptor over. False: not the file that was recorded, or no ELF file. */
static bool
open_elf(struct symbolizer *symbolizer, struct symbolizer_file *file, int fd)
{
	static const Dwfl_Callbacks template = {
		.find_elf = dwfl_build_id_find_elf,
		.find_debuginfo = dwfl_standard_find_debuginfo,
		.section_address = dwfl_offline_section_address,
	};
	Dwfl_Callbacks *callbacks = text_pool_room(symbolizer->pool, sizeof(*callbacks));
	const unsigned char *build_id;
	GElf_Addr at;

	*callbacks = template;
	callbacks->debuginfo_path = &symbolizer->debug_folders;
	file->dwfl = dwfl_begin(callbacks);
	if (file->dwfl == NULL) {
		(void)close(fd);
		return false;
	}
	dwfl_report_begin(file->dwfl);
	file->module = dwfl_report_elf(file->dwfl, file->opened_path, file->opened_path, fd, 0, true);
	if (file->module == NULL)
		(void)close(fd);
	(void)dwfl_report_end(file->dwfl, NULL, NULL);
	if (file->module == NULL || dwfl_module_getelf(file->module, &file->bias) == NULL) {
		note_other(symbolizer, file, NULL, 0);
		return false;
	}
	if (file->identity.build_id_bytes == 0)
		return true;

	int bytes = dwfl_module_build_id(file->module, &build_id, &at);

	if (bytes == (int)file->identity.build_id_bytes &&
	    memcmp(build_id, file->build_id, file->identity.build_id_bytes) == 0)
		return true;
	note_other(symbolizer, file, build_id, bytes > 0 ? (size_t)bytes : 0);
	return false;
}

/* What a person would miss in the debug information of the file; said once. */
static void
tell_missing(struct symbolizer *symbolizer, struct symbolizer_file *file, bool has_too_much, bool lacks_split)
{
	if (has_too_much && !file->has_too_much)
		notice(symbolizer, file->identity.path,
		       "has more debug information than is read of one file: some of its functions "
		       "are shown without names or lines");
	if (lacks_split && !file->lacks_split)
		notice(
			symbolizer, file->identity.path,
			"was built with -gsplit-dwarf, and a .dwo file of it was not found (a .dwp is read by elfutils 0.191 and newer): "
			"inlined functions are left out");
	file->has_too_much |= has_too_much;
	file->lacks_split |= lacks_split;
}

/*
 * The gate is shut. Not before it is asked for: to know who called whom, the file itself is enough. NULL = there is none, or it is of the
 * C library: every stack ends there, its functions have the names of its table of symbols, and to unpack more takes ten times as long as
 * the rest of a small report.
 */
static struct symbolizer_dwarf *
dwarf_of(struct symbolizer_file *file)
{
	Dwarf *dwarf;

	if (file->was_dwarf_read || file->module == NULL)
		return file->dwarf;
	file->was_dwarf_read = true;
	dwarf = file->is_bearable && !place_is_of_libc(file->identity.path)
	            ? dwfl_module_getdwarf(file->module, &file->dwarf_bias)
	            : NULL;
	if (dwarf == NULL)
		return NULL;
	return file->dwarf = symbolizer_dwarf_new(dwarf);
}

static void
open_file(struct symbolizer *symbolizer, struct symbolizer_file *file)
{
	const char *const prefixes[] = { symbolizer->sysroot, "" };
	char text[256];

	file->was_opened = true;
	if (file->identity.path[0] != '/') // "[vdso]", "linux-vdso.so.1", nothing
		return;
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]) && file->module == NULL; i++) {
		int fd = prefixes[i] != NULL ? open_candidate(symbolizer, file, prefixes[i]) : -1;

		if (fd >= 0 && !open_elf(symbolizer, file, fd)) {
			dwfl_end(file->dwfl);
			file->dwfl = NULL;
			file->module = NULL;
		}
	}
	if (file->module != NULL) {
		file->absence = NULL;
	} else if (file->absence != NULL) {
		(void)snprintf(text, sizeof(text),
		               "%s: its functions are shown without names; report where it was recorded, or give the old files "
		               "with --sysroot",
		               file->absence);
		notice(symbolizer, file->identity.path, text);
	} else {
		file->absence = "is not on this machine";
		if (symbolizer->missing_count++ == 0)
			symbolizer->first_missing = file->identity.path;
	}
}

const char *
symbolizer_absence(const struct symbolizer_file *file)
{
	return file->absence;
}

/* ".part.0", ".constprop.1", ".isra.0", ".cold", ".lto_priv.0", ".llvm.123": copies of the same source function. */
static void
cut_copy_suffix(char *name)
{
	static const char *const suffixes[] = { ".part.",    ".constprop.", ".isra.",      ".cold",
		                                    ".lto_priv", ".llvm.",      ".localalias", ".clone." };

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		char *found = strstr(name + (name[0] != '\0'), suffixes[i]);

		if (found != NULL)
			*found = '\0';
	}
}

/*
 * For a person: demangled (C++, Rust v0 and legacy) without arguments, without version ("@GLIBC_2.2.5") and without what compilers append to
 * copies and parts of a function (".part.0", " [clone .cold]"). The caller frees it. libiberty's recursion is bounded, so hostile names
 * are no danger.
 */
static char *
readable_name(const char *symbol)
{
	char *plain = memory_text(symbol);
	char *version = strchr(plain + (plain[0] != '\0'), '@');
	char *clone;

	if (version != NULL)
		*version = '\0';
	cut_copy_suffix(plain);

	char *readable = cplus_demangle(plain, DMGL_AUTO);

	if (readable == NULL)
		return plain;
	free(plain);
	clone = strstr(readable, " [clone ");
	if (clone != NULL)
		*clone = '\0';
	return readable;
}

static const char *
readable(struct symbolizer *symbolizer, const char *symbol)
{
	OWNED char *name = readable_name(symbol);

	return text_pool_add_text(symbolizer->pool, name);
}

static const char *
symbol_name(struct symbolizer *symbolizer, struct symbolizer_file *file, uint64_t address)
{
	if (file->names == NULL)
		file->names = symbolizer_names_new(file->module);

	const char *name = symbolizer_names_find(file->names, address);

	return name != NULL ? readable(symbolizer, name) : "";
}

static const char *
source_path(struct symbolizer *symbolizer, const char *folder, const char *file)
{
	char path[PATH_JOIN_BYTES];

	return text_pool_add_text(symbolizer->pool, path_join(folder, file, path));
}

static size_t
answer_from_dwarf(struct symbolizer *symbolizer, struct symbolizer_file *file, uint64_t address,
                  const struct symbol_frame **frames)
{
	struct dwarf_place places[SYMBOLIZER_INLINES_MAX];
	const char *folder = "";
	size_t count = symbolizer_dwarf_find(file->dwarf, address + file->bias - file->dwarf_bias, places, &folder);
	struct symbol_frame *fresh;

	if (count == 0)
		return 0;
	fresh = text_pool_room(symbolizer->pool, count * sizeof(*fresh));
	for (size_t i = 0; i < count; i++) {
		const struct dwarf_place *place = &places[i];
		bool is_outermost = i + 1 == count;

		fresh[i] = (struct symbol_frame){
			.function = "",
			.file = place->file != NULL ? source_path(symbolizer, folder, place->file) : "",
			.line = place->line,
		};
		if (place->linkage_name != NULL)
			fresh[i].function = readable(symbolizer, place->linkage_name);
		else if (place->name != NULL)
			fresh[i].function = text_pool_add_text(symbolizer->pool, place->name);
		if (is_outermost && fresh[i].function[0] == '\0')
			fresh[i].function = symbol_name(symbolizer, file, address + file->bias);
	}
	*frames = fresh;
	return count;
}

static struct answer *
find_answer(struct symbolizer *symbolizer, struct symbolizer_file *file, uint64_t address)
{
	struct answer *answer = memory_zeroed(1, sizeof(*answer));

	answer->address = address;
	if (dwarf_of(file) != NULL)
		answer->count = answer_from_dwarf(symbolizer, file, address, &answer->frames);
	if (answer->count == 0) {
		struct symbol_frame *fresh = text_pool_room(symbolizer->pool, sizeof(*fresh));

		*fresh = unknown_frame;
		fresh->function = symbol_name(symbolizer, file, address + file->bias);
		answer->frames = fresh;
		answer->count = 1;
	}
	HASH_ADD(hh, file->answers, address, sizeof(address), answer);
	return answer;
}

size_t
symbolizer_resolve(struct symbolizer *symbolizer, struct symbolizer_file *file, uint64_t address, bool is_exact,
                   const struct symbol_frame **frames)
{
	struct answer *answer = NULL;
	unsigned refused = debug_gate_refused();

	*frames = &unknown_frame;
	address -= !is_exact && address != 0; // the call ends where the return address points: it may be another line's
	HASH_FIND(hh, file->answers, &address, sizeof(address), answer);
	if (answer == NULL) {
		progress_show("naming native code", ++symbolizer->asked, 0);
		debug_gate_shut();
		if (!file->was_opened)
			open_file(symbolizer, file);
		if (file->module != NULL && address != 0)
			answer = find_answer(symbolizer, file, address);
		debug_gate_open();
		tell_missing(symbolizer, file,
		             debug_gate_refused() != refused || (file->dwarf != NULL && symbolizer_dwarf_is_cut(file->dwarf)),
		             file->dwarf != NULL && symbolizer_dwarf_lacks_split(file->dwarf));
	}
	if (answer == NULL)
		return 1;
	*frames = answer->frames;
	return answer->count;
}

size_t
symbolizer_notices(struct symbolizer *symbolizer, const char *const **notices)
{
	char line[1024];

	if (symbolizer->missing_count != 0 && !symbolizer->has_summed_up) {
		(void)snprintf(line, sizeof(line),
		               "%s: %s%zu recorded file%s not on this machine: functions in %s are shown "
		               "without names; give their folder with --sysroot",
		               symbolizer->first_missing, symbolizer->missing_count > 1 ? "one of " : "",
		               symbolizer->missing_count, symbolizer->missing_count > 1 ? "s that are" : " is",
		               symbolizer->missing_count > 1 ? "them" : "it");
		symbolizer->notices[symbolizer->notice_count++] = text_pool_add_text(symbolizer->pool, line);
		symbolizer->has_summed_up = true;
	}
	*notices = symbolizer->notices;
	return symbolizer->notice_count;
}

/* The gate is shut. NULL = the file has no debug information. */
static struct symbolizer_types *
types_of(struct symbolizer *symbolizer, struct symbolizer_file *file)
{
	if (!file->was_opened)
		open_file(symbolizer, file);
	if (file->types == NULL && dwarf_of(file) != NULL)
		file->types = symbolizer_types_new(file->dwarf, symbolizer->pool);
	return file->types;
}

const struct symbol_type *
symbolizer_variable(struct symbolizer *symbolizer, struct symbolizer_file *file, uint64_t address, bool is_thread_local)
{
	const struct symbol_type *found = NULL;

	debug_gate_shut();

	struct symbolizer_types *types = types_of(symbolizer, file);

	if (types != NULL)
		found = symbolizer_types_variable(types, is_thread_local ? address : address + file->bias - file->dwarf_bias,
		                                  is_thread_local);
	debug_gate_open();
	return found;
}

const struct symbol_type *
symbolizer_class(struct symbolizer *symbolizer, struct symbolizer_file *file, const char *name)
{
	const struct symbol_type *found = NULL;

	debug_gate_shut();

	struct symbolizer_types *types = types_of(symbolizer, file);

	if (types != NULL)
		found = symbolizer_types_class(types, name);
	debug_gate_open();
	return found;
}

bool
symbolizer_member(const struct symbol_type *type, int64_t offset, char name[SYMBOL_MEMBER_BYTES],
                  const struct symbol_type **leads)
{
	debug_gate_shut();

	bool is_known = symbolizer_types_member(type, offset, name, leads);

	debug_gate_open();
	return is_known;
}

static uint64_t
code_before(const struct thread_frame *frame)
{
	return frame->code_addr - (!frame->is_exact && frame->code_addr != 0);
}

bool
symbolizer_caller(struct symbolizer *symbolizer, struct symbolizer_file *file, struct thread_frame *frame,
                  struct thread_frame *caller)
{
	uint64_t address = code_before(frame);
	Dwarf_Addr bias;
	Dwarf_CFI *tables;

	debug_gate_shut();
	if (!file->was_opened)
		open_file(symbolizer, file);
	tables = file->module != NULL ? dwfl_module_eh_cfi(file->module, &bias) : NULL;
	frame->cfa = 0;

	bool is_known = tables != NULL && symbolizer_frames_caller(tables, address + file->bias - bias, frame, caller);

	if (frame->cfa == 0 && dwarf_of(file) != NULL) {
		tables = dwfl_module_dwarf_cfi(file->module, &bias);
		is_known = tables != NULL && symbolizer_frames_caller(tables, address + file->bias - bias, frame, caller);
	}
	debug_gate_open();
	return is_known;
}

static uint32_t
line_of(Dwarf_Die *die)
{
	Dwarf_Attribute attribute;
	Dwarf_Word line;

	return dwarf_attr_integrate(die, DW_AT_decl_line, &attribute) != NULL && dwarf_formudata(&attribute, &line) == 0
	           ? (uint32_t)line
	           : 0;
}

bool
symbolizer_local(struct symbolizer *symbolizer, struct symbolizer_file *file, const struct thread_frame *frame,
                 uint64_t place, struct symbol_local *local)
{
	Dwarf_Die scopes[SYMBOLIZER_SCOPES_MAX];
	const struct symbol_frame *frames;
	const char *name = NULL;
	uint64_t address = 0;
	size_t depth = 0; // of inlined functions around it
	size_t count = 0;
	size_t scope;
	Dwarf_Die variable;

	local->type = NULL;
	debug_gate_shut();
	if (dwarf_of(file) != NULL) {
		address = code_before(frame) + file->bias - file->dwarf_bias;
		count = symbolizer_dwarf_scopes(file->dwarf, address, scopes);
	}
	if (count != 0 && symbolizer_frames_local(scopes, count, address, frame, place, &variable, &local->offset, &scope))
		local->type = symbolizer_types_of(types_of(symbolizer, file), &variable);
	if (local->type != NULL && symbolizer_types_may_lead(local->type, (int64_t)local->offset))
		name = dwarf_diename(&variable);
	if (name != NULL) {
		local->name = text_pool_add_text(symbolizer->pool, name);
		local->line = line_of(&variable);
	}
	debug_gate_open();
	if (name == NULL)
		return false;
	for (size_t i = 1; i <= scope; i++)
		depth += dwarf_tag(&scopes[i]) == DW_TAG_inlined_subroutine;

	size_t frame_count = symbolizer_resolve(symbolizer, file, frame->code_addr, frame->is_exact, &frames);

	frames += depth < frame_count ? frame_count - 1 - depth : 0;
	local->function = frames->function;
	local->file = frames->file;
	return true;
}
