/*
 * made_frames_x86_64.h - functions whose frames compilers make, for test_native_stack.c.
 */
#ifndef MADE_FRAMES_H
#define MADE_FRAMES_H

#include <stdint.h>

#define MADE_ILLEGAL "ud2"
#define MADE_PC gregs[REG_RIP]
static const uint8_t made_illegal[] = { 0x0f, 0x0b };

/* sub $8, %rsp; mov %rdi, %rax; mov %rsi, %rdi; call *%rax; add $8, %rsp; ret */
#define MADE_CODE_RETURN 12
static const uint8_t made_code[] = { 0x48, 0x83, 0xec, 0x08, 0x48, 0x89, 0xf8, 0x48, 0x89,
	                                 0xf7, 0xff, 0xd0, 0x48, 0x83, 0xc4, 0x08, 0xc3 };

typedef void callback(void *);

/* Functions with frames that compilers make, without a compiler's choice. */
void call_plain(callback *call, void *context);         // rbp is a plain register
void call_realigned(callback *call, void *context);     // CFA only in a stack slot
void call_inexpressible(callback *call, void *context); // CFA from rbx
__asm__(".text\n"
        "call_plain:\n.cfi_startproc\n"
        "push %rbp\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset rbp, 0\n"
        "sub $48, %rsp\n.cfi_adjust_cfa_offset 48\n"
        "mov $0x1234, %ebp\nmov %rdi, %rax\nmov %rsi, %rdi\ncall *%rax\n"
        "add $48, %rsp\n.cfi_adjust_cfa_offset -48\n"
        "pop %rbp\n.cfi_adjust_cfa_offset -8\n.cfi_restore rbp\nret\n.cfi_endproc\n"
        "call_realigned:\n.cfi_startproc\n"
        "lea 8(%rsp), %r10\n.cfi_def_cfa r10, 0\nand $-64, %rsp\npush -8(%r10)\npush %rbp\n"
        "mov %rsp, %rbp\n.cfi_escape 0x10, 6, 2, 0x76, 0\n"
        "push %r10\n.cfi_escape 0x0f, 3, 0x76, 0x78, 0x06\n"
        "sub $40, %rsp\nmov %rdi, %rax\nmov %rsi, %rdi\ncall *%rax\nadd $40, %rsp\n"
        "pop %r10\n.cfi_def_cfa r10, 0\npop %rbp\n.cfi_restore rbp\nlea -8(%r10), %rsp\n"
        ".cfi_def_cfa rsp, 8\nret\n.cfi_endproc\n"
        "call_inexpressible:\n.cfi_startproc\n"
        "push %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset rbx, 0\n"
        "mov %rsp, %rbx\n.cfi_def_cfa_register rbx\n"
        "mov %rdi, %rax\nmov %rsi, %rdi\ncall *%rax\n"
        ".cfi_def_cfa_register rsp\npop %rbx\n.cfi_adjust_cfa_offset -8\n.cfi_restore rbx\nret\n"
        ".cfi_endproc\n");

#endif
