/*
 * test_python_cache.c - a walk that remembers tells the same as one that does not.
 *
 * Chains of made-up frames: what an interpreter does to its frames, and what it never does. The truth is each time the walk
 * with an empty cache. SEED seeds the random numbers; it is printed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <alloca.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <ucontext.h>

#include "base/thread_stack.h"
#include "capture/capture_file.h"
#include "python/fake_chain.h"
#include "python/python_code.h"
#include "python/python_frames.h"

static struct python_cache cache;
static struct python_cache plain;
static struct python_stack *above_stack;
static unsigned seed;

static void
start_with(uint32_t version)
{
	start(version);
	memset(&cache, 0, sizeof(cache));
}

/* Walks with and without memory, which must be the same. Returns how many frames did not change. */
static uint32_t
walk_both(struct python_stack *stack)
{
	struct python_stack truth;
	struct python_frame before[PYTHON_FRAMES_MAX];

	memcpy(before, cache.frames, sizeof(before));
	python_frames_walk(&cache, stack);
	plain.count = plain.known = 0;
	python_frames_walk(&plain, &truth);
	assert_int_equal(stack->count, truth.count);
	assert_int_equal(stack->is_cut, truth.is_cut);
	for (uint32_t i = 0; i < stack->count; i++) {
		assert_int_equal(stack->frames[i].code, truth.frames[i].code);
		assert_int_equal(stack->frames[i].offset, truth.frames[i].offset);
		assert_int_equal(stack->frames[i].code_flags, truth.frames[i].code_flags);
		assert_int_equal(stack->frames[i].anchor_addr, truth.frames[i].anchor_addr);
		if (i < stack->unchanged)
			assert_memory_equal(&stack->frames[i], &before[i], sizeof(before[i]));
	}
	assert_true(stack->unchanged <= stack->count);
	return stack->unchanged;
}

static uint32_t
unchanged(void)
{
	struct python_stack stack;

	return walk_both(&stack);
}

static const char *
name_of(const struct python_stack *stack, uint32_t i)
{
	static char name[64];
	const struct kmem_code *code = capture_file_at(KMEM_SECTION_RECORDS, stack->frames[i].code);

	snprintf(name, sizeof(name), "%.*s", (int)code->function_bytes, (const char *)(code + 1) + code->file_bytes);
	return name;
}

/* --- by number -------------------------------------------------------------------------------------- */

static const uint32_t versions[] = { 0x0309, 0x030a, 0x030b, 0x030d };

#define EACH_VERSION \
	(void)unused;    \
	for (size_t v = 0; v < sizeof(versions) / sizeof(versions[0]); v++)

/* P1: a word that changed is seen, wherever it is; what is outside of it is not visited again. */
static void
p1_each_word_counts(void **unused)
{
	EACH_VERSION
	{
		start_with(versions[v]);
		chain_of(20);
		assert_int_equal(unchanged(), 0);
		assert_int_equal(unchanged(), 20);
		for (unsigned i = 0; i < 20; i++) {
			set_instruction(i, (i + 3) % 16);
			assert_int_equal(unchanged(), i);
			set_code(i, (i + 1) % CODES, (i + 3) % 16);
			assert_int_equal(unchanged(), i);
			assert_int_equal(unchanged(), 20);
		}
		if (layout()->frame_owner != 0)
			for (unsigned i = 1; i < 20; i++) {
				set_owner(i, 1, false);
				assert_int_equal(unchanged(), i);
			}
		if (layout()->frame_is_entry != 0)
			for (unsigned i = 1; i < 20; i++) {
				set_owner(i, 1, true);
				assert_true(unchanged() < i); // outer frames belong to other evaluators now
			}
	}
}

/* P1: each bit of an instruction, of frames with something special about them too. */
static void
p1_each_bit_counts(void **unused)
{
	EACH_VERSION
	{
		start_with(versions[v]);
		chain_of(6);
		set_owner(2, 0, true);
		for (unsigned i = 1; i < 5; i++)
			for (unsigned bit = 0; bit < (has_pointers() ? 64 : 32); bit++) {
				char *word = frames[i].bytes + layout()->frame_instruction;

				unchanged();
				assert_int_equal(unchanged(), 6);
				word[bit / 8] ^= (char)(1 << bit % 8);
				assert_in_range(unchanged(), 0, i);
				word[bit / 8] ^= (char)(1 << bit % 8);
			}
	}
}

/* P1: an object that runs no code may become code without a death that is counted. */
static void
p1_foreign_objects_are_asked_again(void **unused)
{
	struct python_stack stack;

	(void)unused;
	start_with(0x030d);
	chain_of(6);
	fake_put(frames[3].bytes, layout()->frame_code, (uint64_t)foreign);
	assert_int_equal(walk_both(&stack), 0);
	assert_int_equal(stack.count, 5);
	assert_int_equal(walk_both(&stack), 5);
	fake_put(frames[3].bytes, layout()->frame_code, (uint64_t)codes[9].code);
	fake_put(codes[9].code, 8, (uint64_t)&fake_types[0]);
	set_instruction(3, 2);
	walk_both(&stack);
	assert_int_equal(stack.count, 5);
	fake_put(codes[9].code, 8, (uint64_t)&fake_types[1]);
	walk_both(&stack);
	assert_int_equal(stack.count, 6);
}

/* P2: the same words can mean another code object, after a death; and only then. */
static void
p2_a_death_empties_the_memo(void **unused)
{
	struct python_stack stack;

	EACH_VERSION
	{
		start_with(versions[v]);
		chain_of(5);
		unchanged();
		for (unsigned i = 0; i < 5; i++) {
			char name[32];

			code_died(i);
			snprintf(name, sizeof(name), "code_%u_life_%u", i, lives[i] - 1);
			assert_int_equal(walk_both(&stack), 0);
			assert_string_equal(name_of(&stack, i), name);
			assert_int_equal(walk_both(&stack), 5);
		}
		code_died(20); // nobody's
		assert_int_equal(unchanged(), 5);
		python_code_forked();
		assert_int_equal(unchanged(), 0);
		assert_int_equal(unchanged(), 5);
	}
}

/* The other half: without the death the old name stays, so the count is what P2 rests on. */
static void
p2_only_the_count_tells(void **unused)
{
	struct python_stack stack;

	(void)unused;
	start_with(0x030b);
	chain_of(3);
	python_frames_walk(&cache, &stack);
	code_born(1);
	python_frames_walk(&cache, &stack);
	assert_int_equal(stack.unchanged, 3);
}

/* P3: frames with equal words that are linked otherwise are another chain. */
static void
p3_links_count(void **unused)
{
	struct python_stack stack;

	EACH_VERSION
	{
		start_with(versions[v]);
		chain_of(10);
		unchanged();

		/* Two left out. With an anchor for each frame, all outer ones have another. */
		uint32_t kept = layout()->chain == PYTHON_CHAIN_OBJECTS_CFRAME ? 0 : 5;

		set_previous(7, 4);
		assert_in_range(walk_both(&stack), kept, 5);
		assert_int_equal(stack.count, 8);
		set_previous(7, 6);
		assert_in_range(walk_both(&stack), kept, 5);
		set_previous(0, 12); // one more at the outer end
		set_code(12, 12, 1);
		set_previous(12, -1);
		assert_int_equal(walk_both(&stack), 0);
		assert_int_equal(stack.count, 11);
		set_previous(3, -1); // the outer end gone
		assert_int_equal(walk_both(&stack), 0);
		assert_int_equal(stack.count, 7);
	}
}

/* P4: remembered frames that nothing leads to are not read. */
static void
p4_only_linked_frames_are_read(void **unused)
{
	enum { PAGE = 4096 };
	char *page = aligned_alloc(PAGE, PAGE);

	assert_non_null(page);
	EACH_VERSION
	{
		start_with(versions[v]);
		chain_of(10);
		memcpy(page, frames[5].bytes, sizeof(frames[5].bytes));
		fake_put(frames[6].bytes, layout()->frame_previous, (uint64_t)page);
		unchanged();
		assert_int_equal(unchanged(), 10);
		memset(page, 0xff, PAGE); // given back and used again: its link would lead nowhere
		set_previous(6, 5);
		assert_int_equal(unchanged(), 5);
	}
	free(page);
}

/* P5: the chain of anchors is compared as well. */
static void
p5_anchors_are_compared(void **unused)
{
	struct python_stack stack;

	EACH_VERSION
	{
		start_with(versions[v]);
		if (layout()->chain == PYTHON_CHAIN_OBJECTS)
			continue;
		chain_of(5);
		if (layout()->chain == PYTHON_CHAIN_SHIM) { // out of reach for anchors: shims off the stack
			set_owner(2, 3, false);
			unchanged();
			assert_int_equal(walk_both(&stack), 4);
			assert_int_equal(stack.frames[3].anchor_addr, 0);
			continue;
		}
		set_owner(2, 0, true);
		unchanged();
		assert_int_equal(walk_both(&stack), 5);
		assert_int_equal(stack.frames[4].anchor_addr, (uint64_t)cframes[0]);

		/* The second one is another: of another evaluator, or not on the stack. */
		fake_put(cframes[0], layout()->cframe_previous, (uint64_t)cframes[3]);
		assert_int_equal(walk_both(&stack), 0);
		assert_int_equal(walk_both(&stack), 5);
		fake_put(heap_cframe, layout()->cframe_previous, (uint64_t)cframes[2]);
		fake_put(cframes[0], layout()->cframe_previous, (uint64_t)heap_cframe);
		assert_int_equal(walk_both(&stack), 0);
		assert_int_equal(walk_both(&stack), 5);
	}
}

static void
walk_above(void)
{
	python_frames_walk(&cache, above_stack);
}

__attribute__((noinline)) static void
walk_on(char *room, struct python_stack *stack)
{
	static ucontext_t here;
	static ucontext_t above;

	above_stack = stack;
	getcontext(&above);
	above.uc_stack.ss_sp = room;
	above.uc_stack.ss_size = 32768;
	above.uc_link = &here;
	makecontext(&above, walk_above, 0);
	swapcontext(&here, &above);
}

/* P5: the same walk from another place on the C stack: an anchor below it is of no evaluator that runs. */
static void
p5_anchors_below_are_none(void **unused)
{
	char *room = alloca(65536); // part of this thread's stack: the upper half to run on, anchors below
	struct python_stack stack;

	EACH_VERSION
	{
		start_with(versions[v]);
		chain_of(5);
		if (layout()->chain == PYTHON_CHAIN_OBJECTS)
			continue;
		if (layout()->chain == PYTHON_CHAIN_SHIM) {
			memset(room, 0, 80);
			fake_put(room, layout()->frame_previous, 0);
			room[layout()->frame_owner] = 3;
			fake_put(frames[0].bytes, layout()->frame_previous, (uint64_t)room);
		} else {
			fake_put(room, layout()->cframe_frame, (uint64_t)&frames[4]);
			fake_put(state, layout()->tstate_cframe, (uint64_t)room);
		}
		walk_both(&stack);
		assert_int_equal(walk_both(&stack), 5);
		assert_int_equal(stack.frames[4].anchor_addr, (uint64_t)room);
		for (int i = 0; i < 2; i++) {
			walk_on(room + 32768, &stack);
			assert_int_equal(stack.count, 5);
			assert_int_equal(stack.frames[4].anchor_addr, 0);
		}
		walk_both(&stack);
		assert_int_equal(stack.frames[4].anchor_addr, (uint64_t)room);
	}
}

/* P6: nothing is kept of a chain that breaks off, that has too many frames, of another thread state, or at the end. */
static void
p6_what_is_not_remembered(void **unused)
{
	struct python_stack stack;

	EACH_VERSION
	{
		start_with(versions[v]);
		chain_of(10);
		unchanged();
		fake_put(frames[4].bytes, layout()->frame_code, 3);
		assert_int_equal(walk_both(&stack), 0);
		assert_int_equal(stack.count, 5);
		set_code(4, 4, 4);
		assert_int_equal(walk_both(&stack), 0);
		assert_int_equal(walk_both(&stack), 10);

		chain_of(PYTHON_FRAMES_MAX);
		unchanged();
		assert_int_equal(walk_both(&stack), PYTHON_FRAMES_MAX);
		chain_of(PYTHON_FRAMES_MAX + 20);
		for (int i = 0; i < 2; i++) {
			assert_int_equal(walk_both(&stack), 0);
			assert_true(stack.is_cut);
		}
		chain_of(PYTHON_CACHE_FRAMES + 40);
		for (int i = 0; i < 2; i++) {
			assert_int_equal(walk_both(&stack), 0);
			assert_true(stack.is_cut);
		}
		chain_of(10);
		assert_int_equal(unchanged(), 0);
		assert_int_equal(unchanged(), 10);

		memcpy(other_state, state, sizeof(state));
		present_state = other_state;
		assert_int_equal(unchanged(), 0);
		assert_int_equal(unchanged(), 10);

		fake_put(runtime, layout()->runtime_finalizing, (uint64_t)present_state);
		assert_int_equal(unchanged(), 0);
		assert_int_equal(unchanged(), 0);
		fake_put(runtime, layout()->runtime_finalizing, 8);
		unchanged();
		assert_int_equal(cache.count, 0);
		fake_put(runtime, layout()->runtime_finalizing, 0);
		assert_int_equal(unchanged(), 0);
	}
}

/* A loop in the chain ends at the bound, remembered or not. */
static void
loops_end(void **unused)
{
	struct python_stack stack;

	EACH_VERSION
	{
		start_with(versions[v]);
		chain_of(10);
		unchanged();
		set_previous(0, 9);
		walk_both(&stack);
		assert_true(stack.is_cut);
		set_previous(0, -1);
		assert_int_equal(unchanged(), 0);
		assert_int_equal(unchanged(), 10);
	}
}

/* --- at random -------------------------------------------------------------------------------------- */

static int chain[FRAMES];
static int depth;

static void
push_random(void)
{
	// at the place of the one before, mostly
	int i = depth < 60 && rand_r(&seed) % 4 != 0 ? depth : rand_r(&seed) % FRAMES;
	int kind = rand_r(&seed) % 16;

	for (int j = 0; j < depth; j++)
		if (chain[j] == i)
			return;
	set_code((unsigned)i, (unsigned)(rand_r(&seed) % 8), (unsigned)(rand_r(&seed) % 4));
	set_owner((unsigned)i, kind == 0 ? 1 : 0, rand_r(&seed) % 4 == 0);
	if (layout()->chain == PYTHON_CHAIN_SHIM && kind == 1)
		set_owner((unsigned)i, 3, false);
	if (layout()->chain == PYTHON_CHAIN_SHIM && kind == 2)
		fake_put(frames[i].bytes, layout()->frame_code, (uint64_t)foreign);
	set_previous((unsigned)i, depth == 0 ? -1 : chain[depth - 1]);
	chain[depth++] = i;
	set_innermost(i);
}

static void
pop(void)
{
	if (depth != 0)
		depth--;
	set_innermost(depth == 0 ? -1 : chain[depth - 1]);
}

static void
relink(void)
{
	for (int j = 0; j < depth; j++)
		set_previous((unsigned)chain[j], j == 0 ? -1 : chain[j - 1]);
	set_innermost(depth == 0 ? -1 : chain[depth - 1]);
}

static void
act(void)
{
	int what = rand_r(&seed) % 64;
	int which = depth == 0 ? 0 : chain[rand_r(&seed) % depth];

	if (what < 24) {
		push_random();
	} else if (what < 44) {
		pop();
	} else if (depth != 0 && what < 56) {
		if (get(frames[chain[depth - 1]].bytes, layout()->frame_code) != (uint64_t)foreign)
			set_instruction((unsigned)chain[depth - 1], (unsigned)(rand_r(&seed) % 6));
	} else if (depth != 0 && what < 58) {
		if (get(frames[which].bytes, layout()->frame_code) != (uint64_t)foreign)
			set_instruction((unsigned)which, (unsigned)(rand_r(&seed) % 4));
	} else if (what == 58) {
		code_died((unsigned)(rand_r(&seed) % CODES));
	} else if (what == 59 && depth > 4) {
		chain[1] = chain[depth - 1];
		depth = 2;
		relink();
	} else if (what == 60 && layout()->cframe_previous != 0) {
		int at = rand_r(&seed) % (CFRAMES - 1);

		fake_put(cframes[at], layout()->cframe_previous,
		         (uint64_t)cframes[at + 1 + rand_r(&seed) % (CFRAMES - 1 - at)]);
	} else if (what == 61) {
		set_owner((unsigned)which, (uint8_t)(rand_r(&seed) % 3), rand_r(&seed) % 3 == 0);
	} else if (what == 62) {
		for (int i = rand_r(&seed) % 40; i > 0 && depth < 250; i--)
			push_random();
	} else if (what == 63) {
		for (int i = rand_r(&seed) % 60; i > 0; i--)
			pop();
	}
}

static void
random_chains(void **unused)
{
	struct python_stack stack;

	EACH_VERSION
	{
		uint64_t shown = 0;
		uint64_t remembered = 0;

		start_with(versions[v]);
		depth = 0;
		for (int round = 0; round < 60000; round++) {
			for (int i = rand_r(&seed) % 4; i > 0; i--)
				act();
			remembered += walk_both(&stack);
			shown += stack.count;
		}
		assert_true(shown > 300000);
		assert_true(remembered * 2 > shown);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(p1_each_word_counts),
		cmocka_unit_test(p1_each_bit_counts),
		cmocka_unit_test(p1_foreign_objects_are_asked_again),
		cmocka_unit_test(p2_a_death_empties_the_memo),
		cmocka_unit_test(p2_only_the_count_tells),
		cmocka_unit_test(p3_links_count),
		cmocka_unit_test(p4_only_linked_frames_are_read),
		cmocka_unit_test(p5_anchors_are_compared),
		cmocka_unit_test(p5_anchors_below_are_none),
		cmocka_unit_test(p6_what_is_not_remembered),
		cmocka_unit_test(loops_end),
		cmocka_unit_test(random_chains),
	};
	const char *given = getenv("SEED");
	uint64_t on_stack[CFRAMES][4];

	seed = given != NULL && *given != '\0' ? (unsigned)strtoul(given, NULL, 10) : (unsigned)time(NULL);
	printf("SEED=%u\n", seed);
	cframes = on_stack;
	thread_stack_start();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
