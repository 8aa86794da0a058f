/*
 * unwind_rules.c - see unwind_rules.h.
 *
 * Placement: neighbouring code shares cache lines and pages of the table, because a walk that visits one address of a function soon
 * visits others nearby, and because pages that hold an entry each are what a table costs. 512 bytes of code begin in one line of four
 * entries, 32 KiB in one page; what does not fit goes to the following entries. Code that is nothing but calls has no room there:
 * 2 KiB of it share another page, with an entry for each 8 bytes. The last resort is anywhere.
 *
 * Not chosen  growing: 2^20 addresses are more than a process with every framework loaded walks over,
 *             and the pages are not there until they are touched.
 */
#include "unwind/unwind_rules.h"

#include <string.h>
#include <ucontext.h>

#include "base/checked_memory.h"
#include "base/effort.h"
#include "base/loaded_object.h"
#include "base/raw_sys.h"
#include "kmem_format.h"
#include "unwind/unwind_copies.h"

#define FAR_SPOT_SHIFT 3
#define FAR_REGION_SHIFT 11

struct unwind_rules unwind_rules;
// a rule was computed for code in no object. relaxed: who sees it late forgets the rules later
static _Atomic bool has_strangers;

static uint64_t
pack(struct unwind_rule rule, uint64_t version)
{
	return (version & UNWIND_VERSION_MASK) | (uint64_t)rule.kind << 16 |
	       (rule.is_cfa_from_rbp ? UNWIND_WORD_CFA_FROM_RBP : 0) | (rule.is_rbp_saved ? UNWIND_WORD_RBP_SAVED : 0) |
	       ((uint64_t)(int64_t)(rule.rbp_offset / ARCH_SAVED_UNIT) & 0x7fff) << 21 | (uint64_t)rule.cfa_offset << 36;
}

/* The code that the kernel returns to after a handler. */
static bool
is_signal_trampoline(uint64_t pc, const struct loaded_object *object)
{
	static const uint8_t code[] = ARCH_SIGNAL_RETURN;

	uint64_t low;
	uint64_t high;

	return loaded_object_readable(object, pc, &low, &high) && high - pc >= sizeof code &&
	       memcmp((const void *)(uintptr_t)pc, code, sizeof code) == 0;
}

/*
 * With a link register the tables of that code, if it has any, lead to the interrupted function's caller: the code itself says what it is. It
 * may be in a page of the kernel's that belongs to no object.
 */
static bool
is_signal_return(uint64_t pc)
{
	static const uint8_t code[] = ARCH_SIGNAL_RETURN;
	uint64_t page = pc & ~(CHECKED_PAGE_BYTES - 1);
	struct loaded_object object;

	if (loaded_object_find(pc, &object))
		return is_signal_trampoline(pc, &object);
	return pc - page <= CHECKED_PAGE_BYTES - sizeof code &&
	       checked_memory_readable_from(page, page + CHECKED_PAGE_BYTES) == page &&
	       memcmp((const void *)(uintptr_t)pc, code, sizeof code) == 0;
}

/* The tables that cover an address, and how far their copy in memory lies from the code that they are about. */
static bool
find_tables(const struct loaded_object *object, struct unwind_tables *tables, uint64_t *shift)
{
	uint64_t frames_addr = 0;
	uint64_t unused;

	if (object->eh_frame_header_addr == 0)
		return false;
	*tables = (struct unwind_tables){ .header_addr = object->eh_frame_header_addr };
	if (loaded_object_readable(object, tables->header_addr, &unused, &tables->header_end_addr))
		frames_addr = unwind_tables_frames(tables);
	if (frames_addr == 0 || !loaded_object_readable(object, frames_addr, &tables->low_addr, &tables->high_addr))
		return false;
	/* relaxed: code that is on a stack is not unloaded. */
	uint64_t version = atomic_load_explicit(&unwind_rules.version, memory_order_relaxed);

	*shift = unwind_copies_find(object, frames_addr, version, tables);
	return true;
}

static __attribute__((noinline)) struct unwind_rule
compute_rule(uint64_t pc_word)
{
	struct unwind_rule rule = { .kind = UNWIND_NONE };
	uint64_t pc = pc_word & KMEM_FRAME_PC_MASK;
	uint64_t lookup_pc = pc_word & KMEM_FRAME_EXACT ? pc : pc - 1;
	struct loaded_object object;
	struct unwind_tables tables;
	uint64_t shift;

	if (pc == unwind_rules.coroutine_end_pc) {
		rule.kind = UNWIND_END;
		return rule;
	}
	if (ARCH_LINK_REGISTER && is_signal_return(pc)) {
		rule.kind = UNWIND_SIGNAL;
		return rule;
	}
	if (!loaded_object_find(lookup_pc, &object)) {
		atomic_store_explicit(&has_strangers, true, memory_order_relaxed);
		return rule;
	}
	if (!find_tables(&object, &tables, &shift))
		return rule;
	rule = unwind_cfi_rule(&tables, pc + shift, lookup_pc + shift);
	/* Other trampolines keep the registers elsewhere; their tables can say where. */
	if (rule.kind == UNWIND_SIGNAL && !is_signal_trampoline(pc, &object))
		rule.kind = UNWIND_INEXPRESSIBLE;
	return rule;
}

/* U4. Not part of its callers: it needs stack. */
static __attribute__((noinline)) uint64_t
compute_function(uint64_t pc, uint64_t version)
{
	struct loaded_object object;
	struct unwind_tables tables;
	struct unwind_common common;
	struct unwind_bytes program;
	uint64_t begin = 0;
	uint64_t shift = 0;
	uint64_t behind = UINT64_MAX;

	if (loaded_object_find(pc - 1, &object) && find_tables(&object, &tables, &shift) &&
	    unwind_tables_find(&tables, pc - 1 + shift, &common, &begin, &program))
		behind = pc + shift - begin;
	return behind << 19 | (uint64_t)UNWIND_NORMAL << 16 | (version & UNWIND_VERSION_MASK);
}

static uint64_t
compute(uint64_t pc_word, uint64_t version)
{
	effort_count(KMEM_EFFORT_RULES);
	return pc_word & UNWIND_FUNCTION_BIT ? compute_function(pc_word & KMEM_FRAME_PC_MASK, version)
	                                     : pack(compute_rule(pc_word), version);
}

static struct unwind_entry *
claim(struct unwind_entry *entry, uint64_t pc_word)
{
	uint64_t owner = atomic_load_explicit(&entry->pc, memory_order_relaxed);

	if (owner == 0 && atomic_compare_exchange_strong_explicit(&entry->pc, &owner, pc_word, memory_order_relaxed,
	                                                          memory_order_relaxed))
		return entry;
	return owner == pc_word ? entry : NULL;
}

static uint64_t
far_home(uint64_t pc)
{
	uint64_t region = (pc >> FAR_REGION_SHIFT) * UINT64_C(0xff51afd7ed558ccd) >> 40;

	return region << 8 | (pc >> FAR_SPOT_SHIFT & 0xff);
}

/* The entry of that address, taken if need be; NULL when there is no room. */
static struct unwind_entry *
entry_of(uint64_t pc_word)
{
	const uint64_t homes[] = { unwind_rules_home(pc_word), far_home(pc_word),
		                       pc_word * UINT64_C(0xff51afd7ed558ccd) >> 24 };
	struct unwind_entry *entry = NULL;

	for (unsigned home = 0; home < sizeof homes / sizeof homes[0]; home++) {
		for (uint64_t i = 0; i < UNWIND_NEAR_ENTRIES && entry == NULL; i++)
			entry = claim(&unwind_rules.entries[(homes[home] & unwind_rules.mask) + i], pc_word);
	}
	return entry;
}

uint64_t
unwind_rules_find(uint64_t pc_word, uint64_t version)
{
	struct unwind_entry *entry = unwind_rules.entries != NULL && pc_word != 0 ? entry_of(pc_word) : NULL;

	if (entry == NULL)
		return compute(pc_word, version);

	uint64_t word = atomic_load_explicit(&entry->rule, memory_order_relaxed);

	if ((word & UNWIND_VERSION_MASK) == version && unwind_word_kind(word) != UNWIND_UNKNOWN)
		return word;
	word = compute(pc_word, version);
	atomic_store_explicit(&entry->rule, word, memory_order_relaxed);
	return word;
}

uint64_t
unwind_rules_function(uint64_t pc, uint64_t version)
{
	uint64_t behind = unwind_rules_get(pc | UNWIND_FUNCTION_BIT, version) >> 19;

	return behind != UINT64_MAX >> 19 ? pc - behind : 0;
}

static void
never_called(void)
{
}

/*
 * The outermost frame of a coroutine is code of libc that has no tables and no public name: a context that
 * is made and never entered shows its address.
 */
static void
learn_coroutine_end(void)
{
	_Alignas(16) uint64_t stack[64] = { 0 };
	ucontext_t context;

	if (getcontext(&context) != 0)
		return;
	context.uc_stack.ss_sp = stack;
	context.uc_stack.ss_size = sizeof stack;
	context.uc_link = NULL;
	makecontext(&context, never_called, 0);

	const char *registers = (const char *)&context;
#if ARCH_LINK_REGISTER
	memcpy(&unwind_rules.coroutine_end_pc, registers + ARCH_CONTEXT_LINK, sizeof(unwind_rules.coroutine_end_pc));
#else
	uint64_t sp;

	memcpy(&sp, registers + ARCH_CONTEXT_SP, sizeof(sp));
	if (sp >= (uintptr_t)stack && sp < (uintptr_t)stack + sizeof stack && sp % 8 == 0)
		unwind_rules.coroutine_end_pc = stack[(sp - (uintptr_t)stack) / 8];
#endif
}

void
unwind_rules_start(void)
{
	static const unsigned sizes[] = { 20, 16, 12 }; // less where address space is limited

	learn_coroutine_end();
	for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0] && unwind_rules.entries == NULL; i++) {
		size_t count = (size_t)1 << sizes[i];
		size_t bytes = (count + UNWIND_NEAR_ENTRIES) * sizeof(struct unwind_entry);

		if (bytes > raw_reserve_max() && i + 1 < sizeof sizes / sizeof sizes[0])
			continue;
		unwind_rules.mask = count - 1;
		unwind_rules.entries = raw_reserve(KMEM_OWN_STACKS, bytes, PROT_READ | PROT_WRITE);
	}
}

void
unwind_rules_void(void)
{
	/* relaxed: rules are not published through it, see struct unwind_entry */
	uint64_t before = atomic_fetch_add_explicit(&unwind_rules.version, 1, memory_order_relaxed);

	/*
	 * The 16 bits begin again: rules of the last round must not come back to life (U3). Half a round before their number does they are
	 * gone, so also those that a walk stores, which began before the table was emptied.
	 */
	if (((before + 1) & UNWIND_VERSION_MASK >> 1) == 0 && unwind_rules.entries != NULL) {
		for (uint64_t i = 0; i <= unwind_rules.mask + UNWIND_NEAR_ENTRIES; i++) {
			struct unwind_entry *entry = &unwind_rules.entries[i];

			if (atomic_load_explicit(&entry->rule, memory_order_relaxed) != 0)
				atomic_store_explicit(&entry->rule, 0, memory_order_relaxed);
		}
	}
}

void
unwind_rules_object_came(void)
{
	if (atomic_load_explicit(&has_strangers, memory_order_relaxed)) {
		atomic_store_explicit(&has_strangers, false, memory_order_relaxed);
		unwind_rules_void();
	}
}
