/*
 * fake_chain.h - a chain of frames, with what they run, as each kind of interpreter links it; without one.
 */
#ifndef FAKE_CHAIN_H
#define FAKE_CHAIN_H

#include <stdatomic.h>
#include <stdio.h>

#include "python/python_code.h"
#include "python/python_fakes.h"
#include "python/python_visit.h"
#include "python/python_runtime.h"

enum { FRAMES = 1100, CODES = 24, CFRAMES = 8 };

struct frame {
	_Alignas(8) char bytes[80]; // as in 3.11
};

static struct frame frames[FRAMES];
static struct fake_code codes[CODES];
static char bytecode[64]; // of the layouts where it is an object
static unsigned lives[CODES];
static uint64_t foreign[8];     // an object that is no code
static uint64_t heap_cframe[4]; // a cframe that is not on the stack
static char state[256];
static char other_state[256];
static char runtime[64];
static char *present_state = state;
static uint64_t (*cframes)[4]; // of the test's C stack

static void *
give_state(void)
{
	return present_state;
}

static uint64_t
get(const void *object, size_t offset)
{
	uint64_t value;

	memcpy(&value, (const char *)object + offset, sizeof(value));
	return value;
}

static const struct python_layout *
layout(void)
{
	return &python_runtime.interpreter.layout;
}

static bool
has_pointers(void)
{
	return layout()->instruction == PYTHON_INSTRUCTION_POINTER;
}

static void
code_born(unsigned i)
{
	char name[32];

	snprintf(name, sizeof(name), "code_%u_life_%u", i, lives[i]++);
	fake_code_make(&codes[i], "/x.py", name, 1, "\xd8\xd8\xd8\xd8\xd8\xd8\xd8\xd8\xd8\xd8\xd8\xd8\xd8\xd8\xd8\xd8");
	fake_put(codes[i].code, 16, 16); // units, where they are counted here
	if (!has_pointers())
		fake_put(codes[i].code, 184, (uint64_t)bytecode);
}

static void
set_instruction(unsigned i, unsigned unit)
{
	uint64_t code = get(frames[i].bytes, layout()->frame_code);
	uint32_t number = unit;

	if (has_pointers())
		fake_put(frames[i].bytes, layout()->frame_instruction, code + layout()->code_bytecode + 2 * unit);
	else
		memcpy(frames[i].bytes + layout()->frame_instruction, &number, sizeof(number));
}

static void
set_code(unsigned i, unsigned code, unsigned unit)
{
	fake_put(frames[i].bytes, layout()->frame_code, (uint64_t)codes[code].code);
	set_instruction(i, unit);
}

static void
set_owner(unsigned i, uint8_t owner, bool is_entry)
{
	if (layout()->frame_owner != 0)
		frames[i].bytes[layout()->frame_owner] = (char)owner;
	if (layout()->frame_is_entry != 0)
		frames[i].bytes[layout()->frame_is_entry] = is_entry;
}

static void
set_previous(unsigned i, int outer)
{
	fake_put(frames[i].bytes, layout()->frame_previous, outer < 0 ? 0 : (uint64_t)&frames[outer]);
}

static void
set_innermost(int i)
{
	uint64_t frame = i < 0 ? 0 : (uint64_t)&frames[i];

	if (layout()->tstate_frame != 0)
		fake_put(present_state, layout()->tstate_frame, frame);
	else
		fake_put(cframes[0], layout()->cframe_frame, frame);
}

static void
start(uint32_t version)
{
	python_runtime.interpreter = fake_interpreter();
	struct python_layout *its = &python_runtime.interpreter.layout;

	/* The objects are those of 3.11 in every chain. */
	if (version >= 0x030d) {
		its->chain = PYTHON_CHAIN_SHIM;
		its->tstate_cframe = its->cframe_frame = its->cframe_previous = its->frame_is_entry = 0;
		its->tstate_frame = 72;
	} else if (version < 0x030b) {
		its->chain = version == 0x030a ? PYTHON_CHAIN_OBJECTS_CFRAME : PYTHON_CHAIN_OBJECTS;
		its->instruction = PYTHON_INSTRUCTION_UNITS;
		its->frame_owner = its->frame_is_entry = its->cframe_frame = its->code_first_traceable = 0;
		its->tstate_frame = 72;
		if (version < 0x030a)
			its->tstate_cframe = its->cframe_previous = 0;
	}
	python_runtime.addr = (uint64_t)runtime;
	python_runtime.current_state = python_runtime.thread_state = give_state;
	fake_put(runtime, its->runtime_finalizing, 0);
	atomic_store_explicit(&python_runtime.state, PYTHON_RUNTIME_FOUND, memory_order_release);

	memset(frames, 0, sizeof(frames));
	memset(cframes, 0, CFRAMES * sizeof(cframes[0]));
	memset(state, 0, sizeof(state));
	fake_bytes(bytecode, "", 0);
	fake_put(bytecode, 16, 32);
	for (unsigned i = 0; i < CODES; i++) {
		python_code_forget((uint64_t)codes[i].code);
		code_born(i);
	}
	foreign[1] = (uint64_t)&fake_types[0];
	present_state = state;
	if (its->tstate_cframe != 0) {
		fake_put(state, its->tstate_cframe, (uint64_t)cframes[0]);
		fake_put(other_state, its->tstate_cframe, (uint64_t)cframes[0]);
		for (unsigned i = 0; i + 1 < CFRAMES; i++)
			fake_put(cframes[i], its->cframe_previous, (uint64_t)cframes[i + 1]);
	}
	set_innermost(-1);
}

/* frames[count - 1] calls ... calls frames[0]: frame i runs code i and is at instruction i. */
static void
chain_of(unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		set_code(i, i % CODES, i % 16);
		set_owner(i, 0, i == 0);
		set_previous(i, (int)i - 1);
	}
	set_innermost((int)count - 1);
}

#endif
