/*
 * test_python_types.c - is what lies in a block named when it is an object, and never when it is none?
 */
#include "unit.h"

#include "python/python_fakes.h"
#include "python/python_types.h"

#define HEAP (1u << 9)
#define READY (1u << 12)
#define COLLECTED (1u << 14)
#define MANAGED_DICT (1u << 4)
#define BASIC_BYTES 32

static struct python_interpreter python;

/* A type as CPython 3.11 lays it out; only what python_types.c looks at. */
struct fake_type {
	_Alignas(16) char type[400];
	char dict[48];
	char keys[96];
	char key[160];
	char value[160];
};

static struct fake_type fake;

static void
type_make(const char *name, uint64_t flags, uint64_t basic_bytes)
{
	memset(&fake, 0, sizeof(fake));
	fake_put(fake.type, 8, python.types.type);
	fake_put(fake.type, 24, (uint64_t)name);
	fake_put(fake.type, 32, basic_bytes);
	fake_put(fake.type, 168, flags);
	python_types_forget();
}

/* The class body's first word, as a dictionary of str keys or of any; an index of 8 bytes before the entries. */
static void
module_make(const char *module, int is_general)
{
	size_t entry = 32 + 8 + (is_general ? 8 : 0);

	fake_string(fake.key, 1, 1, "__module__", strlen("__module__"));
	fake_string(fake.value, 1, 1, module, strlen(module));
	fake_put(fake.keys, 8, 3u << 8 | (is_general ? 0 : 1u << 16));
	fake_put(fake.keys, entry, (uint64_t)fake.key);
	fake_put(fake.keys, entry + 8, (uint64_t)fake.value);
	fake_put(fake.dict, 32, (uint64_t)fake.keys);
	fake_put(fake.type, 264, (uint64_t)fake.dict);
}

/* An object with so many references behind so many words, in a block of so many bytes. */
static const char *
name_of(uint64_t type, unsigned before, uint64_t references, uint64_t bytes)
{
	uint64_t words[PYTHON_TYPES_WORDS] = { 0 };

	words[before] = references;
	words[before + 1] = type;
	return python_types_name(&python, words, bytes);
}

static const struct {
	const char *what;
	uint64_t flags;
	unsigned before;
	uint64_t references;
	uint64_t bytes;
	bool is_named;
} blocks[] = {
	{ "a plain object", READY, 0, 1, BASIC_BYTES, true },
	{ "what the collector knows", READY | COLLECTED, 2, 1, BASIC_BYTES + 16, true },
	{ "an instance with a managed dictionary", READY | COLLECTED | MANAGED_DICT, 4, 1, BASIC_BYTES + 32, true },
	{ "behind what debug hooks put in front", READY, 2, 1, BASIC_BYTES + 16, true },
	{ "dying, or waiting in a free list", READY, 0, 0, BASIC_BYTES, false },
	{ "dead in the lower half, as an immortal one is not", READY, 0, UINT64_C(1) << 32, BASIC_BYTES, false },
	{ "too small for an instance", READY, 0, 1, BASIC_BYTES - 8, false },
	{ "too small behind the collector's words", READY | COLLECTED, 2, 1, BASIC_BYTES + 8, false },
	{ "at another place than its type says", READY | COLLECTED, 0, 1, BASIC_BYTES + 16, false },
	{ "of a type that is not ready", 0, 0, 1, BASIC_BYTES, false },
};

TEST(a_block_is_named_when_all_agrees)
{
	for (size_t i = 0; i < sizeof(blocks) / sizeof(blocks[0]); i++) {
		type_make("Slots", blocks[i].flags, BASIC_BYTES);
		const char *name = name_of((uint64_t)fake.type, blocks[i].before, blocks[i].references, blocks[i].bytes);

		if ((name != NULL && strcmp(name, "Slots") == 0) != blocks[i].is_named)
			fail_msg("%s: %s", blocks[i].what, name != NULL ? name : "no name");
	}
}

/* From 3.14 on: the address of the next one where references are counted, which are alive with any flags above. */
TEST(what_waits_in_a_free_list_is_no_object)
{
	type_make("Slots", READY, BASIC_BYTES);
	python.layout.has_free_list_in_head = true;
	assert_null(name_of((uint64_t)fake.type, 0, UINT64_C(0x7f9a8c29b600), BASIC_BYTES));
	assert_string_equal(name_of((uint64_t)fake.type, 0, UINT64_C(0xc000) << 48 | 3, BASIC_BYTES), "Slots");
	python.layout.has_free_list_in_head = false;
}

TEST(what_leads_nowhere_is_no_type)
{
	static const uint64_t addresses[] = { 0,         1, 8, 65536, UINT64_C(0x7000000000), UINT64_C(0xdbdbdbdbdbdbdbdb),
		                                  UINT64_MAX };

	type_make("Slots", READY, BASIC_BYTES);
	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
		assert_null(name_of(addresses[i], 0, 1, BASIC_BYTES));
		assert_null(name_of((uint64_t)fake.type + (addresses[i] & 7) + 1, 0, 1, BASIC_BYTES));
		type_make((const char *)(uintptr_t)addresses[i], READY, BASIC_BYTES); // its name
		assert_null(name_of((uint64_t)fake.type, 0, 1, BASIC_BYTES));
		type_make("Slots", READY, BASIC_BYTES);
		fake_put(fake.type, 8, addresses[i]); // its type
		assert_null(name_of((uint64_t)fake.type, 0, 1, BASIC_BYTES));
		type_make("Slots", READY | HEAP, BASIC_BYTES);
		fake_put(fake.type, 264, addresses[i]); // its dictionary: the module stays unknown
		assert_string_equal(name_of((uint64_t)fake.type, 0, 1, BASIC_BYTES), "Slots");
		fake_put(fake.type, 264, (uint64_t)fake.dict);
		fake_put(fake.dict, 32, addresses[i]);
		python_types_forget();
		assert_string_equal(name_of((uint64_t)fake.type, 0, 1, BASIC_BYTES), "Slots");
	}
}

TEST(sizes_that_no_instance_has_are_refused)
{
	static const uint64_t sizes[] = { 0, 8, 65537, UINT64_MAX };

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		type_make("Slots", READY, sizes[i]);
		assert_null(name_of((uint64_t)fake.type, 0, 1, 1 << 20));
	}
}

TEST(names_are_short_texts)
{
	char longest[PYTHON_TYPES_NAME_BYTES + 1];

	memset(longest, 'x', sizeof(longest));
	longest[PYTHON_TYPES_NAME_BYTES] = '\0';
	type_make(longest, READY, BASIC_BYTES);
	assert_null(name_of((uint64_t)fake.type, 0, 1, BASIC_BYTES));
	type_make(longest + 1, READY, BASIC_BYTES);
	assert_string_equal(name_of((uint64_t)fake.type, 0, 1, BASIC_BYTES), longest + 1);
	type_make("line\nbreak", READY, BASIC_BYTES);
	assert_null(name_of((uint64_t)fake.type, 0, 1, BASIC_BYTES));
	type_make("", READY, BASIC_BYTES);
	assert_null(name_of((uint64_t)fake.type, 0, 1, BASIC_BYTES));
}

TEST(a_class_is_named_with_its_module)
{
	for (int is_general = 0; is_general < 2; is_general++) {
		type_make("Batch", READY | HEAP, BASIC_BYTES);
		module_make("project.data", is_general);
		assert_string_equal(name_of((uint64_t)fake.type, 0, 1, BASIC_BYTES), "project.data.Batch");
		type_make("Batch", READY | HEAP, BASIC_BYTES);
		module_make("__main__", is_general);
		assert_string_equal(name_of((uint64_t)fake.type, 0, 1, BASIC_BYTES), "Batch");
	}
}

TEST(a_metaclass_makes_types_and_a_circle_of_bases_ends)
{
	static _Alignas(16) char metaclass[400];

	type_make("Slots", READY, BASIC_BYTES);
	fake_put(fake.type, 8, (uint64_t)metaclass);
	fake_put(metaclass, 256, python.types.type);
	assert_string_equal(name_of((uint64_t)fake.type, 0, 1, BASIC_BYTES), "Slots");
	fake_put(metaclass, 256, (uint64_t)metaclass);
	python_types_forget();
	assert_null(name_of((uint64_t)fake.type, 0, 1, BASIC_BYTES));
}

TEST(what_is_known_holds_until_it_is_forgotten)
{
	type_make("First", READY, BASIC_BYTES);
	assert_string_equal(name_of((uint64_t)fake.type, 0, 1, BASIC_BYTES), "First");
	fake_put(fake.type, 24, (uint64_t) "Second");
	assert_string_equal(name_of((uint64_t)fake.type, 0, 1, BASIC_BYTES), "First");
	python_types_forget();
	assert_string_equal(name_of((uint64_t)fake.type, 0, 1, BASIC_BYTES), "Second");
}

SETUP(start)
{
	python = fake_interpreter();
}

RUN_TESTS_IN(start, NULL)
