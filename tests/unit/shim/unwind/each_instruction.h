/*
 * each_instruction.h - what would a kill leave behind, at any instruction? The processor's trap flag makes a signal of each, in whose
 * handler the test looks at memory as it is at that moment. Where programs have no such flag (aarch64) the test is skipped.
 */
#ifndef EACH_INSTRUCTION_H
#define EACH_INSTRUCTION_H

#include <signal.h>
#include <stdbool.h>
#include <ucontext.h>

#ifdef __x86_64__
#define TRAP_FLAG 0x100

static bool (*each_instruction_look)(void); // false: enough was seen

static void
each_instruction_trap(int number, siginfo_t *info, void *context)
{
	if (!each_instruction_look())
		((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
}

/* Calls look() after each instruction of this thread from here on. */
static inline void
each_instruction(bool (*look)(void))
{
	struct sigaction action = { .sa_sigaction = each_instruction_trap, .sa_flags = SA_SIGINFO };

	each_instruction_look = look;
	(void)sigaction(SIGTRAP, &action, NULL);
	// beyond the red zone
	__asm__ volatile("leaq -128(%%rsp), %%rsp\n pushfq\n orq %0, (%%rsp)\n popfq\n leaq 128(%%rsp), %%rsp"
	                 :
	                 : "i"(TRAP_FLAG)
	                 : "memory", "cc");
}
#else
static __attribute__((unused)) bool (*each_instruction_look)(void);

#define each_instruction(look) \
	do {                       \
		(void)(look);          \
		skip();                \
	} while (0)
#endif

#endif
