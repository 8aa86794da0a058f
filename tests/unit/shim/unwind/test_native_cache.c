/*
 * test_native_cache.c - is a walk with a cache the walk without one?
 *
 * Frames of all shapes that look alike from where the walk comes; native_walker.h compares.
 */
#include "unwind/native_walker.h"

#include <pthread.h>

#include "base/raw_sys.h"
#include <sys/mman.h>

/* ---- frames that look the same ---- */

static NOINLINE void
take_through(void *unused)
{
	call_through(take, unused, 0);
	KEEP_FRAME();
}

/*
 * Twice call_pointed with the same sp, return address and outer return addresses, but another frame below it: only rbp tells.
 * The inner frames are its callee, or one that leaves rbp alone, or one that saved it: there the saved one
 * tells, also to the frames inside of that.
 */
static void
same_place_with_another_rbp(void)
{
	static callback *const inner[] = { take_entry, take_by_asm, take_by_plain, take_by_both };
	static const uint32_t pointed[] = { 0, 1, 1, 2 }; // place of call_pointed
	frame_maker *volatile makers[] = { call_pointed, call_lower, call_pointed, call_lower };
	uint32_t counts[4];
	uint64_t sps[4];

	for (size_t i = 0; i < sizeof inner / sizeof inner[0]; i++) {
		for (unsigned round = 0; round < 4; round++) {
			makers[round](inner[i], NULL, round % 2 ? 64 : 96);
			counts[round] = self->stack.count;
			sps[round] = native_stack_sp(&self->stack, pointed[i]);
		}
		for (unsigned round = 1; round < 4; round++) {
			assert_int_equal(sps[round], sps[0]);
			assert_int_equal(counts[round], counts[0] + round % 2);
		}
	}
}

static NOINLINE void
dive_5(void *unused)
{
	dive((void *)5);
	KEEP_FRAME();
}

/* Frames of the same size, the same ones further in and further out. */
static void
another_caller_of_the_same_size(void)
{
	frame_maker *volatile makers[] = { call_through, call_through_2, call_through, call_through_2 };
	uint64_t outer = 0;

	for (unsigned i = 0; i < 4; i++) {
		makers[i](dive_5, NULL, 0);
		uint64_t pc = self->stack.pc[7];

		assert_true(pc > (uintptr_t)makers[i] && pc < (uintptr_t)makers[i] + 32);
		assert_true(i == 0 || self->stack.kept > 0); // what lies further out
		assert_true(i == 0 || self->stack.kept == outer || i == 1);
		outer = self->stack.kept;
	}
}

TEST(scene_frames)
{
	check_nothing_lost(same_place_with_another_rbp);
	check_nothing_lost(another_caller_of_the_same_size);
}

/* ---- random trees ---- */

static uint64_t
draw(uint64_t limit)
{
	self->seed = self->seed * 6364136223846793005u + 1442695040888963407u;
	return (self->seed >> 33) % limit;
}

static void grow(void *context);
static __thread jmp_buf escape;
static __thread bool is_escape_set;

static NOINLINE void
with_room(void *context)
{
	size_t bytes = 16 + draw(200);
	volatile char *room = __builtin_alloca(bytes);

	room[0] = 1;
	grow(context);
	room[bytes - 1] = 1;
	KEEP_FRAME();
}

static NOINLINE void
with_vectors(void *context)
{
	_Alignas(64) volatile char vectors[128];

	vectors[0] = 1;
	grow(context);
	vectors[127] = vectors[0];
	KEEP_FRAME();
}

static NOINLINE void
with_room_and_vectors(void *context)
{
	_Alignas(32) volatile char vectors[64];
	volatile char *room = __builtin_alloca(16 + draw(100));

	vectors[0] = room[0] = 1;
	grow(context);
	vectors[63] = vectors[0];
	KEEP_FRAME();
}

static NOINLINE void
with_escape(void *context)
{
	jmp_buf outer;
	bool was_set = is_escape_set;

	memcpy(outer, escape, sizeof outer);
	is_escape_set = true;
	if (setjmp(escape) == 0)
		grow(context);
	else
		take(NULL);
	is_escape_set = was_set;
	memcpy(escape, outer, sizeof outer);
	KEEP_FRAME();
}

static __thread void *sorting_context;

static int
compare_and_grow(const void *a, const void *b)
{
	void *context = sorting_context;

	if (context != NULL && draw(3) == 0)
		grow(context);
	sorting_context = context;
	return *(const int *)a - *(const int *)b;
}

static NOINLINE void
with_sorting(void *context)
{
	int numbers[] = { 3, 1, 2 };

	sorting_context = context;
	qsort(numbers, 3, sizeof numbers[0], compare_and_grow);
	sorting_context = NULL;
	KEEP_FRAME();
}

/* One run of the same function, from two call sites of it (N6). */
static NOINLINE void
with_itself(void *context)
{
	uint64_t drawn = draw(8);

	if (drawn > 4)
		with_itself(context);
	else if (drawn > 1)
		with_itself(context);
	else
		grow(context);
	__asm__ volatile("" : : "r"(drawn) : "memory");
}

/* context: how much deeper the tree may grow here */
static void
grow(void *context)
{
	static frame_maker *const makers[] = { call_through,   call_through_2, call_plain, call_pointed,
		                                   call_realigned, call_tail,      call_lower };
	static callback *const own[] = { grow,        with_room,    with_vectors, with_room_and_vectors,
		                             with_escape, with_sorting, take_through, with_itself };
	uintptr_t depth = (uintptr_t)context;

	if (depth == 0 || self->budget <= 0 || draw(3) == 0)
		take(NULL);
	for (uint64_t calls = draw(4); depth > 0 && calls > 0 && self->budget > 0; calls--) {
		void *next = (void *)(depth - 1);

		self->budget--;
		if (draw(2) == 0)
			own[draw(sizeof own / sizeof own[0])](next);
		else
			makers[draw(sizeof makers / sizeof makers[0])](grow, next, 32 * draw(4));
		if (is_escape_set && draw(40) == 0)
			longjmp(escape, 1);
	}
	KEEP_FRAME();
}

static void
random_trees(void)
{
	for (unsigned tree = 0; tree < 150; tree++) {
		self->budget = 40;
		grow((void *)(uintptr_t)(5 + draw(30)));
	}
	assert_true(self->remembered == self->walks);
	assert_true(self->kept > self->walks);
}

TEST(scene_trees)
{
	main_walker.seed = getenv("SEED") != NULL ? strtoull(getenv("SEED"), NULL, 10) : 1;
	print_message("SEED=%lu\n", main_walker.seed);
	check_nothing_lost(random_trees);
	print_message("%lu walks, %lu frames taken over\n", self->walks, self->kept);
}

static void *
thread_main(void *seed)
{
	self = calloc(1, sizeof *self);
	CHECK(self != NULL);
	self->seed = (uintptr_t)seed;
	random_trees();
	free(self);
	return NULL;
}

static void
threads(void)
{
	pthread_t both[2];

	for (uintptr_t i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&both[i], NULL, thread_main, (void *)(i + 77)), 0);
	for (unsigned i = 0; i < 20; i++)
		native_stack_modules_changed(); // N4: at any moment
	for (unsigned i = 0; i < 2; i++)
		pthread_join(both[i], NULL);
}

TEST(scene_threads)
{
	check_nothing_lost(threads);
}

/* ---- limits ---- */

static volatile unsigned two = 2;

/* From one call site, whatever a compiler does to loops: kept[] are the frames taken over at each of two walks. */
static NOINLINE void
dive_twice(uintptr_t depth, uint32_t kept[2])
{
	for (unsigned round = 0; round < two; round++) {
		dive((void *)depth);
		kept[round] = self->stack.kept;
	}
}

TEST(depths)
{
	static const struct {
		uintptr_t depth;
		bool is_remembered;
	} cases[] = { { 3, true },    { 100, true },  { 220, true }, { 300, true },   { 301, true },
		          { 450, true },  { 600, true },  { 302, true }, { 5, true },     { 1500, true },
		          { 3000, true }, { 4000, true }, { 5, true },   { 15000, true }, { 7, true } };
	uint32_t kept[2];

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		dive_twice(cases[i].depth, kept);
		assert_int_equal(self->stack.is_remembered, cases[i].is_remembered);
		assert_int_equal(kept[1], walked_frames());
		assert_int_equal(kept[1], self->stack.count + self->stack.omitted);
	}
}

/* ---- recursion ---- */

/* Bit k: at which of its two lines it calls itself when k calls are still to come. */
static uint64_t lines;

static NOINLINE void
call_itself(uint64_t calls)
{
	if (calls == 0)
		take(NULL);
	else if (lines >> calls % 64 & 1)
		call_itself(calls - 1);
	else
		call_itself(calls - 1);
	__asm__ volatile("" : : "r"(calls) : "memory");
}

/* N6: of a function that calls itself the innermost frame and the outermost one are given, however often and from where. */
TEST(recursion_is_one_stack)
{
	static const uint64_t calls[] = { 2, 3, 30, 5000, 29, 12000, 4 };
	uint64_t pcs[NATIVE_STACK_MAX];
	uint32_t count = 0;

	for (volatile unsigned i = 0; i < 7 * 4; i++) { // one place of the code
		// the outermost call is the same
		lines = i / 7 * UINT64_C(0x9e3779b97f4a7c15) & ~(UINT64_C(1) << calls[i % 7] % 64);
		call_itself(calls[i % 7]);
		assert_int_equal(self->stack.omitted, 0);
		assert_true(self->stack.is_remembered);
		assert_int_equal(walked_frames(), self->stack.count + calls[i % 7] - 1);
		assert_int_equal(self->stack.pc[0] & KMEM_FRAME_REPEATED, KMEM_FRAME_REPEATED);
		assert_true(native_cache_path(self->cache) != 0);
		if (i == 0) {
			count = self->stack.count;
			memcpy(pcs, self->stack.pc, count * sizeof pcs[0]);
		}
		assert_int_equal(self->stack.count, count);
		assert_memory_equal(self->stack.pc, pcs, count * sizeof pcs[0]);
	}
	lines = 0;
	call_itself(1);
	assert_int_equal(self->stack.pc[0] & KMEM_FRAME_REPEATED, 0);
	assert_int_equal(native_cache_path(self->cache), 0);
}

/* ---- deep stacks ---- */

static NOINLINE void
dive_deep(void *depth)
{
	dive(depth);
	KEEP_FRAME();
}

/* N5: nothing that the inner frames show tells that an outer one is another. */
TEST(outer_frames_change_unseen)
{
	frame_maker *volatile makers[] = { call_through, call_through_2 };
	static const uintptr_t depths[] = { 250, 300, 1000, 3000, 9000 };

	for (volatile unsigned i = 0; i < 5 * 40; i++) {
		frame_maker *maker = makers[draw(2)];
		uintptr_t depth = depths[i / 40];

		maker(dive_deep, (void *)depth, 0); // walk_twice() compares
		uint64_t at = self->cache->room - 1 - self->cache->is_last_hidden;

		while (self->cache->pcs[at] - (uintptr_t)maker >= 32 && at > self->cache->room - self->cache->frame_count)
			at--;
		assert_true(at > self->cache->room - self->cache->frame_count + depth);
	}
}

/* Without a clock all is compared, and so it is when the thread is on another processor now, or the clock went back. */
TEST(a_clock_that_tells_nothing)
{
	static const struct call_time times[] = { { 0, 0 }, { 1, 0 }, { UINT64_MAX, 0 }, { UINT64_MAX / 2, 4711 } };
	uint32_t kept[2];

	for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
		assert_true(call_clock_calls_since(times[i]) == UINT64_MAX);
		dive_twice(1000, kept);
		self->cache->time = times[i];
		dive_twice(1000, kept);
		assert_int_equal(kept[1], walked_frames());
	}
	atomic_store_explicit(&raw_sys_is_clock_forbidden, true, memory_order_relaxed);
	assert_true(call_clock_calls_since(call_clock_now()) == UINT64_MAX);
	dive_twice(1000, kept);
	assert_int_equal(kept[1], walked_frames());
	atomic_store_explicit(&raw_sys_is_clock_forbidden, false, memory_order_relaxed);
}

TEST(a_mapping_is_given_back)
{
	uint64_t before = raw_reserved_bytes();
	uint32_t kept[2];

	native_cache_release(&self->caches);
	assert_true(raw_reserved_bytes() < before);
	before = raw_reserved_bytes();
	dive_twice(100, kept);
	assert_int_equal(kept[1], walked_frames());
	assert_int_equal(raw_reserved_bytes(), before);
	dive_twice(5000, kept);
	assert_true(raw_reserved_bytes() > before);
	native_cache_release(&self->caches);
	assert_int_equal(raw_reserved_bytes(), before);
}

TEST(every_stop)
{
	uint32_t kept[2];

	dive_twice(20, kept);
	uint32_t count = self->stack.count;
	uint64_t sps[NATIVE_STACK_MAX];

	for (uint32_t i = 0; i < count; i++)
		sps[i] = native_stack_sp(&self->stack, i);
	for (uint32_t i = 2; i + 1 < count; i++) {
		self->stop_sp = i % 2 ? sps[i] : sps[i + 1] - 1;
		dive_twice(20, kept); // the same addresses
		assert_int_equal(self->stack.count, i);
		assert_int_equal(kept[0], 0);
		assert_int_equal(kept[1], i);
	}
	self->stop_sp = sps[0];
	dive_twice(20, kept);
	assert_int_equal(self->stack.count, 0);
	self->stop_sp = 0;
}

TEST(made_up_frames)
{
	settings.verify_every = 0;
	for (int i = 0; i < 20000; i++) {
		uint64_t frame[32]; // live stack memory: what a hook frame promises

		for (int j = 0; j < 32; j++) {
			uint64_t number = draw(UINT32_MAX) << 32 | draw(UINT32_MAX);

			frame[j] = j % 3 == 0 ? (uintptr_t)&frame[number >> 59] : number >> (number >> 58);
		}
		frame[1] = (uintptr_t)qsort + draw(1 << 16);
		walk_twice(frame);
	}
	settings.verify_every = 1;
}

RUN_TESTS_IN(start, NULL)
