/*
 * capture_reader.h - what does one .kmem file say?
 *
 * Reads a file into private memory with pread (never a mapping: it may be cut meanwhile) and validates it once. A capture
 * is hostile input: every size, index and text is checked before use, and memory stays below three times the file's size.
 *
 * Context     the program may still be writing: freed counters of all sites are taken before allocated ones,
 *             contents after the index that leads to them (F1).
 * When failing  capture_open() refuses what cannot be trusted as a whole; what is damaged in single places is kept out
 *             and told by one line in `damages`.
 */
#ifndef CAPTURE_READER_H
#define CAPTURE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/fail.h"
#include "capture/capture.h"
#include "kmem_format.h"

/*
 * Opens and validates one capture. On success *out is the caller's, for capture_close(). `is_salvage` turns refusals
 * about single sections into lines in `damages`.
 */
bool capture_open(const char *path, bool is_salvage, struct capture **out, struct fail *fail);
void capture_close(struct capture *capture);

/* Whose capture is it? Reads the head alone; the texts of *identity are cleaned. owner: out, of the file. */
bool capture_peek(const char *path, bool is_salvage, struct kmem_identity *identity, uid_t *owner, struct fail *fail);

size_t capture_site_count(const struct capture *capture);
const struct kmem_site *capture_site(const struct capture *capture, size_t index);
const struct kmem_domain_row *capture_domain(const struct capture *capture, unsigned domain);

/* The generation block of this site; NULL: it has none, or a damaged one. */
const struct kmem_generations *capture_generations(struct capture *capture, size_t site_index);
/* So many buckets has a block of the capture's version; the live blocks of one, from 0, modulo 2^32. */
unsigned capture_generation_buckets(const struct capture *capture);
uint32_t capture_generation_live(const struct capture *capture, const struct kmem_generations *block, unsigned bucket);

/*
 * Records. `index_plus_one` counts units of 8 bytes, as in struct kmem_site. False: out of bounds, of another type or
 * damaged, and a line in `damages` says so. `user` completes that line: "stack of site 12".
 */
struct capture_stack {
	uint32_t record_bytes; // its own share of the section
	uint16_t flags;        // enum kmem_stack_flags; KMEM_STACK_NO_END also where the chain is damaged
	uint32_t frame_count;
	uint32_t omitted;
	uint32_t omitted_at;
	uint32_t module_version;
	uint64_t frames[KMEM_STACK_FRAMES_MAX]; // whole: those that stand in other records are put in
};
bool capture_stack(struct capture *capture, uint32_t index_plus_one, const char *user, struct capture_stack *stack);

struct capture_code {
	uint16_t flags; // enum kmem_code_flags
	uint32_t first_line;
	uint32_t python_version; // 0x030b for 3.11
	const char *file;        // not terminated, not cleaned; lengths below
	const char *function;
	const uint8_t *line_table;
	uint32_t file_bytes;
	uint32_t function_bytes;
	uint32_t line_table_bytes;
};
bool capture_code(struct capture *capture, uint32_t index, struct capture_code *code);

struct capture_cell {
	uint32_t number;   // of In[]
	const char *typed; // not terminated, not cleaned
	uint32_t typed_bytes;
	const char *compiled;
	uint32_t compiled_bytes; // 0: as typed
	bool has_lines;          // the compiled text is known
};

struct capture_module {
	uint64_t start_addr;
	uint64_t end_addr;
	uint64_t load_bias;
	uint32_t loaded_version;
	uint32_t unloaded_version; // 0 = still loaded
	uint64_t file_size_bytes;
	uint64_t file_mtime_ns;
	const uint8_t *build_id;
	uint32_t build_id_bytes; // 0 = none
	const char *path;        // not terminated, not cleaned
	uint32_t path_bytes;
};

/*
 * The lists. Start with *next = capture_list(&header->modules) (or notes, cells); each call gives one entry and moves *next towards older ones.
 * False at the end, or where the list is damaged.
 */
uint32_t capture_list(const _Atomic uint64_t *list);
bool capture_next_module(struct capture *capture, uint32_t *next, struct capture_module *module);
bool capture_next_cell(struct capture *capture, uint32_t *next, struct capture_cell *cell);
bool capture_next_note(struct capture *capture, uint32_t *next, const char **text, uint32_t *text_bytes);

/*
 * What was held at another moment: a struct of this type, at the exit, at the guard, at a mark, at the peak of earlier phases, or by devices; its
 * contents are to be checked. NULL: nobody looked (0), or it cannot be read. is_written: the program may be writing it anew, so that it is no
 * damage when it does not fit.
 */
const void *capture_held_record(struct capture *capture, uint32_t index_plus_one, enum kmem_record_type type,
                                bool is_written);

/* What of each line was in memory at the look with this sequence; NULL: nobody asked, or it is damaged. */
const struct kmem_resident_lines *capture_resident_lines(const struct capture *capture, uint64_t sequence);

/* The name behind kmem_object_count.type; not terminated, not cleaned. False: it cannot be read. */
bool capture_type_name(struct capture *capture, uint32_t index_plus_one, const char **name, uint32_t *name_bytes);

/*
 * capture_exit.c: what did the program hold before its exit handlers ran? Once all of the capture was read. Sets what each record has released back to what it was when the program began to exit, with the counters by generation, the clock
 * and the volume; totals and peaks stay. Keeps in `capture` what was released since. Does nothing where the program did not end by
 * itself, or more was live at its very end: then it did its work in exit handlers. What
 * cannot be rewound stays as of the very end, and a line in `damages` says why.
 */
void capture_exit_rewind(struct capture *capture);

/*
 * capture_arenas.c: which part of Python's arenas is known by line? After capture_exit_rewind(). Where small objects of Python were sampled (domain python/object), takes them out of the arenas that they lie in: afterwards domain
 * python/arena is the rest of these, as one site, and the two domains add up to what the arenas take. Where chance makes the samples
 * stand for more than there is, each stands for less. Does nothing where they were not sampled.
 *
 * A forked child's objects also lie in what was free in the arenas that it inherited: its two domains may add up to more than its own
 * arenas take, by as much as that was.
 */
void capture_arenas_split(struct capture *capture);

/* For so many bytes each sample stands; 0 = small objects were not sampled. */
uint64_t capture_arenas_sample_bytes(const struct capture *capture);

/* The mean bytes between two samples of the heap; 0 = each block is recorded. */
uint64_t capture_heap_sample_bytes(const struct capture *capture);

#endif
