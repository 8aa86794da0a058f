/*
 * python_types.c - what kind of object is in this block of memory (see python_types.h)?
 *
 * The offsets inside a type object and a dictionary, counted from the end of the object's head, are those of every version from
 * 3.8 to 3.15, free-threaded or not.
 */
#include "python/python_types.h"

#include <stdbool.h>
#include <string.h>

#include "base/checked_memory.h"
#include "python/python_memory.h"

#define FLAG_HEAP (UINT64_C(1) << 9)
#define FLAG_READY (UINT64_C(1) << 12)
#define FLAG_COLLECTED (UINT64_C(1) << 14)
#define BASES_MAX 16
#define BASIC_SIZE_MAX 65536
#define DICT_KEYS(layout) ((layout)->object_size + 16u)
#define ENTRIES_LOOKED_AT 3 // a class body sets __module__ first
#define KNOWN_MAX 1024      // types of one pass; a power of two
#define KNOWN_TRIES 16

struct known_type {
	uint64_t addr; // 0 = empty
	bool is_type;
	uint8_t prefix_words; // before the object itself
	uint32_t basic_size;
	char name[PYTHON_TYPES_NAME_BYTES];
};

static struct known_type known[KNOWN_MAX];
static struct checked_window window; // the latest memory that was read

void
python_types_forget(void)
{
	for (unsigned i = 0; i < KNOWN_MAX; i++)
		known[i] = (struct known_type){ .addr = 0 };
	window.addr = CHECKED_WINDOW_EMPTY;
}

/* 0 when it cannot be read: for every word here that means the same as a 0. */
static uint64_t
word_at(uint64_t addr)
{
	uint64_t value = 0;

	return checked_memory_word(&window, addr, &value) ? value : 0;
}

static uint8_t
byte_at(uint64_t addr)
{
	return (uint8_t)(word_at(addr & ~UINT64_C(7)) >> (addr & 7) * 8);
}

/* Appends a text that ends with a zero or after `length` bytes. False when it is none, or has no room. */
static bool
append(char *name, uint64_t addr, uint64_t length)
{
	size_t used = strlen(name);
	uint64_t i;

	for (i = 0; i < length; i++) {
		uint8_t byte = byte_at(addr + i);

		if (byte == 0)
			break;
		if (byte < 0x20 || byte == 0x7f || used + i + 1 >= PYTHON_TYPES_NAME_BYTES)
			return false;
		name[used + i] = (char)byte;
	}
	name[used + i] = '\0';
	return i != 0;
}

/* Is it a str of ASCII characters? */
static bool
is_ascii_string(const struct python_interpreter *python, uint64_t addr, uint64_t *length)
{
	const struct python_layout *layout = &python->layout;

	if (!python_memory_is_object(addr) || word_at(addr + layout->object_type) != python->types.string)
		return false;

	uint64_t state = word_at(addr + layout->string_state);

	*length = word_at(addr + layout->string_length);
	state >>= layout->string_kind_shift;
	return (state & 7) == 1 && (state >> 3 & 3) == 3 && *length < PYTHON_TYPES_NAME_BYTES;
}

/* Where the entries of a dictionary begin, and how far one is from the next; the key is in front of the value. */
static uint64_t
first_entry(const struct python_interpreter *python, uint64_t dict, uint64_t *step)
{
	uint64_t keys = word_at(dict + DICT_KEYS(&python->layout));

	*step = 24;
	if (!python_memory_is_object(keys))
		return 0;
	if (!python->layout.has_shaped_keys) {
		uint64_t size = word_at(keys + 8);
		uint64_t width = size <= 0xff ? 1 : size <= 0xffff ? 2 : 4;

		return size <= 1u << 20 ? keys + 40 + size * width + 8 : 0; // behind the hash
	}
	uint64_t shape = word_at(keys + 8);
	uint8_t log2_index_bytes = (uint8_t)(shape >> 8);
	bool is_general = (uint8_t)(shape >> 16) == 0;

	if (log2_index_bytes > 24)
		return 0;
	*step = is_general ? 24 : 16;
	return keys + 32 + (UINT64_C(1) << log2_index_bytes) + (is_general ? 8 : 0);
}

/* The module of a class: what its body said first. */
static void
append_module(const struct python_interpreter *python, uint64_t type, char *name)
{
	const struct python_layout *layout = &python->layout;
	uint64_t dict = word_at(type + PYTHON_TYPE_DICT(layout));
	uint64_t step;
	uint64_t entry = python_memory_is_object(dict) ? first_entry(python, dict, &step) : 0;
	uint64_t length;

	for (unsigned i = 0; entry != 0 && i < ENTRIES_LOOKED_AT; i++, entry += step) {
		char key[PYTHON_TYPES_NAME_BYTES] = "";
		uint64_t key_addr = word_at(entry);
		uint64_t value = word_at(entry + 8);

		if (!is_ascii_string(python, key_addr, &length) || !append(key, key_addr + layout->string_ascii_data, length) ||
		    strcmp(key, "__module__") != 0)
			continue;
		if (is_ascii_string(python, value, &length) && append(name, value + layout->string_ascii_data, length) &&
		    strcmp(name, "__main__") != 0 && strcmp(name, "builtins") != 0 &&
		    strlen(name) + 1 < PYTHON_TYPES_NAME_BYTES)
			strcat(name, ".");
		else
			*name = '\0';
		return;
	}
}

/* Does this object's type descend from `type`? */
static bool
is_type(const struct python_interpreter *python, uint64_t addr)
{
	uint64_t metatype = word_at(addr + python->layout.object_type);

	for (unsigned i = 0; i < BASES_MAX && python_memory_is_object(metatype); i++) {
		if (metatype == python->types.type)
			return true;
		metatype = word_at(metatype + PYTHON_TYPE_BASE(&python->layout));
	}
	return false;
}

static void
describe(const struct python_interpreter *python, uint64_t addr, struct known_type *type)
{
	*type = (struct known_type){ .addr = addr };
	if (!is_type(python, addr))
		return;

	uint64_t flags = word_at(addr + PYTHON_TYPE_FLAGS(&python->layout));
	uint64_t basic_size = word_at(addr + PYTHON_TYPE_BASIC_SIZE(&python->layout));

	if ((flags & FLAG_READY) == 0 || basic_size < python->layout.object_size || basic_size > BASIC_SIZE_MAX)
		return;
	type->prefix_words = (flags & python->layout.type_managed_flags) != 0 ? 2 : 0;
	if ((flags & FLAG_COLLECTED) != 0 && !python->layout.is_free_threaded)
		type->prefix_words += 2;
	if (addr == python->types.string) // most have less than the type says
		basic_size = python->layout.string_ascii_data;
	type->basic_size = (uint32_t)basic_size;
	if ((flags & FLAG_HEAP) != 0)
		append_module(python, addr, type->name);
	type->is_type = append(type->name, word_at(addr + PYTHON_TYPE_NAME(&python->layout)), PYTHON_TYPES_NAME_BYTES);
}

static const struct known_type *
find(const struct python_interpreter *python, uint64_t addr)
{
	uint64_t home = addr * UINT64_C(0x9e3779b97f4a7c15) >> 40;
	struct known_type *fresh = NULL;

	if (!python_memory_is_object(addr))
		return NULL;
	for (unsigned i = 0; i < KNOWN_TRIES; i++) {
		struct known_type *type = &known[(home + i) % KNOWN_MAX];

		if (type->addr == addr)
			return type->is_type ? type : NULL;
		if (fresh == NULL && !type->is_type) // empty, or no type: names that were given out stay
			fresh = type;
		if (type->addr == 0)
			break;
	}
	if (fresh == NULL)
		return NULL;
	describe(python, addr, fresh);
	return fresh->is_type ? fresh : NULL;
}

/*
 * Has the object with this head references? They are 32 bits, the rest says other things; without a lock 32 of one thread and 62 of all.
 * From 3.14 on the address of the next one in a free list stands there: 16 bits behind the references are 0 in what is alive.
 */
static bool
is_referenced(const struct python_layout *layout, const uint64_t *head)
{
	if (layout->is_free_threaded)
		return head[1] >> 32 != 0 || head[2] >> 2 != 0;
	return (uint32_t)head[0] != 0 && (!layout->has_free_list_in_head || (uint16_t)(head[0] >> 32) == 0);
}

/* `padding`: words that debug hooks on top of ours put in front. */
static const char *
name_at(const struct python_interpreter *python, const uint64_t words[PYTHON_TYPES_WORDS], uint64_t bytes,
        unsigned padding)
{
	static const uint8_t prefixes[] = { 2, 0, 4 }; // what stands in front of collected objects looks like one without
	const struct python_layout *layout = &python->layout;
	const unsigned head_words = layout->object_size / 8;

	for (unsigned i = 0; i < sizeof(prefixes); i++) {
		unsigned at = prefixes[i] + padding;

		if (at + head_words > PYTHON_TYPES_WORDS || (at + head_words) * 8 > bytes || !is_referenced(layout, &words[at]))
			continue;

		const struct known_type *type = find(python, words[at + layout->object_type / 8]);

		if (type != NULL && type->prefix_words == prefixes[i] && at * 8 + type->basic_size <= bytes)
			return type->name;
	}
	return NULL;
}

const char *
python_types_name(const struct python_interpreter *python, const uint64_t words[PYTHON_TYPES_WORDS], uint64_t bytes)
{
	const char *name = name_at(python, words, bytes, 0);

	return name != NULL ? name : name_at(python, words, bytes, 2);
}
