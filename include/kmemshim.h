/*
 * kmemshim.h - for programs that want to say where they are.
 *
 * Nothing to link: without the recorder, LD_PRELOAD=libkmemshim.so or kmemshim run, each of these is a comparison with 0. From C and C++.
 *
 *   kmemshim_step()          a step begins: a batch, a request, a frame. The report then counts what is kept in each
 *   kmemshim_mark(name)      a moment with a name: "epoch 3"
 *   kmemshim_snapshot(name)  the same, with what each line holds then: kmemshim diff compares two of them
 *
 * Names are UTF-8; the first 55 bytes are kept. The latest 64 marks and 30 snapshots are kept. A step takes some tens of
 * nanoseconds, a mark less than a microsecond, a snapshot a millisecond or so.
 */
#ifndef KMEMSHIM_H
#define KMEMSHIM_H

#ifndef __PIC__
#include <dlfcn.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef void (*kmemshim_step_function)(void);
typedef void (*kmemshim_named_function)(const char *name);

/* The recorder's, which may not be there. */
#ifdef __PIC__
extern void kmemshim_recorder_step(void) __attribute__((weak));
extern void kmemshim_recorder_mark(const char *name) __attribute__((weak));
extern void kmemshim_recorder_snapshot(const char *name) __attribute__((weak));
#define KMEMSHIM_FIND(type, name) type found = name
#else /* without -fPIE the linker takes a weak name to be absent for good: it is asked for when the program runs */
#define KMEMSHIM_FIND(type, name)                             \
	static type found;                                        \
	static int is_looked_up;                                  \
	if (!is_looked_up) {                                      \
		found = (type)(unsigned long)dlsym((void *)0, #name); \
		is_looked_up = 1;                                     \
	}
#endif

static inline __attribute__((unused)) void
kmemshim_step(void)
{
	KMEMSHIM_FIND(kmemshim_step_function, kmemshim_recorder_step);
	if (found)
		found();
}

static inline __attribute__((unused)) void
kmemshim_mark(const char *name)
{
	KMEMSHIM_FIND(kmemshim_named_function, kmemshim_recorder_mark);
	if (found)
		found(name);
}

static inline __attribute__((unused)) void
kmemshim_snapshot(const char *name)
{
	KMEMSHIM_FIND(kmemshim_named_function, kmemshim_recorder_snapshot);
	if (found)
		found(name);
}

#ifdef __cplusplus
}
#endif

#endif
