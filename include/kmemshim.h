/*
 * kmemshim.h - for programs that want to say where they are.
 *
 * Nothing to link: without the recorder, LD_PRELOAD=libkmemshim.so or kmemshim run, each of these is a comparison with 0. From C and C++.
 *
 *   kmemshim_step()          a step begins: a batch, a request, a frame. The report then counts what is kept in each
 *   kmemshim_mark(name)      a moment with a name: "epoch 3"
 *   kmemshim_snapshot(name)  the same, with what each line holds then: kmemshim diff compares two of them
 *   kmemshim_phase(domains)  how much is live, how much it was at most since the last call, and a new phase begins: a test, a request.
 *                            kmemshim peak --phase then ranks the lines at the peak of the phase
 *   kmemshim_usage(domains)  the same figures, and the phase goes on
 *
 * Names are UTF-8; the first 55 bytes are kept. The latest 64 marks and 30 snapshots are kept. A step takes some tens of
 * nanoseconds, a mark less than a microsecond, a snapshot a millisecond or so; a phase some microseconds, or as much as a snapshot
 * where it has the highest peak so far.
 */
#ifndef KMEMSHIM_H
#define KMEMSHIM_H

#ifndef __PIC__
#include <dlfcn.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* One kind of memory. Bytes as requested. */
struct kmemshim_domain {
	unsigned long long live_bytes;
	unsigned long long peak_bytes; /* the highest since the phase began */
	/* 1: a new phase begins here. 0: it could not, since other threads allocated more and more, or since the capture is full: the phase goes
	 * on, and so does its peak. */
	unsigned long long is_begun;
};

/* Which is which; others are of no use to a program. cuda:0 is KMEMSHIM_CUDA, cuda:1 the one after it. */
enum {
	KMEMSHIM_HEAP = 0,
	KMEMSHIM_MMAP = 1,
	KMEMSHIM_SHARED = 4,
	KMEMSHIM_PYTHON_ARENA = 7,
	KMEMSHIM_CUDA = 8,
	KMEMSHIM_LIBRARY = 59, /* an estimate */
	KMEMSHIM_DOMAINS = 64
};

typedef void (*kmemshim_step_function)(void);
typedef unsigned long (*kmemshim_phase_function)(void *domains, unsigned long bytes);
typedef void (*kmemshim_named_function)(const char *name);

/* The recorder's, which may not be there. */
#ifdef __PIC__
extern void kmemshim_recorder_step(void) __attribute__((weak));
extern void kmemshim_recorder_mark(const char *name) __attribute__((weak));
extern void kmemshim_recorder_snapshot(const char *name) __attribute__((weak));
extern unsigned long kmemshim_recorder_phase(void *domains, unsigned long bytes) __attribute__((weak));
extern unsigned long kmemshim_recorder_usage(void *domains, unsigned long bytes) __attribute__((weak));
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

/* How many domains were filled in: KMEMSHIM_DOMAINS, or 0 where nothing is recorded; then they are untouched. */
static inline __attribute__((unused)) unsigned
kmemshim_phase(struct kmemshim_domain domains[KMEMSHIM_DOMAINS])
{
	KMEMSHIM_FIND(kmemshim_phase_function, kmemshim_recorder_phase);
	return found ? (unsigned)(found(domains, KMEMSHIM_DOMAINS * sizeof(*domains)) / sizeof(*domains)) : 0;
}

static inline __attribute__((unused)) unsigned
kmemshim_usage(struct kmemshim_domain domains[KMEMSHIM_DOMAINS])
{
	KMEMSHIM_FIND(kmemshim_phase_function, kmemshim_recorder_usage);
	return found ? (unsigned)(found(domains, KMEMSHIM_DOMAINS * sizeof(*domains)) / sizeof(*domains)) : 0;
}

#ifdef __cplusplus
}
#endif

#endif
