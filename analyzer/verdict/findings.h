/*
 * findings.h - what do the facts amount to, in the order in which a person should read it?
 *
 * A verdict is a cause, a list of findings, and advice. findings.c decides what is found; phrases.c has words for each.
 *
 * When full   further findings are left out.
 */
#ifndef FINDINGS_H
#define FINDINGS_H

#include "verdict/causes.h"
#include "verdict/facts.h"

#define VERDICT_ADVICE_MAX 8
#define VERDICT_FINDINGS_MAX 48

/* Where a finding is told: first, before what to do next; or below the bar of memory. */
enum verdict_rank {
	RANK_HEADLINE,
	RANK_EVIDENCE,
	RANK_HEADLINE_IF_PEAK,   // where nothing is told of the end: of a program that ended well it is evidence
	RANK_HEADLINE_IF_NO_BAR, // it says what a bar shows
	RANK_HEADLINE_IF_ASKED,  // where it is about a domain that was asked about, or that refused a request
};
#define RANKS_SAID 2 // the first two: where something is said

/* What a verdict is made of, one or two sentences each (phrases.c), its name in JSON, and its rank. */
#define FINDING_KINDS(KIND)                                                                                           \
	KIND(ENDING, "ending", HEADLINE)      /* how the program ended; with a refused request, its bytes and its line */ \
	KIND(LOG, "system-log", EVIDENCE)     /* what a log of the system says of it */                                   \
	KIND(GUARD, "guard-passed", HEADLINE) /* bytes are what was in use then */                                        \
	KIND(FORECAST, "forecast", HEADLINE)  /* bytes are those of a minute */                                           \
	KIND(SWAP, "swap-full", EVIDENCE)                                                                                 \
	KIND(USAGE, "usage", EVIDENCE)                                                                                    \
	KIND(KERNEL_KILLS, "kernel-kills", EVIDENCE)                                                                      \
	KIND(FAR_FROM_LIMITS, "far-from-limits", EVIDENCE)                                                                \
	KIND(SHELL_STATUS, "shell-status", EVIDENCE)                                                                      \
	KIND(THREAD_REFUSED, "thread-refused", HEADLINE)                                                                  \
	KIND(PROCESS_REFUSED, "process-refused", HEADLINE)                                                                \
	KIND(FILES_FULL, "open-files-full", HEADLINE)                                                                     \
	KIND(CUDA_NOT_STARTED, "cuda-not-started", HEADLINE)                                                              \
	KIND(OTHER_CONTAINER, "other-container", EVIDENCE)                                                                \
	KIND(NO_KILL, "no-kill", EVIDENCE)                                                                                \
	KIND(NO_ALLOCATION, "no-allocation", EVIDENCE)                                                                    \
	KIND(ADDRESS_LIMIT, "address-limit", HEADLINE)                                                                    \
	KIND(LITTLE_HELD, "little-held", EVIDENCE)                                                                        \
	KIND(PARTS, "parts-in-memory", HEADLINE) /* of what was in memory; bytes are the largest part's */                \
	KIND(FREED, "freed-not-returned",                                                                                 \
	     HEADLINE) /* and not given back; the line is the one whose blocks keep most pages */                         \
	KIND(LIVE, "live", HEADLINE)                                                                                      \
	KIND(IMPORTS, "imports", HEADLINE)                                                                                \
	KIND(LINE, "line", HEADLINE)                                                                                      \
	KIND(LINE_OF_ALL, "line-of-all-processes", HEADLINE) /* summed over processes */                                  \
	KIND(ACCUMULATES, "accumulates", HEADLINE)                                                                        \
	KIND(MAY_ACCUMULATE, "may-accumulate", HEADLINE)                                                                  \
	KIND(FILLING, "filling", HEADLINE)                                                                                \
	KIND(BACKLOG, "backlog", HEADLINE)                                                                                \
	KIND(HOLDER, "held-by", HEADLINE)        /* bytes are samples of the line, of so many */                          \
	KIND(NOT_LOOKED, "not-looked", EVIDENCE) /* at who holds the line, though the launcher was there */               \
	KIND(NEXT_LINE, "next-line", EVIDENCE)                                                                            \
	KIND(LAST_TAKER, "came-last", EVIDENCE)    /* of so many in all, of a program that was killed for memory */       \
	KIND(SHARED_LINE, "shared-line", HEADLINE) /* where /dev/shm is full: of shared memory */                         \
	KIND(UNTOUCHED, "untouched", EVIDENCE)                                                                            \
	KIND(BESIDE, "accumulates-beside", EVIDENCE) /* another line than those that were told of */                      \
	KIND(BESIDE_ARENAS, "accumulates-beside-arenas", EVIDENCE)                                                        \
	KIND(OVER_LIMIT, "more-live-than-limit", EVIDENCE)                                                                \
	KIND(PEAK, "peak", EVIDENCE)                                                                                      \
	KIND(PEAK_IN_IMPORT, "peak-in-import", HEADLINE) /* bytes are what was in memory at the end; 0 = not known */     \
	KIND(LITTLE_AT_END, "little-at-end", HEADLINE_IF_NO_BAR) /* bytes are what was in memory then */                  \
	KIND(PEAK_LINE, "peak-line", HEADLINE_IF_PEAK)                                                                    \
	KIND(PEAK_LINE_OF_ALL, "peak-line-of-all-processes", HEADLINE_IF_PEAK)                                            \
	KIND(PEAK_IMPORTS, "peak-imports", EVIDENCE)                                                                      \
	KIND(LITTLE_ROOM, "little-room", EVIDENCE)                                                                        \
	KIND(RECOVERED, "recovered", EVIDENCE) /* the largest request that was refused; count is how many were */         \
	KIND(RELEASED_AT_EXIT, "released-at-exit", EVIDENCE)                                                              \
	KIND(LOST_CHILDREN, "lost-children", EVIDENCE)                                                                    \
	KIND(COPIES, "copied-after-fork", HEADLINE)                                                                       \
	KIND(PINNED, "pinned", HEADLINE)                                                                                  \
	KIND(PINNED_ROUNDED, "pinned-rounded-up", EVIDENCE)                                                               \
	KIND(DEVICE_FULL, "device-free", HEADLINE)                                                                        \
	KIND(DEVICE_HELD, "device-held", HEADLINE)                                                                        \
	KIND(DEVICE_LINE, "device-line", HEADLINE)                                                                        \
	KIND(DEVICE_ACCUMULATES, "device-accumulates", HEADLINE)                                                          \
	KIND(DEVICE_CACHE, "device-cache-unknown", EVIDENCE)                                                              \
	KIND(DEVICE_KEPT, "device-kept-by-exception", HEADLINE)                                                           \
	KIND(DEVICE_POOLS, "device-pools", HEADLINE)                                                                      \
	KIND(DEVICE_OTHERS, "device-other-users", HEADLINE)                                                               \
	KIND(DEVICE_PREALLOCATED, "device-preallocated", HEADLINE)                                                        \
	KIND(DEVICE_FRAGMENTED, "device-fragmented", HEADLINE)                                                            \
	KIND(DEVICE_RETRIED, "device-retried", EVIDENCE)                                                                  \
	KIND(DEVICE_REFUSED, "device-refused", HEADLINE) /* of a program that goes on */                                  \
	KIND(DOMAIN, "domain", HEADLINE_IF_ASKED)                                                                         \
	KIND(DOMAIN_PARTS, "domain-parts", HEADLINE_IF_ASKED)                                                             \
	KIND(DOMAIN_IN_MEMORY, "domain-in-memory", HEADLINE_IF_ASKED)                                                     \
	KIND(DOMAIN_IMPORTS, "domain-imports", HEADLINE_IF_ASKED)                                                         \
	KIND(DOMAIN_LINE, "domain-line", HEADLINE_IF_ASKED)                                                               \
	KIND(DOMAIN_ACCUMULATES, "domain-accumulates", HEADLINE_IF_ASKED)                                                 \
	KIND(DOMAIN_MAY_ACCUMULATE, "domain-may-accumulate", HEADLINE_IF_ASKED)                                           \
	KIND(DOMAIN_STEADY, "domain-steady", HEADLINE_IF_ASKED)                                                           \
	KIND(MORE_DOMAINS, "more-domains", EVIDENCE)                                                                      \
	KIND(REFUSED_REQUESTS, "refused-requests", EVIDENCE)                                                              \
	KIND(LIBRARIES, "libraries", HEADLINE_IF_NO_BAR) /* and the program: code and data, of all that was in memory */  \
	KIND(MAPPED_FILES, "mapped-files",                                                                                \
	     HEADLINE_IF_NO_BAR)                       /* the line that maps most of those in memory, of all that was */  \
	KIND(RECORDER, "recorder", HEADLINE_IF_NO_BAR) /* its own memory, of all that was */                              \
	KIND(DAMAGE, "damaged", HEADLINE)                                                                                 \
	KIND(UNLISTED, "unlisted", EVIDENCE)                                                                              \
	KIND(UNRECORDED, "unrecorded", HEADLINE)                                                                          \
	KIND(ELSEWHERE, "without-stacks", EVIDENCE)                                                                       \
	KIND(HIDDEN_HEAP, "hidden-heap", HEADLINE)

enum finding_kind {
#define FINDING_KIND(kind, name, rank) FINDING_##kind,
	FINDING_KINDS(FINDING_KIND) FINDINGS
};

struct finding {
	enum finding_kind kind;
	enum verdict_confidence confidence;
	uint64_t bytes;                      // what it is about; 0 = no amount
	uint64_t whole_bytes;                // of so much; 0 = no share
	struct rank_line line;               // where; site_count == 0: no line
	const struct model_process *process; // FINDING_GUARD: who passed it; FINDING_BESIDE: who has it, NULL = several
	const struct model_domain *domain;   // FINDING_DOMAIN and following: which, or where its lines are
	uint64_t count;                      // of further lines or domains
	bool is_peak;                        // FINDING_DOMAIN and following: figures are of the peak
	bool is_told;                        // the line was told of right before
	bool is_after_line;                  // FINDING_IMPORTS: a line was told of right before, "of it" would be of that
};

const char *finding_name(unsigned kind); // "freed"; NULL behind the last

struct verdict {
	enum verdict_cause cause;
	enum verdict_confidence confidence;
	enum verdict_end end;
	const struct model_process *process;    // NULL only for an empty model
	const struct model_process *lost_child; // gone without a mark, though it is not what this is about; NULL = none
	struct verdict_memory memory;           // as in the facts
	struct verdict_forecast forecast;       // the same
	uint64_t untouched_bytes;               // the same
	bool has_ended_well;                    // the program, and none of its processes was killed for memory
	size_t finding_count;
	struct finding findings[VERDICT_FINDINGS_MAX]; // in the order of the text
	bool has_bar;                                  // the headline names the sum of memory's parts
	bool needs_nothing;                            // `next` says that no action is needed
	size_t advice_count;
	const char *advice[VERDICT_ADVICE_MAX]; // names of what `next` says, in order; see advice.c
	enum verdict_rank rank;                 // of what is being said
	char said[RANKS_SAID][2048];            // a paragraph each, one line
	char text[4096];                        // both
	char next[1024];                        // one thing to do; a command in backquotes
	bool is_top_named;                      // next names the line that holds most
};

/* Adds the findings of the verdict's cause. Sets facts->growing_device. */
void verdict_find(struct verdict_facts *facts, struct verdict *verdict);

/* The same of the domains that `wanted` matches, at least one; sets facts->asked. */
void verdict_find_domain(struct verdict_facts *facts, const char *wanted, struct verdict *verdict);

/* The process of the model that is told of as the one that passed its guard: `first` before others; NULL: none did. */
const struct model_process *verdict_guard_passer(const struct model *model, const struct model_process *first);

/* The recorder's note of another limit than memory, of FINDING_THREAD_REFUSED and the three that follow; NULL = none. */
const char *verdict_limit_note(const struct verdict_facts *facts, enum finding_kind kind);

/* In parts per million. */
uint32_t verdict_share(uint64_t part, uint64_t whole);

#endif
