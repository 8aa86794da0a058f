/* arch_aarch64.h - see arch.h. */
#ifndef ARCH_AARCH64_H
#define ARCH_AARCH64_H

#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>

#include "kmem_format.h"

#define ARCH_LINK_REGISTER 1
#define ARCH_ADDS_TO_MEMORY 0
#define ARCH_RED_ZONE_BYTES 0u
#define ARCH_GLIBC_FIRST "GLIBC_2.17"
#define ARCH_LIBUNWIND "libunwind-aarch64.so.8"

/* DWARF's numbers */
#define ARCH_DWARF_FP 29
#define ARCH_DWARF_SP 31
#define ARCH_DWARF_RETURN 30

#define ARCH_SAVED_UNIT 8 // unit of where registers are saved: below the variables, far from the CFA

/* mov x8, #SYS_rt_sigreturn; svc #0. */
#define ARCH_SIGNAL_RETURN                             \
	{                                                  \
		0x68, 0x11, 0x80, 0xd2, 0x01, 0x00, 0x00, 0xd4 \
	}
#define ARCH_SIGNAL_CONTEXT 128 // behind the siginfo

#define ARCH_CONTEXT_PC offsetof(ucontext_t, uc_mcontext.pc)
#define ARCH_CONTEXT_SP offsetof(ucontext_t, uc_mcontext.sp)
#define ARCH_CONTEXT_FP offsetof(ucontext_t, uc_mcontext.regs[29])
#define ARCH_CONTEXT_LINK offsetof(ucontext_t, uc_mcontext.regs[30])

static inline long
arch_syscall(long number, const long *argument)
{
	register long called __asm__("x8") = number;
	register long first __asm__("x0") = argument[0];
	register long second __asm__("x1") = argument[1];
	register long third __asm__("x2") = argument[2];
	register long fourth __asm__("x3") = argument[3];
	register long fifth __asm__("x4") = argument[4];
	register long sixth __asm__("x5") = argument[5];

	__asm__ volatile("svc #0"
	                 : "+r"(first)
	                 : "r"(called), "r"(second), "r"(third), "r"(fourth), "r"(fifth), "r"(sixth)
	                 : "memory");
	return first;
}

/* The generic timer turns at 24 MHz to 1 GHz: by a power of two, its ticks are made those of 1 to 2 GHz, as others measure with. */
static inline uint64_t
arch_ticks(void)
{
	uint64_t ticks;
	uint64_t hertz;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
	__asm__("mrs %0, cntfrq_el0" : "=r"(hertz));
	return ticks << (((uint32_t)__builtin_clz((uint32_t)hertz | 1) - 1) & 31);
}

/* It does not say on which processor: see call_clock_aarch64.c. */
static inline uint64_t
arch_ticks_of_cpu(uint32_t *cpu)
{
	*cpu = 0;
	return arch_ticks();
}

static inline void
arch_fence_ticks(void)
{
	__asm__ volatile("isb" ::: "memory");
}

static inline void
arch_pause(void)
{
	__asm__ volatile("yield" ::: "memory");
}

static inline __attribute__((always_inline)) uint64_t
arch_stack_pointer(void)
{
	uint64_t sp;

	__asm__ volatile("mov %0, sp" : "=r"(sp));
	return sp;
}

/* As it stands in glibc's jmp_buf, mixed with a number of the process. */
static inline uint64_t
arch_jump_sp(const void *target)
{
	return ((const uint64_t *)target)[13];
}

static inline void
arch_multiply_add(uint64_t *low, uint64_t *high, uint64_t one, uint64_t other)
{
	unsigned __int128 sum = ((unsigned __int128)*high << 64 | *low) + (unsigned __int128)one * other;

	*low = (uint64_t)sum;
	*high = (uint64_t)(sum >> 64);
}

/*
 * ldaxp and stlxp, which every processor has; libatomic, which the builtin calls, may lock. What was there is stored again when it is not
 * what is expected: only then was it one word of 16 bytes that was read. The barrier behind it makes it a full one.
 */
static inline unsigned __int128
arch_swap_pair(void *at, unsigned __int128 expected, unsigned __int128 wanted)
{
	uint64_t low;
	uint64_t high;
	uint32_t has_failed;

	__asm__ volatile(
		"1: ldaxp %[low], %[high], [%[at]]\n\t"
		"cmp %[low], %[expected_low]\n\t"
		"ccmp %[high], %[expected_high], #0, eq\n\t"
		"b.ne 2f\n\t"
		"stlxp %w[failed], %[wanted_low], %[wanted_high], [%[at]]\n\t"
		"cbnz %w[failed], 1b\n\t"
		"b 3f\n"
		"2: stlxp %w[failed], %[low], %[high], [%[at]]\n\t"
		"cbnz %w[failed], 1b\n"
		"3: dmb ish"
		: [low] "=&r"(low), [high] "=&r"(high), [failed] "=&r"(has_failed)
		: [at] "r"(at), [expected_low] "r"((uint64_t)expected), [expected_high] "r"((uint64_t)(expected >> 64)),
		  [wanted_low] "r"((uint64_t)wanted), [wanted_high] "r"((uint64_t)(wanted >> 64))
		: "cc", "memory");
	return (unsigned __int128)high << 64 | low;
}

/* libunwind's numbers, 0 to 32, of which a callee keeps x19 to x30 and sp; and this place. */
#define ARCH_UNWIND_REGISTERS 33
#define ARCH_UNWIND_SP 31
#define ARCH_UNWIND_STORE(registers)                                                          \
	__asm__ volatile("stp x19, x20, [%0, #152]\n stp x21, x22, [%0, #168]\n"                  \
	                 "stp x23, x24, [%0, #184]\n stp x25, x26, [%0, #200]\n"                  \
	                 "stp x27, x28, [%0, #216]\n stp x29, x30, [%0, #232]\n"                  \
	                 "mov x16, sp\n str x16, [%0, #248]\n adr x16, .\n str x16, [%0, #256]\n" \
	                 :                                                                        \
	                 : "r"(registers)                                                         \
	                 : "x16", "memory")

/* A return address as it lies on the stack: its upper bits may hold a signature (pointer authentication). */
static inline uint64_t
arch_code_address(uint64_t word)
{
	return word & ((UINT64_C(1) << KMEM_ADDRESS_BITS) - 1);
}

#endif
