/*
 * capture.h - one .kmem file in memory, and what is damaged in it.
 *
 * capture_reader.h fills it.
 *
 * When full   after a few dozen damaged places further ones are only counted.
 */
#ifndef CAPTURE_H
#define CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/fail.h"
#include "kmem_format.h"

#define CAPTURE_DAMAGES_MAX 24 // lines kept

extern const char *const capture_section_names[KMEM_SECTION_COUNT];

struct capture_section {
	unsigned char *bytes;
	uint64_t size_bytes;
	bool is_cut; // the file ends before the section does: what is missing is 0
};

struct capture {
	char *path;
	const char *name; // base name of the path
	uid_t owner;      // of the file; where that one is trusted, who was recorded; see owner.h
	bool is_salvage;
	bool was_closed;     // cleanly, and every checksum is there
	uint64_t rewound_ns; // figures are those of this moment: of a mark, or of the guard; 0 = of the end
	bool is_rewound;     // to a mark: its figures are those of a program that ran
	bool is_still;       // nothing moved while it was read
	uint32_t state;      // enum kmem_state
	uint64_t file_bytes;
	unsigned char *head;              // KMEM_HEAD_BYTES
	const struct kmem_header *header; // in `head`
	struct kmem_identity *identity;   // a copy: texts terminated, printable UTF-8
	struct capture_section sections[KMEM_SECTION_COUNT];
	size_t sites_left_out;      // records that contradicted themselves, in salvage; now empty
	unsigned char *stack_marks; // capture_records.c: which stacks were checked; NULL until the first
	size_t heartbeat_count;
	struct kmem_heartbeat *heartbeats; // oldest first
	size_t mark_count;
	struct kmem_mark *marks; // copies of those that are whole, oldest first (capture_marks.h)
	// of each record since the program began to exit, less what it allocated; NULL: all is of its very end
	int64_t *released_bytes;
	uint64_t after_exit_bytes; // what was allocated since then in all, about
	size_t damage_count;       // lines kept
	size_t under_way_count;    // of these, where a request that was in progress at the end explains it
	char **damages;
	uint64_t damages_unsaid; // further ones
};

/* Adds a line to `damages`; beyond a few dozen they are only counted. */
void capture_damaged(struct capture *capture, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Refuses the capture; in salvage adds a line to `damages` instead and returns true. */
bool capture_refuse(struct capture *capture, struct fail *fail, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
