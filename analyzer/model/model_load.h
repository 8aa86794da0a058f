/*
 * model_load.h - from a CAPTURE argument to a model.
 *
 * When failing  one line in `fail` when nothing could be read; else the model's `damages` say what was left out.
 */
#ifndef MODEL_LOAD_H
#define MODEL_LOAD_H

#include <stdbool.h>

#include "base/fail.h"
#include "model/model.h"

struct model_options {
	const char *capture;  // file or folder; NULL = the newest session in ./kmemshim.out
	const char *session;  // which of a folder's sessions; NULL = the newest
	const char *sysroot;  // prefix for module paths; NULL = none
	const char *project;  // only code below this folder is the user's own; NULL = by rule
	const char *wrappers; // names as frame_rules.h takes them; NULL = none
	bool is_salvage;      // read what is intact of a damaged capture instead of refusing it
	bool is_at_guard;     // live figures of the moment when the guard was passed, where it was
	const char
		*at; // name of a snapshot, or "#7": live figures are of that moment, in processes that have it; NULL = the end
	const char *since;  // of a snapshot, too: what was held then is taken off live figures and peaks; NULL = nothing
	bool is_of_phase;   // peaks of each process are those of its last phase, not of its whole life
	bool wants_symbols; // false: leave native frames unnamed (fast totals)
	bool wants_records; // to know of each record of a capture which site it is: model_process.record_sites
};

/* The result is owned by the caller; model_free(NULL) is legal. NULL and *fail filled when nothing could be read. */
struct model *model_load(const struct model_options *options, struct fail *fail);
void model_free(struct model *model);

#endif
