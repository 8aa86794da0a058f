/*
 * cfi_rows_x86_64.h - what do these call frame instructions say? For test_unwind_rules.c.
 */
#ifndef CFI_ROWS_H
#define CFI_ROWS_H

/* CFA = rsp + 8, return address at CFA - 8. */
#define INITIAL             \
	{                       \
		0x0c, 7, 8, 0x90, 1 \
	}

#define N UNWIND_NORMAL
#define A UNWIND_ALIGNED
#define E UNWIND_END
#define X UNWIND_INEXPRESSIBLE
#define PLT(n) 0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x30 + (n), 0x2a, 0x33, 0x24, 0x22

/* kind, is_cfa_from_rbp, is_rbp_saved, cfa_offset, rbp_offset */
static const struct {
	const char *why;
	uint64_t offset; // of the address in the code
	struct unwind_rule rule;
	uint8_t program[24];
} rows[] = {
	{ "the CIE's row", 0, { N, 0, 0, 8, 0 }, { 0 } },
	{ "not yet advanced", 3, { N, 0, 0, 8, 0 }, { 0x44, 0x0e, 16 } },
	{ "advanced", 4, { N, 0, 0, 16, 0 }, { 0x44, 0x0e, 16 } },
	{ "push rbp; mov rsp, rbp", 9, { N, 1, 1, 16, -16 }, { 0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6 } },
	{ "advance_loc1", 32, { N, 0, 0, 24, 0 }, { 0x02, 32, 0x0e, 24 } },
	{ "advance_loc2", 31, { N, 0, 0, 8, 0 }, { 0x03, 32, 0, 0x0e, 24 } },
	{ "advance_loc4", 32, { N, 0, 0, 24, 0 }, { 0x04, 32, 0, 0, 0, 0x0e, 24 } },
	{ "restore", 8, { N, 0, 0, 8, 0 }, { 0x86, 2, 0x44, 0xc6 } },
	{ "restore_extended", 8, { N, 0, 0, 8, 0 }, { 0x86, 2, 0x44, 0x06, 6 } },
	{ "remember and restore", 8, { N, 0, 0, 48, 0 }, { 0x0e, 48, 0x0a, 0x41, 0x0e, 8, 0x86, 2, 0x41, 0x0b } },
	{ "between them", 1, { N, 0, 1, 8, -16 }, { 0x0e, 48, 0x0a, 0x41, 0x0e, 8, 0x86, 2, 0x41, 0x0b } },
	{ "offset_extended", 0, { N, 0, 1, 8, -24 }, { 0x05, 6, 3 } },
	{ "offset_extended_sf", 0, { N, 0, 1, 8, 16 }, { 0x11, 6, 0x7e } },
	{ "GNU_negative_offset_extended", 0, { N, 0, 1, 8, 16 }, { 0x2f, 6, 2 } },
	{ "same_value", 0, { N, 0, 0, 8, 0 }, { 0x86, 2, 0x08, 6 } },
	{ "rbp undefined: nobody restores it", 0, { N, 0, 0, 8, 0 }, { 0x86, 2, 0x07, 6 } },
	{ "def_cfa_sf", 0, { N, 1, 0, 16, 0 }, { 0x12, 6, 0x7e } },
	{ "def_cfa_offset_sf", 0, { N, 0, 0, -8, 0 }, { 0x13, 1 } },
	{ "large offset", 0, { N, 0, 0, 1 << 20, 0 }, { 0x0e, 0x80, 0x80, 0x40 } },
	{ "offset that does not fit", 0, { X, 0, 0, 0, 0 }, { 0x0e, 0x80, 0x80, 0x80, 0x80, 1 } },
	{ "GNU_args_size", 0, { N, 0, 0, 8, 0 }, { 0x2e, 32 } },
	{ "outermost", 0, { E, 0, 0, 0, 0 }, { 0x07, 16 } },
	{ "return address in a register", 0, { X, 0, 0, 0, 0 }, { 0x09, 16, 0 } },
	{ "return address elsewhere", 0, { X, 0, 0, 0, 0 }, { 0x90, 2 } },
	{ "rsp saved", 0, { X, 0, 0, 0, 0 }, { 0x87, 2 } },
	{ "rbp by val_offset", 0, { X, 0, 0, 8, 0 }, { 0x14, 6, 2 } },
	{ "rbp by val_expression", 0, { X, 0, 0, 8, 0 }, { 0x16, 6, 2, 0x76, 0 } },
	{ "another register: no matter", 0, { N, 0, 0, 8, 0 }, { 0x16, 3, 2, 0x76, 0 } },
	{ "CFA from rbx", 0, { X, 0, 0, 8, 0 }, { 0x0c, 3, 8 } },
	{ "realigned", 0, { A, 0, 1, -8, 0 }, { 0x0f, 3, 0x76, 0x78, 6, 0x10, 6, 2, 0x76, 0 } },
	{ "realigned, rbp not said", 0, { X, 0, 0, -8, 0 }, { 0x0f, 3, 0x76, 0x78, 6 } },
	{ "some expression", 0, { X, 0, 0, 8, 0 }, { 0x0f, 2, 0x77, 16 } },
	{ "lazy PLT before the push", 10, { N, 0, 0, 8, 0 }, { PLT(11) } },
	{ "lazy PLT after the push", 11, { N, 0, 0, 16, 0 }, { PLT(11) } },
	{ "second stub", 16 + 12, { N, 0, 0, 16, 0 }, { PLT(11) } },
	{ "PLT with endbr64", 8, { N, 0, 0, 8, 0 }, { PLT(9) } },
	{ "PLT with endbr64 after the push", 9, { N, 0, 0, 16, 0 }, { PLT(9) } },
	{ "PLT with bnd", 5, { N, 0, 0, 16, 0 }, { PLT(5) } },
	{ "restore_state too many", 0, { UNWIND_NONE, 0, 0, 0, 0 }, { 0x0b } },
	{ "unknown instruction", 0, { UNWIND_NONE, 0, 0, 0, 0 }, { 0x3f } },
	{ "beyond the function", CODE_BYTES, { UNWIND_NONE, 0, 0, 0, 0 }, { 0 } },
};

#endif
