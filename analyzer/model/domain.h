/*
 * domain.h - what kind of memory is a domain?
 *
 * Each kind is known by the domain's number in the capture (enum kmem_domain); names are for people, files and options.
 * A new kind gets a row here.
 *
 * Safe from   anywhere; no state.
 */
#ifndef MODEL_DOMAIN_H
#define MODEL_DOMAIN_H

#include <stdbool.h>

/*
 * ROW(kind, name, group, its first row in the capture's table, its last one)
 *
 * name: behind "cuda" or "hip" for what a driver gave out; NULL: there is no single one.
 */
#define DOMAIN_ROWS(ROW)                                                                                              \
	ROW(HEAP, "heap", HOST, HEAP, HEAP)                                                                               \
	ROW(MMAP, "mmap", HOST, MMAP, MMAP)                                                                               \
	ROW(RESERVED, "reserved", ADDRESS_SPACE, RESERVED, RESERVED)                                                      \
	ROW(FILE, "file", ADDRESS_SPACE, FILE, FILE)                                                                      \
	ROW(SHARED, "shared", HOST, SHARED, SHARED)                                                                       \
	ROW(PYTHON_ARENA, "python/arena", HOST, PYTHON_ARENA, PYTHON_ARENA)                                               \
	ROW(PYTHON_OBJECT, "python/object", HOST, PYTHON_OBJECT,                                                          \
	    PYTHON_OBJECT)                                              /* estimated from a sample; lies in the arenas */ \
	ROW(HEAP_SAMPLE, "heap/sample", HOST, HEAP_SAMPLE, HEAP_SAMPLE) /* estimated from a sample of blocks */           \
	ROW(LIBRARY, "library", HOST, LIBRARY, LIBRARY)                                                                   \
	ROW(PINNED, "/pinned", DRIVER, CUDA_PINNED, CUDA_PINNED)                                                          \
	ROW(MANAGED, "/managed", DRIVER, CUDA_MANAGED, CUDA_MANAGED)                                                      \
	ROW(REGISTERED, "/registered", DRIVER, CUDA_REGISTERED, CUDA_REGISTERED)                                          \
	ROW(IMPORTED, "/imported", DRIVER, CUDA_IMPORTED, CUDA_IMPORTED)                                                  \
	ROW(GRAPH, "/graph", DRIVER, CUDA_GRAPH, CUDA_GRAPH)                                                              \
	ROW(DEVICE, NULL, DRIVER, CUDA_FIRST, CUDA_LAST)        /* "cuda:0" */                                            \
	ROW(TENSORS, NULL, DRIVER, TENSORS_FIRST, TENSORS_LAST) /* "cuda:0/tensors": a part of the device's */

enum domain_kind {
	DOMAIN_OTHER, // a number that this analyzer does not know
#define DOMAIN_KIND(kind, ...) DOMAIN_##kind,
	DOMAIN_ROWS(DOMAIN_KIND) DOMAIN_KINDS
};

struct domain_id {
	enum domain_kind kind;
	unsigned device; // of DOMAIN_DEVICE and DOMAIN_TENSORS
	bool is_hip;     // its driver is AMD's: "hip:0", "hip/pinned"
};

/* Of a row of the capture's domain table. are_devices_hip: as the capture's head says. */
struct domain_id domain_id_of(unsigned number, bool are_devices_hip);

/* Of a name that a person or a baseline wrote: "heap", "cuda:0/tensors". */
struct domain_id domain_id_named(const char *name);

/* Address space, not memory: it never ranks above memory. */
bool domain_is_address_space(enum domain_kind kind);

/* A driver of devices gave it out or knows of it, also the host's: "cuda:0", "hip/pinned". */
bool domain_is_driver(enum domain_kind kind);

/* What malloc gave out, whether each block or a sample of them is recorded. */
static inline bool
domain_is_heap(enum domain_kind kind)
{
	return kind == DOMAIN_HEAP || kind == DOMAIN_HEAP_SAMPLE;
}

/* Its figures are estimates from a sample. */
static inline bool
domain_is_sampled(enum domain_kind kind)
{
	return kind == DOMAIN_PYTHON_OBJECT || kind == DOMAIN_HEAP_SAMPLE;
}

/* Memory of the host that no driver gave out. */
static inline bool
domain_is_host(enum domain_kind kind)
{
	return !domain_is_address_space(kind) && !domain_is_driver(kind);
}

#endif
