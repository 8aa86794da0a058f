/*
 * other_limits.h - what else than memory was refused: a thread, a process, an open file, CUDA as a whole?
 *
 * Each is told once in a process, as a note that the verdict reads (KMEM_NOTE_THREAD and following).
 *
 * Context     inside the reentry guard.
 * Safe from   any hook.
 * When full   as capture_file_note(): it is not told.
 */
#ifndef OTHER_LIMITS_H
#define OTHER_LIMITS_H

#include <stdbool.h>

/* A thread could not be started, with this error. */
void other_limits_thread(int error);
void other_limits_process(int error); // fork

/* Is no descriptor free? Takes one for a moment. To be called rarely, and when the program ends. */
void other_limits_look(void);

/* Is this result of CUDA one with which nothing of it works: no driver that fits, no device? */
bool other_limits_is_cuda_start(int result);
void other_limits_cuda(const char *function, int result);

void other_limits_forked(void); // forked child: one thread

#endif
