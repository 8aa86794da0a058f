/*
 * program_elf.c - see program_elf.h.
 *
 * The executable comes first in the loader's order: no preloaded library comes before what it defines. A malloc that is linked into a
 * program is among its dynamic symbols, because the C library refers to it.
 */
#include "launch/program_elf.h"

#include <gelf.h>
#include <stddef.h>
#include <string.h>

/* A symbol that tells whose malloc it is; the first that is defined decides. */
static const struct {
	const char *symbol;
	const char *allocator;
} marks[] = {
	{ "__asan_init", "it is built with a static address sanitizer, which serves malloc inside the program" },
	{ "__msan_init", "it is built with the memory sanitizer, which serves malloc inside the program" },
	{ "__tsan_init", "it is built with a static thread sanitizer, which serves malloc inside the program" },
	{ "__lsan_init", "it is built with a static leak sanitizer, which serves malloc inside the program" },
	{ "mallctl", "jemalloc is linked into it, so its heap calls never leave the program" },
	{ "je_mallctl", "jemalloc is linked into it, so its heap calls never leave the program" },
	{ "tc_malloc", "tcmalloc is linked into it, so its heap calls never leave the program" },
	{ "mi_malloc", "mimalloc is linked into it, so its heap calls never leave the program" },
};
#define MARK_COUNT (sizeof(marks) / sizeof(marks[0]))

struct defined {
	bool has_malloc;
	bool has_python;
	bool marks[MARK_COUNT];
};

static void
note_symbol(const char *name, bool is_dynamic, struct defined *defined)
{
	if (is_dynamic && strcmp(name, "malloc") == 0)
		defined->has_malloc = true;
	if (strcmp(name, "Py_BytesMain") == 0 || strcmp(name, "Py_InitializeEx") == 0)
		defined->has_python = true;
	for (size_t i = 0; i < MARK_COUNT; i++) {
		if (strcmp(name, marks[i].symbol) == 0)
			defined->marks[i] = true;
	}
}

static void
note_needed(const char *name, struct program_elf *elf)
{
	if (strncmp(name, "libasan.", 8) == 0 || strncmp(name, "libclang_rt.asan", 16) == 0)
		elf->needs_address_sanitizer = true;
	if (strncmp(name, "libpython3.", 11) == 0)
		elf->is_python = true;
}

/* Finds the name of an entry in a table of symbols or of needed libraries; false: it has none that counts. */
static bool
find_name(Elf_Data *data, int entry, const GElf_Shdr *header, size_t *name)
{
	GElf_Sym symbol;
	GElf_Dyn need;

	if (header->sh_type == SHT_DYNAMIC) {
		if (gelf_getdyn(data, entry, &need) == NULL || need.d_tag != DT_NEEDED)
			return false;
		*name = need.d_un.d_val;
		return true;
	}
	if (gelf_getsym(data, entry, &symbol) == NULL || symbol.st_shndx == SHN_UNDEF)
		return false;
	*name = symbol.st_name;
	return true;
}

static void
read_names(Elf *file, Elf_Scn *section, const GElf_Shdr *header, struct defined *defined, struct program_elf *elf)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t count = data != NULL && header->sh_entsize != 0 ? header->sh_size / header->sh_entsize : 0;

	for (size_t i = 0; i < count; i++) {
		size_t at;
		const char *name = find_name(data, (int)i, header, &at) ? elf_strptr(file, header->sh_link, at) : NULL;

		if (name != NULL && header->sh_type == SHT_DYNAMIC)
			note_needed(name, elf);
		else if (name != NULL)
			note_symbol(name, header->sh_type == SHT_DYNSYM, defined);
	}
}

void
program_elf_read(int file, struct program_elf *elf)
{
	struct defined defined = { .has_malloc = false };
	Elf_Scn *section = NULL;
	Elf *opened;

	*elf = (struct program_elf){ .allocator = NULL };
	(void)elf_version(EV_CURRENT);
	opened = elf_begin(file, ELF_C_READ_MMAP, NULL);
	while (opened != NULL && (section = elf_nextscn(opened, section)) != NULL) {
		GElf_Shdr header;

		if (gelf_getshdr(section, &header) == NULL)
			continue;
		if (header.sh_type == SHT_DYNSYM || header.sh_type == SHT_SYMTAB || header.sh_type == SHT_DYNAMIC)
			read_names(opened, section, &header, &defined, elf);
	}
	(void)elf_end(opened);
	elf->is_python = elf->is_python || defined.has_python;
	if (!defined.has_malloc)
		return;
	elf->allocator = "it defines malloc itself, so its heap calls never leave the program";
	for (size_t i = MARK_COUNT; i-- > 0;) {
		if (defined.marks[i])
			elf->allocator = marks[i].allocator;
	}
}
