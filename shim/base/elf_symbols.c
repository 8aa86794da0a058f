/*
 * elf_symbols.c - the dynamic symbol table of a mapped object (see elf_symbols.h).
 */
#include "base/elf_symbols.h"

#include <link.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "base/raw_sys.h"
#include "base/turn.h"

#define PAGE_BYTES UINT64_C(4096)

#define BLOOM_BITS 64u

struct tables {
	const Elf64_Sym *symbols;
	const char *names;
	const uint32_t *gnu_hash;
	const uint32_t *hash;
	const uint16_t *versions; // of each symbol; NULL = it has none
};
#define VERSION_IS_HIDDEN 0x8000 // it is there for programs that were linked before the version of today

/* The loader puts addresses in the place of offsets, except in sections that it cannot write (the kernel's object). */
static uint64_t
absolute(const struct elf_object *object, uint64_t value)
{
	return value < object->load_bias ? value + object->load_bias : value;
}

static bool
read_tables(const struct elf_object *object, struct tables *tables)
{
	const Elf64_Dyn *entry = (const Elf64_Dyn *)object->dynamic_addr;

	*tables = (struct tables){ 0 };
	if (entry == NULL)
		return false;
	for (; entry->d_tag != DT_NULL; entry++) {
		const void *addr = (const void *)absolute(object, entry->d_un.d_ptr);

		switch (entry->d_tag) {
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
	return tables->symbols != NULL && tables->names != NULL;
}

struct elf_object
elf_symbols_loaded(const struct dl_phdr_info *info)
{
	struct elf_object object = { .load_bias = info->dlpi_addr,
		                         .headers = info->dlpi_phdr,
		                         .header_count = info->dlpi_phnum };

	for (unsigned i = 0; i < object.header_count; i++) {
		if (object.headers[i].p_type == PT_DYNAMIC)
			object.dynamic_addr = object.load_bias + object.headers[i].p_vaddr;
	}
	return object;
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
is_same_text(const char *one, const char *other)
{
	while (*one == *other && *one != '\0') {
		one++;
		other++;
	}
	return *one == *other;
}

static bool
is_definition(const struct tables *tables, uint32_t index, const char *name)
{
	const Elf64_Sym *symbol = &tables->symbols[index];

	return symbol->st_shndx != SHN_UNDEF && symbol->st_value != 0 &&
	       (tables->versions == NULL || (tables->versions[index] & VERSION_IS_HIDDEN) == 0) &&
	       is_same_text(tables->names + symbol->st_name, name);
}

/* Header: buckets, index of the first hashed symbol, words of the bloom filter, its shift; filter; buckets; one word a symbol. */
static const Elf64_Sym *
find_by_gnu_hash(const struct tables *tables, const char *name)
{
	uint32_t bucket_count = tables->gnu_hash[0];
	uint32_t first = tables->gnu_hash[1];
	uint32_t bloom_words = tables->gnu_hash[2];
	const uint64_t *bloom = (const uint64_t *)(tables->gnu_hash + 4);
	const uint32_t *buckets = (const uint32_t *)(bloom + bloom_words);
	const uint32_t *hashes = buckets + bucket_count;
	uint32_t hash = 5381;

	for (const char *at = name; *at != '\0'; at++)
		hash = hash * 33 + (unsigned char)*at;
	if (bucket_count == 0 || bloom_words == 0 || (bloom[hash / BLOOM_BITS % bloom_words] >> hash % BLOOM_BITS & 1) == 0)
		return NULL;

	uint32_t index = buckets[hash % bucket_count];

	for (; index >= first; index++) {
		uint32_t seen = hashes[index - first];

		if ((seen | 1) == (hash | 1) && is_definition(tables, index, name))
			return &tables->symbols[index];
		if ((seen & 1) != 0) // the last one of its bucket
			break;
	}
	return NULL;
}

static const Elf64_Sym *
find_by_hash(const struct tables *tables, const char *name)
{
	uint32_t bucket_count = tables->hash[0];
	const uint32_t *buckets = tables->hash + 2;
	const uint32_t *next = buckets + bucket_count;
	uint32_t hash = 0;

	for (const char *at = name; *at != '\0'; at++) {
		hash = (hash << 4) + (unsigned char)*at;
		hash = (hash ^ (hash >> 24 & 0xf0)) & 0x0fffffff;
	}
	if (bucket_count == 0)
		return NULL;
	for (uint32_t index = buckets[hash % bucket_count]; index != 0; index = next[index]) {
		if (is_definition(tables, index, name))
			return &tables->symbols[index];
	}
	return NULL;
}

const Elf64_Sym *
elf_symbols_find(const struct elf_object *object, const char *name)
{
	struct tables tables;

	if (!read_tables(object, &tables))
		return NULL;
	if (tables.gnu_hash != NULL)
		return find_by_gnu_hash(&tables, name);
	return tables.hash != NULL ? find_by_hash(&tables, name) : NULL;
}

uint64_t
elf_symbols_addr(const struct elf_object *object, const char *name)
{
	const Elf64_Sym *symbol = elf_symbols_find(object, name);

	return symbol != NULL ? symbol->st_value + object->load_bias : 0;
}

const char *
elf_symbols_text(const struct elf_object *object, Elf64_Sxword tag, unsigned nth)
{
	const Elf64_Dyn *entry = (const Elf64_Dyn *)object->dynamic_addr;
	struct tables tables;

	if (!read_tables(object, &tables))
		return NULL;
	for (; entry->d_tag != DT_NULL; entry++) {
		if (entry->d_tag == tag && nth-- == 0)
			return tables.names + entry->d_un.d_val;
	}
	return NULL;
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
	int fd;

	if (!turn_take(&file.turn)) // who comes meanwhile is not told
		return false;
	fd = raw_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0); // a pipe is not waited for
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
