/*
 * native_start_aarch64.c - see native_start.h.
 *
 * A hook's frame pointer leads to the caller's frame pointer and to the return address, which lie anywhere in its frame; where the frame
 * ends, the tables say. So the walk begins here, and goes through our own frames until it leaves the one that the hook's frame pointer is in.
 *
 * Safe from   any hook, any signal handler. Reads only frames that are alive.
 * When failing  our own tables cannot be read: the caller's stack pointer is taken for the first it can be. Walks that need it end early.
 */
#include "unwind/native_start.h"

#include "kmem_format.h"
#include "unwind/unwind_rules.h"

#define OWN_FRAMES_MAX 64u

static uint64_t
word_at(uint64_t addr)
{
	return *(const uint64_t *)(uintptr_t)addr;
}

__attribute__((noinline, no_sanitize_address)) struct native_place
native_start(const void *hook_frame)
{
	const uint64_t *frame = hook_frame;
	uint64_t version = unwind_rules_version();
	struct native_place place;

	__asm__ volatile("adr %0, .\n\tmov %1, sp\n\tmov %2, x29" : "=r"(place.pc), "=r"(place.sp), "=r"(place.rbp));
	place.pc |= KMEM_FRAME_EXACT;
	for (unsigned i = 0; i < OWN_FRAMES_MAX; i++) {
		uint64_t rule = unwind_rules_get(place.pc, version);
		uint64_t cfa = (rule & UNWIND_WORD_CFA_FROM_RBP ? place.rbp : place.sp) +
		               (uint64_t)unwind_word_cfa_offset(rule);
		bool is_hook = (uint64_t)(uintptr_t)frame - place.sp < cfa - place.sp;

		if (unwind_word_kind(rule) != UNWIND_NORMAL || cfa <= place.sp || (uint64_t)(uintptr_t)frame < place.sp)
			break;
		place.pc = arch_code_address(word_at(unwind_word_return_addr(rule, cfa)));
		if (rule & UNWIND_WORD_RBP_SAVED)
			place.rbp = word_at(cfa + (uint64_t)unwind_word_rbp_offset(rule));
		place.sp = cfa;
		if (is_hook)
			return place;
	}
	return (struct native_place){ .pc = arch_code_address(frame[1]), .sp = (uintptr_t)(frame + 2), .rbp = frame[0] };
}
