/*
 * ask_command.h - what does a command print?
 *
 * When failing  it printed nothing.
 */
#ifndef ASK_COMMAND_H
#define ASK_COMMAND_H

/*
 * Runs a command to its end, without input, and gives each line that it prints, also as an error.
 *
 * words     NULL-terminated; the first is the path of a program, or a name in PATH
 * preload   LD_PRELOAD for it; NULL = none
 * take      line: without its end; may be changed
 */
void ask_command(const char *const *words, const char *preload, void (*take)(void *context, char *line), void *context);

#endif
