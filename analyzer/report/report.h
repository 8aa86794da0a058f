/*
 * report.h - what a person or a machine is told: verdict, totals, lines, sites, losses.
 *
 * report_build() makes it from the model and one ranking. Renderers see nothing else, so the text says what the JSON says. A member `of`
 * holds what the model, the ranking or the verdict knows of the same thing. Everything points into the model, which must live longer.
 * Strings are valid UTF-8, "" when unknown, never NULL. They may hold control characters, which each renderer escapes in its own way.
 * Bytes are requested bytes.
 *
 * `lines` is what people read: one line of code in one domain, the sum of its sites (rank.h says why). `sites` is the same, one row per
 * stack, line by line in the same order, the largest of a line first.
 */
#ifndef REPORT_H
#define REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/device_parts.h"
#include "analysis/line_growth.h"
#include "analysis/line_steps.h"
#include "analysis/rank.h"
#include "analysis/refused_requests.h"
#include "base/fail.h"
#include "base/place.h"
#include "kmem_format.h"
#include "model/model.h"
#include "model/model_holders.h"
#include "symbols/source_lines.h"
#include "verdict/causes.h"
#include "verdict/facts.h"
#include "verdict/findings.h"

#define REPORT_SCHEMA 2

/* What one process has freed and is still in memory: at the last look, or at the last heartbeat where that knows more. */
struct report_fragmentation {
	struct verdict_freed of; // its lines are not filled in
	uint64_t live_bytes;     // the rest of malloc's pages
	uint64_t share_ppm;      // freed_bytes of resident_bytes
};

struct report_memory;

struct report_finding {
	enum finding_kind kind;
	uint64_t bytes; // 0 = no amount
	uint64_t share_ppm;
	const char *where; // a line as texts write it; NULL = none
	enum verdict_confidence confidence;
};

struct report_verdict {
	enum verdict_cause cause;
	enum verdict_confidence confidence;
	const char *headline; // the cause, the line, who holds it; at most a few lines
	const char *next;
	const char *evidence; // what that rests on, and what else was found; "" = nothing
	const char *text;     // headline and evidence
	size_t bar_count;     // where the memory was that the headline names; 0 = it names none
	struct verdict_part bar[VERDICT_BARS];
	const struct report_memory *memory; // where what was in memory was; NULL = nobody looked
	uint64_t untouched_bytes;           // asked for, not in memory, and told in text; 0 = no
	size_t finding_count;
	const struct report_finding *findings; // in the order of the text
	size_t advice_count;
	const char *const *advice; // names of what next says
	const char *domain;        // what text and next are about; NULL = the end of the program
	bool has_ended_well;       // as in struct verdict
	bool needs_nothing;        // the same
};

/* Of figures that are estimates: small Python objects, the rest of arenas without them, memory of libraries' own allocators. */
struct report_estimate {
	const char *library; // whose own allocator grew, of domain "library"; NULL = none
	bool is_estimated;
	uint64_t error_bytes;      // of live_bytes, in 95 of 100 cases; 0 = exact, or not known
	uint64_t peak_error_bytes; // the same of peak_bytes
	uint64_t samples;          // that live_bytes is estimated from; 0 = exact, or not known
	bool
		is_rest_of_arenas; // live and peak bytes are what arenas take, which is exact, less the objects of python/object
};

struct report_domain {
	struct model_domain of;
	struct report_estimate estimate;
	uint64_t lost_sites;   // allocations booked without their stack, because there was no room for it
	uint64_t lost_stacks;  // allocations whose stack could not be taken
	bool is_address_space; // reserved, file: not memory
	bool is_device;
	struct device_parts parts; // of a device: what its live bytes are made of; none: it is no device
};

/* What a parent held when it forked. */
struct report_built {
	uint64_t key; // of its site
	uint64_t live_bytes;
	uint64_t copied_bytes;
	bool is_estimated;
	uint64_t error_bytes; // of copied_bytes, in 95 of 100 cases
};

enum report_steps_of { REPORT_STEPS_NONE, REPORT_STEPS_CELLS, REPORT_STEPS_LOOP, REPORT_STEPS_PROGRAM };
const char *report_step_source(unsigned number); // NULL, "cells", "loop", "program"

/* Rounds of what a process does again and again. */
struct report_steps {
	uint64_t count; // 0 = none, and nothing else here is known
	enum report_steps_of source;
	bool is_estimated;
	const char *file; // of a loop: the line that comes again; "" = unknown
	uint32_t line;
	const char *function;
	uint64_t ns; // of one, on average; 0 = not known
};

/* A moment with a name. */
struct report_mark {
	struct model_mark of;
	uint64_t age_ns; // since the start of its process
};
const char *report_mark_kind(unsigned number); // NULL, "program", "outside", "guard", "refused", "even", "high-water"

struct report_place {
	bool is_known;
	const char *file;
	uint32_t line;
	const char *function;
	const char *module;
	uint64_t offset; // in the module, of native code without any name; 0 = none
	enum model_relation relation;
	const char *source;     // text of the line; "" = unknown
	bool is_source_changed; // unknown because the file was changed since the program started
};

#define REPORT_TIMELINE_LINES 10 // of host memory, and as many of devices'
struct report_timeline_line {
	const char *domain;
	unsigned domain_index; // in report.domains
	struct report_place where;
	bool is_import;     // what an import left behind
	const char *import; // its top-level module; NULL = none
};
struct report_point {
	struct model_point of;
	uint64_t age_ns; // since the start of the process
	size_t domain_count;
	uint64_t *domain_bytes; // live in each of the timeline's domains
	size_t line_count;
	uint64_t *line_bytes; // at each of its lines; 0 also where others held more
};
struct report_timeline {
	size_t domain_count;
	unsigned *domains; // index in report.domains
	const char **domain_names;
	size_t line_count;
	// those that held most at any point, the most first: of host memory, then of devices
	struct report_timeline_line *lines;
	size_t point_count;          // 0 = nothing is known
	struct report_point *points; // oldest first
};

/* signal: it ended by one, as its launcher saw. unknown: not closed, another boot or machine. */
enum report_state {
	REPORT_STARTING,
	REPORT_RUNNING,
	REPORT_EXITED,
	REPORT_EXEC_REPLACED,
	REPORT_SIGNAL,
	REPORT_GONE,
	REPORT_UNKNOWN
};
const char *report_state_name(unsigned number); // "starting"; NULL behind the last

struct report_process {
	struct model_process of;
	uint32_t pid;
	uint32_t parent_pid;
	const char *command; // as a shell would take it
	const char *directory;
	enum report_state state;
	int exit_status;            // -1 = none or unknown
	int signal;                 // 0 = none or unknown
	const char *python_version; // "3.11.7"; "" = no interpreter
	const char *tool_version;   // of the recorder
	uint64_t start_realtime_ns;
	uint64_t peak_bytes;  // at least: the highest of its domains' peaks and of what was live in all at a look
	bool is_copied_known; // false: nobody looked, and it was killed or is running, or faulted too much to tell
	const struct report_built *built; // what it inherited, the most first; of.built_count
	uint64_t resident_bytes;          // at the last heartbeat
	const uint64_t *resident_parts;   // enum kmem_resident_part, bytes at the last look; NULL = none
	uint64_t resident_sampled_bytes;  // their sum
	uint64_t resident_age_ns;         // of the last look to the end or, where that is not known, to the last heartbeat
	struct report_fragmentation fragmentation;
	bool is_end_known;
	uint64_t limit_bytes;   // in force then; UINT64_MAX = none
	uint64_t machine_bytes; // what the machine has
	struct report_steps steps;
	const struct report_mark *marks; // oldest first; of.mark_count
	struct report_timeline timeline; // what it held over time
	uint64_t max_resident_bytes;     // verdict_most_resident_of() it
	uint64_t
		max_charged_bytes; // to the cgroup with the limit, at a heartbeat, where that was less than it had in memory; 0 = it was not, or none saw most of that
};

/* "brk", "heap", ..., "not attributed"; NULL = no such part. The second one says what it is, or "". */
const char *report_resident_name(unsigned part);
const char *report_resident_meaning(unsigned part);
const char *report_own_name(unsigned part); // "addresses", ...; NULL = no such part

/* What texts may say, by number from 0; NULL behind the last. */
const char *report_relation(unsigned number); // of MODEL_RELATION_OWN too
const char *report_line_pace(unsigned number);

struct report_frame {
	struct model_frame of;
	uint64_t offset; // as in struct report_place
	enum model_relation relation;
	const struct model_frame *identity; // equal for equal frames
};

/* A line of code at a refusal. */
#define REPORT_HOLDERS_MAX 3
struct report_holder {
	const char *domain;
	bool is_estimated;
	uint64_t live_bytes;
	uint64_t live_count;
	struct report_place where;
	uint64_t held_samples;         // as in struct report_line
	const struct holders_way *way; // of most samples; NULL = not known
};

struct report_pinning {
	struct report_place where;
	uint64_t pinned_bytes;
};

/* Of the processes that ran at the end, at their last looks. */
struct report_memory {
	struct verdict_memory of;
	uint32_t fragmented_pid; // the process that of.freed is about
	size_t pinning_count;
	struct report_pinning pinning[VERDICT_PINNING_MAX]; // lines whose few blocks keep pages, the most first
};

struct report_request {
	struct model_failed of;
	const char *domain;
	enum refusal_state state;
	uint32_t pid;
	struct report_place where;
	/* Of the device that refused, at that moment. */
	const char *device; // "cuda:0"; NULL = it was no device
	bool is_composed;   // what follows is known; of the process that was refused
	// in use and not recorded: contexts, kernels, other processes; 0 where the driver did not say
	uint64_t untracked_bytes;
	uint64_t pinned_bytes; // host memory
	uint64_t managed_bytes;
	struct device_parts parts; // what it held there
	size_t holder_count;
	// the lines that held most of the tensors, or of the device without any
	struct report_holder holders[REPORT_HOLDERS_MAX];
};

/* The last time that a process passed its guard. */
#define REPORT_GUARD_LINES_MAX 10
struct report_guard {
	struct kmem_guard_passing of; // number 0: no process did, and nothing else here is known
	uint32_t pid;
	const char *limit;          // report_guard_limit()
	const char *action;         // report_guard_action()
	bool is_action_in_vain;     // SIGINT is ignored, or nobody could run the command
	uint64_t before_end_ns;     // before the end, or the last heartbeat
	const struct holders *look; // at who holds what, then or at an earlier passing; NULL = nobody looked
	const char *no_look;        // why nobody looked, where that is known; else NULL
	uint64_t live_bytes;        // of memory, at all lines then; 0 = not known
	size_t line_count;
	struct report_holder lines[REPORT_GUARD_LINES_MAX]; // the most first
};

/* Why a site has no frames. */
enum report_lost { REPORT_LOST_NO_ROOM, REPORT_LOST_NO_STACK, REPORT_LOST_UNFINISHED, REPORT_LOST_NOTHING };
const char *report_lost_name(unsigned lost); // NULL: nothing is lost

struct report_site {
	struct model_site of;
	const char *domain;
	struct report_estimate estimate;
	struct report_place where;
	const char *import; // left behind by importing this top-level module; "" = not so, or unknown
	enum report_lost lost;
	bool is_python_only; // native frames were not recorded, for the site held little
};

/* A line that releases blocks of another one. */
struct report_release {
	struct report_place where;
	uint64_t count; // of watched blocks
};

/* The caller whose blocks stay: as struct kept_way. */
struct report_kept {
	struct report_place through;
	uint64_t live_count;
	uint64_t allocated_count;
	uint64_t other_live_count;
	uint64_t other_allocated_count;
};

struct report_line {
	struct rank_line of;
	const char *domain;
	struct report_place where;
	struct report_estimate estimate;
	uint64_t domain_bytes;           // what the ranked figure is a share of: the domain's peak or live bytes,
	uint64_t domain_untouched_bytes; // of which so much is not in memory
	bool
		may_be_built_once; // of class leak, but perhaps a data set: little else was allocated meanwhile, or it is too new
	bool is_device;
	bool is_address_space; // holds no memory
	bool is_in_each;       // shared mappings of several processes: one that is the same is counted in each
	bool is_start_up;      // of imports: the start of the interpreter
	const char *import;    // of imports: the top-level module; "" = unknown
	unsigned type_count;   // of all its sites
	struct model_tally types[MODEL_TYPES_MAX];
	bool are_types_older;  // counted some time before the end, and far from the blocks that are alive now
	uint64_t held_samples; // blocks of which a look knows how they were held; 0 = nobody looked
	size_t way_count;
	const struct holders_way *ways; // how, those of most samples first
	unsigned release_count;
	uint64_t watched_releases;   // of which `releases` are a part
	uint64_t temporary_of;       // the same, as far as the capture had room for these:
	uint64_t temporary_releases; // of them, released before their thread allocated again
	struct report_release releases[MODEL_RELEASES_MAX];
	struct line_growth growth;
	uint64_t filled_bytes;           // of class filling: at so many it seems to end; else 0
	struct line_steps kept_in_steps; // of class leak
	struct report_place grows_with;  // is_known: it leaks together with this line, which is before it in the ranking
	size_t others_that_grow;         // lines that leak together with this one; of the first of them
	uint64_t other_growing_bytes;    // what these hold
	struct report_kept kept;         // of classes that accumulate; through.is_known: there is such a caller
	struct report_site largest;
};

struct report_options {
	const char *domain;        // NULL = all
	bool is_verdict_of_domain; // with domain: the verdict is about that alone
	uint64_t top;              // how many lines and sites; UINT64_MAX = all
	uint64_t frames_bytes;     // JSON: text for frames of sites at most
};

struct report {
	enum rank_of ranking;
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
	struct report_guard guard;
	struct verdict_forecast forecast;
	size_t request_count;
	struct report_request *requests;
	uint64_t losses[KMEM_LOSS_COUNT]; // all processes
	struct model_efforts efforts;     // the same
	uint64_t verify_checked;
	uint64_t verify_mismatched;
	uint64_t peak_error_bytes;  // how far peaks of one process may be off at most; 0 = exact
	uint64_t heap_sample_bytes; // mean bytes between two recorded blocks of the heap; 0 = each is recorded
	bool is_finalizing;         // figures are those of the moment when Python began to shut down
	bool is_at_exit;            // of a process, those of the moment when it began to exit
	uint64_t after_exit_bytes;  // what was allocated since then, about
	size_t line_count;          // shown
	size_t line_total;          // in all
	size_t site_count;          // shown
	size_t site_total;
	uint64_t frames_bytes; // as in report_options
	bool is_damaged;       // what was read is what is intact of captures
	size_t damage_count;
	const char *const *damages;
	struct report *then;      // behind guard.lines; NULL = none
	struct report_rows *rows; // behind report_line() and report_site()
};

/*
 * model     is finished (model_finish()), and must outlive the report
 * returns   NULL and *fail: the capture has no domain options.domain
 */
struct report *report_build(struct model *model, const struct ranking *ranking, const struct report_options *options,
                            struct fail *fail);
void report_free(struct report *report);

/*
 * Tells in `report` which lines held what when the guard was passed; without a guard nothing.
 *
 * then  built from the same model as it was at that moment (model_options.is_at_guard); it must outlive the report, which frees `then`
 *       itself
 */
void report_tell_guard(struct report *report, struct report *then);

/* "cgroup", "address-space", "machine"; "note", "interrupt", "raise", "exec". By number from 0, NULL behind the last. */
const char *report_guard_limit(unsigned number);
const char *report_guard_action(unsigned number);

/* The same report by another ranking: only lines and sites are made anew. */
bool report_rank(struct report *report, const struct ranking *ranking, const struct report_options *options,
                 struct fail *fail);

/* Rows by number from 0, in ranking order; made when asked for: a capture may have 100,000. */
struct report_line report_line(const struct report *report, size_t number);
/* The same without the text of the line, its types and its largest site, which take time. */
struct report_line report_line_figures(const struct report *report, size_t number);
struct report_site report_site(const struct report *report, size_t number);
/* The file that a line of the user's is in, as it ran. False: it is not known, or not the user's. */
struct report_source {
	const char *file; // as in struct report_place
	struct source_text text;
};
bool report_line_source(const struct report *report, size_t number, struct report_source *source);
struct report_frame report_frame(const struct report_site *site, uint32_t number);
/* The file that a frame is in, whoever's it is. text: filled where it is known. */
enum source_state report_frame_source(const struct report *report, const struct report_site *site, uint32_t number,
                                      struct source_text *text);

/* False: report->domain leaves this one out of texts. */
bool report_has_domain(const struct report *report, const char *name);
/*
 * Is this domain part of sums of several domains? Address space holds no memory. Devices are in sums only when report->domain names
 * them: the cache that tensors lie in would count twice.
 */
bool report_sums_up(const struct report *report, unsigned domain);
/* Did the domains of one process have their peaks at different times, so that their sum is more than it was seen to hold at once? */
bool report_peaks_are_apart(const struct report *report, uint64_t peak_bytes);

/* What it means for a reader of the report, behind the number; NULL = a number that has no meaning in this version. */
const char *report_loss_meaning(unsigned loss, uint64_t count);
/* True when something is missing in the figures; false for costs and choices that are only worth knowing. */
bool report_loss_is_serious(unsigned loss);
/* "train.py:41 epoch [while]" */
const char *report_place_text(const struct report_place *where, char text[PLACE_TEXT_BYTES]);
bool report_has_losses(const struct report *report, bool is_serious);

#endif
