/*
 * unwind_cfi.c - see unwind_cfi.h.
 *
 * Runs call frame instructions (DWARF 5 standard, 6.4.2) and keeps of each row what a walk over rsp, rbp
 * and the return address needs.
 */
#include "unwind/unwind_cfi.h"

#include <dwarf.h>
#include <string.h>

#include "base/arch.h"

#define REMEMBERED_MAX 16
#define OPERAND_BITS 0x3f // of the three operations that carry an operand in their own byte

enum place_kind {
	PLACE_SAME, // the caller's value is in the register still
	PLACE_UNDEFINED,
	PLACE_CFA, // at CFA + offset
	PLACE_RBP, // at rbp + offset
	PLACE_OTHER,
};
struct place {
	enum place_kind kind;
	int64_t offset;
};

enum cfa_kind { CFA_REGISTER, CFA_AT_RBP, CFA_OTHER };
struct row {
	enum cfa_kind cfa;
	uint64_t cfa_register;
	int64_t cfa_offset;
	struct place saved_return;
	struct place saved_rbp;
	struct place saved_rsp;
};

/*
 * The expression of a PLT: after n instructions' bytes of a 16-byte stub an index has been pushed,
 *   CFA = rsp + 8 + (((rip & 15) >= n) << 3)
 * The operand n (DW_OP_lit0 + n) differs between the kinds of PLT.
 */
static bool
is_plt_expression(const uint8_t *code, uint64_t count)
{
	static const uint8_t plt[] = { DW_OP_breg7, 8,        DW_OP_breg16, 0,         DW_OP_lit15, DW_OP_and,
		                           DW_OP_lit0,  DW_OP_ge, DW_OP_lit3,   DW_OP_shl, DW_OP_plus };

	return !ARCH_LINK_REGISTER && count == sizeof plt && memcmp(code, plt, 6) == 0 &&
	       memcmp(code + 7, plt + 7, 4) == 0 && code[6] >= DW_OP_lit0 && code[6] <= DW_OP_lit15;
}

static void
row_cfa_expression(struct row *row, struct unwind_bytes *program, uint64_t pc)
{
	uint64_t count = unwind_bytes_uleb128(program);
	const uint8_t *code = program->at;

	unwind_bytes_skip(program, count);
	row->cfa = CFA_OTHER;
	if (program->is_damaged)
		return;
	if (is_plt_expression(code, count)) {
		row->cfa = CFA_REGISTER;
		row->cfa_register = ARCH_DWARF_SP;
		row->cfa_offset = (pc & 15) >= (uint64_t)(code[6] - DW_OP_lit0) ? 16 : 8;
	} else if (count >= 3 &&
	           code[0] == DW_OP_breg0 + ARCH_DWARF_FP) { // and DW_OP_deref: a function that realigned its stack
		struct unwind_bytes operand = { code + 1, code + count, false };
		int64_t offset = unwind_bytes_sleb128(&operand);

		if (!operand.is_damaged && operand.end - operand.at == 1 && *operand.at == DW_OP_deref) {
			row->cfa = CFA_AT_RBP;
			row->cfa_offset = offset;
		}
	}
}

static struct place
place_expression(struct unwind_bytes *program)
{
	uint64_t count = unwind_bytes_uleb128(program);
	const uint8_t *code = program->at;
	struct place place = { PLACE_OTHER, 0 };

	unwind_bytes_skip(program, count);
	if (!program->is_damaged && count >= 2 && code[0] == DW_OP_breg0 + ARCH_DWARF_FP) {
		struct unwind_bytes operand = { code + 1, code + count, false };
		int64_t offset = unwind_bytes_sleb128(&operand);

		if (!operand.is_damaged && operand.at == operand.end)
			place = (struct place){ PLACE_RBP, offset };
	}
	return place;
}

/* Where the row keeps that register, or NULL when the walk does not need it. */
static struct place *
row_place(struct row *row, uint64_t number)
{
	switch (number) {
	case ARCH_DWARF_FP:
		return &row->saved_rbp;
	case ARCH_DWARF_SP:
		return &row->saved_rsp;
	case ARCH_DWARF_RETURN:
		return &row->saved_return;
	default:
		return NULL;
	}
}

static void
row_save(struct row *row, uint64_t number, enum place_kind kind, int64_t offset)
{
	struct place *place = row_place(row, number);

	if (place != NULL)
		*place = (struct place){ kind, offset };
}

static void
row_restore(struct row *row, uint64_t number, struct row *initial)
{
	struct place *place = row_place(row, number);

	if (place != NULL)
		*place = *row_place(initial, number);
}

static int64_t
factored(uint64_t offset, const struct unwind_common *common)
{
	return (int64_t)(offset * (uint64_t)common->data_factor);
}

struct machine {
	const struct unwind_common *common;
	uint64_t pc;
	uint64_t location;
	struct row row;
	struct row initial; // after the CIE's program
	struct row remembered[REMEMBERED_MAX];
	unsigned remembered_count;
};

/* The operations with one byte of their own. False when damaged or unknown. */
static bool
machine_extended(struct machine *machine, struct unwind_bytes *program, uint8_t operation)
{
	const struct unwind_common *common = machine->common;
	struct row *row = &machine->row;
	uint64_t number;

	switch (operation) {
	case DW_CFA_nop:
		break;
	case DW_CFA_set_loc:
		machine->location = unwind_bytes_pointer(program, common->pointer_encoding, 0);
		break;
	case DW_CFA_advance_loc1:
	case DW_CFA_advance_loc2:
	case DW_CFA_advance_loc4:
		machine->location += unwind_bytes_fixed(program, 1u << (operation - DW_CFA_advance_loc1)) * common->code_factor;
		break;
	case DW_CFA_offset_extended:
		number = unwind_bytes_uleb128(program);
		row_save(row, number, PLACE_CFA, factored(unwind_bytes_uleb128(program), common));
		break;
	case DW_CFA_restore_extended:
		row_restore(row, unwind_bytes_uleb128(program), &machine->initial);
		break;
	case DW_CFA_undefined:
		row_save(row, unwind_bytes_uleb128(program), PLACE_UNDEFINED, 0);
		break;
	case DW_CFA_same_value:
		row_save(row, unwind_bytes_uleb128(program), PLACE_SAME, 0);
		break;
	case DW_CFA_register:
	case DW_CFA_val_offset:
		number = unwind_bytes_uleb128(program);
		(void)unwind_bytes_uleb128(program);
		row_save(row, number, PLACE_OTHER, 0);
		break;
	case DW_CFA_val_offset_sf:
		number = unwind_bytes_uleb128(program);
		(void)unwind_bytes_sleb128(program);
		row_save(row, number, PLACE_OTHER, 0);
		break;
	case DW_CFA_remember_state:
		if (machine->remembered_count == REMEMBERED_MAX)
			return false;
		machine->remembered[machine->remembered_count++] = *row;
		break;
	case DW_CFA_restore_state:
		if (machine->remembered_count == 0)
			return false;
		*row = machine->remembered[--machine->remembered_count];
		break;
	case DW_CFA_def_cfa:
		row->cfa = CFA_REGISTER;
		row->cfa_register = unwind_bytes_uleb128(program);
		row->cfa_offset = (int64_t)unwind_bytes_uleb128(program);
		break;
	case DW_CFA_def_cfa_sf:
		row->cfa = CFA_REGISTER;
		row->cfa_register = unwind_bytes_uleb128(program);
		row->cfa_offset = factored((uint64_t)unwind_bytes_sleb128(program), common);
		break;
	case DW_CFA_def_cfa_register: // after an expression it has no meaning
		row->cfa_register = unwind_bytes_uleb128(program);
		break;
	case DW_CFA_def_cfa_offset:
		row->cfa_offset = (int64_t)unwind_bytes_uleb128(program);
		break;
	case DW_CFA_def_cfa_offset_sf:
		row->cfa_offset = factored((uint64_t)unwind_bytes_sleb128(program), common);
		break;
	case DW_CFA_def_cfa_expression:
		row_cfa_expression(row, program, machine->pc);
		break;
	case DW_CFA_expression: {
		number = unwind_bytes_uleb128(program);
		struct place place = place_expression(program);

		row_save(row, number, place.kind, place.offset);
		break;
	}
	case DW_CFA_offset_extended_sf:
		number = unwind_bytes_uleb128(program);
		row_save(row, number, PLACE_CFA, factored((uint64_t)unwind_bytes_sleb128(program), common));
		break;
	case DW_CFA_val_expression:
		number = unwind_bytes_uleb128(program);
		unwind_bytes_skip(program, unwind_bytes_uleb128(program));
		row_save(row, number, PLACE_OTHER, 0);
		break;
	case DW_CFA_GNU_args_size: // matters to landing pads only
		(void)unwind_bytes_uleb128(program);
		break;
	case DW_CFA_GNU_negative_offset_extended:
		number = unwind_bytes_uleb128(program);
		row_save(row, number, PLACE_CFA, -factored(unwind_bytes_uleb128(program), common));
		break;
	case DW_CFA_AARCH64_negate_ra_state: // it is signed from here on, or no longer: see arch_code_address()
		return ARCH_LINK_REGISTER;
	default:
		return false;
	}
	return true;
}

/* Runs until the row of `lookup_pc` is there. */
static bool
machine_run(struct machine *machine, struct unwind_bytes program, uint64_t lookup_pc)
{
	while (program.at < program.end) {
		struct row before = machine->row;
		uint8_t operation = unwind_bytes_u8(&program);
		uint8_t low = operation & OPERAND_BITS;

		switch (operation & ~OPERAND_BITS) {
		case DW_CFA_advance_loc:
			machine->location += low * machine->common->code_factor;
			break;
		case DW_CFA_offset:
			row_save(&machine->row, low, PLACE_CFA, factored(unwind_bytes_uleb128(&program), machine->common));
			break;
		case DW_CFA_restore:
			row_restore(&machine->row, low, &machine->initial);
			break;
		default:
			if (!machine_extended(machine, &program, operation))
				return false;
			break;
		}
		if (program.is_damaged)
			return false;
		if (machine->location > lookup_pc) {
			machine->row = before;
			return true;
		}
	}
	return true;
}

static bool
fits(int64_t offset, unsigned bits)
{
	return offset >= -(INT64_C(1) << (bits - 1)) && offset < INT64_C(1) << (bits - 1);
}

/*
 * Where the return address is, if a rule can say that. With a link register there are three cases: it was not stored yet; it was stored alone;
 * it was stored behind the frame pointer, as one pair.
 */
static bool
has_usual_return(const struct row *row)
{
	const struct place *saved = &row->saved_return;
	const struct place *frame = &row->saved_rbp;

	if (!ARCH_LINK_REGISTER)
		return saved->kind == PLACE_CFA && saved->offset == -8;
	if (row->cfa != CFA_REGISTER)
		return false;
	if (frame->kind == PLACE_SAME)
		return saved->kind == PLACE_SAME || saved->kind == PLACE_CFA;
	return frame->kind == PLACE_CFA && saved->kind == PLACE_CFA && saved->offset == frame->offset + 8;
}

static struct unwind_rule
rule_of_row(const struct row *row)
{
	struct unwind_rule rule = { .kind = UNWIND_INEXPRESSIBLE };
	const struct place *rbp = &row->saved_rbp;

	if (row->saved_return.kind == PLACE_UNDEFINED) {
		rule.kind = UNWIND_END;
		return rule;
	}
	if (!has_usual_return(row) || row->saved_rsp.kind != PLACE_SAME)
		return rule;

	int64_t saved_offset = ARCH_LINK_REGISTER && rbp->kind == PLACE_SAME ? row->saved_return.offset : rbp->offset;

	if (!fits(row->cfa_offset, UNWIND_CFA_OFFSET_BITS) || saved_offset % ARCH_SAVED_UNIT != 0 ||
	    !fits(saved_offset / ARCH_SAVED_UNIT, UNWIND_RBP_OFFSET_BITS))
		return rule;
	rule.cfa_offset = (int32_t)row->cfa_offset;
	rule.rbp_offset = (int32_t)saved_offset;

	if (row->cfa == CFA_AT_RBP) {
		if (rbp->kind == PLACE_RBP) {
			rule.kind = UNWIND_ALIGNED;
			rule.is_rbp_saved = true;
		}
		return rule;
	}
	if (row->cfa != CFA_REGISTER || (row->cfa_register != ARCH_DWARF_SP && row->cfa_register != ARCH_DWARF_FP))
		return rule;
	if (rbp->kind == PLACE_RBP || rbp->kind == PLACE_OTHER)
		return rule;
	rule.kind = ARCH_LINK_REGISTER && row->saved_return.kind == PLACE_SAME ? UNWIND_LEAF : UNWIND_NORMAL;
	rule.is_cfa_from_rbp = row->cfa_register == ARCH_DWARF_FP;
	rule.is_rbp_saved = rbp->kind == PLACE_CFA;
	return rule;
}

struct unwind_rule
unwind_cfi_rule(const struct unwind_tables *tables, uint64_t pc, uint64_t lookup_pc)
{
	static const struct unwind_rule none = { .kind = UNWIND_NONE };
	struct unwind_common common;
	struct unwind_bytes program;
	struct machine machine;

	if (!unwind_tables_find(tables, lookup_pc, &common, &machine.location, &program))
		return none;
	if (common.is_signal)
		return (struct unwind_rule){ .kind = UNWIND_SIGNAL };
	if (common.is_foreign)
		return (struct unwind_rule){ .kind = UNWIND_INEXPRESSIBLE };

	uint64_t begin = machine.location;

	machine.common = &common;
	machine.pc = pc;
	machine.location = 0; // a CIE's program has no addresses
	machine.row = (struct row){ .cfa = CFA_OTHER };
	machine.initial = machine.row;
	machine.remembered_count = 0;
	if (!machine_run(&machine, common.program, UINT64_MAX))
		return none;
	machine.initial = machine.row;
	machine.location = begin;
	machine.remembered_count = 0;
	if (!machine_run(&machine, program, lookup_pc))
		return none;
	return rule_of_row(&machine.row);
}
