/*
 * accounting: every way to ask for memory and to give it back, each in a function of its own with what it leaves alive. Run by
 * test_accounting.py, which reads the tables below from this file.
 *
 *   accounting           all KEEPS, one after the other
 *   accounting NAME      one PEAKS
 *
 * KEEPS(name, live bytes, live blocks): what the report must say of the function, in bytes as they were asked for;
 * KEEPS_LATER: the same of one that main does not call.
 * PEAKS(name, a, b, c): how many MiB of the process' peak were allocated in a(), b() and c().
 */
#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <malloc.h>
#include <memory>
#include <new>
#include <pthread.h>
#include <string>
#include <thread>
#include <ucontext.h>
#include <unistd.h>
#include <vector>

/* In a list, in the order of the file: nothing is allocated for it. */
struct Case {
	const char *name;
	void (*run)(void);
	bool is_peak;
	Case *next;
	static Case *first, **last;

	Case(const char *name, void (*run)(void), bool is_peak) : name(name), run(run), is_peak(is_peak), next(nullptr)
	{
		*last = this;
		last = &next;
	}
};
Case *Case::first, **Case::last = &first;

#define KEEPS(name, bytes, blocks)                       \
	static void keeps_##name(void);                      \
	static Case case_##name(#name, keeps_##name, false); \
	static __attribute__((noinline)) void keeps_##name(void)
#define PEAKS(name, a, b, c)                            \
	static void peaks_##name(void);                     \
	static Case case_##name(#name, peaks_##name, true); \
	static __attribute__((noinline)) void peaks_##name(void)
/* Called by somebody else than main. */
#define KEEPS_LATER(name, bytes, blocks) static __attribute__((noinline)) void keeps_##name

/* What the compiler must not know: else it removes pairs of allocation and release. */
static void *volatile sink;
static volatile std::size_t huge = SIZE_MAX / 2, zero = 0;

static void *
seen(void *block)
{
	sink = block;
	return block;
}

/* --- C ------------------------------------------------------------------------------------------------------------- */

KEEPS(malloc, 1000, 1)
{
	seen(malloc(1000));
}
KEEPS(calloc, 1000, 1)
{
	seen(calloc(10, 100));
}
KEEPS(realloc_of_nothing, 1000, 1)
{
	seen(realloc(nullptr, 1000));
}
KEEPS(reallocarray, 1000, 1)
{
	seen(reallocarray(nullptr, 10, 100));
}
KEEPS(memalign, 1000, 1)
{
	seen(memalign(4096, 1000));
}
KEEPS(aligned_alloc, 1024, 1)
{
	seen(aligned_alloc(256, 1024));
}
KEEPS(valloc, 1000, 1)
{
	seen(valloc(1000));
}
KEEPS(pvalloc, 1000, 1)
{
	seen(pvalloc(1000));
}
KEEPS(strdup, 6, 1)
{
	seen(strdup("words"));
}

KEEPS(posix_memalign, 1000, 1)
{
	void *block;

	if (posix_memalign(&block, 64, 1000) == 0)
		seen(block);
}

KEEPS(asprintf, 0, 0)
{
	char *text;

	if (asprintf(&text, "%d words", 1000) > 0)
		free(seen(text));
}

KEEPS(malloc_of_zero, 0, 1)
{
	seen(malloc(zero));
}
KEEPS(calloc_of_zero, 0, 1)
{
	seen(calloc(zero, 8));
}
KEEPS(free_of_null, 0, 0)
{
	free(seen(nullptr));
}

KEEPS(free_of_each, 0, 0)
{
	void *block;

	free(seen(malloc(1000)));
	free(seen(calloc(10, 100)));
	free(seen(realloc(nullptr, 1000)));
	free(seen(reallocarray(nullptr, 10, 100)));
	free(seen(memalign(4096, 1000)));
	free(seen(aligned_alloc(256, 1024)));
	free(seen(valloc(1000)));
	free(seen(pvalloc(1000)));
	if (posix_memalign(&block, 64, 1000) == 0)
		free(seen(block));
}

/* C23's, where libc has them, or where the shim does: then they are free(). */
KEEPS(free_sized, 0, 0)
{
	auto sized = reinterpret_cast<void (*)(void *, std::size_t)>(dlsym(RTLD_DEFAULT, "free_sized"));
	auto aligned = reinterpret_cast<void (*)(void *, std::size_t, std::size_t)>(
		dlsym(RTLD_DEFAULT, "free_aligned_sized"));
	void *one = seen(malloc(1000)), *other = seen(aligned_alloc(64, 1024));

	sized ? sized(one, 1000) : free(one);
	aligned ? aligned(other, 64, 1024) : free(other);
}

/* The address of free, as destructors and callbacks have it. */
KEEPS(free_by_pointer, 0, 0)
{
	void (*volatile release)(void *) = free;

	release(seen(malloc(1000)));
}

KEEPS(cut_in_place, 100, 1)
{
	seen(realloc(seen(malloc(120)), 100));
}
KEEPS(grown_and_moved, 100000, 1)
{
	seen(realloc(seen(malloc(100)), 100000));
}
KEEPS(grown_by_remapping, 4 << 20, 1)
{
	seen(realloc(seen(malloc(1 << 20)), 4 << 20));
}
KEEPS(realloc_to_zero, 0, 0)
{
	seen(realloc(seen(malloc(1000)), zero));
}

KEEPS(realloc_to_zero_then_reused, 3000, 3)
{
	for (int i = 0; i < 3; i++) {
		seen(realloc(seen(malloc(1000)), zero));
		seen(malloc(1000));
	}
}

KEEPS(refused_realloc_keeps_the_block, 1000, 1)
{
	void *block = seen(malloc(1000));

	if (realloc(block, huge) == nullptr && errno == ENOMEM)
		seen(block);
}

KEEPS(refused, 0, 0)
{
	void *block = nullptr;

	seen(malloc(huge));
	seen(calloc(huge, 4));
	seen(reallocarray(nullptr, huge, 4));
	seen(aligned_alloc(64, huge));
	if (posix_memalign(&block, 64, huge) != ENOMEM || posix_memalign(&block, 3, 10) != EINVAL)
		abort();
}

KEEPS(alignment_that_is_none, 0, 0)
{
	if (seen(memalign(huge + 2, 10)) != nullptr || errno != EINVAL)
		abort();
}

/* A size that is no size of any class, and large ones. */
KEEPS(odd_sizes, (1 << 20) + 1 + 129 + 7, 3)
{
	seen(malloc((1 << 20) + 1));
	seen(malloc(129));
	seen(malloc(7));
}

KEEPS(many_of_one_line, 1000 * 48, 1000)
{
	for (int i = 0; i < 2000; i++) {
		void *block = seen(malloc(48));
		if (i % 2)
			free(block);
	}
}

static __attribute__((noinline)) void
deep(int depth)
{
	if (depth == 0)
		seen(malloc(1000));
	else
		deep(depth - 1);
	sink = &depth;
}

KEEPS(below_five_hundred_frames, 1000, 1)
{
	deep(500);
}

static jmp_buf back;

static __attribute__((noinline)) void
jump(int depth)
{
	if (depth == 0) {
		seen(malloc(1000));
		longjmp(back, 1);
	}
	jump(depth - 1);
	sink = &depth;
}

KEEPS(after_longjmp, 1500, 2)
{
	if (setjmp(back) == 0)
		jump(50);
	seen(malloc(500));
}

/* --- C++ ----------------------------------------------------------------------------------------------------------- */

KEEPS(new_one, 8, 1)
{
	seen(new double(1));
}
KEEPS(new_array, 800, 1)
{
	seen(new double[100]);
}
KEEPS(new_nothrow, 800, 1)
{
	seen(new (std::nothrow) double[100]);
}
KEEPS(new_aligned, 256, 1)
{
	seen(operator new(256, std::align_val_t(64)));
}

KEEPS(delete_of_each, 0, 0)
{
	delete static_cast<double *>(seen(new double(1)));
	delete[] static_cast<double *>(seen(new double[100]));
	operator delete(seen(operator new(1000)), std::size_t(1000));
	operator delete(seen(operator new(256, std::align_val_t(64))), std::align_val_t(64));
	operator delete[](seen(operator new[](1000, std::nothrow)), std::nothrow);
}

struct Own {
	char room[200];
	static void *operator new(std::size_t bytes)
	{
		return malloc(bytes + 100);
	}
	static void operator delete(void *block)
	{
		free(block);
	}
};

KEEPS(new_of_a_class, 300, 1)
{
	delete static_cast<Own *>(seen(new Own));
	seen(new Own);
}

KEEPS(placement_new, 200, 1)
{
	seen(new (seen(malloc(200))) char[200]);
}

KEEPS(vector_that_grew, 4096 * 8, 1)
{
	auto numbers = new (seen(aligned_alloc(64, 64))) std::vector<double>;

	for (int i = 0; i < 4096; i++)
		numbers->push_back(i);
	seen(numbers->data());
	free(numbers); // the vector's own 64 bytes; what it holds stays
}

static __attribute__((noinline)) void
thrower(int depth)
{
	std::unique_ptr<char[]> freed(new char[1000]);

	seen(freed.get());
	if (depth == 0) {
		seen(malloc(500));
		throw depth;
	}
	thrower(depth - 1);
}

KEEPS(exception_through_a_hundred_frames, 500, 1)
{
	try {
		thrower(100);
	} catch (int) {
	}
}

KEEPS(new_that_throws, 0, 0)
{
	try {
		seen(operator new(huge));
	} catch (const std::bad_alloc &) {
	}
}

/* --- threads, signals, other stacks -------------------------------------------------------------------------------- */

KEEPS(free_by_another_thread, 0, 0)
{
	void *block = seen(malloc(1000));

	std::thread([block] { free(block); }).join();
}

static void *
allocate_a_thousand(void *)
{
	return seen(malloc(1000));
}

/* The thread's stack and control block are libc's: of the block alone stays something. */
KEEPS(by_a_thread_that_is_gone, 0, 0)
{
	pthread_t thread;
	void *block = nullptr;

	if (pthread_create(&thread, nullptr, allocate_a_thousand, nullptr) == 0)
		pthread_join(thread, &block);
	free(block);
}

static ucontext_t resumer, other;

static void
on_another_stack(void)
{
	seen(malloc(1000));
}

KEEPS(by_a_coroutine, 0, 0)
{
	std::vector<char> stack(64 << 10);

	getcontext(&other);
	other.uc_stack.ss_sp = stack.data();
	other.uc_stack.ss_size = stack.size();
	other.uc_link = &resumer;
	makecontext(&other, on_another_stack, 0);
	swapcontext(&resumer, &other);
	free(sink);
}

static void
on_signal(int)
{
	seen(malloc(1000)); // not allowed, done everywhere
}

KEEPS(by_a_signal_handler_on_an_alternate_stack, 1000, 1)
{
	static char room[64 << 10];
	stack_t stack = {}, before;
	struct sigaction action = {};

	stack.ss_sp = room;
	stack.ss_size = sizeof room;
	action.sa_handler = on_signal;
	action.sa_flags = SA_ONSTACK;
	sigaltstack(&stack, &before);
	sigaction(SIGUSR1, &action, nullptr);
	raise(SIGUSR1);
	sigaltstack(&before, nullptr);
}

static pthread_key_t key;

KEEPS_LATER(in_a_destructor_of_a_key, 1000, 1)(void *)
{
	seen(malloc(1000));
}

KEEPS(key, 0, 0)
{
	pthread_key_create(&key, keeps_in_a_destructor_of_a_key);
	std::thread([] { pthread_setspecific(key, &key); }).join();
}

KEEPS_LATER(in_a_destructor_of_a_thread_local, 1000, 1)(void)
{
	seen(malloc(1000));
}

struct AtThreadExit {
	int used = 0;
	~AtThreadExit()
	{
		keeps_in_a_destructor_of_a_thread_local();
	}
};
static thread_local AtThreadExit at_thread_exit;

KEEPS(thread_local_object, 0, 0)
{
	std::thread([] { at_thread_exit.used = 1; }).join();
}

__attribute__((constructor)) KEEPS_LATER(before_main, 1000, 1)(void)
{
	seen(malloc(1000));
}

KEEPS_LATER(after_main, 2000, 1)(void)
{
	seen(malloc(2000));
}

/* --- peaks --------------------------------------------------------------------------------------------------------- */

static __attribute__((noinline)) void *
a(int mib)
{
	return seen(malloc(std::size_t(mib) << 20));
}
static __attribute__((noinline)) void *
b(int mib)
{
	return seen(malloc(std::size_t(mib) << 20));
}
static __attribute__((noinline)) void *
c(int mib)
{
	return seen(malloc(std::size_t(mib) << 20));
}

PEAKS(one_block_is_peak_and_leak, 10, 0, 0)
{
	a(10);
}
PEAKS(one_of_two_freed_at_one_place, 20, 0, 0)
{
	void *block = a(10);

	a(10);
	free(block);
}
PEAKS(one_of_two_freed_at_two_places, 10, 10, 0)
{
	void *block = a(10);

	b(10);
	free(block);
}
PEAKS(freed_before_the_peak, 0, 20, 0)
{
	free(a(10));
	b(20);
}
PEAKS(made_after_the_peak_and_kept, 20, 0, 0)
{
	free(a(20));
	b(10);
}
PEAKS(made_after_the_peak_and_freed, 20, 0, 0)
{
	free(a(20));
	free(b(10));
}
PEAKS(between_two_peaks, 0, 0, 30)
{
	free(a(20));
	free(b(10));
	c(30);
}
PEAKS(first_of_equal_peaks, 20, 0, 0)
{
	free(a(20));
	free(b(20));
}
PEAKS(last_block_makes_the_peak, 10, 10, 10)
{
	a(10);
	b(10);
	c(10);
}
PEAKS(rising_with_spikes, 9, 0, 20)
{
	for (int i = 1; i < 10; i++) {
		a(1);
		free(b(i));
	}
	c(20);
}
PEAKS(falling_with_spikes, 20, 15, 0)
{
	void *blocks[20];

	for (auto &block : blocks)
		block = a(1);
	for (auto &block : blocks) {
		free(b(15));
		free(block);
	}
}
PEAKS(of_threads_together, 0, 20, 0)
{
	std::vector<std::thread> threads;

	free(a(19));
	for (int i = 0; i < 4; i++)
		threads.emplace_back([] { b(5); });
	for (auto &thread : threads)
		thread.join();
}

int
main(int argc, char **argv)
{
	atexit(keeps_after_main);
	std::thread([] {}).join(); // libc keeps what it made for a thread, for the next one
	for (Case *each = Case::first; each; each = each->next)
		if (argc > 1 ? strcmp(argv[1], each->name) == 0 : !each->is_peak)
			each->run();
	return 0;
}
