/*
 * program.h - can this program be recorded at all?
 *
 * A preloaded library needs the dynamic loader: a static program has none, a setuid one ignores the preload list, one
 * of another architecture or C library cannot load ours. Looked up before the start, said afterwards when indeed
 * nothing was recorded.
 *
 * Called by   cmd_run.c.
 * When failing  a file that cannot be read or understood is taken for recordable: the start itself will tell.
 */
#ifndef PROGRAM_H
#define PROGRAM_H

#include <stdbool.h>

struct program {
	const char *obstacle;    // why it cannot be recorded, "it is static"; NULL = nothing in the way
	const char *remedy;      // what to do
	bool is_preload_harmful; // its loader would refuse to start it with our library: leave the preload out
};

/* command: as execvp() takes it; a script is judged by its interpreter. */
void program_examine(const char *command, struct program *program);

#endif
