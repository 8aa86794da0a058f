/*
 * test_native_stack.c - are the frames of a walk the real ones?
 *
 * Every walk is repeated by libunwind (KMEMSHIM_VERIFY=1) and both must agree frame by frame; the tables
 * of what must be seen are added where libunwind has no say.
 */
#include "test.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/settings.h"
#include "capture/capture_file.h"
#include "dive.h"
#include "kmem_format.h"
#include "sites/module_map.h"
#include "unwind/native_stack.h"

#ifdef __aarch64__
#include "unwind/made_frames_aarch64.h"
#else
#include "unwind/made_frames_x86_64.h"
#endif

#define NOINLINE __attribute__((noinline, noclone))
#if !defined(__GNUC__) || defined(__clang__)
#undef NOINLINE
#define NOINLINE __attribute__((noinline))
#endif
#define KEEP_FRAME() __asm__ volatile("" ::: "memory") // no tail call

static struct native_stack stack;
static uint64_t stop_sp;

/* The hook: walks from its caller. */
static NOINLINE void
take(void *unused)
{
	native_stack_walk(NULL, __builtin_frame_address(0), stop_sp, &stack);
	KEEP_FRAME();
}

static uint64_t
lost(enum kmem_loss loss)
{
	return capture_file_header()->losses[loss];
}

/* Runs one scene and checks what holds for every complete walk. */
static void
check_scene(callback *scene, void *context)
{
	struct kmem_header *header = capture_file_header();
	uint64_t checked = header->verify_checked;
	uint64_t mismatched = header->verify_mismatched;
	uint64_t unwinds = lost(KMEM_LOST_UNWINDS);

	memset(&stack, 0, sizeof stack);
	scene(context);
	for (uint32_t at = header->notes; header->verify_mismatched != mismatched && at != 0;) {
		struct kmem_note *note = capture_file_item(KMEM_SECTION_RECORDS, at);

		print_message("%.*s\n", (int)note->text_bytes, (const char *)(note + 1));
		at = note->record.previous;
	}
	assert_true(stack.is_complete);
	assert_true(stack.count > 1);
	assert_int_equal(lost(KMEM_LOST_UNWINDS), unwinds);
	assert_int_equal(header->verify_mismatched, mismatched);
	assert_true(header->verify_checked > checked);
	for (uint32_t i = 0; i < stack.count && !stack.is_alternate; i++)
		assert_true(i == 0 || native_stack_sp(&stack, i) > native_stack_sp(&stack, i - 1));
}

DIVE_SCENE(take)

TEST(depths)
{
	static const uintptr_t cases[] = { 3, 20, 200, 5000 };

	check_scene(dive, 0);
	uint64_t base = stack.count; // frames of a dive of 0

	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		uint64_t frames = base + cases[i];

		check_scene(dive, (void *)cases[i]);
		assert_int_equal(stack.count, frames > NATIVE_STACK_MAX ? NATIVE_STACK_MAX : frames);
		assert_int_equal(stack.omitted, frames - stack.count);
		assert_false(stack.is_alternate);
		for (uint64_t at = 3; at < cases[i] && at < NATIVE_STACK_INNER; at++)
			assert_int_equal(stack.pc[at], stack.pc[at - 2]); // recursion: the same call sites
		assert_true(stack.pc[stack.count - 1] != stack.pc[1]);
	}
}

TEST(too_deep_for_the_bound)
{
	uint64_t unwinds = lost(KMEM_LOST_UNWINDS);

	dive((void *)(uintptr_t)(NATIVE_STACK_VISITS_MAX + 10));
	assert_false(stack.is_complete);
	assert_int_equal(stack.count + stack.omitted, NATIVE_STACK_VISITS_MAX);
	assert_int_equal(lost(KMEM_LOST_UNWINDS), unwinds + 1);
}

static void
dive_on(void *context)
{
	callback *next = (callback *)context;

	next((void *)(uintptr_t)5);
	KEEP_FRAME();
}

static NOINLINE void
through_plain(void *context)
{
	call_plain(dive, context);
	KEEP_FRAME();
}

static NOINLINE void
through_realigned(void *context)
{
	call_realigned(through_plain, context);
	KEEP_FRAME();
}

static int
compare_and_take(const void *a, const void *b)
{
	take(NULL);
	KEEP_FRAME();
	return *(const int *)a - *(const int *)b;
}

static NOINLINE void
through_qsort(void *unused)
{
	int numbers[] = { 3, 1, 2 };

	qsort(numbers, 3, sizeof numbers[0], compare_and_take);
	KEEP_FRAME();
}

TEST(frame_shapes)
{
	uint64_t fallbacks = lost(KMEM_LOST_FALLBACK_UNWINDS);

	check_scene(dive_on, (void *)through_plain);
	check_scene(dive_on, (void *)through_realigned);
	check_scene(through_qsort, NULL);
	assert_int_equal(lost(KMEM_LOST_FALLBACK_UNWINDS), fallbacks);
}

TEST(inexpressible_frames_are_walked_by_libunwind)
{
	uint64_t fallbacks = lost(KMEM_LOST_FALLBACK_UNWINDS);

	dive((void *)2);
	uint32_t frames = stack.count;
	uint64_t outermost = stack.pc[frames - 1];

	call_inexpressible(dive, (void *)2);
	assert_true(stack.is_complete);
	assert_int_equal(lost(KMEM_LOST_FALLBACK_UNWINDS), fallbacks + 1);
	assert_int_equal(stack.count, frames + 1);
	assert_int_equal(stack.pc[frames], outermost);
	assert_true(native_stack_sp(&stack, 1) > native_stack_sp(&stack, 0));
}

/* ---- signals ---- */

static void
handler(int number)
{
	dive((void *)3);
	KEEP_FRAME();
}

static NOINLINE void
interrupted(void *unused)
{
	__asm__ volatile(MADE_ILLEGAL); // the handler steps over it
	KEEP_FRAME();
}

static void
step_over(int number, siginfo_t *info, void *context)
{
	handler(number);
	((ucontext_t *)context)->uc_mcontext.MADE_PC += sizeof(made_illegal);
}

static void
check_signal(int flags)
{
	struct sigaction action = { .sa_sigaction = step_over, .sa_flags = SA_SIGINFO | flags };
	struct sigaction before;
	uint64_t exact = 0;

	sigaction(SIGILL, &action, &before);
	check_scene(interrupted, NULL);
	sigaction(SIGILL, &before, NULL);
	for (uint32_t i = 0; i < stack.count; i++) {
		if (!(stack.pc[i] & KMEM_FRAME_EXACT))
			continue;
		exact++;
		uint64_t pc = stack.pc[i] & KMEM_FRAME_PC_MASK;
		assert_true(pc >= (uintptr_t)interrupted && pc < (uintptr_t)interrupted + 64);
		assert_memory_equal((void *)(uintptr_t)pc, made_illegal, sizeof(made_illegal));
	}
	assert_int_equal(exact, 1);
	assert_int_equal(stack.is_alternate, (flags & SA_ONSTACK) != 0);
}

TEST(signals)
{
	check_signal(0);
}

TEST(signals_on_a_stack_of_their_own)
{
	stack_t other = { .ss_size = 256 << 10 };
	stack_t before;

	other.ss_sp = malloc(other.ss_size);
	sigaltstack(&other, &before);
	check_signal(SA_ONSTACK);
	sigaltstack(&before, NULL);
	free(other.ss_sp);
}

/* ---- other stacks ---- */

static ucontext_t resumer;
static ucontext_t coroutine;
static uintptr_t coroutine_depth;

static void
coroutine_main(void)
{
	dive((void *)coroutine_depth);
	KEEP_FRAME();
}

static void
run_coroutine(void *unused)
{
	size_t bytes = 4 << 20;
	void *memory = malloc(bytes);

	getcontext(&coroutine);
	coroutine.uc_stack.ss_sp = memory;
	coroutine.uc_stack.ss_size = bytes;
	coroutine.uc_link = &resumer;
	makecontext(&coroutine, coroutine_main, 0);
	swapcontext(&resumer, &coroutine);
	free(memory);
}

TEST(coroutines)
{
	coroutine_depth = 10;
	check_scene(run_coroutine, NULL);
	assert_true(stack.is_alternate);
	coroutine_depth = 1000; // more than is worth a system call each
	run_coroutine(NULL);
	assert_false(stack.is_complete);
	assert_int_equal(stack.count + stack.omitted, 512);
}

TEST(what_follows_is_copied_along_as_far_as_it_can_be_read)
{
	uint64_t page = CHECKED_PAGE_BYTES;
	unsigned char *memory = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t first = (uintptr_t)memory;
	struct checked_span span = { 0 };
	uint64_t value = 0;

	assert_ptr_not_equal(memory, MAP_FAILED);
	for (uint64_t at = 0; at < 4 * page; at += 8)
		*(uint64_t *)(memory + at) = first + at;
	assert_int_equal(mprotect(memory, page, PROT_NONE), 0);
	assert_int_equal(mprotect(memory + 3 * page, page, PROT_NONE), 0);
	assert_true(checked_memory_span_word(&span, first + page + 1032, &value));
	assert_int_equal(value, first + page + 1032);
	assert_int_equal(span.addr, first + page + 1024);
	assert_int_equal(span.end, first + 3 * page); // both pages with one question
	assert_true(checked_memory_span_word(&span, first + 3 * page - 8, &value));
	assert_int_equal(value, first + 3 * page - 8);
	assert_true(checked_memory_span_word(&span, first + page, &value)); // below
	assert_int_equal(value, first + page);
	assert_false(checked_memory_span_word(&span, first + 3 * page, &value));
	assert_false(checked_memory_span_word(&span, first + page - 8, &value));
	assert_false(checked_memory_span_word(&span, first + page + 4, &value)); // not aligned
	assert_true(checked_memory_span_word(&span, first + page + 8, &value));
	assert_int_equal(value, first + page + 8);
	(void)munmap(memory, 4 * page);
}

static void *
thread_main(void *unused)
{
	check_scene(dive, (void *)10);
	assert_false(stack.is_alternate);
	return unused;
}

TEST(small_threads)
{
	for (int i = 0; i < 20; i++) {
		pthread_t thread;
		pthread_attr_t attributes;

		pthread_attr_init(&attributes);
		pthread_attr_setstacksize(&attributes, 64 << 10);
		assert_int_equal(pthread_create(&thread, &attributes, thread_main, NULL), 0);
		pthread_join(thread, NULL);
		pthread_attr_destroy(&attributes);
	}
}

/* ---- code without tables ---- */

TEST(generated_code_ends_the_walk)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t unwinds = lost(KMEM_LOST_UNWINDS);
	uint64_t checked = capture_file_header()->verify_checked;

	assert_true(page != MAP_FAILED);
	memcpy(page, made_code, sizeof made_code);
	__builtin___clear_cache(page, (char *)page + sizeof made_code);
	for (int i = 0; i < 2; i++) { // the second time it is remembered
		((void (*)(callback *, void *))page)(dive, (void *)2);
		assert_false(stack.is_complete);
		assert_int_equal(stack.count, 4);
		assert_int_equal(stack.pc[3], (uintptr_t)page + MADE_CODE_RETURN);
	}
	assert_int_equal(lost(KMEM_LOST_UNWINDS), unwinds + 2);
	assert_int_equal(capture_file_header()->verify_checked, checked + 2); // as far as it goes
	assert_int_equal(capture_file_header()->verify_mismatched, 0);
	munmap(page, 4096);
}

TEST(made_up_frames_end_the_walk)
{
	static const uint64_t pcs[] = {
		0, 1, 0x1000, 0x7fffffffffff, 0x800000000000, UINT64_MAX, 0xffffffffff600000, (uint64_t)1 << 62
	};
	uint64_t seed = 42;

	for (int i = 0; i < 20000; i++) {
		uint64_t frame[32]; // live stack memory: what a hook frame promises

		for (int j = 0; j < 32; j++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			frame[j] = j % 3 == 0 ? (uintptr_t)&frame[seed >> 59] : seed >> (seed >> 58);
		}
		frame[1] = i < 8 ? pcs[i] : (uintptr_t)qsort + (seed >> 48);
		native_stack_walk(NULL, frame, 0, &stack);
		assert_true(stack.count <= NATIVE_STACK_MAX);
	}
}

TEST(stops_where_asked)
{
	static struct native_stack whole;

	check_scene(dive, (void *)20);
	whole = stack;
	for (uint32_t i = 2; i + 1 < whole.count; i++) {
		/* The same scene again has the same addresses. */
		stop_sp = i % 2 ? native_stack_sp(&whole, i) : native_stack_sp(&whole, i + 1) - 1;
		check_scene(dive, (void *)20);
		assert_int_equal(stack.count, i);
	}
	stop_sp = 0;
}

/* ---- modules that come and go ---- */

static bool
build(const char *folder, const char *name, unsigned frame_bytes, const char *flags)
{
	char command[1024];

	snprintf(command, sizeof command,
	         "printf 'void %s(void (*call)(void *), void *context)"
	         "{ volatile char room[%u]; room[0] = 1; call(context); room[1] = 1; }' |"
	         " ${CC:-cc} -x c -shared -fPIC -O1 -fomit-frame-pointer %s -o %s/%s.so -",
	         name, frame_bytes, flags, folder, name);
	return system(command) == 0;
}

static void *
open_built(const char *folder, const char *name)
{
	char path[256];

	snprintf(path, sizeof path, "%s/%s.so", folder, name);
	return dlopen(path, RTLD_NOW);
}

static struct kmem_module *
find_module(const char *name)
{
	for (uint32_t at = capture_file_header()->modules; at != 0;) {
		struct kmem_module *module = capture_file_item(KMEM_SECTION_RECORDS, at);

		if (memmem(module + 1, module->path_bytes, name, strlen(name)) != NULL)
			return module;
		at = module->record.previous;
	}
	return NULL;
}

static void
through_library(void *function)
{
	((void (*)(callback *, void *))function)(dive, (void *)2);
	KEEP_FRAME();
}

TEST(another_library_at_the_same_address)
{
	char folder[] = "/tmp/test_native_stack.XXXXXX";
	char command[256];

	assert_non_null(mkdtemp(folder));

	if (!build(folder, "first", 100, "") || !build(folder, "second", 600, ""))
		skip(); // no compiler here

	void *first = open_built(folder, "first");

	assert_non_null(first);
	void *function = dlsym(first, "first");
	check_scene(through_library, function);
	module_map_note_pc((uintptr_t)function);
	struct kmem_module *old = find_module("/first.so");

	uint64_t newest = capture_file_header()->modules;

	module_map_note_pc((uintptr_t)function);
	assert_int_equal(capture_file_header()->modules, newest); // M1
	assert_non_null(old);
	assert_true((uintptr_t)function >= old->start_addr && (uintptr_t)function < old->end_addr);
	assert_int_equal((uint32_t)old->unloaded, 0);
	assert_int_equal(old->build_id_bytes, 20);
	assert_true(old->file_size_bytes > 0 && old->file_mtime_ns > 0);

	uint32_t version = capture_file_header()->module_version;

	dlclose(first);
	module_map_unloaded_check(true);
	assert_int_equal(capture_file_header()->module_version, version + 1);
	assert_int_equal((uint32_t)old->unloaded, version + 1);

	/* Into the hole that the first one left: the loader takes the highest that fits. */
	void *second = open_built(folder, "second");

	assert_non_null(second);
	function = dlsym(second, "second");
	check_scene(through_library, function);
	module_map_note_pc((uintptr_t)function);
	struct kmem_module *fresh = find_module("/second.so");

	assert_non_null(fresh);
	if (fresh->start_addr < old->end_addr && old->start_addr < fresh->end_addr)
		assert_true(fresh->loaded_version >= (uint32_t)old->unloaded); // M2
	else
		print_message("the second library came to another address\n");
	dlclose(second);
	module_map_unloaded_check(true);
	assert_true((uint32_t)fresh->unloaded > (uint32_t)old->unloaded);
	snprintf(command, sizeof command, "rm -r %s", folder);
	assert_int_equal(system(command), 0);
}

/* As in some libraries of NVIDIA: .eh_frame is not in the segment of its header, and a gap is between. */
TEST(tables_in_two_segments)
{
	char folder[] = "/tmp/test_native_stack.XXXXXX";
	char command[256];

	assert_non_null(mkdtemp(folder));
	bool is_built = build(folder, "apart", 100, "-Wl,--section-start=.eh_frame=0x400000");

	if (is_built) {
		void *library = open_built(folder, "apart");

		assert_non_null(library);
		check_scene(through_library, dlsym(library, "apart"));
		dlclose(library);
	}
	snprintf(command, sizeof command, "rm -r %s", folder);
	assert_int_equal(system(command), 0);
	if (!is_built)
		skip(); // no compiler here
}

SETUP(start)
{
	settings.verify_every = 1;
	native_stack_start();
}

RUN_TESTS_IN(start, NULL)
