/*
 * rank.h - which line of code comes first, and which sites below it?
 *
 * One line of code is often many sites: the blocks of one PyTorch graph are allocated through dozens of native
 * stacks below the same line of the script, none of them large. So the unit that is ranked is the line, the sum of
 * the sites with the same `where` in the same domain; sites are listed line by line, the largest first inside each. What
 * importing a module left behind is a line of its own, apart from what the importing lines themselves allocated; so is what threads
 * without Python frames allocated on behalf of a line.
 *
 * Order of lines: tier, then the bytes of those of its sites that are of that tier, then all its bytes, then names.
 * Tiers are how a ranking says "never above": memory before address space, leaks before the rest, and what an
 * import leaves behind after everything that a person wrote.
 *
 * Each ranking is a constant struct ranking in rank_*.c.
 *
 * Context     Reads the model; rank_leaks_classify() alone writes, the class of each site: a step of model_finish().
 */
#ifndef RANK_H
#define RANK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/model.h"

/* What each ranking is of. */
enum rank_of { RANK_PEAK, RANK_LEAKS, RANK_SITES };
const char *rank_name(unsigned number); // as the command: "peak"

struct ranking {
	enum rank_of of;
	const char *heading; // over the table
	/* 0 comes first. */
	unsigned (*tier)(const struct model *model, const struct model_site *site);
	/* What counts inside a tier. */
	uint64_t (*bytes)(const struct model_site *site);
};

extern const struct ranking rank_peak;
extern const struct ranking rank_leaks;
extern const struct ranking rank_sites;
/* By what was asked for: what a limit of addresses counts, touched or not. */
extern const struct ranking rank_peak_asked;
extern const struct ranking rank_sites_asked;

/* One line of code in one domain. */
/* Of a line's tier: it has fewer samples of the heap than that, and is never named. It comes behind all others. */
#define RANK_TIER_FEW 64u
#define RANK_SAMPLES_MIN 16u

struct rank_line {
	const struct model_frame *where; // NULL = unknown
	unsigned domain;                 // index in model.domains
	unsigned tier;                   // of its best site; with RANK_TIER_FEW
	uint64_t score_bytes;            // of its sites in that tier
	uint64_t live_bytes;
	uint64_t live_count;
	uint64_t samples;        // as in struct model_site
	uint64_t sample_bytes;   // for which each sample stands, at most; 0 = its figures are no estimates from samples
	uint64_t exact_bytes;    // of a sum over kinds of memory: what no samples stand for
	uint64_t released_bytes; // of live_bytes, after the program began to exit
	uint64_t peak_bytes;
	uint64_t untouched_bytes;      // of live_bytes, not in memory
	uint64_t peak_untouched_bytes; // of peak_bytes, taken not to have been in memory then
	uint64_t large_bytes;          // as in struct model_site
	uint64_t large_resident_bytes;
	uint64_t pinned_bytes;
	uint64_t allocated_bytes;
	uint64_t allocated_count;
	enum model_leak_class leak;       // the most telling class among its sites
	bool is_import;                   // its sites are what an import left behind
	uint64_t swept_bytes;             // of class swept: what it held at the peak
	uint64_t leaking_bytes;           // live bytes of its sites of class leak
	uint64_t leaking_untouched_bytes; // of these, not in memory
	const struct model_site *largest; // its first site
	const struct model_site *telling; // its first site of class `leak`: whose generations are those of the line
	size_t first_site;                // in ranked.sites
	size_t site_count;
};

struct ranked {
	size_t line_count;
	struct rank_line *lines;
	size_t site_count;
	const struct model_site **sites; // line by line
};

/* domain: as rank_domain_matches() takes it; NULL = all. */
struct ranked *rank_run(struct finished_model finished, const struct ranking *ranking, const char *domain);
void rank_free(struct ranked *ranked);

/* True when `wanted` is the name, or the part of it before a '/' or ':' ("cuda" takes "cuda:0/tensors"). */
bool rank_domain_matches(const char *name, const char *wanted);

/*
 * Sets `leak` of every site, by surviving generations: a leak still holds blocks from at least 75 % of the generations since it appeared (or,
 * of many, about as many in each quarter of what was allocated) and 70 % of the latest quarter, has seen 6 of them, and the line holds 64 KiB
 * (of a run that ended by itself a 256th of its peak, up to 1 MiB) more than a few of the blocks that it works with and releases again. One that adds
 * fewer and fewer is `filling`.
 */
void rank_leaks_classify(struct model *model);

/*
 * Of what looks like a leak, in order of places: is it a data set that was loaded once (rank_loads.c)? Sets `may_be_built_once` and
 * `is_of_call`, and `leak` to steady where the loading is over. then() gets each line when it was judged.
 */
void rank_loads_judge(const struct model *model, struct model_site **leaking, size_t count,
                      void then(const struct model *model, struct model_site **line, size_t count));

/*
 * Rankings count the part of a site that is in memory: what was never touched holds nothing. At a peak: what is live and untouched now is
 * taken to have been untouched then, as far as it was there.
 */
uint64_t rank_live_in_memory(const struct model_site *site);
uint64_t rank_peak_in_memory(const struct model_site *site);

/* Too few generations for the name, but from 3 on, and not one of them was released. */
bool rank_may_accumulate(const struct model_site *site);

/*
 * A run that began with much work has slow ticks: a whole loop that keeps something in each round may lie in one of them. Its line has
 * kept nearly all that it allocated. It cannot be known that it grows, but it may hold a hundred times what a small leak does.
 */
bool rank_keeps_all(const struct model_site *site);

/*
 * Did it grow over much of the run, keep nearly all, and then stop? Blocks of most generations in which it allocated are alive. More than as
 * much was allocated elsewhere between its first and its latest block, so it was not built at one go. A cache that fills looks the same:
 * this is a reason to ask only if the line is new.
 */
bool rank_has_accumulated(const struct model_site *site);

/* Is less and less added from quarter to quarter of what was allocated, blocks or bytes, as to a cache that has nearly all it will ever hold? */
bool rank_slows_down(const double quarters[SURVIVAL_QUARTERS]);
/* Of class "filling": at so many bytes it seems to end, if it goes on as before; 0 = of another class. */
uint64_t rank_filled_bytes(const struct rank_line *line);

/* A leak, or something large that was built at one go: an import runs it, most of what was allocated since it appeared is its own, or it is too new. */
bool rank_may_be_built_once(const struct model_site *site);

/* Of so few generations that they say nothing. */
bool rank_is_too_new(const struct model_site *site);

/*
 * Does a call of the line's that has not returned put into a container, or into a block that grows, what the site holds? A look found that only the
 * stack leads there, or a local variable of a function that the line called.
 */
bool rank_is_of_call(const struct model *model, const struct model_site *site);

/* Has a look found that it waits in a transport of asyncio to be written? */
bool rank_is_unsent(const struct model *model, const struct model_site *site);

/* Are the rounds of the program's loop those of a constructor that called its line, and all else too? It may be what that builds. */
bool rank_is_of_constructor(const struct model *model, const struct model_site *site);

/* It grew in pages of a library's own allocator, which may be free: no look has found what holds them. */
bool rank_is_of_allocator(const struct model *model, const struct model_site *site);

/* Left behind by importing a library: an import stands between the allocation and the user's own code. Start-up, too. */
bool rank_is_import(const struct model_site *site);

/* Allocated while a module of the user's own was imported, by its body or by what that calls. */
bool rank_is_below_import(const struct model_site *site);

/*
 * The line that loads the module more than once: while the body runs, the line that imports it does nothing else, but it has allocated between
 * two ticks in which the body did. NULL: the body ran once.
 */
const struct model_frame *rank_loaded_again_at(const struct model *model, const struct model_site *site);

/* The interpreter allocated it for itself, outside all Python code, before the user's or after it. */
bool rank_is_start_up(const struct model_site *site);

/*
 * Booked where it was not allocated, for want of room: at a caller, or at no place. So is what names tell, where they had no room:
 * which line it is, and whether an import made the interpreter's arenas.
 */
bool rank_is_elsewhere(const struct model *model, const struct model_site *site);

/* Of what such sites of the domain held, at the end or at its peak, whichever is more; NULL = of all memory. */
uint64_t rank_elsewhere_bytes(const struct model *model, const struct model_domain *domain);

/* The same of all memory, where it is so much that lines say little; else 0. */
uint64_t rank_elsewhere_worth_bytes(const struct model *model);

/* Total order of (domain, where, its relation), for grouping; 0 = the same line. */
int rank_compare_places(const struct model_site *left, const struct model_site *right);
/*
 * The same as sites are gathered into lines: what an import left and what the importing line itself allocated are two; a module is one, whoever
 * imported it.
 */
int rank_compare_lines(const struct model_site *left, bool is_left_import, const struct model_site *right,
                       bool is_right_import);
/* The same of (file, function), of sites that have a place. */
int rank_compare_functions(const struct model_site *left, const struct model_site *right);
/* What the line of this site held then, as far as it was among the largest. */
uint64_t rank_held_at(const struct model *model, const struct model_point *point, const struct model_site *line);

#endif
