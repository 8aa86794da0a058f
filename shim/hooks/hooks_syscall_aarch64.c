/*
 * hooks_syscall_aarch64.c - libc's syscall(): does the program give up rights by a call that has no function of its own?
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
static_assert(SYS_prctl == 167 && SYS_seccomp == 277, "aarch64");

__asm__(".pushsection .text\n"
        ".globl syscall\n"
        ".type syscall, %function\n"
        ".p2align 4\n"
        "syscall:\n"
        ".cfi_startproc\n"
        "	cmp x0, #167\n"
        "	b.eq 2f\n"
        "	cmp x0, #277\n"
        "	b.eq 2f\n"
        "1:	adrp x16, real_libc\n"
        "	ldr x16, [x16, #:lo12:real_libc]\n"
        "	cbz x16, 3f\n"
        "	br x16\n"
        "3:	b raw_syscall\n" // nothing is looked up yet
        "2:	stp x29, x30, [sp, #-80]!\n"
        ".cfi_def_cfa_offset 80\n"
        ".cfi_offset 29, -80\n"
        ".cfi_offset 30, -72\n"
        "	mov x29, sp\n"
        "	stp x0, x1, [sp, #16]\n"
        "	stp x2, x3, [sp, #32]\n"
        "	stp x4, x5, [sp, #48]\n"
        "	str x6, [sp, #64]\n"
        "	bl hooks_sandbox_before\n"
        "	ldp x0, x1, [sp, #16]\n"
        "	ldp x2, x3, [sp, #32]\n"
        "	ldp x4, x5, [sp, #48]\n"
        "	ldr x6, [sp, #64]\n"
        "	ldp x29, x30, [sp], #80\n"
        ".cfi_restore 30\n"
        ".cfi_restore 29\n"
        ".cfi_def_cfa_offset 0\n"
        "	b 1b\n"
        ".cfi_endproc\n"
        ".size syscall, .-syscall\n"
        ".popsection\n");
