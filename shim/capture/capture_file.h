/*
 * capture_file.h - the growing, preallocated, mapped .kmem file of this process.
 *
 * Safe from   append and the accessors: any hook; no allocation; growth makes system calls and is done by
 *             one thread while the others use the room that is left.
 * When failing  no disk, no room, no permission: one message, and the same structure continues in private
 *             memory with nothing kept (the program is never disturbed), or the section stops growing
 *             (KMEM_LOST_GROWTH).
 */
#ifndef CAPTURE_FILE_H
#define CAPTURE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kmem_format.h"

/* Header of the open capture; never NULL: before the start and after a failure it is a private stand-in. */
struct kmem_header *capture_file_header(void);
struct kmem_domain_row *capture_file_domain(unsigned domain);
struct kmem_heartbeat *capture_file_heartbeats(void);

/* Two, beside resident[0] and [1] of the header. */
static inline struct kmem_resident_lines *
capture_file_resident_lines(void)
{
	return (struct kmem_resident_lines *)(void *)((char *)capture_file_header() + KMEM_RESIDENT_LINES_OFFSET);
}

static inline struct kmem_timeline *
capture_file_timeline(void)
{
	return (struct kmem_timeline *)(void *)((char *)capture_file_header() + KMEM_TIMELINE_OFFSET);
}

/*
 * Room for `bytes` at the end of a section, aligned to 8 bytes (SITES and GENERATIONS: their record size).
 *
 * spare_bytes of what the section has stay free behind it
 * index       out: position in the section in units of 8 bytes (records), or the record's number (SITES,
 *             GENERATIONS)
 * returns     zeroed memory in the capture, or NULL when the section is full or cannot grow
 */
void *capture_file_append_sparing(enum kmem_section section, size_t bytes, size_t spare_bytes, uint32_t *index);

/* The same for what is as usual: so much is kept for records that stand for others, when the section cannot grow any more. */
#define CAPTURE_FILE_SPARE_BYTES ((size_t)16384)
static inline void *
capture_file_append(enum kmem_section section, size_t bytes, uint32_t *index)
{
	return capture_file_append_sparing(section, bytes, CAPTURE_FILE_SPARE_BYTES, index);
}

/* Address of what capture_file_append() gave this index; the index must be one it gave. */
void *capture_file_at(enum kmem_section section, uint32_t index);

/*
 * What a word in the file leads to: index + 1. After capture_file_abandon() all words are 0, also between two looks at one of them, for
 * what is under way in other threads: that leads to zeros in front of the section.
 */
void *capture_file_item(enum kmem_section section, uint32_t index_plus_one);

/* How many items (see `index`) a section has room for and were given out, finished or not. */
uint32_t capture_file_count(enum kmem_section section);

/* Is the capture as large as it may become (KMEMSHIM_CAPTURE_MAX), and `eighths` of that more? What can be told in fewer words is, then. */
bool capture_file_is_large(unsigned eighths);

/* Counts a loss. */
void capture_file_lost(enum kmem_loss loss, uint64_t count);

/*
 * Finishes a record: fills in checksum. To be called before the index is published (F1, F3). The mutable
 * fields must still be 0.
 */
void capture_file_seal_record(struct kmem_record *record);

/*
 * Puts a complete record at the head of a list in the header, sealed. The list descends: each record stands behind the one
 * it leads to, so that a reader can tell a loop. The record may be copied for that: returns the index that counts.
 */
uint32_t capture_file_link(_Atomic uint64_t *list, uint32_t index);

/* What each domain of memory is called. Once for each capture. */
void capture_file_name_domains(void);

/* Stores one line of text for the report. */
void capture_file_note(const char *text);

#endif
