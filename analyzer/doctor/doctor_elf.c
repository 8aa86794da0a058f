/*
 * doctor_elf.c - see doctor_elf.h.
 *
 * Debug symbols are in the file, in /usr/lib/debug by build-id, or where its debug link says: as elfutils looks for them.
 */
#include "doctor/doctor_elf.h"

#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/regular_file.h"

#define SEARCHED_BYTES_MAX (INT64_C(256) << 20)
#define DEBUG_ROOT "/usr/lib/debug"

static void
read_needs(Elf *file, Elf_Scn *section, const GElf_Shdr *header, struct doctor_elf *elf)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t count = data != NULL && header->sh_entsize != 0 ? header->sh_size / header->sh_entsize : 0;

	for (size_t i = 0; i < count; i++) {
		const char *name;
		GElf_Dyn need;

		if (gelf_getdyn(data, (int)i, &need) == NULL || need.d_tag != DT_NEEDED ||
		    (name = elf_strptr(file, header->sh_link, need.d_un.d_val)) == NULL)
			continue;
		if (strncmp(name, "libcudart", 9) == 0)
			(void)snprintf(elf->cuda_runtime, sizeof(elf->cuda_runtime), "%s", name);
		if (strcmp(name, "libcuda.so.1") == 0)
			elf->needs_cuda_driver = true;
	}
}

static void
read_build_id(Elf_Scn *section, struct doctor_elf *elf)
{
	Elf_Data *data = elf_getdata(section, NULL);
	size_t name, text;
	GElf_Nhdr note;
	size_t at = 0;

	while (data != NULL && (at = gelf_getnote(data, at, &note, &name, &text)) != 0) {
		const uint8_t *bytes = (const uint8_t *)data->d_buf + text;

		if (note.n_type != NT_GNU_BUILD_ID || note.n_descsz > (sizeof(elf->build_id) - 1) / 2)
			continue;
		for (size_t i = 0; i < note.n_descsz; i++)
			(void)snprintf(elf->build_id + 2 * i, 3, "%02x", bytes[i]);
	}
}

/* DIR/LINK, DIR/.debug/LINK, /usr/lib/debug/DIR/LINK, and it is not the file itself. */
static bool
has_linked_file(const char *path, const char *link)
{
	static const struct {
		const char *before;
		const char *after;
	} places[] = { { "", "" }, { "", "/.debug" }, { DEBUG_ROOT, "" } };
	char itself[PATH_MAX];

	if (realpath(path, itself) == NULL)
		return false;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		int length = (int)(strrchr(itself, '/') - itself);
		char wanted[2 * PATH_MAX];
		char found[PATH_MAX];

		(void)snprintf(wanted, sizeof(wanted), "%s%.*s%s/%s", places[i].before, length, itself, places[i].after, link);
		if (realpath(wanted, found) != NULL && strcmp(found, itself) != 0)
			return true;
	}
	return false;
}

static bool
has_file_of_build_id(const char *build_id)
{
	char path[PATH_MAX];

	if (strlen(build_id) < 4)
		return false;
	(void)snprintf(path, sizeof(path), DEBUG_ROOT "/.build-id/%.2s/%s.debug", build_id, build_id + 2);
	return access(path, R_OK) == 0;
}

bool
doctor_elf_read(const char *path, struct doctor_elf *elf)
{
	struct stat status;
	OWNED_FILE int file = regular_file_open(path, O_RDONLY, &status);
	Elf_Scn *section = NULL;
	Elf *opened;
	size_t names;

	*elf = (struct doctor_elf){ .size_bytes = 0 };
	if (file < 0)
		return false;
	elf->size_bytes = (uint64_t)status.st_size;
	(void)elf_version(EV_CURRENT);
	opened = elf_begin(file, ELF_C_READ_MMAP, NULL);

	bool is_elf = opened != NULL && elf_kind(opened) == ELF_K_ELF && elf_getshdrstrndx(opened, &names) == 0;

	while (is_elf && (section = elf_nextscn(opened, section)) != NULL) {
		GElf_Shdr header;
		const char *name;
		Elf_Data *link;

		if (gelf_getshdr(section, &header) == NULL || (name = elf_strptr(opened, names, header.sh_name)) == NULL)
			continue;
		if (header.sh_type == SHT_DYNAMIC)
			read_needs(opened, section, &header, elf);
		else if (header.sh_type == SHT_NOTE)
			read_build_id(section, elf);
		else if (strcmp(name, ".debug_info") == 0 || strcmp(name, ".zdebug_info") == 0)
			elf->has_debug_symbols = true;
		else if (strcmp(name, ".gnu_debuglink") == 0 && (link = elf_getdata(section, NULL)) != NULL &&
		         link->d_size > 0 && memchr(link->d_buf, '\0', link->d_size) != NULL &&
		         has_linked_file(path, link->d_buf))
			elf->has_debug_symbols = true;
	}
	elf->has_debug_symbols = elf->has_debug_symbols || has_file_of_build_id(elf->build_id);
	(void)elf_end(opened);
	return is_elf;
}

bool
doctor_elf_has_text(const char *path, const char *text, char behind[DOCTOR_NAME_BYTES])
{
	struct stat status;
	OWNED_FILE int file = regular_file_open(path, O_RDONLY, &status);
	void *bytes = MAP_FAILED;

	if (file < 0)
		return false;
	if (status.st_size > 0 && status.st_size <= SEARCHED_BYTES_MAX)
		bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
	if (bytes == MAP_FAILED)
		return false;

	const char *end = (const char *)bytes + status.st_size;
	const char *found = memmem(bytes, (size_t)status.st_size, text, strlen(text));

	if (found != NULL && behind != NULL)
		(void)snprintf(behind, DOCTOR_NAME_BYTES, "%.*s", (int)(end - found - (ssize_t)strlen(text)),
		               found + strlen(text));
	(void)munmap(bytes, (size_t)status.st_size);
	return found != NULL;
}
