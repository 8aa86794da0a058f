/*
 * domain.c - what kind of memory is a domain (see domain.h)?
 */
#include "model/domain.h"

#include <stdlib.h>
#include <string.h>

#include "base/items.h"
#include "base/text_start.h"
#include "kmem_format.h"

/* What is true of all domains of a kind. */
enum domain_group { GROUP_HOST, GROUP_ADDRESS_SPACE, GROUP_DRIVER };

static const struct domain_row {
	const char *name;
	enum domain_group group;
	enum kmem_domain first;
	enum kmem_domain last;
} rows[DOMAIN_KINDS] = {
#define ROW(kind, name, group, first, last) \
	[DOMAIN_##kind] = { name, GROUP_##group, KMEM_DOMAIN_##first, KMEM_DOMAIN_##last },
	DOMAIN_ROWS(ROW)
#undef ROW
		[DOMAIN_OTHER] = { NULL, GROUP_HOST, KMEM_DOMAINS_MAX, 0 },
};

struct domain_id
domain_id_of(unsigned number, bool are_devices_hip)
{
	const struct domain_row *found = FIRST(row, rows, DOMAIN_KINDS, number >= row->first && number <= row->last);

	if (found == NULL)
		return (struct domain_id){ .kind = DOMAIN_OTHER };
	return (struct domain_id){ (enum domain_kind)(found - rows), number - found->first,
		                       are_devices_hip && found->group == GROUP_DRIVER };
}

static enum domain_kind
kind_named(const char *name, bool is_driver)
{
	const struct domain_row *found = FIRST(row, rows, DOMAIN_KINDS,
	                                       (row->group == GROUP_DRIVER) == is_driver && row->name != NULL &&
	                                           strcmp(row->name, name) == 0);

	return found != NULL ? (enum domain_kind)(found - rows) : DOMAIN_OTHER;
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
	id.kind = kind_named(rest, true);
	return id;
}

struct domain_id
domain_id_named(const char *name)
{
	if (text_starts(name, "cuda"))
		return id_of_driver(name + strlen("cuda"), false);
	if (text_starts(name, "hip"))
		return id_of_driver(name + strlen("hip"), true);
	return (struct domain_id){ .kind = kind_named(name, false) };
}

bool
domain_is_address_space(enum domain_kind kind)
{
	return rows[kind].group == GROUP_ADDRESS_SPACE;
}

bool
domain_is_driver(enum domain_kind kind)
{
	return rows[kind].group == GROUP_DRIVER;
}
