/*
 * python_visit.h - what does one frame of the interpreter say?
 *
 * A visit is a function of the words that it reads: python_visit_read() takes the ones that can change while the frame is
 * linked, python_visit_judge() works with these and with what never changes in a living code object.
 *
 * Context     on the thread whose frame it is.
 * Safe from   any hook, for frames that are linked; no allocation, no lock.
 * When failing  PYTHON_VISIT_INVALID: the frame is not what it should be, and neither is what it leads to.
 */
#ifndef PYTHON_VISIT_H
#define PYTHON_VISIT_H

#include <stdbool.h>
#include <stdint.h>

#include "kmem_format.h"
#include "python/python_layout.h"
#include "python/python_memory.h"

/* What a frame's owner byte says. */
#define PYTHON_OWNER_GENERATOR 1
#define PYTHON_OWNER_SHIM_FIRST 3 // this and above: the interpreter's own frame at the bottom of an evaluator
#define PYTHON_OWNER_LAST 4

#define PYTHON_UNIT_BYTES 2 // of bytecode

enum python_visit_kind {
	PYTHON_VISIT_FRAME,
	PYTHON_VISIT_SKIP, // being set up: the interpreter hides it as well
	PYTHON_VISIT_SHIM,
	PYTHON_VISIT_FOREIGN, // runs no code object
	PYTHON_VISIT_INVALID,
};

/* What was read. */
struct python_visit {
	uint64_t frame_addr;
	uint64_t code_word; // with its tag
	uint64_t instruction_word;
	uint32_t owner_word; // python_visit_owner_word()
};

/* Does the frame say where it is by an address? */
static inline bool
python_visit_has_pointer(enum python_chain_kind chain)
{
	return chain != PYTHON_CHAIN_OBJECTS && chain != PYTHON_CHAIN_OBJECTS_CFRAME;
}

static inline uint64_t
python_visit_instruction(const struct python_layout *layout, enum python_chain_kind chain, uint64_t frame)
{
	uint64_t at = frame + layout->frame_instruction;

	return python_visit_has_pointer(chain) ? python_memory_u64(at) : python_memory_u32(at);
}

/* The owner byte; with the is_entry byte, which lies before it, where that decides about runs. */
static inline uint32_t
python_visit_owner_word(const struct python_layout *layout, enum python_chain_kind chain, uint64_t frame)
{
	if (chain == PYTHON_CHAIN_CFRAME_ENTRY)
		return python_memory_u16(frame + layout->frame_is_entry);
	return python_visit_has_pointer(chain) ? python_memory_u8(frame + layout->frame_owner) : 0;
}

static inline uint8_t
python_visit_owner(enum python_chain_kind chain, const struct python_visit *visit)
{
	return (uint8_t)(chain == PYTHON_CHAIN_CFRAME_ENTRY ? visit->owner_word >> 8 : visit->owner_word);
}

/* Is this frame the outermost of those that one activation of the evaluator runs? */
static inline bool
python_visit_ends_run(enum python_chain_kind chain, const struct python_visit *visit, enum python_visit_kind kind)
{
	if (chain == PYTHON_CHAIN_OBJECTS_CFRAME)
		return true;
	if (chain == PYTHON_CHAIN_CFRAME_ENTRY)
		return (visit->owner_word & 0xff) != 0;
	return kind == PYTHON_VISIT_SHIM;
}

static inline uint64_t
python_visit_code(const struct python_layout *layout, uint64_t code_word)
{
	return code_word & ~(uint64_t)layout->code_tag_mask;
}

static inline bool
python_visit_is_foreign(const struct python_interpreter *python, uint64_t code_word)
{
	uint64_t code = python_visit_code(&python->layout, code_word);

	return python_memory_u64(code + python->layout.object_type) != python->types.code;
}

/* frame: one that python_memory_is_object() accepts. */
static inline void
python_visit_read(const struct python_layout *layout, uint64_t frame, struct python_visit *visit)
{
	enum python_chain_kind chain = layout->chain;

	*visit = (struct python_visit){
		.frame_addr = frame,
		.code_word = python_memory_u64(frame + layout->frame_code),
		.instruction_word = python_visit_instruction(layout, chain, frame),
		.owner_word = python_visit_owner_word(layout, chain, frame),
	};
}

/* Where this copy of the code object's bytecode begins; not for copy 0. 0 = there is no such copy. */
uint64_t python_visit_copy(const struct python_layout *layout, uint64_t code, int32_t copy);

/* Where the bytecode that the frame runs begins. Which copy that is follows from the address of its instruction. */
static inline uint64_t
python_visit_bytecode(const struct python_layout *layout, uint64_t frame, uint64_t code)
{
	int32_t copy = layout->code_copies != 0 ? python_memory_i32(frame + layout->frame_copy) : 0;

	return copy == 0 ? code + layout->code_bytecode : python_visit_copy(layout, code, copy);
}

/* Which kind of frame is it, and (FRAME) at which instruction is it? `offset` is in bytes. */
static inline enum python_visit_kind
python_visit_judge(const struct python_interpreter *python, const struct python_visit *visit, uint32_t *offset)
{
	const struct python_layout *layout = &python->layout;
	uint64_t code = python_visit_code(layout, visit->code_word);
	uint8_t owner = python_visit_owner(layout->chain, visit);
	int64_t at;
	uint64_t size_bytes;

	if (owner > PYTHON_OWNER_LAST)
		return PYTHON_VISIT_INVALID;
	if (owner >= PYTHON_OWNER_SHIM_FIRST)
		return PYTHON_VISIT_SHIM;
	if (!python_memory_is_object(code))
		return PYTHON_VISIT_INVALID;
	if (python_visit_is_foreign(python, visit->code_word))
		// 3.13: None is allowed
		return layout->chain == PYTHON_CHAIN_SHIM ? PYTHON_VISIT_FOREIGN : PYTHON_VISIT_INVALID;

	if (layout->instruction == PYTHON_INSTRUCTION_POINTER) {
		at = (int64_t)(visit->instruction_word - python_visit_bytecode(layout, visit->frame_addr, code));
		size_bytes = python_memory_u64(code + layout->object_size) * PYTHON_UNIT_BYTES;

		/* Arguments are not bound yet. */
		if (owner != PYTHON_OWNER_GENERATOR &&
		    at < PYTHON_UNIT_BYTES * (int64_t)python_memory_i32(code + layout->code_first_traceable))
			return PYTHON_VISIT_SKIP;
	} else {
		uint64_t bytecode = python_memory_u64(code + layout->code_bytecode);

		at = (int32_t)visit->instruction_word;
		if (layout->instruction == PYTHON_INSTRUCTION_UNITS)
			at *= PYTHON_UNIT_BYTES;
		size_bytes = python_memory_u64(bytecode + layout->object_size);
	}

	if (at < 0) // -1: before the first instruction
		at = 0;
	if ((uint64_t)at >= size_bytes || (uint64_t)at > KMEM_FRAME_OFFSET_MASK)
		return PYTHON_VISIT_INVALID;
	*offset = (uint32_t)at;
	return PYTHON_VISIT_FRAME;
}

#endif
