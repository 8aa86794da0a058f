/*
 * ask_process.h - tells a program that is being recorded to make a mark or a snapshot.
 *
 * The request is written into its capture, which the recorder has mapped. It looks there as it allocates; nothing stops, and no signal
 * is sent.
 *
 * When failing  false, and one line in `fail`: the process is gone, is not recorded, or its capture may not be written.
 */
#ifndef ASK_PROCESS_H
#define ASK_PROCESS_H

#include <stdbool.h>

#include "base/fail.h"

enum ask_what { ASK_MARK = 1, ASK_SNAPSHOT = 2 };

/* name: any length; it is cut. *is_done: false: it has not allocated since, and will do it when it does. */
bool ask_process(const char *command, const char *pid, enum ask_what what, const char *name, bool *is_done,
                 struct fail *fail);

#endif
