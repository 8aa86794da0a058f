/*
 * kmemshim.h - for programs that want to say where they are.
 *
 * Nothing to link: without the recorder, LD_PRELOAD=libkmemshim.so or kmemshim run, each of these is a comparison with 0. From C and C++.
 *
 *   kmemshim_step()          a step begins: a batch, a request, a frame. The report then counts what is kept in each
 *   kmemshim_mark(name)      a moment with a name: "epoch 3"
 *   kmemshim_snapshot(name)  the same, with what each line holds then: kmemshim diff compares two of them
 *
 * Names are UTF-8; the first 55 bytes are kept. The latest 64 marks and 30 snapshots are kept. A step takes some ten
 * nanoseconds, a mark less than a microsecond, a snapshot a millisecond or so.
 */
#ifndef KMEMSHIM_H
#define KMEMSHIM_H

#ifdef __cplusplus
extern "C" {
#endif

/* The recorder's. Do not call them: they may not be there. */
extern void kmemshim_recorder_step(void) __attribute__((weak));
extern void kmemshim_recorder_mark(const char *name) __attribute__((weak));
extern void kmemshim_recorder_snapshot(const char *name) __attribute__((weak));

static inline __attribute__((unused)) void
kmemshim_step(void)
{
	if (kmemshim_recorder_step)
		kmemshim_recorder_step();
}

static inline __attribute__((unused)) void
kmemshim_mark(const char *name)
{
	if (kmemshim_recorder_mark)
		kmemshim_recorder_mark(name);
}

static inline __attribute__((unused)) void
kmemshim_snapshot(const char *name)
{
	if (kmemshim_recorder_snapshot)
		kmemshim_recorder_snapshot(name);
}

#ifdef __cplusplus
}
#endif

#endif
