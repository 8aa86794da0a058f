/*
 * embedded_samples.c - a program that embeds Python and runs a case of samples_program.py.
 * Arguments: what to do, libpython, its prefix, samples_program.py, the case.
 *
 *   late       Python is opened when the program has run for a while
 *   again      two lives of the interpreter come before, in which the same was done
 *   below      the program has wrapped the interpreter's allocators before
 *   above      it wraps them later
 *   removes    it takes its wrappers out again, later: those that came between are gone
 *   outside    they take small blocks from a pool of the program's, which is not malloc's
 *   noting     as below; later they call malloc for themselves before they go on, as a signal handler may that comes there
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SMALL 512
#define FILLING "kept = [None] * 20000\ndef f():\n    for i in range(20000):\n        kept[i] = bytes(i % 400)\nf()\n"
#define POOL_BYTES ((size_t)1 << 30)

struct allocator {
	void *context;
	void *(*malloc)(void *context, size_t bytes);
	void *(*calloc)(void *context, size_t count, size_t bytes);
	void *(*realloc)(void *context, void *old, size_t bytes);
	void (*free)(void *context, void *addr);
};

static struct allocator inner[2]; // MEM, OBJ
static bool is_noting;
static char *pool, *pool_next;
static void *volatile noted; // not for the compiler to leave out

/* ---- that pass on ---- */

static void
note(size_t bytes)
{
	if (is_noting && bytes > SMALL && bytes < 2 * SMALL)
		noted = malloc((size_t)atoi(getenv("NOTED_BYTES")));
}

static void *
pass_malloc(void *context, size_t bytes)
{
	struct allocator *next = context;

	note(bytes);
	return next->malloc(next->context, bytes);
}

static void *
pass_calloc(void *context, size_t count, size_t bytes)
{
	struct allocator *next = context;

	note(count * bytes);
	return next->calloc(next->context, count, bytes);
}

static void *
pass_realloc(void *context, void *old, size_t bytes)
{
	struct allocator *next = context;

	note(bytes);
	return next->realloc(next->context, old, bytes);
}

static void
pass_free(void *context, void *addr)
{
	struct allocator *next = context;

	next->free(next->context, addr);
}

/* ---- of a pool, which is never emptied: for all sizes ---- */

static void *
pool_malloc(void *context, size_t bytes)
{
	size_t *block = (size_t *)(void *)pool_next;

	(void)context;
	pool_next += (bytes + 16 + 15) / 16 * 16;
	if (pool_next > pool + POOL_BYTES)
		return NULL;
	*block = bytes;
	return (char *)block + 16;
}

static void *
pool_calloc(void *context, size_t count, size_t bytes)
{
	return pool_malloc(context, count * bytes);
}

static void *
pool_realloc(void *context, void *old, size_t bytes)
{
	char *fresh = pool_malloc(context, bytes);
	size_t before = old != NULL ? *(size_t *)(void *)((char *)old - 16) : 0;

	if (fresh != NULL && old != NULL)
		memcpy(fresh, old, before < bytes ? before : bytes);
	return fresh;
}

static void
pool_free(void *context, void *addr)
{
	(void)context;
	(void)addr;
}

/* ---- */

static void
wrap(void *python, bool has_pool)
{
	void (*get)(int, struct allocator *) = (void (*)(int, struct allocator *))dlsym(python, "PyMem_GetAllocator");
	void (*set)(int, struct allocator *) = (void (*)(int, struct allocator *))dlsym(python, "PyMem_SetAllocator");

	for (int domain = 1; domain <= 2; domain++) {
		struct allocator ours = { &inner[domain - 1], pass_malloc, pass_calloc, pass_realloc, pass_free };

		if (has_pool)
			ours = (struct allocator){ NULL, pool_malloc, pool_calloc, pool_realloc, pool_free };
		get(domain, &inner[domain - 1]);
		set(domain, &ours);
	}
}

static void
unwrap(void *python)
{
	void (*set)(int, struct allocator *) = (void (*)(int, struct allocator *))dlsym(python, "PyMem_SetAllocator");

	for (int domain = 1; domain <= 2; domain++)
		set(domain, &inner[domain - 1]);
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
	bool is_again = strcmp(what, "again") == 0;
	bool is_noting_wanted = strcmp(what, "noting") == 0;
	char text[5000];
	void *python = dlopen(arguments[2], RTLD_NOW | RTLD_GLOBAL);

	if (count != 6 || python == NULL) {
		puts(dlerror());
		return 9;
	}
	setenv("PYTHONHOME", arguments[3], 1);
	if (strcmp(what, "outside") == 0) {
		pool = pool_next = mmap(NULL, POOL_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		                        -1, 0);
		wrap(python, true);
	}
	if (strcmp(what, "below") == 0 || strcmp(what, "removes") == 0 || is_noting_wanted)
		wrap(python, false);
	for (int left = is_again ? 2 : 0; left >= 0; left--) {
		((void (*)(int))dlsym(python, "Py_InitializeEx"))(0);
		if (strcmp(what, "above") == 0 || is_noting_wanted) {
			run(python, FILLING);
			is_noting = is_noting_wanted;
			if (!is_noting)
				wrap(python, false);
		}
		if (strcmp(what, "removes") == 0) {
			run(python, FILLING);
			unwrap(python);
			run(python, "for i in range(3000):\n    exec(compile('bytearray(5000)', '<%d>' % i, 'exec'))\n");
		}
		snprintf(text, sizeof(text),
		         "import sys\nsys.argv = ['', '%s', '%s']\n"
		         "exec(compile(open('%s').read(), '%s', 'exec'), {'__name__': '__main__'})\n",
		         arguments[5], left == 0 ? "kill" : "exit", arguments[4], arguments[4]);
		run(python, text);
		((int (*)(void))dlsym(python, "Py_FinalizeEx"))();
	}
	return 0;
}
