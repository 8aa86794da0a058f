/* stopped_registers_x86_64.c - see stopped_registers_read() of stopped_process.h. */
#include "holders/stopped_process.h"

#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>

const uint8_t stopped_registers_dwarf[MACHINE_REGISTERS] = {
	0, 3, 2, 1, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14, 15, UINT8_MAX,
};

static void
take(struct stopped_thread *thread, const struct user_regs_struct *all)
{
	thread->stack_addr = all->rsp;
	thread->thread_addr = all->fs_base;
	thread->code_addr = all->rip;
	memcpy(thread->registers,
	       (const uint64_t[MACHINE_REGISTERS]){ all->rax, all->rbx, all->rcx, all->rdx, all->rsi, all->rdi, all->rbp,
	                                            all->r8, all->r9, all->r10, all->r11, all->r12, all->r13, all->r14,
	                                            all->r15, all->orig_rax },
	       sizeof(thread->registers));
}

void
stopped_registers_read(struct stopped_thread *thread)
{
	struct user_regs_struct all;

	if (ptrace(PTRACE_GETREGS, thread->number, NULL, &all) == 0)
		take(thread, &all);
}

void
stopped_registers_take(struct stopped_thread *thread, const void *registers, size_t bytes)
{
	struct user_regs_struct all;

	if (bytes < sizeof(all))
		return;
	memcpy(&all, registers, sizeof(all));
	take(thread, &all);
}
