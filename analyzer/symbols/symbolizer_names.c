/*
 * symbolizer_names.c - see symbolizer_names.h.
 *
 * Of each function four bytes are kept: where it is in the file's table, which is mapped. They lie in buckets by address, and a bucket is
 * sorted when an address in it is asked for. The table of libtensorflow_cc.so has 1.2 million symbols: sorted copies of all take 60 MB,
 * often in the container of the program that is looked at, and to ask elfutils for each address walks all of them.
 */
#include "symbols/symbolizer_names.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/order.h"
#include "base/sorted.h"

#define ENCLOSING_STEPS_MAX 8
#define SYMBOLS_PER_BUCKET 16

struct symbol {
	uint64_t start;
	uint64_t end;   // start: unknown size
	uint32_t index; // in the file's symbol table
	uint32_t rank;  // of several at one address the lowest is shown
};

struct symbolizer_names {
	Dwfl_Module *module;
	uint64_t first_addr;   // of the functions
	uint64_t last_addr;    // of the functions: the highest start
	uint64_t bucket_bytes; // of addresses
	uint32_t bucket_count; // 0: no functions
	uint32_t *begins;      // of each bucket, and the end of the last one: a place in `indexes`
	uint32_t *indexes;     // of functions, in the file's symbol table
	bool *are_sorted;      // of each bucket
};

/* The one to show last: it is found first. */
ORDER_OF(compare_symbols, struct symbol,
	order_numbers(a->start, b->start) ?: order_numbers(b->rank, a->rank)
	?: order_numbers(b->index, a->index))

/* False: no function. The names themselves are not looked at: those of PyTorch fill 70 MiB. */
static bool
read_symbol(Dwfl_Module *module, uint32_t index, struct symbol *into)
{
	GElf_Sym symbol;
	GElf_Addr address;
	const char *name = dwfl_module_getsym_info(module, (int)index, &symbol, &address, NULL, NULL, NULL);
	unsigned type = GELF_ST_TYPE(symbol.st_info);
	unsigned binding = GELF_ST_BIND(symbol.st_info);

	if (name == NULL || symbol.st_name == 0 || symbol.st_shndx == SHN_UNDEF ||
	    (type != STT_FUNC && type != STT_GNU_IFUNC))
		return false;
	*into = (struct symbol){
		.start = address,
		.end = address + symbol.st_size,
		.index = index,
		.rank = (binding == STB_GLOBAL ? 0u
		         : binding == STB_WEAK ? 1u
		                               : 2u) +
		        (symbol.st_size == 0 ? 4u : 0u),
	};
	return true;
}

static uint32_t
bucket_of(const struct symbolizer_names *names, uint64_t address)
{
	if (address > names->last_addr)
		address = names->last_addr;
	return (uint32_t)((address - names->first_addr) / names->bucket_bytes);
}

struct symbolizer_names *
symbolizer_names_new(Dwfl_Module *module)
{
	struct symbolizer_names *names = memory_zeroed(1, sizeof(*names));
	int found = dwfl_module_getsymtab(module);
	uint32_t symbol_count = found > 0 ? (uint32_t)found : 0;
	uint32_t function_count = 0;
	struct symbol symbol;

	names->module = module;
	names->first_addr = UINT64_MAX;
	for (uint32_t i = 0; i < symbol_count; i++) {
		if (!read_symbol(module, i, &symbol))
			continue;
		function_count++;
		names->first_addr = symbol.start < names->first_addr ? symbol.start : names->first_addr;
		names->last_addr = symbol.start > names->last_addr ? symbol.start : names->last_addr;
	}
	if (function_count == 0)
		return names;
	names->bucket_count = function_count / SYMBOLS_PER_BUCKET + 1;
	names->bucket_bytes = (names->last_addr - names->first_addr) / names->bucket_count + 1;
	names->begins = memory_zeroed(names->bucket_count + 1, sizeof(*names->begins));
	names->indexes = memory_zeroed(function_count, sizeof(*names->indexes));
	names->are_sorted = memory_zeroed(names->bucket_count, sizeof(*names->are_sorted));

	/* The end of each bucket, which becomes its begin as it is filled from there down. */
	for (uint32_t i = 0; i < symbol_count; i++) {
		if (read_symbol(module, i, &symbol))
			names->begins[bucket_of(names, symbol.start)]++;
	}
	for (uint32_t i = 1; i <= names->bucket_count; i++)
		names->begins[i] += names->begins[i - 1];
	for (uint32_t i = 0; i < symbol_count; i++) {
		if (read_symbol(module, i, &symbol))
			names->indexes[--names->begins[bucket_of(names, symbol.start)]] = i;
	}
	return names;
}

void
symbolizer_names_free(struct symbolizer_names *names)
{
	if (names == NULL)
		return;
	free(names->begins);
	free(names->indexes);
	free(names->are_sorted);
	free(names);
}

static void
sort_bucket(struct symbolizer_names *names, uint32_t bucket)
{
	uint32_t *indexes = names->indexes + names->begins[bucket];
	size_t count = names->begins[bucket + 1] - names->begins[bucket];
	OWNED struct symbol *symbols = NULL;

	if (names->are_sorted[bucket])
		return;
	names->are_sorted[bucket] = true;
	symbols = memory_zeroed(count, sizeof(*symbols));
	for (size_t i = 0; i < count; i++)
		(void)read_symbol(names->module, indexes[i], &symbols[i]);
	SORT(symbols, count, compare_symbols);
	for (size_t i = 0; i < count; i++)
		indexes[i] = symbols[i].index;
}

static uint64_t
start_of(const struct symbolizer_names *names, uint32_t index)
{
	struct symbol symbol = { 0 };

	(void)read_symbol(names->module, names->indexes[index], &symbol);
	return symbol.start;
}

/* How many functions, in the order of all buckets, begin at or before the address. The bucket is sorted. */
static uint32_t
count_until(const struct symbolizer_names *names, uint32_t bucket, uint64_t address)
{
	uint32_t first = names->begins[bucket];

	return first + (uint32_t)SORTED_BEFORE(at, names->begins[bucket + 1] - first,
	                                       start_of(names, first + (uint32_t)at) <= address);
}

const char *
symbolizer_names_find(struct symbolizer_names *names, uint64_t address)
{
	if (names->bucket_count == 0 || address < names->first_addr)
		return NULL;

	uint32_t bucket = bucket_of(names, address);

	sort_bucket(names, bucket);

	uint32_t after = count_until(names, bucket, address);

	for (unsigned steps = 0; after > 0 && steps < ENCLOSING_STEPS_MAX; steps++) {
		struct symbol symbol = { 0 };
		GElf_Sym unused;
		GElf_Addr at;

		while (after == names->begins[bucket])
			sort_bucket(names, --bucket);
		(void)read_symbol(names->module, names->indexes[--after], &symbol);
		if (address < symbol.end || (symbol.end == symbol.start && steps == 0))
			return dwfl_module_getsym_info(names->module, (int)symbol.index, &unused, &at, NULL, NULL, NULL);
	}
	return NULL;
}
