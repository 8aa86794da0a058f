/*
 * machine.h - the processor that this command was built for, which is that of the programs that it starts and stops.
 *
 * MACHINE_TRIPLET  the folder of its libraries, on Debian
 * MACHINE_ELF      of its programs' files
 * MACHINE_THREAD_  where glibc keeps thread-local variables: their table is at this offset of a thread's control block; those that are
 *                  there from the start lie below it, or above
 * MACHINE_DWARF_   the stack pointer's number in debug information
 */
#ifndef MACHINE_H
#define MACHINE_H

#include <elf.h>
#include <stdbool.h>

#if defined(__x86_64__)
#define MACHINE_NAME "x86_64"
#define MACHINE_TITLE "x86-64"
#define MACHINE_TRIPLET "x86_64-linux-gnu"
#define MACHINE_ELF EM_X86_64
#define MACHINE_RED_ZONE_BYTES 128u // below the stack pointer, in use
#define MACHINE_THREAD_TABLE 8u
#define MACHINE_THREAD_LOCAL_IS_BELOW true
#define MACHINE_REGISTERS 16 // general ones, without the stack pointer
#define MACHINE_DWARF_STACK 7u
#elif defined(__aarch64__)
#define MACHINE_NAME "aarch64"
#define MACHINE_TITLE "aarch64"
#define MACHINE_TRIPLET "aarch64-linux-gnu"
#define MACHINE_ELF EM_AARCH64
#define MACHINE_RED_ZONE_BYTES 0u
#define MACHINE_THREAD_TABLE 0u
#define MACHINE_THREAD_LOCAL_IS_BELOW false
#define MACHINE_REGISTERS 31
#define MACHINE_DWARF_STACK 31u
#else
#error "kmemshim knows x86-64 and aarch64"
#endif

#endif
