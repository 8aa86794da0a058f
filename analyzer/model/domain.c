/*
 * domain.c - what kind of memory is a domain (see domain.h)?
 */
#include "model/domain.h"

#include <stdlib.h>
#include <string.h>

#include "base/text_start.h"
#include "kmem_format.h"

/* What is true of all domains of a kind. */
enum domain_group { GROUP_HOST, GROUP_ADDRESS_SPACE, GROUP_DRIVER };

struct domain_row {
	const char *name; // behind "cuda" or "hip" for what a driver gave out; NULL: there is no single one
	enum domain_group group;
	enum kmem_domain first; // its rows in the capture's table
	enum kmem_domain last;
};

/* The one place that lists kinds: the compiler refuses a switch that leaves one out (-Werror=switch). */
static struct domain_row
row_of(enum domain_kind kind)
{
	switch (kind) {
	case DOMAIN_HEAP:
		return (struct domain_row){ "heap", GROUP_HOST, KMEM_DOMAIN_HEAP, KMEM_DOMAIN_HEAP };
	case DOMAIN_MMAP:
		return (struct domain_row){ "mmap", GROUP_HOST, KMEM_DOMAIN_MMAP, KMEM_DOMAIN_MMAP };
	case DOMAIN_RESERVED:
		return (struct domain_row){ "reserved", GROUP_ADDRESS_SPACE, KMEM_DOMAIN_RESERVED, KMEM_DOMAIN_RESERVED };
	case DOMAIN_FILE:
		return (struct domain_row){ "file", GROUP_ADDRESS_SPACE, KMEM_DOMAIN_FILE, KMEM_DOMAIN_FILE };
	case DOMAIN_SHARED:
		return (struct domain_row){ "shared", GROUP_HOST, KMEM_DOMAIN_SHARED, KMEM_DOMAIN_SHARED };
	case DOMAIN_PYTHON_ARENA:
		return (struct domain_row){ "python/arena", GROUP_HOST, KMEM_DOMAIN_PYTHON_ARENA, KMEM_DOMAIN_PYTHON_ARENA };
	case DOMAIN_PYTHON_OBJECT:
		return (struct domain_row){ "python/object", GROUP_HOST, KMEM_DOMAIN_PYTHON_OBJECT, KMEM_DOMAIN_PYTHON_OBJECT };
	case DOMAIN_LIBRARY:
		return (struct domain_row){ "library", GROUP_HOST, KMEM_DOMAIN_LIBRARY, KMEM_DOMAIN_LIBRARY };
	case DOMAIN_PINNED:
		return (struct domain_row){ "/pinned", GROUP_DRIVER, KMEM_DOMAIN_CUDA_PINNED, KMEM_DOMAIN_CUDA_PINNED };
	case DOMAIN_MANAGED:
		return (struct domain_row){ "/managed", GROUP_DRIVER, KMEM_DOMAIN_CUDA_MANAGED, KMEM_DOMAIN_CUDA_MANAGED };
	case DOMAIN_REGISTERED:
		return (struct domain_row){ "/registered", GROUP_DRIVER, KMEM_DOMAIN_CUDA_REGISTERED,
			                        KMEM_DOMAIN_CUDA_REGISTERED };
	case DOMAIN_IMPORTED:
		return (struct domain_row){ "/imported", GROUP_DRIVER, KMEM_DOMAIN_CUDA_IMPORTED, KMEM_DOMAIN_CUDA_IMPORTED };
	case DOMAIN_GRAPH:
		return (struct domain_row){ "/graph", GROUP_DRIVER, KMEM_DOMAIN_CUDA_GRAPH, KMEM_DOMAIN_CUDA_GRAPH };
	case DOMAIN_DEVICE:
		return (struct domain_row){ NULL, GROUP_DRIVER, KMEM_DOMAIN_CUDA_FIRST, KMEM_DOMAIN_CUDA_LAST };
	case DOMAIN_TENSORS:
		return (struct domain_row){ NULL, GROUP_DRIVER, KMEM_DOMAIN_TENSORS_FIRST, KMEM_DOMAIN_TENSORS_LAST };
	case DOMAIN_OTHER:
	case DOMAIN_KINDS:
		break;
	}
	return (struct domain_row){ NULL, GROUP_HOST, KMEM_DOMAINS_MAX, 0 };
}

struct domain_id
domain_id_of(unsigned number, bool are_devices_hip)
{
	for (enum domain_kind kind = DOMAIN_OTHER + 1; kind < DOMAIN_KINDS; kind++) {
		struct domain_row row = row_of(kind);

		if (number >= row.first && number <= row.last)
			return (struct domain_id){ kind, number - row.first, are_devices_hip && row.group == GROUP_DRIVER };
	}
	return (struct domain_id){ .kind = DOMAIN_OTHER };
}

/* Behind "cuda" or "hip": ":0", ":0/tensors", "/pinned". */
static struct domain_id
id_of_driver(const char *rest, bool is_hip)
{
	struct domain_id id = { .kind = DOMAIN_OTHER, .is_hip = is_hip };
	char *end;

	if (rest[0] == ':') {
		id.device = (unsigned)strtoul(rest + 1, &end, 10);
		id.kind = *end == '\0' ? DOMAIN_DEVICE : strcmp(end, "/tensors") == 0 ? DOMAIN_TENSORS : DOMAIN_OTHER;
		return id;
	}
	for (enum domain_kind kind = DOMAIN_OTHER + 1; kind < DOMAIN_KINDS; kind++) {
		struct domain_row row = row_of(kind);

		if (row.group == GROUP_DRIVER && row.name != NULL && strcmp(row.name, rest) == 0)
			id.kind = kind;
	}
	return id;
}

struct domain_id
domain_id_named(const char *name)
{
	if (text_starts(name, "cuda"))
		return id_of_driver(name + strlen("cuda"), false);
	if (text_starts(name, "hip"))
		return id_of_driver(name + strlen("hip"), true);
	for (enum domain_kind kind = DOMAIN_OTHER + 1; kind < DOMAIN_KINDS; kind++) {
		struct domain_row row = row_of(kind);

		if (row.group != GROUP_DRIVER && row.name != NULL && strcmp(row.name, name) == 0)
			return (struct domain_id){ .kind = kind };
	}
	return (struct domain_id){ .kind = DOMAIN_OTHER };
}

bool
domain_is_address_space(enum domain_kind kind)
{
	return row_of(kind).group == GROUP_ADDRESS_SPACE;
}

bool
domain_is_driver(enum domain_kind kind)
{
	return row_of(kind).group == GROUP_DRIVER;
}
