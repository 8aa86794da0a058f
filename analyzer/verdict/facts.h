/*
 * facts.h - what do the captures, the launcher and this machine show about the end? No conclusions, no words.
 *
 * facts.c          which process this is about, counters, limits, the refused request
 * facts_lines.c    who held the memory, at the end and at the peak: processes and lines
 * facts_memory.c   where is what was in memory; fragmentation
 * facts_devices.c  what filled a device
 * facts_children.c child processes that were lost, or that copied what their parent had built
 * facts_forecast.c when the limit will be reached
 */
#ifndef FACTS_H
#define FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/device_parts.h"
#include "analysis/end_log.h"
#include "analysis/peak_import.h"
#include "analysis/rank.h"
#include "model/model.h"
#include "analysis/endings.h"

/* Children that wrote to what their parent had built before it forked them, and so copied it. */
#define VERDICT_BUILT_MAX 2
struct verdict_built {
	const struct model_site *site; // stands for its line
	uint64_t bytes;                // of that line, when it forked
	uint64_t copied_bytes;         // of these, by the child that copied most; estimated; 0 = not known
	uint64_t copied_error_bytes;
};
struct verdict_copies {
	size_t child_count;                 // 0: none worth telling
	uint64_t bytes;                     // of those that ran at the same time
	const struct model_process *child;  // who copied most
	const struct model_process *parent; // who built it
	size_t built_count;
	struct verdict_built built[VERDICT_BUILT_MAX];
};

/*
 * What was the memory of the processes made of that ran at the end? By their last samples. What two processes may share counts once.
 */
#define VERDICT_PARTS_MAX 19
/* In few kinds, as a bar shows them. */
#define VERDICT_BAR_ROWS(BAR)                \
	BAR(LINES, "lines")                      \
	BAR(FREED, "freed but kept")             \
	BAR(LIBRARIES, "libraries")              \
	BAR(FILES, "files")                      \
	BAR(FORK, "from before the fork")        \
	BAR(OTHERS, "other processes and files") \
	BAR(LATER, "newer than the sample")      \
	BAR(UNKNOWN, "unknown")                  \
	BAR(RECORDER, "recorder")

enum verdict_bar {
#define VERDICT_BAR_OF_ROW(bar, name) VERDICT_BAR_##bar,
	VERDICT_BAR_ROWS(VERDICT_BAR_OF_ROW) VERDICT_BARS
};

struct verdict_part {
	const char *name; // "freed memory that malloc keeps"
	enum verdict_bar bar;
	uint64_t bytes;
};
#define VERDICT_LASTING_MAX 2

/* Memory that one process freed and malloc keeps. */
#define VERDICT_PINNING_MAX 3
struct verdict_freed {
	const struct model_process *process;
	uint64_t freed_bytes;       // in memory; 0 = not worth telling, or nobody looked
	uint64_t heap_bytes;        // all of malloc's pages then; what was not freed is live
	uint64_t resident_bytes;    // of the process then
	uint64_t empty_bytes;       // of heap_bytes, pages without a block; these are 0 where nobody looked at pages
	uint64_t sparse_bytes;      // pages that few blocks keep,
	uint64_t sparse_live_bytes; // and what is live in them
	uint64_t age_ns;            // of the look, to the end or the last heartbeat
	bool is_later;              // that was seen after the look, in sums alone
	bool has_fallen;            // and less was live then
	// the lines that keep most pages, the most first; site_count == 0: no more
	struct rank_line pinning[VERDICT_PINNING_MAX];
};

struct verdict_memory {
	uint64_t bytes;             // the sum of the parts; 0 = nobody looked
	uint64_t lines_bytes;       // of these, live at recorded lines at the look
	uint64_t sample_bytes;      // that the looks saw
	uint64_t own_bytes;         // of these, the recorder's own
	uint64_t program_bytes;     // of these, the program and its libraries: code and data
	uint64_t files_bytes;       // of these, pages of files and shared memory that no line holds
	uint64_t written_bytes;     // of these, that are the process's own as it wrote to them, at least
	bool is_written_first;      // they are most of what was in memory, and `files` is their line
	uint64_t age_ns;            // of the oldest look, to the end or the last heartbeat
	struct rank_line files;     // the line that maps most of these files; site_count == 0: none does, or they are few
	uint64_t inherited_bytes;   // from before the fork, in the process that has most of it
	struct rank_line inherited; // the line that built most of that; site_count == 0: none did
	size_t part_count;
	struct verdict_part parts[VERDICT_PARTS_MAX]; // the largest first
	struct verdict_part bar[VERDICT_BARS];        // their sums by kind, in the order of the kinds; some may be 0
	bool is_of_container;                         // bytes is what the container had in use
	uint64_t memory_files_bytes;                  // of these: files that lie in memory alone
	uint64_t others_bytes;                        // of these, other processes'; 0 = none, or not told from files
	uint64_t unknown_bytes;           // of these, other processes' or files', which came after the last look
	uint64_t stacks_bytes;            // of threads
	const struct model_site *starter; // what each thread has from the place that started most; NULL = not known
	struct verdict_freed freed;       // of the process where that is most
};

/* Where one domain is asked about. */
struct verdict_asked {
	const char *name; // as it was asked for: "cuda" is all devices; NULL = all memory was
	const struct model_domain *largest;
	struct rank_line growing; // the line there that accumulates most; site_count == 0: none
};

/* At this rate the limit is reached: where something grows steadily, and never from a start-up. */
struct verdict_forecast {
	uint64_t bytes_per_minute; // 0 = nothing is foreseen
	uint64_t minutes;
	uint64_t steps; // of the process, in these; 0 = not known
	enum kmem_step_source steps_source;
	uint64_t used_bytes; // of the limit, at the last heartbeat
	uint64_t limit_bytes;
};

/* The one caller whose blocks stay (kept_way.h), and who releases those of the others. */
struct verdict_kept {
	uint64_t count; // of its blocks that are alive
	uint64_t allocated_count;
	const struct model_frame *through;
	const struct model_frame *released_at; // most of them; NULL = not known
};

struct verdict_facts {
	struct finished_model finished;
	const struct model *model; // the same
	const struct verdict_now *now;
	const struct model_process *process;    // whose end this is about
	const struct model_process *lost_child; // the largest of the others gone without a mark; NULL
	const struct model_process *first_lost; // of several, the one seen at work last before all others; NULL = none is
	size_t lost_count;                      // how many those are
	uint64_t lost_bytes;                    // held by them at their ends, in sum
	enum verdict_end end;
	int exit_code;              // with OK, FAILED; -1 = unknown
	int signal;                 // with SIGNAL
	bool is_descendant;         // not the first process of the session
	bool counters_are_late;     // read now, not right after the end: may count someone else's kill
	bool has_system_allocators; // the launcher switched known libraries to malloc
	bool was_look_killed;       // of the launcher's, by the kernel: it is in none of these
	bool is_kill_counted;       // cgroup_kills is known
	bool is_machine_counted;    // machine_kills is known
	uint64_t cgroup_kills;      // how far the counters moved; 0 when not known
	uint64_t cgroup_kills_before;
	uint64_t limit_hits;
	uint64_t machine_kills;
	uint64_t limit_bytes;     // UINT64_MAX = none or unknown
	uint64_t charged_bytes;   // of the limit's cgroup, at the last heartbeat; 0 = unknown
	uint64_t resident_bytes;  // at the last heartbeat, or the launcher's maximum; 0 = unknown
	uint64_t available_bytes; // of the machine, at the last heartbeat; UINT64_MAX = unknown
	/* Several processes: never a sum over some that did not run at the same time. */
	uint64_t live_bytes;        // memory domains, of the live_count processes
	uint64_t untouched_bytes;   // asked for, and not in memory: in no figure here, but where a request was refused
	struct rank_line untouched; // the line that has most of it; site_count == 0: not worth telling
	struct verdict_memory memory;
	size_t live_count;                        // those that ran when it ended, as far as that shows
	const struct model_process *live_process; // which of these held most
	uint64_t live_process_bytes;              // and how much that was
	uint64_t live_process_untouched_bytes;    // asked for beside it
	// of live_bytes, what imports left; 0 also where that is not known of several processes
	uint64_t import_bytes;
	uint64_t peak_bytes;                      // of the largest memory domain of peak_process
	uint64_t peak_untouched_bytes;            // asked for then as well, and not in memory
	uint64_t peak_whole_bytes;                // verdict_peak_of() it
	const struct model_process *peak_process; // with the highest peak; with `refused`, the one that was refused
	const struct model_domain *peak_domain;   // NULL = none, or not known which
	const struct model_failed *refused; // the largest of the last requests that the end may come from; NULL = none
	// of `refused`; device == NULL: it is no request to a device, or nothing is alive there
	struct device_parts device;
	uint64_t refused_held_bytes; // there, by the process that was refused, then
	struct rank_line top_device; // of its tensors, or else of its memory; site_count == 0: none
	// of its tensors: the largest lines that hold what they make, and do not make it again each step
	struct rank_line lasting[VERDICT_LASTING_MAX];
	size_t lasting_count;
	uint64_t growing_bytes;  // of all lines of class leak in the same domain
	size_t growing_count;    // how many lines those are
	uint64_t growing_rounds; // how often the one of them that is run least was run
	size_t retried_count;    // requests to the device that were met later
	// a line on the largest device that accumulates, of another end; site_count == 0: none
	struct rank_line growing_device;
	// tensors of a step that was refused before, alive when the last one was; 0 = not worth telling
	uint64_t kept_bytes;
	uint64_t pinned_bytes;        // host memory that drivers gave out
	uint64_t rounded_bytes;       // of that: blocks of PyTorch's with the size of a power of two
	struct rank_line top_pinned;  // site_count == 0: none
	struct rank_line top_live;    // site_count == 0: none. Not Python's arenas where a line of the user's tells more
	struct verdict_kept top_kept; // of top_live; count == 0: there is no such caller
	struct rank_line top_peak;
	char peak_import[PEAK_IMPORT_BYTES]; // of one process: the module that it imported at its peak; "" = none
	// another line that holds nearly as much; site_count == 0: none, or several processes
	struct rank_line next_live;
	// of one process: another that took much, and in the last stretch of the run alone; site_count == 0: none
	struct rank_line last_taker;
	// when arenas accumulate: the line that accumulates most beside them; site_count == 0: none
	struct rank_line beside_arenas;
	// another that accumulates, worth telling, and is none of those above; site_count == 0: none
	struct rank_line beside;
	const struct model_process *beside_process; // the one that has nearly all of it; NULL = none has
	uint64_t leaking_bytes;        // of all lines of the host's memory that accumulate, but for what may be a data set
	struct rank_line most_leaking; // the one that holds most of leaking_bytes; site_count == 0: none
	struct rank_line swept;        // of class swept, the one that held most; site_count == 0: none
	const struct model_process *top_live_process; // the one of these that has nearly all of it; NULL = none has
	uint32_t top_live_copies;                     // so many processes hold about as much of top_live each; 0 = not so
	uint32_t top_live_processes; // 0: all of top_live is part of live_bytes; else a sum over so many processes
	uint32_t top_peak_processes; // the same of top_peak and peak_bytes
	struct verdict_copies copies;
	struct verdict_forecast forecast;
	uint64_t pace_bytes; // a minute that it grew by, evenly, until a signal ended it; 0 = not so, or not known
	struct verdict_asked asked;
	struct verdict_log log;
	struct verdict_log lost_log; // of lost_child
};

/* The model has at least one process. */
void verdict_facts_gather(struct finished_model finished, const struct verdict_now *now, struct verdict_facts *facts);

/* ---- processes ---- */

/* The most that it held as a whole, at least: its domains need not have been at their peaks at the same time. */
uint64_t verdict_peak_of(const struct model_process *process);
/* The most that it had in memory. The kernel's own maximum may be some hundred KiB below what a sample found. 0 = not known: without a launcher. */
uint64_t verdict_most_resident_of(const struct model_process *process);
/* So much was asked for, and was clearly not all in memory at once; most_resident_bytes 0: not known. */
bool verdict_is_beyond_memory(uint64_t bytes, uint64_t most_resident_bytes);
/* The heap of one of the processes is another allocator's, which stands before the recorder: its note says so; NULL = of none. */
const char *verdict_hidden_heap(const struct model *model);
/* The note of the process that begins so (kmem_format.h); NULL = it has none. */
const char *verdict_note_of(const struct model_process *process, const char *begin);

/* ---- limits ---- */

/* Of the process's address space or data segment, the one that was in the way of the refused request; NULL = none, or not known. */
const struct kmem_limit *verdict_address_limit(const struct verdict_facts *facts);
/* Or the program set one later, the machine commits no more, or has not so much. */
bool verdict_has_address_limit(const struct verdict_facts *facts);

/* The heartbeat at which the process with the highest peak nearly filled its limit; NULL = it never did. */
const struct kmem_heartbeat *verdict_fullest(const struct verdict_facts *facts);
/* By all that lives under the limit, where that is known. */
uint64_t verdict_used_bytes(const struct kmem_heartbeat *beat);

/* Charged to the limit's cgroup at the last heartbeat: nearly all of it. False when not known. */
bool verdict_is_near_limit(const struct verdict_facts *facts);
/* The machine had almost nothing left at the last heartbeat. False when not known. */
bool verdict_is_machine_low(const struct verdict_facts *facts);
/* No limit was near, no request was refused, and the kernel counted no kill in the container. */
bool verdict_is_far_from_limits(const struct verdict_facts *facts);

/* ---- the refused request; facts->refused is not NULL, but for the first two ---- */

/* Requests that were refused and have no place in the ring any more: of which domain nobody knows. */
uint64_t verdict_unlisted_refusals(const struct verdict_facts *facts);
/* Is it a request for memory of a device? Pinned memory is the host's. */
bool verdict_is_device_request(const struct verdict_facts *facts);
/* It is the request, not what was held: it is much more than that. */
bool verdict_is_request_alone(const struct verdict_facts *facts);
bool verdict_is_beyond_machine(const struct verdict_facts *facts); // more than the machine has
/* A limit was set that recording alone, which did not know of it, had used up. */
bool verdict_is_of_recording(const struct verdict_facts *facts);
/* More was given to its thread, or another status followed, than when nothing catches the error: it may have gone on, for a time. */
bool verdict_was_perhaps_caught(const struct verdict_facts *facts);
/* It asked for memory after the refusal; what it did with that is not known. */
bool verdict_is_end_unseen(const struct verdict_facts *facts);
bool verdict_was_given_more(const struct verdict_facts *facts);  // to its thread, than an error path takes
bool verdict_is_other_status(const struct verdict_facts *facts); // not the one of Python's errors that nothing catches

/* ---- facts_lines.c ---- */

void verdict_live_gather(struct verdict_facts *facts); // after `end` and `refused`
void verdict_peak_gather(struct verdict_facts *facts); // the same
/* What imports left of this domain in memory, when its total was highest or at the end; without the start of the interpreter. */
uint64_t verdict_left_by_imports(const struct verdict_facts *facts, const struct model_domain *domain, bool is_peak);
/* Python's arenas: memory that no line is known of. */
bool verdict_is_arena(const struct verdict_facts *facts, const struct rank_line *line);
/* Of these, what is left where the objects in them are known by line. */
bool verdict_is_rest_of_arenas(const struct rank_line *line);
/* What a look found of the line; NULL: nobody looked at it. */
const struct holders_line *verdict_holders_of(const struct verdict_facts *facts, const struct rank_line *line);
/* So much is most of what was live, without what imports left. */
bool verdict_is_most_of_live(const struct verdict_facts *facts, uint64_t bytes);
/* Most of what was live is of a line of class leak. */
bool verdict_is_accumulating(const struct verdict_facts *facts);
/* Most of what was live is of a line of class backlog, in many blocks: one block that grows is no queue. */
bool verdict_is_backlog(const struct verdict_facts *facts);

/* ---- facts_memory.c ---- */

/*
 * In these facts lines hold what is in memory. Where a request was refused they hold what was asked for: the limit of addresses counts
 * that. The result is for rank_free().
 */
struct ranked *verdict_rank(const struct verdict_facts *facts, const struct ranking *in_memory,
                            const struct ranking *asked);
uint64_t verdict_less_untouched(const struct verdict_facts *facts, uint64_t asked_bytes, uint64_t untouched_bytes);
/* Of mappings that are live: OpenBLAS maps 64 MiB and uses some KiB of them. 0: not sampled at the moment of which live_bytes is. */
uint64_t verdict_untouched_bytes(const struct model_process *process, const struct model_domain *domain);
void verdict_find_untouched(struct verdict_facts *facts, const struct ranked *live);
/* Is so much untouched, compared with what is in memory, that a sentence without both figures would mislead? */
bool verdict_tells_in_memory(uint64_t in_memory_bytes, uint64_t untouched_bytes);
/* Is so much of it untouched that sentences give two figures: live, and in memory? Then shares are of the latter. */
bool verdict_is_in_memory_told(const struct verdict_facts *facts);
bool verdict_is_peak_told_in_memory(const struct verdict_facts *facts); // the same of the peak
/* Of the peak, as it is told: unless what was in memory is told apart, with what was not. */
uint64_t verdict_peak_told_bytes(const struct verdict_facts *facts, uint64_t in_memory_bytes, uint64_t untouched_bytes);
uint64_t verdict_told_live_bytes(const struct verdict_facts *facts); // what shares are of
/* Of the processes so marked. */
void verdict_memory_gather(struct verdict_facts *facts, const bool *is_meant, uint64_t end_ns);
/* Does the first line explain what was in memory? A line that does not is never named before it was said where the rest is. */
bool verdict_is_explained(const struct verdict_facts *facts);
bool verdict_holds_a_third(const struct verdict_facts *facts, uint64_t bytes); // of what was in memory
/* What the process had in memory when it ended by itself, where that is an eighth less than the most that it had; 0 = not so, or not known. */
uint64_t verdict_end_resident_bytes(const struct verdict_facts *facts);
/* Most of what lines held at the sample was released since: lines are told as they are at the end. */
bool verdict_was_mostly_released(const struct verdict_facts *facts);
/* Is the end about memory of the host, of which it is known where it was? */
bool verdict_has_bar(const struct verdict_facts *facts);
/* Worth telling: a quarter of what was in memory, and 32 MiB. Without age and lines. */
struct verdict_freed verdict_freed_of(const struct model *model, const struct model_process *process);
/* Of the pages that few blocks keep, what is worth a sentence. */
uint64_t verdict_sparse_of(const struct verdict_freed *freed);
bool verdict_is_freed_first(const struct verdict_facts *facts); // it is more than the first line holds

/* ---- facts_devices.c ---- */

void verdict_device_gather(const struct verdict_now *now, struct verdict_facts *facts); // after `refused`
bool verdict_has_device(const struct verdict_facts *facts);                             // that held something
/* What is in use on the device and not this program's. This and the next: where a device refused. */
uint64_t verdict_untracked_bytes(const struct verdict_facts *facts);
bool verdict_is_held_by_others(const struct verdict_facts *facts);
/* What pools keep for what they are asked next would have been enough. */
bool verdict_is_kept_by_pools(const struct verdict_facts *facts);
bool verdict_tells_pace(const struct rank_line *line);            // it ran often enough
bool verdict_does_device_grow(const struct verdict_facts *facts); // its first line
bool verdict_is_device_growth_the_story(const struct verdict_facts *facts);
bool verdict_is_device_fragmented(const struct verdict_facts *facts);
bool verdict_has_tensors(
	const struct model *model); // of PyTorch, TensorFlow, JAX, or on a device: as far as call sites tell
bool verdict_is_preallocated(const struct verdict_facts *facts); // a few blocks are most of the device

/* It crashed, and so did programs of its name at places that have nothing to do with each other. */
bool verdict_crashes_anywhere(const struct verdict_facts *facts);

/* ---- facts_forecast.c ---- */

void verdict_forecast_gather(struct verdict_facts *facts); // after what accumulates

/* ---- facts_children.c ---- */

void verdict_children_gather(const struct verdict_now *now, struct verdict_facts *facts); // after lost_child
void verdict_copies_gather(const struct model *model, struct verdict_copies *copies);
/* Of what the child inherited, the line that held most then, as far as it is known; site NULL: none is. */
struct verdict_built verdict_built_most(const struct model *model, const struct model_process *child);

/* Are they mappings? No look finds what keeps those. */
bool verdict_is_mapped(const struct verdict_facts *facts, const struct rank_line *line);

#endif
