/*
 * findings.h - what do the facts amount to, in the order in which a person should read it?
 *
 * A verdict is a cause, a list of findings, and advice. findings.c decides what is found; phrases.c has a sentence for each.
 *
 * When full   further findings are left out.
 * Safe from   one thread.
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

/* What a paragraph is made of, one or two sentences each; phrases.c has the row of each. */
enum finding_kind {
	FINDING_ENDING, // how the program ended; with a refused request, its bytes and its line
	FINDING_USAGE,
	FINDING_KERNEL_KILLS,
	FINDING_FAR_FROM_LIMITS,
	FINDING_SHELL_STATUS,
	FINDING_OTHER_CONTAINER,
	FINDING_NO_KILL,
	FINDING_NO_ALLOCATION,
	FINDING_ADDRESS_LIMIT,
	FINDING_LITTLE_HELD,
	FINDING_PARTS, // of what was in memory; bytes are the largest part's
	FINDING_FREED, // and not given back; the line is the one whose blocks keep most pages
	FINDING_LIVE,
	FINDING_IMPORTS,
	FINDING_LINE,
	FINDING_LINE_OF_ALL, // summed over processes
	FINDING_ACCUMULATES,
	FINDING_MAY_ACCUMULATE,
	FINDING_NEXT_LINE,
	FINDING_UNTOUCHED,
	FINDING_BESIDE_ARENAS,
	FINDING_OVER_LIMIT,
	FINDING_PEAK,
	FINDING_PEAK_LINE,
	FINDING_PEAK_LINE_OF_ALL,
	FINDING_PEAK_IMPORTS,
	FINDING_LITTLE_ROOM,
	FINDING_RELEASED_AT_EXIT,
	FINDING_LOST_CHILDREN,
	FINDING_COPIES,
	FINDING_PINNED,
	FINDING_PINNED_ROUNDED,
	FINDING_DEVICE_FULL,
	FINDING_DEVICE_HELD,
	FINDING_DEVICE_LINE,
	FINDING_DEVICE_ACCUMULATES,
	FINDING_DEVICE_CACHE,
	FINDING_DEVICE_KEPT,
	FINDING_DEVICE_POOLS,
	FINDING_DEVICE_OTHERS,
	FINDING_DEVICE_PREALLOCATED,
	FINDING_DEVICE_FRAGMENTED,
	FINDING_DEVICE_RETRIED,
	FINDING_DEVICE_REFUSED, // of a program that goes on
	FINDING_DOMAIN,
	FINDING_DOMAIN_PARTS,
	FINDING_DOMAIN_IN_MEMORY,
	FINDING_DOMAIN_IMPORTS,
	FINDING_DOMAIN_LINE,
	FINDING_DOMAIN_ACCUMULATES,
	FINDING_DOMAIN_MAY_ACCUMULATE,
	FINDING_DOMAIN_STEADY,
	FINDING_MORE_DOMAINS,
	FINDING_REFUSED_REQUESTS,
	FINDING_DAMAGE,
	FINDING_UNLISTED,
	FINDING_UNRECORDED,
	FINDING_ELSEWHERE,
	FINDING_HIDDEN_HEAP,
	FINDINGS
};

struct finding {
	enum finding_kind kind;
	enum verdict_confidence confidence;
	uint64_t bytes;                    // what it is about; 0 = no amount
	uint64_t whole_bytes;              // of so much; 0 = no share
	struct rank_line line;             // where; site_count == 0: no line
	const struct model_domain *domain; // FINDING_DOMAIN and following: which, or where its lines are
	uint64_t count;                    // of further lines or domains
	uint64_t as_large_count;           // of these domains, as large as the last one that is told
	bool is_peak;                      // FINDING_DOMAIN and following: figures are of the peak
	bool is_told;                      // the line was told of right before
	bool is_after_line;                // FINDING_IMPORTS: a line was told of right before, "of it" would be of that
};

const char *finding_name(enum finding_kind kind); // "freed"

struct verdict {
	enum verdict_cause cause;
	enum verdict_confidence confidence;
	enum verdict_end end;
	const struct model_process *process;    // NULL only for an empty model
	const struct model_process *lost_child; // gone without a mark, though it is not what this is about; NULL = none
	struct verdict_memory memory;           // as in the facts
	uint64_t untouched_bytes;               // the same
	bool has_ended_well;                    // the program, and none of its processes was killed for memory
	size_t finding_count;
	struct finding findings[VERDICT_FINDINGS_MAX]; // in the order of the text
	size_t advice_count;
	const char *advice[VERDICT_ADVICE_MAX]; // names of what `next` says, in order; see advice.c
	char text[4096];                        // a paragraph, one line
	char next[1024];                        // one thing to do; a command in backquotes
};

/* Adds the findings of the verdict's cause. Sets facts->growing_device. */
void verdict_find(struct verdict_facts *facts, struct verdict *verdict);

/* The same of the domains that `wanted` matches, at least one; sets facts->asked. */
void verdict_find_domain(struct verdict_facts *facts, const char *wanted, struct verdict *verdict);

/* In parts per million. */
uint32_t verdict_share(uint64_t part, uint64_t whole);

#endif
