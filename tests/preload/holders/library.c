/*
 * What a library keeps: by a static variable of its own, and by one that each thread has. As an extension of Python: a reference that it
 * forgets to give back, and one that it has in a static variable.
 */
#include <stdlib.h>
#include <string.h>

static char *volatile kept_by_library;
static __thread char *volatile kept_by_thread;
static void *volatile kept_objects[1000];
static int kept_count;

/* Of Python, where it is loaded there. */
__attribute__((weak)) void Py_IncRef(void *);

static char *
fill(char *block, size_t bytes)
{
	memset(block, 1, bytes);
	return block;
}

void
library_keep(void)
{
	kept_by_library = fill(malloc(1700000), 1700000);
	kept_by_thread = fill(malloc(1800000), 1800000);
}

void
library_forget(void *object)
{
	Py_IncRef(object);
}

void
library_register(void *object)
{
	Py_IncRef(object);
	kept_objects[kept_count++] = object;
}
