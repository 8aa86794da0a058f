/*
 * capture_reader.c - can this file be trusted, and what are its parts (see capture_reader.h)?
 *
 * Order of reading, so that a program that still writes gives figures that fit together: head; all sites twice, where
 * released counters are taken from the first copy and requested ones from the second, because a block may be requested in one
 * record and released in any other; then the head again, whose lists and directory lead to everything those sites can name
 * (F1); then the other sections. A program that closes its capture meanwhile makes us begin again.
 *
 * When failing  one line in `fail`; nothing is kept.
 */
#include "capture/capture_reader.h"

#include <errno.h>
#include <stdalign.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/owner.h"
#include "base/regular_file.h"
#include "base/text_clean.h"
#include "capture/capture_copy.h"
#include "capture/capture_head.h"
#include "capture/capture_memory.h"
#include "kmem_words.h"

#define ATTEMPTS_MAX 4 // a capture that is being closed settles within milliseconds
#define ATTEMPT_PAUSE_NS 5000000
#define SITES_PER_CHUNK (KMEM_CHUNK_BYTES / sizeof(struct kmem_site))

static void
clean_field(char *field, size_t room)
{
	size_t length = strnlen(field, room - 1);

	memset(field + length, 0, room - length);
	text_clean(field, length);
}

static void
clean_identity(struct kmem_identity *identity)
{
	clean_field(identity->boot_id, sizeof(identity->boot_id));
	clean_field(identity->session, sizeof(identity->session));
	clean_field(identity->tool_version, sizeof(identity->tool_version));
	clean_field(identity->executable, sizeof(identity->executable));
	clean_field(identity->directory, sizeof(identity->directory));
	clean_field(identity->cgroup_path, sizeof(identity->cgroup_path));
	clean_field(identity->limit_path, sizeof(identity->limit_path));

	/* Arguments are separated by zeros, and the last one is terminated. They stay as they are: shell_words.c quotes them. */
	if (identity->command_bytes > KMEM_COMMAND_BYTES)
		identity->command_bytes = KMEM_COMMAND_BYTES;
	identity->command[identity->command_bytes == 0 ? 0 : identity->command_bytes - 1] = '\0';
}

static int
open_regular(const char *path, uid_t *owner, struct fail *fail)
{
	struct stat status = { .st_uid = 0 };
	char place[PATH_MAX];
	int fd = regular_file_open(path, O_RDONLY, &status);
	bool is_missing = errno == ENOENT || errno == ENOTDIR;
	bool is_lost = fd < 0 && is_missing && capture_memory_place(path, place);

	if (fd < 0 && is_missing && !is_lost) // the launcher may have put it there just now
		fd = regular_file_open(path, O_RDONLY, &status);

	*owner = status.st_uid;
	if (fd >= 0)
		return fd;
	if (errno == EINVAL || errno == EISDIR)
		fail_set(fail, EXIT_CAPTURE, "%s: is not a regular file: give a .kmem file or a folder of them", path);
	else if (is_lost)
		fail_set(
			fail, EXIT_CAPTURE,
			"%s: it lay in memory (%s), and that is gone: the machine was started anew, or the container ended, before "
			"kmemshim run could copy it",
			path, place);
	else
		fail_set(fail, is_missing ? EXIT_USAGE : EXIT_CAPTURE, "%s: cannot read it (%s)%s", path, strerror(errno),
		         errno == EACCES ? ": run this as the user who recorded it" : "");
	return -1;
}

/* Bytes read; what is missing at the end stays as it was. */
static size_t
read_at(int fd, void *buffer, size_t bytes, uint64_t offset)
{
	size_t done = 0;

	while (done < bytes) {
		ssize_t got = pread(fd, (char *)buffer + done, bytes - done, (off_t)(offset + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		done += (size_t)got;
	}
	return done;
}

static bool
check_chunk(struct capture *capture, uint32_t chunk, enum kmem_section section, const void *bytes, struct fail *fail)
{
	const struct kmem_chunk *entry = &capture_head_directory(capture)[chunk];
	uint32_t wanted = COPY_OF(entry->checksum);
	char text[256];

	if (section == KMEM_SECTION_HOLDERS) // the launcher's: capture_holders.c checks it
		return true;
	if (COPY_OF(entry->is_sealed) == 0) {
		if (capture->was_closed)
			capture_damaged(capture, "section \"%s\": the checksum of chunk %u is missing",
			                capture_section_names[section], chunk);
		return true;
	}

	uint32_t found = kmem_checksum(KMEM_CHECKSUM_START, bytes, KMEM_CHUNK_BYTES);

	if (found == wanted && COPY_OF(entry->is_sealed) == 1)
		return true;
	(void)snprintf(
		text, sizeof(text),
		"section \"%s\": chunk %u at byte %" PRIu64 ": checksum wanted 0x%08x, found 0x%08x: the file is damaged",
		capture_section_names[section], chunk, KMEM_HEAD_BYTES + (uint64_t)chunk * KMEM_CHUNK_BYTES, wanted, found);

	/* Counters have no checksum of their own; records have, and each is checked before use. */
	if (section != KMEM_SECTION_RECORDS)
		return capture_refuse(capture, fail, "%s", text);
	capture_damaged(capture, "%s", text);
	return true;
}

/* What the file has of a chunk: all of it, or less where it was cut. The rest stays as it was. */
static size_t
chunk_bytes(const struct capture *capture, uint64_t offset)
{
	uint64_t left = capture->file_bytes > offset ? capture->file_bytes - offset : 0;

	return left < KMEM_CHUNK_BYTES ? (size_t)left : KMEM_CHUNK_BYTES;
}

/* What was released from one site. */
struct released {
	uint64_t bytes;
	uint64_t count;
};

/* Of every site before any of them is read again: what was released by then was requested before. Missing sites: nothing. */
static struct released *
read_released(const struct capture *capture, int fd, uint32_t count, uint64_t chunks)
{
	struct released *released = memory_zeroed(chunks * SITES_PER_CHUNK, sizeof(*released));
	OWNED struct kmem_site *sites = memory_zeroed(SITES_PER_CHUNK, sizeof(*sites));
	size_t done = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint64_t offset = KMEM_HEAD_BYTES + (uint64_t)i * KMEM_CHUNK_BYTES;

		if (capture_head_directory(capture)[i].section != KMEM_SECTION_SITES)
			continue;

		size_t bytes = read_at(fd, sites, chunk_bytes(capture, offset), offset);

		for (size_t k = 0; k < bytes / sizeof(*sites); k++)
			released[done + k] = (struct released){ COPY_OF(sites[k].freed_bytes), COPY_OF(sites[k].freed_count) };
		done += SITES_PER_CHUNK;
	}
	return released;
}

static void
keep_released(struct capture *capture, const struct released *released)
{
	const struct capture_section *into = &capture->sections[KMEM_SECTION_SITES];
	struct kmem_site *sites = (struct kmem_site *)(void *)into->bytes;

	for (size_t i = 0; i < into->size_bytes / sizeof(*sites); i++) {
		if (COPY_OF(sites[i].freed_bytes) != released[i].bytes || COPY_OF(sites[i].freed_count) != released[i].count)
			capture->is_still = false;
		atomic_store_explicit(&sites[i].freed_bytes, released[i].bytes, memory_order_relaxed);
		atomic_store_explicit(&sites[i].freed_count, released[i].count, memory_order_relaxed);
	}
}

static bool
read_section(struct capture *capture, int fd, enum kmem_section section, uint32_t count, struct fail *fail)
{
	const struct kmem_chunk *directory = capture_head_directory(capture);
	struct capture_section *into = &capture->sections[section];
	OWNED struct released *released = NULL;
	uint64_t chunks = 0;
	uint64_t used = COPY_OF(capture->header->used_bytes[section]);
	bool is_good = true;

	for (uint32_t i = 0; i < count; i++) // those behind a cut have nothing, and take no memory
		chunks += directory[i].section == section &&
		          chunk_bytes(capture, KMEM_HEAD_BYTES + (uint64_t)i * KMEM_CHUNK_BYTES) != 0;
	into->bytes = aligned_alloc(64, (chunks + 1) * KMEM_CHUNK_BYTES);
	if (into->bytes == NULL)
		return fail_set(fail, EXIT_CAPTURE,
		                "%s: not enough memory for %" PRIu64 " bytes: run the report on a larger machine",
		                capture->path, chunks * KMEM_CHUNK_BYTES);
	memset(into->bytes, 0, (chunks + 1) * KMEM_CHUNK_BYTES);
	if (section == KMEM_SECTION_SITES && !capture_head_is_closed(capture))
		released = read_released(capture, fd, count, chunks);
	for (uint32_t i = 0; i < count && is_good; i++) {
		unsigned char *at = into->bytes + into->size_bytes;
		uint64_t offset = KMEM_HEAD_BYTES + (uint64_t)i * KMEM_CHUNK_BYTES;
		size_t bytes = chunk_bytes(capture, offset);

		if (directory[i].section != section)
			continue;
		into->is_cut = into->is_cut || bytes != KMEM_CHUNK_BYTES;
		if (bytes == 0)
			continue;
		if (read_at(fd, at, bytes, offset) != bytes)
			is_good = capture_refuse(capture, fail, "the file became shorter while it was read");
		if (bytes == KMEM_CHUNK_BYTES)
			is_good = is_good && check_chunk(capture, i, section, at, fail);
		into->size_bytes += KMEM_CHUNK_BYTES;
	}

	/*
	 * A recorder that could not grow counted on without the room. Sites of an open capture need no limit: unused ones are
	 * empty, and a new one may be that of blocks whose release was counted. Nor do records: their indexes are bounded by
	 * the section, their contents by checksums.
	 */
	if (released != NULL)
		keep_released(capture, released);
	else if (section != KMEM_SECTION_RECORDS && used < into->size_bytes)
		into->size_bytes = used;
	return is_good;
}

static void
forget_contents(struct capture *capture)
{
	for (unsigned i = 0; i < KMEM_SECTION_COUNT; i++) {
		free(capture->sections[i].bytes);
		capture->sections[i] = (struct capture_section){ 0 };
	}
	for (size_t i = 0; i < capture->damage_count; i++)
		free(capture->damages[i]);
	free(capture->heartbeats);
	free(capture->marks);
	free(capture->stack_marks);
	free(capture->released_bytes);
	capture->heartbeats = NULL;
	capture->marks = NULL;
	capture->mark_count = 0;
	capture->stack_marks = NULL;
	capture->released_bytes = NULL;
	capture->heartbeat_count = 0;
	capture->damage_count = 0;
	capture->damages_unsaid = 0;
	capture->was_closed = false;
	capture->is_still = true;
}

/* After the head was read: what its directory names was allocated before (F2). */
static bool
take_size(struct capture *capture, int fd, struct fail *fail)
{
	struct stat status;

	if (fstat(fd, &status) != 0)
		return fail_set(fail, EXIT_CAPTURE, "%s: cannot read it (%s)", capture->path, strerror(errno));
	capture->file_bytes = (uint64_t)status.st_size;
	return true;
}

/* One pass over the file. *wants_again: the program closed its capture meanwhile. */
static bool
read_whole(struct capture *capture, int fd, bool is_last_attempt, bool *wants_again, struct fail *fail)
{
	const size_t rows_bytes = KMEM_DOMAINS_MAX * sizeof(struct kmem_domain_row);
	unsigned char *before = aligned_alloc(alignof(struct kmem_timeline), KMEM_HEAD_BYTES);
	uint32_t count;
	bool is_good, is_done;

	*wants_again = false;
	memset(capture->head, 0, KMEM_HEAD_BYTES);
	is_good = before != NULL && capture_head_check_fixed(capture, read_at(fd, capture->head, KMEM_HEAD_BYTES, 0), fail);
	capture->state = COPY_OF(capture->header->state);
	if (is_good && capture_head_is_closed(capture))
		is_good = capture_head_check_closed(capture, is_last_attempt, wants_again, fail);
	if (!is_good || *wants_again) {
		free(before);
		return is_good;
	}

	is_good = take_size(capture, fd, fail) && capture_head_chunks(capture, &count, fail) &&
	          read_section(capture, fd, KMEM_SECTION_SITES, count, fail);
	memcpy(before, capture->head, KMEM_HEAD_BYTES);
	if (is_good && !capture_head_is_closed(capture)) {
		/* Texts and peaks of domains stay those of the first reading. */
		if (read_at(fd, capture->head, KMEM_HEAD_BYTES, 0) != KMEM_HEAD_BYTES)
			is_good = fail_set(fail, EXIT_CAPTURE, "%s: the file became shorter while it was read: copy it again",
			                   capture->path);
		is_done = COPY_OF(capture->header->state) == KMEM_STATE_CLEAN_EXIT;
		*wants_again = is_done && !is_last_attempt;
		is_good = is_good && (is_done || capture_head_check_open(capture, before, fail));
		if (memcmp(capture->head, before, KMEM_HEARTBEATS_OFFSET) != 0)
			capture->is_still = false;
		memcpy(capture->head + KMEM_DOMAINS_OFFSET, before + KMEM_DOMAINS_OFFSET, rows_bytes);
		if (is_good && !*wants_again && capture->damage_count == 0)
			is_good = take_size(capture, fd, fail) && capture_head_chunks(capture, &count, fail);
	}
	if (is_good && !*wants_again) {
		is_good = read_section(capture, fd, KMEM_SECTION_GENERATIONS, count, fail) &&
		          read_section(capture, fd, KMEM_SECTION_RECORDS, count, fail) &&
		          read_section(capture, fd, KMEM_SECTION_HOLDERS, count, fail);
		capture_head_settle(capture, before);
	}
	free(before);
	return is_good;
}

static struct capture *
capture_new(const char *path, bool is_salvage)
{
	struct capture *capture = memory_zeroed(1, sizeof(*capture));

	capture->path = text_cleaned(memory_text(path));

	const char *slash = strrchr(capture->path, '/');

	capture->name = slash != NULL ? slash + 1 : capture->path;
	capture->is_salvage = is_salvage;
	capture->damages = memory_zeroed(CAPTURE_DAMAGES_MAX, sizeof(char *));
	capture->identity = memory_zeroed(1, sizeof(*capture->identity));
	capture->head = aligned_alloc(alignof(struct kmem_timeline), KMEM_HEAD_BYTES);
	if (capture->head == NULL) {
		capture_close(capture);
		return NULL;
	}
	memset(capture->head, 0, KMEM_HEAD_BYTES);
	capture->header = (const struct kmem_header *)(const void *)capture->head;
	return capture;
}

void
capture_close(struct capture *capture)
{
	if (capture == NULL)
		return;
	forget_contents(capture);
	free(capture->damages);
	free(capture->identity);
	free(capture->head);
	free(capture->path);
	free(capture);
}

/* A copy belongs to who copied it, and was recorded by another user all the same. */
static uid_t
origin_of(const struct kmem_identity *identity, uid_t owner)
{
	return owner_is_trusted(owner) ? identity->uid : owner;
}

bool
capture_open(const char *path, bool is_salvage, struct capture **out, struct fail *fail)
{
	bool wants_again = true;
	bool is_good = true;
	uid_t owner;
	OWNED_FILE int fd = open_regular(path, &owner, fail);

	if (fd < 0)
		return false;

	struct capture *capture = capture_new(path, is_salvage);

	if (capture == NULL) {
		return fail_set(fail, EXIT_CAPTURE, "%s: not enough memory for its head", path);
	}
	for (unsigned attempt = 1; is_good && wants_again; attempt++) {
		if (attempt > 1)
			(void)nanosleep(&(struct timespec){ .tv_nsec = ATTEMPT_PAUSE_NS }, NULL);
		forget_contents(capture);
		is_good = read_whole(capture, fd, attempt == ATTEMPTS_MAX, &wants_again, fail);
	}
	if (!is_good) {
		capture_close(capture);
		return false;
	}
	memcpy(capture->identity, &capture->header->identity, sizeof(*capture->identity));
	clean_identity(capture->identity);
	capture->owner = origin_of(capture->identity, owner);
	*out = capture;
	return true;
}

bool
capture_peek(const char *path, bool is_salvage, struct kmem_identity *identity, uid_t *owner, struct fail *fail)
{
	OWNED_FILE int fd = open_regular(path, owner, fail);

	if (fd < 0)
		return false;

	struct capture *capture = capture_new(path, is_salvage);
	bool is_good = capture != NULL
	                   ? capture_head_check_fixed(capture, read_at(fd, capture->head, KMEM_HEAD_BYTES, 0), fail)
	                   : fail_set(fail, EXIT_CAPTURE, "%s: not enough memory for its head", path);
	if (is_good) {
		memcpy(identity, &capture->header->identity, sizeof(*identity));
		clean_identity(identity);
		*owner = origin_of(identity, *owner);
	}
	capture_close(capture);
	return is_good;
}
