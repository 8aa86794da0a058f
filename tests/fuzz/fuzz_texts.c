/*
 * fuzz_texts.c - can any text of a capture, or typed by a person, crash what shows and reads texts, or leave it as something else?
 *
 * libFuzzer target: clang -fsanitize=fuzzer,address,undefined. An input is the text: words of a command, which a shell must take apart
 * into the same words; something to clean, which must stay clean; a size or a share.
 */
#include "fuzz.h"

#include "base/shell_words.h"
#include "base/text_clean.h"
#include "cli/options.h"
#include "kmem_words.h"

/* The rest of $'...' behind its first quote, with the escapes that are used. */
static size_t
take_escaped(const char **at, char *word)
{
	size_t length = 0;

	for (; **at != '\''; (*at)++) {
		unsigned value;

		if (**at == '\0')
			abort();
		if (**at != '\\') {
			word[length++] = **at;
			continue;
		}
		switch (*++*at) {
		case 'n':
			word[length++] = '\n';
			break;
		case 't':
			word[length++] = '\t';
			break;
		case 'r':
			word[length++] = '\r';
			break;
		case '\\':
		case '\'':
			word[length++] = **at;
			break;
		case 'x':
			if (sscanf(*at + 1, "%2x", &value) != 1)
				abort();
			word[length++] = (char)value;
			*at += 2;
			break;
		default:
			abort();
		}
	}
	(*at)++;
	return length;
}

/* The next word as POSIX.1-2024 2.2 says it, without what needs an expansion: none may be there outside of quotes. */
static size_t
take_word(const char **at, char *word)
{
	size_t length = 0;

	while (**at != ' ' && **at != '\0') {
		if (**at == '$' && (*at)[1] == '\'') {
			*at += 2;
			length += take_escaped(at, word + length);
		} else if (**at == '\'') {
			const char *end = strchr(*at + 1, '\'');

			if (end == NULL)
				abort();
			memcpy(word + length, *at + 1, (size_t)(end - *at - 1));
			length += (size_t)(end - *at - 1);
			*at = end + 1;
		} else if (**at == '\\' && (*at)[1] == '\'') {
			word[length++] = '\'';
			*at += 2;
		} else if (strchr("$`\"\\;&|<>(){}*?[]!#~\n\t", **at) != NULL) {
			abort();
		} else {
			word[length++] = *(*at)++;
		}
	}
	return length;
}

static void
try_words(const char *words, size_t bytes)
{
	char *joined = shell_words_join(words, bytes);
	char *word = malloc(bytes + 1);
	const char *at = joined;

	for (size_t from = 0; from < bytes;) {
		size_t wanted = strnlen(words + from, bytes - from);

		if (take_word(&at, word) != wanted || memcmp(word, words + from, wanted) != 0)
			abort();
		from += wanted + 1;
		if (from < bytes && *at++ != ' ')
			abort();
	}
	if (*at != '\0')
		abort();
	free(word);
	free(joined);
}

static void
try_cleaning(const char *text, size_t bytes)
{
	char *clean = malloc(bytes + 1);
	char *again = malloc(bytes + 1);
	char *escaped = malloc(bytes * TEXT_ESCAPED_MOST + 1);

	memcpy(clean, text, bytes);
	if (text_clean(clean, bytes) != bytes)
		abort();
	memcpy(again, clean, bytes);
	(void)text_clean(again, bytes);
	if (memcmp(clean, again, bytes) != 0)
		abort();
	size_t length = text_escape(text, bytes, escaped);

	if (length > bytes * TEXT_ESCAPED_MOST)
		abort();
	again = realloc(again, length + 1);
	memcpy(again, escaped, length);
	(void)text_clean(again, length);
	if (memcmp(escaped, again, length) != 0)
		abort(); // escaped, and yet not clean
	free(clean);
	free(again);
	free(escaped);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	char *text = malloc(bytes + 1); // of its own: what is read behind it is seen
	uint64_t size = 12345;
	uint32_t ppm = 12345;

	memcpy(text, data, bytes);
	text[bytes] = '\0';
	if (!kmem_parse_size(text, &size) && size != 12345)
		abort();
	if (!options_parse_percent(text, &ppm) && ppm != 12345)
		abort();
	text = realloc(text, bytes != 0 ? bytes : 1);
	try_words(text, bytes);
	try_cleaning(text, bytes);
	free(text);
	return 0;
}

static void
write_seeds(const char *folder)
{
	static const struct {
		const char *name;
		const char *text;
		size_t bytes;
	} seeds[] = {
		{ "words", "python\0train.py\0it's two words\0\0$HOME\0", 38 },
		{ "unicode", "caf\303\251 \342\202\254 \360\237\230\200 \355\240\200 \377 \302\205 \033[31m\r\n", 31 },
		{ "size", "1.50 GiB", 7 },
		{ "share", "2.5 %", 5 },
	};

	for (size_t i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++)
		write_seed(folder, seeds[i].name, seeds[i].text, seeds[i].bytes);
}
