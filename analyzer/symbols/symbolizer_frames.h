/*
 * symbolizer_frames.h - who called a function that runs, and which of its variables is at this place of the stack or in this register?
 *
 * By the tables for exceptions, or those of the debug information, and by the locations that the debug information gives for variables.
 *
 * When failing  not known: what is computed, or in more than one place at a time, has no place.
 */
#ifndef SYMBOLIZER_FRAMES_H
#define SYMBOLIZER_FRAMES_H

#include <elfutils/libdw.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbols/thread_frame.h"

/*
 * address  of the code, as the tables have it
 * frame    its cfa: out
 * caller   out; its code_addr is an address in the process
 */
bool symbolizer_frames_caller(Dwarf_CFI *tables, uint64_t address, struct thread_frame *frame,
                              struct thread_frame *caller);

/*
 * scopes    around `address`, from the function inwards
 * place     an address of the stack, or the number of a register, as in struct frame_register
 * variable  out: its entry; offset: of the place in it; scope: of the scopes, the one that has it
 */
bool symbolizer_frames_local(Dwarf_Die *scopes, size_t count, uint64_t address, const struct thread_frame *frame,
                             uint64_t place, Dwarf_Die *variable, uint64_t *offset, size_t *scope);

#endif
