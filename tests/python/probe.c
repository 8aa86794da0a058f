/*
 * probe.c - the shim's Python part without its hooks, to be asked by a script through ctypes.
 *
 * Test only. Preloaded like the shim, so that the interpreter is looked at before it is initialised; capture
 * records stay in the private memory that capture_file.c uses without a file.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <unwind.h>

#include "symbols/python_text.h"
#include "capture/capture_file.h"
#include "python/python_frames.h"
#include "python/python_lines.h"
#include "python/python_runtime.h"
#include "base/settings.h"
#include "base/thread_stack.h"

#define EXPORT __attribute__((visibility("default")))

__attribute__((constructor)) static void
start(void)
{
	settings_parse(environ);
	thread_stack_start();
	python_frames_start();
}

EXPORT uint32_t
probe_available(void)
{
	return python_frames_available();
}

EXPORT uint32_t
probe_version(void)
{
	return capture_file_header()->python_version;
}

/* shown: room for a struct python_stack up to what was visited. Each thread remembers, as under the library. */
EXPORT void
probe_walk(void *shown)
{
	static __thread struct python_stack stack;

	python_frames_walk(&stack);
	memcpy(shown, &stack, offsetof(struct python_stack, visited));
}

EXPORT const struct kmem_code *
probe_code(uint32_t index)
{
	return capture_file_at(KMEM_SECTION_RECORDS, index);
}

EXPORT uint32_t
probe_line_first(uint32_t code_index, uint32_t offset)
{
	return python_lines_first(code_index, offset);
}

/* The line that the reader of the capture will print. */
EXPORT uint32_t
probe_line_read(uint32_t code_index, uint32_t offset)
{
	const struct kmem_code *code = probe_code(code_index);
	const uint8_t *table = (const uint8_t *)(code + 1) + code->file_bytes + code->function_bytes;

	return python_text_line(code->python_version, code->first_line, table, code->line_table_bytes, offset);
}

/* Random tables, most of them nearly well formed. Returns at how many offsets the line changed. */
EXPORT uint32_t
probe_lines_differ(uint32_t version, uint32_t seed, uint32_t tables)
{
	uint32_t differ = 0;

	for (uint32_t i = 0; i < tables; i++) {
		uint8_t table[40];
		size_t bytes = (size_t)rand_r(&seed) % (sizeof(table) + 1);

		for (size_t at = 0; at < bytes; at++) {
			unsigned random = (unsigned)rand_r(&seed) >> 8;

			table[at] = (uint8_t)(random % 8 == 0   ? random >> 8
			                      : version < 0x30b ? random >> 8 & 0x83
			                      : at % 2 == 0     ? 0x80 | random >> 8
			                                        : random >> 8 & 0x47);
		}
		for (uint32_t offset = 0; offset < 300; offset += offset % 7 == 0 ? 1 : 2) {
			uint32_t first = python_lines_read(version, table, bytes, offset);

			differ += first > offset || python_text_line(version, 1000, table, bytes, first) !=
			                                python_text_line(version, 1000, table, bytes, offset);
		}
	}
	return differ;
}

EXPORT uint64_t
probe_record_bytes(void)
{
	return capture_file_header()->used_bytes[KMEM_SECTION_RECORDS];
}

EXPORT uint64_t
probe_lost(uint32_t loss)
{
	return capture_file_header()->losses[loss];
}

/* The newest note, or an empty text. */
EXPORT void
probe_note(char *text, uint32_t size)
{
	uint32_t index = capture_file_header()->notes;
	const struct kmem_note *note = index == 0 ? NULL : capture_file_item(KMEM_SECTION_RECORDS, index);

	snprintf(text, size, "%.*s", note == NULL ? 0 : (int)note->text_bytes,
	         note == NULL ? "" : (const char *)(note + 1));
}

EXPORT uint32_t
probe_is_finalizing(void)
{
	return python_runtime_is_finalizing();
}

EXPORT uint32_t
probe_is_interpreter(uint64_t pc)
{
	return python_frames_is_interpreter(pc);
}

EXPORT void
probe_start(void)
{
	python_frames_start();
}

EXPORT void
probe_forked(void)
{
	python_frames_forked();
}

/* A native frame between Python frames. */
EXPORT void
probe_call(void (*callback)(void))
{
	callback();
	__asm__ volatile("" ::: "memory"); // no tail call
}

/* --- which native frame holds an anchor? --- */

#define NATIVE_MAX 4096
#define NAME_BYTES 48

struct native {
	uint32_t count;
	uint64_t sp[NATIVE_MAX];
	uint64_t pc[NATIVE_MAX];
	// where it begins, as its unwind information says; builds without symbols have that too
	uint64_t function[NATIVE_MAX];
};

static _Unwind_Reason_Code
collect(struct _Unwind_Context *context, void *argument)
{
	struct native *native = argument;

	if (native->count == NATIVE_MAX)
		return _URC_END_OF_STACK;
	native->pc[native->count] = _Unwind_GetIP(context);
	native->function[native->count] = _Unwind_GetRegionStart(context);
	native->sp[native->count++] = _Unwind_GetCFA(context); // of the frame below: this one's stack pointer
	return _URC_NO_REASON;
}

static const char *
name_of(uint64_t pc)
{
	Dl_info info;

	return dladdr((void *)(pc - 1), &info) == 0 || info.dli_sname == NULL ? "?" : info.dli_sname;
}

static int
find_anchor(const struct native *native, uint64_t anchor)
{
	for (uint32_t i = 0; anchor != 0 && i + 1 < native->count; i++)
		if (anchor >= native->sp[i] && anchor < native->sp[i + 1])
			return (int)i;
	return -1;
}

/*
 * Walks, and fills in for every Python frame the position of the native frame that holds its anchor (-1: none)
 * and that frame's function, "?" without symbols. Returns how many native frames are in a function that holds an anchor;
 * `first` is the innermost of them.
 */
EXPORT uint32_t
probe_walk_native(struct python_stack *stack, int32_t *positions, char (*names)[NAME_BYTES], int32_t *first)
{
	static __thread struct native native;
	uint32_t evaluators = 0;

	probe_walk(stack);
	native.count = 0;
	_Unwind_Backtrace(collect, &native);

	for (uint32_t frame = 0; frame < stack->count; frame++) {
		positions[frame] = find_anchor(&native, stack->frames[frame].anchor_addr);
		snprintf(names[frame], NAME_BYTES, "%s", positions[frame] < 0 ? "" : name_of(native.pc[positions[frame]]));
	}
	*first = -1;
	for (uint32_t i = 0; i < native.count; i++) {
		bool holds = false;

		for (uint32_t frame = 0; !holds && frame < stack->count; frame++)
			holds = positions[frame] >= 0 && native.function[positions[frame]] == native.function[i];
		if (holds && evaluators++ == 0)
			*first = (int32_t)i;
	}
	return evaluators;
}

/* Nanoseconds of one walk: the best of twenty rounds. */
EXPORT double
probe_walk_ns(uint32_t walks)
{
	static __thread struct python_stack stack;
	double best_ns = 1e9;

	for (int round = 0; round < 20; round++) {
		struct timespec start_time;
		struct timespec end_time;

		clock_gettime(CLOCK_MONOTONIC, &start_time);
		for (uint32_t i = 0; i < walks; i++)
			python_frames_walk(&stack);
		clock_gettime(CLOCK_MONOTONIC, &end_time);

		double ns = ((double)(end_time.tv_sec - start_time.tv_sec) * 1e9 +
		             (double)(end_time.tv_nsec - start_time.tv_nsec)) /
		            walks;

		if (ns < best_ns)
			best_ns = ns;
	}
	return best_ns;
}
