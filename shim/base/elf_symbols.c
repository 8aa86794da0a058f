/*
 * elf_symbols.c - the dynamic symbol table of a mapped object (see elf_symbols.h).
 */
#include "base/elf_symbols.h"

#include <string.h>

#include "base/checked_memory.h"
#include "base/raw_sys.h"
#include "base/turn.h"

#define PAGE_BYTES UINT64_C(4096)

#define BLOOM_BITS 64u

struct tables {
	const struct elf_object *object;
	uint64_t symbols;
	uint64_t names;
	uint64_t gnu_hash;
	uint64_t hash;
	uint64_t versions; // of each symbol; 0 = it has none
};
#define VERSION_IS_HIDDEN 0x8000 // it is there for programs that were linked before the version of today

/* What lies at that address of the object. False: it is not there any more. Inlined, so that a few bytes are no call of memcpy. */
static inline __attribute__((always_inline)) bool
get(const struct elf_object *object, void *to, uint64_t addr, size_t bytes)
{
	char *at = to;

	if (object->window == NULL) {
		memcpy(to, (const void *)(uintptr_t)addr, bytes);
		return true;
	}
	for (size_t part; bytes > 0; at += part, addr += part, bytes -= part) {
		uint64_t word;

		part = 8 - addr % 8;
		if (part > bytes)
			part = bytes;
		if (!checked_memory_word(object->window, addr - addr % 8, &word))
			return false;
		memcpy(at, (const char *)&word + addr % 8, part);
	}
	return true;
}

/* The loader puts addresses in the place of offsets, except in sections that it cannot write (the kernel's object). */
static uint64_t
absolute(const struct elf_object *object, uint64_t value)
{
	return value < object->load_bias ? value + object->load_bias : value;
}

static bool
read_tables(const struct elf_object *object, struct tables *tables)
{
	Elf64_Dyn entry;

	*tables = (struct tables){ .object = object };
	if (object->dynamic_addr == 0)
		return false;
	for (uint64_t at = object->dynamic_addr; get(object, &entry, at, sizeof entry) && entry.d_tag != DT_NULL;
	     at += sizeof entry) {
		uint64_t addr = absolute(object, entry.d_un.d_ptr);

		switch (entry.d_tag) {
		case DT_SYMTAB:
			tables->symbols = addr;
			break;
		case DT_STRTAB:
			tables->names = addr;
			break;
		case DT_GNU_HASH:
			tables->gnu_hash = addr;
			break;
		case DT_HASH:
			tables->hash = addr;
			break;
		case DT_VERSYM:
			tables->versions = addr;
			break;
		}
	}
	return tables->symbols != 0 && tables->names != 0;
}

const Elf64_Phdr *
elf_symbols_headers(uint64_t start_addr, uint64_t bytes, unsigned *count)
{
	const Elf64_Ehdr *elf = (const Elf64_Ehdr *)(uintptr_t)start_addr;

	/*
	 * The first page of an object is its ELF header. Tools that rewrite objects may move the program
	 * headers to the end of the file: where that is mapped cannot be told from here.
	 */
	if (start_addr % PAGE_BYTES != 0 || bytes < sizeof *elf)
		return NULL;
	if (memcmp(elf->e_ident, ELFMAG, SELFMAG) != 0 || elf->e_phentsize != sizeof(Elf64_Phdr))
		return NULL;
	if (elf->e_phoff % 8 != 0 || elf->e_phoff > PAGE_BYTES ||
	    elf->e_phnum * sizeof(Elf64_Phdr) > PAGE_BYTES - elf->e_phoff)
		return NULL;
	*count = elf->e_phnum;
	return (const Elf64_Phdr *)(uintptr_t)(start_addr + elf->e_phoff);
}

/* Not strcmp: a sanitizer that stands in front of it may just be asking us for the real one. */
static bool
is_text_there(const struct elf_object *object, uint64_t addr, const char *text)
{
	char seen;

	do {
		if (!get(object, &seen, addr++, 1) || seen != *text)
			return false;
	} while (*text++ != '\0');
	return true;
}

static bool
is_definition(const struct tables *tables, uint32_t index, const char *name, Elf64_Sym *symbol)
{
	uint16_t version = 0;

	return get(tables->object, symbol, tables->symbols + index * sizeof *symbol, sizeof *symbol) &&
	       symbol->st_shndx != SHN_UNDEF && symbol->st_value != 0 &&
	       (tables->versions == 0 ||
	        get(tables->object, &version, tables->versions + index * sizeof version, sizeof version)) &&
	       (version & VERSION_IS_HIDDEN) == 0 && is_text_there(tables->object, tables->names + symbol->st_name, name);
}

/* Header: buckets, index of the first hashed symbol, words of the bloom filter, its shift; filter; buckets; one word a symbol. */
static bool
find_by_gnu_hash(const struct tables *tables, const char *name, Elf64_Sym *symbol)
{
	struct {
		uint32_t bucket_count;
		uint32_t first;
		uint32_t bloom_words;
		uint32_t shift;
	} head;
	uint64_t bloom = tables->gnu_hash + sizeof head;
	uint64_t filter;
	uint32_t hash = 5381;
	uint32_t seen;
	uint32_t index;

	for (const char *at = name; *at != '\0'; at++)
		hash = hash * 33 + (unsigned char)*at;
	if (!get(tables->object, &head, tables->gnu_hash, sizeof head) || head.bucket_count == 0 || head.bloom_words == 0 ||
	    !get(tables->object, &filter, bloom + hash / BLOOM_BITS % head.bloom_words * sizeof filter, sizeof filter) ||
	    (filter >> hash % BLOOM_BITS & 1) == 0)
		return false;

	uint64_t buckets = bloom + head.bloom_words * sizeof filter;
	uint64_t hashes = buckets + head.bucket_count * sizeof seen;

	if (!get(tables->object, &index, buckets + hash % head.bucket_count * sizeof index, sizeof index))
		return false;
	for (; index >= head.first && get(tables->object, &seen, hashes + (index - head.first) * sizeof seen, sizeof seen);
	     index++) {
		if ((seen | 1) == (hash | 1) && is_definition(tables, index, name, symbol))
			return true;
		if ((seen & 1) != 0) // the last one of its bucket
			break;
	}
	return false;
}

static bool
find_by_hash(const struct tables *tables, const char *name, Elf64_Sym *symbol)
{
	uint32_t bucket_count;
	uint64_t buckets = tables->hash + 2 * sizeof bucket_count;
	uint32_t hash = 0;
	uint32_t index;

	for (const char *at = name; *at != '\0'; at++) {
		hash = (hash << 4) + (unsigned char)*at;
		hash = (hash ^ (hash >> 24 & 0xf0)) & 0x0fffffff;
	}
	if (!get(tables->object, &bucket_count, tables->hash, sizeof bucket_count) || bucket_count == 0)
		return false;
	for (uint64_t at = buckets + hash % bucket_count * sizeof index;
	     get(tables->object, &index, at, sizeof index) && index != 0;
	     at = buckets + (bucket_count + index) * sizeof index) {
		if (is_definition(tables, index, name, symbol))
			return true;
	}
	return false;
}

bool
elf_symbols_find(const struct elf_object *object, const char *name, Elf64_Sym *symbol)
{
	struct tables tables;

	if (!read_tables(object, &tables))
		return false;
	if (tables.gnu_hash != 0)
		return find_by_gnu_hash(&tables, name, symbol);
	return tables.hash != 0 && find_by_hash(&tables, name, symbol);
}

uint64_t
elf_symbols_addr(const struct elf_object *object, const char *name)
{
	Elf64_Sym symbol;

	return elf_symbols_find(object, name, &symbol) ? symbol.st_value + object->load_bias : 0;
}

/* Where the text of its nth entry with that tag is; 0 = there is none. */
static uint64_t
text_addr(const struct elf_object *object, Elf64_Sxword tag, unsigned nth)
{
	struct tables tables;
	Elf64_Dyn entry;

	if (!read_tables(object, &tables))
		return 0;
	for (uint64_t at = object->dynamic_addr; get(object, &entry, at, sizeof entry) && entry.d_tag != DT_NULL;
	     at += sizeof entry) {
		if (entry.d_tag == tag && nth-- == 0)
			return tables.names + entry.d_un.d_val;
	}
	return 0;
}

const char *
elf_symbols_text(const struct elf_object *object, Elf64_Sxword tag, unsigned nth)
{
	return (const char *)(uintptr_t)text_addr(object, tag, nth);
}

bool
elf_symbols_is_called(const struct elf_object *object, const char *name)
{
	uint64_t own_name = text_addr(object, DT_SONAME, 0);

	return own_name != 0 && is_text_there(object, own_name, name);
}

bool
elf_symbols_copy_text(const struct elf_object *object, uint64_t addr, char *text, size_t bytes)
{
	for (size_t i = 0; i < bytes && get(object, &text[i], addr + i, 1); i++) {
		if (text[i] == '\0')
			return true;
	}
	return false;
}

static bool
read_at(int fd, void *buffer, size_t bytes, uint64_t offset)
{
	return raw_syscall(SYS_pread64, fd, buffer, bytes, offset) == (long)bytes;
}

bool
elf_symbols_file_has_section(const char *path, const char *name)
{
	static struct {
		struct turn turn;
		Elf64_Shdr sections[128];
		char names[4096];
	} file; // too large for a signal stack
	Elf64_Ehdr head;
	bool is_found = false;

	if (!turn_take(&file.turn)) // who comes meanwhile is not told
		return false;

	int fd = raw_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0); // a pipe is not waited for

	if (fd >= 0 && read_at(fd, &head, sizeof(head), 0) && memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 &&
	    head.e_shentsize == sizeof(Elf64_Shdr) && head.e_shnum <= sizeof(file.sections) / sizeof(file.sections[0]) &&
	    head.e_shstrndx < head.e_shnum && read_at(fd, file.sections, head.e_shnum * sizeof(Elf64_Shdr), head.e_shoff)) {
		const Elf64_Shdr *texts = &file.sections[head.e_shstrndx];
		uint64_t bytes = texts->sh_size < sizeof(file.names) ? texts->sh_size : sizeof(file.names) - 1;

		file.names[bytes] = '\0';
		bool is_read = read_at(fd, file.names, bytes, texts->sh_offset);

		for (unsigned i = 0; is_read && i < head.e_shnum && !is_found; i++)
			is_found = file.sections[i].sh_name < bytes && strcmp(file.names + file.sections[i].sh_name, name) == 0;
	}
	if (fd >= 0)
		raw_close(fd);
	turn_give(&file.turn);
	return is_found;
}
