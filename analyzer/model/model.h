/*
 * model.h - what happened in this session: processes, domains, sites, readable stacks.
 *
 * model_load() (model_load.h) reads every capture that was asked for (capture_reader.c, capture_folder.c), makes frames readable
 * (symbolizer.c for native ones, python_text.c for Python ones) and indexes the result (uthash). Afterwards nothing reads a capture any
 * more. model_finish() (analysis/model_finish.h) completes it: rankings, verdict and baseline take what that returns, and nothing writes
 * it any more.
 *
 * Numbers are requested bytes unless the name says otherwise. Strings are valid UTF-8, owned by the model, never NULL unless the comment
 * says so.
 */
#ifndef MODEL_H
#define MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fail.h"
#include "kmem_format.h"
#include "model/domain.h"
#include "model/frame.h"

struct holders;
struct text_pool;

/* ROW(class, name, weight): of several sites the class with the most weight is told. */
#define MODEL_LEAK_ROWS(ROW)                                                                                \
	ROW(NONE, "none", 0)           /* holds nothing */                                                      \
	ROW(STEADY, "steady", 2)       /* holds something, does not accumulate */                               \
	ROW(TOO_SHORT, "too-short", 5) /* holds something, too few generations to judge */                      \
	ROW(BACKLOG, "backlog", 3)     /* releases in bursts or late */                                         \
	ROW(FILLING, "filling", 4)     /* keeps its blocks, but adds fewer and fewer */                         \
	ROW(LEAK, "leak", 7)           /* blocks of almost every generation are still alive */                  \
	ROW(SWEPT, "swept", 6)         /* accumulated until the peak, then was released as the program ended */ \
	ROW(IMPORT, "import", 1)       /* left behind by importing a module */

enum model_leak_class {
#define MODEL_LEAK_CLASS(class, ...) MODEL_LEAK_##class,
	MODEL_LEAK_ROWS(MODEL_LEAK_CLASS) MODEL_LEAK_CLASSES
};

/* Whose stack is it? Threads without Python frames are given some of another thread (shim/sites/thread_attribution.h). */
enum model_relation {
	MODEL_RELATION_OWN,
	MODEL_RELATION_WHILE,      // where a Python thread was seen last
	MODEL_RELATION_STARTED_BY, // where the thread was created
};

#define SURVIVAL_QUARTERS 4
#define SURVIVOR_CELLS 32
#define SURVIVOR_MOST 9

/* A small picture of live blocks: a cell for each generation, or for several, the oldest first. 0 = none, SURVIVOR_MOST = most. */
struct model_survivors {
	uint8_t count; // of cells; 0 = it had one generation
	uint8_t cells[SURVIVOR_CELLS];
};

/* Ticks of its process's clock of generations, a bit each. */
#define MODEL_TICK_WORDS 4
struct model_ticks {
	uint64_t born[MODEL_TICK_WORDS];  // in which it allocated
	uint64_t alive[MODEL_TICK_WORDS]; // of these, blocks are live
	uint8_t now;                      // 0 = not known
};

/*
 * Of something so many, the most frequent first: about how many Python objects of a type were alive at a site, known for the sites that
 * hold most; and how many of its watched blocks a line released.
 */
#define MODEL_TYPES_MAX 4
#define MODEL_RELEASES_MAX 8
struct model_tally {
	union { // equal names are one pointer; never NULL
		const void *of;
		const char *name;
		const struct model_frame *where;
	};
	uint64_t count;
};

struct model_site {
	uint64_t key;           // stable across rebuilds, runs and machines (site_key.c); never 0
	uint64_t place_key;     // of the function that `where` is in, alone; stable too, and the same for all its lines
	uint64_t qualified_key; // the same, and of the function's whole name: class, namespace, template arguments
	unsigned domain;        // index in model.domains
	unsigned process;       // index in model.processes of the process that holds most of it
	unsigned process_count; // how many processes it was seen in (merged by stack)
	uint64_t live_bytes;
	uint64_t most_live_bytes; // of live_bytes, by that process
	uint64_t live_count;
	uint64_t untouched_bytes;      // of live_bytes, was not in memory at the last look: the rest counts as memory
	uint64_t new_untouched_bytes;  // of untouched_bytes: the look before did not have it, so it may be being filled
	uint64_t large_bytes;          // at that look: see kmem_resident_line
	uint64_t large_resident_bytes; // of these, in memory
	uint64_t pinned_bytes;         // then, about: pages of malloc's that its few blocks kept, its share of each
	uint64_t released_bytes;       // of live_bytes, after the program began to exit
	uint64_t peak_bytes; // held at the moment of the domain's peak (several processes: of each its own, summed)
	uint64_t allocated_bytes;
	uint64_t allocated_count;
	uint32_t generations_alive; // generation buckets that still have live blocks
	uint32_t generations_total; // buckets since the site first appeared, up to now
	uint32_t recent_alive;      // the same for the latest quarter of the buckets
	uint32_t recent_total;
	uint64_t samples; // of domain python/object: its figures are estimated from so many live samples; else 0
	// the arenas of small Python objects without the objects that are known by line
	bool is_rest_of_arenas;
	uint16_t stack_flags; // enum kmem_stack_flags
	uint32_t frame_count;
	const struct model_frame *const *frames; // innermost first; inlined frames expanded; equal frames are one object
	uint32_t omitted;                        // frames left out after frames_before_gap
	uint32_t frames_before_gap;
	// innermost frame of the user's own code, outside of what only passes memory on (frame_rules.c,
	// model_wrappers.c); the innermost Python frame or, failing that, the innermost named native frame outside
	// allocators when there is none; NULL = unknown
	const struct model_frame *where;
	enum model_relation where_relation;
	const char *import;            // top-level module that was being imported, if it was an import at all; "" = unknown
	uint64_t bytes_per_generation; // live_bytes / generations_alive, 0 without generations
	uint64_t volume_bytes;         // that its process allocated in all since the site appeared, about; 0 = not known
	uint32_t born_generations;     // generations in which it allocated, 0 = not counted apart
	uint64_t span_bytes;           // that its process allocated in all from its first to its latest block, about
	// live blocks born in each quarter of what was allocated since the site appeared, about
	uint64_t quarters[SURVIVAL_QUARTERS];
	struct model_survivors survivors;
	struct model_ticks ticks;
	uint64_t steps;    // that its process made since the site appeared, about; 0 = none, or not known
	uint64_t first_ms; // when the site appeared, since the start of its process, about
	bool has_paused;   // since its latest block a whole tick of the generations' clock has passed without one
	// of domain "library": whose own allocator grew, so that figures are estimates; NULL = none
	const char *library;
	enum model_leak_class leak; // set by rank_leaks.c and held_over_time.c
	bool is_growing_storage;    // of class leak: by held_over_time.c, full blocks are replaced by larger ones
	uint64_t
		swept_bytes; // what its line held at the peak, at one of the line's sites, of class swept or a load that went the same way; else 0
	bool may_be_built_once; // too: an import runs it, or its line has half of all that was allocated since it began
	bool is_of_call;        // of class leak: see rank_is_of_call()
	unsigned type_count;
	const struct model_tally *types; // MODEL_TYPES_MAX at most, the most frequent first
	unsigned release_count;
	uint64_t watched_releases;          // watched blocks that were released, as far as there was room
	uint64_t temporary_of;              // the same, as far as there was room for these:
	uint64_t temporary_releases;        // of them, released before their thread allocated again
	const struct model_tally *releases; // MODEL_RELEASES_MAX at most
};

/*
 * How far an estimate of `bytes` in domain python/object may be off, in 95 of 100 cases. Estimates of different lines, threads and
 * processes are independent, so the error of their sum is that of one estimate of the sum.
 */
uint64_t model_estimate_error(uint64_t sample_bytes, uint64_t bytes);

/* Adds to a list of at most `most`, in order; the least frequent may fall out. */
void model_tally_add(struct model_tally *tallies, unsigned *tally_count, unsigned most, const void *of, uint64_t count);

struct model_domain {
	const char *name; // "heap", "cuda:0", ...
	struct domain_id id;
	size_t holder_count; // processes that held any of it
	uint64_t live_bytes; // all processes
	uint64_t live_count;
	uint64_t peak_bytes; // highest of one process when there is one; sum of each process's own peak otherwise
	uint64_t allocated_bytes;
	uint64_t allocated_count;
	uint64_t freed_bytes;
	uint64_t freed_count;
	uint64_t inherited_bytes;
	uint64_t concurrent_peak_bytes; // highest sum of the peaks of processes that ran at the same time
	uint64_t together_live_bytes;   // the same of what they left
	uint64_t peak_resident_bytes;   // 0 = not seen
	uint64_t returned_bytes;        // of live mappings, by madvise
	uint64_t untouched_bytes;       // of live_bytes, not in memory: the sum of its sites'
	uint64_t peak_untouched_bytes;  // of peak_bytes, the same; set by model_finish()
	// live figures are those of the moment when a request was refused that ended a process (refused_requests.c)
	bool is_at_refusal;
};

/* What a call site held when a device refused a request, and at the end of the same process. */
struct model_held {
	const struct model_site *site;
	uint64_t live_bytes;
	uint64_t live_count;
	uint64_t end_bytes;
	uint64_t end_count;
	uint64_t kept_bytes;  // tensors: of that, what was alive when PyTorch gave up before, and since then
	bool has_generations; // those below are of that moment; else nobody wrote them down
	struct model_survivors survivors;
	uint32_t generations_alive;
	uint32_t generations_total;
	uint32_t recent_alive;
	uint32_t recent_total;
};

struct model_failed {
	uint64_t bytes;
	unsigned domain; // index in model.domains
	unsigned process;
	uint64_t monotonic_ns;
	int error;
	bool is_by_guard;                 // not the system refused it
	uint64_t events_before;           // allocations in the domain until then, as the recorder counted them
	bool had_success_after;           // something was allocated in the domain afterwards
	enum kmem_failed_outcome outcome; // what the thread got afterwards; devices alone
	uint32_t thread;                  // devices alone; 0 = unknown
	uint64_t got_bytes;       // host memory alone: its thread was given so much since, about; 0 = nothing, or not known
	bool is_got_known;        // the last: then 0 is less than 1 MiB
	uint64_t free_bytes;      // of the device, right after
	uint64_t total_bytes;     // 0 = the two are not known
	uint64_t pool_kept_bytes; // of it, by the driver's pools for themselves, about; 0 = nothing, or not known
	uint64_t space_limit_bytes;    // of the address space then, about; 0 = none, or not known
	uint64_t own_space_bytes;      // of it recording had so much, about; 0 = not known
	const struct model_site *site; // NULL = unknown
	bool has_held;                 // what follows was written down: devices alone
	size_t domain_count;           // of the next; in further ones of the model there was nothing
	const uint64_t *domain_bytes;  // live in each of the model's domains
	size_t held_count;
	const struct model_held *held; // sites of the device, of pinned and managed memory
};

/* A sample of malloc's pages that were in memory at the last look, without those of large blocks. */
struct model_heap_sample {
	uint32_t sampled_pages; // 0 = nobody looked
	uint64_t bytes;
	uint64_t empty_bytes;       // of these, no live block is in them: malloc_trim() gives them back
	uint64_t sparse_bytes;      // of these, live blocks fill less than half
	uint64_t sparse_live_bytes; // requested bytes of the blocks in these
};

/* What a parent held when it forked a child. */
struct model_built {
	const struct model_site *site;
	uint64_t live_bytes;
	// of these, in pages that the child copied: estimated, of small Python objects alone; of all lines no more than the process
	uint64_t copied_bytes;
	uint64_t copied_error_bytes; // in 95 of 100 cases, for chance alone: which neighbours were written to is not in it
};

/* Rounds of what a process does again and again. */
struct model_steps {
	enum kmem_step_source source;    // of a loop: `count` is an estimate
	uint64_t count;                  // 0 = none
	uint64_t began_ns;               // when the first was counted
	const struct model_frame *where; // of a loop: the line that comes again; NULL = not known
};

/* A moment with a name. */
struct model_mark {
	enum kmem_mark_kind kind;
	const char *name; // "" = it has none
	bool is_cut;
	uint64_t sequence;
	uint64_t monotonic_ns;
	uint64_t step;
	uint64_t live_bytes;     // heap + mmap + shared + python/arena + library
	uint64_t resident_bytes; // at the last heartbeat; 0 = not known
	bool is_snapshot;        // what each line held then was kept
	uint32_t left_out;       // of that: records without a place
};

/* What a process held at a moment. */
struct model_point_site {
	uint32_t site; // index in model.sites
	uint64_t bytes;
};
struct model_point {
	uint64_t monotonic_ns;
	uint64_t resident_bytes; // 0 = not known
	uint64_t limit_bytes;    // UINT64_MAX = none
	bool is_end;             // when the process was gone; if its end is not known, with the time of the last sample
	uint64_t volume_bytes;   // that it had allocated until then
	uint64_t step;
	uint64_t live_bytes;    // heap + mmap + shared + python/arena + library
	size_t domain_count;    // of the next; in further ones of the model there was nothing
	uint64_t *domain_bytes; // live in each of the model's domains
	size_t site_count;
	const struct model_point_site *sites; // those that held most, the most first; of memory and of tensors
};

/* What recording did, beside what it recorded (struct kmem_efforts). */
struct model_efforts {
	uint64_t events; // allocations and releases that were recorded: a resize is both; no estimates
	uint64_t counts[KMEM_EFFORT_COUNT];
	uint64_t longest_pause_ns; // 0 = none, or not known
	enum kmem_effort longest_pause;
};

/* What ran in a notebook after a moment, as its extension wrote it down. */
struct model_cells_since {
	unsigned count;      // that began; 0 = none, or nothing was written down
	uint32_t number;     // of the last of them; 0 = not known
	uint64_t began_ns;   // that one, of the monotonic clock
	const char *command; // it is this one line; "" = more lines, or not known
};

struct model_process {
	const char *path;                     // of the capture file
	const struct kmem_identity *identity; // texts in it are terminated and checked
	uint32_t state;                       // enum kmem_state
	bool is_alive;                        // the process (same pid, same start) still runs on this machine
	bool is_trusted;                      // its capture: see owner.h
	bool is_hidden;                       // it ran in another container than this command: it may still run, unseen
	bool is_finalizing;
	bool has_expandable_segments; // of PyTorch, when a device had no memory for it
	bool is_at_exit;              // live figures are those of the moment when it began to exit
	uint64_t moment_ns;          // live figures are those of this moment, of a snapshot or of the guard; 0 = of the end
	uint64_t after_exit_bytes;   // allocated since then, about
	int exit_code;               // with KMEM_STATE_CLEAN_EXIT; -1 = unknown
	uint64_t ended_monotonic_ns; // with KMEM_STATE_CLEAN_EXIT, or when the next image of the process began; 0 = unknown
	const struct kmem_launcher *launcher; // NULL: nobody waited for it
	uint32_t python_version;              // PY_VERSION_HEX; 0 = none
	uint32_t peak_error_bytes;
	uint64_t verify_checked;
	uint64_t verify_mismatched;
	uint64_t losses[KMEM_LOSS_COUNT];
	struct model_efforts efforts;
	uint64_t allocated_bytes; // all domains
	uint64_t live_bytes;      // heap + mmap + shared + python/arena + library
	uint64_t peak_bytes;      // of the largest of those
	uint64_t failed_count;    // requests that were refused, also those that are not in model.failed
	size_t heartbeat_count;
	const struct kmem_heartbeat *heartbeats; // oldest first
	const struct kmem_resident *resident;    // the last look at what it is made of; NULL = none
	uint64_t own_bytes[KMEM_OWN_PARTS];      // what of it is the recorder's
	struct kmem_container container;         // what its cgroup was charged with then
	struct model_heap_sample heap_sample;
	uint64_t untouched_bytes;     // of live_bytes, not in memory
	uint64_t new_untouched_bytes; // of these, the sum of its sites'
	bool is_filling_known;        // how much, by the kernel or the launcher; else it is the most that can be
	uint64_t filled_bytes; // taken to be in memory at the end, though the last look saw it untouched (filled_at_end.h)
	unsigned thread_count; // the most that were recorded at the same time, about
	size_t note_count;
	const char *const *notes;
	uint64_t inherited_bytes; // live in the parent at fork, in memory that is private to a process; in no other figure
	uint64_t inherited_heap_bytes; // of these in malloc's
	uint64_t copied_bytes;         // of inherited memory, by writing to it: at least so much, in whole pages
	uint64_t private_dirty_bytes;  // of the whole process, at the last look; 0 = not looked
	uint64_t faulted_bytes;        // at the last heartbeat, no more was copied; 0 = not known
	size_t built_count;
	const struct model_built *built; // what it inherited, the most first: sites of the parent's
	struct kmem_guard_passing guard; // the last time that it passed its guard; number 0: it never did
	struct model_cells_since cells_since_guard;
	struct holders *holders; // who held its memory when somebody looked; NULL = nobody did
	struct model_steps steps;
	size_t mark_count;
	const struct model_mark *marks; // oldest first
	size_t point_count;
	const struct model_point *points; // what it held over time, oldest first
	size_t record_count;              // of the next; 0 where nobody wanted them
	const uint32_t *record_sites;     // of each record of its capture: index in model.sites + 1; 0 = of none
	int parent;                       // index in model.processes, -1 = none of these
	const char *name;                 // base name of what was called, or the script for an interpreter
};

/* A cell of a notebook, or of IPython: what model_frame.file says of it, and what it says itself. */
struct model_cell {
	const char *file; // "cell In[12]"; "cell #HASH" when its number is not known
	const char *text; // "" = unknown; may hold anything but '\0'
};

struct model {
	size_t process_count;
	struct model_process *processes; // the first process of the session first, then by start time
	// of processes that may have ended before another one began; sums take them to have met
	size_t unknown_end_count;
	uint64_t sample_bytes;      // for which a sample of small Python objects stands, at most; 0 = there are none
	uint64_t heap_sample_bytes; // mean bytes between two samples of the heap, at most; 0 = each block is recorded
	size_t domain_count;        // domains that were used in any process
	struct model_domain *domains;
	size_t site_count;
	struct model_site *sites;
	size_t cell_count;
	struct model_cell *cells;
	size_t failed_count;
	struct model_failed *failed; // the last of each process, oldest first
	size_t damage_count;
	size_t capture_damage_count; // of them, the first ones: about captures, not about program files that are gone
	size_t under_way_count;      // of these, where a request that was in progress at the end of its process explains it
	size_t damaged_places;       // about captures, those without a line included
	uint64_t unlisted_bytes;     // live in domains, of no site that is left; in salvage
	const char *const *damages;  // one line each: a capture or section that could not be read whole
	const char *session;
	size_t session_count;          // how many there are in the folder of which this one was taken; 1 = no other
	const char *project;           // of the options
	const char *distrusted;        // a line about captures that come from other users; NULL = there are none
	bool needs_salvage;            // to be read again: option --salvage
	const struct text_pool *texts; // where they live; NULL = elsewhere
	// for a command line, as a shell takes it: the capture, or the folder when they are several
	const char *argument;
};

/* A model whose figures are final: rankings, verdict and gate take it. model_finish() makes it; nothing writes the model afterwards. */
struct finished_model {
	const struct model *model;
};

/* For how many bytes a sample of such a domain stands; 0 = its figures are no estimates from a sample. */
uint64_t model_sample_bytes(const struct model *model, enum domain_kind kind);

/* What a file of the model is called on disk, where its name has bytes that cannot be shown. Owned by the model. */
const char *model_file_on_disk(const struct model *model, const char *file);

/* The highest sum of `values`, one for each process, over processes that ran at the same time, as far as that is known. */
uint64_t model_together(const struct model_process *processes, size_t count, const uint64_t *values);

/*
 * The bytes of all allocations for which the recorder had no room, released or not, summed over the processes. 0 where they are too few
 * beside what was live at the peaks to change a verdict.
 */
uint64_t model_unrecorded_bytes(const struct model *model);

/* A forked child whose pages nobody looked at in time may have copied much or nothing; not if it had hardly a page fault. */
bool model_is_copied_known(const struct model_process *process);

/* The first damage, and how many. Where requests that were in progress explain them all, none may be one. */
#define MODEL_DAMAGE_BYTES 1024
const char *model_damage_text(const struct model *model, char text[MODEL_DAMAGE_BYTES]);

bool model_could_not_grow(const struct model *model); // some capture: its disk, or its address space, was full

/* Its last heartbeat, and when that was; an idle process writes none. NULL and 0 = never. */
const struct kmem_heartbeat *model_last_beat(const struct model_process *process);
/* Three quarters of the limit of its cgroup were charged at its last heartbeat: what grows fast fills the rest in between. */
bool model_was_nearly_full(const struct model_process *process);
uint64_t model_last_seen_ns(const struct model_process *process);
/* CLOCK_MONOTONIC when it had ended for certain; 0 = unknown: a process whose capture was not closed may have lived on. */
uint64_t model_ended_ns(const struct model_process *process);

/* Sets the generations of `sum` to those that these sites of one process have together. */
void model_generations_join(const struct model_site *const *sites, size_t count, struct model_site *sum);

/* Two figures of a site, where a table wants functions. */
uint64_t model_site_peak(const struct model_site *site);
uint64_t model_site_live(const struct model_site *site);

/* Of one frame of the site's. */
enum model_relation model_relation_of(const struct model_site *site, uint32_t frame_index);
/* The line of the user's that called the site's function, past itself where it recurs; NULL = there is none. */
bool model_has_tick(const uint64_t ticks[MODEL_TICK_WORDS], uint64_t tick); // born or alive
const struct model_frame *model_caller_of(const struct model_site *site);
int model_compare_functions(const struct model_frame *left, const struct model_frame *right); // 0 = one
/* What the standard library called for the user's line, as a loop of events or a pool does, of a package; NULL: the line called it itself, or nobody did. */
const struct model_frame *model_entered_package(const struct model_site *site);
/* By number; NULL behind the last. */
const char *model_relation_name(unsigned relation); // "" for its own, "while", "started by"
const char *model_leak_name(unsigned leak);
enum model_leak_class model_leak_named(const char *name); // MODEL_LEAK_CLASSES: there is none of that name

/* Which of two classes stands for several sites? A leak before all others; what an import left only where all sites agree. */
bool model_leak_is_more_telling(enum model_leak_class leak, enum model_leak_class than);

#endif
