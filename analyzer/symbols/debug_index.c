/*
 * debug_index.c - which entry of the debug information is this variable, or this class (see debug_index.h)?
 *
 * Two sorted lists, of variables by address and of classes by the hash of their whole name, are made by one walk.
 */
#include "symbols/debug_index.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/order.h"
#include "base/sorted.h"

#define VISITS_MAX 8000000u    // entries of one file's debug information
#define ENTRIES_MAX 200000u    // of each list, 32 bytes each
#define NESTING_MAX 48u        // of namespaces
#define LANGUAGE_CPP_17 0x002b // of DWARF 5's list: elfutils 0.188 has no names for them
#define LANGUAGE_CPP_20 0x002c
#define HASH_START UINT64_C(0xcbf29ce484222325)
#define WITHOUT_NAME "(anonymous namespace)" // as the demangler says it
#define THREAD_LOCAL (UINT64_C(1) << 63)     // of a key

struct entry {
	uint64_t key;
	void *addr;
	struct Dwarf_CU *cu;
	bool is_twice; // and may be another one
};

/* A class may be defined apart from where it is declared: its whole name is known there alone. */
struct declared {
	uintptr_t addr;
	uint64_t hash;
	bool is_local;
};

struct list {
	size_t count;
	struct entry *entries; // by key
};

struct debug_index {
	unsigned visits;
	bool is_cut;
	struct list variables;
	struct list classes;
	size_t declared_count;     // classes of the unit that is walked
	struct declared *declared; // in their order
};

/* ---- the walk ---- */

struct place {
	uint64_t hash; // of the namespaces and classes around
	bool is_local; // to its file: a namespace without a name is around
	bool has_names;
	bool is_function;
	unsigned depth;
};

static uint64_t
hash_text(uint64_t hash, const char *text)
{
	for (; *text != '\0'; text++)
		hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return hash;
}

static uint64_t
hash_name(uint64_t outer, const char *name)
{
	return hash_text(outer == HASH_START ? outer : hash_text(outer, "::"), name);
}

static void
add(struct debug_index *index, struct list *list, uint64_t key, const Dwarf_Die *die, bool is_local)
{
	if (list->count >= ENTRIES_MAX) {
		index->is_cut = true;
		return;
	}
	*MEMORY_NEXT(list->entries, list->count) = (struct entry){ key, die->addr, die->cu, is_local };
}

static void
add_declared(struct debug_index *index, const Dwarf_Die *die, const struct place *place)
{
	if (index->declared_count >= ENTRIES_MAX)
		return;
	*MEMORY_NEXT(index->declared, index->declared_count) = (struct declared){ (uintptr_t)die->addr, place->hash,
		                                                                      place->is_local };
}

/* False: it was not seen. */
static bool
take_declared(const struct debug_index *index, Dwarf_Attribute *specification, struct place *place)
{
	Dwarf_Die declaration;

	if (dwarf_formref_die(specification, &declaration) == NULL)
		return false;

	size_t until = SORTED_UP_TO(index->declared, index->declared_count, addr, (uintptr_t)declaration.addr);

	if (until == 0 || index->declared[until - 1].addr != (uintptr_t)declaration.addr)
		return false;
	place->hash = index->declared[until - 1].hash;
	place->is_local = index->declared[until - 1].is_local;
	return true;
}

static bool
is_thread_operation(unsigned operation)
{
	return operation == DW_OP_form_tls_address || operation == DW_OP_GNU_push_tls_address;
}

/* The bytes are looked at first: elfutils keeps each expression that it was asked to read. */
static bool
read_location(Dwarf_Die *die, uint64_t *key)
{
	Dwarf_Attribute attribute;
	Dwarf_Attribute told;
	Dwarf_Block block;
	Dwarf_Op *operations;
	Dwarf_Addr address;
	size_t count;
	uint32_t half;

	if (dwarf_attr(die, DW_AT_location, &attribute) == NULL || dwarf_formblock(&attribute, &block) != 0 ||
	    block.length < 2)
		return false;
	if (block.data[0] == DW_OP_addr && block.length == 1 + sizeof(*key)) {
		memcpy(key, block.data + 1, sizeof(*key));
		return *key != 0 && (*key & THREAD_LOCAL) == 0;
	}
	if (block.data[0] == DW_OP_const8u && block.length == 2 + sizeof(*key) &&
	    is_thread_operation(block.data[1 + sizeof(*key)])) {
		memcpy(key, block.data + 1, sizeof(*key));
		*key |= THREAD_LOCAL;
		return true;
	}
	if (block.data[0] == DW_OP_const4u && block.length == 2 + sizeof(half) &&
	    is_thread_operation(block.data[1 + sizeof(half)])) {
		memcpy(&half, block.data + 1, sizeof(half));
		*key = half | THREAD_LOCAL;
		return true;
	}
	if ((block.data[0] != DW_OP_addrx && block.data[0] != DW_OP_GNU_addr_index) || // of a split unit
	    dwarf_getlocation(&attribute, &operations, &count) != 0 || count != 1 ||
	    dwarf_getlocation_attr(&attribute, &operations[0], &told) != 0 || dwarf_formaddr(&told, &address) != 0)
		return false;
	*key = address;
	return address != 0 && (address & THREAD_LOCAL) == 0;
}

static void walk(struct debug_index *index, Dwarf_Die *parent, const struct place *place);

static void
walk_class(struct debug_index *index, Dwarf_Die *die, struct place *inner)
{
	Dwarf_Attribute specification;
	bool is_declaration = dwarf_hasattr(die, DW_AT_declaration) != 0;

	if (dwarf_attr(die, DW_AT_specification, &specification) != NULL) {
		if (!take_declared(index, &specification, inner))
			return;
	} else {
		inner->hash = hash_name(inner->hash, dwarf_diename(die));
		if (is_declaration)
			add_declared(index, die, inner);
	}
	if (!is_declaration && dwarf_hasattr(die, DW_AT_signature) == 0)
		add(index, &index->classes, inner->hash, die, inner->is_local);
	walk(index, die, inner);
}

static void
walk_into(struct debug_index *index, Dwarf_Die *die, const struct place *place)
{
	struct place inner = *place;
	const char *name = dwarf_diename(die);
	uint64_t key = 0;

	inner.depth++;
	switch (dwarf_tag(die)) {
	case DW_TAG_variable:
		if (read_location(die, &key))
			add(index, &index->variables, key, die, false);
		break;
	case DW_TAG_namespace:
		inner.is_local = inner.is_local || name == NULL;
		inner.hash = hash_name(place->hash, name != NULL ? name : WITHOUT_NAME);
		walk(index, die, &inner);
		break;
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
		if (name != NULL && place->has_names && !place->is_function)
			walk_class(index, die, &inner);
		break;
	case DW_TAG_subprogram:
	case DW_TAG_lexical_block: // static variables
		inner.is_function = true;
		walk(index, die, &inner);
		break;
	default:
		break;
	}
}

static void
walk(struct debug_index *index, Dwarf_Die *parent, const struct place *place)
{
	Dwarf_Die die;

	if (place->depth == NESTING_MAX || dwarf_child(parent, &die) != 0)
		return;
	do {
		if (index->visits == 0) {
			index->is_cut = true;
			return;
		}
		index->visits--;
		walk_into(index, &die, place);
	} while (dwarf_siblingof(&die, &die) == 0);
}

ORDER_OF(compare, struct entry, order_numbers(a->key, b->key) ?: order_numbers((uintptr_t)a->addr, (uintptr_t)b->addr))

/* Classes of one name are one class, but for those that are local to their files. */
static void
finish(struct list *list, bool is_cut)
{
	size_t kept = 0;

	SORT(list->entries, list->count, compare);
	for (size_t i = 0; i < list->count; i++) {
		struct entry *entry = &list->entries[i];
		bool is_local = entry->is_twice;

		if (kept != 0 && list->entries[kept - 1].key == entry->key) {
			list->entries[kept - 1].is_twice = list->entries[kept - 1].is_twice || is_local;
			continue;
		}
		entry->is_twice = is_local && (is_cut || (i + 1 < list->count && list->entries[i + 1].key == entry->key));
		list->entries[kept++] = *entry;
	}
	list->count = kept;
}

static bool
is_of_cpp(Dwarf_Die *unit)
{
	switch (dwarf_srclang(unit)) {
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14:
	case LANGUAGE_CPP_17:
	case LANGUAGE_CPP_20:
		return true;
	default:
		return false;
	}
}

static void
walk_unit(struct debug_index *index, Dwarf_Die *unit)
{
	index->declared_count = 0;
	walk(index, unit, &(struct place){ .hash = HASH_START, .has_names = is_of_cpp(unit) });
}

/* Units that have a type alone (-fdebug-types-section). */
static void
walk_type_units(struct debug_index *index, Dwarf *dwarf)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Half version;
	Dwarf_Die unit;
	uint8_t kind;

	while (!index->is_cut && dwarf_get_units(dwarf, cu, &cu, &version, &kind, &unit, NULL) == 0) {
		if (kind == DW_UT_type || kind == DW_UT_split_type)
			walk_unit(index, &unit);
	}
}

struct debug_index *
debug_index_new(struct symbolizer_dwarf *dwarf)
{
	struct debug_index *index = memory_zeroed(1, sizeof(*index));
	Dwarf_Die unit;

	index->visits = VISITS_MAX;
	for (size_t i = 0; symbolizer_dwarf_unit(dwarf, i, &unit); i++)
		walk_unit(index, &unit);
	if (symbolizer_dwarf_unit(dwarf, 0, &unit))
		walk_type_units(index, dwarf_cu_getdwarf(unit.cu));
	free(index->declared);
	index->declared = NULL;
	finish(&index->variables, index->is_cut);
	finish(&index->classes, index->is_cut);
	return index;
}

void
debug_index_free(struct debug_index *index)
{
	free(index->variables.entries);
	free(index->classes.entries);
	free(index);
}

static bool
find(const struct list *list, uint64_t key, Dwarf_Die *die)
{
	size_t until = SORTED_UP_TO(list->entries, list->count, key, key);

	if (until == 0 || list->entries[until - 1].key != key || list->entries[until - 1].is_twice)
		return false;
	*die = (Dwarf_Die){ .addr = list->entries[until - 1].addr, .cu = list->entries[until - 1].cu };
	return true;
}

bool
debug_index_variable(const struct debug_index *index, uint64_t address, bool is_thread_local, Dwarf_Die *die)
{
	return find(&index->variables, address | (is_thread_local ? THREAD_LOCAL : 0), die);
}

bool
debug_index_class(const struct debug_index *index, const char *name, Dwarf_Die *die)
{
	return find(&index->classes, hash_text(HASH_START, name), die);
}

bool
debug_index_definition(const struct debug_index *index, Dwarf_Die *die)
{
	uint64_t hash = HASH_START;
	Dwarf_Die unit;
	Dwarf_Die *scopes;

	if (dwarf_diename(die) == NULL || dwarf_diecu(die, &unit, NULL, NULL) == NULL || !is_of_cpp(&unit))
		return false;

	int count = dwarf_getscopes_die(die, &scopes);

	if (count <= 0)
		return false;
	for (int i = count - 1; i >= 0; i--) {
		int tag = dwarf_tag(&scopes[i]);
		const char *name = dwarf_diename(&scopes[i]);

		if (tag == DW_TAG_subprogram)
			hash = 0; // no name that is found
		if (tag == DW_TAG_namespace || tag == DW_TAG_structure_type || tag == DW_TAG_class_type)
			hash = hash_name(hash, name != NULL ? name : WITHOUT_NAME);
	}
	free(scopes);
	return find(&index->classes, hash, die);
}
