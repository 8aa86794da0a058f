/*
 * symbolizer_frames.c - callers and local variables of a thread that stood still (see symbolizer_frames.h).
 *
 * Of DWARF's expressions those are understood that compilers write for memory of a frame and for registers: the one value on top is all
 * that is kept.
 */
#include "symbols/symbolizer_frames.h"

#include <dwarf.h>
#include <stdlib.h>

#define VARIABLES_MAX 20000u // of a function, that are looked at
#define WORD_BYTES 8u

struct location {
	bool is_known;
	bool is_register; // `value` is its number
	bool is_value;    // it is nowhere: this is what it is
	uint64_t value;   // an address
};

static bool
value_of(const struct thread_frame *frame, uint64_t number, uint64_t *value)
{
	if (number >= THREAD_FRAME_REGISTERS || !frame->registers[number].is_known)
		return false;
	*value = frame->registers[number].value;
	return true;
}

/* frame_base: NULL = there is none. False: it is not understood. */
static bool
step(const struct thread_frame *frame, const uint64_t *frame_base, const Dwarf_Op *operation, struct location *top)
{
	const uint8_t atom = operation->atom;

	if (top->is_register || top->is_value)
		return false;
	if (atom >= DW_OP_reg0 && atom <= DW_OP_reg31) {
		*top = (struct location){ true, true, false, atom - DW_OP_reg0 };
		return true;
	}
	if (atom >= DW_OP_breg0 && atom <= DW_OP_breg31) {
		top->is_known = value_of(frame, atom - DW_OP_breg0, &top->value);
		top->value += operation->number;
		return top->is_known;
	}
	switch (atom) {
	case DW_OP_regx:
		*top = (struct location){ true, true, false, operation->number };
		return true;
	case DW_OP_bregx:
		top->is_known = value_of(frame, operation->number, &top->value);
		top->value += operation->number2;
		return top->is_known;
	case DW_OP_fbreg:
		top->is_known = frame_base != NULL;
		top->value = frame_base != NULL ? *frame_base + operation->number : 0;
		return top->is_known;
	case DW_OP_call_frame_cfa:
		*top = (struct location){ .is_known = frame->cfa != 0, .value = frame->cfa };
		return top->is_known;
	case DW_OP_plus_uconst:
		top->value += operation->number;
		return top->is_known;
	case DW_OP_deref:
		return top->is_known && frame->read(frame->context, top->value, &top->value);
	case DW_OP_stack_value:
		top->is_value = true;
		return top->is_known;
	default:
		return false;
	}
}

static bool
locate(const struct thread_frame *frame, const uint64_t *frame_base, const Dwarf_Op *operations, size_t count,
       struct location *location)
{
	*location = (struct location){ 0 };
	for (size_t i = 0; i < count; i++) {
		if (!step(frame, frame_base, &operations[i], location))
			return false;
	}
	return location->is_known;
}

/* ---- callers ---- */

/* What the caller has in this register. */
static void
restore(Dwarf_Frame *rules, const struct thread_frame *frame, unsigned number, struct frame_register *restored)
{
	Dwarf_Op room[3];
	Dwarf_Op *operations;
	struct location location;
	size_t count;

	*restored = (struct frame_register){ 0 };
	if (dwarf_frame_register(rules, (int)number, room, &operations, &count) != 0)
		return;
	if (count == 0) {
		if (operations == NULL && number < THREAD_FRAME_REGISTERS) // the same as here
			*restored = frame->registers[number];
		return;
	}
	if (!locate(frame, NULL, operations, count, &location))
		return;
	if (location.is_register) {
		if (location.value < THREAD_FRAME_REGISTERS)
			*restored = frame->registers[location.value];
	} else if (location.is_value)
		*restored = (struct frame_register){ true, location.value, number };
	else {
		restored->place = location.value;
		restored->is_known = frame->read(frame->context, location.value, &restored->value);
	}
}

bool
symbolizer_frames_caller(Dwarf_CFI *tables, uint64_t address, struct thread_frame *frame, struct thread_frame *caller)
{
	struct frame_register code;
	struct location cfa;
	bool is_of_signal = false;
	Dwarf_Frame *rules;
	Dwarf_Op *operations;
	size_t count;

	frame->cfa = 0;
	if (dwarf_cfi_addrframe(tables, address, &rules) != 0)
		return false;

	int code_number = dwarf_frame_info(rules, NULL, NULL, &is_of_signal);

	if (code_number < 0 || dwarf_frame_cfa(rules, &operations, &count) != 0 ||
	    !locate(frame, NULL, operations, count, &cfa) || cfa.is_register) {
		free(rules);
		return false;
	}
	frame->cfa = cfa.value;
	*caller = (struct thread_frame){ .is_exact = is_of_signal, .read = frame->read, .context = frame->context };
	for (unsigned i = 0; i < THREAD_FRAME_REGISTERS; i++)
		restore(rules, frame, i, &caller->registers[i]);
	restore(rules, frame, (unsigned)code_number, &code);
	free(rules);
	caller->code_addr = code.value;
	return code.is_known && code.value != 0;
}

/* ---- local variables ---- */

struct search {
	const struct thread_frame *frame;
	uint64_t address;
	bool has_base;
	uint64_t base;
	uint64_t place;
	unsigned visits;
};

static size_t
read_operations(Dwarf_Die *die, unsigned name, uint64_t address, Dwarf_Op **operations)
{
	Dwarf_Attribute attribute;
	size_t count;

	if (dwarf_attr_integrate(die, name, &attribute) == NULL ||
	    dwarf_getlocation_addr(&attribute, address, operations, &count, 1) != 1)
		return 0;
	return count;
}

/* Where a frame begins, for the locations of its variables: a register's value, where it is in one. */
static void
read_base(struct search *search, Dwarf_Die *function)
{
	Dwarf_Op *operations;
	size_t count = read_operations(function, DW_AT_frame_base, search->address, &operations);
	struct location base;

	if (count == 0 || !locate(search->frame, NULL, operations, count, &base))
		return;
	search->base = base.value;
	search->has_base = !base.is_register || value_of(search->frame, base.value, &search->base);
}

static uint64_t
bytes_of(Dwarf_Die *variable)
{
	Dwarf_Attribute attribute;
	Dwarf_Die type;
	Dwarf_Word bytes;

	if (dwarf_attr_integrate(variable, DW_AT_type, &attribute) == NULL ||
	    dwarf_formref_die(&attribute, &type) == NULL || dwarf_aggregate_size(&type, &bytes) != 0)
		return WORD_BYTES;
	return bytes;
}

/* offset: out, of the place from the location's begin */
static bool
is_there(const struct search *search, const Dwarf_Op *operations, size_t count, uint64_t bytes, uint64_t *offset)
{
	struct location location;

	if (!locate(search->frame, search->has_base ? &search->base : NULL, operations, count, &location) ||
	    location.is_value)
		return false;
	if (location.is_register) {
		if (location.value >= THREAD_FRAME_REGISTERS || !search->frame->registers[location.value].is_known)
			return false;
		*offset = search->place - search->frame->registers[location.value].place;
		return search->place < THREAD_FRAME_REGISTERS ? *offset == 0 : *offset < WORD_BYTES;
	}
	*offset = search->place - location.value;
	return bytes >= WORD_BYTES && *offset <= bytes - WORD_BYTES;
}

/* A variable may be in pieces: some members in registers, some in the stack. */
static bool
is_at_place(struct search *search, Dwarf_Die *variable, uint64_t *offset)
{
	Dwarf_Op *operations;
	size_t count = read_operations(variable, DW_AT_location, search->address, &operations);
	uint64_t before = 0;
	size_t first = 0;

	for (size_t i = 0; i < count; i++) {
		if (operations[i].atom != DW_OP_piece)
			continue;
		if (is_there(search, operations + first, i - first, operations[i].number, offset)) {
			*offset += before;
			return true;
		}
		before += operations[i].number;
		first = i + 1;
	}
	return first == 0 && count != 0 && is_there(search, operations, count, bytes_of(variable), offset);
}

bool
symbolizer_frames_local(Dwarf_Die *scopes, size_t count, uint64_t address, const struct thread_frame *frame,
                        uint64_t place, Dwarf_Die *variable, uint64_t *offset, size_t *scope)
{
	struct search search = { .frame = frame, .address = address, .place = place, .visits = VARIABLES_MAX };

	read_base(&search, &scopes[0]);
	for (*scope = 0; *scope < count; (*scope)++) {
		if (dwarf_child(&scopes[*scope], variable) != 0)
			continue;
		do {
			int tag = dwarf_tag(variable);

			if (search.visits == 0)
				return false;
			search.visits--;
			if ((tag == DW_TAG_variable || tag == DW_TAG_formal_parameter) && is_at_place(&search, variable, offset))
				return true;
		} while (dwarf_siblingof(variable, variable) == 0);
	}
	return false;
}
