/*
 * model_build.h - the model while it is being made: what its parts share.
 *
 *   model_load.c       the order of the steps
 *   model_processes.c  one capture's head: process, heartbeats, notes
 *   model_failed.c     one capture's refused requests, and what devices held then
 *   model_domains.c    one capture's domains: the sums of its sites
 *   model_frames.c     one frame word -> readable frames, each kept once
 *   model_stacks.c     one stack record -> readable stack, each kept once
 *   model_sites.c      counters of sites, merged by stack and domain
 *   model_generations.c  their generations
 *   model_steps.c      steps and marks of the process
 *   model_history.c    what it held over time
 *   model_cells.c      cells of notebooks: what their files are called, and their texts
 *   model_family.c     what the processes have to do with each other
 *   model_wrappers.c   functions of the user's through which most memory goes
 *   model_resident.c   what of them is in memory
 *   model_types.c      kinds of Python objects that are alive at sites
 *   model_releases.c   lines that release blocks of sites
 */
#ifndef MODEL_BUILD_H
#define MODEL_BUILD_H

#include "base/text_pool.h"
#include "capture/capture_reader.h"
#include "kmem_words.h"
#include "model/frame_rules.h"
#include "model/model.h"
#include "symbols/symbolizer.h"

/* Nobody writes it any more, though it is not sealed: its counters must agree with each other. */
bool capture_is_final(const struct capture *capture);

struct build_cell;     // model_cells.c
struct build_frame;    // model_frames.c
struct build_site;     // model_sites.c
struct process_frames; // model_frames.c: what is known of one capture's frames

/* A readable stack; equal ones are one object. Compared from `omitted` on. */
struct build_stack {
	const struct model_frame *where;
	const char *import; // see struct model_site
	uint32_t frame_count;
	uint32_t omitted;
	uint32_t frames_before_gap;
	uint32_t flags; // enum kmem_stack_flags
	const struct model_frame *frames[];
};

struct build_failed {
	uint64_t site;        // index in build.sites + 1; 0 = unknown
	uint64_t *held_sites; // of failed.held, the same; in the pool
	struct model_failed failed;
};

struct build {
	const struct model_options *options;
	struct text_pool *pool;
	struct symbolizer *symbolizer; // NULL: no symbols wanted
	struct frame_rules rules;

	size_t process_count;
	struct model_process *processes;
	bool is_trusted;         // the capture that is being read: owner.h
	size_t distrusted_count; // captures that are not
	uid_t distrusted_owner;  // of the first of them
	const char *distrusted_name;

	size_t capture_count;       // of the session
	size_t rewound_count;       // captures that were set back to the snapshot that was asked for
	size_t taken_off_count;     // of which another snapshot was taken off
	uint64_t sample_bytes;      // as in struct model
	uint64_t heap_sample_bytes; // the same

	size_t domain_count;
	struct model_domain *domains;

	struct build_cell *cells;      // uthash
	struct build_frame *frames;    // uthash
	struct stack_entry *stacks;    // uthash, model_stacks.c
	struct build_site *site_index; // uthash
	size_t site_count;
	struct model_site *sites;
	struct site_state *site_states; // model_sites.c: one per site

	size_t member_room;
	struct build_member *members; // model_family.c: one per process

	size_t failed_count;
	struct build_failed *failed;
	// of the capture that is being read: of each of its refused requests, if it was for an arena whose objects are
	// known by line, the index in sites + 1 of who asked
	uint32_t refused_arenas[KMEM_FAILED_MAX];

	size_t damage_count;
	uint64_t damages_unsaid; // further places, of which no line tells
	size_t under_way_count;  // as in struct capture
	const char **damages;
};

/* What all sites of one domain say together. */
struct domain_sum {
	uint64_t allocated_bytes;
	uint64_t freed_bytes;
	uint64_t allocated_count;
	uint64_t freed_count;
	struct kmem_peak_word peak; // the row's, where `now` is what the sites hold
	bool is_used;
};

/* Each row of a capture's domain table: its index in build.domains, or DOMAIN_NONE. */
#define DOMAIN_NONE UINT32_MAX
struct domain_rows {
	uint32_t index[KMEM_DOMAINS_MAX];
	struct domain_sum sums[KMEM_DOMAINS_MAX];
};

/* From a sum modulo 2^48 in which records that released others' blocks are negative. A negative sum is 0. */
static inline uint64_t
model_signed_bytes(uint64_t sum)
{
	sum &= KMEM_PEAK_BYTES_MASK;
	return sum > KMEM_PEAK_BYTES_MASK / 2 ? 0 : sum;
}

void model_damage(struct build *build, const char *text);

/* Adds the capture's process and its domains' totals. `rows` is filled in. */
void model_add_process(struct build *build, struct capture *capture, struct domain_rows *rows);
/* When all captures were read: sets `parent` of every process, by pid and, since pids are used again, by start. */
void model_processes_link(struct model_process *processes, size_t count);
void model_add_domains(struct build *build, struct capture *capture, struct model_process *process,
                       struct domain_rows *rows);

/* Adds its refused requests; `sites` leads from the capture's sites to build.sites + 1. */
void model_add_failed(struct build *build, struct capture *capture, const struct domain_rows *rows,
                      const uint32_t *sites);
// after all captures: in order of time, with their sites
void model_take_failed(struct build *build, struct model *model);

/* What the records of one site say of their generations. */
struct generation_sums {
	uint32_t birth_clock;                // of the latest; 0 = nobody counted
	uint32_t begin_clock;                // of the latest generation
	bool has_births[KMEM_CLOCK_MAX + 1]; // at these ticks generations began, among the latest
	uint32_t numbered;                   // before version 12: generations that are numbered and have no tick; 0 since
	uint64_t allocated_count;            // by all records, by the end
	uint8_t first_generation;            // the first
	int64_t alive_in_bucket[KMEM_GENERATION_BUCKETS_11];
	// of records without counters of their own: live blocks by the tick in which the record was made. A thread that keeps one block each makes none
	uint32_t record_count;
	int64_t alive_by_record[KMEM_CLOCK_MAX + 1];
	bool has_record[KMEM_CLOCK_MAX + 1];
};
struct generation_counts {
	uint32_t alive; // as in struct model_site
	uint32_t total;
	uint32_t recent_alive;
	uint32_t recent_total;
	uint64_t volume_bytes;                // as in struct model_site
	bool has_paused;                      // as there
	uint32_t born;                        // as born_generations there
	uint64_t span_bytes;                  // as there
	uint64_t quarters[SURVIVAL_QUARTERS]; // as there
	struct model_survivors survivors;     // as there
	struct model_ticks ticks;             // as there
	uint64_t steps;                       // as in struct model_site
	uint64_t first_ms;                    // the same
	uint64_t unlikely;                    // counts that cannot be
};
// NULL: the record has none
/* Of a record of the capture, or of a copy in it; NULL = it has none. */
void model_generations_add(const struct capture *capture, const struct kmem_generations *block,
                           struct generation_sums *sums);
/* At that moment of the clock, which may be before the capture's last. */
struct generation_counts model_generations_count(const struct generation_sums *sums, const struct kmem_header *header,
                                                 uint64_t clock, uint64_t live_count);

/* Adds to the capture's process its steps and marks. To be called after its frames are known. */
void model_add_steps(struct build *build, struct capture *capture);
/* Adds what the process held over time; `sites` as below. */
void model_add_history(struct build *build, struct capture *capture, const struct domain_rows *rows,
                       const uint32_t *sites);
/* Steps since the clock came to this tick, and when that was. */
void model_steps_since(const struct kmem_header *header, uint8_t clock, struct generation_counts *counts);

struct process_frames *process_frames_new(struct build *build, struct capture *capture);
void process_frames_free(struct process_frames *frames);

/* Readable frames of one word, innermost first; owned by the pool. No frame: it is one of the shim's own. */
size_t process_frames_resolve(struct process_frames *frames, uint64_t word, uint32_t module_version,
                              const struct model_frame *const **found);
/* One of a cell that was changed and run again: the same place in the newest. Once cells are linked. */
const struct model_frame *model_frames_newest(struct build *build, const struct model_frame *frame);
void model_frames_free(struct build *build); // the index, not the frames

struct process_stacks; // model_stacks.c
struct process_stacks *process_stacks_new(struct build *build, struct capture *capture);
void process_stacks_free(struct process_stacks *stacks);

/*
 * One stack for what is left of all arenas of Python, when their objects are known by line (capture_reader.h): the line that made the
 * arenas grow says nothing about the rest.
 */
const struct build_stack *process_stacks_rest_of_arenas(struct process_stacks *stacks);

/* Which cells were changed and run again is known only when the stacks of all sites were found once: afterwards they are found as of the newest. */
void process_stacks_settle_cells(struct process_stacks *stacks);

/* The stack of this site; never NULL: one without frames when they are unknown. */
const struct build_stack *process_stacks_find(struct process_stacks *stacks, const struct kmem_site *site,
                                              size_t site_index);
struct process_stacks;
/* Adds the lines that release blocks. `stacks` is of this capture; `sites` leads from its sites to build.sites + 1. */
void model_add_releases(struct build *build, struct capture *capture, struct process_stacks *stacks,
                        const uint32_t *sites);
void model_stacks_free(struct build *build); // the index, not the stacks

/* What a file is called while sites are merged: one name for all runs of a cell, other files unchanged. */
const char *model_cells_file(struct build *build, uint32_t pid, const char *file);
void model_cells_add(struct build *build, struct capture *capture); // numbers and texts, after its frames
void model_cells_link(struct build *build); // to newer ones that are nearly the same, after these
/* False: it has no newer one, or the line was changed in that. Else file, line and first line become those of the newest. */
bool model_cells_newest(struct build *build, struct model_frame *frame);
void model_cells_add_written(struct build *build, const char *capture_path); // the extension's, after all captures
/* When all captures were read: makes the names for people. *cells is freed by the caller. */
size_t model_cells_label(struct build *build, struct model_cell **cells);
const char *model_cells_name(struct build *build, const char *file);
void model_cells_free(struct build *build);
void model_frames_tell_files(struct build *build); // to place.h
void model_frames_label(struct build *build);      // gives these names to all frames

/* Merges the capture's sites into the model's. Returns for each site its index in build.sites + 1; freed by the caller. */
uint32_t *model_add_sites(struct build *build, struct capture *capture, const struct domain_rows *rows);

/* Takes `sites` over; after all captures model_family_link(). */
void model_family_add(struct build *build, struct capture *capture, const struct domain_rows *rows, uint32_t *sites);
void model_family_link(struct build *build);
size_t model_family_unknown_ends(const struct build *build); // as in struct model
void model_family_free(struct build *build);

/* Adds what kinds of Python objects are alive; `sites` as above. */
void model_add_types(struct build *build, struct capture *capture, const uint32_t *sites);
/*
 * Skips functions that many lines call for most of a domain's memory: `where` of their sites becomes the caller. The sites keep the keys
 * that they have, so that two runs can be compared also when this was so in one of them only.
 */
void model_wrappers_skip(struct model_site *sites, size_t count, size_t domain_count);

/* What threads did for a line is put to that line, and not to the one that waited for it; the keys stay here too. */
void model_waiting_settle(struct model_site *sites, size_t count, struct text_pool *pool);

/* To be called after model_wrappers_skip(): adds what is in memory; `sites` as above. */
void model_add_resident(struct build *build, struct capture *capture, const uint32_t *sites);
void model_sites_free(struct build *build); // the index, not the sites

#endif
