/*
 * python_objects.c - types, small objects and what objects own (see python_objects.h). Names are in python_edges.c.
 */
#include "holders/python_objects.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

#include "base/hash.h"
#include "base/items.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/place.h"
#include "base/sorted.h"
#include "base/text_start.h"

#define WORD(addr) process_memory_word(python->memory, addr)
#define HALF(addr) process_memory_half(python->memory, addr)
#define OBJECT(addr) python_objects_at(python, addr)

/* In a type object. */
enum {
	TYPE_NAME = 24,
	TYPE_BASIC = 32,
	TYPE_ITEM = 40,
	TYPE_FLAGS = 168,
	TYPE_WEAK_OFFSET = 208,
	TYPE_BASE = 256,
	TYPE_DICT = 264,
	TYPE_DICT_OFFSET = 288,
	TYPE_BASES = 336,
	TYPE_SUBCLASSES = 360,
	TYPE_BYTES = 408, // of one without what a class in Python has behind it
};
/* In objects of C. */
enum {
	WEAK_CALLBACK = 24,
	SET_TABLE = 40,
	SET_SMALL = 64,
	DEQUE_FIRST = 24,
	DEQUE_LAST = 32,
	DEQUE_FIRST_INDEX = 40,
	DEQUE_LAST_INDEX = 48,
	DEQUE_BLOCK_ITEMS = 64,
	ARRAY_DATA = 16,
	ARRAY_SHAPE = 32,
	ARRAY_BASE = 48,
	ARRAY_TYPE = 56,
	ARRAY_FLAGS = 64,
	ARRAY_OWNS_DATA = 4,
};
#define IMMORTAL 0x3fffffffu                  // references: 3.12 and 3.13 have no more
#define FLAG_INLINE_VALUES (UINT64_C(1) << 2) // 3.13
#define FLAG_HEAP (UINT64_C(1) << 9)
#define FLAG_READY (UINT64_C(1) << 12)
#define FLAG_COLLECTED (UINT64_C(1) << 14)
#define FLAG_LIST (UINT64_C(1) << 25)
#define FLAG_TUPLE (UINT64_C(1) << 26)
#define FLAG_STRING (UINT64_C(1) << 28)
#define FLAG_DICT (UINT64_C(1) << 29)
#define FLAG_EXCEPTION (UINT64_C(1) << 30)
#define FLAG_TYPE (UINT64_C(1) << 31)

#define COLLECTOR_BYTES UINT64_C(16) // in front of a collected object
#define MANAGED_BYTES UINT64_C(16)   // in front of that: dictionary and weak references, or values
#define TYPES_DEEP 8                 // classes of classes
#define BASIC_MAX (1u << 20)
#define REFERENCES_MAX (UINT64_C(1) << 32)

#define FREE_THREADED_SHIFT 16 // of its objects: a thread, a lock and a count more in front of the type
#define POOL_HEADER 48
#define POOL_CLASSES 32
#define POOL_SLOTS 1024 // blocks of 16 bytes in the largest pool
#define POOLS_KEPT 2048

#define FRAMES_MAX 20000
#define THREADS_MAX 4096
#define STACK_WORDS_MAX 10000
#define STATE_BYTES 256u // of a thread's: what is before its buffers, in each version

/* What was asked for as a type, also when it is none: asking costs a chain of reads. */
struct known_type {
	uint64_t addr;
	struct python_type *type; // NULL = it is none
	UT_hash_handle hh;
};

struct python_pool {
	uint64_t base; // + 1; 0 = empty
	bool is_pool;
	uint32_t block_bytes;
	uint32_t end; // of what was ever given out, from the base
	uint64_t free[POOL_SLOTS / 64];
};

uint64_t
python_objects_at(struct python_objects *python, uint64_t addr)
{
	uint64_t value = WORD(addr);

	return value != 0 ? value + python->shift : 0;
}

/* ---- types ---- */

static bool
is_address(uint64_t addr)
{
	return addr % 8 == 0 && addr >= PROCESS_MEMORY_PAGE && addr >> 47 == 0;
}

/* Is it a class, and do its base classes lead to `type`? */
static bool
is_type(struct python_objects *python, uint64_t addr)
{
	uint64_t meta = is_address(addr) ? OBJECT(addr + 8) : 0;

	for (int i = 0; i < TYPES_DEEP && is_address(meta); i++) {
		if (meta == python->type_type)
			return true;
		if (OBJECT(OBJECT(meta + 8) + 8) != python->type_type)
			return false;
		meta = OBJECT(meta + TYPE_BASE);
	}
	return false;
}

/* The kind of this type itself, without its base classes. A class of Python has no dot in its name, and may have any other name. */
static enum python_type_kind
kind_of_its_own(const struct python_type *type)
{
	static const struct {
		const char *name;
		enum python_type_kind kind;
	} names[] = {
		{ "set", PYTHON_SET },
		{ "frozenset", PYTHON_SET },
		{ "collections.deque", PYTHON_DEQUE },
		{ "module", PYTHON_MODULE },
		{ "frame", PYTHON_FRAME },
		{ "generator", PYTHON_GENERATOR },
		{ "coroutine", PYTHON_GENERATOR },
		{ "async_generator", PYTHON_GENERATOR },
		{ "weakref", PYTHON_WEAK },
		{ "weakref.ReferenceType", PYTHON_WEAK },
		{ "weakproxy", PYTHON_WEAK },
		{ "weakref.ProxyType", PYTHON_WEAK },
		{ "weakcallableproxy", PYTHON_WEAK },
		{ "weakref.CallableProxyType", PYTHON_WEAK },
		{ "code", PYTHON_CODE },
		{ "numpy.ndarray", PYTHON_ARRAY },
		{ "functools._lru_list_elem", PYTHON_LRU_ELEMENT },
		{ "functools._lru_cache_wrapper", PYTHON_LRU_CACHE },
		{ "bytes", PYTHON_PLAIN },
		{ "int", PYTHON_PLAIN },
		{ "float", PYTHON_PLAIN },
		{ "complex", PYTHON_PLAIN },
	};
	static const struct {
		uint64_t flag;
		enum python_type_kind kind;
	} flags[] = { { FLAG_TYPE, PYTHON_TYPE },
		          { FLAG_DICT, PYTHON_DICT },
		          { FLAG_LIST, PYTHON_LIST },
		          { FLAG_TUPLE, PYTHON_TUPLE },
		          { FLAG_STRING, PYTHON_PLAIN } };

	for (size_t i = 0; i < COUNT_OF(flags); i++) {
		if ((type->flags & flags[i].flag) != 0)
			return flags[i].kind;
	}
	for (size_t i = 0; i < COUNT_OF(names); i++) {
		if (strcmp(type->name, names[i].name) == 0 &&
		    ((type->flags & FLAG_HEAP) == 0 || strchr(type->name, '.') != NULL))
			return names[i].kind;
	}
	return PYTHON_OTHER;
}

/* A class has the layout of its base class, and adds to it. */
static void
find_kind(struct python_objects *python, struct python_type *type)
{
	const struct python_type *base = type->base != type->addr ? python_objects_type(python, type->base) : NULL;

	type->kind = kind_of_its_own(type);
	type->kind_bytes = type->basic_bytes;
	if (base == NULL || (type->kind != PYTHON_OTHER && type->kind != base->kind) ||
	    strcmp(type->name, "collections.OrderedDict") == 0)
		return;
	type->kind = base->kind;
	type->kind_bytes = base->kind_bytes;
}

/* The bytes in front of its instances. */
static uint64_t
prefix_of(const struct python_objects *python, uint64_t flags)
{
	return ((flags & FLAG_COLLECTED) != 0 || python->shift != 0 ? COLLECTOR_BYTES : 0) +
	       ((flags & python->shape->type_managed_flags) != 0 ? MANAGED_BYTES : 0);
}

/* The module that a class of Python names as its own. */
static void
read_module(struct python_objects *python, struct python_type *type)
{
	struct python_keys keys;
	char name[PYTHON_NAME_BYTES];

	type->is_of_python = (type->flags & FLAG_HEAP) != 0 && strchr(type->name, '.') == NULL;
	if (!type->is_of_python || type->dict == 0 || !python_objects_keys(python, WORD(type->dict + 32), &keys) ||
	    keys.is_split)
		return;
	for (uint64_t i = 0; i < keys.count && i < 64; i++) {
		uint64_t entry = keys.first + i * keys.step + keys.key_offset;

		if (python_objects_string(python, OBJECT(entry), name, sizeof(name)) && strcmp(name, "__module__") == 0) {
			(void)python_objects_string(python, OBJECT(entry + 8), type->module, sizeof(type->module));
			break;
		}
	}
	if (strcmp(type->module, "__main__") == 0 || strcmp(type->module, "__mp_main__") == 0 ||
	    strcmp(type->module, "builtins") == 0)
		type->module[0] = '\0';
}

static struct python_type *
read_type(struct python_objects *python, uint64_t addr)
{
	struct python_type *type;
	unsigned char raw[TYPE_BYTES];
	struct python_type read = { .addr = addr };

	if (!is_type(python, addr) || !process_memory_read(python->memory, addr, raw, sizeof(raw)))
		return NULL;
	memcpy(&read.basic_bytes, raw + TYPE_BASIC, 8);
	memcpy(&read.item_bytes, raw + TYPE_ITEM, 8);
	memcpy(&read.flags, raw + TYPE_FLAGS, 8);
	memcpy(&read.base, raw + TYPE_BASE, 8);
	memcpy(&read.dict, raw + TYPE_DICT, 8);
	memcpy(&read.dict_offset, raw + TYPE_DICT_OFFSET, 8);
	memcpy(&read.weak_offset, raw + TYPE_WEAK_OFFSET, 8);
	read.base += read.base != 0 ? python->shift : 0;
	read.dict += read.dict != 0 ? python->shift : 0;
	read.basic_bytes -= read.basic_bytes > python->shift ? python->shift : 0;
	read.dict_offset -= read.dict_offset > 0 ? (int64_t)python->shift : 0;
	read.weak_offset -= read.weak_offset > 0 ? (int64_t)python->shift : 0;
	if ((read.flags & FLAG_READY) == 0 || read.basic_bytes > BASIC_MAX ||
	    !process_memory_text(python->memory, WORD(addr + TYPE_NAME), read.name, sizeof(read.name)) ||
	    read.name[0] == '\0')
		return NULL;
	read.is_exception = (read.flags & FLAG_EXCEPTION) != 0;
	read.has_managed_dict = (read.flags & python->shape->type_managed_flags & PYTHON_TYPE_MANAGED_DICT) != 0;
	read.has_inline_values = python_shape_attributes(python->shape) == PYTHON_ATTRIBUTES_INLINE &&
	                         read.has_managed_dict && (read.flags & FLAG_INLINE_VALUES) != 0;
	read.is_collected = (read.flags & FLAG_COLLECTED) != 0;
	read.prefix_bytes = prefix_of(python, read.flags);
	type = memory_zeroed(1, sizeof(*type));
	*type = read;
	return type;
}

struct python_type *
python_objects_type(struct python_objects *python, uint64_t addr)
{
	struct known_type *known;

	if (!is_address(addr))
		return NULL;
	HASH_FIND(hh, python->known, &addr, sizeof(addr), known);
	if (known == NULL) {
		known = memory_zeroed(1, sizeof(*known));
		known->addr = addr;
		known->type = read_type(python, addr);
		HASH_ADD(hh, python->known, addr, sizeof(known->addr), known);
		if (known->type != NULL) { // both ask for types themselves
			find_kind(python, known->type);
			read_module(python, known->type);
		}
	}
	return known->type;
}

/*
 * From 3.14 on flags stand in the upper bits, and 0 between: an address does not look so. The interpreter keeps released objects in
 * lists, which are linked by this word.
 */
static uint64_t
counted(struct python_objects *python, uint64_t addr)
{
	uint64_t word = WORD(addr);

	if (python->shift != 0) // two counts, of its own thread and of the others
		return word != 0 || HALF(addr - 4) != 0;
	return python->shape->has_free_list_in_head && (word >> 32 & 0xffff) == 0 ? (uint32_t)word : word;
}

/*
 * 0 < a count < REFERENCES_MAX. Where a program's addresses are low, as of an interpreter at a fixed address, an item of a list looks so, too; behind
 * it may stand what was there before, the type of an object.
 */
static bool
is_count(struct python_objects *python, uint64_t word)
{
	return word != 0 && word < REFERENCES_MAX &&
	       (word < PROCESS_MEMORY_PAGE || python_objects_type(python, OBJECT(word + 8)) == NULL);
}

/* What may stand in front of an object: the most frequent first. */
static const uint64_t prefixes[] = { COLLECTOR_BYTES, 0, COLLECTOR_BYTES + MANAGED_BYTES, MANAGED_BYTES };

/* The type of what stands so many bytes behind `start`, if that is what its objects have in front of them. */
static struct python_type *
type_behind(struct python_objects *python, uint64_t start, uint64_t bytes, uint64_t prefix_bytes)
{
	struct python_type *type = python->shape != NULL && prefix_bytes + 16 <= bytes
	                               ? python_objects_type(python, OBJECT(start + prefix_bytes + 8))
	                               : NULL;

	return type != NULL && type->prefix_bytes == prefix_bytes ? type : NULL;
}

bool
python_objects_in(struct python_objects *python, uint64_t start, uint64_t bytes, struct python_object *object)
{
	*object = (struct python_object){ 0, NULL };
	for (size_t i = 0; i < COUNT_OF(prefixes); i++) {
		struct python_type *type = type_behind(python, start, bytes, prefixes[i]);

		if (type == NULL || !is_count(python, counted(python, start + prefixes[i])))
			continue;
		/* Texts and numbers may be smaller than their type says. */
		if (type->kind != PYTHON_PLAIN && prefixes[i] + type->basic_bytes > bytes + (type->item_bytes != 0 ? 8 : 0) + 8)
			continue;
		*object = (struct python_object){ start + prefixes[i], type };
		return true;
	}
	return false;
}

const struct python_type *
python_objects_released(struct python_objects *python, uint64_t start, uint64_t bytes)
{
	for (size_t i = 0; i < COUNT_OF(prefixes); i++) {
		const struct python_type *type = type_behind(python, start, bytes, prefixes[i]);

		if (type != NULL && counted(python, start + prefixes[i]) == 0 && prefixes[i] + type->basic_bytes <= bytes)
			return type;
	}
	return NULL;
}

/* ---- small objects ---- */

static void
read_free(struct python_objects *python, struct python_pool *pool, uint64_t base, uint64_t first)
{
	uint64_t end = base + python_shape_pool_bytes(python->shape);

	for (unsigned i = 0; first >= base + POOL_HEADER && first < end && i < POOL_SLOTS; i++) {
		uint64_t slot = (first - base) / 16;

		pool->free[slot / 64] |= UINT64_C(1) << slot % 64;
		first = WORD(first);
	}
}

/* struct pool_header of Objects/obmalloc.c: count, free list, next, previous, arena, class, next and last offset. */
static void
read_pool(struct python_objects *python, struct python_pool *pool, uint64_t base)
{
	uint32_t count = HALF(base);
	uint64_t first = WORD(base + 8);
	uint32_t class = HALF(base + 36);
	uint32_t next = HALF(base + 40);
	uint32_t last = HALF(base + 44);
	uint32_t pool_bytes = python_shape_pool_bytes(python->shape);
	uint32_t bytes = (class + 1) * 16;

	memset(pool, 0, sizeof(*pool));
	pool->base = base + 1;
	if (class >= POOL_CLASSES || count == 0 || count > (pool_bytes - POOL_HEADER) / bytes || next < POOL_HEADER ||
	    next > pool_bytes || last != pool_bytes - bytes || HALF(base + 32) >= 1u << 20 ||
	    (first != 0 && first - base >= pool_bytes))
		return;
	pool->is_pool = true;
	pool->block_bytes = bytes;
	pool->end = next;
	read_free(python, pool, base, first);
}

enum python_small
python_objects_small(struct python_objects *python, uint64_t addr, struct address_range *block)
{
	if (python->shape == NULL || python->shift != 0) // free-threaded: each has a record
		return PYTHON_NOT_SMALL;
	if (python->pools == NULL)
		python->pools = memory_zeroed(POOLS_KEPT, sizeof(*python->pools));

	uint64_t base = addr & ~(uint64_t)(python_shape_pool_bytes(python->shape) - 1);
	struct python_pool *pool = &python->pools[base / python_shape_pool_bytes(python->shape) % POOLS_KEPT];

	if (pool->base != base + 1)
		read_pool(python, pool, base);
	if (!pool->is_pool)
		return PYTHON_NOT_SMALL;
	if (addr < base + POOL_HEADER)
		return PYTHON_SMALL_FREE;

	uint64_t start = POOL_HEADER + (addr - base - POOL_HEADER) / pool->block_bytes * pool->block_bytes;

	if (start >= pool->end || (pool->free[start / 16 / 64] & UINT64_C(1) << start / 16 % 64) != 0)
		return PYTHON_SMALL_FREE;
	*block = (struct address_range){ base + start, base + start + pool->block_bytes };
	return PYTHON_SMALL_LIVE;
}

/* ---- what an object owns ---- */

/* Does the word in front of an object lead to its attributes? Returns their address; 0 = it does not. */
static bool
is_attributes_word(const struct python_objects *python, const struct python_object *object, int64_t offset)
{
	if (!object->type->has_managed_dict)
		return false;
	return offset == -24 || (offset == -32 && python_shape_attributes(python->shape) == PYTHON_ATTRIBUTES_VALUES);
}

bool
python_objects_next_block(struct python_objects *python, const struct python_object *object, uint64_t *block)
{
	if (*block == 0)
		*block = WORD(object->addr + DEQUE_FIRST);
	else if (*block == WORD(object->addr + DEQUE_LAST))
		return false;
	else
		*block = WORD(*block + 8 + 8 * DEQUE_BLOCK_ITEMS);
	return *block != 0;
}

bool
python_objects_is_buffer(struct python_objects *python, const struct python_object *object, uint64_t at)
{
	int64_t offset = (int64_t)(at - object->addr);
	enum python_type_kind kind = object->type->kind;

	if (offset < 0)
		return object->type->has_managed_dict &&
		       ((offset == -32 && python_shape_attributes(python->shape) == PYTHON_ATTRIBUTES_VALUES) ||
		        (offset == -24 && python_shape_attributes(python->shape) == PYTHON_ATTRIBUTES_TAGGED &&
		         WORD(at) % 2 != 0));
	return (kind == PYTHON_LIST && offset == 24) || (kind == PYTHON_DICT && (offset == 32 || offset == 40)) ||
	       (kind == PYTHON_SET && offset == SET_TABLE && WORD(at) != object->addr + SET_SMALL) ||
	       (kind == PYTHON_DEQUE && (offset == DEQUE_FIRST || offset == DEQUE_LAST));
}

static enum python_hold
sure_if(bool is_so)
{
	return is_so ? PYTHON_HOLD_SURE : PYTHON_HOLD_NOT;
}

/* References of a code object are from its first one to its last one; caches lie behind. What bytecode remembers beside an instruction is borrowed. */
static enum python_hold
code_hold(const struct python_objects *python, int64_t offset)
{
	int64_t first = python->shape->has_shaped_keys ? 24 : 48;
	int64_t end = python->shape->has_shaped_keys ? 144 : 128;

	if (python->shape->instruction == PYTHON_INSTRUCTION_POINTER && offset >= python->shape->code_bytecode)
		return PYTHON_HOLD_NOT;
	return offset >= first && offset < end ? PYTHON_HOLD_SURE : PYTHON_HOLD_PERHAPS;
}

/* A small set has its table inside. */
static enum python_hold
set_hold(struct python_objects *python, const struct python_object *object, int64_t offset)
{
	bool is_inside = WORD(object->addr + SET_TABLE) == object->addr + SET_SMALL;

	if (offset == SET_TABLE && !is_inside)
		return PYTHON_HOLD_SURE;
	return is_inside && offset >= SET_SMALL && offset % 16 == 0 ? PYTHON_HOLD_SURE : PYTHON_HOLD_NOT;
}

/* In front of its items may be its hash. */
static enum python_hold
tuple_hold(struct python_objects *python, const struct python_object *object, uint64_t offset)
{
	uint64_t items = python->shape->tuple_items;

	if (offset < items)
		return PYTHON_HOLD_NOT;
	return offset < items + 8 * WORD(object->addr + 16) ? PYTHON_HOLD_SURE : PYTHON_HOLD_PERHAPS;
}

/* A view borrows its data from its base. */
static enum python_hold
array_hold(struct python_objects *python, const struct python_object *object, int64_t offset)
{
	bool owns_data = (HALF(object->addr + ARRAY_FLAGS) & ARRAY_OWNS_DATA) != 0;

	switch (offset) {
	case ARRAY_DATA:
		return owns_data ? PYTHON_HOLD_SURE : PYTHON_HOLD_NOT;
	case ARRAY_SHAPE:
	case ARRAY_BASE:
	case ARRAY_TYPE:
		return PYTHON_HOLD_SURE;
	default:
		return PYTHON_HOLD_PERHAPS;
	}
}

/* A type whose members nobody listed: members that have a name are references. */
static enum python_hold
other_hold(struct python_objects *python, const struct python_object *object, uint64_t at)
{
	struct python_edge edge;

	python_objects_edge(python, object, at, 0, &edge);
	if (edge.kind != PYTHON_EDGE_ATTRIBUTE)
		return PYTHON_HOLD_LIKELY;
	return sure_if(edge.role != PYTHON_MEMBER_BORROWED);
}

/* The code object of a frame, wherever that is. From 3.14 on there are tags in the lowest bits. */
uint64_t
python_objects_frame_code(struct python_objects *python, uint64_t frame)
{
	return (WORD(frame + python->shape->frame_code) & ~UINT64_C(7)) + python->shift;
}

/* How many locals functions of this code have, with those of cells. */
static uint64_t
locals_of(struct python_objects *python, uint64_t code)
{
	const struct python_layout *shape = python->shape;
	uint64_t count = WORD(OBJECT(code + shape->code_local_names) + 16);

	if (!shape->has_shaped_keys) // cells, then free variables
		count += WORD(WORD(code + 88) + 16) + WORD(WORD(code + 80) + 16);
	return count < STACK_WORDS_MAX ? count : 0;
}

/*
 * 3.8 to 3.10: a frame is an object. From 3.11 on some of the words in front of the locals are borrowed; from 3.14 on so is a local with a tag:
 * the caller's counts.
 */
enum python_hold
python_objects_frame_hold(struct python_objects *python, const struct python_frame *frame, uint64_t at)
{
	const struct python_layout *shape = python->shape;
	uint64_t offset = at - frame->start;

	if (offset >= shape->frame_locals)
		return (offset - shape->frame_locals) / 8 < locals_of(python, frame->code) && (WORD(at) & 1) == 0
		           ? PYTHON_HOLD_SURE
		           : PYTHON_HOLD_PERHAPS;
	if (shape->frame_object == 0)
		return offset >= 24 && offset < 64 ? PYTHON_HOLD_SURE : PYTHON_HOLD_PERHAPS;
	return offset == shape->frame_code || offset == shape->frame_object || offset == shape->frame_function ||
	               offset == shape->frame_names
	           ? PYTHON_HOLD_SURE
	           : PYTHON_HOLD_NOT;
}

/* 3.13: behind the object stands the number of its values, then the values. */
static enum python_hold
inline_hold(struct python_objects *python, const struct python_object *object, uint64_t offset)
{
	uint64_t count = HALF(object->addr + object->type->basic_bytes) & 0xff;

	return offset >= 8 && offset < 8 + 8 * count ? PYTHON_HOLD_SURE : PYTHON_HOLD_NOT;
}

/* Words that every object of a kind has. */
static enum python_hold
kind_hold(struct python_objects *python, const struct python_object *object, int64_t offset)
{
	switch (object->type->kind) {
	case PYTHON_PLAIN:
		return (object->type->flags & FLAG_HEAP) != 0 ? PYTHON_HOLD_PERHAPS : PYTHON_HOLD_NOT;
	case PYTHON_WEAK:
		return sure_if(offset == WEAK_CALLBACK);
	case PYTHON_LRU_ELEMENT: // its links are borrowed
		return sure_if(offset >= 40);
	case PYTHON_LRU_CACHE: // begins with such an element
		return sure_if(offset >= 56);
	case PYTHON_LIST:
		return sure_if(offset == 24);
	case PYTHON_TUPLE:
		return tuple_hold(python, object, (uint64_t)offset);
	case PYTHON_DICT: // nodes of an OrderedDict lie behind
		return offset == 32 || offset == 40 ? PYTHON_HOLD_SURE : PYTHON_HOLD_PERHAPS;
	case PYTHON_SET:
		return set_hold(python, object, offset);
	case PYTHON_DEQUE:
		return sure_if(offset == DEQUE_FIRST || offset == DEQUE_LAST);
	case PYTHON_ARRAY:
		return array_hold(python, object, offset);
	case PYTHON_CODE:
		return code_hold(python, offset);
	case PYTHON_TYPE:
		if (offset == TYPE_BASE || offset == TYPE_DICT || (offset >= TYPE_BASES && offset <= TYPE_SUBCLASSES))
			return PYTHON_HOLD_SURE;
		return other_hold(python, object, object->addr + (uint64_t)offset) == PYTHON_HOLD_NOT ? PYTHON_HOLD_NOT
		                                                                                      : PYTHON_HOLD_PERHAPS;
	case PYTHON_FRAME: // where its frame is not inside
		if (python->shape->frame_inline != 0 && offset >= python->shape->frame_inline)
			return PYTHON_HOLD_NOT;
		break;
	case PYTHON_MODULE:
	case PYTHON_GENERATOR:
	case PYTHON_OTHER:
		break;
	}
	return other_hold(python, object, object->addr + (uint64_t)offset);
}

enum python_hold
python_objects_hold(struct python_objects *python, const struct python_object *object, uint64_t at)
{
	const struct python_type *type = object->type;
	int64_t offset = (int64_t)(at - object->addr);
	const struct python_frame frame = python_objects_inner_frame(python, object);

	if (offset < 0)
		return sure_if(is_attributes_word(python, object, offset));
	if (offset == PYTHON_OBJECT_TYPE)
		return sure_if(python_objects_holds_class(python, object));
	if (offset < 16 || (type->weak_offset > 0 && offset == type->weak_offset))
		return PYTHON_HOLD_NOT;
	if (type->dict_offset > 0 && offset == type->dict_offset)
		return PYTHON_HOLD_SURE;
	if (type->item_bytes == 0 && (uint64_t)offset >= type->basic_bytes)
		return type->has_inline_values ? inline_hold(python, object, (uint64_t)offset - type->basic_bytes)
		                               : PYTHON_HOLD_NOT; // behind it, in its block
	if (frame.start != 0 && at >= frame.start)
		return python_objects_frame_hold(python, &frame, at);
	if (type->kind != PYTHON_OTHER && (uint64_t)offset >= type->kind_bytes && type->item_bytes == 0)
		return other_hold(python, object, at);
	return kind_hold(python, object, offset);
}

uint64_t
python_objects_references(struct python_objects *python, const struct python_object *object)
{
	uint64_t count = WORD(object->addr);

	if (python->shift !=
	    0) { // two counts; the lowest bits of that of others are flags, and some types have so many that they live for ever
		uint64_t own = HALF(object->addr - 4);

		return own == UINT32_MAX || count >> 2 >= IMMORTAL ? UINT64_MAX : own + (count >> 2);
	}
	if (python->shape->version < 0x030c)
		return count;
	return (int32_t)count < 0 || (uint32_t)count >= IMMORTAL ? UINT64_MAX : (uint32_t)count;
}

/*
 * In the first and the last block of a deque some places are not in use; nor are the links beyond these blocks. block: where it begins.
 */
static bool
deque_holds(struct python_objects *python, const struct python_object *object, uint64_t block, uint64_t item_at)
{
	uint64_t index = (item_at - block) / 8 - 1; // behind the address of the block before
	bool is_first = block == WORD(object->addr + DEQUE_FIRST);
	bool is_last = block == WORD(object->addr + DEQUE_LAST);

	if (item_at - block < 8)
		return !is_first;
	if (index >= DEQUE_BLOCK_ITEMS)
		return !is_last;
	return (!is_first || index >= WORD(object->addr + DEQUE_FIRST_INDEX)) &&
	       (!is_last || index <= WORD(object->addr + DEQUE_LAST_INDEX));
}

/* A dictionary whose keys are shared has as many values as there are keys. */
static bool
values_hold(struct python_objects *python, const struct python_object *object, uint64_t values, uint64_t item_at)
{
	uint64_t first = values + (python_shape_attributes(python->shape) == PYTHON_ATTRIBUTES_INLINE ? 8 : 0);
	struct python_keys keys;

	return item_at >= first && python_objects_keys(python, WORD(object->addr + 32), &keys) &&
	       (item_at - first) / 8 < keys.count;
}

bool
python_objects_buffer_holds(struct python_objects *python, const struct python_object *object, uint64_t at,
                            uint64_t value, uint64_t item_at)
{
	uint64_t first = at < object->addr ? value + value % 2 : value; // a tag: one less than the address
	struct python_keys keys;

	if (at < object->addr)
		return item_at >= first &&
		       (!python_objects_keys(python, python_objects_cached_keys(python, object->type), &keys) ||
		        (item_at - first) / 8 < keys.count);
	switch (object->type->kind) {
	case PYTHON_LIST:
		return item_at >= value && item_at < value + 8 * WORD(object->addr + 16);
	case PYTHON_DICT:
		if (at - object->addr != 32)
			return values_hold(python, object, value, item_at);
		return python_objects_keys_of(python, object, &keys) && item_at >= keys.first &&
		       item_at < keys.first + keys.step * keys.count &&
		       (item_at - keys.first) % keys.step >= keys.key_offset; // before it is the hash: of a number that number
	case PYTHON_SET:                                                  // entries: key, hash
		return (item_at - value) % 16 == 0;
	case PYTHON_DEQUE:
		return deque_holds(python, object, value, item_at);
	default:
		return true;
	}
}

uint64_t
python_objects_items(struct python_objects *python, const struct python_object *object)
{
	switch (object->type->kind) {
	case PYTHON_LIST:
	case PYTHON_TUPLE:
	case PYTHON_DICT:
	case PYTHON_DEQUE:
		return WORD(object->addr + 16);
	case PYTHON_SET:
		return WORD(object->addr + 24);
	default:
		return UINT64_MAX;
	}
}

/* ---- frames ---- */

static void
add_frame(struct python_objects *python, uint64_t addr, uint32_t thread, uint32_t depth)
{
	const struct python_layout *shape = python->shape;
	uint64_t code = python_objects_frame_code(python, addr);
	const struct python_type *type = python_objects_type(python, OBJECT(code + 8));
	uint32_t stack = shape->code_stack_size != 0 ? HALF(code + shape->code_stack_size) : 0;

	if (type == NULL || strcmp(type->name, "code") != 0)
		return;
	*MEMORY_NEXT(python->frames, python->frame_count) = (struct python_frame){
		.start = addr,
		.end = addr + shape->frame_locals + 8 * (locals_of(python, code) + (stack < STACK_WORDS_MAX ? stack : 0)),
		.code = code,
		.object = shape->frame_object != 0 ? OBJECT(addr + shape->frame_object) : addr,
		.thread = thread,
		.depth = depth,
	};
}

static uint64_t
innermost_frame(struct python_objects *python, uint64_t state)
{
	const struct python_layout *shape = python->shape;
	return shape->tstate_frame != 0 ? WORD(state + shape->tstate_frame)
	                                : WORD(WORD(state + shape->tstate_cframe) + shape->cframe_frame);
}

/* The first thread state is one whose interpreter is this and that has none before it. */
static uint64_t
first_state(struct python_objects *python, uint64_t interpreter)
{
	if (python->shape->interpreter_threads != 0)
		return WORD(interpreter + python->shape->interpreter_threads);
	for (uint64_t offset = 0; offset < PYTHON_STATE_SEARCHED; offset += 8) {
		uint64_t state = WORD(interpreter + offset);

		if (is_address(state) && state != interpreter && WORD(state + 16) == interpreter && WORD(state) == 0)
			return state;
	}
	return 0;
}

ORDER_OF(compare_frames, struct python_frame, order_numbers(a->start, b->start))

static void
read_frames(struct python_objects *python, uint64_t runtime)
{
	uint64_t interpreter = WORD(runtime + python->shape->runtime_interpreters);
	uint64_t state = interpreter != 0 ? first_state(python, interpreter) : 0;

	python->interpreter = interpreter;
	for (uint32_t thread = 0; is_address(state) && thread < THREADS_MAX; thread++) {
		uint64_t frame = innermost_frame(python, state);

		*MEMORY_NEXT(python->states, python->state_count) = state;
		for (unsigned i = 0; is_address(frame) && i < FRAMES_MAX; i++) {
			add_frame(python, frame, thread, i);
			frame = WORD(frame + python->shape->frame_previous);
		}
		state = WORD(state + 8);
	}
	SORT(python->frames, python->frame_count, compare_frames);
}

const struct python_frame *
python_objects_frame(const struct python_objects *python, uint64_t addr)
{
	size_t until = SORTED_UP_TO(python->frames, python->frame_count, start, addr);

	return until != 0 && addr < python->frames[until - 1].end ? &python->frames[until - 1] : NULL;
}

/* ---- the interpreter ---- */

static bool
is_interpreter(const char *path)
{
	const char *name = place_base(path);

	return text_starts(name, "python") || text_starts(name, "libpython");
}

/* From 3.13 on the runtime begins with _Py_DebugOffsets: a word to know it by, the version, and whether it is free-threaded. */
static bool
is_free_threaded(struct python_objects *python, uint64_t runtime)
{
	char cookie[8];

	return process_memory_read(python->memory, runtime, cookie, sizeof(cookie)) &&
	       memcmp(cookie, "xdebugpy", sizeof(cookie)) == 0 && WORD(runtime + 16) == 1;
}

void
python_objects_attach(struct process_memory *memory, struct process_modules *modules, uint32_t version_hex,
                      struct python_objects *python)
{
	const struct python_layout *shape = python_layout_find(version_hex, false);

	*python = (struct python_objects){ .memory = memory, .why = "" };
	if (version_hex == 0)
		return;
	python->why = "objects of this version of Python are not known";
	for (size_t i = 0; shape != NULL && i < modules->count; i++) {
		struct process_module *module = &modules->modules[i];
		uint64_t runtime = is_interpreter(module->path) ? process_module_named(modules, module, "_PyRuntime") : 0;

		if (runtime == 0)
			continue;
		python->shift = is_free_threaded(python, runtime) ? FREE_THREADED_SHIFT : 0;
		python->type_type = process_module_named(modules, module, "PyType_Type") + python->shift;
		python->why = "its `type` is not where it should be";
		if (python->type_type == python->shift || OBJECT(python->type_type + 8) != python->type_type)
			return;
		python->shape = shape;
		python->own = (struct address_range){ module->start, module->end };
		python->why = "";
		read_frames(python, runtime);
		return;
	}
	if (shape != NULL)
		python->why = "the interpreter's symbols were not found";
}

bool
python_objects_is_own(const struct python_objects *python, uint64_t addr)
{
	return addr - python->own.start < python->own.end - python->own.start;
}

bool
python_objects_is_state(const struct python_objects *python, uint64_t addr)
{
	return ANY(state, python->states, python->state_count, addr - *state < STATE_BYTES);
}

static void
free_known(struct known_type *known_type)
{
	free(known_type->type);
	free(known_type);
}

void
python_objects_detach(struct python_objects *python)
{
	HASH_FREE(python->known, free_known);
	free(python->frames);
	free(python->states);
	free(python->pools);
	free(python->modules);
	*python = (struct python_objects){ 0 };
}
