/*
 * embedded.c - a program that has Python only for a while. Arguments: what to do, then pairs of libpython and its prefix.
 *
 * Python is opened late, for the program alone.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *volatile kept[100000];
static unsigned kept_count;

__attribute__((noinline)) static void
keep_native(unsigned count, size_t bytes)
{
	while (count-- != 0)
		kept[kept_count++] = malloc(bytes);
}

__attribute__((noinline)) static void
keep_at_exit(void)
{
	keep_native(400, 8003);
}

static void *
open_python(char **argument, int scope)
{
	void *python = dlopen(argument[0], RTLD_NOW | scope);

	if (python == NULL) {
		puts(dlerror());
		exit(9);
	}
	setenv("PYTHONHOME", argument[1], 1);
	((void (*)(int))dlsym(python, "Py_InitializeEx"))(0);
	return python;
}

static void
run(void *python, const char *text)
{
	if (((int (*)(const char *))dlsym(python, "PyRun_SimpleString"))(text) != 0)
		exit(8);
}

int
main(int count, char **arguments)
{
	const char *what = arguments[1];
	void *python;

	keep_native(3000, 100); // before there is Python
	// extensions need its names
	python = open_python(arguments + 2, strcmp(what, "pool") == 0 ? RTLD_GLOBAL : RTLD_LOCAL);
	run(python, "kept = [None] * 300\ndef f():\n    for i in range(300):\n        kept[i] = bytearray(10000)\nf()\n");
	if (strcmp(what, "two") == 0)
		run(open_python(arguments + 4, RTLD_LOCAL),
		    "kept = [None] * 200\ndef g():\n    for i in range(200):\n        kept[i] = bytearray(20000)\ng()\n");
	if (strcmp(what, "two") == 0 || strcmp(what, "stays") == 0) {
		fflush(stdout);
		_exit(0);
	}
	if (strcmp(what, "pool") == 0) {
		char text[1000];

		snprintf(text, sizeof(text), "import ctypes\nctypes.CDLL('%s').pool_start()\n", arguments[4]);
		run(python, text);
	}
	((int (*)(void))dlsym(python, "Py_FinalizeEx"))();
	if (strcmp(what, "ends") == 0) {
		atexit(keep_at_exit);
		return 0;
	}
	if (strcmp(what, "again") == 0) {
		((void (*)(int))dlsym(python, "Py_InitializeEx"))(0);
		run(python,
		    "kept = [None] * 100\ndef again():\n    for i in range(100):\n        kept[i] = bytearray(30000)\nagain()\n");
		fflush(stdout);
		_exit(0);
	}
	if (strcmp(what, "closes") == 0) {
		dlclose(python);
		dlclose(python);
	}
	keep_native(2000, 5003);
	if (strcmp(what, "pool") == 0) {
		void *pool = dlopen(arguments[4], RTLD_NOW);

		for (unsigned i = 0; i < 5; i++)
			((void (*)(size_t))dlsym(pool, "pool_run"))(400001);
	}
	raise(SIGKILL);
}
