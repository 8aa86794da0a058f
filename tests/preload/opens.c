/*
 * opens.c - a program in C that opens libraries for themselves alone (RTLD_LOCAL): C++ comes with them.
 *
 *   opens [deep] [throws] [LIBRARY...]    news_run() of each, twice; what allows it is closed in between
 *
 * Without libraries it asks whether there is an operator new, and uses it as if there were.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern void *_Znwm(size_t bytes) __attribute__((weak));
extern void _ZdlPv(void *addr) __attribute__((weak));

static void *volatile block;

int
main(int argc, char **argv)
{
	int mode = RTLD_NOW | RTLD_LOCAL;
	int is_throwing = 0;

	if (_Znwm != NULL) {
		block = _Znwm(1000);
		memset(block, 1, 1000);
		_ZdlPv(block);
	}
	for (int round = 0; round < 2; round++) {
		for (int i = 1; i < argc; i++) {
			if (strcmp(argv[i], "throws") == 0)
				is_throwing = 1;
			if (strcmp(argv[i], "deep") == 0)
				mode |= RTLD_DEEPBIND;
			if (strchr(argv[i], '/') == NULL)
				continue;

			void *library = dlopen(argv[i], mode);
			unsigned (*run)(_Bool is_throwing) = NULL;

			if (library == NULL) {
				printf("not opened: %s\n", dlerror());
				return 77;
			}
			*(void **)&run = dlsym(library, "news_run");
			if (run(is_throwing) != 0)
				return 1;
			dlclose(library);
		}
	}
	return 0;
}
