/*
 * debug_gate.c - what elfutils may open (see debug_gate.h).
 *
 * The program's open() comes before the C library's for the libraries that are loaded with it.
 *
 * Not chosen  a child with a limit that reads debug information and reports names: a process for each file, whose mappings of
 *             files that are fine count against the limit as well.
 */
#include "symbols/debug_gate.h"

#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/regular_file.h"

#define UNPACKED_BYTES_MAX (UINT64_C(384) << 20) // of one file; elfutils unpacks every section at once
#define LINE_WEIGHT 48 // a byte of a line program can be one line, for which elfutils takes so much
#define PACKED_BY_GNU_BYTES 12

static bool is_shut;
static unsigned refused;

void
debug_gate_shut(void)
{
	is_shut = true;
}

void
debug_gate_open(void)
{
	is_shut = false;
}

unsigned
debug_gate_refused(void)
{
	return refused;
}

/* What a section takes when it is unpacked; 0: it is not packed, or no debug information. */
static uint64_t
unpacked_bytes(Elf *elf, Elf_Scn *section, const GElf_Shdr *header, const char *name)
{
	uint64_t bytes = 0;
	GElf_Chdr packed;

	if ((header->sh_flags & SHF_COMPRESSED) != 0) {
		bytes = gelf_getchdr(section, &packed) != NULL ? packed.ch_size : 0;
	} else if (strncmp(name, ".zdebug", 7) == 0 && header->sh_size > PACKED_BY_GNU_BYTES) {
		Elf_Data *data = elf_getdata_rawchunk(elf, (int64_t)header->sh_offset, PACKED_BY_GNU_BYTES, ELF_T_BYTE);
		const uint8_t *start = data != NULL ? data->d_buf : NULL;

		for (unsigned i = 4; start != NULL && i < PACKED_BY_GNU_BYTES; i++)
			bytes = bytes << 8 | start[i];
	}
	if (bytes > UNPACKED_BYTES_MAX)
		return UNPACKED_BYTES_MAX + 1;
	return strstr(name, "debug_line") != NULL && strstr(name, "debug_line_str") == NULL ? bytes * LINE_WEIGHT : bytes;
}

static bool
is_bearable(int fd)
{
	Elf *elf = elf_version(EV_CURRENT) != EV_NONE ? elf_begin(fd, ELF_C_READ_MMAP, NULL) : NULL;
	uint64_t sum = 0;
	size_t names;

	if (elf == NULL)
		return true; // elfutils will say the same
	if (elf_kind(elf) == ELF_K_ELF && elf_getshdrstrndx(elf, &names) == 0) {
		for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section)) != NULL && sum <= UNPACKED_BYTES_MAX;) {
			GElf_Shdr header;
			const char *name;

			if (gelf_getshdr(section, &header) == NULL || (name = elf_strptr(elf, names, header.sh_name)) == NULL)
				continue;
			sum += unpacked_bytes(elf, section, &header, name);
		}
	}
	(void)elf_end(elf);
	return sum <= UNPACKED_BYTES_MAX;
}

bool
debug_gate_is_bearable(int fd)
{
	bool is_fine = is_bearable(fd);

	refused += !is_fine;
	(void)lseek(fd, 0, SEEK_SET);
	return is_fine;
}

static int
open_regular(const char *path, int flags)
{
	int fd = regular_file_open(path, flags, NULL);

	if (fd >= 0 && debug_gate_is_bearable(fd))
		return fd;
	regular_file_close(&fd);
	errno = ENOENT;
	return -1;
}

/* As the C library declares it, under another name: headers may define it inline. */
int open_at_the_gate(const char *path, int flags, ...) __asm__("open") __attribute__((visibility("default")));

int
open_at_the_gate(const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list more;

	if (is_shut && (flags & O_ACCMODE) == O_RDONLY)
		return open_regular(path, flags);
	if ((flags & (O_CREAT | O_TMPFILE)) != 0) {
		va_start(more, flags);
		mode = va_arg(more, mode_t);
		va_end(more);
	}
	return openat(AT_FDCWD, path, flags, mode);
}
