/*
 * data_symbols.c - variables and functions of an ELF file by address (see data_symbols.h).
 */
#include "symbols/data_symbols.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <libiberty/demangle.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/order.h"
#include "base/regular_file.h"
#include "base/sorted.h"

#define PAGE_MASK UINT64_C(4095)

struct entry {
	uint64_t start;
	uint64_t end;
	size_t name; // in its table's texts
};

struct table {
	size_t count;
	struct entry *entries; // by address
};

struct data_symbols {
	int file;
	Elf *elf;
	struct text_pool *pool;
	size_t texts; // section of the names
	uint64_t file_bytes;
	uint64_t first_addr;
	struct table tables[DATA_SYMBOL_KINDS];
};

/* DATA_SYMBOL_KINDS: of no interest. */
static enum data_symbol_kind
kind_of(const GElf_Sym *symbol)
{
	if (symbol->st_name == 0 || symbol->st_shndx == SHN_UNDEF)
		return DATA_SYMBOL_KINDS;
	switch (GELF_ST_TYPE(symbol->st_info)) {
	case STT_OBJECT:
		return DATA_SYMBOL_VARIABLE;
	case STT_FUNC:
	case STT_GNU_IFUNC:
		return DATA_SYMBOL_FUNCTION;
	case STT_TLS:
		return DATA_SYMBOL_THREAD_LOCAL;
	default:
		return DATA_SYMBOL_KINDS;
	}
}

ORDER_OF(compare, struct entry,
	order_numbers(a->start, b->start) ?: order_numbers(b->end, a->end)
	?: order_numbers(a->name, b->name))

static void
read_table(struct data_symbols *symbols, Elf_Scn *section, const GElf_Shdr *header)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t count = header->sh_entsize != 0 ? header->sh_size / header->sh_entsize : 0;

	symbols->texts = header->sh_link;
	for (size_t i = 0; data != NULL && i < count; i++) {
		GElf_Sym symbol;

		if (gelf_getsym(data, (int)i, &symbol) == NULL || kind_of(&symbol) == DATA_SYMBOL_KINDS)
			continue;

		struct table *table = &symbols->tables[kind_of(&symbol)];

		*MEMORY_NEXT(table->entries, table->count) = (struct entry){
			symbol.st_value, symbol.st_value + (symbol.st_size != 0 ? symbol.st_size : 1), symbol.st_name
		};
	}
	for (unsigned i = 0; i < DATA_SYMBOL_KINDS; i++) {
		SORT(symbols->tables[i].entries, symbols->tables[i].count, compare);
	}
}

static void
read_segments(struct data_symbols *symbols)
{
	size_t count = 0;
	bool has_first = false;

	(void)elf_getphdrnum(symbols->elf, &count);
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr header;

		if (gelf_getphdr(symbols->elf, (int)i, &header) == NULL)
			continue;
		if (header.p_type == PT_LOAD && !has_first) {
			symbols->first_addr = header.p_vaddr & ~PAGE_MASK;
			has_first = true;
		}
	}
}

struct data_symbols *
data_symbols_open(const char *path, struct text_pool *pool)
{
	struct data_symbols *symbols;
	Elf_Scn *section = NULL;
	Elf_Scn *chosen = NULL;
	GElf_Shdr header;
	GElf_Shdr chosen_header;
	struct stat status;
	int file = regular_file_open(path, O_RDONLY, &status);

	if (file < 0)
		return NULL;
	symbols = memory_zeroed(1, sizeof(*symbols));
	symbols->file = file;
	symbols->file_bytes = (uint64_t)status.st_size;
	symbols->pool = pool;
	(void)elf_version(EV_CURRENT);
	symbols->elf = elf_begin(file, ELF_C_READ_MMAP, NULL);
	if (symbols->elf == NULL || elf_kind(symbols->elf) != ELF_K_ELF) {
		data_symbols_close(symbols);
		return NULL;
	}
	read_segments(symbols);
	while ((section = elf_nextscn(symbols->elf, section)) != NULL) {
		if (gelf_getshdr(section, &header) != NULL &&
		    (header.sh_type == SHT_SYMTAB || (header.sh_type == SHT_DYNSYM && chosen == NULL))) {
			chosen = section;
			chosen_header = header;
		}
	}
	if (chosen != NULL)
		read_table(symbols, chosen, &chosen_header);
	return symbols;
}

void
data_symbols_close(struct data_symbols *symbols)
{
	if (symbols == NULL)
		return;
	if (symbols->elf != NULL)
		(void)elf_end(symbols->elf);
	(void)close(symbols->file);
	for (unsigned i = 0; i < DATA_SYMBOL_KINDS; i++)
		free(symbols->tables[i].entries);
	free(symbols);
}

uint64_t
data_symbols_first_addr(const struct data_symbols *symbols)
{
	return symbols->first_addr;
}

const void *
data_symbols_build_id(const struct data_symbols *symbols, size_t *bytes)
{
	const void *build_id = NULL;
	ssize_t found = dwelf_elf_gnu_build_id(symbols->elf, &build_id);

	*bytes = found > 0 ? (size_t)found : 0;
	return found > 0 ? build_id : NULL;
}

uint64_t
data_symbols_file_bytes(const struct data_symbols *symbols)
{
	return symbols->file_bytes;
}

static const char *
readable(struct data_symbols *symbols, const char *name)
{
	OWNED char *demangled = cplus_demangle(name, DMGL_AUTO);

	return text_pool_add_text(symbols->pool, demangled != NULL ? demangled : name);
}

bool
data_symbols_at(struct data_symbols *symbols, enum data_symbol_kind kind, uint64_t addr, const char **name,
                uint64_t *offset)
{
	const struct table *table = &symbols->tables[kind];
	size_t low = SORTED_UP_TO(table->entries, table->count, start, addr);

	if (low == 0 || addr >= table->entries[low - 1].end)
		return false;
	while (low > 1 &&
	       table->entries[low - 2].start == table->entries[low - 1].start) // the first of equals is the largest
		low--;

	const char *text = elf_strptr(symbols->elf, symbols->texts, table->entries[low - 1].name);

	if (text == NULL)
		return false;
	*name = readable(symbols, text);
	*offset = addr - table->entries[low - 1].start;
	return true;
}

uint64_t
data_symbols_named(const struct data_symbols *symbols, const char *name)
{
	const struct table *table = &symbols->tables[DATA_SYMBOL_VARIABLE];

	for (size_t i = 0; i < table->count; i++) {
		const char *text = elf_strptr(symbols->elf, symbols->texts, table->entries[i].name);

		if (text != NULL && strcmp(text, name) == 0)
			return table->entries[i].start;
	}
	return 0;
}
