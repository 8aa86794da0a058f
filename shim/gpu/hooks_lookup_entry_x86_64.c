/* hooks_lookup_entry_x86_64.c - dlsym(), see hooks_lookup.c: is it a name that we have a hook for? */

/* With handle and name as its arguments; both are in their registers again afterwards, and the stack is aligned for the call. */
#define CALL_KEEPING_ARGUMENTS(function) \
	"	pushq %rdi\n"                      \
	".cfi_adjust_cfa_offset 8\n"         \
	"	pushq %rsi\n"                      \
	".cfi_adjust_cfa_offset 8\n"         \
	"	subq $8, %rsp\n"                   \
	".cfi_adjust_cfa_offset 8\n"         \
	"	call " function "\n"             \
	"	addq $8, %rsp\n"                   \
	".cfi_adjust_cfa_offset -8\n"        \
	"	popq %rsi\n"                       \
	".cfi_adjust_cfa_offset -8\n"        \
	"	popq %rdi\n"                       \
	".cfi_adjust_cfa_offset -8\n"

/*
 * void *dlsym(void *handle, const char *name)
 *
 * Anything but a name of the table on an explicit handle goes on to the real dlsym by a jump, with every
 * register and the return address as they came, but for what hooks_lookup_name() changes. RTLD_DEFAULT is 0 and RTLD_NEXT
 * is -1: what they find depends on the caller, and our exports stand in the global scope anyway.
 */
__asm__(
	".pushsection .text\n"
	".globl dlsym\n"
	".type dlsym, @function\n"
	".p2align 4\n"
	"dlsym:\n"
	".cfi_startproc\n"
	"	endbr64\n"
	"	testq %rsi, %rsi\n"
	"	je .Ldlsym_real\n"
	"	cmpb $'c', (%rsi)\n"
	"	je .Ldlsym_cu\n"
	"	cmpb $'h', (%rsi)\n"
	"	jne .Ldlsym_real\n"
	"	cmpb $'i', 1(%rsi)\n"
	"	je .Ldlsym_hooked\n"
	"	jmp .Ldlsym_real\n"
	".Ldlsym_cu:\n"
	"	cmpb $'u', 1(%rsi)\n"
	"	jne .Ldlsym_real\n"
	".Ldlsym_hooked:\n" CALL_KEEPING_ARGUMENTS(
		"hooks_lookup_name") "	movq %rax, %rsi\n"
							 "	leaq 1(%rdi), %rax\n"
							 "	cmpq $1, %rax\n"
							 "	jbe .Ldlsym_real\n" CALL_KEEPING_ARGUMENTS(
								 "hooks_lookup_row") "	testq %rax, %rax\n"
													 "	je .Ldlsym_real\n"
													 "	movq %rax, %rdx\n"
													 "	jmp hooks_lookup_wrap\n"
													 ".Ldlsym_real:\n"
													 "	movq real_cuda_dlsym(%rip), %rax\n"
													 "	testq %rax, %rax\n"
													 "	je .Ldlsym_first\n"
													 "	jmp *%rax\n"
													 ".Ldlsym_first:\n" // before any constructor of ours, or the first of all
	CALL_KEEPING_ARGUMENTS("real_cuda_find_dlsym") "	jmp *%rax\n"
												   ".cfi_endproc\n"
												   ".size dlsym, .-dlsym\n"
												   ".popsection\n");
