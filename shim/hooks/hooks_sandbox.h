/*
 * hooks_sandbox.h - the program gives up rights to system calls.
 *
 * Safe from   any thread; errno is kept.
 */
#ifndef HOOKS_SANDBOX_H
#define HOOKS_SANDBOX_H

#include "base/export.h"

/* Before a system call prctl or seccomp with these arguments. */
void hooks_sandbox_before(long number, unsigned long operation, unsigned long second, const void *third) ASSEMBLY_CALLS;

#endif
