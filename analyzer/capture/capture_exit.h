/*
 * capture_exit.h - what did the program hold before its exit handlers ran?
 *
 * Context     once all of the capture was read and checked.
 * Safe from   one thread.
 * When failing  figures stay those of the very end, and a line in the capture's `damages` says why.
 */
#ifndef CAPTURE_EXIT_H
#define CAPTURE_EXIT_H

#include "capture/capture_reader.h"

/*
 * Sets what each record has released back to what it was when the program began to exit, with the counters by generation, the clock
 * and the volume; totals and peaks stay. Keeps in `capture` what was released since. Does nothing where the program did not end by
 * itself, or more was live at its very end: then it did its work in exit handlers.
 */
void capture_exit_rewind(struct capture *capture);

#endif
