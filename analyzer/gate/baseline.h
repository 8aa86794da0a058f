/*
 * baseline.h - what did good runs of this program hold, and where is that kept?
 *
 * A baseline is several runs reduced to figures per domain and per site family (site_key.h: the part of a key that
 * survives edits elsewhere). The same reduction of the runs under test is the other side of check.h.
 *
 * The file is JSON, sorted, one line per site, so that it compares well in review:
 *
 *   { "schema": 1, "kind": "kmemshim-baseline", "tool_version": "...", "program": "train.py",
 *     "python_version": "3.11.7" or null, "platform": "x86_64-python3.11", "runs": 3, "domain": "cuda:0" (only of a baseline of that domain alone),
 *     "heap_sample_bytes": 524288 (only of runs with KMEMSHIM_SAMPLE),
 *     "domains": [ { "domain": "heap", "live_bytes": FIGURE, "peak_bytes": FIGURE } ],
 *     "sites": [ { "key": "0123456789ab", "domain": "heap", "class": "steady", "where": "train.py:41 epoch",
 *                  "like": "HASH HASH HASH" (not of what is small), "live_bytes": FIGURE, "peak_bytes": FIGURE, "n": 3 } ] }
 *
 * FIGURE is { "min": ..., "median": ..., "max": ... } of bytes over the runs, 0 for a run without it; n is the
 * number of runs that had the site. program is the executable or script of the first process. Sites that held nothing, at the end or at the peak, are left out: they compare as 0.
 */
#ifndef BASELINE_H
#define BASELINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/fail.h"
#include "base/place.h"
#include "base/text_pool.h"
#include "gate/config.h"
#include "model/model.h"
#include "model/site_key.h"

#define BASELINE_SCHEMA 1
#define BASELINE_NAME_BYTES 40
#define BASELINE_PROGRAM_BYTES 256

struct baseline_figure {
	uint64_t min;
	uint64_t median; // of an even number: the lower of the middle two
	uint64_t max;
};

struct baseline_domain {
	char name[BASELINE_NAME_BYTES];
	enum domain_kind kind;
	struct baseline_figure live_bytes;
	struct baseline_figure peak_bytes;
	// rank_elsewhere_bytes() of the run that had most; 0 = every line holds what is its own
	uint64_t elsewhere_bytes;
};

/* A line, as it was recorded. */
struct baseline_place {
	char where[PLACE_TEXT_BYTES]; // "" = none
	const char *file;             // "" = unknown
	uint32_t line;                // 0 = unknown
	uint64_t bytes;               // of the call site that it is from
};

struct baseline_site {
	uint64_t family;
	char domain[BASELINE_NAME_BYTES];
	enum domain_kind domain_kind;
	char where[PLACE_TEXT_BYTES];           // of the run that held most
	enum model_leak_class leak;             // of the run in which it was most telling
	bool is_elsewhere;                      // rank_is_elsewhere() of one of its sites, in a run; not in the file
	bool may_accumulate;                    // rank_may_accumulate() of one of its sites; not in the file
	bool has_accumulated;                   // rank_has_accumulated() of one of them; not in the file
	const char *file;                       // of `where`, as it was recorded; "" = unknown; not in the file
	uint32_t line;                          // 0 = unknown; not in the file
	struct baseline_place growing;          // the line that grows, where several share the family; not in the file
	size_t suppression;                     // 1 + its row in the configuration; 0 = none fits; not in the file
	struct baseline_figure step_bytes;      // that it kept in each step, as far as it grows; not in the file
	uint64_t likeness[SITE_KEY_LIKENESSES]; // site_key.h
	uint64_t run_count;                     // runs that had it
	struct baseline_figure live_bytes;
	struct baseline_figure peak_bytes;
};

struct baseline {
	uint64_t run_count;
	char program[BASELINE_PROGRAM_BYTES]; // "" = the file does not say
	char python_version[16];              // "" = no interpreter
	char platform[BASELINE_NAME_BYTES];   // "x86_64-python3.11"; "" = the file does not say
	char domain[BASELINE_NAME_BYTES];     // the others are left out; "" = all are there
	uint64_t
		heap_sample_bytes; // as in struct model, of the run in which it is most; 0 = each block of the heap was recorded
	uint64_t generations;  // that a line has seen, of the run where that is least (rank.h); not in the file
	uint64_t steps;        // of the run with the fewest; 0 = one has none; not in the file
	const char *command;   // of the first run, as a shell takes it; "" = not known; not in the file
	size_t domain_count;
	struct baseline_domain *domains; // by name
	size_t site_count;
	struct baseline_site *sites; // by family
	struct text_pool *texts;     // NULL: there are none
};

/* Collects runs one at a time, so that only one model is in memory. */
struct baseline_builder *baseline_begin(void);
/* Tells from now on which lines the configuration suppresses. It must outlive the baseline. */
void baseline_watch(struct baseline_builder *builder, const struct config *config);
void baseline_add_run(struct baseline_builder *builder, struct finished_model finished);
/* Of the runs so far; "" = there are none. */
const char *baseline_builder_program(const struct baseline_builder *builder);
/* The name by which runs of the same program are known: "train.py"; an interpreter without its version: "python". */
const char *baseline_program(const struct model *model, char program[BASELINE_PROGRAM_BYTES]);
/* Frees the builder. */
struct baseline *baseline_finish(struct baseline_builder *builder);
void baseline_free(struct baseline *baseline);

/* Only domains that rank_domain_matches() finds for `domain` remain, and their sites. */
void baseline_narrow(struct baseline *baseline, const char *domain);

void baseline_write(const struct baseline *baseline, FILE *stream);
/*
 * path     of a file, or of one in a branch (branch_file.h)
 * returns  NULL and *fail (EXIT_USAGE) when the file is missing, no JSON, no baseline or of another schema
 */
struct baseline *baseline_read(const char *path, struct fail *fail);

/* Is it a folder with one baseline for each platform, or a name that ends with '/'? */
bool baseline_is_folder(const char *path);
/* The file of this platform in the folder: "FOLDER/x86_64-python3.11.json". For free(). */
char *baseline_path_in(const char *folder, const char *platform);

const struct baseline_site *baseline_find_site(const struct baseline *baseline, uint64_t family);
const struct baseline_domain *baseline_find_domain(const struct baseline *baseline, const char *name);

#endif
