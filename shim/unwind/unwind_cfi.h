/*
 * unwind_cfi.h - what do the unwind tables of an object say about one code address?
 *
 * Context     once per address and module version.
 * Safe from   any hook: no state, no allocation, about 2 KiB of stack. Reads nothing but the tables.
 * When failing  damaged tables give UNWIND_NONE: the walk ends there.
 */
#ifndef UNWIND_CFI_H
#define UNWIND_CFI_H

#include <stdbool.h>
#include <stdint.h>

#include "unwind/unwind_tables.h"

enum unwind_kind {
	UNWIND_UNKNOWN = 0,       // not computed yet
	UNWIND_NORMAL = 1,        // CFA = register + cfa_offset; saved rbp at CFA + rbp_offset
	UNWIND_ALIGNED = 2,       // realigned stack: CFA = [rbp + cfa_offset]; saved rbp at rbp + rbp_offset
	UNWIND_END = 3,           // the outermost frame
	UNWIND_SIGNAL = 4,        // signal trampoline: the interrupted registers are in the ucontext at rsp
	UNWIND_INEXPRESSIBLE = 5, // the tables say more than this struct can: ask libunwind
	UNWIND_NONE = 6,          // no usable table (generated code, assembly): the caller cannot be found
	UNWIND_LEAF = 7,          // the return address is in the link register (ARCH_LINK_REGISTER): only behind a signal
};

/*
 * How to get from a frame to its caller. The return address is always at CFA - 8; with a link register, behind the saved rbp, or, where that is
 * not saved, at CFA + rbp_offset. rbp: the frame pointer, x29 on aarch64; rsp: the stack pointer.
 */
struct unwind_rule {
	enum unwind_kind kind;
	bool is_cfa_from_rbp; // NORMAL: else from rsp
	bool is_rbp_saved;    // else the caller has the same rbp
	int32_t cfa_offset;
	int32_t rbp_offset;
};

/* Ranges that fit the packed rule, see unwind_rules.h. */
#define UNWIND_CFA_OFFSET_BITS 28
#define UNWIND_RBP_OFFSET_BITS 15

/*
 * pc         value of the program counter in that frame
 * lookup_pc  address inside the instruction that the frame is at: pc - 1 for a return address
 */
struct unwind_rule unwind_cfi_rule(const struct unwind_tables *tables, uint64_t pc, uint64_t lookup_pc);

#endif
