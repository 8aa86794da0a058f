/*
 * capture_head.c - is the head of a capture sound (see capture_head.h)?
 *
 * A word that is stored twice, or beside its checksum, and does not agree with itself is taken as missing. In a file that a
 * program still writes it may be half written: then an earlier reading has another one, and nothing is said.
 */
#include "capture/capture_head.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/items.h"
#include "base/memory.h"
#include "base/order.h"
#include "capture/capture_copy.h"
#include "capture/capture_marks.h"
#include "kmem_words.h"

#define SALVAGE_HINT "--salvage reads what is intact"

#define FORGET(field) atomic_store_explicit(&(field), 0, memory_order_relaxed)

bool
capture_head_check_fixed(struct capture *capture, size_t bytes, struct fail *fail)
{
	static const char zeros[sizeof(KMEM_MAGIC) - 1];
	const struct kmem_header *header = capture->header;
	const char *path = capture->path;
	size_t magic_bytes = sizeof(header->magic);

	if (bytes == 0)
		return fail_set(fail, EXIT_CAPTURE,
		                "%s: is empty: the disk was full, or the program died before recording began: record it again",
		                path);
	if (bytes >= magic_bytes && memcmp(header->magic, zeros, magic_bytes) == 0)
		return fail_set(fail, EXIT_CAPTURE,
		                "%s: has no head yet: the program died at its very start, or is still there: record it again",
		                path);
	if (bytes < magic_bytes || memcmp(header->magic, KMEM_MAGIC, magic_bytes) != 0)
		return fail_set(fail, EXIT_CAPTURE,
		                "%s: is not a kmemshim capture (it does not begin with \"%s\"): give a .kmem file", path,
		                KMEM_MAGIC);
	if (bytes < offsetof(struct kmem_header, head_bytes))
		return fail_set(fail, EXIT_CAPTURE,
		                "%s: section \"head\" needs %u bytes, the file ends at %zu: nothing can be read: copy it again",
		                path, KMEM_HEAD_BYTES, bytes);
	if (header->endian == __builtin_bswap32(KMEM_ENDIAN))
		return fail_set(fail, EXIT_CAPTURE,
		                "%s: was recorded on a machine with the other byte order: run the report there", path);
	if (header->endian != KMEM_ENDIAN)
		return fail_set(
			fail, EXIT_CAPTURE,
			"%s: section \"head\": byte order mark wanted 0x%08x, found 0x%08x: the file is damaged: copy it again",
			path, KMEM_ENDIAN, header->endian);
	if (!kmem_version_is_read(header->version))
		return fail_set(
			fail, EXIT_CAPTURE, "%s: was written by %s kmemshim (format %u, this one reads %u to %u): read it with %s",
			path, header->version > KMEM_VERSION ? "a newer" : "an older", header->version, KMEM_VERSION_OLDEST,
			KMEM_VERSION, header->version > KMEM_VERSION ? "a newer kmemshim" : "the kmemshim that recorded it");
	if (bytes < KMEM_HEAD_BYTES)
		return fail_set(
			fail, EXIT_CAPTURE,
			"%s: section \"head\" needs %u bytes, the file ends at %zu: the capture is truncated and nothing can be read: copy it again",
			path, KMEM_HEAD_BYTES, bytes);
	if (header->head_bytes != KMEM_HEAD_BYTES || header->chunk_bytes != KMEM_CHUNK_BYTES ||
	    header->identity_bytes != sizeof(struct kmem_identity))
		return fail_set(
			fail, EXIT_CAPTURE,
			"%s: section \"head\": sizes wanted %u/%u/%zu, found %u/%u/%u: the file is damaged: copy it again", path,
			KMEM_HEAD_BYTES, KMEM_CHUNK_BYTES, sizeof(struct kmem_identity), header->head_bytes, header->chunk_bytes,
			header->identity_bytes);

	uint32_t wanted = COPY_OF(header->identity_checksum);
	uint32_t found = kmem_identity_checksum(header);

	if (wanted == found)
		return true;
	if (wanted == 0)
		return fail_set(fail, EXIT_CAPTURE,
		                "%s: the program died at its very start, or is still there: nothing was recorded", path);
	return capture_refuse(capture, fail,
	                      "section \"identity\": checksum wanted 0x%08x, found 0x%08x: the file is damaged", wanted,
	                      found);
}

bool
capture_head_is_closed(const struct capture *capture)
{
	return capture->state == KMEM_STATE_CLEAN_EXIT;
}

const struct kmem_chunk *
capture_head_directory(const struct capture *capture)
{
	return (const struct kmem_chunk *)(const void *)(capture->head + KMEM_DIRECTORY_OFFSET);
}

static bool
is_any_chunk_sealed(const unsigned char *head)
{
	const struct kmem_chunk *directory = (const struct kmem_chunk *)(const void *)(head + KMEM_DIRECTORY_OFFSET);

	return ANY(chunk, directory, KMEM_CHUNKS_MAX, COPY_OF(chunk->is_sealed) != 0);
}

/*
 * Chunks are sealed before the head. Where none is, there was no way to close the capture (the program confined itself, or its address
 * space was spent): that of a program that was killed has no seal either, and is as good.
 */
bool
capture_head_check_closed(struct capture *capture, bool is_last_attempt, bool *wants_again, struct fail *fail)
{
	uint32_t wanted = COPY_OF(capture->header->head_checksum);
	uint32_t found = kmem_head_checksum(capture->head);

	capture->was_closed = wanted == found;
	*wants_again = !capture->was_closed && !is_last_attempt;
	if (capture->was_closed || *wants_again)
		return true;
	if (wanted == 0) { // F5 is stored last: what was sealed before is checked all the same
		if (is_any_chunk_sealed(capture->head))
			capture_damaged(
				capture,
				"section \"head\": the program was stopped while it closed the capture: the checksum is missing");
		return true;
	}
	return capture_refuse(capture, fail, "section \"head\": checksum wanted 0x%08x, found 0x%08x: the file is damaged",
	                      wanted, found);
}

bool
capture_head_check_open(struct capture *capture, const unsigned char *before, struct fail *fail)
{
	if (!is_any_chunk_sealed(before))
		return true;
	return capture_refuse(
		capture, fail,
		"section \"head\": state 0x%08x, but chunks have checksums, which they get when a capture is closed: the file is damaged",
		COPY_OF(capture->header->state));
}

static bool
is_entry(const struct kmem_chunk *entry)
{
	return entry->section != KMEM_SECTION_NONE && entry->section < KMEM_SECTION_COUNT &&
	       entry->section + entry->inverted == UINT8_MAX;
}

/*
 * Entries say of themselves that they are there: chunk_count only repeats that. Those behind it are of a growth in which the program
 * died, and nothing is in their chunks.
 */
bool
capture_head_chunks(struct capture *capture, uint32_t *chunk_count, struct fail *fail)
{
	const struct kmem_chunk *directory = capture_head_directory(capture);
	uint32_t wanted = COPY_OF(capture->header->chunk_count);
	uint32_t count = KMEM_CHUNKS_MAX;
	uint64_t end = KMEM_HEAD_BYTES;

	while (count > 0 && !is_entry(&directory[count - 1]))
		count--;
	*chunk_count = count;
	if (wanted > count &&
	    !capture_refuse(capture, fail,
	                    "section \"directory\": wanted %u chunks, the last entry is for chunk %d: the file is damaged",
	                    wanted, (int)count - 1))
		return false;
	for (uint32_t i = 0; i < count; i++, end += KMEM_CHUNK_BYTES) {
		if (!is_entry(&directory[i])) {
			if (!capture_refuse(
					capture, fail,
					"section \"directory\": chunk %u names section %u and section %u, wanted the same one of 1 to %d: the file is damaged",
					i, directory[i].section, directory[i].inverted ^ 0xffu, KMEM_SECTION_COUNT - 1))
				return false;
		} else if (capture->file_bytes < end + KMEM_CHUNK_BYTES) {
			return capture_refuse(capture, fail,
			                      "section \"%s\": chunk %u at byte %" PRIu64
			                      " needs %u bytes, the file ends at %" PRIu64 ": the capture is truncated",
			                      capture_section_names[directory[i].section], i, end, KMEM_CHUNK_BYTES,
			                      capture->file_bytes);
		}
	}
	return true;
}

/* ---- words and rings ---- */

static void
settle_twice(struct capture *capture, _Atomic uint64_t *word, const char *what)
{
	if (kmem_twice_agrees(COPY_OF(*word)))
		return;
	capture_damaged(capture, "section \"head\": %s differs from its copy (0x%016" PRIx64 "): it is treated as unknown",
	                what, COPY_OF(*word));
	FORGET(*word);
}

static void
check_flag(struct capture *capture, uint32_t flag, const char *what)
{
	if (flag != 0 && flag != KMEM_YES)
		capture_damaged(capture, "section \"head\": the flag for %s is not valid (0x%08x)", what, flag);
}

static void
settle_state(struct capture *capture, struct kmem_header *header)
{
	if (capture->state != KMEM_STATE_STARTING && capture->state != KMEM_STATE_RUNNING &&
	    capture->state != KMEM_STATE_CLEAN_EXIT && capture->state != KMEM_STATE_EXEC_REPLACED) {
		capture_damaged(capture, "section \"head\": state 0x%08x is not valid: how the program ended is unknown",
		                capture->state);
		capture->state = KMEM_STATE_RUNNING;
	}
	check_flag(capture, COPY_OF(header->is_finalizing), "the end of Python");
	check_flag(capture, COPY_OF(header->devices_are_hip), "HIP devices");
	check_flag(capture, COPY_OF(header->has_expandable_segments), "expandable segments");
}

static void
settle_domains(struct capture *capture)
{
	struct kmem_domain_row *rows = (struct kmem_domain_row *)(void *)(capture->head + KMEM_DOMAINS_OFFSET);

	for (unsigned i = 0; i < KMEM_DOMAINS_MAX; i++) {
		uint64_t is_used = COPY_OF(rows[i].is_used);

		if (is_used == 0 || is_used == KMEM_YES)
			continue;
		capture_damaged(capture, "section \"domains\": the flag \"in use\" of domain %u is not valid", i);
		FORGET(rows[i].is_used);
	}
}

static void
settle_failed(struct capture *capture, struct kmem_header *header, const struct kmem_header *before)
{
	for (unsigned i = 0; i < KMEM_FAILED_MAX; i++) {
		struct kmem_failed *failed = &header->failed[i];
		uint64_t sequence = COPY_OF(failed->sequence);
		uint32_t checksum = COPY_OF(failed->checksum);
		uint32_t outcome = COPY_OF(failed->outcome);

		if (outcome != KMEM_FAILED_OPEN && outcome != KMEM_FAILED_GOT_LESS && outcome != KMEM_FAILED_GOT_ENOUGH) {
			capture_damaged(capture, "section \"head\": the outcome of refused request %u is not valid (0x%08x)", i,
			                outcome);
			FORGET(failed->outcome);
		}
		if (checksum == kmem_failed_checksum(failed, sequence))
			continue;
		/* Without a checksum: none was, or the program died while it wrote it. */
		if (checksum != 0 && memcmp(failed, &before->failed[i], sizeof(*failed)) == 0)
			capture_damaged(capture, "section \"head\": the checksum of refused request %u is wrong: left out", i);
		FORGET(failed->sequence);
	}
}

static void
settle_object_census(struct capture *capture, struct kmem_header *header, const struct kmem_header *before)
{
	const size_t start = offsetof(struct kmem_header, object_count_total);
	const size_t bytes = offsetof(struct kmem_header, object_count_checksum) + sizeof(header->object_count_checksum) -
	                     start;
	uint64_t twice = COPY_OF(header->object_count_total);
	uint32_t count = (uint32_t)twice;

	if (twice == 0) // none, or the program died while it wrote them; one damaged byte does not make it 0
		return;
	if (kmem_twice_agrees(twice) && count <= KMEM_OBJECT_CENSUS_MAX &&
	    header->object_count_checksum ==
	        kmem_checksum(KMEM_CHECKSUM_START, header->object_census, count * sizeof(header->object_census[0])))
		return;
	if (memcmp((const char *)header + start, (const char *)before + start, bytes) == 0)
		capture_damaged(capture, "section \"head\": the checksum of the object counts is wrong: left out");
	FORGET(header->object_count_total);
}

/* Without a checksum: none was, or the program died while it wrote them. */
static void
settle_resident_lines(struct capture *capture, const unsigned char *before)
{
	struct kmem_resident_lines *now = (struct kmem_resident_lines *)(void *)(capture->head +
	                                                                         KMEM_RESIDENT_LINES_OFFSET);
	const struct kmem_resident_lines
		*earlier = (const struct kmem_resident_lines *)(const void *)(before + KMEM_RESIDENT_LINES_OFFSET);

	for (unsigned i = 0; i < 2; i++) {
		uint32_t checksum = COPY_OF(now[i].checksum);

		if (checksum == 0 || checksum == kmem_resident_lines_checksum(&now[i]))
			continue;
		if (memcmp(&now[i], &earlier[i], sizeof(now[i])) == 0)
			capture_damaged(capture,
			                "section \"head\": the checksum of the lines' resident bytes (%u) is wrong: left out", i);
		FORGET(now[i].checksum);
	}
}

ORDER_OF(compare_heartbeats, struct kmem_heartbeat, order_numbers(COPY_OF(a->sequence), COPY_OF(b->sequence)))

/*
 * Those that were not being written between `before` and now. Without a checksum: none was, or the program died while it wrote it.
 */
static void
take_heartbeats(struct capture *capture, const unsigned char *before)
{
	const struct kmem_heartbeat *ring = (const struct kmem_heartbeat *)(const void *)(before + KMEM_HEARTBEATS_OFFSET);
	const struct kmem_heartbeat *later = (const struct kmem_heartbeat *)(const void *)(capture->head +
	                                                                                   KMEM_HEARTBEATS_OFFSET);
	const struct kmem_header *earlier = (const struct kmem_header *)(const void *)before;

	capture->heartbeats = memory_zeroed(KMEM_HEARTBEATS_MAX, sizeof(struct kmem_heartbeat));
	for (unsigned i = 0; i < KMEM_HEARTBEATS_MAX; i++) {
		uint64_t sequence = COPY_OF(ring[i].sequence);
		uint32_t checksum = COPY_OF(earlier->heartbeat_checksums[i]);

		if (checksum == 0 || sequence != COPY_OF(later[i].sequence) ||
		    checksum != COPY_OF(capture->header->heartbeat_checksums[i]))
			continue;
		if (checksum != kmem_heartbeat_checksum(&ring[i], sequence)) {
			capture_damaged(capture, "section \"heartbeats\": the checksum of entry %u is wrong: left out", i);
			continue;
		}
		memcpy(&capture->heartbeats[capture->heartbeat_count++], &ring[i], sizeof(ring[i]));
	}
	SORT(capture->heartbeats, capture->heartbeat_count, compare_heartbeats);
}

void
capture_head_settle(struct capture *capture, const unsigned char *before)
{
	struct kmem_header *header = (struct kmem_header *)(void *)capture->head;
	const struct kmem_header *earlier = (const struct kmem_header *)(const void *)before;

	settle_state(capture, header);
	settle_twice(capture, &header->modules, "the list of modules");
	settle_twice(capture, &header->notes, "the list of notes");
	settle_twice(capture, &header->cells, "the list of cells");
	settle_twice(capture, &header->python_version, "the version of Python");
	settle_twice(capture, &header->python_sample_bytes, "how small objects were sampled");
	settle_twice(capture, &header->heap_sample_bytes, "how the heap was sampled");
	settle_twice(capture, &header->at_exit, "what was held at exit");
	settle_twice(capture, &header->guard, "what was held at the guard");
	settle_twice(capture, &((struct kmem_timeline *)(void *)(capture->head + KMEM_TIMELINE_OFFSET))->kept_peak,
	             "the peak of earlier phases");
	settle_domains(capture);
	settle_failed(capture, header, earlier);
	settle_object_census(capture, header, earlier);
	settle_resident_lines(capture, before);
	take_heartbeats(capture, before);
	capture_marks_settle(capture, before);
}
