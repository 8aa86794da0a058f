/*
 * model_frames.c - what does one word of a recorded stack mean to a person?
 *
 * Words are looked up per capture, since addresses and code indexes differ between processes; the readable frames are
 * shared by all, so that equal stacks of different processes are equal pointers.
 *
 * When failing  a frame without names; the reader's damages say why.
 */
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/path_join.h"
#include "base/place.h"
#include "base/sorted.h"
#include "model/model_build.h"
#include "symbols/python_text.h"

#define OVERLAPS_MAX 64 // modules tried for an address; more than this never overlap

struct build_frame {
	struct model_frame frame; // the key: every byte, padding is 0
	bool is_trusted;
	const struct model_frame *newest; // see model_frames_newest(); NULL = not asked
	uint32_t older_count;             // frames of which it is the newest
	UT_hash_handle hh;
};

struct module {
	uint64_t start_addr;
	uint64_t end_addr;
	uint64_t load_bias;
	uint32_t loaded_version;
	uint32_t unloaded_version;
	uint64_t built_ns; // 0 = unknown
	const char *path;
	const char *name;
	struct symbolizer_file *file; // NULL: no symbols wanted
};

/* One code object; the texts stay in the capture's memory. */
struct code {
	uint32_t index;
	bool is_known; // false: its record is damaged
	struct capture_code stored;
	const char *file;
	const char *module;
	const char *function;
	UT_hash_handle hh;
};

struct word_key {
	uint64_t word;
	uint64_t module; // index in modules + 1; 0 = none, or Python
};

struct word {
	struct word_key key;
	size_t count;
	const struct model_frame *only;       // when count is 1
	const struct model_frame *const *all; // else
	UT_hash_handle hh;
};

/* The same words are asked for again and again: this is looked at first. */
#define RECENT_BITS 14
struct recent {
	uint64_t word;
	uint32_t module_version;
	const struct word *known; // NULL = empty
};

struct process_frames {
	struct build *build;
	struct capture *capture;
	size_t module_count;
	struct module *modules; // by start, then by when they were loaded
	struct code *codes;     // uthash
	struct word *words;     // uthash
	struct recent recent[1u << RECENT_BITS];
};

static struct build_frame *
find_frame(struct build *build, const struct model_frame *frame)
{
	struct build_frame *found;

	HASH_FIND(hh, build->frames, frame, sizeof(*frame), found);
	return found;
}

/* The one copy of this frame. `frame` was zeroed before it was filled in. */
static const struct model_frame *
keep_frame(struct build *build, const struct model_frame *frame)
{
	struct build_frame *found = find_frame(build, frame);

	if (found == NULL) {
		found = text_pool_room(build->pool, sizeof(*found));
		memcpy(&found->frame, frame, sizeof(*frame));
		HASH_ADD(hh, build->frames, frame, sizeof(found->frame), found);
	}
	found->is_trusted = found->is_trusted || build->is_trusted;
	return &found->frame;
}

const struct model_frame *
model_frames_newest(struct build *build, const struct model_frame *frame)
{
	struct build_frame *kept = frame->file[0] == '<' ? find_frame(build, frame) : NULL;
	struct model_frame newest;

	if (kept == NULL)
		return frame;
	if (kept->newest == NULL) {
		kept->newest = frame;
		memcpy(&newest, frame, sizeof(newest)); // padding too: the frame is a key
		if (model_cells_newest(build, &newest)) {
			newest.module = text_pool_add_text(build->pool, place_base(newest.file));
			kept->newest = keep_frame(build, &newest);
			find_frame(build, &newest)->older_count++;
		}
	}
	return kept->newest;
}

void
model_frames_free(struct build *build)
{
	HASH_CLEAR(hh, build->frames);
}

void
model_frames_label(struct build *build)
{
	struct build_frame *found;
	struct build_frame *next;

	HASH_ITER(hh, build->frames, found, next)
	{ // nobody looks a frame up any more
		found->frame.is_trusted = found->is_trusted;
		found->frame.cell_count = found->older_count != 0 ? found->older_count + 1 : 0;
		if (found->frame.kind != MODEL_FRAME_PYTHON)
			continue;
		found->frame.file = model_cells_name(build, found->frame.file);
		if (found->frame.file[0] == 'c')
			found->frame.module = model_cells_name(build, found->frame.module);
	}
}

void
model_frames_tell_files(struct build *build)
{
	OWNED const char **paths = memory_zeroed(HASH_COUNT(build->frames), sizeof(*paths));
	size_t count = 0;
	struct build_frame *found;
	struct build_frame *next;

	HASH_ITER(hh, build->frames, found, next)
	{
		if (found->frame.is_user && strchr(found->frame.file, '/') != NULL)
			paths[count++] = found->frame.file;
	}
	place_learn(paths, count);
}

ORDER_OF(compare_modules, struct module,
	order_numbers(a->start_addr, b->start_addr) ?: order_numbers(a->loaded_version, b->loaded_version)
	?: strcmp(a->path, b->path))

/* The name as the loader was given it: relative to where the program began, where the recorder could not learn more. */
static const char *
module_path(const struct process_frames *frames, const struct capture_module *stored)
{
	struct text_pool *pool = frames->build->pool;
	const char *path = text_pool_add(pool, stored->path, stored->path_bytes);
	char joined[PATH_JOIN_BYTES];

	if (path[0] == '/' || strchr(path, '/') == NULL)
		return path;
	return text_pool_add_text(pool, path_join(frames->build->rules.directory, path, joined));
}

static void
read_modules(struct process_frames *frames)
{
	struct build *build = frames->build;
	uint32_t next = capture_list(&frames->capture->header->modules);
	struct capture_module stored;

	while (capture_next_module(frames->capture, &next, &stored)) {
		const char *path = module_path(frames, &stored);
		struct symbolizer_identity identity = {
			.path = path,
			.build_id = stored.build_id,
			.build_id_bytes = stored.build_id_bytes,
			.size_bytes = stored.file_size_bytes,
			.mtime_ns = stored.file_mtime_ns,
		};

		*MEMORY_NEXT(frames->modules, frames->module_count) = (struct module){
			.start_addr = stored.start_addr,
			.end_addr = stored.end_addr,
			.load_bias = stored.load_bias,
			.loaded_version = stored.loaded_version,
			.unloaded_version = stored.unloaded_version,
			.built_ns = stored.file_mtime_ns,
			.path = path,
			.name = text_pool_add_text(build->pool, place_base(path)),
			.file = build->symbolizer != NULL ? symbolizer_file(build->symbolizer, &identity) : NULL,
		};
	}
	SORT(frames->modules, frames->module_count, compare_modules);
}

struct process_frames *
process_frames_new(struct build *build, struct capture *capture)
{
	struct process_frames *frames = memory_zeroed(1, sizeof(*frames));

	frames->build = build;
	frames->capture = capture;
	read_modules(frames);
	return frames;
}

void
process_frames_free(struct process_frames *frames)
{
	HASH_FREE(frames->codes, free);
	HASH_FREE(frames->words, free);
	free(frames->modules);
	free(frames);
}

/* How many modules begin at or before (address, generation), in the order of the table. */
static size_t
modules_until(const struct process_frames *frames, uint64_t address, uint32_t generation)
{
	const struct module *modules = frames->modules;

	return SORTED_BEFORE(at, frames->module_count,
	                     modules[at].start_addr < address ||
	                         (modules[at].start_addr == address && modules[at].loaded_version <= generation));
}

static const struct module *
find_module(const struct process_frames *frames, uint64_t address, uint32_t generation)
{
	size_t after = modules_until(frames, address, UINT32_MAX);

	/* Of modules loaded at one address one after the other, the one of that time; then what began further down. */
	for (unsigned tries = 0; after > 0 && tries < OVERLAPS_MAX; tries++) {
		uint64_t start = frames->modules[after - 1].start_addr;
		size_t in_time = modules_until(frames, start, generation);
		const struct module *module = in_time > 0 ? &frames->modules[in_time - 1] : NULL;

		if (module != NULL && module->start_addr == start && address < module->end_addr &&
		    (module->unloaded_version == 0 || generation < module->unloaded_version))
			return module;
		after = start == 0 ? 0 : modules_until(frames, start - 1, UINT32_MAX);
	}
	return NULL;
}

static const struct code *
find_code(struct process_frames *frames, uint32_t index)
{
	struct text_pool *pool = frames->build->pool;
	struct code *code;

	if (!HASH_MADE(frames->codes, index, index, code))
		return code;
	code->is_known = capture_code(frames->capture, index, &code->stored);
	code->file = code->module = code->function = "";
	if (code->is_known) {
		code->file = text_pool_add(pool, code->stored.file, code->stored.file_bytes);
		if ((code->stored.flags & KMEM_CODE_CELL) != 0)
			code->file = model_cells_file(frames->build, frames->capture->identity->pid, code->file);
		code->module = text_pool_add_text(pool, place_base(code->file));
		code->function = text_pool_add(pool, code->stored.function, code->stored.function_bytes);
		/* What the recorder stores for all code that it has no room for. */
		if (strcmp(code->file, "<unknown>") == 0 && strcmp(code->function, "<unknown>") == 0) {
			code->file = code->module = "";
			code->function = "Python code whose name found no room";
		}
	}
	return code;
}

static void
resolve_python(struct process_frames *frames, uint64_t word, struct word *into)
{
	const struct code *code = find_code(frames, (uint32_t)(word & KMEM_FRAME_CODE_MASK));
	uint32_t offset = (uint32_t)(word >> KMEM_FRAME_OFFSET_SHIFT & KMEM_FRAME_OFFSET_MASK);
	struct model_frame frame;

	memset(&frame, 0, sizeof(frame)); // padding too: the frame is a key
	frame.kind = MODEL_FRAME_PYTHON;
	frame.function = code->function;
	frame.file = code->file;
	frame.module = code->module;
	frame.module_path = "";
	if (code->is_known) {
		// else there was no room for its lines
		if (code->stored.line_table_bytes != 0 || (code->stored.flags & KMEM_CODE_CUT_TEXT) == 0)
			frame.line = python_text_line(code->stored.python_version, code->stored.first_line, code->stored.line_table,
			                              code->stored.line_table_bytes, offset);
		frame.first_line = code->stored.first_line;
		frame.is_importlib = (code->stored.flags & KMEM_CODE_IMPORTLIB) != 0;
		frame.is_library = (code->stored.flags & (KMEM_CODE_LIBRARY | KMEM_CODE_IMPORTLIB)) != 0;
		frame_rules_judge(&frames->build->rules, &frame, (code->stored.flags & KMEM_CODE_LIBRARY) != 0);
	}
	into->count = 1;
	into->only = keep_frame(frames->build, &frame);
}

static void
resolve_native(struct process_frames *frames, uint64_t word, const struct module *module, struct word *into)
{
	static const struct symbol_frame unknown = { .function = "", .file = "" };
	struct build *build = frames->build;
	const struct symbol_frame *symbols = &unknown;
	const struct model_frame **all = NULL;
	bool is_exact = (word & KMEM_FRAME_EXACT) != 0;
	uint64_t address = word & KMEM_FRAME_PC_MASK;

	if (module != NULL && strncmp(module->name, "libkmemshim", strlen("libkmemshim")) == 0)
		return; // a hook, in the stack of what CUDA allocates inside: nobody's code, and no frame
	into->count = 1;
	if (module != NULL) {
		address -= module->load_bias;
		if (module->file != NULL)
			into->count = symbolizer_resolve(build->symbolizer, module->file, address, is_exact, &symbols);
	}
	if (into->count > 1)
		all = text_pool_room(build->pool, into->count * sizeof(struct model_frame *));
	for (size_t i = 0; i < into->count; i++) {
		struct model_frame frame;

		memset(&frame, 0, sizeof(frame));
		frame.kind = MODEL_FRAME_NATIVE;
		frame.function = symbols[i].function;
		frame.file = symbols[i].file;
		frame.line = symbols[i].line;
		frame.is_repeated = (word & KMEM_FRAME_REPEATED) != 0 && i + 1 == into->count;
		frame.module = module != NULL ? module->name : "";
		frame.module_path = module != NULL ? module->path : "";
		frame.absence = module != NULL && module->file != NULL ? symbolizer_absence(module->file) : NULL;
		frame.module_offset = address;
		frame.built_ns = module != NULL ? module->built_ns : 0;
		frame_rules_judge(&build->rules, &frame, false);
		into->only = keep_frame(build, &frame);
		if (all != NULL)
			all[i] = into->only;
	}
	into->all = all;
}

static const struct word *
find_word(struct process_frames *frames, uint64_t word, uint32_t module_version)
{
	bool is_python = (word & KMEM_FRAME_PYTHON) != 0;
	bool is_exact = (word & KMEM_FRAME_EXACT) != 0;
	const struct module *module = NULL;
	struct word_key key = { .word = word };
	struct word *known;

	if (!is_python) {
		uint64_t address = word & KMEM_FRAME_PC_MASK;

		module = find_module(frames, address - (!is_exact && address != 0), module_version);
		key.module = module != NULL ? (uint64_t)(module - frames->modules) + 1 : 0;
	}
	if (HASH_MADE(frames->words, key, key, known)) {
		if (is_python)
			resolve_python(frames, word, known);
		else
			resolve_native(frames, word, module, known);
	}
	return known;
}

size_t
process_frames_resolve(struct process_frames *frames, uint64_t word, uint32_t module_version,
                       const struct model_frame *const **found)
{
	struct recent *recent = &frames->recent[(word * UINT64_C(0x9e3779b97f4a7c15)) >> (64 - RECENT_BITS)];

	if (recent->known == NULL || recent->word != word || recent->module_version != module_version)
		*recent = (struct recent){ word, module_version, find_word(frames, word, module_version) };
	*found = recent->known->count <= 1 ? &recent->known->only : recent->known->all;
	return recent->known->count;
}
