/*
 * stack_locals.h - which local variable of which function is at this place of a thread's stack, or in this register?
 *
 * The used part of the stack is copied while the process stands still. Who called whom, and where variables are, is read when it goes on
 * again: reading debug information takes long.
 *
 * When full     STACK_COPIES threads, STACK_COPY_BYTES of each, STACK_FRAMES functions: what is further out has no name.
 * When failing  no name.
 */
#ifndef STACK_LOCALS_H
#define STACK_LOCALS_H

#include "holders/process_look.h"
#include "holders/process_modules.h"

#define STACK_COPIES 16u
#define STACK_COPY_BYTES (UINT64_C(256) << 10)
#define STACK_FRAMES 256u
#define STACK_ANSWERS 256u // that are kept

struct stack_frame {
	struct symbolizer_file *file;
	struct thread_frame frame;
};

struct stack_copy {
	uint32_t thread; // index in the process's
	uint64_t start;
	uint64_t end;
	unsigned char *bytes; // from start to end
	size_t frame_count;
	struct stack_frame *frames; // the innermost one first; NULL until they are asked for
};

struct stack_answer {
	uint32_t thread;
	int register_index;
	uint64_t place;
	size_t depth; // of its function, from the innermost one; 0 = nobody knows
	struct symbol_local local;
};

struct stack_locals {
	size_t count;
	struct stack_copy copies[STACK_COPIES];
	size_t answer_count;
	struct stack_answer answers[STACK_ANSWERS];
};

/* The process stands still. thread: index in the process's threads; it will be asked for. */
void stack_locals_copy(struct stack_locals *locals, struct process_look *look, uint32_t thread);

/*
 * register_index  of struct stopped_thread; -1 = in no register, but at `place`, an address of the stack
 * depth           out: the larger, the further out is the function
 * returns         NULL = not known; else it stays until the end
 */
const struct symbol_local *stack_locals_at(struct stack_locals *locals, const struct process_look *look,
                                           struct process_modules *modules, uint32_t thread, int register_index,
                                           uint64_t place, size_t *depth);
void stack_locals_free(struct stack_locals *locals);

#endif
