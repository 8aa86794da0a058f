/*
 * capture_builder.h - a capture made by hand: what would the recorder have written?
 *
 * Builds whole .kmem files in memory from single sites, stacks and texts, with every checksum as the format demands, so
 * that a test can damage exactly one thing. Aborts when memory is out.
 */
#ifndef CAPTURE_BUILDER_H
#define CAPTURE_BUILDER_H

#include <stddef.h>
#include <stdint.h>

#include "kmem_format.h"

struct capture_builder;

/* Begins with a process 4711 of session "session-a", named domains heap and mmap, nothing in it. */
struct capture_builder *capture_builder_new(void);
void capture_builder_free(struct capture_builder *builder);

/* To be changed before capture_builder_finish(); checksums are made there. */
struct kmem_header *capture_builder_header(struct capture_builder *builder);
struct kmem_domain_row *capture_builder_domain(struct capture_builder *builder, unsigned domain);
struct kmem_heartbeat *capture_builder_heartbeats(struct capture_builder *builder);

/* Index for a Python frame word. */
uint32_t capture_builder_code(struct capture_builder *builder, const char *file, const char *function,
                              uint32_t first_line, uint16_t flags, const uint8_t *table, uint32_t table_bytes);
uint64_t capture_builder_python_frame(uint32_t code, uint32_t offset);

/* Index + 1, as a site wants it. */
uint32_t capture_builder_stack(struct capture_builder *builder, const uint64_t *frames, uint32_t count, uint16_t flags);

/* A stack of these frames and the outermost `outer_count` of the whole stack `outside`. */
uint32_t capture_builder_stack_on(struct capture_builder *builder, uint32_t outside, uint32_t outer_count,
                                  const uint64_t *frames, uint32_t count, uint16_t flags);
struct kmem_stack *capture_builder_stack_at(struct capture_builder *builder, uint32_t stack); // until the next record
void capture_builder_seal(struct kmem_record *record);                                        // after a change
void capture_builder_module(struct capture_builder *builder, const char *path, uint64_t start, uint64_t end,
                            uint32_t loaded, uint32_t unloaded);
struct kmem_resident_lines *capture_builder_resident_lines(struct capture_builder *builder); // [2], as resident[]
void capture_builder_note(struct capture_builder *builder, const char *text);
void capture_builder_cell(struct capture_builder *builder, uint32_t number, const char *typed, const char *compiled,
                          uint16_t flags); // enum kmem_cell_flags

/* About so many objects of that type are alive at the site with this index. */
void capture_builder_object_count(struct capture_builder *builder, uint32_t site, const char *type, uint64_t count);
void capture_builder_seal_object_census(struct kmem_header *header); // after changing them
/* A part of the history, empty; the caller fills points in, and seals each by kmem_history_checksum(). Until the next record. */
struct kmem_history *capture_builder_history(struct capture_builder *builder, unsigned part);
/* What was held at exit: the caller fills in the rest and calls capture_builder_seal(). */
struct kmem_exit *capture_builder_exit(struct capture_builder *builder, uint32_t site_count, uint32_t generation_count);
/* What was held when the guard was passed: the same. */
struct kmem_guard *capture_builder_guard(struct capture_builder *builder, uint32_t site_count);
/* Who held what, in place 0 or 1. */
void capture_builder_holders(struct capture_builder *builder, unsigned place, uint64_t sequence, const char *text);
uint64_t capture_builder_volume(uint64_t clock); // a volume at which the clock says this
/* For a refused request that is there; the caller fills it in and calls capture_builder_seal(). */
struct kmem_device_snapshot *capture_builder_device_snapshot(struct capture_builder *builder, unsigned failed);

/* One site that made and released so much; its domain's row is kept in step. Returns its index. */
uint32_t capture_builder_site(struct capture_builder *builder, unsigned domain, uint32_t stack,
                              uint64_t allocated_bytes, uint64_t allocated_count, uint64_t freed_bytes,
                              uint64_t freed_count);
struct kmem_site *capture_builder_site_at(struct capture_builder *builder, uint32_t index);
/* Generations began at each tick from `first` to `latest`, 60 at most. latest 0: it has only released what others allocated. */
struct kmem_generations *capture_builder_generations(struct capture_builder *builder, uint32_t site, unsigned first,
                                                     unsigned latest);
/* The same of a block that stands elsewhere. */
void capture_builder_births(struct kmem_generations *block, unsigned first, unsigned latest);
/* The live blocks of a tick. */
_Atomic uint32_t *capture_builder_born(struct kmem_generations *block, unsigned tick);

/* The file's bytes, owned by the caller. KMEM_STATE_CLEAN_EXIT seals everything. */
unsigned char *capture_builder_finish(struct capture_builder *builder, enum kmem_state state, size_t *bytes);

/* Makes head_checksum, or identity_checksum, of a finished file right again. */
void capture_builder_reseal(unsigned char *file, size_t bytes);

void capture_builder_write(const char *path, const void *file, size_t bytes);

/* A small capture with everything in it: two stacks, Python and native frames, modules, notes, generations. */
unsigned char *capture_builder_example(enum kmem_state state, size_t *bytes);

#endif
