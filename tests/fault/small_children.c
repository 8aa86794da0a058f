/*
 * small_children.c - children that give up rights, and end by themselves.
 *
 *   small_children HOW BYTES
 *
 * HOW: nnp (no new privileges), setuid (another user). Each of three children holds BYTES at most.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILDREN 3

int
main(int argc, char **argv)
{
	void *volatile kept;
	int result = argc != 3;

	for (int i = 0; i < CHILDREN; i++) {
		pid_t child = fork();
		int status = 1;

		if (child == 0) {
			kept = malloc(strtoul(argv[2], NULL, 10));
			if (strcmp(argv[1], "nnp") == 0 ? prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) : setuid(65534))
				exit(1);
			kept = malloc(100);
			exit(kept == NULL);
		}
		if (waitpid(child, &status, 0) != child || status != 0)
			result = 1;
	}
	return result;
}
