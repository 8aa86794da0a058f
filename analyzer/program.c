/*
 * program.c - can this program be recorded at all?
 *
 * Called by   cmd_run.c.
 * When failing  see program.h.
 */
#include "program.h"

#include <elf.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#define PATH_BYTES 4096
#define SCRIPTS_DEEP 4 // an interpreter may be a script; the kernel gives up here as well

/* Where execvp() would find it. */
static bool
find(const char *command, char path[PATH_BYTES])
{
	const char *list = getenv("PATH");

	if (strchr(command, '/') != NULL) {
		(void)snprintf(path, PATH_BYTES, "%s", command);
		return true;
	}
	if (list == NULL)
		list = "/bin:/usr/bin";
	for (;;) {
		size_t length = strcspn(list, ":");

		/* An empty entry is the current folder. */
		(void)snprintf(path, PATH_BYTES, "%.*s%s%s", (int)length, list, length != 0 ? "/" : "", command);
		if (access(path, X_OK) == 0)
			return true;
		if (list[length] == '\0')
			return false;
		list += length + 1;
	}
}

/* "#! interpreter argument": the interpreter. */
static bool
read_interpreter(const char *head, char path[PATH_BYTES])
{
	const char *start;

	if (strncmp(head, "#!", 2) != 0)
		return false;
	start = head + 2 + strspn(head + 2, " \t");
	(void)snprintf(path, PATH_BYTES, "%.*s", (int)strcspn(start, " \t\n\r"), start);
	return path[0] != '\0';
}

/* The dynamic loader that the program names; false = it names none. */
static bool
find_loader(int file, const Elf64_Ehdr *elf, char loader[256])
{
	for (unsigned i = 0; i < elf->e_phnum && elf->e_phentsize == sizeof(Elf64_Phdr); i++) {
		Elf64_Phdr segment;
		ssize_t length;

		if (pread(file, &segment, sizeof(segment), (off_t)(elf->e_phoff + i * sizeof(segment))) !=
		    (ssize_t)sizeof(segment))
			return true; // cut off: the kernel will say so
		if (segment.p_type != PT_INTERP)
			continue;
		length = pread(file, loader, 255, (off_t)segment.p_offset);
		loader[length > 0 ? length : 0] = '\0';
		return true;
	}
	return false;
}

/* Does the program need a library whose name begins so? */
static bool
needs(int file, const char *library)
{
	Elf *elf = elf_version(EV_CURRENT) != EV_NONE ? elf_begin(file, ELF_C_READ, NULL) : NULL;
	Elf_Scn *section = NULL;
	bool is_needed = false;

	while (elf != NULL && (section = elf_nextscn(elf, section)) != NULL) {
		GElf_Shdr header;
		Elf_Data *data;
		GElf_Dyn entry;

		if (gelf_getshdr(section, &header) == NULL || header.sh_type != SHT_DYNAMIC ||
		    (data = elf_getdata(section, NULL)) == NULL)
			continue;
		for (int i = 0; gelf_getdyn(data, i, &entry) != NULL; i++) {
			const char *name = entry.d_tag == DT_NEEDED ? elf_strptr(elf, header.sh_link, entry.d_un.d_val) : NULL;

			is_needed = is_needed || (name != NULL && strncmp(name, library, strlen(library)) == 0);
		}
	}
	(void)elf_end(elf);
	return is_needed;
}

static void
examine_sanitizer(int file, struct program *program)
{
	const char *wanted = getenv("ASAN_OPTIONS");

	if (needs(file, "libasan.so") && (wanted == NULL || strstr(wanted, "verify_asan_link_order=0") == NULL))
		*program = (struct program){ "it is built with AddressSanitizer, which refuses to start behind a preload",
			                         "set ASAN_OPTIONS=verify_asan_link_order=0, or record a build without it", true };
}

static void
examine_elf(int file, const Elf64_Ehdr *elf, struct program *program)
{
	char loader[256] = "";

	if (elf->e_ident[EI_CLASS] != ELFCLASS64 || elf->e_machine != EM_X86_64) {
		*program = (struct program){ "it is built for another architecture than x86-64",
			                         "record a 64-bit build of it", true };
		return;
	}
	if (!find_loader(file, elf, loader))
		*program = (struct program){ "it is linked statically, so no library can be preloaded",
			                         "link it dynamically, or record the dynamic programs that it starts", false };
	else if (strstr(loader, "musl") != NULL)
		*program = (struct program){ "it runs on musl, and this build is for glibc", "build it against glibc", true };
}

static void
examine_privilege(int file, const struct stat *status, struct program *program)
{
	bool is_setuid = (status->st_mode & S_ISUID) != 0 && status->st_uid != geteuid();
	bool is_setgid = (status->st_mode & S_ISGID) != 0 && status->st_gid != getegid();
	bool has_capabilities = geteuid() != 0 && fgetxattr(file, "security.capability", NULL, 0) > 0;

	if (is_setuid || is_setgid || has_capabilities)
		*program = (struct program){ "it is setuid, setgid or has file capabilities, so the loader ignores preloads",
			                         "run it as the user that owns it, or a copy without the privilege", false };
}

void
program_examine(const char *command, struct program *program)
{
	char path[PATH_BYTES];

	*program = (struct program){ .obstacle = NULL };
	if (!find(command, path))
		return;
	for (unsigned depth = 0; depth < SCRIPTS_DEEP; depth++) {
		union {
			char text[256];
			Elf64_Ehdr elf;
		} head;
		struct stat status;
		ssize_t length;
		int file = open(path, O_RDONLY | O_CLOEXEC);

		if (file < 0)
			return;
		memset(&head, 0, sizeof(head));
		length = pread(file, head.text, sizeof(head.text) - 1, 0);
		if (length >= (ssize_t)sizeof(head.elf) && memcmp(head.text, ELFMAG, SELFMAG) == 0) {
			examine_elf(file, &head.elf, program);
			if (program->obstacle == NULL)
				examine_sanitizer(file, program);
			if (program->obstacle == NULL && fstat(file, &status) == 0)
				examine_privilege(file, &status, program);
			(void)close(file);
			return;
		}
		(void)close(file);
		if (length <= 0 || !read_interpreter(head.text, path))
			return;
	}
}
