/*
 * report.h - what a person or a machine is told: verdict, totals, lines, sites, losses.
 *
 * report_build() makes it from the model and one ranking; renderers see nothing else, so the text says what the JSON
 * says. Everything points into the model, which must live longer. Strings are valid UTF-8, "" when unknown, never
 * NULL; they may hold control characters, which each renderer escapes in its own way. Bytes are requested bytes.
 *
 * `lines` is what people read: one line of code in one domain, the sum of its sites (rank.h says why). `sites` is
 * the same, one row per stack, line by line in the same order, the largest of a line first.
 */
#ifndef REPORT_H
#define REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/device_parts.h"
#include "base/fail.h"
#include "kmem_format.h"

#define REPORT_SCHEMA 2

struct model;
struct ranking;
struct report_stack; // opaque: frames are made readable one at a time by report_frame()

/* What was freed and is still in memory, of one process; at the last look, or at the last heartbeat where more is known by that. */
struct report_fragmentation {
	uint64_t freed_bytes;    // 0 = not worth telling
	uint64_t heap_bytes;     // malloc's, in memory
	uint64_t live_bytes;     // the rest of it
	uint64_t resident_bytes; // of the process then
	uint64_t empty_bytes;    // as in struct report_heap_pages; 0 where nobody looked at pages then
	uint64_t sparse_bytes;
	uint64_t sparse_live_bytes;
	uint64_t share_ppm; // freed_bytes of resident_bytes
	bool is_later;      // from sums at the last heartbeat, after the look
};

struct report_part {
	const char *name;
	uint64_t bytes;
};

struct report_memory;

struct report_finding {
	const char *kind; // finding_name()
	uint64_t bytes;   // 0 = no amount
	uint64_t share_ppm;
	const char *where; // a line as texts write it; NULL = none
	const char *confidence;
};

struct report_verdict {
	const char *cause;
	const char *confidence; // "certain", "likely", "possible", "unknown"
	const char *text;
	const char *next;
	const struct report_memory *memory; // where what was in memory was; NULL = nobody looked
	uint64_t untouched_bytes;           // asked for, not in memory, and told in text; 0 = no
	size_t finding_count;
	const struct report_finding *findings; // in the order of the text
	size_t advice_count;
	const char *const *advice; // names of what next says
	const char *domain;        // what text and next are about; NULL = the end of the program
};

/* Of figures that are no exact counts: small objects of Python, what they leave of arenas, and memory of libraries' own allocators. */
struct report_estimate {
	bool is_estimated;
	uint64_t error_bytes;      // of live_bytes, in 95 of 100 cases; 0 = exact, or not known
	uint64_t peak_error_bytes; // the same of peak_bytes
	uint64_t samples;          // that live_bytes is estimated from; 0 = exact, or not known
	bool
		is_rest_of_arenas; // what arenas take is exact; live and peak bytes are that, less the objects of python/object
};

struct report_domain {
	const char *name;
	struct report_estimate estimate;
	uint64_t live_bytes;
	uint64_t live_count;
	uint64_t peak_bytes;
	uint64_t allocated_bytes;
	uint64_t allocated_count;
	uint64_t freed_bytes;
	uint64_t freed_count;
	uint64_t inherited_bytes;       // of parents, at fork; in no other figure
	uint64_t concurrent_peak_bytes; // highest sum of the peaks of processes that ran at the same time
	uint64_t together_live_bytes;   // the same of what they left
	uint64_t peak_resident_bytes;   // 0 = not seen
	uint64_t untouched_bytes;       // of live_bytes, not in memory at the last look
	uint64_t returned_bytes;        // of live mappings, given back to the system by madvise; counted at each call
	uint64_t lost_sites;            // allocations booked without their stack, because there was no room for it
	uint64_t lost_stacks;           // allocations whose stack could not be taken
	bool is_address_space;          // reserved, file: not memory
	bool is_device;
	bool is_at_refusal; // live figures are those of the moment when a request was refused that ended a process
	size_t part_count;  // of a device: what its live bytes are made of; 0 = it is no device
	struct device_part parts[DEVICE_PARTS_MAX];
};

/* Of what was asked for, how much is memory: at the last look at the resident set, and bounded by what is still live. */
struct report_in_memory {
	uint64_t untouched_bytes;      // of live_bytes: not in memory
	uint64_t large_bytes;          // blocks and mappings of 1 MiB and more, at that look
	uint64_t large_resident_bytes; // of these, in memory
	uint64_t pinned_bytes;         // about: pages of malloc's, less than half full, that its blocks keep
};

/* Malloc's pages in memory, without those of large blocks, at a look; from a sample. */
struct report_heap_pages {
	uint32_t sampled_pages; // 0 = nobody looked
	uint64_t bytes;
	uint64_t empty_bytes;       // of these, without a live block
	uint64_t sparse_bytes;      // of these, with live blocks in less than half
	uint64_t sparse_live_bytes; // requested bytes of those blocks
};

/* What a parent held when it forked. */
struct report_built {
	uint64_t key; // of its site
	uint64_t live_bytes;
};

struct report_process {
	uint32_t pid;
	uint32_t parent_pid;
	int parent;       // number of its parent in report.processes; -1 = none of these
	const char *path; // of the capture
	const char *name;
	const char *command; // as a shell would take it
	const char *directory;
	const char *state;          // "running", "exited", "exec-replaced", "signal", "gone", "starting", "unknown"
	int exit_status;            // -1 = none or unknown
	int signal;                 // 0 = none or unknown
	const char *python_version; // "3.11.7"; "" = no interpreter
	const char *tool_version;   // of the recorder
	uint64_t start_realtime_ns;
	uint64_t live_bytes;
	uint64_t peak_bytes; // at least: the highest of its domains' peaks and of what was live in all at a look
	uint64_t allocated_bytes;
	uint64_t refused_count;   // requests, also those that are not in report.requests any more
	uint64_t inherited_bytes; // live in the parent at fork
	uint64_t copied_bytes;    // of that, by writing to it: at least so much, in whole pages
	bool is_copied_known;     // false: it ended without a sample, or is running
	size_t built_count;
	const struct report_built *built;    // what it inherited, the most first
	uint64_t resident_bytes;             // at the last heartbeat
	const uint64_t *resident_parts;      // enum kmem_resident_part, bytes at the last look; NULL = none
	uint64_t resident_sampled_bytes;     // their sum
	const uint64_t *own_bytes;           // of those of the recorder, enum kmem_own_part
	struct report_heap_pages heap_pages; // then
	struct report_fragmentation fragmentation;
	uint64_t resident_age_ns; // from that look to the end or, where that is not known, to the last heartbeat
	bool is_end_known;
	uint64_t limit_bytes; // in force then; UINT64_MAX = none
	uint64_t losses[KMEM_LOSS_COUNT];
	size_t note_count;
	const char *const *notes;
};

/* "brk", "heap", ..., "not attributed"; NULL = no such part. The second one says what it is, or "". */
const char *report_resident_name(unsigned part);
const char *report_resident_meaning(unsigned part);
const char *report_own_name(unsigned part); // "addresses", ...; NULL = no such part

/* What texts may say, by number from 0; NULL behind the last. */
const char *report_cause(unsigned number);
const char *report_confidence(unsigned number);
const char *report_relation(unsigned number);
const char *report_leak_class(unsigned number);
const char *report_request_state(unsigned number);

struct report_frame {
	const char *kind; // "python", "native"
	const char *function;
	const char *file;
	uint32_t line; // 0 = unknown
	const char *module;
	uint64_t offset;      // as in struct report_place
	const char *relation; // as in struct report_place
	bool is_of_starter;   // the relation is "started by"
	bool is_user;
	bool is_inlined;
	bool is_repeated;     // it called itself, and further frames of it were left out behind this one
	const void *identity; // equal for equal frames
};

struct report_place {
	bool is_known;
	const char *file;
	uint32_t line;
	const char *function;
	const char *module;
	uint64_t offset;        // in the module, of native code without any name; 0 = none
	const char *relation;   // "" = of the stack itself; else "while", "started by"
	const char *source;     // text of the line; "" = unknown
	bool is_source_changed; // unknown because the file was changed since the program started
};

/* A line of code at a refusal. */
#define REPORT_HOLDERS_MAX 3
struct report_holder {
	const char *domain;
	uint64_t live_bytes;
	uint64_t live_count;
	struct report_place where;
};

struct report_pinning {
	struct report_place where;
	uint64_t pinned_bytes;
};

/* Of the processes that ran at the end, at their last looks. */
#define REPORT_MEMORY_PARTS_MAX 12
#define REPORT_PINNING_MAX 3
struct report_memory {
	uint64_t bytes;            // the sum of the parts
	uint64_t sample_bytes;     // that the looks saw
	uint64_t age_ns;           // of the oldest of these looks
	uint64_t kept_bytes;       // freed, and not given back, where that is worth telling; 0 = no
	uint64_t kept_empty_bytes; // of that, pages that malloc_trim() gives back
	uint32_t fragmented_pid;   // the process that kept_bytes is of
	size_t pinning_count;
	struct report_pinning pinning[REPORT_PINNING_MAX]; // lines whose few blocks keep pages, the most first
	size_t part_count;
	struct report_part parts[REPORT_MEMORY_PARTS_MAX]; // the largest first
};

struct report_request {
	uint64_t bytes;
	const char *domain;
	const char *state; // "pending", "recovered", "fatal"
	bool is_recovered;
	int error; // errno, or the CUDA result
	uint32_t pid;
	struct report_place where;
	/* Of the device that refused, at that moment. */
	const char *device;   // "cuda:0"; NULL = it was no device
	uint64_t free_bytes;  // as the driver said
	uint64_t total_bytes; // 0 = it did not say
	bool is_composed;     // what follows is known; of the process that was refused
	uint64_t live_bytes;
	uint64_t tensor_bytes;    // a part of live_bytes
	uint64_t pool_kept_bytes; // by the driver's pools, given out to nobody
	uint64_t untracked_bytes; // in use and not recorded: contexts, kernels, other processes; 0 without total_bytes
	uint64_t pinned_bytes;    // host memory
	uint64_t managed_bytes;
	size_t part_count; // they add up to live_bytes
	struct device_part parts[DEVICE_PARTS_MAX];
	size_t holder_count;
	// the lines that held most of the tensors, or of the device without any
	struct report_holder holders[REPORT_HOLDERS_MAX];
};

struct report_leak {
	const char *class_name;
	uint32_t generations_alive;
	uint32_t generations_total;
	uint64_t bytes_per_generation;
};

/* Python objects that were alive, about so many. */
#define REPORT_TYPES_MAX 4
struct report_type {
	const char *name;
	uint64_t count;
};

struct report_site {
	uint64_t key;
	const char *domain;
	uint64_t live_bytes;
	uint64_t live_count;
	uint64_t released_bytes; // of live_bytes, after the program began to exit
	uint64_t peak_bytes;     // held at the moment of the domain's peak
	uint64_t allocated_bytes;
	uint64_t allocated_count;
	struct report_in_memory in_memory;
	struct report_estimate estimate;
	const char *library; // whose own allocator grew here: of the domain "library", estimated; "" = none
	struct report_leak leak;
	struct report_place where;
	const char *import; // left behind by importing this top-level module; "" = not so, or unknown
	uint32_t process_count;
	unsigned type_count;
	struct report_type types[REPORT_TYPES_MAX]; // the most frequent first
	const char *lost;    // why there are no frames: "no-room", "no-stack", "unfinished"; "" = there are
	bool is_python_only; // native frames were not recorded, for the site held little
	uint32_t frame_count;
	uint32_t frames_omitted; // left out after the first frames_before_gap
	uint32_t frames_before_gap;
	const struct report_stack *stack;
};

struct report_line {
	const char *domain;
	struct report_place where;
	uint64_t live_bytes;
	uint64_t live_count;
	uint64_t released_bytes; // of live_bytes, after the program began to exit
	uint64_t peak_bytes;
	uint64_t allocated_bytes;
	uint64_t allocated_count;
	struct report_in_memory in_memory;
	struct report_estimate estimate;
	const char *library;             // as in struct report_site, of its largest
	uint64_t domain_bytes;           // what the ranked figure is a share of: the domain's peak or live bytes,
	uint64_t domain_untouched_bytes; // of which so much is not in memory
	struct report_leak leak;         // class of the line; generations of its largest site of that class
	uint64_t leaking_bytes;          // live bytes of its sites of class leak
	bool may_be_built_once;          // of class leak, but little else was allocated meanwhile: perhaps a data set
	bool is_device;
	bool is_address_space; // holds no memory
	bool is_import;        // nothing but what an import or the start of the interpreter left behind
	bool is_start_up;      // of these: the start of the interpreter
	const char *import;    // of imports: the top-level module; "" = unknown
	size_t first_site;     // number of its first site in the ranking, from 0
	size_t site_count;
	unsigned type_count; // of all its sites
	struct report_type types[REPORT_TYPES_MAX];
	bool are_types_older; // counted some time before the end, and far from the blocks that are alive now
	struct report_site largest;
};

struct report_options {
	const char *domain;        // NULL = all
	bool is_verdict_of_domain; // with domain: the verdict is about that alone
	uint64_t top;              // how many lines and sites; UINT64_MAX = all
	uint64_t frames_bytes;     // JSON: text for frames of sites at most
};

struct report {
	const char *ranking; // "peak", "leaks", "sites"
	const char *heading;
	const char *session;
	const char *argument; // as in struct model
	const char *domain;   // as in report_options
	struct report_verdict verdict;
	size_t domain_count;
	struct report_domain *domains; // all, also those that options.domain leaves out below
	size_t process_count;
	struct report_process *processes;
	size_t unknown_end_count; // as in struct model
	size_t request_count;
	struct report_request *requests;
	uint64_t losses[KMEM_LOSS_COUNT]; // all processes
	uint64_t verify_checked;
	uint64_t verify_mismatched;
	uint64_t peak_error_bytes; // how far peaks of one process may be off at most; 0 = exact
	bool is_finalizing;        // figures are those of the moment when Python began to shut down
	bool is_at_exit;           // of a process, those of the moment when it began to exit
	uint64_t after_exit_bytes; // what was allocated since then, about
	size_t line_count;         // shown
	size_t line_total;         // in all
	size_t site_count;         // shown
	size_t site_total;
	uint64_t frames_bytes; // as in report_options
	bool is_damaged;       // what was read is what is intact of captures
	size_t damage_count;
	const char *const *damages;
	struct report_rows *rows; // behind report_line() and report_site()
};

/*
 * model     is judged (model_judge()), and must outlive the report
 * returns   NULL and *fail filled when options.domain is none of the capture's
 */
struct report *report_build(struct model *model, const struct ranking *ranking, const struct report_options *options,
                            struct fail *fail);
void report_free(struct report *report);

/* The same report seen through another ranking, sharing all but lines and sites. */
bool report_rank(struct report *report, const struct ranking *ranking, const struct report_options *options,
                 struct fail *fail);

/* Rows by number from 0, in ranking order; made when asked for: a capture may have 100,000. */
struct report_line report_line(const struct report *report, size_t number);
/* The same without the text of the line, its types and its largest site, which take time. */
struct report_line report_line_figures(const struct report *report, size_t number);
struct report_site report_site(const struct report *report, size_t number);
struct report_frame report_frame(const struct report_site *site, uint32_t number);

/* False: report->domain leaves this one out of texts. */
bool report_has_domain(const struct report *report, const char *name);

/* What it means for a reader of the report, behind the number; NULL = a number that has no meaning in this version. */
const char *report_loss_meaning(unsigned loss, uint64_t count);
/* True when something is missing in the figures; false for costs and choices that are only worth knowing. */
bool report_loss_is_serious(unsigned loss);

#endif
