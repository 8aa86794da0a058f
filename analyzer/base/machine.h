/*
 * machine.h - the processor that this command was built for, which is that of the programs that it starts and stops.
 *
 * MACHINE_TRIPLET  the folder of its libraries, on Debian
 * MACHINE_ELF      of its programs' files
 */
#ifndef MACHINE_H
#define MACHINE_H

#include <elf.h>

#if defined(__x86_64__)
#define MACHINE_NAME "x86_64"
#define MACHINE_TITLE "x86-64"
#define MACHINE_TRIPLET "x86_64-linux-gnu"
#define MACHINE_ELF EM_X86_64
#define MACHINE_RED_ZONE_BYTES 128u // below the stack pointer, in use
#define MACHINE_REGISTERS 16        // general ones, without the stack pointer
#elif defined(__aarch64__)
#define MACHINE_NAME "aarch64"
#define MACHINE_TITLE "aarch64"
#define MACHINE_TRIPLET "aarch64-linux-gnu"
#define MACHINE_ELF EM_AARCH64
#define MACHINE_RED_ZONE_BYTES 0u
#define MACHINE_REGISTERS 31
#else
#error "kmemshim knows x86-64 and aarch64"
#endif

#endif
