/*
 * python_string.c - UTF-8 from the interpreter's three string representations; see python_string.h.
 */
#include "python/python_string.h"

#include <string.h>

#include "python/python_memory.h"

/* The state word, from bit string_kind_shift on: bytes per character (3 bits), compact, ASCII. */
#define STATE_KIND_MASK 7u
#define STATE_COMPACT (1u << 3)
#define STATE_ASCII (1u << 4)

#define LENGTH_MAX (UINT64_C(1) << 32) // far more than any name; a larger one is not a string
#define REPLACEMENT 0xfffdu

static uint32_t
character_at(const struct python_string *string, uint64_t index)
{
	const uint8_t *at = (const uint8_t *)string->characters + index * string->kind;
	uint32_t character = 0;

	memcpy(&character, at, string->kind); // little endian, as the shim's only machine is
	return character;
}

static uint32_t
encode(uint32_t character, uint8_t *out)
{
	if (character >= 0xdc80 && character <= 0xdcff) { // a byte of a file's name that is no UTF-8 (surrogateescape)
		out[0] = (uint8_t)(character - 0xdc00);
		return 1;
	}
	if (character > 0x10ffff || (character >= 0xd800 && character <= 0xdfff))
		character = REPLACEMENT;

	if (character < 0x80) {
		out[0] = (uint8_t)character;
		return 1;
	}
	if (character < 0x800) {
		out[0] = (uint8_t)(0xc0 | character >> 6);
		out[1] = (uint8_t)(0x80 | (character & 0x3f));
		return 2;
	}
	if (character < 0x10000) {
		out[0] = (uint8_t)(0xe0 | character >> 12);
		out[1] = (uint8_t)(0x80 | (character >> 6 & 0x3f));
		out[2] = (uint8_t)(0x80 | (character & 0x3f));
		return 3;
	}
	out[0] = (uint8_t)(0xf0 | character >> 18);
	out[1] = (uint8_t)(0x80 | (character >> 12 & 0x3f));
	out[2] = (uint8_t)(0x80 | (character >> 6 & 0x3f));
	out[3] = (uint8_t)(0x80 | (character & 0x3f));
	return 4;
}

bool
python_string_open(const struct python_interpreter *python, uint64_t addr, struct python_string *string)
{
	const struct python_layout *layout = &python->layout;

	*string = (struct python_string){ .kind = 1, .is_ascii = true };
	if (!python_memory_is_object(addr) || python_memory_u64(addr + layout->object_type) != python->types.string)
		return false;

	uint32_t state = python_memory_u32(addr + layout->string_state) >> layout->string_kind_shift;
	uint32_t kind = state & STATE_KIND_MASK;
	uint64_t length = python_memory_u64(addr + layout->string_length);

	if ((state & STATE_COMPACT) == 0 || (kind != 1 && kind != 2 && kind != 4) || length > LENGTH_MAX)
		return false;

	bool is_ascii = (state & STATE_ASCII) != 0;

	*string = (struct python_string){
		.characters = (const void *)(addr + (is_ascii ? layout->string_ascii_data : layout->string_data)),
		.length = length,
		.room_bytes = PYTHON_STRING_BYTES_MAX,
		.kind = (uint8_t)kind,
		.is_ascii = is_ascii,
	};
	return true;
}

void
python_string_next(struct python_string *string, struct python_piece *piece)
{
	piece->count = 0;
	piece->bytes = piece->buffer;

	if (string->is_ascii) {
		uint64_t left = string->length - string->next;

		if (left > string->room_bytes) {
			left = string->room_bytes;
			string->was_cut = true;
		}
		piece->bytes = (const uint8_t *)((uintptr_t)string->characters + string->next); // there may be none
		piece->count = (uint32_t)left;
		string->room_bytes -= piece->count;
		string->next = string->length;
		return;
	}

	while (string->next < string->length && piece->count <= PYTHON_STRING_PIECE_BYTES - 4) {
		uint32_t bytes = encode(character_at(string, string->next), piece->buffer + piece->count);

		if (bytes > string->room_bytes) {
			string->was_cut = true;
			string->next = string->length;
			break;
		}
		string->room_bytes -= bytes;
		piece->count += bytes;
		string->next++;
	}
}

static bool
has_at(const struct python_string *string, uint64_t index, const char *text)
{
	for (; *text != '\0'; text++, index++) {
		if (index >= string->length || character_at(string, index) != (unsigned char)*text)
			return false;
	}
	return true;
}

/* Where the component before this slash begins. */
static uint64_t
component_before(const struct python_string *string, uint64_t slash)
{
	while (slash > 0 && character_at(string, slash - 1) != '/')
		slash--;
	return slash;
}

void
python_string_leave_out_folders(struct python_string *string)
{
	static const char *const libraries[] = { "/site-packages/", "/dist-packages/", "/lib/python3.", "/lib64/python3." };
	uint64_t last = UINT64_MAX; // slash

	if (string->length > PYTHON_STRING_BYTES_MAX || has_at(string, 0, "<"))
		return;
	for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
		for (uint64_t at = string->length; at-- > 0;) {
			if (has_at(string, at, libraries[i])) {
				string->next = component_before(string, at);
				return;
			}
		}
	}
	for (uint64_t at = 0; at < string->length; at++) {
		if (character_at(string, at) == '/')
			last = at;
	}
	if (last == UINT64_MAX)
		return;
	uint64_t folder = component_before(string, last);
	bool says_little = has_at(string, last, "/__"); // of a package, whose name is its folder's

	string->next = says_little || has_at(string, folder, "ipykernel_") ? folder : last + 1;
}
