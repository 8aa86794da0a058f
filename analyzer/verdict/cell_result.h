/*
 * cell_result.h - does a notebook keep what the end of this cell gave it?
 *
 * IPython keeps the value of a cell's last expression in Out[], for the life of the kernel, unless a ; stands behind it or it is None.
 */
#ifndef CELL_RESULT_H
#define CELL_RESULT_H

#include <stdbool.h>

#include "model/model.h"
#include "model/model_holders.h"

/* Is that the cell's last line, and an expression of its own? False also where it ends on further lines, or is part of a block. */
bool cell_result_is_shown(const char *text, uint32_t line);

/* The outermost cell below which these blocks were allocated, where its last line called for them; NULL: none. */
const struct model_frame *cell_result_of(const struct model *model, const struct model_site *site);

/* Does the way begin at a name by which IPython keeps results: Out, _oh, _, __, _7? */
bool cell_result_is_kept(const struct holders_way *way);

#endif
