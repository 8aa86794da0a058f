/*
 * model_library.h - whose allocator is it that grew?
 *
 * Of the domain "library" alone: pages inside reservations that a library manages itself. The frame that made the reservation is the
 * first native one of the stack, and its module is the library.
 *
 * Called by   model.c, verdict*.c.
 */
#ifndef MODEL_LIBRARY_H
#define MODEL_LIBRARY_H

#include "model.h"
#include "text_pool.h"

/* Sets `library` of the sites: "polars", "libarrow", "node"; "a library" where it is not known. */
void model_libraries_name(struct model *model, struct text_pool *pool);

/* What makes it take its memory from malloc, officially: "ARROW_DEFAULT_MEMORY_POOL=system"; NULL = there is no such thing, or none known. */
const char *model_library_switch(const struct model_site *site);

#endif
