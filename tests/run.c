/*
 * run.c - which of the test programs of this folder is to run?
 *
 * The programs of a folder are linked once, for the linker takes longer than they do. Each keeps its main(), which the compiler calls
 * NAME_main, and is a link to this program: it runs the one whose name it was called by. Called as `run`, it runs the one that is
 * named (`run test_settings`), or all of them, each in a process of its own.
 */
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* PROGRAMS is a list PROGRAM(name) PROGRAM(name) ... */
#define PROGRAM(name) int name##_main(int argc, char **argv);
PROGRAMS
#undef PROGRAM

static const struct program {
	const char *name;
	int (*main)(int argc, char **argv); // some take nothing
} programs[] = {
#define PROGRAM(name) { #name, name##_main },
	PROGRAMS
};
#define PROGRAM_COUNT (sizeof(programs) / sizeof(programs[0]))

static const struct program *
program_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash != NULL ? slash + 1 : path;

	for (size_t i = 0; i < PROGRAM_COUNT; i++) {
		if (strcmp(programs[i].name, name) == 0)
			return &programs[i];
	}
	return NULL;
}

/* A new process from the file, not a fork alone: nothing of what one test leaves is there for the next. */
static int
run_all(void)
{
	int failed = 0;

	for (size_t i = 0; i < PROGRAM_COUNT; i++) {
		int status = -1;
		pid_t child = fork();

		if (child == 0) {
			(void)execl("/proc/self/exe", programs[i].name, (char *)NULL);
			_exit(127);
		}
		if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
			(void)fprintf(stderr, "failed: %s\n", programs[i].name);
			failed = 1;
		}
	}
	return failed;
}

int
main(int argc, char **argv)
{
	const struct program *program = program_of(argv[0]);

	if (program != NULL)
		return program->main(argc, argv);
	if (argc < 2)
		return run_all();
	program = program_of(argv[1]);
	if (program != NULL)
		return program->main(argc - 1, argv + 1);
	(void)fprintf(stderr, "%s: no %s here; there are", argv[0], argv[1]);
	for (size_t i = 0; i < PROGRAM_COUNT; i++)
		(void)fprintf(stderr, " %s", programs[i].name);
	(void)fprintf(stderr, "\n");
	return 2;
}
