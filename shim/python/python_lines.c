/*
 * python_lines.c - line tables as ranges of instructions, and the answers remembered; see python_lines.h.
 *
 * Formats as in CPython's Objects/lnotab_notes.txt and Objects/locations.md. Lines are compared only with lines of the same
 * table, so they are counted from the first line of the code object.
 *
 * Invariants of a word of `answers`, tested by number in tests/unit/shim/python/test_python_lines.c:
 *   L1  0, or a question and its answer together: code, offset, first offset of the line. Nobody sees one question with
 *       another's answer.
 *   L2  The answer is right for as long as the process lives: records of the capture never change and are never removed.
 *       So a word may be stored twice, lost or replaced at any time, and nothing else needs to be ordered.
 *   L3  Offset 0 is first on its line and is never asked of the table: no word of a question is 0.
 *
 * Not chosen  lines decoded here: the reader needs the table anyway, and a line without its code object means nothing.
 */
#include "python/python_lines.h"

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "base/raw_sys.h"
#include "base/turn.h"
#include "capture/capture_file.h"

#define PYTHON_3_10 0x030a
#define PYTHON_3_11 0x030b
#define NO_LINE_3_10 (-128)

/* --- ranges ---------------------------------------------------------------------------------------- */

/* One position in a line table: instructions [start, end) are on `line`. Ranges may be empty. */
struct range {
	const uint8_t *table;
	size_t table_bytes;
	size_t at; // next byte of the table
	uint64_t start;
	uint64_t end;
	int64_t line; // counted from the first line of the code object
	bool has_line;
};

/* Pairs (bytes, lines): the second applies from where the first has led to. The last range has no end. */
static bool
next_of_lnotab(struct range *range)
{
	uint64_t address = range->start;

	if (range->end == UINT64_MAX)
		return false;
	for (range->start = range->end; range->at + 1 < range->table_bytes; range->at += 2) {
		if (address + range->table[range->at] > range->start) {
			range->end = address + range->table[range->at];
			return true;
		}
		address += range->table[range->at];
		range->line += (int8_t)range->table[range->at + 1];
	}
	range->end = UINT64_MAX;
	return true;
}

/* Pairs (bytes, lines): the second applies to the range that the first measures. */
static bool
next_of_ranges(struct range *range)
{
	if (range->at + 1 >= range->table_bytes)
		return false;

	int8_t delta = (int8_t)range->table[range->at + 1];

	range->start = range->end;
	range->end += range->table[range->at];
	range->has_line = delta != NO_LINE_3_10;
	if (range->has_line)
		range->line += delta;
	range->at += 2;
	return true;
}

enum location_kind { // of the table from 3.11 on; kinds below are "same line" with short columns
	LOCATION_ONE_LINE_0 = 10,
	LOCATION_ONE_LINE_2 = 12,
	LOCATION_NO_COLUMNS = 13,
	LOCATION_LONG = 14,
	LOCATION_NONE = 15,
};

/* A number in groups of 6 bits, least first, 0x40 means more; its lowest bit is the sign. False when it does not end in time. */
static bool
read_signed(const struct range *range, int64_t *value)
{
	uint64_t number = 0;
	size_t at = range->at;

	for (unsigned shift = 0; shift <= 30 && at < range->table_bytes; shift += 6, at++) {
		number |= (uint64_t)(range->table[at] & 0x3f) << shift;
		if ((range->table[at] & 0x40) == 0) {
			*value = (number & 1) != 0 ? -(int64_t)(number >> 1) : (int64_t)(number >> 1);
			return true;
		}
	}
	return false;
}

static bool
next_of_locations(struct range *range)
{
	int64_t delta = 0;

	if (range->at >= range->table_bytes || (range->table[range->at] & 0x80) == 0) // an entry must begin here
		return false;

	uint8_t first = range->table[range->at++];
	unsigned kind = first >> 3 & 15;

	if (kind >= LOCATION_ONE_LINE_0 && kind <= LOCATION_ONE_LINE_2)
		delta = kind - LOCATION_ONE_LINE_0;
	else if ((kind == LOCATION_NO_COLUMNS || kind == LOCATION_LONG) && !read_signed(range, &delta))
		return false; // the range is still the one before the damage
	range->start = range->end;
	range->end += 2 * ((uint64_t)(first & 7) + 1);
	range->has_line = kind != LOCATION_NONE;
	range->line += delta;
	while (range->at < range->table_bytes && (range->table[range->at] & 0x80) == 0)
		range->at++;
	return true;
}

static inline bool
next_range(uint32_t python_version, struct range *range)
{
	if (python_version >= PYTHON_3_11)
		return next_of_locations(range);
	if (python_version == PYTHON_3_10)
		return next_of_ranges(range);
	return next_of_lnotab(range);
}

uint32_t
python_lines_read(uint32_t python_version, const uint8_t *table, size_t table_bytes, uint32_t offset)
{
	const struct range beginning = { .table = table, .table_bytes = table_bytes, .has_line = true };
	struct range its = beginning;
	struct range range = beginning;

	if (table_bytes == 0) // one line for all
		return 0;
	do {
		if (!next_range(python_version, &its))
			return offset;
	} while (offset >= its.end);
	if (!its.has_line)
		return offset;

	/* Ends at the offset's own range at the latest. */
	while (next_range(python_version, &range))
		if (range.has_line && range.line == its.line && range.start < range.end)
			return range.start < offset ? (uint32_t)range.start : offset;
	return offset;
}

/* --- whole tables ---------------------------------------------------------------------------------- */

#define EXPANDED_TABLES 8 // module bodies that import each other
#define EXPANDED_RANGES 8192u
#define EXPANDED_MIN_BYTES 256 // shorter tables are read as they are

/* A module's body is asked for line after line: its table is read once, not from its beginning each time. */
struct expanded {
	uint32_t code_index;
	uint32_t count; // of ranges; 0 = empty, or more than there is room for
	uint64_t last_used;
	uint32_t starts[EXPANDED_RANGES];
	uint32_t firsts[EXPANDED_RANGES];
};

static struct expanded expanded[EXPANDED_TABLES]; // touched in processes that import
static struct {
	uint64_t stamp; // of the table it is for
	int64_t line;
	uint32_t start;
} line_starts[2 * EXPANDED_RANGES];
static uint64_t expanded_clock;
static struct turn expanding; // never waited for: the table is read directly then

/* Where the line begins first: here, or where it was seen before. */
static uint32_t
note_line(int64_t line, uint32_t start, uint64_t stamp)
{
	uint64_t at = (uint64_t)line * UINT64_C(0x9e3779b97f4a7c15) >> 32;

	for (;; at++) {
		at %= 2 * EXPANDED_RANGES;
		if (line_starts[at].stamp != stamp) {
			line_starts[at].stamp = stamp;
			line_starts[at].line = line;
			line_starts[at].start = start;
			return start;
		}
		if (line_starts[at].line == line)
			return line_starts[at].start;
	}
}

static void
expand(struct expanded *into, const struct kmem_code *code, uint32_t code_index)
{
	const uint8_t *table = (const uint8_t *)(code + 1) + code->file_bytes + code->function_bytes;
	struct range range = { .table = table, .table_bytes = code->line_table_bytes, .has_line = true };
	uint64_t stamp = ++expanded_clock;

	into->code_index = code_index;
	into->count = 0;
	while (next_range(code->python_version, &range)) {
		if (range.start == range.end)
			continue;
		if (into->count == EXPANDED_RANGES || range.start > UINT32_MAX) {
			into->count = 0;
			return;
		}
		into->starts[into->count] = (uint32_t)range.start;
		into->firsts[into->count++] = range.has_line ? note_line(range.line, (uint32_t)range.start, stamp) : UINT32_MAX;
	}
	if (into->count < EXPANDED_RANGES) { // behind the last range nothing has a line
		into->starts[into->count] = (uint32_t)range.end;
		into->firsts[into->count++] = UINT32_MAX;
	}
}

static uint32_t
find_first(const struct expanded *in, uint32_t offset)
{
	uint32_t low = 0;
	uint32_t high = in->count;

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (in->starts[middle] <= offset)
			low = middle;
		else
			high = middle;
	}
	return in->firsts[low] < offset ? in->firsts[low] : offset;
}

/* False: to be read directly. */
static bool
read_expanded(const struct kmem_code *code, uint32_t code_index, uint32_t offset, uint32_t *first)
{
	struct expanded *found = &expanded[0];

	if (code->line_table_bytes < EXPANDED_MIN_BYTES || !turn_take(&expanding))
		return false;
	for (unsigned i = 0; i < EXPANDED_TABLES; i++) {
		if (expanded[i].code_index == code_index && expanded[i].last_used != 0) {
			found = &expanded[i];
			break;
		}
		if (expanded[i].last_used < found->last_used)
			found = &expanded[i];
	}
	if (found->code_index != code_index || found->last_used == 0)
		expand(found, code, code_index);
	found->last_used = ++expanded_clock;

	bool is_known = found->count != 0;
	if (is_known)
		*first = find_first(found, offset);
	turn_give(&expanding);
	return is_known;
}

/* --- answers --------------------------------------------------------------------------------------- */

#define UNIT_BYTES 2 // instructions begin at even offsets
#define CODE_BITS 26
#define UNIT_BITS 19 // code of a megabyte and more is not remembered
#define UNIT_MASK ((UINT64_C(1) << UNIT_BITS) - 1)

static_assert(CODE_BITS + 2 * UNIT_BITS == 64, "question and answer in one word (L1)");
static_assert((uint64_t)KMEM_CHUNKS_MAX * KMEM_CHUNK_BYTES / 8 <= UINT64_C(1) << CODE_BITS,
              "every record's index fits");

#define BUCKET_BITS 13
#define BUCKET_WORDS 8 // one cache line

struct bucket {
	alignas(64) _Atomic uint64_t words[BUCKET_WORDS];
};

/* Whole pages, which stay untouched in a process without Python. Every access is relaxed: see L2. */
static alignas(4096) struct bucket answers[1u << BUCKET_BITS];

static uint32_t
read_record(uint32_t code_index, uint32_t offset)
{
	const struct kmem_code *code = capture_file_at(KMEM_SECTION_RECORDS, code_index);
	const uint8_t *table = (const uint8_t *)(code + 1) + code->file_bytes + code->function_bytes;
	uint32_t first;

	if (read_expanded(code, code_index, offset, &first))
		return first;
	return python_lines_read(code->python_version, table, code->line_table_bytes, offset);
}

/* Out of line, so that the usual case saves no registers. */
__attribute__((noinline)) static uint32_t
read_and_remember(uint32_t code_index, uint32_t offset, struct bucket *bucket, unsigned home, uint64_t question)
{
	uint32_t first = read_record(code_index, offset);
	unsigned place = home;

	if (first % UNIT_BYTES != 0)
		return first;
	for (unsigned i = 0; i < BUCKET_WORDS; i++)
		if (atomic_load_explicit(&bucket->words[home ^ i], memory_order_relaxed) == 0) {
			place = home ^ i;
			break;
		}
	atomic_store_explicit(&bucket->words[place], question << UNIT_BITS | first / UNIT_BYTES, memory_order_relaxed);
	return first;
}

uint32_t
python_lines_first(uint32_t code_index, uint32_t offset)
{
	uint64_t unit = offset / UNIT_BYTES;
	uint64_t question = (uint64_t)code_index << UNIT_BITS | unit;

	if (offset == 0)
		return 0;
	if (offset % UNIT_BYTES != 0 || unit > UNIT_MASK)
		return read_record(code_index, offset);

	uint64_t mixed = question * UINT64_C(0x9e3779b97f4a7c15);
	struct bucket *bucket = &answers[mixed >> (64 - BUCKET_BITS)];
	unsigned home = (unsigned)(mixed >> (64 - BUCKET_BITS - 3)) % BUCKET_WORDS;

	for (unsigned i = 0; i < BUCKET_WORDS; i++) {
		uint64_t word = atomic_load_explicit(&bucket->words[home ^ i], memory_order_relaxed);

		if (word >> UNIT_BITS == question)
			return (uint32_t)(word & UNIT_MASK) * UNIT_BYTES;
	}
	return read_and_remember(code_index, offset, bucket, home, question);
}

void
python_lines_forked(void)
{
	/* Private zero pages again; clearing by hand would copy pages that the child never needs. */
	if (raw_madvise(answers, sizeof(answers), MADV_DONTNEED) != 0)
		memset(answers, 0, sizeof(answers));
	for (unsigned i = 0; i < EXPANDED_TABLES; i++)
		expanded[i].last_used = 0;
}
