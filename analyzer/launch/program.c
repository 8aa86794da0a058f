/*
 * program.c - can this program be recorded at all?
 *
 * When failing  see program.h.
 */
#include "launch/program.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/machine.h"
#include "base/regular_file.h"
#include "launch/program_elf.h"

#define SCRIPTS_DEEP 4 // an interpreter may be a script; the kernel gives up here as well

bool
program_find(const char *command, char path[PATH_MAX])
{
	const char *list = getenv("PATH");

	if (strchr(command, '/') != NULL) {
		(void)snprintf(path, PATH_MAX, "%s", command);
		return access(path, F_OK) == 0;
	}
	if (list == NULL)
		list = "/bin:/usr/bin";
	for (;;) {
		size_t length = strcspn(list, ":");

		/* An empty entry is the current folder. */
		(void)snprintf(path, PATH_MAX, "%.*s%s%s", (int)length, list, length != 0 ? "/" : "", command);
		if (access(path, X_OK) == 0)
			return true;
		if (list[length] == '\0')
			return false;
		list += length + 1;
	}
}

static bool
is_env(const char *path)
{
	const char *slash = strrchr(path, '/');

	return strcmp(slash != NULL ? slash + 1 : path, "env") == 0;
}

/* How many words from this one on are env's own, options or NAME=value; 0 = the command begins. */
static int
env_words(const char *word)
{
	if (strcmp(word, "-u") == 0 || strcmp(word, "-C") == 0)
		return 2;
	return word[0] == '-' || strchr(word, '=') != NULL;
}

/* The interpreter of "#! interpreter argument"; for `#!/usr/bin/env -S NAME=v python3 -u` the one that env finds. False: no script. */
static bool
read_interpreter(char *head, char path[PATH_MAX], char missing[PATH_MAX])
{
	char *save;

	if (strncmp(head, "#!", 2) != 0)
		return false;
	head[strcspn(head, "\n\r")] = '\0';

	char *word = strtok_r(head + 2, " \t", &save);

	if (word == NULL)
		return false;
	(void)snprintf(path, PATH_MAX, "%s", word);
	if (!is_env(path))
		return true;
	word = strtok_r(NULL, " \t", &save);
	for (int own; word != NULL && (own = env_words(word)) != 0;) {
		for (; own > 0 && word != NULL; own--)
			word = strtok_r(NULL, " \t", &save);
	}
	if (word != NULL && !program_find(word, path))
		(void)snprintf(missing, PATH_MAX, "%s", word);
	return missing[0] == '\0';
}

/* The dynamic loader that the program names; false = it names none. */
static bool
find_loader(int file, const Elf64_Ehdr *elf, char loader[PATH_MAX])
{
	for (unsigned i = 0; i < elf->e_phnum && elf->e_phentsize == sizeof(Elf64_Phdr); i++) {
		Elf64_Phdr segment;

		if (pread(file, &segment, sizeof(segment), (off_t)(elf->e_phoff + i * sizeof(segment))) !=
		    (ssize_t)sizeof(segment))
			return true; // cut off: the kernel will say so
		if (segment.p_type != PT_INTERP)
			continue;

		ssize_t length = pread(file, loader, PATH_MAX - 1, (off_t)segment.p_offset);

		loader[length > 0 ? length : 0] = '\0';
		return true;
	}
	return false;
}

/* What the symbols of the program, and the libraries that it names, say. */
static void
examine_dynamic(int file, struct program *program)
{
	struct program_elf elf;
	const char *preload = getenv("LD_PRELOAD");
	const char *wanted = getenv("ASAN_OPTIONS");
	bool is_order_free = wanted != NULL && strstr(wanted, "verify_asan_link_order=0") != NULL;

	program_elf_read(file, &elf);
	program->is_python = elf.is_python;
	if ((elf.needs_address_sanitizer && !is_order_free) ||
	    (preload != NULL && (strstr(preload, "libasan.so") != NULL || strstr(preload, "libclang_rt.asan") != NULL))) {
		program->obstacle = "it is built with the address sanitizer, which replaces malloc and must be loaded first";
		program->remedy = "set ASAN_OPTIONS=verify_asan_link_order=0, or record a build without -fsanitize=address";
		program->is_preload_harmful = true;
	} else if (elf.allocator != NULL) {
		program->obstacle = elf.allocator;
		program->remedy = "link the C library's malloc, or the allocator as a shared library; mappings are recorded";
	}
}

static void
examine_elf(int file, const Elf64_Ehdr *elf, struct program *program)
{
	if (elf->e_ident[EI_CLASS] != ELFCLASS64 || elf->e_machine != MACHINE_ELF) {
		program->obstacle = "it is not built for " MACHINE_TITLE;
		program->remedy = "record a 64-bit build of it";
		program->is_preload_harmful = true;
		return;
	}
	if (!find_loader(file, elf, program->loader)) {
		program->obstacle = "it is linked statically: the loader cannot preload a library";
		program->remedy = "link it dynamically; dynamic programs that it starts are recorded";
	} else if (strstr(program->loader, "musl") != NULL) {
		program->obstacle = "it uses musl, and kmemshim needs glibc";
		program->remedy = "build it against glibc";
		program->is_preload_harmful = true;
	} else {
		examine_dynamic(file, program);
	}
}

static void
examine_privilege(int file, const struct stat *status, struct program *program)
{
	bool is_setuid = (status->st_mode & S_ISUID) != 0 && status->st_uid != geteuid();
	bool is_setgid = (status->st_mode & S_ISGID) != 0 && status->st_gid != getegid();
	bool has_capabilities = geteuid() != 0 && fgetxattr(file, "security.capability", NULL, 0) > 0;

	if (is_setuid || is_setgid || has_capabilities) {
		program->obstacle = "it is setuid or setgid or has file capabilities: the loader ignores LD_PRELOAD";
		program->remedy = "run it as its owner, or record a copy without the privilege";
	}
}

void
program_own(char *path)
{
	ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);

	path[length > 0 ? length : 0] = '\0';
}

void
program_examine(char *const *arguments, struct program *program)
{
	char path[PATH_MAX];

	memset(program, 0, sizeof(*program));
	if (!program_find(arguments[0], path))
		return;
	if (is_env(path)) {
		arguments++;
		for (int own; *arguments != NULL && (own = env_words(*arguments)) != 0;) {
			for (; own > 0 && *arguments != NULL; own--)
				arguments++;
		}
		if (*arguments != NULL && !program_find(*arguments, path)) {
			(void)snprintf(program->missing, sizeof(program->missing), "%s", *arguments);
			return;
		}
	}
	for (unsigned depth = 0; depth < SCRIPTS_DEEP; depth++) {
		union {
			char text[256];
			Elf64_Ehdr elf;
		} head;
		struct stat status;
		OWNED_FILE int file = regular_file_open(path, O_RDONLY, &status);

		if (file < 0 && errno == ENOENT)
			(void)snprintf(program->missing, sizeof(program->missing), "%s", path);
		if (file < 0)
			return;
		memset(&head, 0, sizeof(head));

		ssize_t length = pread(file, head.text, sizeof(head.text) - 1, 0);

		if (length >= (ssize_t)sizeof(head.elf) && memcmp(head.text, ELFMAG, SELFMAG) == 0) {
			(void)snprintf(program->path, sizeof(program->path), "%s", path);
			examine_elf(file, &head.elf, program);
			if (program->obstacle == NULL)
				examine_privilege(file, &status, program);
			return;
		}
		if (length <= 0 || !read_interpreter(head.text, path, program->missing))
			return;
	}
}
