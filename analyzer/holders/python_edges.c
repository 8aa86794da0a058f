/*
 * python_edges.c - how are the things called by which objects of Python hold others (see python_objects.h)?
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/items.h"
#include "base/amount.h"
#include "base/memory.h"
#include "base/place.h"
#include "base/text_clean.h"
#include "holders/python_objects.h"
#include "model/frame_rules.h"

#define WORD(addr) process_memory_word(python->memory, addr)
#define HALF(addr) process_memory_half(python->memory, addr)
#define OBJECT(addr) python_objects_at(python, addr)

#define TYPE_MEMBERS 240
#define FRAME_OBJECT_FRAME 24 // 3.11 on
#define MEMBER_BYTES 40
#define MEMBERS_MAX 64
#define BASES_MAX 32
#define KEYS_MAX (UINT64_C(1) << 32)
#define KEY_BYTES 40 // of a dictionary's key that are shown
#define NAMESPACE_KEYS 40
#define INSTANCES_FOLLOWED 256 // of one class: thousands would take all room
#define DICT_KEYS 32           // in its object
#define MODULE_NAMES 16        // its dictionary, in its object

/* ---- texts ---- */

static size_t
put_character(uint32_t character, char *text)
{
	if (character < 0x80) {
		text[0] = (char)character;
		return 1;
	}
	if (character < 0x800) {
		text[0] = (char)(0xc0 | character >> 6);
		text[1] = (char)(0x80 | (character & 0x3f));
		return 2;
	}
	if (character < 0x10000) {
		text[0] = (char)(0xe0 | character >> 12);
		text[1] = (char)(0x80 | (character >> 6 & 0x3f));
		text[2] = (char)(0x80 | (character & 0x3f));
		return 3;
	}
	text[0] = '?';
	return 1;
}

bool
python_objects_string(struct python_objects *python, uint64_t addr, char *text, size_t room)
{
	const struct python_layout *shape = python->shape;
	const struct python_type *type = addr != 0 ? python_objects_type(python, OBJECT(addr + 8)) : NULL;
	size_t used = 0;

	text[0] = '\0';
	if (type == NULL || strcmp(type->name, "str") != 0)
		return false;

	uint64_t length = WORD(addr + 16);
	uint32_t state = HALF(addr + 32) >> (python->shift != 0 && shape->version >= 0x030e ? 6 : 0);
	uint32_t width = state >> 2 & 7;

	if ((state >> 5 & 1) == 0 || (width != 1 && width != 2 && width != 4)) // not compact
		return false;

	uint64_t data = addr + ((state >> 6 & 1) != 0 ? shape->string_ascii_data : shape->string_data);

	for (uint64_t i = 0; i < length; i++) {
		uint32_t character = 0;

		if (used + 4 >= room) {
			break;
		}
		(void)process_memory_read(python->memory, data + i * width, &character, width);
		if (character >= 0xd800 && character < 0xe000)
			character = '?'; // half of a pair
		used += put_character(character, text + used);
	}
	(void)text_clean(text, used);
	text[used] = '\0';
	return true;
}

static void
int_text(struct python_objects *python, uint64_t addr, char *text, size_t room)
{
	bool is_tagged = python->shape->version >= 0x030c;
	uint64_t tag = WORD(addr + 16);
	int64_t size = is_tagged ? (int64_t)(tag >> 3) : (int64_t)tag < 0 ? -(int64_t)tag : (int64_t)tag;
	bool is_negative = is_tagged ? (tag & 3) == 2 : (int64_t)tag < 0;
	uint64_t value = 0;

	for (int64_t i = 0; i < size && size <= 2; i++)
		value |= (uint64_t)HALF(addr + 24 + 4 * (uint64_t)i) << 30 * i;
	if (size > 2)
		(void)snprintf(text, room, "int");
	else
		(void)snprintf(text, room, "%s%" PRIu64, is_negative ? "-" : "", value);
}

/* A key as a person would write it in Python. */
static void
key_text(struct python_objects *python, uint64_t addr, char text[PYTHON_NAME_BYTES])
{
	const struct python_type *type = addr != 0 ? python_objects_type(python, OBJECT(addr + 8)) : NULL;
	char string[KEY_BYTES];

	if (type == NULL)
		(void)snprintf(text, PYTHON_NAME_BYTES, "?");
	else if (python_objects_string(python, addr, string, sizeof(string)))
		(void)snprintf(text, PYTHON_NAME_BYTES, "'%s'", string);
	else if (strcmp(type->name, "int") == 0)
		int_text(python, addr, text, PYTHON_NAME_BYTES);
	else
		(void)snprintf(text, PYTHON_NAME_BYTES, "<%.50s>", type->name);
}

void
python_objects_type_name(const struct python_type *type, char name[2 * PYTHON_NAME_BYTES])
{
	(void)snprintf(name, 2 * PYTHON_NAME_BYTES, "%s%s%s", type->module, type->module[0] != '\0' ? "." : "", type->name);
}

/* ---- dictionaries ---- */

bool
python_objects_keys(struct python_objects *python, uint64_t addr, struct python_keys *keys)
{
	uint64_t size;

	if (addr < PROCESS_MEMORY_PAGE || addr % 8 != 0)
		return false;
	if (python->shape->has_shaped_keys) {
		uint64_t shape = WORD(addr + 8); // bytes: log2 of the size, log2 of the index's bytes, kind
		uint64_t log2 = shape >> 8 & 0xff;
		uint64_t kind = shape >> 16 & 0xff;

		keys->count = WORD(addr + 24);
		if (kind > 2 || log2 > 40 || keys->count > KEYS_MAX)
			return false;
		keys->first = addr + 32 + (UINT64_C(1) << log2);
		keys->step = kind == 0 ? 24 : 16;
		keys->key_offset = kind == 0 ? 8 : 0;
		keys->is_split = kind == 2;
		return true;
	}
	size = WORD(addr + 8);
	keys->count = WORD(addr + 32);
	if (size == 0 || (size & (size - 1)) != 0 || size > KEYS_MAX || keys->count > size)
		return false;

	uint64_t width = size <= 0xff ? 1 : size <= 0xffff ? 2 : size <= UINT32_MAX ? 4 : 8;

	keys->first = addr + 40 + size * width;
	keys->step = 24;
	keys->key_offset = 8;
	keys->is_split = false;
	return true;
}

/* While a dictionary moves to larger storage its entries are there before their number. */
bool
python_objects_keys_of(struct python_objects *python, const struct python_object *dictionary, struct python_keys *keys)
{
	if (!python_objects_keys(python, WORD(dictionary->addr + DICT_KEYS), keys))
		return false;
	keys->count = amount_greater(keys->count, amount_lesser(WORD(dictionary->addr + 16), KEYS_MAX));
	return true;
}

static uint64_t
key_at(struct python_objects *python, const struct python_keys *keys, uint64_t index)
{
	return index < keys->count ? OBJECT(keys->first + index * keys->step + keys->key_offset) : 0;
}

static uint64_t
value_at(struct python_objects *python, const struct python_keys *keys, uint64_t index)
{
	return OBJECT(keys->first + index * keys->step + keys->key_offset + 8);
}

/* The address of the keys that instances share lies behind the type object of a class in Python, among others. */
uint64_t
python_objects_cached_keys(struct python_objects *python, struct python_type *type)
{
	char name[PYTHON_NAME_BYTES];

	if (type->has_looked_for_keys)
		return type->cached_keys;
	type->has_looked_for_keys = true;
	for (uint64_t at = type->addr + 408; at < type->addr + 1008 && type->cached_keys == 0; at += 8) {
		uint64_t addr = WORD(at);
		struct python_keys keys;

		if (addr >= PROCESS_MEMORY_PAGE && addr >> 47 == 0 && python_objects_keys(python, addr, &keys) &&
		    keys.is_split && keys.count != 0 && keys.count <= MEMBERS_MAX &&
		    python_objects_string(python, key_at(python, &keys, 0), name, sizeof(name)))
			type->cached_keys = addr;
	}
	return type->cached_keys;
}

bool
python_objects_module(struct python_objects *python, const struct python_object *object,
                      struct python_namespace *module)
{
	char file[1024];
	struct python_keys keys;
	char key[PYTHON_NAME_BYTES];
	bool has_name = false;
	bool has_mark = false;

	*module = (struct python_namespace){ .name = "?" };
	if (object->type->kind != PYTHON_DICT || !python_objects_keys(python, WORD(object->addr + 32), &keys) ||
	    keys.is_split)
		return false;
	for (uint64_t i = 0; i < keys.count && i < NAMESPACE_KEYS; i++) {
		if (!python_objects_string(python, key_at(python, &keys, i), key, sizeof(key)))
			continue;
		uint64_t value = value_at(python, &keys, i);

		if (strcmp(key, "__name__") == 0)
			has_name = python_objects_string(python, value, module->name, sizeof(module->name));
		else if (strcmp(key, "__file__") == 0)
			module->is_library = python_objects_string(python, value, file, sizeof(file)) &&
			                     frame_rules_is_library(file);
		module->has_results = module->has_results || strcmp(key, "Out") == 0;
		has_mark = has_mark || strcmp(key, "__spec__") == 0 || strcmp(key, "__builtins__") == 0 ||
		           strcmp(key, "__loader__") == 0;
	}
	return has_name && has_mark;
}

/*
 * The dictionary of modules, which the state of the interpreter leads to: where that stands there differs from version to version. The first
 * module is `sys`.
 */
static bool
is_sys_modules(struct python_objects *python, uint64_t addr, struct python_keys *keys)
{
	char name[PYTHON_NAME_BYTES];
	const struct python_type *type = addr >= PROCESS_MEMORY_PAGE && addr >> 47 == 0 &&
	                                         python_objects_is_own(python, OBJECT(addr + PYTHON_OBJECT_TYPE))
	                                     ? python_objects_type(python, OBJECT(addr + PYTHON_OBJECT_TYPE))
	                                     : NULL;

	return type != NULL && type->kind == PYTHON_DICT && python_objects_keys(python, WORD(addr + DICT_KEYS), keys) &&
	       !keys->is_split && python_objects_string(python, key_at(python, keys, 0), name, sizeof(name)) &&
	       strcmp(name, "sys") == 0;
}

static void
find_modules(struct python_objects *python)
{
	struct python_keys keys;
	uint64_t offset = 0;

	python->has_modules = true;
	while (offset < PYTHON_STATE_SEARCHED && !is_sys_modules(python, OBJECT(python->interpreter + offset), &keys))
		offset += 8;
	for (uint64_t i = 0; offset < PYTHON_STATE_SEARCHED && i < keys.count; i++) {
		uint64_t module = value_at(python, &keys, i);
		const struct python_type *type = module != 0 ? python_objects_type(python, OBJECT(module + PYTHON_OBJECT_TYPE))
		                                             : NULL;
		struct python_module *added;

		if (type == NULL || type->kind != PYTHON_MODULE)
			continue;
		added = MEMORY_NEXT(python->modules, python->module_count);
		added->names = OBJECT(module + MODULE_NAMES);
		(void)python_objects_string(python, key_at(python, &keys, i), added->name, sizeof(added->name));
	}
}

/* Does the module's dictionary have the class? */
static bool
has_class(struct python_objects *python, const struct python_module *module, const struct python_type *type)
{
	struct python_keys keys;
	bool is_found = false;

	if (!python_objects_keys(python, WORD(module->names + DICT_KEYS), &keys) || keys.is_split)
		return true; // nobody knows
	for (uint64_t i = 0; i < keys.count && !is_found; i++)
		is_found = value_at(python, &keys, i) == type->addr;
	return is_found;
}

bool
python_objects_is_named(struct python_objects *python, struct python_type *type)
{
	const char *name = type->module[0] != '\0' ? type->module : "__main__";

	if (!type->is_of_python)
		return true;
	if (!python->has_modules)
		find_modules(python);
	if (!type->has_looked_for_name)
		type->is_named = python->module_count == 0 ||
		                 ANY(module, python->modules, python->module_count,
		                     strcmp(module->name, name) == 0 && has_class(python, module, type));
	type->has_looked_for_name = true;
	return type->is_named;
}

bool
python_objects_holds_class(struct python_objects *python, const struct python_object *object)
{
	const struct python_object class = { .addr = object->type->addr };

	return !python_objects_is_named(python, object->type) &&
	       python_objects_references(python, &class) <= INSTANCES_FOLLOWED;
}

/* item_at: of a value, or of a key. */
static void
dict_edge(struct python_objects *python, const struct python_object *object, uint64_t item_at, struct python_edge *edge)
{
	uint64_t values = WORD(object->addr + 40);
	struct python_keys keys;
	uint64_t key;

	edge->kind = PYTHON_EDGE_KEY;
	if (!python_objects_keys_of(python, object, &keys)) {
		(void)snprintf(edge->name, sizeof(edge->name), "?");
		return;
	}
	if (values != 0 && (item_at < keys.first || item_at >= keys.first + keys.step * keys.count)) {
		uint64_t first = values + (python_shape_attributes(python->shape) == PYTHON_ATTRIBUTES_INLINE ? 8 : 0);

		key = key_at(python, &keys, (item_at - first) / 8);
	} else {
		key = key_at(python, &keys, (item_at - keys.first) / keys.step);
		if ((item_at - keys.first) % keys.step == keys.key_offset)
			edge->kind = PYTHON_EDGE_KEY_ITSELF;
	}
	key_text(python, key, edge->name);
}

/* ---- attributes ---- */

/* The name is in the table of members of a type of C. A number keeps nothing alive. */
static bool
member_of(struct python_objects *python, const struct python_type *type, uint64_t offset, struct python_edge *edge)
{
	uint64_t members = WORD(type->addr + TYPE_MEMBERS);
	uint32_t kind;

	for (unsigned i = 0; members != 0 && i < MEMBERS_MAX; i++) {
		uint64_t text = WORD(members + i * MEMBER_BYTES);

		if (text == 0)
			break;
		if (WORD(members + i * MEMBER_BYTES + 16) != offset + python->shift)
			continue;
		kind = HALF(members + i * MEMBER_BYTES + 8); // structmember.h: texts of C, objects; the others are numbers
		edge->role = kind == 5 || kind == 6 || kind == 16 ? PYTHON_MEMBER_OBJECT : PYTHON_MEMBER_BORROWED;
		return process_memory_text(python->memory, text, edge->name, PYTHON_NAME_BYTES);
	}
	return false;
}

/* A slot of a class of Python: its members lie behind the type; descriptors in its dictionary have their names. */
static bool
slot_of(struct python_objects *python, const struct python_type *type, uint64_t offset, char name[PYTHON_NAME_BYTES])
{
	struct python_keys keys;

	if (type->dict == 0 || !python_objects_keys(python, WORD(type->dict + 32), &keys) || keys.is_split)
		return false;
	for (uint64_t i = 0; i < keys.count && i < 500; i++) {
		uint64_t entry = keys.first + i * keys.step + keys.key_offset;
		uint64_t value = OBJECT(entry + 8);
		const struct python_type *of = value != 0 ? python_objects_type(python, OBJECT(value + 8)) : NULL;

		if (of != NULL && strcmp(of->name, "member_descriptor") == 0 &&
		    WORD(WORD(value + 40) + 16) == offset + python->shift)
			return python_objects_string(python, OBJECT(entry), name, PYTHON_NAME_BYTES);
	}
	return false;
}

static void
member_edge(const char *name, enum python_member_role role, struct python_edge *edge)
{
	edge->kind = PYTHON_EDGE_ATTRIBUTE;
	edge->role = role;
	(void)snprintf(edge->name, sizeof(edge->name), "%s", name);
}

static void
attribute_edge(struct python_objects *python, struct python_type *type, uint64_t offset, struct python_edge *edge)
{
	const char *first = type->kind == PYTHON_TYPE ? "type" : type->name; // of any metaclass
	struct python_type *of = type;

	edge->kind = PYTHON_EDGE_ATTRIBUTE;
	for (unsigned i = 0; of != NULL && i < BASES_MAX; i++) {
		const struct python_member *known = python_shape_member(python->shape, i == 0 ? first : of->name,
		                                                        i == 0 && type->is_exception, offset);

		if (known != NULL) {
			member_edge(known->name, known->role, edge);
			return;
		}
		if (i == 0 && type->dict_offset > 0 && (uint64_t)type->dict_offset == offset) {
			member_edge("__dict__", PYTHON_MEMBER_NAMES, edge); // before members: of a type of C one says where it is
			return;
		}
		if (member_of(python, of, offset, edge) || slot_of(python, of, offset, edge->name))
			return;
		of = python_objects_type(python, of->base);
	}
	edge->kind = PYTHON_EDGE_UNKNOWN;
	edge->number = offset;
}

/* One of the values whose keys instances share. */
static void
value_edge(struct python_objects *python, struct python_type *type, uint64_t index, struct python_edge *edge)
{
	uint64_t cached = python_objects_cached_keys(python, type);
	struct python_keys keys;

	edge->kind = PYTHON_EDGE_ATTRIBUTE;
	if (cached == 0 || !python_objects_keys(python, cached, &keys) ||
	    !python_objects_string(python, key_at(python, &keys, index), edge->name, sizeof(edge->name)))
		(void)snprintf(edge->name, sizeof(edge->name), "?");
}

/* ---- frames ---- */

static void
function_text(struct python_objects *python, uint64_t code, char text[2 * PYTHON_NAME_BYTES])
{
	const struct python_layout *shape = python->shape;
	char name[PYTHON_NAME_BYTES];
	char file[1024];
	uint64_t name_addr = OBJECT(code +
	                            (shape->code_qualified_name != 0 ? shape->code_qualified_name : shape->code_name));

	if (!python_objects_string(python, name_addr, name, sizeof(name)))
		(void)snprintf(name, sizeof(name), "?");
	(void)python_objects_string(python, OBJECT(code + shape->code_file), file, sizeof(file));
	if (strcmp(name, "<module>") == 0)
		(void)snprintf(text, 2 * PYTHON_NAME_BYTES, "%.80s", place_base(file));
	else
		(void)snprintf(text, 2 * PYTHON_NAME_BYTES, "%s() (%.40s:%u)", name, place_base(file),
		               HALF(code + shape->code_first_line));
}

static bool
local_name(struct python_objects *python, uint64_t code, uint64_t index, char name[PYTHON_NAME_BYTES])
{
	static const uint64_t parts_to_3_10[] = { 72, 88, 80 };
	const uint64_t from_3_11 = python->shape->code_local_names;
	const uint64_t *parts = python->shape->has_shaped_keys ? &from_3_11 : parts_to_3_10;
	size_t count = python->shape->has_shaped_keys ? 1 : 3;

	for (size_t i = 0; i < count; i++) {
		uint64_t tuple = OBJECT(code + parts[i]);
		uint64_t items = WORD(tuple + 16);

		if (index < items)
			return python_objects_string(python, OBJECT(tuple + python->shape->tuple_items + 8 * index), name,
			                             PYTHON_NAME_BYTES);
		index -= items;
	}
	return false;
}

void
python_objects_local(struct python_objects *python, const struct python_frame *frame, uint64_t at,
                     struct python_edge *edge)
{
	uint64_t first = frame->start + python->shape->frame_locals;

	*edge = (struct python_edge){ .kind = PYTHON_EDGE_LOCAL };
	function_text(python, frame->code, edge->function);
	if (at < first || !local_name(python, frame->code, (at - first) / 8, edge->name))
		edge->kind = PYTHON_EDGE_TEMPORARY;
}

bool
python_objects_is_argument(struct python_objects *python, const struct python_frame *frame, uint64_t at)
{
	const struct python_layout *shape = python->shape;
	/* In front of the first line: arguments, those of them that are positional alone, those that have to be named. */
	uint64_t counts = frame->code + shape->code_first_line - (shape->has_shaped_keys ? 16u : 24u);
	uint64_t first = frame->start + shape->frame_locals;

	return at >= first && (at - first) / 8 < (uint64_t)HALF(counts) + HALF(counts + 8);
}

bool
python_objects_is_of_library(struct python_objects *python, const struct python_frame *frame)
{
	char file[1024];

	return python_objects_string(python, OBJECT(frame->code + python->shape->code_file), file, sizeof(file)) &&
	       frame_rules_is_library(file);
}

/* After its function has ended a frame object has its frame inside; before that the frame lies elsewhere. */
struct python_frame
python_objects_inner_frame(struct python_objects *python, const struct python_object *object)
{
	const struct python_layout *shape = python->shape;
	const enum python_type_kind kind = object->type->kind;
	uint64_t offset = kind == PYTHON_GENERATOR ? shape->generator_frame : shape->frame_inline;
	bool is_inside = kind == PYTHON_GENERATOR ? offset != 0
	                 : kind == PYTHON_FRAME && shape->frame_object != 0
	                     ? WORD(object->addr + FRAME_OBJECT_FRAME) == object->addr + offset
	                     : false;
	struct python_frame frame = { .start = is_inside ? object->addr + offset : 0 };

	if (kind == PYTHON_FRAME && shape->frame_object == 0)
		frame.start = object->addr;
	if (frame.start != 0)
		frame.code = python_objects_frame_code(python, frame.start);
	return frame;
}

void
python_objects_edge(struct python_objects *python, const struct python_object *object, uint64_t at, uint64_t item_at,
                    struct python_edge *edge)
{
	struct python_type *type = object->type;
	int64_t offset = (int64_t)(at - object->addr);
	const struct python_frame frame = python_objects_inner_frame(python, object);

	*edge = (struct python_edge){ 0 };
	if (offset == PYTHON_OBJECT_TYPE) {
		member_edge("__class__", PYTHON_MEMBER_OBJECT, edge);
	} else if (offset < 0 && item_at != 0) {
		uint64_t values = WORD(at);

		values += values & 1; // a tag: one less than the address

		value_edge(python, type, (item_at - values) / 8, edge);
	} else if (offset < 0) {
		member_edge("__dict__", PYTHON_MEMBER_NAMES, edge);
	} else if (type->has_inline_values && (uint64_t)offset >= type->basic_bytes + 8) {
		value_edge(python, type, ((uint64_t)offset - type->basic_bytes - 8) / 8, edge);
	} else if (type->kind == PYTHON_LIST && item_at != 0) {
		edge->kind = PYTHON_EDGE_INDEX;
		edge->number = (item_at - WORD(at)) / 8;
	} else if (type->kind == PYTHON_TUPLE && offset >= python->shape->tuple_items) {
		edge->kind = PYTHON_EDGE_INDEX;
		edge->number = ((uint64_t)offset - python->shape->tuple_items) / 8;
	} else if (type->kind == PYTHON_DICT && item_at != 0) {
		dict_edge(python, object, item_at, edge);
	} else if (type->kind == PYTHON_SET || type->kind == PYTHON_DEQUE) {
		edge->kind = PYTHON_EDGE_ELEMENT;
	} else if (frame.start != 0 && at >= frame.start + python->shape->frame_locals) {
		python_objects_local(python, &frame, at, edge);
	} else {
		attribute_edge(python, type, (uint64_t)offset, edge);
	}
}
