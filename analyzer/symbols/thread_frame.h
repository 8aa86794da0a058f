/*
 * thread_frame.h - a function that runs in a thread that stood still: where it was, and what its registers had.
 */
#ifndef THREAD_FRAME_H
#define THREAD_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#define THREAD_FRAME_REGISTERS 32u // general ones, by DWARF's numbers

struct frame_register {
	bool is_known;
	uint64_t value;
	uint64_t
		place; // the address in the stack where a function further in keeps it; below THREAD_FRAME_REGISTERS: in this register still
};

struct thread_frame {
	uint64_t code_addr; // as in the file's symbol table
	bool is_exact;      // false: where a call returns to, so the call before it is meant
	uint64_t cfa;       // where the frame of its caller begins; 0 = not known
	struct frame_register registers[THREAD_FRAME_REGISTERS];
	/* The word at an address of the stack. False: it was not kept. */
	bool (*read)(void *context, uint64_t addr, uint64_t *word);
	void *context;
};

#endif
