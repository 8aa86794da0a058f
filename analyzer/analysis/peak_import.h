/*
 * peak_import.h - was a process at its highest while it imported a module?
 *
 * Context  reads a model that is finished (model_finish.h).
 */
#ifndef PEAK_IMPORT_H
#define PEAK_IMPORT_H

#include <stdbool.h>

#include "model/model.h"

#define PEAK_IMPORT_BYTES 64

/*
 * True: nearly all of what it held at the highest point of its timeline was allocated by the import of a module, no line of the user's
 * that came after the import was there yet, and at the end an eighth of it was gone. name is the module's, "" = false is returned.
 */
bool peak_import_of(const struct model *model, const struct model_process *process, char name[PEAK_IMPORT_BYTES]);

#endif
