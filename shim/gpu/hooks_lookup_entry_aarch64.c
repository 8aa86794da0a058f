/* hooks_lookup_entry_aarch64.c - dlsym(), see hooks_lookup.c: is it a name that we have a hook for? */

/* With handle and name as its arguments; both are in their registers again afterwards, and the result is in x16. */
#define CALL_KEEPING_ARGUMENTS(function) \
	"	stp x29, x30, [sp, #-32]!\n"       \
	".cfi_def_cfa_offset 32\n"           \
	".cfi_offset 29, -32\n"              \
	".cfi_offset 30, -24\n"              \
	"	mov x29, sp\n"                     \
	"	stp x0, x1, [sp, #16]\n"           \
	"	bl " function "\n"               \
	"	mov x16, x0\n"                     \
	"	ldp x0, x1, [sp, #16]\n"           \
	"	ldp x29, x30, [sp], #32\n"         \
	".cfi_restore 30\n"                  \
	".cfi_restore 29\n"                  \
	".cfi_def_cfa_offset 0\n"
#define NAME CALL_KEEPING_ARGUMENTS("hooks_lookup_name")
#define ROW CALL_KEEPING_ARGUMENTS("hooks_lookup_row")
#define FIND CALL_KEEPING_ARGUMENTS("real_cuda_find_dlsym")

/*
 * void *dlsym(void *handle, const char *name)
 *
 * Anything but a name of the table on an explicit handle goes on to the real dlsym by a jump, with every
 * register and the return address as they came, but for what hooks_lookup_name() changes. RTLD_DEFAULT is 0 and RTLD_NEXT
 * is -1: what they find depends on the caller, and our exports stand in the global scope anyway.
 */
__asm__(".pushsection .text\n"
        ".globl dlsym\n"
        ".type dlsym, %function\n"
        ".p2align 4\n"
        "dlsym:\n"
        ".cfi_startproc\n"
        "	cbz x1, .Ldlsym_real\n"
        "	ldrb w9, [x1]\n"
        "	cmp w9, #'c'\n"
        "	b.eq .Ldlsym_cu\n"
        "	cmp w9, #'h'\n"
        "	b.ne .Ldlsym_real\n"
        "	ldrb w9, [x1, #1]\n"
        "	cmp w9, #'i'\n"
        "	b.eq .Ldlsym_hooked\n"
        "	b .Ldlsym_real\n"
        ".Ldlsym_cu:\n"
        "	ldrb w9, [x1, #1]\n"
        "	cmp w9, #'u'\n"
        "	b.ne .Ldlsym_real\n"
        ".Ldlsym_hooked:\n" NAME "	mov x1, x16\n"
        "	add x9, x0, #1\n"
        "	cmp x9, #1\n"
        "	b.ls .Ldlsym_real\n" ROW "	cbz x16, .Ldlsym_real\n"
        "	mov x2, x16\n"
        "	b hooks_lookup_wrap\n"
        ".Ldlsym_real:\n"
        "	adrp x16, real_cuda_dlsym\n"
        "	ldr x16, [x16, #:lo12:real_cuda_dlsym]\n"
        "	cbz x16, .Ldlsym_first\n"
        "	br x16\n"
        ".Ldlsym_first:\n" // before any constructor of ours, or the first of all
        FIND "	br x16\n"
        ".cfi_endproc\n"
        ".size dlsym, .-dlsym\n"
        ".popsection\n");
