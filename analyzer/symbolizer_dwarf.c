/*
 * symbolizer_dwarf.c - source line and inlined functions of an address (see symbolizer_dwarf.h).
 *
 * Two sorted tables of ranges stand in front of the debug information: units of the file, made at the first question, and
 * functions of a unit, made at the first question about that unit. dwarf_getscopes() alone walks a whole unit per address,
 * and .debug_aranges is missing where clang compiled.
 */
#include "symbolizer_dwarf.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "memory.h"

#define NESTING_MAX 32

struct range {
	Dwarf_Addr start;
	Dwarf_Addr end;
	size_t what;          // index in units, or offset of the function's entry
};

struct ranges {
	size_t count;
	size_t room;
	struct range *items;  // sorted by start, once complete
};

struct unit {
	Dwarf_Die die;
	bool has_functions;
	struct ranges functions;
};

struct symbolizer_dwarf {
	Dwarf *dwarf;
	size_t unit_count;
	size_t unit_room;
	struct unit *units;
	struct ranges ranges;
};

static void
add_ranges(struct ranges *ranges, Dwarf_Die *die, size_t what)
{
	Dwarf_Addr base;
	Dwarf_Addr start;
	Dwarf_Addr end;

	for (ptrdiff_t at = 0; (at = dwarf_ranges(die, at, &base, &start, &end)) > 0;) {
		if (start == 0 || start >= end) // 0: the linker dropped the code
			continue;
		ranges->items = memory_grown(ranges->items, &ranges->room, ranges->count + 1, sizeof(*ranges->items));
		ranges->items[ranges->count++] = (struct range){ start, end, what };
	}
}

static int
compare_ranges(const void *left, const void *right)
{
	const struct range *a = left;
	const struct range *b = right;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->end > b->end ? -1 : a->end < b->end; // an enclosing range before what it encloses
}

static void
sort_ranges(struct ranges *ranges)
{
	if (ranges->count != 0)
		qsort(ranges->items, ranges->count, sizeof(*ranges->items), compare_ranges);
}

/* The innermost range around the address, as far as a few steps tell. */
static const struct range *
find_range(const struct ranges *ranges, Dwarf_Addr address)
{
	size_t low = 0;
	size_t high = ranges->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (ranges->items[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
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

	index->dwarf = dwarf;
	while (dwarf_get_units(dwarf, cu, &cu, &version, &type, &die, NULL) == 0) {
		if (type != DW_UT_compile && type != DW_UT_skeleton && type != DW_UT_partial)
			continue;
		index->units = memory_grown(index->units, &index->unit_room, index->unit_count + 1, sizeof(*index->units));
		index->units[index->unit_count] = (struct unit){ .die = die };
		add_ranges(&index->ranges, &die, index->unit_count++);
	}
	sort_ranges(&index->ranges);
	return index;
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

static bool
holds_functions(int tag)
{
	return tag == DW_TAG_namespace || tag == DW_TAG_module || tag == DW_TAG_class_type ||
	       tag == DW_TAG_structure_type || tag == DW_TAG_union_type || tag == DW_TAG_enumeration_type ||
	       tag == DW_TAG_subprogram;
}

static void
add_functions(struct unit *unit, Dwarf_Die *parent, unsigned depth)
{
	Dwarf_Die die;

	if (depth == NESTING_MAX || dwarf_child(parent, &die) != 0)
		return;
	do {
		int tag = dwarf_tag(&die);

		if (tag == DW_TAG_subprogram)
			add_ranges(&unit->functions, &die, dwarf_dieoffset(&die));
		if (holds_functions(tag))
			add_functions(unit, &die, depth + 1);
	} while (dwarf_siblingof(&die, &die) == 0);
}

/* The inlined functions around the address, from `function` inwards; `chain` begins with the function itself. */
static size_t
find_inlined(Dwarf_Die *function, Dwarf_Addr address, Dwarf_Die chain[SYMBOLIZER_INLINES_MAX])
{
	Dwarf_Die parent = *function;
	Dwarf_Die die;
	size_t count = 0;

	chain[count++] = parent;
	for (unsigned depth = 0; depth < 4 * NESTING_MAX && dwarf_child(&parent, &die) == 0; depth++) {
		bool is_found = false;

		do {
			int tag = dwarf_tag(&die);

			is_found = (tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block ||
			            tag == DW_TAG_try_block || tag == DW_TAG_catch_block) &&
			           dwarf_haspc(&die, address) > 0;
			if (is_found)
				break;
		} while (dwarf_siblingof(&die, &die) == 0);
		if (!is_found)
			break;
		if (dwarf_tag(&die) == DW_TAG_inlined_subroutine) {
			if (count == SYMBOLIZER_INLINES_MAX)
				break;
			chain[count++] = die;
		}
		parent = die;
	}
	return count;
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

static void
place_of_call(struct unit *unit, Dwarf_Die *inlined, struct dwarf_place *place)
{
	Dwarf_Files *files;
	size_t file_count;
	Dwarf_Word file = number_of(inlined, DW_AT_call_file);

	place->line = (uint32_t)number_of(inlined, DW_AT_call_line);
	if (dwarf_getsrcfiles(&unit->die, &files, &file_count) == 0 && file < file_count)
		place->file = dwarf_filesrc(files, file, NULL, NULL);
}

static void
place_of_address(struct unit *unit, Dwarf_Addr address, struct dwarf_place *place)
{
	Dwarf_Line *line = dwarf_getsrc_die(&unit->die, address);
	int number;

	if (line == NULL)
		return;
	if (dwarf_lineno(line, &number) == 0 && number > 0)
		place->line = (uint32_t)number;
	place->file = dwarf_linesrc(line, NULL, NULL);
}

size_t
symbolizer_dwarf_find(struct symbolizer_dwarf *index, uint64_t address,
                      struct dwarf_place places[SYMBOLIZER_INLINES_MAX])
{
	const struct range *found = find_range(&index->ranges, address);
	Dwarf_Die chain[SYMBOLIZER_INLINES_MAX];
	Dwarf_Die function;
	struct unit *unit;
	size_t count;

	if (found == NULL)
		return 0;
	unit = &index->units[found->what];
	if (!unit->has_functions) {
		unit->has_functions = true;
		add_functions(unit, &unit->die, 0);
		sort_ranges(&unit->functions);
	}
	memset(places, 0, SYMBOLIZER_INLINES_MAX * sizeof(places[0]));
	place_of_address(unit, address, &places[0]);
	found = find_range(&unit->functions, address);
	if (found == NULL || dwarf_offdie(index->dwarf, found->what, &function) == NULL)
		return places[0].file != NULL ? 1 : 0;

	count = find_inlined(&function, address, chain);
	for (size_t i = 0; i < count; i++) {
		Dwarf_Die *die = &chain[count - 1 - i];

		places[i].linkage_name = linkage_name_of(die);
		places[i].name = dwarf_diename(die);
		if (i + 1 < count)
			place_of_call(unit, die, &places[i + 1]);
	}
	return count;
}
