/* hooks_new_entries_x86_64.c - operator new and delete as the program sees them, see hooks_new.c. */
#include "hooks/hooks_new_entries.h"

#define ENTRIES REAL_NEW_FUNCTIONS(ENTRY)

/*
 * The exported functions. Arguments are in rdi, rsi and rdx; the real function goes along in rcx, as a fourth argument of the function
 * that records. All else is as the caller left it, also the return address, which tells who called.
 */
#define ENTRY(index, name, record)                              \
	".globl " #name "\n"                                        \
	".type " #name ", @function\n"                              \
	".p2align 4\n" #name ":\n"                                  \
	".cfi_startproc\n"                                          \
	"	endbr64\n"                                                \
	"	movq hooks_new_everybody+" #index "*16(%rip), %rax\n"   \
	"	movq hooks_new_everybody+" #index "*16+8(%rip), %rcx\n" \
	"	jmp *%rax\n"                                              \
	".cfi_endproc\n"                                            \
	".size " #name ", . - " #name "\n"                          \
	".hidden hooks_new_first_" #name "\n"                       \
	".globl hooks_new_first_" #name "\n"                        \
	".type hooks_new_first_" #name ", @function\n"              \
	"hooks_new_first_" #name ":\n"                              \
	".cfi_startproc\n"                                          \
	"	endbr64\n"                                                \
	"	movl $" #index ", %r10d\n"                              \
	"	jmp .Lhooks_new_by_caller\n"                              \
	".cfi_endproc\n"                                            \
	".size hooks_new_first_" #name ", . - hooks_new_first_" #name "\n"

__asm__(".pushsection .text\n" ENTRIES ".p2align 4\n"
        ".Lhooks_new_by_caller:\n"
        ".cfi_startproc\n"
        "	movq (%rsp), %rcx\n"
        "	movq hooks_new_table(%rip), %r11\n"
        "	testq %r11, %r11\n"
        "	je .Lhooks_new_find\n"
        "	movq %rcx, %rax\n"
        "	shrq $" REGION_SHIFT_TEXT ", %rax\n"
        "	cmpq $(1 << (" REGIONS_BITS_TEXT ")), %rax\n"
        "	jae .Lhooks_new_find\n"
        "	movq (" ROWS_BYTES_TEXT ")(%r11, %rax, 8), %rax\n"
        "	testq %rax, %rax\n"
        "	je .Lhooks_new_find\n"
        "	shrq $" PAGE_SHIFT_TEXT ", %rcx\n"
        "	andl $((1 << (" PAGE_BITS_TEXT ")) - 1), %ecx\n"
        "	movzwl (%rax, %rcx, 2), %eax\n"
        "	imulq $(" ROW_BYTES_TEXT "), %rax, %rax\n"
        "	movl %r10d, %ecx\n"
        "	shll $4, %ecx\n"
        "	addq %rcx, %rax\n"
        "	addq %rax, %r11\n"
        "	movq (%r11), %rax\n"
        "	movq 8(%r11), %rcx\n"
        "	testq %rax, %rax\n"
        "	je .Lhooks_new_find\n"
        "	jmp *%rax\n"
        ".Lhooks_new_find:\n"
        "	pushq %rdi\n"
        ".cfi_adjust_cfa_offset 8\n"
        "	pushq %rsi\n"
        ".cfi_adjust_cfa_offset 8\n"
        "	pushq %rdx\n"
        ".cfi_adjust_cfa_offset 8\n"
        "	movl %r10d, %edi\n"
        "	movq 24(%rsp), %rsi\n"
        "	call hooks_new_find\n"
        "	movq %rdx, %rcx\n"
        "	popq %rdx\n"
        ".cfi_adjust_cfa_offset -8\n"
        "	popq %rsi\n"
        ".cfi_adjust_cfa_offset -8\n"
        "	popq %rdi\n"
        ".cfi_adjust_cfa_offset -8\n"
        "	jmp *%rax\n"
        ".cfi_endproc\n"
        /*
         * The unwinder asks the personality of each frame that it passes. This personality leaves the guard and lets the exception go
         * on. So nothing here needs the C++ library, of which there may be none, or two.
         */
        ".globl hooks_new_call\n"
        ".hidden hooks_new_call\n"
        ".type hooks_new_call, @function\n"
        ".p2align 4\n"
        "hooks_new_call:\n"
        ".cfi_startproc\n"
        ".cfi_personality 0x1b, hooks_new_personality\n"
        "	pushq %rbp\n"
        ".cfi_def_cfa_offset 16\n"
        ".cfi_offset %rbp, -16\n"
        "	movq %rsp, %rbp\n"
        ".cfi_def_cfa_register %rbp\n"
        "	call *%rcx\n"
        "	popq %rbp\n"
        ".cfi_def_cfa %rsp, 8\n"
        "	ret\n"
        ".cfi_endproc\n"
        ".size hooks_new_call, . - hooks_new_call\n"
        ".popsection\n");
