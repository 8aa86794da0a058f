/*
 * core_file.c - segments and notes of a core (see core_file.h).
 *
 * The file is foreign input, and may be cut meanwhile: it is read, never mapped, and each part is there as a whole or not at all.
 */
#include "holders/core_file.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/procfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/regular_file.h"
#include "base/sorted.h"
#include "base/text_start.h"

#define PARTS_MAX 16                         // of a file
#define NOTES_BYTES_MAX (UINT64_C(64) << 20) // of all together: of 100,000 threads
#define ALIGNED(bytes) (((uint64_t)(bytes) + 3) & ~(uint64_t)3)

struct part {
	uint64_t start;
	uint64_t end;
	uint64_t offset; // in the core; of a file's part in that file
	uint64_t bytes;  // that are there
	const char *path;
	int fd; // of the file: -1 = it cannot be opened, -2 = nobody has tried
};

struct core {
	int fd;
	size_t segment_count;
	struct part *segments; // by address
	size_t file_count;
	struct part *files; // by address
};

static bool
read_at(const struct core *core, uint64_t offset, void *to, uint64_t bytes)
{
	return pread(core->fd, to, bytes, (off_t)offset) == (ssize_t)bytes;
}

static struct part *
part_at(struct part *parts, size_t count, uint64_t addr)
{
	size_t at = SORTED_UP_TO(parts, count, end, addr);

	return at < count && parts[at].start <= addr ? &parts[at] : NULL;
}

/* What the core itself has. */
static size_t
from_segment(struct core *core, uint64_t addr, void *to, size_t bytes)
{
	const struct part *segment = part_at(core->segments, core->segment_count, addr);
	uint64_t inside = segment != NULL ? addr - segment->start : 0;

	if (segment == NULL || inside >= segment->bytes)
		return 0;
	if (bytes > segment->bytes - inside)
		bytes = segment->bytes - inside;
	return read_at(core, segment->offset + inside, to, bytes) ? bytes : 0;
}

/* The first part of the file of which this is one: parts of one file lie side by side. NULL: it is not there. */
static const struct part *
head_of(const struct core *core, const struct part *file)
{
	for (const struct part *part = file; part >= core->files && file - part < PARTS_MAX; part--) {
		if (strcmp(part->path, file->path) != 0)
			break;
		if (part->offset == 0)
			return part;
	}
	return NULL;
}

bool
core_file_is_image(const unsigned char head[PROCESS_MEMORY_PAGE], const char *path, int *fd)
{
	static const char build_id[] = "\3\0\0\0GNU"; // the kind and the owner of the note
	unsigned char found[PROCESS_MEMORY_PAGE];

	*fd = memcmp(head, ELFMAG, SELFMAG) == 0 && memmem(head, PROCESS_MEMORY_PAGE, build_id, sizeof(build_id)) != NULL
	          ? regular_file_open(path, O_RDONLY, NULL)
	          : -1;
	if (*fd < 0 ||
	    (pread(*fd, found, sizeof(found), 0) == (ssize_t)sizeof(found) && memcmp(head, found, sizeof(found)) == 0))
		return *fd >= 0;
	(void)close(*fd);
	*fd = -1;
	return false;
}

static size_t
from_file(struct core *core, struct part *file, uint64_t addr, void *to, size_t bytes)
{
	uint64_t inside = addr - file->start;
	unsigned char page[PROCESS_MEMORY_PAGE];
	const struct part *head = file->fd == -2 ? head_of(core, file) : NULL;

	if (file->fd == -2)
		file->fd = -1;
	if (head != NULL && from_segment(core, head->start, page, sizeof(page)) == sizeof(page))
		(void)core_file_is_image(page, file->path, &file->fd);
	if (bytes > file->end - addr)
		bytes = file->end - addr;

	ssize_t got = file->fd >= 0 ? pread(file->fd, to, bytes, (off_t)(file->offset + inside)) : 0;

	return got > 0 ? (size_t)got : 0;
}

static size_t
fetch(void *context, uint64_t addr, void *to, size_t bytes)
{
	struct core *core = context;
	size_t got = from_segment(core, addr, to, bytes);
	struct part *file = got == 0 ? part_at(core->files, core->file_count, addr) : NULL;

	return file != NULL ? from_file(core, file, addr, to, bytes) : got;
}

/* ---- notes ---- */

struct notes {
	struct core *core;
	struct stopped_process *process;
	uint64_t read_bytes;
};

/* Count and size of a page, then a start, an end and an offset in pages for each, then their names. */
static void
read_files(struct core *core, const unsigned char *note, uint64_t bytes)
{
	uint64_t head[2];

	if (bytes < sizeof(head))
		return;
	memcpy(head, note, sizeof(head));
	if (head[0] > (bytes - sizeof(head)) / 24)
		return;

	uint64_t names = sizeof(head) + head[0] * 24;

	for (uint64_t i = 0; i < head[0] && names < bytes; i++) {
		uint64_t row[3];
		size_t length = strnlen((const char *)note + names, bytes - names);

		if (length == bytes - names)
			return;
		memcpy(row, note + sizeof(head) + i * sizeof(row), sizeof(row));
		*MEMORY_NEXT(core->files, core->file_count) = (struct part){
			.start = row[0],
			.end = row[1],
			.offset = row[2] * head[1],
			.path = memory_text((const char *)note + names),
			.fd = -2,
		};
		names += length + 1;
	}
}

static void
read_thread(struct stopped_process *process, const unsigned char *note, uint64_t bytes)
{
	struct elf_prstatus status;

	if (bytes < sizeof(status))
		return;
	memcpy(&status, note, sizeof(status));

	struct stopped_thread *thread = MEMORY_NEXT(process->threads, process->count);

	*thread = (struct stopped_thread){ .number = status.pr_pid };
	stopped_registers_take(thread, &status.pr_reg, sizeof(status.pr_reg));
}

static void
read_note(struct notes *notes, uint32_t type, const unsigned char *note, uint64_t bytes)
{
	struct elf_prpsinfo program;

	if (type == NT_PRSTATUS)
		read_thread(notes->process, note, bytes);
	else if (type == NT_FILE)
		read_files(notes->core, note, bytes);
	else if (type == NT_PRPSINFO && bytes >= sizeof(program)) {
		memcpy(&program, note, sizeof(program));
		notes->process->pid = program.pr_pid;
	} else if (type == NT_ARM_TLS && bytes >= 8 && notes->process->count != 0)
		memcpy(&notes->process->threads[notes->process->count - 1].thread_addr, note, 8);
}

static void
read_notes(struct notes *notes, uint64_t offset, uint64_t bytes)
{
	bool has_room = bytes <= NOTES_BYTES_MAX - notes->read_bytes;
	unsigned char *from = has_room ? memory_zeroed(bytes + 1, 1) : NULL;
	bool is_read = from != NULL && read_at(notes->core, offset, from, bytes);
	uint64_t at = 0;

	notes->read_bytes += has_room ? bytes : 0;
	while (is_read && at + sizeof(Elf64_Nhdr) <= bytes) {
		Elf64_Nhdr head;

		memcpy(&head, from + at, sizeof(head));

		uint64_t note = at + sizeof(head) + ALIGNED(head.n_namesz);

		at = note + ALIGNED(head.n_descsz);
		if (at > bytes)
			break;
		if (head.n_namesz == sizeof("CORE") && memcmp(from + note - ALIGNED(head.n_namesz), "CORE", 5) == 0)
			read_note(notes, head.n_type, from + note, head.n_descsz);
		else if (head.n_type == NT_ARM_TLS)
			read_note(notes, head.n_type, from + note, head.n_descsz);
	}
	free(from);
}

/* ---- mappings ---- */

ORDER_OF(compare, struct part, order_numbers(a->start, b->start))

ORDER_OF(compare_regions, struct memory_region, order_numbers(a->start, b->start))

/* Does the core have code of this file, or the head of an image? Then it is a library's, or the program's. */
static bool
is_library(struct core *core, const struct part *file)
{
	const struct part *end = core->files + core->file_count;
	const struct part *part = head_of(core, file);
	unsigned char magic[SELFMAG];
	bool is = part != NULL && from_segment(core, part->start, magic, SELFMAG) == SELFMAG &&
	          memcmp(magic, ELFMAG, SELFMAG) == 0;

	for (unsigned i = 0; part != NULL && !is && part < end && i < PARTS_MAX && strcmp(part->path, file->path) == 0;
	     i++, part++) {
		const struct part *segment = part_at(core->segments, core->segment_count, part->start);

		is = segment != NULL && (segment->fd & PF_X) != 0;
	}
	return is;
}

/* A core does not say whether a mapping is shared. A writable mapping of a library's file is private. */
static bool
is_shared(struct core *core, const struct part *file)
{
	return strstr(file->path, ".kmem") != NULL || text_starts(file->path, "/dev/") ||
	       text_starts(file->path, "/memfd:") || text_starts(file->path, "/SYSV") || !is_library(core, file);
}

static void
add_region(struct core *core, struct process_memory *memory, const struct memory_region *of)
{
	struct part *file = part_at(core->files, core->file_count, of->start);

	struct memory_region *region = MEMORY_NEXT(memory->regions, memory->region_count);

	*region = *of;
	region->path = file != NULL ? file->path : "";
	region->offset = file != NULL ? file->offset + (of->start - file->start) : 0;
	region->is_shared = file != NULL && of->is_writable && is_shared(core, file);
}

static void
read_segments(struct core *core, const Elf64_Ehdr *head, struct process_memory *memory, struct notes *notes)
{

	for (unsigned i = 0; i < head->e_phnum; i++) {
		Elf64_Phdr part;

		if (!read_at(core, head->e_phoff + i * sizeof(part), &part, sizeof(part)))
			break;
		if (part.p_type == PT_NOTE)
			read_notes(notes, part.p_offset, part.p_filesz);
		if (part.p_type != PT_LOAD || part.p_memsz == 0 || part.p_vaddr + part.p_memsz < part.p_vaddr)
			continue;
		*MEMORY_NEXT(core->segments, core->segment_count) = (struct part){ .start = part.p_vaddr,
			                                                               .end = part.p_vaddr + part.p_memsz,
			                                                               .offset = part.p_offset,
			                                                               .bytes = part.p_filesz,
			                                                               .fd = (int)part.p_flags };
	}
	SORT(core->segments, core->segment_count, compare);
	SORT(core->files, core->file_count, compare);
	for (size_t i = 1; i < core->segment_count; i++) {
		if (core->segments[i].start < core->segments[i - 1].end)
			return; // no process has two things at one address
	}
	for (size_t i = 0; i < core->segment_count; i++) {
		const struct part *segment = &core->segments[i];

		add_region(core, memory,
		           &(struct memory_region){ .start = segment->start,
		                                    .end = segment->end,
		                                    .is_readable = (segment->fd & PF_R) != 0,
		                                    .is_writable = (segment->fd & PF_W) != 0,
		                                    .is_executable = (segment->fd & PF_X) != 0 });
	}
	for (size_t i = 0; i < core->file_count; i++) { // that were left out as a whole
		if (part_at(core->segments, core->segment_count, core->files[i].start) == NULL)
			add_region(core, memory,
			           &(struct memory_region){
						   .start = core->files[i].start, .end = core->files[i].end, .is_readable = true });
	}
	SORT(memory->regions, memory->region_count, compare_regions);
}

bool
core_file_open(const char *command, const char *path, struct process_memory *memory, struct stopped_process *process,
               struct fail *fail)
{
	struct core *core = memory_zeroed(1, sizeof(*core));
	struct notes notes = { .core = core, .process = process };
	Elf64_Ehdr head;
	int error;

	core->fd = regular_file_open(path, O_RDONLY, NULL);
	error = errno;
	*process = (struct stopped_process){ .is_image = true, .since_ns = clock_monotonic_ns() };
	*memory = (struct process_memory){ .fetch = fetch, .context = core };
	if (core->fd >= 0 && read_at(core, 0, &head, sizeof(head)) && memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 &&
	    head.e_ident[EI_CLASS] == ELFCLASS64 && head.e_type == ET_CORE && head.e_machine == MACHINE_ELF)
		read_segments(core, &head, memory, &notes);
	if (memory->region_count != 0 && process->count != 0)
		return true;
	bool is_open = core->fd >= 0;

	stopped_process_free(process);
	core_file_close(memory);
	if (!is_open)
		return fail_set(fail, EXIT_USAGE, "%s: --core %s: %s", command, path, regular_file_why(error));
	return fail_set(fail, EXIT_USAGE, "%s: --core %s: this is no core of a process of this processor", command, path);
}

void
core_file_close(struct process_memory *memory)
{
	struct core *core = memory->fetch == fetch ? memory->context : NULL;

	if (core == NULL)
		return;
	for (size_t i = 0; i < core->file_count; i++) {
		regular_file_close(&core->files[i].fd);
		free((void *)(uintptr_t)core->files[i].path);
	}
	regular_file_close(&core->fd);
	free(core->segments);
	free(core->files);
	free(core);
	free(memory->regions);
	memory->fetch = NULL;
	process_memory_close(memory);
}
