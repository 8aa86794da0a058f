/* hooks_new_entries_aarch64.c - operator new and delete as the program sees them, see hooks_new.c. */
#include "hooks/hooks_new_entries.h"

#define ENTRIES REAL_NEW_FUNCTIONS(ENTRY)

/*
 * The exported functions. Arguments are in x0, x1 and x2; the real function goes along in x3, as a fourth argument of the function that
 * records. All else is as the caller left it, also the return address, which tells who called.
 */
#define ENTRY(index, name, record)                                \
	".globl " #name "\n"                                          \
	".type " #name ", %function\n"                                \
	".p2align 4\n" #name ":\n"                                    \
	".cfi_startproc\n"                                            \
	"	adrp x16, hooks_new_everybody+" #index "*16\n"            \
	"	add x16, x16, #:lo12:hooks_new_everybody+" #index "*16\n" \
	"	ldar x17, [x16]\n"                                          \
	"	ldr x3, [x16, #8]\n"                                        \
	"	br x17\n"                                                   \
	".cfi_endproc\n"                                              \
	".size " #name ", . - " #name "\n"                            \
	".hidden hooks_new_first_" #name "\n"                         \
	".globl hooks_new_first_" #name "\n"                          \
	".type hooks_new_first_" #name ", %function\n"                \
	"hooks_new_first_" #name ":\n"                                \
	".cfi_startproc\n"                                            \
	"	mov w9, #" #index "\n"                                    \
	"	b .Lhooks_new_by_caller\n"                                  \
	".cfi_endproc\n"                                              \
	".size hooks_new_first_" #name ", . - hooks_new_first_" #name "\n"

/* ldar: what comes behind it in the program is read after it. Pairs with store() of hooks_new.c. */
__asm__(".pushsection .text\n" ENTRIES ".p2align 4\n"
        ".Lhooks_new_by_caller:\n"
        ".cfi_startproc\n"
        "	adrp x12, hooks_new_table\n"
        "	add x12, x12, #:lo12:hooks_new_table\n"
        "	ldar x12, [x12]\n"
        "	cbz x12, .Lhooks_new_find\n"
        "	lsr x10, x30, #" REGION_SHIFT_TEXT "\n"
        "	cmp x10, #(1 << (" REGIONS_BITS_TEXT "))\n"
        "	b.hs .Lhooks_new_find\n"
        "	mov x11, #(" ROWS_BYTES_TEXT ")\n"
        "	add x11, x11, x12\n"
        "	add x11, x11, x10, lsl #3\n"
        "	ldar x11, [x11]\n"
        "	cbz x11, .Lhooks_new_find\n"
        "	ubfx x10, x30, #" PAGE_SHIFT_TEXT ", #(" PAGE_BITS_TEXT ")\n"
        "	add x11, x11, x10, lsl #1\n"
        "	ldarh w11, [x11]\n"
        "	mov x10, #(" ROW_BYTES_TEXT ")\n"
        "	mul x11, x11, x10\n"
        "	add x11, x11, x9, lsl #4\n"
        "	add x12, x12, x11\n"
        "	ldar x16, [x12]\n"
        "	ldr x3, [x12, #8]\n"
        "	cbz x16, .Lhooks_new_find\n"
        "	br x16\n"
        ".Lhooks_new_find:\n"
        "	stp x29, x30, [sp, #-48]!\n"
        ".cfi_def_cfa_offset 48\n"
        ".cfi_offset 29, -48\n"
        ".cfi_offset 30, -40\n"
        "	mov x29, sp\n"
        "	stp x0, x1, [sp, #16]\n"
        "	str x2, [sp, #32]\n"
        "	mov w0, w9\n"
        "	mov x1, x30\n"
        "	bl hooks_new_find\n"
        "	mov x16, x0\n"
        "	mov x3, x1\n"
        "	ldp x0, x1, [sp, #16]\n"
        "	ldr x2, [sp, #32]\n"
        "	ldp x29, x30, [sp], #48\n"
        ".cfi_restore 30\n"
        ".cfi_restore 29\n"
        ".cfi_def_cfa_offset 0\n"
        "	br x16\n"
        ".cfi_endproc\n"
        /*
         * The unwinder asks the personality of each frame that it passes. This personality leaves the guard and lets the exception go
         * on. So nothing here needs the C++ library, of which there may be none, or two.
         */
        ".globl hooks_new_call\n"
        ".hidden hooks_new_call\n"
        ".type hooks_new_call, %function\n"
        ".p2align 4\n"
        "hooks_new_call:\n"
        ".cfi_startproc\n"
        ".cfi_personality 0x1b, hooks_new_personality\n"
        "	stp x29, x30, [sp, #-16]!\n"
        ".cfi_def_cfa_offset 16\n"
        ".cfi_offset 29, -16\n"
        ".cfi_offset 30, -8\n"
        "	mov x29, sp\n"
        "	blr x3\n"
        "	ldp x29, x30, [sp], #16\n"
        ".cfi_restore 30\n"
        ".cfi_restore 29\n"
        ".cfi_def_cfa_offset 0\n"
        "	ret\n"
        ".cfi_endproc\n"
        ".size hooks_new_call, . - hooks_new_call\n"
        ".popsection\n");
