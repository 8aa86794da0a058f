/*
 * cfi_rows_aarch64.h - what do these call frame instructions say? For test_unwind_rules.c.
 */
#ifndef CFI_ROWS_H
#define CFI_ROWS_H

/* CFA = sp, return address in x30. */
#define INITIAL           \
	{                     \
		0x0c, 31, 0, 0, 0 \
	}

#define N UNWIND_NORMAL
#define L UNWIND_LEAF
#define E UNWIND_END
#define X UNWIND_INEXPRESSIBLE

/* kind, is_cfa_from_rbp (x29), is_rbp_saved, cfa_offset, rbp_offset */
static const struct {
	const char *why;
	uint64_t offset; // of the address in the code
	struct unwind_rule rule;
	uint8_t program[24];
} rows[] = {
	{ "the CIE's row", 0, { L, 0, 0, 0, 0 }, { 0 } },
	{ "not yet advanced", 3, { L, 0, 0, 0, 0 }, { 0x44, 0x0e, 32, 0x9d, 4, 0x9e, 3 } },
	{ "stp x29, x30, [sp, -32]!", 4, { N, 0, 1, 32, -32 }, { 0x44, 0x0e, 32, 0x9d, 4, 0x9e, 3 } },
	{ "mov x29, sp", 4, { N, 1, 1, 32, -32 }, { 0x0e, 32, 0x9d, 4, 0x9e, 3, 0x44, 0x0d, 29 } },
	{ "str x30, [sp, -16]!", 0, { N, 0, 0, 16, -16 }, { 0x0e, 16, 0x9e, 2 } },
	{ "x30 above other registers", 0, { N, 0, 0, 48, -8 }, { 0x0e, 48, 0x93, 2, 0x9e, 1 } },
	{ "sub sp alone", 0, { L, 0, 0, 64, 0 }, { 0x0e, 0xc0, 0 } },
	{ "the pair restored", 4, { L, 0, 0, 0, 0 }, { 0x0e, 32, 0x9d, 4, 0x9e, 3, 0x44, 0xdd, 0xde, 0x0e, 0 } },
	{ "return address is signed", 0, { N, 0, 1, 16, -16 }, { 0x2d, 0x0e, 16, 0x9d, 2, 0x9e, 1 } },
	{ "pair far below", 0, { N, 0, 1, 65536, -65536 }, { 0x0e, 0x80, 0x80, 4, 0x9d, 0x80, 0x40, 0x9e, 0xff, 0x3f } },
	{ "pair too far below",
	  0,
	  { X, 0, 0, 0, 0 },
	  { 0x0e, 0x80, 0x80, 0x10, 0x9d, 0x80, 0x80, 2, 0x9e, 0xff, 0xff, 1 } },
	{ "pair in the other order", 0, { X, 0, 0, 0, 0 }, { 0x0e, 16, 0x9e, 2, 0x9d, 1 } },
	{ "x29 stored, x30 not", 0, { X, 0, 0, 0, 0 }, { 0x0e, 16, 0x9d, 2 } },
	{ "outermost", 0, { E, 0, 0, 0, 0 }, { 0x07, 30 } },
	{ "return address in a register", 0, { X, 0, 0, 0, 0 }, { 0x09, 30, 0 } },
	{ "sp stored", 0, { X, 0, 0, 0, 0 }, { 0x9f, 2 } },
	{ "CFA from x19", 0, { X, 0, 0, 0, 0 }, { 0x0c, 19, 8 } },
	{ "some expression", 0, { X, 0, 0, 0, 0 }, { 0x0f, 2, 0x8f, 16 } },
	{ "restore_state too many", 0, { UNWIND_NONE, 0, 0, 0, 0 }, { 0x0b } },
	{ "unknown instruction", 0, { UNWIND_NONE, 0, 0, 0, 0 }, { 0x3f } },
	{ "beyond the function", CODE_BYTES, { UNWIND_NONE, 0, 0, 0, 0 }, { 0 } },
};

#endif
