/*
 * python_cells.h - which cells of a notebook have run, and what do they say?
 *
 * A cell's code names a file that is on no disk: its name is a hash of the text, and the number between the brackets of In[12] is
 * nowhere in it. IPython keeps both in the namespace that its cells run in, as _i12 (what was typed) and In[12] (what was
 * compiled). When a cell's code object is met for the first time, those that are new there are copied into the capture.
 *
 * The frame keeps the namespace alive, but another thread may change it meanwhile: everything behind it is read through the kernel,
 * which refuses instead of raising a signal, and is used only if it looks like what it should be. A text read wrongly has another
 * hash than the file, which the reader checks.
 *
 * Context     inside the reentry guard, on the thread whose frame it is.
 * Safe from   any hook: system calls, no lock (a second thread at the same time goes on without), no allocation.
 * When full   KMEM_LOST_PYTHON_TEXT; the report names cells by their hash.
 */
#ifndef PYTHON_CELLS_H
#define PYTHON_CELLS_H

#include <stdint.h>

#include "python/python_layout.h"

/* frame_addr: one that is linked and runs code of a cell. */
void python_cells_note(const struct python_interpreter *python, uint64_t frame_addr);

/* In a forked child, single-threaded: its own capture has no cells yet. */
void python_cells_forked(void);

#endif
