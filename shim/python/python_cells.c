/*
 * python_cells.c - cells of a notebook, from the namespace they run in; see python_cells.h.
 *
 * Layouts of dict and list as in CPython's Include/cpython/dictobject.h, Include/internal/pycore_dict.h and Include/cpython/listobject.h
 * of 3.8 to 3.15.
 */
#include "python/python_cells.h"

#include <stdalign.h>
#include <stdbool.h>
#include <string.h>

#include "base/checked_memory.h"
#include "base/settings.h"
#include "base/turn.h"
#include "capture/capture_file.h"
#include "python/python_memory.h"
#include "python/python_string.h"

#define TEXT_BYTES_MAX 65536u           // of one cell; a longer one is known by its hash
#define TEXTS_BYTES_MAX (8u << 20)      // of all
#define ENTRIES_MAX (UINT64_C(1) << 20) // of a namespace
#define FIRST_ENTRIES 64                // IPython puts "In" there first
#define OBJECT_BYTES 80                 // the longest head of a str, or an ASCII one and a short text

#define DICT_KEYS 32
#define LIST_SIZE 16
#define LIST_ITEMS 24

/* Everything here belongs to the thread whose turn it is. */
static struct turn noting;
static uint64_t namespace_addr; // the one that was read last
static uint32_t last_number;    // of its cells in the capture
static uint64_t texts_bytes;
static struct checked_window window;
static struct text {
	alignas(8) uint8_t object[OBJECT_BYTES + TEXT_BYTES_MAX]; // a copy
	uint8_t utf8[TEXT_BYTES_MAX];
	uint32_t bytes;
} typed, compiled;

struct table {
	uint64_t entries_addr;
	uint64_t count;
	uint64_t entry_bytes;
};

static bool
read_word(uint64_t addr, uint64_t *value)
{
	return checked_memory_word(&window, addr, value);
}

/* From 3.11 on a table whose keys are all strings has no hashes in its entries. */
static bool
open_table(const struct python_layout *layout, uint64_t dict, struct table *table)
{
	uint64_t keys;
	uint64_t size;

	if (!python_memory_is_object(dict) || !read_word(dict + DICT_KEYS, &keys) || !read_word(keys + 8, &size))
		return false;
	if (layout->has_shaped_keys) {
		uint64_t kind = size >> 16 & 0xff;
		uint64_t index_shift = size >> 8 & 0xff;

		if (kind > 1 || index_shift > 40 || !read_word(keys + 24, &table->count))
			return false;
		table->entries_addr = keys + 32 + (UINT64_C(1) << index_shift);
		table->entry_bytes = kind == 1 ? 16 : 24;
	} else {
		uint64_t index_bytes = size <= 0xff ? 1 : size <= 0xffff ? 2 : 4;

		if (size > UINT32_MAX || !read_word(keys + 32, &table->count))
			return false;
		table->entries_addr = keys + 40 + size * index_bytes;
		table->entry_bytes = 24;
	}
	return table->count <= ENTRIES_MAX;
}

/* A copy of a short name. False when the entry is empty or has another key. */
static bool
read_entry(const struct python_interpreter *python, const struct table *table, uint64_t number, char name[16],
           uint64_t *value)
{
	alignas(8) uint8_t object[OBJECT_BYTES];
	struct python_string string;
	uint64_t value_addr = table->entries_addr + (number + 1) * table->entry_bytes - 8;
	uint64_t key;

	if (!read_word(value_addr - 8, &key) || !read_word(value_addr, value) || *value == 0 ||
	    !python_memory_is_object(key) || !checked_memory_copy(object, key, sizeof(object)) ||
	    !python_string_open(python, (uint64_t)object, &string) || !string.is_ascii || string.length > 15)
		return false;

	uint64_t start = (uint64_t)((const uint8_t *)string.characters - object);

	if (start + string.length > sizeof(object))
		return false;
	memcpy(name, string.characters, string.length);
	name[string.length] = '\0';
	return true;
}

/* The number in "_i12"; 0 for other names. */
static uint32_t
number_of(const char *name)
{
	uint32_t number = 0;

	if (name[0] != '_' || name[1] != 'i' || name[2] < '1' || name[2] > '9')
		return 0;
	for (name += 2; *name >= '0' && *name <= '9' && number < 100000000; name++)
		number = number * 10 + (uint32_t)(*name - '0');
	return *name == '\0' ? number : 0;
}

static bool
read_text(const struct python_interpreter *python, uint64_t addr, struct text *text)
{
	struct python_string string;
	struct python_piece piece;

	if (!python_memory_is_object(addr) || !checked_memory_copy(text->object, addr, OBJECT_BYTES) ||
	    !python_string_open(python, (uint64_t)text->object, &string) || string.length > TEXT_BYTES_MAX / string.kind)
		return false;

	uint64_t start = (uint64_t)((const uint8_t *)string.characters - text->object);

	if (start > OBJECT_BYTES || !checked_memory_copy(text->object + start, addr + start, string.length * string.kind))
		return false;
	text->bytes = 0;
	string.room_bytes = TEXT_BYTES_MAX;
	for (python_string_next(&string, &piece); piece.count != 0; python_string_next(&string, &piece)) {
		memcpy(text->utf8 + text->bytes, piece.bytes, piece.count);
		text->bytes += piece.count;
	}
	return !string.was_cut;
}

/* In[number]; empty when it is what was typed. */
static bool
read_compiled(const struct python_interpreter *python, uint64_t list, uint32_t number)
{
	uint64_t size;
	uint64_t items;
	uint64_t item;

	if (!python_memory_is_object(list) || !read_word(list + LIST_SIZE, &size) ||
	    !read_word(list + LIST_ITEMS, &items) || number >= size || !read_word(items + 8 * (uint64_t)number, &item) ||
	    !read_text(python, item, &compiled))
		return false;
	if (compiled.bytes == typed.bytes && memcmp(compiled.utf8, typed.utf8, typed.bytes) == 0)
		compiled.bytes = 0;
	return true;
}

static void
append(uint32_t number, uint16_t flags)
{
	size_t bytes = sizeof(struct kmem_cell) + typed.bytes + compiled.bytes;
	struct kmem_cell *cell = NULL;
	uint32_t index;

	if (texts_bytes + bytes <= TEXTS_BYTES_MAX)
		cell = capture_file_append(KMEM_SECTION_RECORDS, bytes, &index);
	if (cell == NULL) {
		capture_file_lost(KMEM_LOST_PYTHON_TEXT, 1);
		return;
	}
	texts_bytes += bytes;
	cell->record.type = KMEM_RECORD_CELL;
	cell->record.flags = flags;
	cell->record.bytes = (uint32_t)bytes;
	cell->number = number;
	cell->typed_bytes = typed.bytes;
	cell->compiled_bytes = compiled.bytes;
	memcpy(cell + 1, typed.utf8, typed.bytes);
	memcpy((uint8_t *)(cell + 1) + typed.bytes, compiled.utf8, compiled.bytes);
	capture_file_link(&capture_file_header()->cells, index);
}

static void
note_new_cells(const struct python_interpreter *python, uint64_t namespace)
{
	struct table table;
	uint32_t newest = last_number;
	uint64_t list = 0;
	uint64_t value;
	char name[16];

	if (!open_table(&python->layout, namespace, &table))
		return;
	for (uint64_t i = 0; i < table.count && i < FIRST_ENTRIES && list == 0; i++) {
		if (read_entry(python, &table, i, name, &value) && strcmp(name, "In") == 0)
			list = value;
	}
	for (uint64_t i = table.count; i-- > 0 && list != 0;) { // in order of their numbers
		uint32_t number = read_entry(python, &table, i, name, &value) ? number_of(name) : 0;

		if (number == 0)
			continue;
		if (number <= last_number)
			break;
		if (number > newest)
			newest = number;
		if (!read_text(python, value, &typed))
			continue;
		if (read_compiled(python, list, number)) {
			append(number, 0);
		} else {
			compiled.bytes = 0;
			append(number, KMEM_CELL_NO_LINES);
		}
	}
	last_number = newest;
}

void
python_cells_note(const struct python_interpreter *python, uint64_t frame_addr)
{
	uint64_t namespace = python_memory_u64(frame_addr + python->layout.frame_globals);

	if (settings.is_private) // then a cell is known by the hash in its file's name
		return;
	if (!turn_take(&noting))
		return;
	window.addr = CHECKED_WINDOW_EMPTY; // what was read before is old
	if (namespace != namespace_addr) {
		namespace_addr = namespace;
		last_number = 0;
	}
	note_new_cells(python, namespace);
	turn_give(&noting);
}

void
python_cells_forked(void)
{
	namespace_addr = 0;
	last_number = 0;
	texts_bytes = 0;
}
