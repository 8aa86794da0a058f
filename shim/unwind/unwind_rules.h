/*
 * unwind_rules.h - how does a walk get from this code address to the caller? Remembered for the process.
 *
 * One lock-free table of 16 bytes per code address, shared by all threads. A rule is computed once per
 * address and module version (unwind_cfi.h), negative results included.
 *
 * Context     inside the reentry guard.
 * Safe from   any hook on any thread, any signal handler.
 * When full, or before unwind_rules_start()  every rule is computed each time (about a microsecond).
 *
 * Invariants, tested by number in tests/unit/shim/unwind/test_unwind_rules.c:
 *   U1  pc == 0 means the entry is free. It is set once and never changes.
 *   U2  rule is one whole word: 0 (not computed yet) or a rule with the version it is for.
 *   U3  a rule of another version than the current one is never used.
 *   U4  an entry whose pc has UNWIND_FUNCTION_BIT says where the function of that address begins, not its rule.
 */
#ifndef UNWIND_RULES_H
#define UNWIND_RULES_H

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arch.h"
#include "unwind/unwind_cfi.h"

/*
 * relaxed, both fields, always: a rule is a pure function of (pc, version) and travels in one word,
 * so whoever sees it needs to see nothing else.
 */
struct unwind_entry {
	_Atomic uint64_t pc;   // frame word as in kmem_format.h: address, KMEM_FRAME_EXACT
	_Atomic uint64_t rule; // packed, see below
};
static_assert(sizeof(struct unwind_entry) == 16, "four per cache line");

/*
 * A packed rule:
 *   bits 0 to 15   version
 *   bits 16 to 18  enum unwind_kind
 *   bit 19         is_cfa_from_rbp
 *   bit 20         is_rbp_saved
 *   bits 21 to 35  rbp_offset, signed, in units of ARCH_SAVED_UNIT
 *   bits 36 to 63  cfa_offset, signed
 */
#define UNWIND_VERSION_MASK UINT64_C(0xffff)
#define UNWIND_WORD_CFA_FROM_RBP (UINT64_C(1) << 19)
#define UNWIND_WORD_RBP_SAVED (UINT64_C(1) << 20)

/*
 * The word of U4:
 *   bits 0 to 15   version
 *   bits 16 to 18  UNWIND_NORMAL
 *   bits 19 to 63  how far the address is behind the beginning; all ones = in no known function
 */
#define UNWIND_FUNCTION_BIT (UINT64_C(1) << 61)

#define UNWIND_SPOT_SHIFT 7    // 128 bytes of code share the entry where their search begins
#define UNWIND_REGION_SHIFT 15 // 32 KiB of code share a page of entries
#define UNWIND_NEAR_ENTRIES 8u // searched from there on

struct unwind_rules {
	struct unwind_entry *entries; // NULL = no table
	// of where a search begins; a power of two less one. UNWIND_NEAR_ENTRIES follow the last
	uint64_t mask;
	uint64_t coroutine_end_pc; // what libc's makecontext() makes its functions return to
	_Atomic uint64_t version;  // only the low 16 bits reach the rules
};
extern struct unwind_rules unwind_rules __attribute__((visibility("hidden")));

static inline enum unwind_kind
unwind_word_kind(uint64_t word)
{
	return (enum unwind_kind)(word >> 16 & 7);
}

static inline int64_t
unwind_word_cfa_offset(uint64_t word)
{
	return (int64_t)word >> 36;
}

static inline int64_t
unwind_word_rbp_offset(uint64_t word)
{
	return ((int64_t)(word << 28) >> 49) * ARCH_SAVED_UNIT;
}

/* Where the return address of a NORMAL or ALIGNED frame lies. */
static inline uint64_t
unwind_word_return_addr(uint64_t word, uint64_t cfa)
{
	if (!ARCH_LINK_REGISTER)
		return cfa - 8;
	return cfa + (uint64_t)unwind_word_rbp_offset(word) + ((word & UNWIND_WORD_RBP_SAVED) != 0 ? 8 : 0);
}

/* Number of the entry where the search for that address begins. */
static inline uint64_t
unwind_rules_home(uint64_t pc)
{
	uint64_t region = (pc >> UNWIND_REGION_SHIFT) * UINT64_C(0x9e3779b97f4a7c15) >> 40;

	return region << 8 | (pc >> UNWIND_SPOT_SHIFT & 0xff);
}

/* To be taken once per walk. */
static inline uint64_t
unwind_rules_version(void)
{
	/* relaxed: see struct unwind_entry; unwind_rules_void() tells what a late reader can see */
	return atomic_load_explicit(&unwind_rules.version, memory_order_relaxed) & UNWIND_VERSION_MASK;
}

/* The rest of unwind_rules_get(): far entries, and computing. */
uint64_t unwind_rules_find(uint64_t pc_word, uint64_t version);

/* The packed rule for a frame word; its kind is never UNWIND_UNKNOWN. */
static inline uint64_t
unwind_rules_get(uint64_t pc_word, uint64_t version)
{
	struct unwind_entry *entries = unwind_rules.entries;

	if (entries != NULL) {
		struct unwind_entry *entry = &entries[unwind_rules_home(pc_word) & unwind_rules.mask];

		for (struct unwind_entry *end = entry + UNWIND_NEAR_ENTRIES; entry != end; entry++) {
			uint64_t owner = atomic_load_explicit(&entry->pc, memory_order_relaxed);

			if (owner != pc_word) {
				if (owner == 0)
					break;
				continue;
			}

			uint64_t word = atomic_load_explicit(&entry->rule, memory_order_relaxed);

			if ((word & UNWIND_VERSION_MASK) == version && unwind_word_kind(word) != UNWIND_UNKNOWN)
				return word;
			break;
		}
	}
	return unwind_rules_find(pc_word, version);
}

/*
 * Where the function of a return address begins, as the unwind tables know functions (a part that the compiler moved away is one of its
 * own); 0 = not known.
 */
uint64_t unwind_rules_function(uint64_t pc, uint64_t version);

/* Makes room, before the first walk; without memory there is no table. */
void unwind_rules_start(void);

/*
 * Something was unloaded: forget all rules. A walk that began before ends with the rules it began with:
 * they are right for its frames, since code that is on a stack is not unloaded.
 */
void unwind_rules_void(void);

/*
 * An object was seen for the first time: the same, if rules were computed for code in no object, which may have been where this one is
 * (generated code comes and goes without a word).
 */
void unwind_rules_object_came(void);

#endif
