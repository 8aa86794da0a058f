/*
 * python_code.c - from code objects to their records in the capture; see python_code.h.
 *
 * Two tables. `addresses` is a cache: code object -> record, eight words to a bucket, any word may vanish
 * at any time. `contents` is the truth: hash of all texts -> record, insert-only; equality is decided by the
 * bytes in the capture, never by the hash.
 *
 * Invariants, tested by number in tests/unit/shim/python/test_python_code.c:
 *   C1  A word of `addresses` is 0, or holds all of the address that its bucket does not say, the record
 *       and the flags. It changes as a whole: nobody sees one object's address with another's record.
 *   C2  A word for address A is stored only by a thread that has the object at A in its own running
 *       frames, so between the object's birth and its death.
 *   C3  Every word for A is cleared before the object's memory is freed. Nobody looks A up or stores it
 *       meanwhile: an object that dies is in no frame. Allocator and interpreter order this against
 *       the next object at A. With C2: a word for A that a walk finds was stored in the life of the object
 *       it walks over.
 *   C4  A word of `contents` is 0 or the record's index + 1 and half of its hash, and never changes again.
 *   C5  A record is complete and sealed before a word of either table leads to it (F1, F3).
 *   C6  A death is counted where anything may have been remembered of the object: it has a word, or its bucket is marked. A bucket is
 *       marked before a word of it gives way to another one, and where something of a code object without a word is remembered.
 *
 * Not chosen  one open-addressed table: deletion needs tombstones, and a reused one can leave a second word
 *             for an address behind an empty slot, which is found again when the address is. Here a
 *             bucket is the whole search.
 */
#include "python/python_code.h"

#include <stdalign.h>
#include <stdatomic.h>
#include <string.h>

#include "base/raw_sys.h"
#include "base/settings.h"
#include "capture/capture_file.h"
#include "python/python_memory.h"
#include "python/python_string.h"

#define LINE_TABLE_BYTES_MAX (1u << 20)

/* --- addresses ------------------------------------------------------------------------------------- */

#define ADDRESS_BITS (KMEM_ADDRESS_BITS - 3) // objects are aligned to 8 bytes
#define BUCKET_BITS (KMEM_ADDRESS_BITS - 35) // 12, 32,768 words: PyTorch and TensorFlow have below 2,000
#define BUCKET_WORDS 8                       // one cache line
#define TAG_BITS (ADDRESS_BITS - BUCKET_BITS)
#define INDEX_BITS 26
#define FLAG_BITS 5

#define WORD_IS_USED (UINT64_C(1) << 63)
#define FLAG_SHIFT INDEX_BITS
#define TAG_SHIFT (INDEX_BITS + FLAG_BITS)

static_assert(TAG_SHIFT + TAG_BITS <= 63, "address, record and flags in one word (C1)");
static_assert((uint64_t)KMEM_CHUNKS_MAX * KMEM_CHUNK_BYTES / 8 <= UINT64_C(1) << INDEX_BITS,
              "every record's index fits");
static_assert((KMEM_CODE_LIBRARY | KMEM_CODE_MODULE_BODY | KMEM_CODE_IMPORTLIB | KMEM_CODE_CUT_TEXT | KMEM_CODE_CELL) <
                  1 << FLAG_BITS,
              "all flags fit");

struct bucket {
	alignas(64) _Atomic uint64_t words[BUCKET_WORDS];
};

/* Whole pages, which stay untouched in a process without Python. */
static alignas(4096) struct bucket addresses[1u << BUCKET_BITS];

/* Most processes have a few thousand of them: those stand in a few pages, in front of the others. */
#define CONTENT_WORDS (1u << 17)
#define CONTENT_PROBES_MAX 256u
#define CONTENT_FIRST_WORDS (1u << 13)
#define CONTENT_FIRST_PROBES 32u
static alignas(4096) _Atomic uint64_t contents[CONTENT_FIRST_WORDS + CONTENT_WORDS];

/*
 * relaxed: who meets the next object at an address got it from somebody, and that orders the death before it; the same as in C3.
 */
static _Atomic uint64_t deaths;

/* Of each bucket whether a code object without a word may be remembered (C6); relaxed, see python_code_forget(). */
static _Atomic uint64_t marks[(1u << BUCKET_BITS) / 64];

/* Index + 1 of the record that stands for code without one; 0 = not needed yet. */
static _Atomic uint32_t placeholder_record;

/*
 * One to one on ADDRESS_BITS: bucket and tag together are the address, so equal tags in a bucket are
 * equal addresses.
 */
static uint64_t
address_mix(uint64_t addr)
{
	const uint64_t mask = (UINT64_C(1) << ADDRESS_BITS) - 1;
	uint64_t mixed = addr >> 3;

	mixed ^= mixed >> (ADDRESS_BITS / 2);
	mixed = mixed * UINT64_C(0x9e3779b97f4a7c15) & mask;
	return mixed ^ mixed >> (ADDRESS_BITS / 2);
}

static struct bucket *
address_bucket(uint64_t mixed)
{
	return &addresses[mixed & ((1u << BUCKET_BITS) - 1)];
}

static uint64_t
address_tag(uint64_t mixed)
{
	return WORD_IS_USED | mixed >> BUCKET_BITS << TAG_SHIFT;
}

#define TAG_MASK (WORD_IS_USED | ((UINT64_C(1) << TAG_BITS) - 1) << TAG_SHIFT)

static void
mark_bucket(uint64_t mixed)
{
	uint64_t number = mixed & ((1u << BUCKET_BITS) - 1);
	uint64_t bit = UINT64_C(1) << number % 64;

	if ((atomic_load_explicit(&marks[number / 64], memory_order_relaxed) & bit) == 0)
		atomic_fetch_or_explicit(&marks[number / 64], bit, memory_order_relaxed);
}

static bool
is_marked(uint64_t mixed)
{
	uint64_t number = mixed & ((1u << BUCKET_BITS) - 1);

	return (atomic_load_explicit(&marks[number / 64], memory_order_relaxed) >> number % 64 & 1) != 0;
}

static inline struct python_code
address_find(uint64_t mixed)
{
	const struct bucket *bucket = address_bucket(mixed);
	uint64_t tag = address_tag(mixed);
	unsigned home = (unsigned)(mixed >> BUCKET_BITS) % BUCKET_WORDS;

	for (unsigned i = 0; i < BUCKET_WORDS; i++) {
		/*
		 * acquire: the record before the word that leads to it (C5): the caller may read it. Pairs with
		 * address_store().
		 */
		uint64_t word = atomic_load_explicit(&bucket->words[home ^ i], memory_order_acquire);

		if ((word & TAG_MASK) == tag)
			return (struct python_code){
				.index = (uint32_t)(word & ((1u << INDEX_BITS) - 1)),
				.flags = (uint16_t)(word >> FLAG_SHIFT & ((1u << FLAG_BITS) - 1)),
				.is_found = true,
			};
	}
	return (struct python_code){ .is_found = false };
}

static void
address_store(uint64_t mixed, struct python_code code)
{
	struct bucket *bucket = address_bucket(mixed);
	uint64_t fresh = address_tag(mixed) | (uint64_t)code.flags << FLAG_SHIFT | code.index;
	unsigned home = (unsigned)(mixed >> BUCKET_BITS) % BUCKET_WORDS;

	for (unsigned i = 0; i < BUCKET_WORDS; i++) {
		uint64_t word = 0;

		/* release: pairs with address_find(). A second word for the same address says the same. */
		if (atomic_compare_exchange_strong_explicit(&bucket->words[home ^ i], &word, fresh, memory_order_release,
		                                            memory_order_relaxed))
			return;
	}
	mark_bucket(mixed);
	/* The one there is found by content. release: also the mark (C6). Pairs with python_code_forget(). */
	atomic_store_explicit(&bucket->words[home], fresh, memory_order_release);
}

void
python_code_forget(uint64_t code_addr)
{
	uint64_t mixed = address_mix(code_addr);
	struct bucket *bucket = address_bucket(mixed);
	uint64_t tag = address_tag(mixed);
	bool is_remembered = false;

	for (unsigned i = 0; i < BUCKET_WORDS; i++) {
		/*
		 * acquire: where a word for this address gave way to the one that is seen, the mark is seen, too (C6). Pairs with
		 * address_store(). Words for this address are ordered by C3.
		 */
		uint64_t word = atomic_load_explicit(&bucket->words[i], memory_order_acquire);

		if ((word & TAG_MASK) != tag)
			continue;
		is_remembered = true;
		/* A lost race means that the word belongs to somebody else by now: it gave way. */
		atomic_compare_exchange_strong_explicit(&bucket->words[i], &word, 0, memory_order_relaxed,
		                                        memory_order_relaxed);
	}
	if (is_remembered || is_marked(mixed))
		atomic_fetch_add_explicit(&deaths, 1, memory_order_relaxed);
}

void
python_code_is_remembered(uint64_t code_addr)
{
	mark_bucket(address_mix(code_addr));
}

/* --- what a code object says ----------------------------------------------------------------------- */

struct description {
	struct python_string file;
	struct python_string function;
	const uint8_t *line_table;
	uint32_t line_table_bytes;
	uint32_t first_line;
	uint32_t file_bytes; // UTF-8, known once measured
	uint32_t function_bytes;
	uint64_t hash;
	uint64_t hash_of_names;
	bool was_cut;
};

typedef bool (*text_visitor)(void *context, const uint8_t *bytes, uint32_t count);

/* Gives out one text from its beginning. False when the visitor stopped it. */
static bool
text_visit(struct python_string text, text_visitor visit, void *context, bool *was_cut)
{
	struct python_piece piece;

	for (python_string_next(&text, &piece); piece.count != 0; python_string_next(&text, &piece))
		if (!visit(context, piece.bytes, piece.count))
			return false;
	*was_cut |= text.was_cut;
	return true;
}

struct measure {
	uint64_t hash;
	uint32_t bytes;
};

/* FNV-1a: does not depend on how a text is divided into pieces. */
static bool
measure_piece(void *context, const uint8_t *bytes, uint32_t count)
{
	struct measure *measure = context;

	for (uint32_t i = 0; i < count; i++)
		measure->hash = (measure->hash ^ bytes[i]) * UINT64_C(0x100000001b3);
	measure->bytes += count;
	return true;
}

static void
describe(const struct python_interpreter *python, uint64_t code, struct description *what)
{
	const struct python_layout *layout = &python->layout;
	uint16_t name = layout->code_qualified_name != 0 ? layout->code_qualified_name : layout->code_name;
	uint64_t table = python_memory_u64(code + layout->code_line_table);
	struct measure measure = { .hash = UINT64_C(0xcbf29ce484222325) };

	*what = (struct description){ 0 };
	python_string_open(python, python_memory_u64(code + layout->code_file), &what->file);
	if (settings.is_private)
		python_string_leave_out_folders(&what->file);
	python_string_open(python, python_memory_u64(code + name), &what->function);
	what->first_line = python_memory_u32(code + layout->code_first_line);
	what->line_table = (const uint8_t *)"";

	if (python_memory_is_object(table) && python_memory_u64(table + layout->object_type) == python->types.bytes) {
		uint64_t bytes = python_memory_u64(table + layout->object_size);

		what->was_cut = bytes > LINE_TABLE_BYTES_MAX;
		what->line_table_bytes = what->was_cut ? LINE_TABLE_BYTES_MAX : (uint32_t)bytes;
		what->line_table = (const uint8_t *)(table + layout->bytes_data);
	}

	text_visit(what->file, measure_piece, &measure, &what->was_cut);
	what->file_bytes = measure.bytes;
	text_visit(what->function, measure_piece, &measure, &what->was_cut);
	what->function_bytes = measure.bytes - what->file_bytes;
	what->hash_of_names = measure.hash;
	measure_piece(&measure, what->line_table, what->line_table_bytes);
	measure_piece(&measure, (const uint8_t *)&what->first_line, sizeof(what->first_line));
	measure_piece(&measure, (const uint8_t *)&what->file_bytes, sizeof(what->file_bytes));
	what->hash = measure.hash ^ measure.hash >> 29;
}

/* The function's first line stands for all of its lines, then. */
static void
leave_out_lines(struct description *what)
{
	what->line_table_bytes = 0;
	what->hash = (what->hash_of_names ^ what->first_line) * UINT64_C(0x9e3779b97f4a7c15);
	what->was_cut = true;
}

static bool
compare_piece(void *context, const uint8_t *bytes, uint32_t count)
{
	const uint8_t **text = context;

	if (memcmp(*text, bytes, count) != 0)
		return false;
	*text += count;
	return true;
}

static bool
is_described_by(const struct kmem_code *record, const struct description *what)
{
	const uint8_t *text = (const uint8_t *)(record + 1);
	bool was_cut = false; // known already

	return record->file_bytes == what->file_bytes && record->function_bytes == what->function_bytes &&
	       record->line_table_bytes == what->line_table_bytes && record->first_line == what->first_line &&
	       text_visit(what->file, compare_piece, &text, &was_cut) &&
	       text_visit(what->function, compare_piece, &text, &was_cut) &&
	       compare_piece(&text, what->line_table, what->line_table_bytes);
}

static bool
copy_piece(void *context, const uint8_t *bytes, uint32_t count)
{
	uint8_t **text = context;

	memcpy(*text, bytes, count);
	*text += count;
	return true;
}

static bool
has_text(const char *text, uint32_t bytes, const char *wanted)
{
	return memmem(text, bytes, wanted, strlen(wanted)) != NULL;
}

static bool
starts_with(const char *text, uint32_t bytes, const char *wanted)
{
	return bytes >= strlen(wanted) && memcmp(text, wanted, strlen(wanted)) == 0;
}

static const char module_body[] = "<module>";

static uint16_t
flags_of(const struct kmem_code *record)
{
	const char *file = (const char *)(record + 1);
	uint32_t bytes = record->file_bytes;
	const char *function = file + bytes;
	unsigned flags = 0;

	if (starts_with(file, bytes, "<frozen ") || has_text(file, bytes, "/site-packages/") ||
	    has_text(file, bytes, "/dist-packages/") || has_text(file, bytes, "/lib/python3.") ||
	    has_text(file, bytes, "/lib64/python3.") || has_text(file, bytes, "/python/kmemshim/")) // the last one is ours
		flags |= KMEM_CODE_LIBRARY;
	if (starts_with(file, bytes, "<frozen importlib"))
		flags |= KMEM_CODE_IMPORTLIB;
	if (starts_with(file, bytes, "<ipython-input-") || has_text(file, bytes, "/ipykernel_") ||
	    has_text(file, bytes, "/ipython-input-") || starts_with(file, bytes, "ipykernel_") ||
	    starts_with(file, bytes, "ipython-input-"))
		flags |= KMEM_CODE_CELL;
	if (record->function_bytes == strlen(module_body) && starts_with(function, record->function_bytes, module_body))
		flags |= KMEM_CODE_MODULE_BODY;
	return (uint16_t)flags;
}

static struct python_code
code_of(const struct kmem_code *record, uint32_t index)
{
	return (struct python_code){
		.index = index,
		.flags = record->record.flags,
		.is_found = true,
	};
}

/* Writes one record. Not found when the capture has no room. */
static struct python_code
append(const struct python_interpreter *python, const struct description *what, size_t spare_bytes)
{
	size_t bytes = sizeof(struct kmem_code) + what->file_bytes + what->function_bytes + what->line_table_bytes;
	uint32_t index;
	struct kmem_code *record = capture_file_append_sparing(KMEM_SECTION_RECORDS, bytes, spare_bytes, &index);
	bool was_cut = what->was_cut;

	if (record == NULL)
		return (struct python_code){ .is_found = false };

	uint8_t *text = (uint8_t *)(record + 1);

	record->record.type = KMEM_RECORD_CODE;
	record->record.bytes = (uint32_t)bytes;
	record->first_line = what->first_line;
	record->python_version = python->version_hex >> 16;
	record->file_bytes = what->file_bytes;
	record->function_bytes = what->function_bytes;
	record->line_table_bytes = what->line_table_bytes;
	text_visit(what->file, copy_piece, &text, &was_cut);
	text_visit(what->function, copy_piece, &text, &was_cut);
	copy_piece(&text, what->line_table, what->line_table_bytes);
	record->record.flags = (uint16_t)(flags_of(record) | (was_cut ? KMEM_CODE_CUT_TEXT : 0));
	capture_file_seal_record(&record->record);
	return code_of(record, index);
}

/* --- contents -------------------------------------------------------------------------------------- */

static bool
content_matches(uint64_t word, const struct description *what, struct python_code *code)
{
	if (word >> 32 != what->hash >> 32)
		return false;

	uint32_t index = (uint32_t)word - 1;
	const struct kmem_code *record = capture_file_at(KMEM_SECTION_RECORDS, index);

	if (!is_described_by(record, what))
		return false;
	*code = code_of(record, index);
	return true;
}

static _Atomic uint64_t *
content_slot(uint64_t hash, uint32_t step)
{
	return &contents[step < CONTENT_FIRST_PROBES ? (hash + step) % CONTENT_FIRST_WORDS
	                                             : CONTENT_FIRST_WORDS + (hash + step) % CONTENT_WORDS];
}

/*
 * Not found when there is no room. Code without its table of lines is small: it may use room that is kept free for it. Two threads may
 * write the same content at once: one of the two records is then never used.
 */
static struct python_code
content_find_or_append(const struct python_interpreter *python, const struct description *what, bool is_without_lines)
{
	size_t spare_bytes = is_without_lines ? CAPTURE_FILE_SPARE_BYTES / 2 : CAPTURE_FILE_SPARE_BYTES;
	struct python_code mine = { .is_found = false };
	struct python_code theirs;

	for (uint32_t step = 0; step < CONTENT_PROBES_MAX; step++) {
		_Atomic uint64_t *slot = content_slot(what->hash, step);

		/* acquire: the record's bytes are compared. Pairs with the exchange below. */
		uint64_t word = atomic_load_explicit(slot, memory_order_acquire);

		if (word == 0) {
			if (!mine.is_found && !capture_file_is_large(is_without_lines))
				mine = append(python, what, spare_bytes);
			if (!mine.is_found)
				break;
			/* release: the record before its index (C5). Pairs with the loads of this function. */
			if (atomic_compare_exchange_strong_explicit(slot, &word, what->hash >> 32 << 32 | (mine.index + 1),
			                                            memory_order_release, memory_order_acquire))
				return mine;
		}
		if (content_matches(word, what, &theirs))
			return theirs;
	}
	return mine; // every slot is taken, the last ones perhaps while we looked
}

/* For code that the tables or the capture have no room for. */
static struct python_code
placeholder(const struct python_interpreter *python)
{
	static const char unknown[] = "<name lost: no room in the capture>"; // analyzer/model/frame_rules.c knows it
	const struct python_string text = {
		.characters = unknown,
		.length = sizeof(unknown) - 1,
		.room_bytes = PYTHON_STRING_BYTES_MAX,
		.kind = 1,
		.is_ascii = true,
	};
	const struct description what = { .file = text,
		                              .file_bytes = sizeof(unknown) - 1,
		                              .line_table = (const uint8_t *)"" };

	/* acquire and release: the record before its index (C5), here on both sides. */
	uint32_t record = atomic_load_explicit(&placeholder_record, memory_order_acquire);

	if (record != 0)
		return code_of(capture_file_item(KMEM_SECTION_RECORDS, record), record - 1);

	struct python_code code = append(python, &what, CAPTURE_FILE_SPARE_BYTES / 4);

	if (code.is_found) // of two threads at once, both records are good
		atomic_store_explicit(&placeholder_record, code.index + 1, memory_order_release);
	return code;
}

/* --- public ---------------------------------------------------------------------------------------- */

/* Out of line, so that the usual case saves no registers. */
__attribute__((noinline)) static struct python_code
find_by_content(const struct python_interpreter *python, uint64_t code_addr)
{
	struct description what;

	describe(python, code_addr, &what);

	struct python_code code = content_find_or_append(python, &what, false);

	if (!code.is_found) {
		capture_file_lost(KMEM_LOST_PYTHON_TEXT, 1);
		leave_out_lines(&what);
		code = content_find_or_append(python, &what, true);
	}
	if (!code.is_found)
		code = placeholder(python);
	if (code.is_found)
		address_store(address_mix(code_addr), code);
	else
		python_code_is_remembered(code_addr);
	code.is_new_cell = (code.flags & KMEM_CODE_CELL) != 0;
	return code;
}

bool
python_code_is_program(const struct python_interpreter *python, uint64_t code_addr)
{
	struct python_string text;
	struct python_piece piece;

	if (!python_string_open(python, python_memory_u64(code_addr + python->layout.code_name), &text))
		return false;
	python_string_next(&text, &piece);
	if (piece.count != strlen(module_body) || memcmp(piece.bytes, module_body, piece.count) != 0 ||
	    !python_string_open(python, python_memory_u64(code_addr + python->layout.code_file), &text))
		return false;
	python_string_next(&text, &piece);
	return !starts_with((const char *)piece.bytes, piece.count, "<frozen ") &&
	       !starts_with((const char *)piece.bytes, piece.count, "<stdin>");
}

struct python_code
python_code_find(const struct python_interpreter *python, uint64_t code_addr)
{
	struct python_code code = address_find(address_mix(code_addr));

	return code.is_found ? code : find_by_content(python, code_addr);
}

uint64_t
python_code_deaths(void)
{
	return atomic_load_explicit(&deaths, memory_order_relaxed);
}

void
python_code_forked(void)
{
	atomic_fetch_add_explicit(&deaths, 1, memory_order_relaxed);
	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
		if (atomic_load_explicit(&marks[i], memory_order_relaxed) != 0) // a write would copy the page
			atomic_store_explicit(&marks[i], 0, memory_order_relaxed);
	}
	/* Private zero pages again; clearing by hand would copy pages that the child never needs. */
	if (raw_madvise(addresses, sizeof(addresses), MADV_DONTNEED) != 0)
		memset(addresses, 0, sizeof(addresses));
	if (raw_madvise(contents, sizeof(contents), MADV_DONTNEED) != 0)
		memset(contents, 0, sizeof(contents));
	atomic_store_explicit(&placeholder_record, 0, memory_order_relaxed); // single-threaded
}
