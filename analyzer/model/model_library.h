/*
 * model_library.h - whose allocator is it that grew?
 *
 * Of the domain "library" alone: pages inside reservations that a library manages itself. The frame that made the reservation is the
 * first native one of the stack, and its module is the library.
 */
#ifndef MODEL_LIBRARY_H
#define MODEL_LIBRARY_H

#include "base/text_pool.h"
#include "model/model.h"

/* Sets `library` of the sites: "polars", "libarrow", "node"; "a library" where it is not known. */
void model_libraries_name(struct model *model, struct text_pool *pool);

/* Of the environment: makes lines exact or closer, officially. launcher.c sets all of them. */
#define MODEL_LIBRARY_JEMALLOC "_RJEM_MALLOC_CONF=dirty_decay_ms:0,muzzy_decay_ms:0"
struct model_library_switch {
	const char *module;  // the library's begins so
	const char *setting; // "ARROW_DEFAULT_MEMORY_POOL=system"
	const char *effect;  // after "with it"
};
// NULL = there is none, or none known
const struct model_library_switch *model_library_switch(const struct model_site *site);

/* A heap of objects that somebody else manages, and collects: what it maps itself, of whatever domain. Not what it takes from malloc. */
struct model_runtime {
	const char *module; // where it maps memory, as these begin
	const char *function;
	const char *name;   // "the JVM"
	const char *advice; // who knows more of its objects
};
const struct model_runtime *model_runtime_of(const struct model *model, const struct model_site *site); // NULL = none

#endif
