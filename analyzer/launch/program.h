/*
 * program.h - can this program be recorded at all?
 *
 * A preloaded library needs the dynamic loader: a static program has none, a setuid one ignores the preload list, one
 * of another architecture or C library cannot load ours. The calls of a program that defines malloc itself never leave
 * it, and the address sanitizer's library ends a program that has another one before it. Looked up before the start,
 * said by `run` afterwards and by `doctor` instead.
 *
 * When failing  a file that cannot be read or understood is taken for recordable: the start itself will tell.
 */
#ifndef PROGRAM_H
#define PROGRAM_H

#include <limits.h>
#include <stdbool.h>

struct program {
	char path[PATH_MAX];   // what will be executed in the end: of a script, its interpreter; "" = not found
	char loader[PATH_MAX]; // the dynamic loader that it names; "" = none
	// the interpreter that a script names and nobody finds, or env's command; "" = all are there
	char missing[PATH_MAX];
	bool is_python;          // it is CPython or embeds it
	const char *obstacle;    // why it cannot be recorded, "it is static"; NULL = nothing in the way
	const char *remedy;      // what to do
	bool is_preload_harmful; // its loader would refuse to start it with our library: leave the preload out
};

/* The file of this command itself. path: out, of PATH_MAX; "" = /proc is not mounted. */
void program_own(char *path);

/* arguments: the command as execvp() takes it, ends with NULL; a script is judged by its interpreter, `env CMD` by CMD. */
void program_examine(char *const *arguments, struct program *program);

/* Where execvp() finds a command; false when nowhere. */
bool program_find(const char *command, char path[PATH_MAX]);

#endif
