/*
 * made_frames_aarch64.h - functions whose frames compilers make, for test_native_stack.c.
 */
#ifndef MADE_FRAMES_H
#define MADE_FRAMES_H

#include <stdint.h>

#define MADE_ILLEGAL "udf #0"
#define MADE_PC pc
static const uint8_t made_illegal[] = { 0, 0, 0, 0 };

/* stp x29, x30, [sp, #-16]!; mov x29, sp; mov x9, x0; mov x0, x1; blr x9; ldp x29, x30, [sp], #16; ret */
#define MADE_CODE_RETURN 20
static const uint32_t made_code[] = {
	0xa9bf7bfd, 0x910003fd, 0xaa0003e9, 0xaa0103e0, 0xd63f0120, 0xa8c17bfd, 0xd65f03c0
};

typedef void callback(void *);

void call_plain(callback *call, void *context);         // x29 is a plain register
void call_realigned(callback *call, void *context);     // x30 alone is stored
void call_inexpressible(callback *call, void *context); // CFA from x19
__asm__(".text\n"
        "call_plain:\n.cfi_startproc\n"
        "sub sp, sp, #48\n.cfi_def_cfa_offset 48\n"
        "stp x29, x30, [sp, #8]\n.cfi_offset 29, -40\n.cfi_offset 30, -32\n"
        "mov x29, #0x1234\nmov x9, x0\nmov x0, x1\nblr x9\n"
        "ldp x29, x30, [sp, #8]\n.cfi_restore 29\n.cfi_restore 30\n"
        "add sp, sp, #48\n.cfi_def_cfa_offset 0\nret\n.cfi_endproc\n"
        "call_realigned:\n.cfi_startproc\n"
        "str x30, [sp, #-32]!\n.cfi_def_cfa_offset 32\n.cfi_offset 30, -32\n"
        "mov x9, x0\nmov x0, x1\nblr x9\n"
        "ldr x30, [sp], #32\n.cfi_restore 30\n.cfi_def_cfa_offset 0\nret\n.cfi_endproc\n"
        "call_inexpressible:\n.cfi_startproc\n"
        "stp x19, x30, [sp, #-16]!\n.cfi_def_cfa_offset 16\n.cfi_offset 19, -16\n.cfi_offset 30, -8\n"
        "mov x19, sp\n.cfi_def_cfa_register 19\nmov x9, x0\nmov x0, x1\nblr x9\n"
        ".cfi_def_cfa_register 31\nldp x19, x30, [sp], #16\n.cfi_restore 19\n.cfi_restore 30\n"
        ".cfi_def_cfa_offset 0\nret\n.cfi_endproc\n");

#endif
