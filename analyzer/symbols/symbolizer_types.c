/*
 * symbolizer_types.c - types of variables, classes, and their members (see symbolizer_types.h).
 *
 * A type is its entry in the debug information, which debug_index.c finds.
 */
#include "symbols/symbolizer_types.h"

#include <ctype.h>
#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/items.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/text_clean.h"
#include "base/text_start.h"
#include "symbols/debug_index.h"

#define MEMBERS_MAX 10000u   // that are looked at for one question
#define NESTING_MAX 48u      // of members in members, of names for types
#define WORD_BYTES 8u        // of a pointer
#define CONTAINER_NESTING 4u // of base classes of a container, up to the allocator

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
	struct debug_index *index;
	struct member_answer *answers;
};

struct symbol_type {
	struct symbolizer_types *types;
	Dwarf_Die die;
	unsigned arrays; // it is one of many; 2: and so is what each of them leads to
	Dwarf_Die node;  // of a container, to which it leads by the class that all nodes begin with; no address: not known
};

struct symbolizer_types *
symbolizer_types_new(struct symbolizer_dwarf *dwarf, struct text_pool *pool)
{
	struct symbolizer_types *types = memory_zeroed(1, sizeof(*types));

	types->pool = pool;
	types->index = debug_index_new(dwarf);
	return types;
}

void
symbolizer_types_free(struct symbolizer_types *types)
{
	if (types == NULL)
		return;
	HASH_FREE(types->answers, free);
	debug_index_free(types->index);
	free(types);
}

/* ---- types ---- */

static bool
type_attribute(Dwarf_Die *die, Dwarf_Die *type)
{
	Dwarf_Attribute attribute;

	return dwarf_attr_integrate(die, DW_AT_type, &attribute) != NULL && dwarf_formref_die(&attribute, type) != NULL;
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
			if (dwarf_hasattr(die, DW_AT_declaration) == 0)
				return true;
			if (was_declared || !debug_index_definition(types->index, die))
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
	Dwarf_Die die;

	return debug_index_variable(types->index, address, is_thread_local, &die) ? symbolizer_types_of(types, &die) : NULL;
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
	Dwarf_Die die;

	return debug_index_class(types->index, name, &die) ? new_type(types, &die, 0, &no_node) : NULL;
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
	static const struct known {
		const char *name;
		unsigned arrays;
	} known[] = {
		{ "_M_start", 1 }, { "_M_finish", 1 }, { "__begin_", 1 }, { "__end_", 1 },
		{ "_M_map", 2 },   { "_M_node", 2 },   { "_M_cur", 1 },   { "_M_first", 1 },
	};

	const struct known *found = FIRST(row, known, COUNT_OF(known), member != NULL && strcmp(member, row->name) == 0);

	return found != NULL ? found->arrays : 0;
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
	if (name == NULL || is_reserved(name))
		return;

	int length = snprintf(question->name + question->used, SYMBOL_MEMBER_BYTES - question->used, "%s.%s",
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
	Dwarf_Die element;

	/* Of Fortran: what stands there begins with the address of the elements. */
	if (dwarf_hasattr(array, DW_AT_data_location) != 0) {
		question->may_lead = offset == 0;
		return offset == 0;
	}
	if (!type_attribute(array, &element) || !strip(question->types, &element) || (all != 0 && offset >= all))
		return false;

	uint64_t bytes = bytes_of(&element);

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
	Dwarf_Die type;

	if (dwarf_attr(member, DW_AT_data_member_location, &attribute) == NULL || // a bit field, or static
	    dwarf_formudata(&attribute, &start) != 0 ||                           // a virtual base class
	    offset < start || dwarf_hasattr(member, DW_AT_artificial) != 0 || !type_attribute(member, &type) ||
	    !strip(question->types, &type))
		return false;

	uint64_t bytes = bytes_of(&type);

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

	uint64_t bytes = bytes_of(&type);

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

	if (HASH_MADE(type->types->answers, question, question, answer))
		answer->is_known = find_member(type, offset, answer);
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
