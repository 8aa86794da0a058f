/* arch_x86_64.h - see arch.h. */
#ifndef ARCH_X86_64_H
#define ARCH_X86_64_H

#include <stddef.h>
#include <stdint.h>
#include <ucontext.h>
#include <x86intrin.h>

#define ARCH_LINK_REGISTER 0
#define ARCH_ADDS_TO_MEMORY 1
#define ARCH_RED_ZONE_BYTES 128u
#define ARCH_GLIBC_FIRST "GLIBC_2.2.5"
#define ARCH_LIBUNWIND "libunwind-x86_64.so.8"

/* DWARF's numbers */
#define ARCH_DWARF_FP 6
#define ARCH_DWARF_SP 7
#define ARCH_DWARF_RETURN 16

#define ARCH_SAVED_UNIT 1 // unit of where registers are saved

/* mov $SYS_rt_sigreturn, %rax; syscall. */
#define ARCH_SIGNAL_RETURN                                   \
	{                                                        \
		0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05 \
	}
#define ARCH_SIGNAL_CONTEXT 0 // from the stack pointer of the trampoline to its ucontext

#define ARCH_CONTEXT_PC (offsetof(ucontext_t, uc_mcontext.gregs) + REG_RIP * 8)
#define ARCH_CONTEXT_SP (offsetof(ucontext_t, uc_mcontext.gregs) + REG_RSP * 8)
#define ARCH_CONTEXT_FP (offsetof(ucontext_t, uc_mcontext.gregs) + REG_RBP * 8)

static inline long
arch_syscall(long number, const long *argument)
{
	long result;
	register long fourth __asm__("r10") = argument[3];
	register long fifth __asm__("r8") = argument[4];
	register long sixth __asm__("r9") = argument[5];

	__asm__ volatile("syscall"
	                 : "=a"(result)
	                 : "a"(number), "D"(argument[0]), "S"(argument[1]), "d"(argument[2]), "r"(fourth), "r"(fifth),
	                   "r"(sixth)
	                 : "rcx", "r11", "memory");
	return result;
}

static inline uint64_t
arch_ticks(void)
{
	return __builtin_ia32_rdtsc();
}

/* The same, and on which processor. */
static inline uint64_t
arch_ticks_of_cpu(uint32_t *cpu)
{
	return __rdtscp(cpu);
}

static inline void
arch_fence_ticks(void)
{
	_mm_lfence();
}

static inline void
arch_pause(void)
{
	__builtin_ia32_pause();
}

static inline __attribute__((always_inline)) uint64_t
arch_stack_pointer(void)
{
	uint64_t sp;

	__asm__ volatile("movq %%rsp, %0" : "=r"(sp));
	return sp;
}

/* As it stands in glibc's jmp_buf, mixed with a number of the process. */
static inline uint64_t
arch_jump_sp(const void *target)
{
	uint64_t word = ((const uint64_t *)target)[6];

	return word >> 17 | word << 47;
}

/* In these three instructions; as C it takes twice as many. */
static inline void
arch_multiply_add(uint64_t *low, uint64_t *high, uint64_t one, uint64_t other)
{
	__asm__("mulq %[other]\n\taddq %%rax, %[low]\n\tadcq %%rdx, %[high]"
	        : [low] "+r"(*low), [high] "+r"(*high), "+a"(one)
	        : [other] "r"(other)
	        : "rdx", "cc");
}

/* cmpxchg16b, emitted in place: libatomic would be one more dependency in the program, and may lock. */
static inline unsigned __int128
arch_swap_pair(void *at, unsigned __int128 expected, unsigned __int128 wanted)
{
	return __sync_val_compare_and_swap((unsigned __int128 *)at, expected, wanted);
}

/* libunwind's numbers, 0 to 16, of which a callee keeps rbx, rbp, rsp, r12 to r15; and this place. */
#define ARCH_UNWIND_REGISTERS 17
#define ARCH_UNWIND_SP 7
#define ARCH_UNWIND_STORE(registers)                                                      \
	__asm__ volatile("movq %%rbx, 24(%0)\n movq %%rbp, 48(%0)\n movq %%rsp, 56(%0)\n"     \
	                 "movq %%r12, 96(%0)\n movq %%r13, 104(%0)\n movq %%r14, 112(%0)\n"   \
	                 "movq %%r15, 120(%0)\n leaq 0(%%rip), %%rax\n movq %%rax, 128(%0)\n" \
	                 :                                                                    \
	                 : "r"(registers)                                                     \
	                 : "rax", "memory")

/* A return address as it lies on the stack. */
static inline uint64_t
arch_code_address(uint64_t word)
{
	return word;
}

#endif
