/*
 * debug_package.c - one unit of a .dwp (see debug_gate.h).
 *
 * A package begins with a table: for each unit, by its number, which part of each section is its own. Two forms of the table are in
 * use, DWARF 5's and the GNU one of DWARF 4; they differ in the numbers of the sections.
 */
#include "symbols/debug_gate.h"

#include <gelf.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/machine.h"

#define SECTIONS_MAX 16
#define UNIT_BYTES_MAX (UINT64_C(256) << 20)
#define NAMES_BYTES 512
#define ELF_SECTIONS_MAX (SECTIONS_MAX + 3) // none, the strings that all units share, the names

struct part {
	const char *name;
	const uint8_t *bytes;
	uint64_t count;
};

struct index {
	const uint8_t *bytes;
	uint64_t count;
	uint32_t version;
	uint32_t columns;
	uint32_t units;
	uint32_t slots;
};

static uint32_t
number_at(const struct index *index, uint64_t offset)
{
	uint32_t number;

	memcpy(&number, index->bytes + offset, sizeof(number));
	return number;
}

/* Numbers of sections: DWARF 5, 7.3.5; the GNU form has 5 and 8 for others. */
static const char *
section_name(uint32_t version, uint32_t number)
{
	static const char *const names[] = {
		[1] = ".debug_info.dwo",     [3] = ".debug_abbrev.dwo",      [4] = ".debug_line.dwo",
		[5] = ".debug_loclists.dwo", [6] = ".debug_str_offsets.dwo", [7] = ".debug_macro.dwo",
		[8] = ".debug_rnglists.dwo",
	};

	if (version == 2 && (number == 5 || number == 7 || number == 8))
		return NULL; // locations and macros are not read
	return number < sizeof(names) / sizeof(names[0]) ? names[number] : NULL;
}

/* Debug information of the section, unpacked; false: there is none. */
static bool
find_section(Elf *elf, const char *wanted, struct part *part)
{
	size_t names;

	if (elf_getshdrstrndx(elf, &names) != 0)
		return false;
	for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section)) != NULL;) {
		GElf_Shdr header;
		const char *name;
		Elf_Data *data;

		if (gelf_getshdr(section, &header) == NULL || (name = elf_strptr(elf, names, header.sh_name)) == NULL ||
		    strcmp(name, wanted) != 0)
			continue;
		if ((header.sh_flags & SHF_COMPRESSED) != 0 && elf_compress(section, 0, 0) < 0)
			return false;
		data = elf_getdata(section, NULL);
		if (data == NULL || data->d_buf == NULL)
			return false;
		*part = (struct part){ wanted, data->d_buf, data->d_size };
		return true;
	}
	return false;
}

static bool
read_index(Elf *elf, struct index *index)
{
	struct part part;

	if (!find_section(elf, ".debug_cu_index", &part) || part.count < 16)
		return false;
	*index = (struct index){ .bytes = part.bytes, .count = part.count };
	index->version = number_at(index, 0) & 0xffff;
	index->columns = number_at(index, 4);
	index->units = number_at(index, 8);
	index->slots = number_at(index, 12);

	uint64_t wanted = 16 + (uint64_t)index->slots * 12 + ((uint64_t)index->units * 2 + 1) * index->columns * 4;

	return (index->version == 2 || index->version == 5) && index->columns <= SECTIONS_MAX && wanted <= index->count;
}

/* 1 is the first; 0: the package does not have it. */
static uint32_t
row_of(const struct index *index, uint64_t unit)
{
	for (uint32_t slot = 0; slot < index->slots; slot++) {
		uint64_t number;
		uint32_t row = number_at(index, 16 + (uint64_t)index->slots * 8 + (uint64_t)slot * 4);

		memcpy(&number, index->bytes + 16 + (uint64_t)slot * 8, sizeof(number));
		if (number == unit && row != 0 && row <= index->units)
			return row;
	}
	return 0;
}

/* The unit's own parts, and the strings. */
static unsigned
find_parts(Elf *elf, const struct index *index, uint32_t row, struct part parts[SECTIONS_MAX + 1])
{
	uint64_t offsets = 16 + (uint64_t)index->slots * 12; // its first row is the numbers of the sections
	uint64_t sizes = offsets + ((uint64_t)index->units + 1) * index->columns * 4;
	uint64_t sum = 0;
	unsigned count = 0;

	for (uint32_t column = 0; column < index->columns; column++) {
		const char *name = section_name(index->version, number_at(index, offsets + (uint64_t)column * 4));
		uint64_t start = number_at(index, offsets + ((uint64_t)row * index->columns + column) * 4);
		uint64_t bytes = number_at(index, sizes + ((uint64_t)(row - 1) * index->columns + column) * 4);
		struct part whole;

		if (name == NULL || bytes == 0 || !find_section(elf, name, &whole) || start > whole.count ||
		    bytes > whole.count - start)
			continue;
		parts[count++] = (struct part){ name, whole.bytes + start, bytes };
		sum += bytes;
	}
	if (find_section(elf, ".debug_str.dwo", &parts[count]))
		sum += parts[count++].count;
	return sum <= UNIT_BYTES_MAX ? count : 0;
}

static bool
put(int fd, const void *bytes, uint64_t count)
{
	while (count > 0) {
		ssize_t written = write(fd, bytes, count);

		if (written <= 0)
			return false;
		bytes = (const char *)bytes + written;
		count -= (uint64_t)written;
	}
	return true;
}

/* An ELF file of these sections: head, sections, their names, the table of them. */
static bool
write_file(int fd, const struct part *parts, unsigned count)
{
	Elf64_Shdr table[ELF_SECTIONS_MAX] = { { .sh_type = SHT_NULL } };
	char names[NAMES_BYTES] = "";
	size_t names_bytes = 1;
	uint64_t at = sizeof(Elf64_Ehdr);
	Elf64_Ehdr head = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_type = ET_REL,
		.e_machine = MACHINE_ELF,
		.e_version = EV_CURRENT,
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = (Elf64_Half)(count + 2),
		.e_shstrndx = (Elf64_Half)(count + 1),
	};

	for (unsigned i = 0; i <= count; i++) {
		const char *name = i < count ? parts[i].name : ".shstrtab";
		size_t bytes = strlen(name) + 1;

		table[i + 1] = (Elf64_Shdr){
			.sh_name = (Elf64_Word)names_bytes,
			.sh_type = i < count ? SHT_PROGBITS : SHT_STRTAB,
			.sh_offset = at,
			.sh_addralign = 1,
		};
		memcpy(names + names_bytes, name, bytes); // NAMES_BYTES hold all that section_name() knows, twice
		names_bytes += bytes;
		table[i + 1].sh_size = i < count ? parts[i].count : names_bytes;
		at += table[i + 1].sh_size;
	}
	head.e_shoff = (at + 7) / 8 * 8;
	if (!put(fd, &head, sizeof(head)))
		return false;
	for (unsigned i = 0; i < count; i++) {
		if (!put(fd, parts[i].bytes, parts[i].count))
			return false;
	}
	return put(fd, names, names_bytes) && put(fd, (const char[8]){ 0 }, head.e_shoff - at) &&
	       put(fd, table, (count + 2) * sizeof(table[0])) && lseek(fd, 0, SEEK_SET) == 0;
}

int
debug_package_unit(int package, uint64_t unit)
{
	Elf *elf = elf_begin(package, ELF_C_READ_MMAP_PRIVATE, NULL);
	struct part parts[SECTIONS_MAX + 1];
	struct index index;
	uint32_t row = 0;
	unsigned count = 0;
	int fd = -1;

	if (elf != NULL && gelf_getclass(elf) == ELFCLASS64 && read_index(elf, &index))
		row = row_of(&index, unit);
	if (row != 0)
		count = find_parts(elf, &index, row, parts);
	if (count != 0)
		fd = memfd_create("split unit", MFD_CLOEXEC);
	if (fd >= 0 && !write_file(fd, parts, count)) {
		(void)close(fd);
		fd = -1;
	}
	(void)elf_end(elf);
	return fd;
}
