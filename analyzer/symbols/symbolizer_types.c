/*
 * symbolizer_types.c - types of variables, classes, and their members (see symbolizer_types.h).
 *
 * Two sorted lists, of variables by address and of classes by the hash of their whole name, are made by one walk; a type is its entry in the
 * debug information.
 */
#include "symbols/symbolizer_types.h"

#include <ctype.h>
#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/hash_free.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/sorted.h"
#include "base/text_clean.h"
#include "base/text_start.h"

#define VISITS_MAX 8000000u    // entries of one file's debug information
#define ENTRIES_MAX 200000u    // of each list, 32 bytes each
#define MEMBERS_MAX 10000u     // that are looked at for one question
#define NESTING_MAX 48u        // of namespaces, of members in members, of names for types
#define WORD_BYTES 8u          // of a pointer
#define CONTAINER_NESTING 4u   // of base classes of a container, up to the allocator
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
	size_t room;
	struct entry *entries; // by key
};

/* The samples of a line ask the same, and a class that is declared here and defined elsewhere takes milliseconds to find. */
struct member_question {
	const void *type; // its entry
	const void *node;
	uint64_t arrays;
	int64_t offset;
};

struct member_answer {
	struct member_question question;
	bool is_known;
	bool may_lead;
	char name[SYMBOL_MEMBER_BYTES];
	const struct symbol_type *leads;
	UT_hash_handle hh;
};

struct symbolizer_types {
	struct text_pool *pool;
	unsigned visits;
	bool is_cut;
	struct list variables;
	struct list classes;
	size_t declared_count; // classes of the unit that is walked
	size_t declared_room;
	struct declared *declared; // in their order
	struct member_answer *answers;
};

struct symbol_type {
	struct symbolizer_types *types;
	Dwarf_Die die;
	unsigned arrays; // it is one of many; 2: and so is what each of them leads to
	Dwarf_Die node;  // of a container, to which it leads by the class that all nodes begin with; no address: not known
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

static Dwarf_Die
die_of(const struct entry *entry)
{
	return (Dwarf_Die){ .addr = entry->addr, .cu = entry->cu };
}

static void
add(struct symbolizer_types *types, struct list *list, uint64_t key, const Dwarf_Die *die, bool is_local)
{
	if (list->count >= ENTRIES_MAX) {
		types->is_cut = true;
		return;
	}
	list->entries = memory_grown(list->entries, &list->room, list->count + 1, sizeof(*list->entries));
	list->entries[list->count++] = (struct entry){ key, die->addr, die->cu, is_local };
}

static void
add_declared(struct symbolizer_types *types, const Dwarf_Die *die, const struct place *place)
{
	if (types->declared_count >= ENTRIES_MAX)
		return;
	types->declared = memory_grown(types->declared, &types->declared_room, types->declared_count + 1,
	                               sizeof(*types->declared));
	types->declared[types->declared_count++] = (struct declared){ (uintptr_t)die->addr, place->hash, place->is_local };
}

/* False: it was not seen. */
static bool
take_declared(const struct symbolizer_types *types, Dwarf_Attribute *specification, struct place *place)
{
	Dwarf_Die declaration;
	size_t until;

	if (dwarf_formref_die(specification, &declaration) == NULL)
		return false;
	until = SORTED_UP_TO(types->declared, types->declared_count, addr, (uintptr_t)declaration.addr);
	if (until == 0 || types->declared[until - 1].addr != (uintptr_t)declaration.addr)
		return false;
	place->hash = types->declared[until - 1].hash;
	place->is_local = types->declared[until - 1].is_local;
	return true;
}

static bool
has_attribute(Dwarf_Die *die, unsigned name)
{
	return dwarf_hasattr(die, name) != 0;
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

static void walk(struct symbolizer_types *types, Dwarf_Die *parent, const struct place *place);

static void
walk_class(struct symbolizer_types *types, Dwarf_Die *die, struct place *inner)
{
	Dwarf_Attribute specification;
	bool is_declaration = has_attribute(die, DW_AT_declaration);

	if (dwarf_attr(die, DW_AT_specification, &specification) != NULL) {
		if (!take_declared(types, &specification, inner))
			return;
	} else {
		inner->hash = hash_name(inner->hash, dwarf_diename(die));
		if (is_declaration)
			add_declared(types, die, inner);
	}
	if (!is_declaration && !has_attribute(die, DW_AT_signature))
		add(types, &types->classes, inner->hash, die, inner->is_local);
	walk(types, die, inner);
}

static void
walk_into(struct symbolizer_types *types, Dwarf_Die *die, const struct place *place)
{
	struct place inner = *place;
	const char *name = dwarf_diename(die);
	uint64_t key = 0;

	inner.depth++;
	switch (dwarf_tag(die)) {
	case DW_TAG_variable:
		if (read_location(die, &key))
			add(types, &types->variables, key, die, false);
		break;
	case DW_TAG_namespace:
		inner.is_local = inner.is_local || name == NULL;
		inner.hash = hash_name(place->hash, name != NULL ? name : WITHOUT_NAME);
		walk(types, die, &inner);
		break;
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
		if (name != NULL && place->has_names && !place->is_function)
			walk_class(types, die, &inner);
		break;
	case DW_TAG_subprogram:
	case DW_TAG_lexical_block: // static variables
		inner.is_function = true;
		walk(types, die, &inner);
		break;
	default:
		break;
	}
}

static void
walk(struct symbolizer_types *types, Dwarf_Die *parent, const struct place *place)
{
	Dwarf_Die die;

	if (place->depth == NESTING_MAX || dwarf_child(parent, &die) != 0)
		return;
	do {
		if (types->visits == 0) {
			types->is_cut = true;
			return;
		}
		types->visits--;
		walk_into(types, &die, place);
	} while (dwarf_siblingof(&die, &die) == 0);
}

static int
compare(const void *left, const void *right)
{
	const struct entry *a = left;
	const struct entry *b = right;

	return order_numbers(a->key, b->key) ?: order_numbers((uintptr_t)a->addr, (uintptr_t)b->addr);
}

/* Classes of one name are one class, but for those that are local to their files. */
static void
finish(struct list *list, bool is_cut)
{
	size_t kept = 0;

	if (list->count > 1)
		qsort(list->entries, list->count, sizeof(*list->entries), compare);
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
walk_unit(struct symbolizer_types *types, Dwarf_Die *unit)
{
	types->declared_count = 0;
	walk(types, unit, &(struct place){ .hash = HASH_START, .has_names = is_of_cpp(unit) });
}

/* Units that have a type alone (-fdebug-types-section). */
static void
walk_type_units(struct symbolizer_types *types, Dwarf *dwarf)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Half version;
	Dwarf_Die unit;
	uint8_t kind;

	while (!types->is_cut && dwarf_get_units(dwarf, cu, &cu, &version, &kind, &unit, NULL) == 0) {
		if (kind == DW_UT_type || kind == DW_UT_split_type)
			walk_unit(types, &unit);
	}
}

struct symbolizer_types *
symbolizer_types_new(struct symbolizer_dwarf *dwarf, struct text_pool *pool)
{
	struct symbolizer_types *types = memory_zeroed(1, sizeof(*types));
	Dwarf_Die unit;

	types->pool = pool;
	types->visits = VISITS_MAX;
	for (size_t i = 0; symbolizer_dwarf_unit(dwarf, i, &unit); i++)
		walk_unit(types, &unit);
	if (symbolizer_dwarf_unit(dwarf, 0, &unit))
		walk_type_units(types, dwarf_cu_getdwarf(unit.cu));
	free(types->declared);
	types->declared = NULL;
	finish(&types->variables, types->is_cut);
	finish(&types->classes, types->is_cut);
	return types;
}

void
symbolizer_types_free(struct symbolizer_types *types)
{
	if (types == NULL)
		return;
	HASH_FREE(types->answers, free);
	free(types->variables.entries);
	free(types->classes.entries);
	free(types);
}

static const struct entry *
find(const struct list *list, uint64_t key)
{
	size_t until = SORTED_UP_TO(list->entries, list->count, key, key);

	return until != 0 && list->entries[until - 1].key == key && !list->entries[until - 1].is_twice
	           ? &list->entries[until - 1]
	           : NULL;
}

/* ---- types ---- */

static bool
type_attribute(Dwarf_Die *die, Dwarf_Die *type)
{
	Dwarf_Attribute attribute;

	return dwarf_attr_integrate(die, DW_AT_type, &attribute) != NULL && dwarf_formref_die(&attribute, type) != NULL;
}

/* A class that is declared here, and defined elsewhere: by its whole name. */
static bool
find_definition(struct symbolizer_types *types, Dwarf_Die *die)
{
	uint64_t hash = HASH_START;
	const struct entry *found;
	Dwarf_Die unit;
	Dwarf_Die *scopes;
	int count;

	if (dwarf_diename(die) == NULL || dwarf_diecu(die, &unit, NULL, NULL) == NULL || !is_of_cpp(&unit))
		return false;
	count = dwarf_getscopes_die(die, &scopes);
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
	found = find(&types->classes, hash);
	if (found == NULL)
		return false;
	*die = die_of(found);
	return true;
}

/* Behind names, const and declarations. False: not known. */
static bool
strip(struct symbolizer_types *types, Dwarf_Die *die)
{
	bool was_declared = false;

	for (unsigned i = 0; i < NESTING_MAX; i++) {
		Dwarf_Attribute attribute;

		switch (dwarf_tag(die)) {
		case DW_TAG_typedef:
		case DW_TAG_const_type:
		case DW_TAG_volatile_type:
		case DW_TAG_restrict_type:
		case DW_TAG_atomic_type:
			if (!type_attribute(die, die))
				return false;
			break;
		case DW_TAG_structure_type:
		case DW_TAG_class_type:
		case DW_TAG_union_type:
			if (dwarf_attr(die, DW_AT_signature, &attribute) != NULL) {
				if (dwarf_formref_die(&attribute, die) == NULL)
					return false;
				break;
			}
			if (!has_attribute(die, DW_AT_declaration))
				return true;
			if (was_declared || !find_definition(types, die))
				return false;
			was_declared = true;
			break;
		default:
			return dwarf_tag(die) != DW_TAG_invalid;
		}
	}
	return false;
}

/* 0 = not known. */
static uint64_t
bytes_of(Dwarf_Die *type)
{
	Dwarf_Word bytes;

	return dwarf_aggregate_size(type, &bytes) == 0 ? bytes : 0;
}

static bool
is_pointer(Dwarf_Die *type)
{
	int tag = dwarf_tag(type);

	return tag == DW_TAG_pointer_type || tag == DW_TAG_reference_type || tag == DW_TAG_rvalue_reference_type;
}

static const Dwarf_Die no_node;

static const struct symbol_type *
new_type(struct symbolizer_types *types, Dwarf_Die *die, unsigned arrays, const Dwarf_Die *node)
{
	struct symbol_type *type;

	if (!strip(types, die))
		return NULL;
	type = text_pool_room(types->pool, sizeof(*type));
	*type = (struct symbol_type){ types, *die, arrays, *node };
	return type;
}

const struct symbol_type *
symbolizer_types_variable(struct symbolizer_types *types, uint64_t address, bool is_thread_local)
{
	const struct entry *found = find(&types->variables, address | (is_thread_local ? THREAD_LOCAL : 0));
	Dwarf_Die die;

	if (found == NULL)
		return NULL;
	die = die_of(found);
	return symbolizer_types_of(types, &die);
}

const struct symbol_type *
symbolizer_types_of(struct symbolizer_types *types, Dwarf_Die *variable)
{
	Dwarf_Die type;

	return type_attribute(variable, &type) ? new_type(types, &type, 0, &no_node) : NULL;
}

const struct symbol_type *
symbolizer_types_class(struct symbolizer_types *types, const char *name)
{
	const struct entry *found = find(&types->classes, hash_text(HASH_START, name));
	Dwarf_Die die;

	if (found == NULL)
		return NULL;
	die = die_of(found);
	return new_type(types, &die, 0, &no_node);
}

/* ---- members ---- */

struct question {
	struct symbolizer_types *types;
	unsigned visits; // that are left
	size_t used;
	char *name; // SYMBOL_MEMBER_BYTES
	bool is_one_of_many;
	const char *member; // the innermost one
	bool may_lead;      // a pointer stands there, or a union that may be one
	bool has_leads;
	Dwarf_Die leads;
	unsigned arrays;
	const char *node_name; // it leads to the class that nodes of this name begin with; NULL = it does not
	Dwarf_Die node;        // the one of this container
};

/* Where the standard libraries keep the begin of many. */
static unsigned
arrays_of(const char *member)
{
	static const struct {
		const char *name;
		unsigned arrays;
	} known[] = {
		{ "_M_start", 1 }, { "_M_finish", 1 }, { "__begin_", 1 }, { "__end_", 1 },
		{ "_M_map", 2 },   { "_M_node", 2 },   { "_M_cur", 1 },   { "_M_first", 1 },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (member != NULL && strcmp(member, known[i].name) == 0)
			return known[i].arrays;
	}
	return 0;
}

/* ---- nodes of containers ---- */

static bool
has_name(Dwarf_Die *type, const char *start)
{
	const char *name = dwarf_diename(type);

	return name != NULL && text_starts(name, start);
}

/* Of libstdc++: its containers know their nodes by the class alone that all of them begin with. */
static const char *
node_name_of(Dwarf_Die *type)
{
	static const char *const names[][2] = {
		{ "_Rb_tree_node_base", "_Rb_tree_node<" },
		{ "_Hash_node_base", "_Hash_node<" },
		{ "_List_node_base", "_List_node<" },
		{ "_Fwd_list_node_base", "_Fwd_list_node<" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (has_name(type, names[i][0]) || has_name(type, names[i][1]))
			return names[i][1];
	}
	return NULL;
}

bool
symbol_type_is_node(const struct symbol_type *type)
{
	Dwarf_Die die = type->die;
	const char *name = type->arrays == 0 ? node_name_of(&die) : NULL;

	return name != NULL && has_name(&die, name);
}

/* The argument of a template that has this name, or of its argument: of an allocator. */
static bool
find_argument(struct question *question, Dwarf_Die *of, unsigned depth)
{
	Dwarf_Die child;

	if (dwarf_child(of, &child) != 0)
		return false;
	do {
		if (question->visits == 0)
			return false;
		question->visits--;
		if (dwarf_tag(&child) != DW_TAG_template_type_parameter || !type_attribute(&child, &question->node) ||
		    !strip(question->types, &question->node))
			continue;
		if (has_name(&question->node, question->node_name))
			return true;
		Dwarf_Die argument = question->node;

		if (depth == 0 && find_argument(question, &argument, 1))
			return true;
	} while (dwarf_siblingof(&child, &child) == 0);
	return false;
}

/* The allocator of the nodes is a base class of the container, or of the member that has all its data. */
static bool
find_node(struct question *question, Dwarf_Die *container, unsigned depth)
{
	Dwarf_Die child;
	Dwarf_Die type;

	if (has_name(container, question->node_name)) {
		question->node = *container;
		return true;
	}
	if (find_argument(question, container, 0))
		return true;
	if (depth == CONTAINER_NESTING || dwarf_child(container, &child) != 0)
		return false;
	do {
		bool is_base = dwarf_tag(&child) == DW_TAG_inheritance;

		if (question->visits == 0)
			return false;
		question->visits--;
		if (!is_base && (dwarf_tag(&child) != DW_TAG_member || !has_name(&child, "_M_impl")))
			continue;
		if (type_attribute(&child, &type) && strip(question->types, &type) && find_node(question, &type, depth + 1))
			return true;
	} while (dwarf_siblingof(&child, &child) == 0);
	return false;
}

/* A word of this class was found; it may be a container. */
static void
see_container(struct question *question, Dwarf_Die *type)
{
	if (question->node_name != NULL && question->node.addr == NULL && !find_node(question, type, 0))
		question->node = no_node;
}

/* The first argument of a template. */
static bool
first_argument(Dwarf_Die *of, Dwarf_Die *argument)
{
	Dwarf_Die child;

	if (dwarf_child(of, &child) != 0)
		return false;
	while (dwarf_tag(&child) != DW_TAG_template_type_parameter) {
		if (dwarf_siblingof(&child, &child) != 0)
			return false;
	}
	return type_attribute(&child, argument);
}

/* ---- names ---- */

/* What the compiler's own headers name is nobody's business: of `_M_impl._M_start` of a vector the name is the vector's. */
static bool
is_reserved(const char *name)
{
	return name[0] == '_' && (name[1] == '_' || isupper((unsigned char)name[1]));
}

static void
add_name(struct question *question, const char *name)
{
	int length;

	if (name == NULL || is_reserved(name))
		return;
	length = snprintf(question->name + question->used, SYMBOL_MEMBER_BYTES - question->used, "%s.%s",
	                  question->is_one_of_many ? "[*]" : "", name);
	question->is_one_of_many = false;
	question->used += length > 0 ? (size_t)length : 0;
	if (question->used >= SYMBOL_MEMBER_BYTES)
		question->used = SYMBOL_MEMBER_BYTES - 1;
	(void)text_clean(question->name, question->used);
}

static bool find_in(struct question *question, Dwarf_Die type, uint64_t offset, unsigned depth);

static bool
find_in_array(struct question *question, Dwarf_Die *array, uint64_t offset, unsigned depth)
{
	uint64_t all = bytes_of(array);
	uint64_t bytes;
	Dwarf_Die element;

	/* Of Fortran: what stands there begins with the address of the elements. */
	if (has_attribute(array, DW_AT_data_location)) {
		question->may_lead = offset == 0;
		return offset == 0;
	}
	if (!type_attribute(array, &element) || !strip(question->types, &element) || (all != 0 && offset >= all))
		return false;
	bytes = bytes_of(&element);
	if (bytes == 0)
		return false;
	if ((dwarf_tag(&element) == DW_TAG_base_type || dwarf_tag(&element) == DW_TAG_enumeration_type) &&
	    bytes < WORD_BYTES) // of characters, or of std::byte: something else lies there
		return true;
	question->is_one_of_many = true;
	return find_in(question, element, offset % bytes, depth + 1);
}

/* A member, or a base class. */
static bool
find_in_member(struct question *question, Dwarf_Die *member, uint64_t offset, unsigned depth)
{
	struct question before = *question;
	bool is_base = dwarf_tag(member) == DW_TAG_inheritance;
	Dwarf_Attribute attribute;
	Dwarf_Word start;
	uint64_t bytes;
	Dwarf_Die type;

	if (dwarf_attr(member, DW_AT_data_member_location, &attribute) == NULL || // a bit field, or static
	    dwarf_formudata(&attribute, &start) != 0 ||                           // a virtual base class
	    offset < start || has_attribute(member, DW_AT_artificial) || !type_attribute(member, &type) ||
	    !strip(question->types, &type))
		return false;
	bytes = bytes_of(&type);
	if (bytes != 0 && offset - start >= bytes)
		return false;
	if (!is_base) {
		add_name(question, dwarf_diename(member));
		question->member = dwarf_diename(member);
	}
	if (find_in(question, type, offset - start, depth + 1))
		return true;
	before.visits = question->visits;
	*question = before;
	question->name[question->used] = '\0';
	return false;
}

/* Variants of an enumeration of Rust: which of them it is nobody knows. False: none has a member there. */
static bool
see_variants(struct question *question, Dwarf_Die *part, uint64_t offset, unsigned depth)
{
	bool is_there = false;
	Dwarf_Die variant;
	Dwarf_Die member;

	if (dwarf_child(part, &variant) != 0)
		return false;
	do {
		if (dwarf_tag(&variant) != DW_TAG_variant || dwarf_child(&variant, &member) != 0)
			continue;
		do {
			struct question other = *question;

			if (question->visits == 0)
				return is_there;
			other.visits--;
			if (dwarf_tag(&member) == DW_TAG_member && find_in_member(&other, &member, offset, depth)) {
				is_there = true;
				question->may_lead = question->may_lead || other.may_lead;
			}
			question->visits = other.visits;
			question->name[question->used] = '\0';
		} while (dwarf_siblingof(&member, &member) == 0);
	} while (dwarf_siblingof(&variant, &variant) == 0);
	return is_there;
}

/* Empty base classes share their place with members: all that are there are tried. */
static bool
find_in_class(struct question *question, Dwarf_Die *type, uint64_t offset, unsigned depth)
{
	Dwarf_Die member;

	/* Room for an object, which has a type all the same. */
	if ((has_name(type, "__aligned_membuf<") || has_name(type, "__aligned_buffer<")) && first_argument(type, &member))
		return find_in(question, member, offset, depth + 1);
	if (dwarf_child(type, &member) != 0)
		return false;
	do {
		int tag = dwarf_tag(&member);

		if (question->visits == 0)
			return false;
		question->visits--;
		if ((tag == DW_TAG_member || tag == DW_TAG_inheritance) && find_in_member(question, &member, offset, depth)) {
			see_container(question, type);
			return true;
		}
		if (tag == DW_TAG_variant_part && see_variants(question, &member, offset, depth))
			return true;
	} while (dwarf_siblingof(&member, &member) == 0);
	return false;
}

/* An iterator: which container it belongs to is not known. */
static bool
is_of_iterator(const char *member)
{
	return member != NULL && (strcmp(member, "_M_node") == 0 || strcmp(member, "_M_cur") == 0);
}

/* Does it lead to a node, or to pointers to such? */
static void
see_node(struct question *question)
{
	Dwarf_Die type = question->leads;

	if (!question->has_leads || !strip(question->types, &type))
		return;
	if (!is_pointer(&type) || (type_attribute(&type, &type) && strip(question->types, &type)))
		question->node_name = node_name_of(&type);
	if (question->node_name != NULL && is_of_iterator(question->member)) {
		question->node_name = NULL;
		question->arrays = 0;
	}
}

/* Which of its members it is nobody knows. `std::function` has a pointer to a member for two words of anything. */
static void
see_union(struct question *question, Dwarf_Die *type, uint64_t offset, unsigned depth)
{
	Dwarf_Die member;
	Dwarf_Die of;

	if (dwarf_child(type, &member) != 0)
		return;
	do {
		struct question other = *question;

		if (question->visits == 0)
			return;
		other.visits--;
		if (dwarf_tag(&member) == DW_TAG_member && type_attribute(&member, &of))
			question->may_lead = dwarf_tag(&of) == DW_TAG_ptr_to_member_type ||
			                     (find_in(&other, of, offset, depth + 1) && other.may_lead);
		question->visits = other.visits;
		question->name[question->used] = '\0';
	} while (!question->may_lead && dwarf_siblingof(&member, &member) == 0);
}

static bool
find_in(struct question *question, Dwarf_Die type, uint64_t offset, unsigned depth)
{
	uint64_t bytes;

	if (depth >= NESTING_MAX || !strip(question->types, &type))
		return false;
	if (is_pointer(&type)) {
		if (offset != 0)
			return false;
		question->may_lead = true;
		question->has_leads = type_attribute(&type, &question->leads);
		question->arrays = arrays_of(question->member);
		see_node(question);
		return true;
	}
	switch (dwarf_tag(&type)) {
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
		return find_in_class(question, &type, offset, depth);
	case DW_TAG_array_type:
		return find_in_array(question, &type, offset, depth);
	case DW_TAG_union_type:
		see_union(question, &type, offset, depth);
		break;
	default:
		break;
	}
	bytes = bytes_of(&type);
	return bytes >= WORD_BYTES && offset <= bytes - WORD_BYTES;
}

static bool
find_member(const struct symbol_type *type, int64_t offset, struct member_answer *answer)
{
	struct question question = { .types = type->types, .visits = MEMBERS_MAX, .name = answer->name };
	Dwarf_Die die = type->die;
	Dwarf_Die node = type->node;
	int64_t bytes;

	if (type->arrays != 0) {
		bytes = (int64_t)(bytes_of(&die) & INT64_MAX);
		if (bytes == 0)
			return false;
		question.is_one_of_many = true;
		offset %= bytes;
		offset += offset < 0 ? bytes : 0;
	}
	question.is_one_of_many = question.is_one_of_many || symbol_type_is_node(type);
	if (offset < 0 || !find_in(&question, die, (uint64_t)offset, 0))
		return false;
	answer->may_lead = question.may_lead;
	if (question.has_leads && strip(type->types, &question.leads)) {
		unsigned arrays = question.arrays;

		if (arrays == 0 && type->arrays > 1)
			arrays = type->arrays - 1;
		if (arrays == 0 && is_pointer(&question.leads)) // of pointers to pointers: a table
			arrays = 1;
		if (question.node_name != NULL && question.node.addr == NULL && has_name(&node, question.node_name))
			question.node = node;
		if (question.node.addr != NULL && !is_pointer(&question.leads)) {
			question.leads = question.node;
			arrays = 0; // as in a list `_M_node` is
		}
		answer->leads = new_type(type->types, &question.leads, arrays, &question.node);
	}
	return true;
}

static const struct member_answer *
answer_of(const struct symbol_type *type, int64_t offset)
{
	const struct member_question question = { type->die.addr, type->node.addr, type->arrays, offset };
	struct member_answer *answer;

	HASH_FIND(hh, type->types->answers, &question, sizeof(question), answer);
	if (answer == NULL) {
		answer = memory_zeroed(1, sizeof(*answer));
		answer->question = question;
		answer->is_known = find_member(type, offset, answer);
		HASH_ADD(hh, type->types->answers, question, sizeof(question), answer);
	}
	return answer;
}

bool
symbolizer_types_member(const struct symbol_type *type, int64_t offset, char name[SYMBOL_MEMBER_BYTES],
                        const struct symbol_type **leads)
{
	const struct member_answer *answer = answer_of(type, offset);

	memcpy(name, answer->name, SYMBOL_MEMBER_BYTES);
	*leads = answer->leads;
	return answer->is_known;
}

bool
symbolizer_types_may_lead(const struct symbol_type *type, int64_t offset)
{
	return answer_of(type, offset)->may_lead;
}

bool
symbol_type_is(const struct symbol_type *left, const struct symbol_type *right)
{
	return left == right ||
	       (left != NULL && right != NULL && left->die.addr == right->die.addr && left->arrays == right->arrays);
}
