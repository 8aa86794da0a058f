/*
 * scratch.h - where does a test put its captures, and what did reading them say?
 *
 * One fresh folder for a group of tests, or for each test: pass both functions to cmocka as set-up and tear-down.
 */
#ifndef SCRATCH_H
#define SCRATCH_H

#include <stdbool.h>

#include "model/model.h"

extern char scratch_folder[64];
extern char scratch_file[128]; // a name in it for the test that needs one; nothing is there at first

/* As cmocka wants them: 0 or an error. Removes the folder with everything in it. */
int scratch_make(void **state);
int scratch_remove(void **state);

/* One of the model's damages contains that text. */
bool is_told(const struct model *model, const char *says);

#endif
