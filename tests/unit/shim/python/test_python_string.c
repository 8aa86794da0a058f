/*
 * test_python_string.c - str objects of every kind as UTF-8.
 */
#include "test.h"

#include "kmem_format.h"
#include "python/python_fakes.h"
#include "python/python_string.h"

static uint32_t
read_all(struct python_string string, uint8_t *out, bool *was_cut)
{
	struct python_piece piece;
	uint32_t bytes = 0;

	for (python_string_next(&string, &piece); piece.count != 0; python_string_next(&string, &piece)) {
		memcpy(out + bytes, piece.bytes, piece.count);
		bytes += piece.count;
	}
	*was_cut = string.was_cut;
	return bytes;
}

static const uint32_t edges[] = { 0x7f,   0x80,   0x7ff,   0x800,    0xd7ff,   0xd800,    0xdfff,
	                              0xe000, 0xffff, 0x10000, 0x10ffff, 0x110000, 0xffffffff };
static const char edges_text[] = "\x7f"
								 "\xc2\x80"
								 "\xdf\xbf"
								 "\xe0\xa0\x80"
								 "\xed\x9f\xbf"
								 "\xef\xbf\xbd"
								 "\xef\xbf\xbd"
								 "\xee\x80\x80"
								 "\xef\xbf\xbf"
								 "\xf0\x90\x80\x80"
								 "\xf4\x8f\xbf\xbf"
								 "\xef\xbf\xbd"
								 "\xef\xbf\xbd";

static const struct {
	unsigned kind;
	int is_ascii;
	const void *characters;
	uint64_t length;
	const char *text;
	const char *why;
} cases[] = {
	{ 1, 1, "", 0, "", "empty" },
	{ 1, 1, "name", 4, "name", "ASCII" },
	{ 1, 0, "\xe9t\xe9", 3, "\xc3\xa9t\xc3\xa9", "Latin-1 is one byte a character, two in UTF-8" },
	{ 2, 0, u"\u0416x\u6f22", 3, "\xd0\x96x\xe6\xbc\xa2", "two bytes a character" },
	{ 2, 0, "\x7f\xdc", 1, "\xef\xbf\xbd", "a lone surrogate is replaced" },
	{ 2, 0, "\xe9\xdc", 1, "\xe9", "a byte of a file's name comes back" },
	{ 4, 0, U"\U0001f40d", 1, "\xf0\x9f\x90\x8d", "four bytes a character" },
	{ 4, 0, edges, 13, edges_text, "first and last of every length" },
};

TEST(texts_of_every_kind)
{
	struct python_interpreter python = fake_interpreter();
	_Alignas(16) char object[256];
	uint8_t text[256];
	bool was_cut;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct python_string string;

		fake_string(object, cases[i].kind, cases[i].is_ascii, cases[i].characters, cases[i].length);
		assert_true(python_string_open(&python, (uint64_t)object, &string));

		uint32_t bytes = read_all(string, text, &was_cut);

		if (bytes != strlen(cases[i].text) || memcmp(text, cases[i].text, bytes) != 0)
			fail_msg("%s: %u bytes", cases[i].why, bytes);
		assert_false(was_cut);
	}
}

TEST(long_texts_are_cut_between_characters)
{
	struct python_interpreter python = fake_interpreter();
	static _Alignas(16) char object[80 + 4 * 5000];
	static uint32_t characters[5000];
	static uint8_t text[8192];

	for (uint64_t length = 1364; length <= 1368; length++) { // 3 bytes each: 1365 fit
		struct python_string string;
		bool was_cut;

		for (uint64_t i = 0; i < length; i++)
			characters[i] = 0x6f22;
		fake_string(object, 4, 0, characters, length);
		assert_true(python_string_open(&python, (uint64_t)object, &string));

		uint32_t bytes = read_all(string, text, &was_cut);

		assert_int_equal(bytes, length < 1365 ? length * 3 : 1365 * 3);
		assert_int_equal(was_cut, length > 1365);
	}
	for (uint64_t length = 4095; length <= 4097; length++) {
		struct python_string string;
		bool was_cut;

		memset(characters, 'x', sizeof(characters));
		fake_string(object, 1, 1, characters, length);
		assert_true(python_string_open(&python, (uint64_t)object, &string));
		assert_int_equal(read_all(string, text, &was_cut), length < 4096 ? length : 4096);
		assert_int_equal(was_cut, length > 4096);
	}
}

TEST(what_is_no_string_is_refused)
{
	struct python_interpreter python = fake_interpreter();
	_Alignas(16) char object[256];
	struct python_string string;
	uint8_t text[64];
	bool was_cut;

	static const struct {
		size_t offset;
		uint64_t value;
		const char *why;
	} damages[] = {
		{ 8, 0, "another type" },
		{ 16, UINT64_MAX, "a negative length" },
		{ 32, 1u << 2, "not compact" },
		{ 32, 1u << 5, "kind 0: not ready" },
		{ 32, 3u << 2 | 1u << 5, "kind 3" },
	};
	for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
		fake_string(object, 1, 1, "name", 4);
		fake_put(object, damages[i].offset, damages[i].value);
		if (python_string_open(&python, (uint64_t)object, &string))
			fail_msg("%s was opened", damages[i].why);
		assert_int_equal(read_all(string, text, &was_cut), 0);
	}
	static const uint64_t addresses[] = { 0, 8, 4097, 0xdddddddddddddddd, UINT64_C(1) << KMEM_ADDRESS_BITS };
	for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++)
		assert_false(python_string_open(&python, addresses[i], &string));
}

static const struct {
	const char *file;
	const char *left;
} names[] = {
	{ "/home/alice/secret/train.py", "train.py" },
	{ "train.py", "train.py" },
	{ "../secret/train.py", "train.py" },
	{ "/home/alice/secret/pkg/__init__.py", "pkg/__init__.py" },
	{ "/__main__.py", "/__main__.py" },
	{ "/home/alice/env/lib/python3.11/site-packages/numpy/core.py", "python3.11/site-packages/numpy/core.py" },
	{ "/usr/lib/python3/dist-packages/numpy/core.py", "python3/dist-packages/numpy/core.py" },
	{ "/usr/lib/python3.11/json/decoder.py", "usr/lib/python3.11/json/decoder.py" },
	{ "/tmp/ipykernel_12/345.py", "ipykernel_12/345.py" },
	{ "<string>", "<string>" },
	{ "<ipython-input-1-/a/b>", "<ipython-input-1-/a/b>" },
	{ "/home/alice/", "" },
	{ "", "" },
};

TEST(names_of_files_without_the_users_folders)
{
	struct python_interpreter python = fake_interpreter();
	_Alignas(16) char object[512];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		for (unsigned kind = 1; kind <= 4; kind *= 2) {
			uint32_t wide[80];
			uint8_t text[256];
			struct python_string string;
			bool was_cut;
			size_t length = strlen(names[i].file);

			for (size_t k = 0; k < length; k++)
				memcpy((char *)wide + k * kind, (uint32_t[]){ (unsigned char)names[i].file[k] }, kind);
			fake_string(object, kind, kind == 1, wide, length);
			assert_true(python_string_open(&python, (uint64_t)object, &string));
			python_string_leave_out_folders(&string);
			text[read_all(string, text, &was_cut)] = '\0';
			assert_string_equal((char *)text, names[i].left);
			assert_false(was_cut);
		}
	}
}

RUN_TESTS(NULL, NULL)
