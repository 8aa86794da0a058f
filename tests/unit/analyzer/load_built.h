/*
 * load_built.h - the model of a capture that was made by hand.
 *
 * Include behind cmocka.h. Ends the test where the capture is refused.
 */
#ifndef LOAD_BUILT_H
#define LOAD_BUILT_H

#include <stdlib.h>

#include "capture_builder.h"
#include "owned.h"
#include "scratch.h"

/* Takes the builder. */
static struct model *
load_built(struct capture_builder *builder, enum kmem_state state)
{
	size_t bytes;
	unsigned char *file = capture_builder_finish(builder, state, &bytes);

	capture_builder_write(scratch_file, file, bytes);
	free(file);
	capture_builder_free(builder);
	return loaded((struct model_options){ .capture = scratch_file });
}

#endif
