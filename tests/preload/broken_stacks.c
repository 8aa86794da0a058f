/*
 * broken_stacks.c - allocates where the unwind tables lie; the argument says how, `all` is all of them one after the other.
 *
 * loop   a frame that is its own caller       null   a return address of 0
 * wild   a return address in no memory        kernel one that no address can be
 * rbp    the frame lies where rbp points to, which is in no memory
 * down   the caller's frame lies below        far    it lies beyond the end of the stack
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each allocates 1000 bytes; only what its table says of the caller is wrong. rdi: what stands where the return address is sought. */
#define FRAME(name, table)                                  \
	__asm__(".text\n.type " name ", @function\n" name ":\n" \
	        ".cfi_startproc\n"                              \
	        "push %rbp\n"                                   \
	        "mov %rdi, %rbp\n"                              \
	        "sub $32, %rsp\n"                               \
	        "mov %rdi, 8(%rsp)\n" table "mov $1000, %edi\n" \
	        "call malloc@PLT\n"                             \
	        "add $32, %rsp\n"                               \
	        "pop %rbp\n"                                    \
	        "ret\n"                                         \
	        ".cfi_endproc\n.size " name ", . - " name "\n")

FRAME("loop_frame", ".cfi_def_cfa %rsp, 0\n");
FRAME("word_frame", ".cfi_def_cfa %rsp, 16\n");
FRAME("rbp_frame", ".cfi_def_cfa %rbp, 16\n.cfi_offset %rbp, -16\n");
FRAME("down_frame", ".cfi_def_cfa %rsp, -64\n");
FRAME("far_frame", ".cfi_def_cfa %rsp, 268435456\n");

void *loop_frame(uint64_t word);
void *word_frame(uint64_t word);
void *rbp_frame(uint64_t word);
void *down_frame(uint64_t word);
void *far_frame(uint64_t word);

static const struct {
	const char *name;
	void *(*allocate)(uint64_t word);
	uint64_t word;
} ways[] = {
	{ "loop", loop_frame, 0 },
	{ "null", word_frame, 0 },
	{ "wild", word_frame, 0x10000 },
	{ "kernel", word_frame, 0xffff800000001000 },
	{ "rbp", rbp_frame, 0x414141414141 },
	{ "down", down_frame, 0 },
	{ "far", far_frame, 0 },
};

int
main(int argc, char **argv)
{
	int done = 0;

	for (unsigned i = 0; i < sizeof ways / sizeof ways[0]; i++) {
		if (argc < 2 || (strcmp(argv[1], "all") != 0 && strcmp(argv[1], ways[i].name) != 0))
			continue;
		for (int turn = 0; turn < 100; turn++) // remembered stacks, too
			memset(ways[i].allocate(ways[i].word), 1, 1000);
		done++;
	}
	printf("%d\n", done);
	return 0;
}
