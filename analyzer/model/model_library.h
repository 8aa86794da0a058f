/*
 * model_library.h - whose allocator is it that grew?
 *
 * Only for the domain "library": pages inside reservations that a library manages itself. The frame that made the reservation is the
 * first native one of the stack, and its module is the library.
 */
#ifndef MODEL_LIBRARY_H
#define MODEL_LIBRARY_H

#include "base/text_pool.h"
#include "model/model.h"

/* Does this module stand between the library and the system in a stack? */
bool model_library_is_between(const char *module);

/* Sets `library` of the sites: "polars", "libarrow", "node"; "a library" where it is not known. */
void model_libraries_name(struct model *model, struct text_pool *pool);

/* A variable of the environment, documented by the library, that makes its lines exact or closer. launcher.c sets all of them. */
#define MODEL_LIBRARY_JEMALLOC "_RJEM_MALLOC_CONF=dirty_decay_ms:0,muzzy_decay_ms:0"
struct model_library_switch {
	const char *module;  // the library's begins so
	const char *setting; // "ARROW_DEFAULT_MEMORY_POOL=system"
	const char *effect;  // after "with it"
};
// NULL = there is none, or none known
const struct model_library_switch *model_library_switch(const struct model_site *site);

/*
 * A heap of objects that a runtime manages and collects. It is known by what it maps itself, in whatever domain; what it takes from
 * malloc is not part of it.
 */
struct model_runtime {
	const char *module; // where it maps memory, as these begin
	const char *function;
	const char *name;   // "the JVM"
	const char *advice; // who knows more of its objects
};
const struct model_runtime *model_runtime_of(const struct model *model, const struct model_site *site); // NULL = none

#endif
