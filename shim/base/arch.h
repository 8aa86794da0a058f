/*
 * arch.h - what does this processor do in its own way?
 *
 * The one door: each processor has a header with the same names, and nothing else asks which one it is. Code that cannot be shared lies in
 * files NAME_aarch64.c, which the Makefile takes in the place of NAME.c, or of NAME_x86_64.c.
 *
 * ARCH_LINK_REGISTER       1: a call leaves its return address in a register, and the callee stores it; 0: the call pushes it
 * ARCH_ADDS_TO_MEMORY      1: one instruction adds to a word in memory
 * ARCH_RED_ZONE_BYTES      below the stack pointer, in use
 * ARCH_GLIBC_FIRST         version of the symbols that the first glibc of this processor had
 * ARCH_LIBUNWIND           the library of the package libunwind8
 * ARCH_CONTEXT_PC ...      where a ucontext has the interrupted registers, in bytes
 * ARCH_DWARF_FP ...        numbers of the frame pointer, the stack pointer, and the return address
 * ARCH_SIGNAL_RETURN       the code that the kernel returns to after a handler
 * ARCH_UNWIND_...          registers as libunwind numbers them
 * arch_code_address()      a return address, as it lies on the stack, without what is no address
 * arch_stack_pointer()     of the function that it stands in
 * arch_jump_sp()           the stack pointer in glibc's jmp_buf, but for an exclusive or with a number of the process
 * arch_syscall()           with six arguments; the kernel's answer
 * arch_ticks()             of a counter that goes on at a steady pace; no system call
 * arch_ticks_of_cpu()      the same, and on which processor
 * arch_fence_ticks()       what comes after it is done after the counter was read
 * arch_pause()             between two looks at a lock
 * arch_multiply_add()      a 128-bit sum of products
 * arch_swap_pair()         16 bytes, if they are what is expected; returns what was there. A full barrier
 *
 * Safe from   anywhere.
 */
#ifndef ARCH_H
#define ARCH_H

#if defined(__x86_64__)
#include "base/arch_x86_64.h"
#elif defined(__aarch64__) && defined(__AARCH64EL__)
#include "base/arch_aarch64.h"
#else
#error "kmemshim knows x86-64 and little-endian aarch64: another processor needs a header like shim/base/arch_aarch64.h"
#endif

#endif
