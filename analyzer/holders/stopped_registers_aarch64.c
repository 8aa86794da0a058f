/* stopped_registers_aarch64.c - see stopped_registers_read() of stopped_process.h. */
#include "holders/stopped_process.h"

#include <elf.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

const uint8_t stopped_registers_dwarf[MACHINE_REGISTERS] = {
	0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30,
};

void
stopped_registers_read(struct stopped_thread *thread)
{
	struct user_regs_struct all;
	struct iovec general = { &all, sizeof(all) };
	struct iovec of_thread = { &thread->thread_addr, sizeof(thread->thread_addr) };

	if (ptrace(PTRACE_GETREGSET, thread->number, (void *)NT_PRSTATUS, &general) != 0)
		return;
	stopped_registers_take(thread, &all, sizeof(all));
	(void)ptrace(PTRACE_GETREGSET, thread->number, (void *)NT_ARM_TLS, &of_thread);
}

void
stopped_registers_take(struct stopped_thread *thread, const void *registers, size_t bytes)
{
	struct user_regs_struct all;

	if (bytes < sizeof(all))
		return;
	memcpy(&all, registers, sizeof(all));
	thread->stack_addr = all.sp;
	thread->code_addr = all.pc;
	memcpy(thread->registers, all.regs, sizeof(thread->registers));
}
