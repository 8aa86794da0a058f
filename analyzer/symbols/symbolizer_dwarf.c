/*
 * symbolizer_dwarf.c - source line and inlined functions of an address (see symbolizer_dwarf.h).
 *
 * Two sorted tables of ranges stand in front of the debug information: units of the file, made at the first question, and
 * functions of a unit, made at the first question about that unit. dwarf_getscopes() alone walks a whole unit per address,
 * and .debug_aranges is missing where clang compiled.
 */
#include "symbols/symbolizer_dwarf.h"

#include <dwarf.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/order.h"
#include "base/sorted.h"

#define NESTING_MAX 64
#define VISITS_MAX 1000000u // ranges of inlined functions, for one address
/* More than the largest files have of a unit: 768 MiB of debug information of PyTorch have 3 million in all of theirs. */
#define RANGES_MAX 6000000u // read of one file, 24 bytes each
/*
 * Read of one file: elfutils takes some 100 bytes for each while it reads a unit. Programs have a line for every three bytes of their
 * tables; a table is believed to have one for each byte until it was read.
 */
#define LINES_MAX 4000000u

struct range {
	Dwarf_Addr start;
	Dwarf_Addr end;
	size_t what; // index in units, or offset of the function's entry
};

struct ranges {
	size_t count;
	struct range *items; // sorted by start, once complete
};

struct unit {
	Dwarf_Die die;      // where the lines are found
	Dwarf_Die body;     // where the functions are: the same, but for split debug information
	const char *folder; // in which it was compiled; "" = unknown
	bool has_functions;
	bool was_asked[2]; // of die, body: may its lines be read?
	bool has_lines[2];
	struct ranges functions;
};

struct symbolizer_dwarf {
	size_t range_count;  // read
	uint64_t line_count; // read
	bool lacks_split;
	bool are_lines_cut;
	size_t unit_count;
	struct unit *units;
	struct ranges ranges;
};

/* Functions that share one list of ranges make a small file endless: what is read of it has a bound. */
static void
add_ranges(struct symbolizer_dwarf *index, struct ranges *ranges, Dwarf_Die *die, size_t what)
{
	Dwarf_Addr base;
	Dwarf_Addr start;
	Dwarf_Addr end;

	for (ptrdiff_t at = 0; index->range_count < RANGES_MAX && (at = dwarf_ranges(die, at, &base, &start, &end)) > 0;) {
		index->range_count++;
		if (start == 0 || start >= end) // 0: the linker dropped the code
			continue;
		*MEMORY_NEXT(ranges->items, ranges->count) = (struct range){ start, end, what };
	}
}

/* An enclosing range before what it encloses. */
ORDER_OF(compare_ranges, struct range, order_numbers(a->start, b->start) ?: order_numbers(b->end, a->end))

static void
sort_ranges(struct ranges *ranges)
{
	SORT(ranges->items, ranges->count, compare_ranges);
}

/* The innermost range around the address, as far as a few steps tell. */
static const struct range *
find_range(const struct ranges *ranges, Dwarf_Addr address)
{
	size_t low = SORTED_UP_TO(ranges->items, ranges->count, start, address);

	for (size_t steps = 0; low > 0 && steps < NESTING_MAX; steps++) {
		low--;
		if (address < ranges->items[low].end)
			return &ranges->items[low];
	}
	return NULL;
}

struct symbolizer_dwarf *
symbolizer_dwarf_new(Dwarf *dwarf)
{
	struct symbolizer_dwarf *index = memory_zeroed(1, sizeof(*index));
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;
	Dwarf_Half version;
	uint8_t type;

	while (dwarf_get_units(dwarf, cu, &cu, &version, &type, &die, NULL) == 0) {
		if (type != DW_UT_compile && type != DW_UT_skeleton && type != DW_UT_partial)
			continue;
		*MEMORY_NEXT(index->units, index->unit_count) = (struct unit){ .die = die, .body = die, .folder = "" };
		add_ranges(index, &index->ranges, &die, index->unit_count - 1);
	}
	sort_ranges(&index->ranges);
	return index;
}

bool
symbolizer_dwarf_lacks_split(const struct symbolizer_dwarf *index)
{
	return index->lacks_split;
}

bool
symbolizer_dwarf_is_cut(const struct symbolizer_dwarf *index)
{
	return index->range_count >= RANGES_MAX || index->are_lines_cut;
}

void
symbolizer_dwarf_free(struct symbolizer_dwarf *index)
{
	if (index == NULL)
		return;
	for (size_t i = 0; i < index->unit_count; i++)
		free(index->units[i].functions.items);
	free(index->units);
	free(index->ranges.items);
	free(index);
}

/* A lambda's function stands inside the blocks in which it was written. */
static bool
holds_functions(int tag)
{
	return tag == DW_TAG_namespace || tag == DW_TAG_module || tag == DW_TAG_class_type ||
	       tag == DW_TAG_structure_type || tag == DW_TAG_union_type || tag == DW_TAG_enumeration_type ||
	       tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block ||
	       tag == DW_TAG_try_block || tag == DW_TAG_catch_block;
}

static void
add_functions(struct symbolizer_dwarf *index, struct unit *unit, Dwarf_Die *parent, unsigned depth)
{
	Dwarf_Die die;

	if (depth == NESTING_MAX || dwarf_child(parent, &die) != 0)
		return;
	do {
		int tag = dwarf_tag(&die);

		if (tag == DW_TAG_subprogram)
			add_ranges(index, &unit->functions, &die, dwarf_dieoffset(&die));
		if (holds_functions(tag))
			add_functions(index, unit, &die, depth + 1);
	} while (dwarf_siblingof(&die, &die) == 0);
}

static void
find_body(struct symbolizer_dwarf *index, struct unit *unit)
{
	Dwarf_Die split;
	uint8_t type;

	if (dwarf_cu_info(unit->die.cu, NULL, &type, NULL, &split, NULL, NULL, NULL) != 0 || type != DW_UT_skeleton)
		return;
	if (split.cu != NULL)
		unit->body = split;
	else
		index->lacks_split = true;
}

bool
symbolizer_dwarf_unit(struct symbolizer_dwarf *index, size_t at, Dwarf_Die *body)
{
	if (at >= index->unit_count)
		return false;
	find_body(index, &index->units[at]);
	*body = index->units[at].body;
	return true;
}

static void
read_unit(struct symbolizer_dwarf *index, struct unit *unit)
{
	Dwarf_Attribute attribute;
	const char *folder = NULL;

	unit->has_functions = true;
	if (dwarf_attr(&unit->die, DW_AT_comp_dir, &attribute) != NULL)
		folder = dwarf_formstring(&attribute);
	unit->folder = folder != NULL ? folder : "";
	find_body(index, unit);
	add_functions(index, unit, &unit->body, 0);
	sort_ranges(&unit->functions);
}

/* visits: how many ranges may still be looked at. */
static bool
has_address(Dwarf_Die *die, Dwarf_Addr address, unsigned *visits)
{
	Dwarf_Addr base;
	Dwarf_Addr start;
	Dwarf_Addr end;

	for (ptrdiff_t at = 0; *visits > 0 && (at = dwarf_ranges(die, at, &base, &start, &end)) > 0;) {
		(*visits)--;
		if (address >= start && address < end)
			return true;
	}
	return false;
}

static bool
is_inside(int tag)
{
	return tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block || tag == DW_TAG_try_block ||
	       tag == DW_TAG_catch_block;
}

/* What is around the address, from `function` inwards; `scopes` begins with the function itself. */
static size_t
find_scopes(Dwarf_Die *function, Dwarf_Addr address, Dwarf_Die scopes[SYMBOLIZER_SCOPES_MAX])
{
	unsigned visits = VISITS_MAX;
	size_t count = 1;
	Dwarf_Die die;

	scopes[0] = *function;
	while (count < SYMBOLIZER_SCOPES_MAX && dwarf_child(&scopes[count - 1], &die) == 0) {
		bool is_found = false;

		do
			is_found = is_inside(dwarf_tag(&die)) && has_address(&die, address, &visits);
		while (!is_found && dwarf_siblingof(&die, &die) == 0);
		if (!is_found)
			break;
		scopes[count++] = die;
	}
	return count;
}

/* Keeps the functions alone: that itself, and those that were inlined. */
static size_t
keep_inlined(Dwarf_Die scopes[SYMBOLIZER_SCOPES_MAX], size_t count)
{
	size_t kept = 1;

	for (size_t i = 1; i < count && kept < SYMBOLIZER_INLINES_MAX; i++) {
		if (dwarf_tag(&scopes[i]) == DW_TAG_inlined_subroutine)
			scopes[kept++] = scopes[i];
	}
	return kept;
}

static const char *
linkage_name_of(Dwarf_Die *die)
{
	Dwarf_Attribute attribute;

	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute) == NULL &&
	    dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attribute) == NULL)
		return NULL;
	return dwarf_formstring(&attribute);
}

static Dwarf_Word
number_of(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value;

	if (dwarf_attr(die, name, &attribute) == NULL || dwarf_formudata(&attribute, &value) != 0)
		return 0;
	return value;
}

/* Where the file's line tables are, unpacked; NULL: nowhere. */
static Elf_Data *
line_tables(Elf *elf)
{
	size_t names;

	if (elf == NULL || elf_getshdrstrndx(elf, &names) != 0)
		return NULL;
	for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section)) != NULL;) {
		GElf_Shdr header;
		const char *name = gelf_getshdr(section, &header) != NULL ? elf_strptr(elf, names, header.sh_name) : NULL;

		if (name != NULL && (strcmp(name, ".debug_line") == 0 || strcmp(name, ".debug_line.dwo") == 0 ||
		                     strcmp(name, ".zdebug_line") == 0))
			return elf_getdata(section, NULL);
	}
	return NULL;
}

/* Bytes of the unit's line table: it has not more lines. A length that is not true is elfutils' to refuse. */
static uint64_t
line_table_bytes(Dwarf_Die *die)
{
	Elf_Data *data = line_tables(dwarf_getelf(dwarf_cu_getdwarf(die->cu)));
	Dwarf_Word offset = number_of(die, DW_AT_stmt_list);
	uint32_t length;

	if (data == NULL || data->d_buf == NULL || data->d_size < sizeof(length) || offset > data->d_size - sizeof(length))
		return 0;
	memcpy(&length, (const char *)data->d_buf + offset, sizeof(length));
	// also of tables with 64 bits: up to the end
	return length < data->d_size - offset ? length : data->d_size - offset;
}

/* which  0 = the unit's die, 1 = its body */
static bool
may_read_lines(struct symbolizer_dwarf *index, struct unit *unit, unsigned which)
{
	Dwarf_Die *die = which == 0 ? &unit->die : &unit->body;
	Dwarf_Lines *lines;
	size_t count;

	if (unit->was_asked[which])
		return unit->has_lines[which];
	unit->was_asked[which] = true;
	if (which == 1 && unit->die.addr == unit->body.addr)
		return unit->has_lines[1] = may_read_lines(index, unit, 0);
	if (line_table_bytes(die) > LINES_MAX - index->line_count) {
		index->are_lines_cut = true;
		return false;
	}
	if (dwarf_getsrclines(die, &lines, &count) == 0)
		index->line_count += count < LINES_MAX - index->line_count ? count : LINES_MAX - index->line_count;
	return unit->has_lines[which] = true;
}

static void
place_of_call(struct symbolizer_dwarf *index, struct unit *unit, Dwarf_Die *inlined, struct dwarf_place *place)
{
	Dwarf_Files *files;
	size_t file_count;
	Dwarf_Word file = number_of(inlined, DW_AT_call_file);

	place->line = (uint32_t)number_of(inlined, DW_AT_call_line);
	if (may_read_lines(index, unit, 1) && dwarf_getsrcfiles(&unit->body, &files, &file_count) == 0 && file < file_count)
		place->file = dwarf_filesrc(files, file, NULL, NULL);
}

static void
place_of_address(struct symbolizer_dwarf *index, struct unit *unit, Dwarf_Addr address, struct dwarf_place *place)
{
	Dwarf_Line *line = may_read_lines(index, unit, 0) ? dwarf_getsrc_die(&unit->die, address) : NULL;
	int number;

	if (line == NULL)
		return;
	if (dwarf_lineno(line, &number) == 0 && number > 0)
		place->line = (uint32_t)number;
	place->file = dwarf_linesrc(line, NULL, NULL);
}

/* NULL = it is in no unit. */
static struct unit *
unit_at(struct symbolizer_dwarf *index, uint64_t address)
{
	const struct range *found = find_range(&index->ranges, address);
	struct unit *unit = found != NULL ? &index->units[found->what] : NULL;

	if (unit != NULL && !unit->has_functions)
		read_unit(index, unit);
	return unit;
}

static size_t
scopes_at(struct unit *unit, uint64_t address, Dwarf_Die scopes[SYMBOLIZER_SCOPES_MAX])
{
	const struct range *found = find_range(&unit->functions, address);
	Dwarf_Die function;

	if (found == NULL || dwarf_offdie(dwarf_cu_getdwarf(unit->body.cu), found->what, &function) == NULL)
		return 0;
	return find_scopes(&function, address, scopes);
}

size_t
symbolizer_dwarf_scopes(struct symbolizer_dwarf *index, uint64_t address, Dwarf_Die scopes[SYMBOLIZER_SCOPES_MAX])
{
	struct unit *unit = unit_at(index, address);

	return unit != NULL ? scopes_at(unit, address, scopes) : 0;
}

size_t
symbolizer_dwarf_find(struct symbolizer_dwarf *index, uint64_t address,
                      struct dwarf_place places[SYMBOLIZER_INLINES_MAX], const char **folder)
{
	struct unit *unit = unit_at(index, address);
	Dwarf_Die chain[SYMBOLIZER_SCOPES_MAX];

	if (unit == NULL)
		return 0;
	memset(places, 0, SYMBOLIZER_INLINES_MAX * sizeof(places[0]));
	place_of_address(index, unit, address, &places[0]);
	*folder = unit->folder;

	size_t count = scopes_at(unit, address, chain);

	if (count == 0)
		return places[0].file != NULL ? 1 : 0;

	count = keep_inlined(chain, count);
	for (size_t i = 0; i < count; i++) {
		Dwarf_Die *die = &chain[count - 1 - i];

		places[i].linkage_name = linkage_name_of(die);
		places[i].name = dwarf_diename(die);
		if (i + 1 < count)
			place_of_call(index, unit, die, &places[i + 1]);
	}
	return count;
}
