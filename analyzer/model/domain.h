/*
 * domain.h - what kind of memory is a domain?
 *
 * Each kind is known by the domain's number in the capture (enum kmem_domain); names are for people, files and options.
 * A new kind gets a row in domain.c, and does not compile without one.
 *
 * Safe from   anywhere; no state.
 */
#ifndef MODEL_DOMAIN_H
#define MODEL_DOMAIN_H

#include <stdbool.h>

enum domain_kind {
	DOMAIN_OTHER, // a number that this analyzer does not know
	DOMAIN_HEAP,
	DOMAIN_MMAP,
	DOMAIN_RESERVED,
	DOMAIN_FILE,
	DOMAIN_SHARED,
	DOMAIN_PYTHON_ARENA,
	DOMAIN_PYTHON_OBJECT, // estimated from a sample; lies in the arenas
	DOMAIN_LIBRARY,
	DOMAIN_PINNED,
	DOMAIN_MANAGED,
	DOMAIN_REGISTERED,
	DOMAIN_IMPORTED,
	DOMAIN_GRAPH,
	DOMAIN_DEVICE,  // "cuda:0"
	DOMAIN_TENSORS, // "cuda:0/tensors": a part of the device's
	DOMAIN_KINDS
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

/* Memory of the host that no driver gave out. */
static inline bool
domain_is_host(enum domain_kind kind)
{
	return !domain_is_address_space(kind) && !domain_is_driver(kind);
}

#endif
