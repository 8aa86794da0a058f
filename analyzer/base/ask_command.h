/*
 * ask_command.h - what does a command print?
 *
 * It runs to its end, without input.
 *
 * When failing  it printed nothing, but as an error why it could not be run.
 */
#ifndef ASK_COMMAND_H
#define ASK_COMMAND_H

#include <stdbool.h>

/*
 * Gives each line that it prints, also as an error.
 *
 * words     NULL-terminated; the first is the path of a program, or a name in PATH
 * preload   LD_PRELOAD for it; NULL = none
 * take      line: without its end; may be changed
 */
void ask_command(const char *const *words, const char *preload, void (*take)(void *context, char *line), void *context);

/* Puts it into files, of which `output` stands at its begin then. Returns whether its exit status was 0. */
bool ask_command_into(const char *const *words, const char *preload, int output, int errors);

#endif
