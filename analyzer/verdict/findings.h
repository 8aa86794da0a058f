/*
 * findings.h - what do the facts amount to, in the order in which a person should read it?
 *
 * A verdict is a cause, a list of findings, and advice. findings.c decides what is found; phrases_*.c have a sentence for each.
 *
 * When full   further findings are left out.
 */
#ifndef FINDINGS_H
#define FINDINGS_H

#include "verdict/causes.h"
#include "verdict/facts.h"

#define VERDICT_ADVICE_MAX 8
#define VERDICT_FINDINGS_MAX 48

/* In texts: what verdict.c replaces at the end, so that a command can be copied. */
#define VERDICT_CAPTURE "\1"
#define VERDICT_COMMAND "\2"
#define VERDICT_CHILD "\3" // the capture of lost_child

/* What a paragraph is made of, one or two sentences each (phrases_*.c), and its name in JSON. */
#define FINDING_KINDS(KIND)                                                                                      \
	KIND(ENDING, "ending")      /* how the program ended; with a refused request, its bytes and its line */      \
	KIND(LOG, "system-log")     /* what a log of the system says of it */                                        \
	KIND(GUARD, "guard-passed") /* bytes are what was in use then */                                             \
	KIND(FORECAST, "forecast")  /* bytes are those of a minute */                                                \
	KIND(SWAP, "swap-full")                                                                                      \
	KIND(USAGE, "usage")                                                                                         \
	KIND(KERNEL_KILLS, "kernel-kills")                                                                           \
	KIND(FAR_FROM_LIMITS, "far-from-limits")                                                                     \
	KIND(SHELL_STATUS, "shell-status")                                                                           \
	KIND(THREAD_REFUSED, "thread-refused")                                                                       \
	KIND(PROCESS_REFUSED, "process-refused")                                                                     \
	KIND(FILES_FULL, "open-files-full")                                                                          \
	KIND(CUDA_NOT_STARTED, "cuda-not-started")                                                                   \
	KIND(OTHER_CONTAINER, "other-container")                                                                     \
	KIND(NO_KILL, "no-kill")                                                                                     \
	KIND(NO_ALLOCATION, "no-allocation")                                                                         \
	KIND(ADDRESS_LIMIT, "address-limit")                                                                         \
	KIND(LITTLE_HELD, "little-held")                                                                             \
	KIND(PARTS, "parts-in-memory")    /* of what was in memory; bytes are the largest part's */                  \
	KIND(FREED, "freed-not-returned") /* and not given back; the line is the one whose blocks keep most pages */ \
	KIND(LIVE, "live")                                                                                           \
	KIND(IMPORTS, "imports")                                                                                     \
	KIND(LINE, "line")                                                                                           \
	KIND(LINE_OF_ALL, "line-of-all-processes") /* summed over processes */                                       \
	KIND(ACCUMULATES, "accumulates")                                                                             \
	KIND(MAY_ACCUMULATE, "may-accumulate")                                                                       \
	KIND(FILLING, "filling")                                                                                     \
	KIND(BACKLOG, "backlog")                                                                                     \
	KIND(HOLDER, "held-by") /* bytes are samples of the line, of so many */                                      \
	KIND(NEXT_LINE, "next-line")                                                                                 \
	KIND(LAST_TAKER, "came-last")    /* of so many in all, of a program that was killed for memory */            \
	KIND(SHARED_LINE, "shared-line") /* where /dev/shm is full: of shared memory */                              \
	KIND(UNTOUCHED, "untouched")                                                                                 \
	KIND(BESIDE, "accumulates-beside") /* another line than those that were told of */                           \
	KIND(BESIDE_ARENAS, "accumulates-beside-arenas")                                                             \
	KIND(OVER_LIMIT, "more-live-than-limit")                                                                     \
	KIND(PEAK, "peak")                                                                                           \
	KIND(PEAK_IN_IMPORT, "peak-in-import") /* bytes are what was in memory at the end; 0 = not known */          \
	KIND(LITTLE_AT_END, "little-at-end")   /* bytes are what was in memory then */                               \
	KIND(PEAK_LINE, "peak-line")                                                                                 \
	KIND(PEAK_LINE_OF_ALL, "peak-line-of-all-processes")                                                         \
	KIND(PEAK_IMPORTS, "peak-imports")                                                                           \
	KIND(LITTLE_ROOM, "little-room")                                                                             \
	KIND(RECOVERED, "recovered") /* the largest request that was refused; count is how many were */              \
	KIND(RELEASED_AT_EXIT, "released-at-exit")                                                                   \
	KIND(LOST_CHILDREN, "lost-children")                                                                         \
	KIND(COPIES, "copied-after-fork")                                                                            \
	KIND(PINNED, "pinned")                                                                                       \
	KIND(PINNED_ROUNDED, "pinned-rounded-up")                                                                    \
	KIND(DEVICE_FULL, "device-free")                                                                             \
	KIND(DEVICE_HELD, "device-held")                                                                             \
	KIND(DEVICE_LINE, "device-line")                                                                             \
	KIND(DEVICE_ACCUMULATES, "device-accumulates")                                                               \
	KIND(DEVICE_CACHE, "device-cache-unknown")                                                                   \
	KIND(DEVICE_KEPT, "device-kept-by-exception")                                                                \
	KIND(DEVICE_POOLS, "device-pools")                                                                           \
	KIND(DEVICE_OTHERS, "device-other-users")                                                                    \
	KIND(DEVICE_PREALLOCATED, "device-preallocated")                                                             \
	KIND(DEVICE_FRAGMENTED, "device-fragmented")                                                                 \
	KIND(DEVICE_RETRIED, "device-retried")                                                                       \
	KIND(DEVICE_REFUSED, "device-refused") /* of a program that goes on */                                       \
	KIND(DOMAIN, "domain")                                                                                       \
	KIND(DOMAIN_PARTS, "domain-parts")                                                                           \
	KIND(DOMAIN_IN_MEMORY, "domain-in-memory")                                                                   \
	KIND(DOMAIN_IMPORTS, "domain-imports")                                                                       \
	KIND(DOMAIN_LINE, "domain-line")                                                                             \
	KIND(DOMAIN_ACCUMULATES, "domain-accumulates")                                                               \
	KIND(DOMAIN_MAY_ACCUMULATE, "domain-may-accumulate")                                                         \
	KIND(DOMAIN_STEADY, "domain-steady")                                                                         \
	KIND(MORE_DOMAINS, "more-domains")                                                                           \
	KIND(REFUSED_REQUESTS, "refused-requests")                                                                   \
	KIND(LIBRARIES, "libraries")       /* and the program: code and data, of all that was in memory */           \
	KIND(MAPPED_FILES, "mapped-files") /* the line that maps most of those in memory, of all that was */         \
	KIND(RECORDER, "recorder")         /* its own memory, of all that was */                                     \
	KIND(DAMAGE, "damaged")                                                                                      \
	KIND(UNLISTED, "unlisted")                                                                                   \
	KIND(UNRECORDED, "unrecorded")                                                                               \
	KIND(ELSEWHERE, "without-stacks")                                                                            \
	KIND(HIDDEN_HEAP, "hidden-heap")

enum finding_kind {
#define FINDING_KIND(kind, name) FINDING_##kind,
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
	uint64_t as_large_count;             // of these domains, as large as the last one that is told
	bool is_peak;                        // FINDING_DOMAIN and following: figures are of the peak
	bool is_told;                        // the line was told of right before
	bool is_after_line;                  // FINDING_IMPORTS: a line was told of right before, "of it" would be of that
	size_t said_at;                      // its sentences in the verdict's text: where they begin, and so many bytes
	size_t said_bytes;
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
	bool needs_nothing;                            // `next` says that no action is needed
	size_t advice_count;
	const char *advice[VERDICT_ADVICE_MAX]; // names of what `next` says, in order; see advice.c
	char text[4096];                        // a paragraph, one line
	char next[1024];                        // one thing to do; a command in backquotes
};

/* Adds the findings of the verdict's cause. Sets facts->growing_device. */
void verdict_find(struct verdict_facts *facts, struct verdict *verdict);

/* The same of the domains that `wanted` matches, at least one; sets facts->asked. */
void verdict_find_domain(struct verdict_facts *facts, const char *wanted, struct verdict *verdict);

/* The process of the model that is told of as the one that passed its guard: `first` before others; NULL: none did. */
const struct model_process *verdict_guard_passer(const struct model *model, const struct model_process *first);

/* In parts per million. */
uint32_t verdict_share(uint64_t part, uint64_t whole);

#endif
