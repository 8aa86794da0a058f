/*
 * native_walker.h - one thread's walks, each made twice: without a cache, and with the cache that all walks before have left.
 *
 * Both must be the same frame by frame. libunwind repeats both (KMEMSHIM_VERIFY=1). N1 to N4 and N6 are checked on the cache itself
 * after each walk, the rules asked anew. For one test program each: it defines functions.
 */
#ifndef NATIVE_WALKER_H
#define NATIVE_WALKER_H

#include "test.h"

#include "base/settings.h"
#include "capture/capture_file.h"
#include "dive.h"
#include "kmem_format.h"
#include "unwind/native_cache.h"
#include "unwind/native_stack.h"
#include "unwind/unwind_rules.h"

#define NOINLINE __attribute__((noinline))
#define KEEP_FRAME() __asm__ volatile("" ::: "memory") // no tail call

typedef void callback(void *);
typedef void frame_maker(callback *, void *, uint64_t);

#define WALKER_FRAMES 32768u // deeper than any walk here

/* What one thread has. */
struct walker {
	struct native_caches caches;
	struct native_cache *cache; // of the latest walk
	struct native_stack plain;
	struct native_stack stack;         // with the cache
	uint64_t before[2][WALKER_FRAMES]; // the walks that the caches had, outermost frame first
	uint64_t stop_sp;
	uint64_t walks;
	uint64_t remembered; // walks that went into the cache
	uint64_t kept;       // frames taken over
	uint64_t seed;
	uint64_t version; // before the walk
	int budget;       // calls that a random tree may still make
};
static __thread struct walker *self;
static struct walker main_walker;

#define CHECK(claim)                                                \
	do {                                                            \
		if (!(claim)) {                                             \
			print_error("%s:%d: %s\n", __FILE__, __LINE__, #claim); \
			abort();                                                \
		}                                                           \
	} while (0)

/* Of any live stack. */
__attribute__((no_sanitize_address)) static uint64_t
word_at(uint64_t addr)
{
	return *(const uint64_t *)(uintptr_t)addr;
}

static void
check_invariants(const struct native_cache *cache)
{
	uint64_t base = cache->stack_end - ((uint64_t)1 << 32);
	uint64_t now = atomic_load_explicit(&unwind_rules.version, memory_order_relaxed);
	uint64_t version = cache->version & UNWIND_VERSION_MASK;
	uint32_t room = cache->room;
	uint64_t word_end = room;
	bool is_bp_needed = false;
	struct native_run run = { .length = 0 };

	CHECK(cache->version - self->version <= now - self->version); // N4: other threads void it at any moment
	CHECK(cache->sp_offsets[room] == UINT32_MAX);
	for (uint32_t k = room; k-- > room - cache->frame_count;) {
		bool is_last = k == room - 1;
		bool is_given = !is_last || !cache->is_last_hidden;
		bool has_given_caller = k + 1 < room - cache->is_last_hidden;
		uint64_t rule = cache->pcs[k] != 0 ? unwind_rules_get(cache->pcs[k], version) : 0;
		enum unwind_kind kind = unwind_word_kind(rule);
		bool is_walked = kind == UNWIND_NORMAL || kind == UNWIND_ALIGNED;
		bool is_bp_used = is_walked && (kind == UNWIND_ALIGNED || (rule & UNWIND_WORD_CFA_FROM_RBP));
		bool is_bp_saved = is_walked && (rule & UNWIND_WORD_RBP_SAVED);
		uint64_t words = (kind == UNWIND_ALIGNED) + (uint64_t)(is_bp_saved && is_bp_needed);
		uint64_t first = cache->word_firsts[k] & 0x7fffffff;

		CHECK(is_walked || is_last);
		is_bp_needed = is_bp_used || (!is_bp_saved && is_bp_needed);
		CHECK((cache->word_firsts[k] & 0x80000000) == (is_bp_needed ? 0x80000000 : 0));
		CHECK(first == word_end - words);
		CHECK(is_last || cache->sp_offsets[k] < cache->sp_offsets[k + 1]); // N3
		CHECK(cache->sp_offsets[k] <= UINT32_MAX - 7);
		for (uint64_t i = first; i < word_end; i++) {
			CHECK(cache->word_offsets[i] % 8 == 0 && cache->word_offsets[i] >= cache->sp_offsets[k]); // N3
			CHECK(word_at(base + cache->word_offsets[i]) == cache->words[i]); // N1: this walk's own frames
		}
		if (!is_last)
			CHECK(word_at(base + cache->sp_offsets[k + 1] - 8) == cache->pcs[k + 1]); // N1
		word_end = first;
		if (is_given) { // N6
			uint64_t function = unwind_rules_function(cache->pcs[k], version);
			uint64_t callers = has_given_caller ? unwind_rules_function(cache->pcs[k + 1], version) : 0;
			bool is_same = has_given_caller &&
			               (cache->pcs[k] == cache->pcs[k + 1] || (function != 0 && function == callers));

			run.length = is_same ? run.length + 1 : 1;
			run.shown += run.length <= NATIVE_STACK_RUN;
		}
		CHECK(cache->runs[k].length == run.length && cache->runs[k].shown == run.shown);
	}
}

/* What is kept is as it was before. */
static void
check_kept(void)
{
	const struct native_stack *stack = &self->stack;
	uint64_t walked = self->cache->frame_count - self->cache->is_last_hidden;
	uint64_t *before = self->before[self->cache == &self->caches.alternate];

	if (!stack->is_remembered) {
		CHECK(stack->kept == 0);
		return;
	}
	CHECK(stack->kept <= walked);
	for (uint64_t i = 0; i < walked; i++) {
		uint64_t frame = self->cache->room - self->cache->is_last_hidden - 1 - i;

		if (i < stack->kept)
			CHECK(before[i] == self->cache->pcs[frame]);
		before[i] = self->cache->pcs[frame];
	}
	self->remembered++;
	self->kept += stack->kept;
}

/* How many frames the latest walk has. */
static inline uint64_t
walked_frames(void)
{
	return self->cache->frame_count - self->cache->is_last_hidden;
}

/* From a hook's frame. */
static void
walk_twice(const void *frame)
{
	const struct native_stack *plain = &self->plain;
	const struct native_stack *stack = &self->stack;

	self->version = atomic_load_explicit(&unwind_rules.version, memory_order_relaxed);
	native_stack_walk(NULL, frame, self->stop_sp, &self->plain);
	self->cache = native_cache_choose(&self->caches, frame);
	native_stack_walk(self->cache, frame, self->stop_sp, &self->stack);
	native_cache_note_time(self->cache);
	self->walks++;
	CHECK(plain->count == stack->count);
	CHECK(plain->omitted == stack->omitted);
	CHECK(plain->is_complete == stack->is_complete);
	CHECK(plain->is_alternate == stack->is_alternate);
	for (uint32_t i = 0; i < plain->count; i++) {
		CHECK(plain->pc[i] == stack->pc[i]);
		CHECK(native_stack_sp(plain, i) == native_stack_sp(stack, i));
	}
	if (stack->is_remembered)
		check_invariants(self->cache);
	check_kept();
}

/* The hook. */
static NOINLINE void
take(void *unused)
{
	walk_twice(__builtin_frame_address(0));
	KEEP_FRAME();
}

/* Functions with frames that compilers make, without a compiler's choice. */
frame_maker call_through;   // rbp is the caller's
frame_maker call_through_2; // the same frame in other code
frame_maker call_plain;     // rbp is saved and a plain register
frame_maker call_pointed;   // CFA from rbp; room of that many bytes
frame_maker call_lower;     // calls call_pointed from 32 bytes below where that is called
frame_maker call_realigned; // CFA only in a stack slot
frame_maker call_tail;      // no frame
#define THROUGH(name)                                                    \
	name ":\n.cfi_startproc\nsub $24, %rsp\n.cfi_adjust_cfa_offset 24\n" \
		 "mov %rdi, %rax\nmov %rsi, %rdi\ncall *%rax\nadd $24, %rsp\n.cfi_adjust_cfa_offset -24\nret\n.cfi_endproc\n"
__asm__(".text\n" THROUGH("call_through") THROUGH(
	"call_through_2") "call_plain:\n.cfi_startproc\n"
                      "push %rbp\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset rbp, 0\n"
                      "sub $48, %rsp\n.cfi_adjust_cfa_offset 48\n"
                      "mov %edx, %ebp\nmov %rdi, %rax\nmov %rsi, %rdi\ncall *%rax\n"
                      "add $48, %rsp\n.cfi_adjust_cfa_offset -48\n"
                      "pop %rbp\n.cfi_adjust_cfa_offset -8\n.cfi_restore rbp\nret\n.cfi_endproc\n"
                      "call_pointed:\n.cfi_startproc\n"
                      "push %rbp\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset rbp, 0\n"
                      "mov %rsp, %rbp\n.cfi_def_cfa_register rbp\nsub %rdx, %rsp\n"
                      "mov %rdi, %rax\nmov %rsi, %rdi\nxor %esi, %esi\nxor %edx, %edx\ncall *%rax\n"
                      "leave\n.cfi_def_cfa rsp, 8\n.cfi_restore rbp\nret\n.cfi_endproc\n"
                      "call_lower:\n.cfi_startproc\nsub $24, %rsp\n.cfi_adjust_cfa_offset 24\ncall call_pointed\n"
                      "add $24, %rsp\n.cfi_adjust_cfa_offset -24\nret\n.cfi_endproc\n"
                      "call_realigned:\n.cfi_startproc\n"
                      "lea 8(%rsp), %r10\n.cfi_def_cfa r10, 0\nand $-64, %rsp\npush -8(%r10)\npush %rbp\n"
                      "mov %rsp, %rbp\n.cfi_escape 0x10, 6, 2, 0x76, 0\n"
                      "push %r10\n.cfi_escape 0x0f, 3, 0x76, 0x78, 0x06\n"
                      "sub $40, %rsp\nmov %rdi, %rax\nmov %rsi, %rdi\ncall *%rax\nadd $40, %rsp\n"
                      "pop %r10\n.cfi_def_cfa r10, 0\npop %rbp\n.cfi_restore rbp\nlea -8(%r10), %rsp\n"
                      ".cfi_def_cfa rsp, 8\nret\n.cfi_endproc\n"
                      "call_tail:\n.cfi_startproc\nmov %rdi, %rax\nmov %rsi, %rdi\njmp *%rax\n.cfi_endproc\n");

static void
check_nothing_lost(void (*scene)(void))
{
	struct kmem_header *header = capture_file_header();
	uint64_t checked = header->verify_checked;

	scene();
	for (uint32_t at = header->notes; header->verify_mismatched != 0 && at != 0;) {
		struct kmem_note *note = capture_file_item(KMEM_SECTION_RECORDS, at);

		print_message("%.*s\n", (int)note->text_bytes, (const char *)(note + 1));
		at = note->record.previous;
	}
	assert_int_equal(header->verify_mismatched, 0);
	assert_true(header->verify_checked > checked);
}

/* The hook, called by a frame that leaves rbp alone, by one that saves it, and by the first called by the second. */
#define BY_PLAIN(name, callee)                                                              \
	name ":\n.cfi_startproc\npush %rbp\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset rbp, 0\n" \
		 "sub $16, %rsp\n.cfi_adjust_cfa_offset 16\nxor %ebp, %ebp\ncall " callee "\n"      \
		 "add $16, %rsp\n.cfi_adjust_cfa_offset -16\n"                                      \
		 "pop %rbp\n.cfi_adjust_cfa_offset -8\n.cfi_restore rbp\nret\n.cfi_endproc\n"
__asm__(".text\ntake_by_asm:\n.cfi_startproc\nsub $24, %rsp\n.cfi_adjust_cfa_offset 24\ncall take_entry\n"
        "add $24, %rsp\n.cfi_adjust_cfa_offset -24\nret\n.cfi_endproc\n" BY_PLAIN("take_by_plain", "take_entry")
            BY_PLAIN("take_by_both", "take_by_asm"));
callback take_by_asm;
callback take_by_plain;
callback take_by_both;

/* The assembly calls it by its name. */
__attribute__((used)) NOINLINE static void
take_entry(void *unused)
{
	walk_twice(__builtin_frame_address(0));
	KEEP_FRAME();
}

DIVE_SCENE(take)

SETUP(start)
{
	settings.verify_every = 1;
	self = &main_walker;
	native_stack_start();
}

#endif
