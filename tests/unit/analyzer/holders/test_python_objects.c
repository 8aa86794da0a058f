/*
 * test_python_objects.c - what do objects of Python hold, and by which name? Over an image that is made here, as 3.11 has it.
 *
 * That the layouts are the interpreters' own is tested by tests/preload/test_holders.py, on each of them.
 */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "holders/python_objects.h"
#include "memory_moved.h"

#define BASE UINT64_C(0x7f0000000000)
#define IMAGE_BYTES 0x10000u
#define LOW UINT64_C(0x1f00000) // the same image again
#define READY (UINT64_C(1) << 12)
#define HEAP (UINT64_C(1) << 9)
#define COLLECTED (UINT64_C(1) << 14)
#define LIST (UINT64_C(1) << 25)
#define STRING (UINT64_C(1) << 28)
#define DICT (UINT64_C(1) << 29)
#define TYPE (UINT64_C(1) << 31)

static unsigned char image[IMAGE_BYTES];
static uint64_t used;
static struct process_memory memory;
static struct python_objects python;
static uint64_t type_type, list_type, dict_type, string_type, weak_type, deque_type;

static size_t
fetch(void *context, uint64_t addr, void *to, size_t bytes)
{
	(void)context;
	if (addr - LOW < IMAGE_BYTES)
		addr += BASE - LOW;
	if (addr < BASE || addr - BASE >= IMAGE_BYTES)
		return 0;
	bytes = bytes < BASE + IMAGE_BYTES - addr ? bytes : BASE + IMAGE_BYTES - addr;
	memcpy(to, image + (addr - BASE), bytes);
	return bytes;
}

static void
put(uint64_t addr, uint64_t word)
{
	assert_true(addr >= BASE && addr + 8 <= BASE + IMAGE_BYTES);
	memcpy(image + (addr - BASE), &word, sizeof(word));
}

static uint64_t
room(uint64_t bytes)
{
	uint64_t addr = BASE + used;

	used += (bytes + 15) & ~UINT64_C(15);
	assert_true(used <= IMAGE_BYTES);
	return addr;
}

static uint64_t
bytes_of(const char *text)
{
	uint64_t addr = room(strlen(text) + 1);

	memcpy(image + (addr - BASE), text, strlen(text) + 1);
	return addr;
}

static uint64_t
make_type(const char *name, uint64_t basic_bytes, uint64_t flags, uint64_t base)
{
	uint64_t addr = room(1024);

	put(addr, 1);
	put(addr + 8, type_type != 0 ? type_type : addr);
	put(addr + 24, bytes_of(name));
	put(addr + 32, basic_bytes);
	put(addr + 168, flags | READY);
	put(addr + 256, base);
	return addr;
}

static uint64_t
make_string(const char *text)
{
	uint64_t addr = room(48 + strlen(text) + 1);

	put(addr, 1);
	put(addr + 8, string_type);
	put(addr + 16, strlen(text));
	put(addr + 32, 1 << 2 | 1 << 5 | 1 << 6); // a byte each, compact, ASCII
	memcpy(image + (addr + 48 - BASE), text, strlen(text) + 1);
	return addr;
}

/* Behind a head of the collector. */
static struct python_object
make_object(uint64_t type, uint64_t bytes)
{
	uint64_t addr = room(bytes + 16) + 16;

	put(addr, 1);
	put(addr + 8, type);
	return (struct python_object){ addr, python_objects_type(&python, type) };
}

/* Of texts, with room for eight. */
static uint64_t
make_keys(uint64_t kind, size_t count, const char *const *names)
{
	uint64_t addr = room(32 + 8 + 8 * 16);

	put(addr, 1);
	put(addr + 8, 3 | 3 << 8 | kind << 16);
	put(addr + 24, count);
	for (size_t i = 0; i < count; i++)
		put(addr + 40 + 16 * i, make_string(names[i]));
	return addr;
}

static int
set_up(void **state)
{
	(void)state;
	memset(image, 0, sizeof(image));
	used = PROCESS_MEMORY_PAGE;
	memory = (struct process_memory){ .fetch = fetch };
	python = (struct python_objects){ .memory = &memory, .shape = python_layout_find(0x030b0700, false), .why = "" };
	type_type = 0;
	type_type = make_type("type", 408, TYPE | COLLECTED, 0);
	python.type_type = type_type;
	string_type = make_type("str", 72, STRING, 0);
	list_type = make_type("list", 40, LIST | COLLECTED, 0);
	dict_type = make_type("dict", 48, DICT | COLLECTED, 0);
	weak_type = make_type("weakref.ReferenceType", 64, COLLECTED, 0);
	deque_type = make_type("collections.deque", 80, COLLECTED | HEAP, 0);
	memory_moved(&memory);
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	python_objects_detach(&python);
	process_memory_close(&memory);
	return 0;
}

static enum python_type_kind
kind_at(uint64_t type)
{
	const struct python_type *found = python_objects_type(&python, type);

	assert_non_null(found);
	return found->kind;
}

TEST_WITH(a_type_is_believed_only_when_its_own_type_is_one, set_up, tear_down)
{
	uint64_t other = room(1024);

	assert_int_equal(kind_at(list_type), PYTHON_LIST);
	memcpy(image + (other - BASE), image + (list_type - BASE), 408);
	put(other + 8, list_type); // its type is no class
	memory_moved(&memory);
	assert_null(python_objects_type(&python, other));
	assert_null(python_objects_type(&python, BASE + 1));
	assert_null(python_objects_type(&python, BASE + IMAGE_BYTES + 8));
	assert_null(python_objects_type(&python, 0));
}

TEST_WITH(a_class_has_the_kind_of_its_base_and_not_of_its_name, set_up, tear_down)
{
	uint64_t mine = make_type("MyReference", 80, COLLECTED | HEAP, weak_type);
	uint64_t frame = make_type("frame", 40, COLLECTED | HEAP, 0);
	struct python_object object;

	memory_moved(&memory);
	assert_int_equal(kind_at(mine), PYTHON_WEAK);
	assert_int_equal(kind_at(frame), PYTHON_OTHER);
	object = make_object(mine, 80);
	memory_moved(&memory);
	assert_int_equal(python_objects_hold(&python, &object, object.addr + 16), PYTHON_HOLD_NOT);     // what it refers to
	assert_int_equal(python_objects_hold(&python, &object, object.addr + 24), PYTHON_HOLD_SURE);    // its callback
	assert_int_not_equal(python_objects_hold(&python, &object, object.addr + 72), PYTHON_HOLD_NOT); // of the class
	assert_int_equal(python_objects_hold(&python, &object, object.addr + 80), PYTHON_HOLD_NOT);     // behind it
}

TEST_WITH(an_object_is_found_in_its_block, set_up, tear_down)
{
	struct python_object object = make_object(list_type, 40);
	struct python_object found;

	memory_moved(&memory);
	assert_true(python_objects_in(&python, object.addr - 16, 56, &found));
	assert_int_equal(found.addr, object.addr);
	assert_false(python_objects_in(&python, object.addr, 40, &found));      // where the collector's head is missing
	assert_false(python_objects_in(&python, object.addr - 16, 32, &found)); // too small for one
	put(object.addr, 0);
	memory_moved(&memory);
	assert_false(python_objects_in(&python, object.addr - 16, 56, &found)); // without references it is gone
}

/* Where addresses are low, that of an item looks like a count, and the type of what was there before may stand behind it. */
TEST_WITH(items_of_a_list_are_no_object, set_up, tear_down)
{
	uint64_t items = room(32);
	struct python_object found;

	put(items, make_string("an item") - BASE + LOW);
	put(items + 8, string_type);
	memory_moved(&memory);
	assert_false(python_objects_in(&python, items, 32, &found));
	put(items, LOW); // no object is there: so many references
	memory_moved(&memory);
	assert_true(python_objects_in(&python, items, 32, &found));
}

/* 3.14: released objects are linked where references are counted; flags stand above them. */
TEST_WITH(an_object_that_was_released_is_none, set_up, tear_down)
{
	const struct {
		uint64_t word;
		bool is_object;
	} rows[] = {
		{ 1, true },
		{ UINT64_C(0x10000c0000000), true },
		{ 0, false },
		{ UINT64_C(0x7f3600001000), false },
	};
	struct python_object found;

	python.shape = python_layout_find(0x030e0a00, false);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct python_object list = make_object(list_type, 40);

		put(list.addr, rows[i].word);
		memory_moved(&memory);
		assert_int_equal(python_objects_in(&python, list.addr - 16, 64, &found), rows[i].is_object);
	}
}

/* Without a global lock: two words more, two counts, and no head of the collector. */
TEST_WITH(an_object_of_a_free_threaded_build_is_found, set_up, tear_down)
{
	const struct {
		uint32_t own;
		uint64_t others; // the lowest two bits are flags
		uint64_t references;
	} rows[] = {
		{ 1, 0, 1 },
		{ 2, 3 << 2 | 1, 5 },
		{ 0, 1 << 2, 1 },
		{ UINT32_MAX, 0, UINT64_MAX },
		{ 1, UINT64_C(1) << 60, UINT64_MAX },
		{ 0, 0, 0 },
	};
	struct python_object object = make_object(list_type, 40);
	struct python_object found;

	put(type_type + 8, type_type - 16);
	put(list_type + 8, type_type - 16);
	put(list_type + 32, 40 + 16); // its size
	put(object.addr + 8, list_type - 16);
	python_objects_detach(&python); // what was read of types before
	python = (struct python_objects){ .memory = &memory,
		                              .shape = python_layout_find(0x030d0000, false),
		                              .why = "",
		                              .shift = 16,
		                              .type_type = type_type };
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		put(object.addr - 8, (uint64_t)rows[i].own << 32);
		put(object.addr, rows[i].others);
		memory_moved(&memory);
		assert_int_equal(python_objects_in(&python, object.addr - 16, 56, &found), rows[i].references != 0);
		if (rows[i].references == 0)
			continue;
		assert_int_equal(found.addr, object.addr);
		assert_int_equal(python_objects_references(&python, &found), rows[i].references);
		assert_int_equal(python_objects_hold(&python, &found, object.addr + 24), PYTHON_HOLD_SURE);
	}
}

TEST_WITH(H3_places_behind_the_end_of_a_list_hold_nothing, set_up, tear_down)
{
	struct python_object list = make_object(list_type, 40);
	uint64_t items = room(80);

	put(list.addr + 16, 3);
	put(list.addr + 24, items);
	memory_moved(&memory);
	assert_true(python_objects_is_buffer(&python, &list, list.addr + 24));
	assert_false(python_objects_is_buffer(&python, &list, list.addr + 16));
	for (uint64_t i = 0; i < 10; i++)
		assert_int_equal(python_objects_buffer_holds(&python, &list, list.addr + 24, items, items + 8 * i), i < 3);
	assert_int_equal(python_objects_items(&python, &list), 3);
}

TEST_WITH(H3_places_of_a_deque_that_were_left_hold_nothing, set_up, tear_down)
{
	struct python_object deque = make_object(deque_type, 80);
	uint64_t first = room(528);
	uint64_t middle = room(528);
	uint64_t last = room(528);
	uint64_t block = 0;

	put(deque.addr + 24, first);
	put(deque.addr + 32, last);
	put(deque.addr + 40, 60);
	put(deque.addr + 48, 2);
	put(first + 520, middle);
	put(middle + 520, last);
	put(last + 520, first); // left over
	memory_moved(&memory);
	for (uint64_t i = 0; i < 64; i++) {
		assert_int_equal(python_objects_buffer_holds(&python, &deque, deque.addr + 24, first, first + 8 + 8 * i),
		                 i >= 60);
		assert_true(python_objects_buffer_holds(&python, &deque, deque.addr + 24, middle, middle + 8 + 8 * i));
		assert_int_equal(python_objects_buffer_holds(&python, &deque, deque.addr + 32, last, last + 8 + 8 * i), i <= 2);
	}
	assert_false(python_objects_buffer_holds(&python, &deque, deque.addr + 24, first,
	                                         first)); // the block before it is another's
	assert_true(python_objects_buffer_holds(&python, &deque, deque.addr + 24, first, first + 520));
	assert_true(python_objects_buffer_holds(&python, &deque, deque.addr + 32, last, last));
	assert_false(python_objects_buffer_holds(&python, &deque, deque.addr + 32, last, last + 520));
	assert_true(python_objects_next_block(&python, &deque, &block) && block == first);
	assert_true(python_objects_next_block(&python, &deque, &block) && block == middle);
	assert_true(python_objects_next_block(&python, &deque, &block) && block == last);
	assert_false(python_objects_next_block(&python, &deque, &block));
}

TEST_WITH(a_dictionary_names_what_it_holds, set_up, tear_down)
{
	static const char *const names[] = { "one", "two", "three" };
	struct python_object dict = make_object(dict_type, 48);
	uint64_t keys = make_keys(1, 3, names);
	struct python_edge edge;

	put(dict.addr + 16, 3);
	put(dict.addr + 32, keys);
	memory_moved(&memory);
	python_objects_edge(&python, &dict, dict.addr + 32, keys + 40 + 16 + 8, &edge);
	assert_int_equal(edge.kind, PYTHON_EDGE_KEY);
	assert_string_equal(edge.name, "'two'");
	python_objects_edge(&python, &dict, dict.addr + 32, keys + 40 + 32, &edge);
	assert_int_equal(edge.kind, PYTHON_EDGE_KEY_ITSELF);
	assert_string_equal(edge.name, "'three'");
	assert_true(python_objects_buffer_holds(&python, &dict, dict.addr + 32, keys, keys + 40 + 40));
	assert_false(python_objects_buffer_holds(&python, &dict, dict.addr + 32, keys, keys + 40 + 48)); // not in use
	assert_false(python_objects_buffer_holds(&python, &dict, dict.addr + 32, keys, keys + 24));      // its head
}

/* {id(object): ...}: the hash of a number is that number. */
TEST_WITH(a_hash_is_no_pointer, set_up, tear_down)
{
	struct python_object dict = make_object(dict_type, 48);
	uint64_t keys = room(32 + 8 + 8 * 24);

	put(keys + 8, 3 | 3 << 8);
	put(keys + 24, 2);
	put(dict.addr + 16, 2);
	put(dict.addr + 32, keys);
	memory_moved(&memory);
	for (uint64_t word = 0; word < 8; word++)
		assert_int_equal(python_objects_buffer_holds(&python, &dict, dict.addr + 32, keys, keys + 40 + 8 * word),
		                 word % 3 != 0 && word < 6);
}

TEST_WITH(H3_values_of_shared_keys_are_as_many_as_those, set_up, tear_down)
{
	static const char *const names[] = { "one", "two", "three" };
	struct python_object dict = make_object(dict_type, 48);
	uint64_t values = room(64);

	put(dict.addr + 32, make_keys(2, 3, names));
	put(dict.addr + 40, values);
	memory_moved(&memory);
	for (uint64_t i = 0; i < 8; i++)
		assert_int_equal(python_objects_buffer_holds(&python, &dict, dict.addr + 40, values, values + 8 * i), i < 3);
}

TEST_WITH(damaged_keys_are_refused, set_up, tear_down)
{
	static const char *const names[] = { "one" };
	uint64_t addr = make_keys(1, 1, names);
	struct python_keys keys;

	memory_moved(&memory);
	assert_true(python_objects_keys(&python, addr, &keys));
	assert_int_equal(keys.count, 1);
	put(addr + 8, 3 | 3 << 8 | 3 << 16); // no such kind
	memory_moved(&memory);
	assert_false(python_objects_keys(&python, addr, &keys));
	put(addr + 8, 3 | 3 << 8 | 1 << 16);
	put(addr + 24, UINT64_C(1) << 40);
	memory_moved(&memory);
	assert_false(python_objects_keys(&python, addr, &keys));
	assert_false(python_objects_keys(&python, 0, &keys));
	assert_false(python_objects_keys(&python, addr + 4, &keys));
}

TEST_WITH(a_text_is_cut_and_made_readable, set_up, tear_down)
{
	uint64_t text = make_string("ab\ncdefgh");
	char found[8];

	memory_moved(&memory);
	assert_true(python_objects_string(&python, text, found, sizeof(found)));
	assert_string_equal(found, "ab?c");
	assert_false(python_objects_string(&python, list_type, found, sizeof(found)));
	assert_false(python_objects_string(&python, 0, found, sizeof(found)));
}

TEST_WITH(a_module_is_known_by_its_names, set_up, tear_down)
{
	static const char *const names[] = { "__name__", "__spec__", "Out" };
	struct python_object dict = make_object(dict_type, 48);
	uint64_t keys = make_keys(1, 3, names);
	struct python_namespace module;

	put(dict.addr + 32, keys);
	put(keys + 40 + 8, make_string("shop"));
	memory_moved(&memory);
	assert_true(python_objects_module(&python, &dict, &module));
	assert_string_equal(module.name, "shop");
	assert_true(module.has_results);
	put(keys + 24, 2);
	memory_moved(&memory);
	assert_true(python_objects_module(&python, &dict, &module));
	assert_false(module.has_results);
	put(keys + 24, 1); // __name__ alone does not make one
	memory_moved(&memory);
	assert_false(python_objects_module(&python, &dict, &module));
}

TEST(members_have_the_names_of_their_version)
{
	static const struct {
		uint32_t version;
		const char *type;
		bool is_exception;
		uint64_t offset;
		const char *name;
	} cases[] = {
		{ 0x03080000, "function", false, 48, "__closure__" },
		{ 0x030b0000, "function", false, 48, "__code__" },
		{ 0x030b0000, "function", false, 72, "__closure__" },
		{ 0x030a0000, "ValueError", true, 32, "__traceback__" },
		{ 0x030d0000, "ValueError", true, 40, "__traceback__" },
		{ 0x030d0000, "ValueError", false, 40, NULL },
		{ 0x030c0000, "generator", false, 16, NULL },
		{ 0x03090000, "generator", false, 16, "gi_frame" },
		{ 0x030e0000, "bytearray", false, 56, NULL },
		{ 0x030f0000, "bytearray", false, 56, "data" },
		{ 0x030f0000, "_asyncio.Task", false, 128, "_coro" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct python_member *member = python_shape_member(python_layout_find(cases[i].version, false),
		                                                         cases[i].type, cases[i].is_exception, cases[i].offset);

		if (cases[i].name == NULL)
			assert_null(member);
		else
			assert_string_equal(member->name, cases[i].name);
	}
	assert_null(python_layout_find(0x03070000, false));
	assert_null(python_layout_find(0x03100000, false));
	assert_null(python_layout_find(0, false));
}

RUN_TESTS(NULL, NULL)
