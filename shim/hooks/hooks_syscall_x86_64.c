/*
 * hooks_syscall_x86_64.c - libc's syscall(): does the program give up rights by a call that has no function of its own?
 *
 * seccomp() has none, and prctl may be called this way, too. All other calls go on to the next definition untouched: by a jump, because
 * the function there may return twice, or on another stack (vfork, clone).
 *
 * Safe from   anywhere; errno is the real call's.
 */
#include <stddef.h>
#include <sys/syscall.h>

#include "base/raw_sys.h"
#include "base/real_libc.h"
#include "hooks/hooks_sandbox.h"

/* Used by the assembly below. */
static_assert(offsetof(struct real_libc, syscall) == 0, "the first word");
static_assert(SYS_prctl == 157 && SYS_seccomp == 317, "x86-64");

__asm__(".pushsection .text\n"
        ".globl syscall\n"
        ".type syscall, @function\n"
        ".p2align 4\n"
        "syscall:\n"
        ".cfi_startproc\n"
        "	endbr64\n"
        "	cmpq $157, %rdi\n"
        "	je 2f\n"
        "	cmpq $317, %rdi\n"
        "	je 2f\n"
        "1:	movq real_libc(%rip), %rax\n"
        "	testq %rax, %rax\n"
        "	jz raw_syscall\n" // nothing is looked up yet
        "	jmpq *%rax\n"
        "2:	pushq %rdi\n"
        ".cfi_adjust_cfa_offset 8\n"
        "	pushq %rsi\n"
        ".cfi_adjust_cfa_offset 8\n"
        "	pushq %rdx\n"
        ".cfi_adjust_cfa_offset 8\n"
        "	pushq %rcx\n"
        ".cfi_adjust_cfa_offset 8\n"
        "	pushq %r8\n"
        ".cfi_adjust_cfa_offset 8\n"
        "	pushq %r9\n"
        ".cfi_adjust_cfa_offset 8\n"
        "	subq $8, %rsp\n"
        ".cfi_adjust_cfa_offset 8\n"
        "	call hooks_sandbox_before\n"
        "	addq $8, %rsp\n"
        ".cfi_adjust_cfa_offset -8\n"
        "	popq %r9\n"
        ".cfi_adjust_cfa_offset -8\n"
        "	popq %r8\n"
        ".cfi_adjust_cfa_offset -8\n"
        "	popq %rcx\n"
        ".cfi_adjust_cfa_offset -8\n"
        "	popq %rdx\n"
        ".cfi_adjust_cfa_offset -8\n"
        "	popq %rsi\n"
        ".cfi_adjust_cfa_offset -8\n"
        "	popq %rdi\n"
        ".cfi_adjust_cfa_offset -8\n"
        "	jmp 1b\n"
        ".cfi_endproc\n"
        ".size syscall, .-syscall\n"
        ".popsection\n");
