/*
 * test_native_cache_scenes.c - does a cache hold over signals, other stacks, modules that come and go, and exceptions?
 *
 * native_walker.h compares each walk with one without a cache.
 */
#include "unwind/native_walker.h"

#include <dlfcn.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

/* ---- signals and other stacks ---- */

static void
step_over(int number, siginfo_t *info, void *context)
{
	dive((void *)3);
	((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP] += 2;
}

static NOINLINE void
interrupted(void)
{
	dive((void *)4);
	__asm__ volatile("ud2"); // the handler steps over it
	dive((void *)4);
	KEEP_FRAME();
}

static void
signals(void)
{
	struct sigaction action = { .sa_sigaction = step_over, .sa_flags = SA_SIGINFO };
	struct sigaction before;
	stack_t other = { .ss_size = 256 << 10 };
	stack_t own;

	other.ss_sp = malloc(other.ss_size);
	sigaltstack(&other, &own);
	for (unsigned round = 0; round < 4; round++) {
		uint64_t remembered = self->remembered;

		action.sa_flags = SA_SIGINFO | (round % 2 ? SA_ONSTACK : 0);
		sigaction(SIGILL, &action, &before);
		interrupted();
		sigaction(SIGILL, &before, NULL);
		assert_int_equal(self->remembered, remembered + 2); // not the handler's
		assert_true(self->stack.kept > 0);
	}
	sigaltstack(&own, NULL);
	free(other.ss_sp);
}

static ucontext_t resumer;
static ucontext_t coroutine;

static void
coroutine_main(void)
{
	uint64_t remembered = self->remembered;

	for (volatile unsigned i = 0; i < 2; i++) // one call site
		dive((void *)10);
	assert_true(self->stack.is_alternate);
	assert_true(self->remembered > remembered); // all that lies in the page
	assert_true(self->stack.kept > 10);
}

static void
coroutines(void)
{
	size_t bytes = 1 << 20;
	void *memory = malloc(bytes);

	for (unsigned round = 0; round < 3; round++) {
		dive((void *)3);
		assert_true(round == 0 || self->stack.kept > 3);
		getcontext(&coroutine);
		coroutine.uc_stack.ss_sp = memory;
		coroutine.uc_stack.ss_size = bytes;
		coroutine.uc_link = &resumer;
		makecontext(&coroutine, coroutine_main, 0);
		swapcontext(&resumer, &coroutine);
	}
	free(memory);
}

/*
 * Goes on with another stack pointer, and nothing there tells: the caller's return address is taken to lie 8 bytes above it.
 */
void call_elsewhere(callback *callee, void *context, uint64_t sp);
__asm__(".text\ncall_elsewhere:\n.cfi_startproc\npush %rbx\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset rbx, 0\n"
        "mov %rsp, %rbx\nmov %rdx, %rsp\nmov %rdi, %rax\nmov %rsi, %rdi\ncall *%rax\nmov %rbx, %rsp\n"
        "pop %rbx\n.cfi_adjust_cfa_offset -8\n.cfi_restore rbx\nret\n.cfi_endproc\n");

/* What lies behind a stack's end may be gone, or come and go: it is never read as if it belonged to the stack. */
TEST(the_end_of_a_mapping)
{
	size_t bytes = 256 << 10;
	uint8_t *memory = mmap(NULL, bytes + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t end = (uintptr_t)memory + bytes;

	assert_true((void *)memory != MAP_FAILED);
	for (unsigned round = 0; round < 6; round++) {
		assert_int_equal(mprotect(memory + bytes, 4096, round % 2 ? PROT_NONE : PROT_READ | PROT_WRITE), 0);
		for (uint64_t below = 0; below <= 8192; below += below < 64 ? 16 : 496) {
			call_elsewhere(dive, (void *)(uintptr_t)(round % 3), end - below);
			assert_true(self->stack.is_alternate);
		}
		dive((void *)3);
		assert_true(self->stack.is_complete && !self->stack.is_alternate);
	}
	munmap(memory, bytes + 4096);
}

TEST(scene_other_stacks)
{
	check_nothing_lost(signals);
	check_nothing_lost(coroutines);
}

/* Code without tables ends a walk: that is remembered like another end. */
TEST(generated_code)
{
	/* sub $8, %rsp; mov %rdi, %rax; mov %rsi, %rdi; call *%rax; add $8, %rsp; ret */
	static const uint8_t code[] = { 0x48, 0x83, 0xec, 0x08, 0x48, 0x89, 0xf8, 0x48, 0x89,
		                            0xf7, 0xff, 0xd0, 0x48, 0x83, 0xc4, 0x08, 0xc3 };
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(page != MAP_FAILED);
	memcpy(page, code, sizeof code);
	for (int round = 0; round < 3; round++) {
		((frame_maker *)page)(dive, (void *)2, 0);
		assert_false(self->stack.is_complete);
		assert_int_equal(self->stack.count, 4);
		assert_true(round == 0 || self->stack.kept >= 3);
	}
	munmap(page, 4096);
	dive((void *)2);
	assert_true(self->stack.is_complete);
}

/* ---- modules ---- */

/* Says why when there is no compiler. */
static void *
build(const char *folder, const char *name, const char *compiler, const char *source)
{
	char command[2048];
	char path[256];

	snprintf(path, sizeof path, "%s/%s.so", folder, name);
	snprintf(command, sizeof command, "printf '%%s' '%s' | %s - -shared -fPIC -O1 -fomit-frame-pointer -o %s", source,
	         compiler, path);
	return system(command) == 0 ? dlopen(path, RTLD_NOW) : NULL;
}

static void
remove_folder(const char *folder)
{
	char command[256];

	snprintf(command, sizeof command, "rm -r %s", folder);
	assert_int_equal(system(command), 0);
}

/* The same code but for the size of the frame, at the same address; and the frame where its callee is is at the same sp. */
TEST(another_library_at_the_same_address)
{
	char folder[] = "/tmp/test_native_cache.XXXXXX";
	static const char text[] = "void call(void (*call)(void *), void *context)"
							   "{ volatile char room[%u]; room[0] = 1; call(context); room[1] = 1; }";
	char source[256];
	uint64_t first_pc = 0;

	assert_non_null(mkdtemp(folder));
	for (unsigned i = 0; i < 2; i++) {
		snprintf(source, sizeof source, text, i == 0 ? 520u : 536u);
		void *library = build(folder, i == 0 ? "first" : "second", "${CC:-cc} -x c", source);

		if (library == NULL) {
			remove_folder(folder);
			skip(); // no compiler here
		}

		callback *volatile function = (callback *)dlsym(library, "call"); // and a second argument, 0 here

		for (unsigned round = 0; round < 2; round++) {
			call_pointed(function, (void *)take_entry, 0);
			assert_true(self->stack.is_complete);
			assert_true(round == 1 || self->stack.kept == 0 || i == 0);
		}
		if (i == 0)
			first_pc = (uintptr_t)function;
		else if ((uintptr_t)function != first_pc)
			print_message("the second library came to another address\n");
		dlclose(library);
		native_stack_modules_changed();
	}
	remove_folder(folder);
}

TEST(exceptions)
{
	static const char source[] = "struct guard { void (*take)(void *); ~guard() { take(nullptr); } };"
								 "static void dive(void (*take)(void *), int depth) {"
								 "  guard on_the_way{take};"
								 "  if (depth == 0) throw 42;"
								 "  take(nullptr);"
								 "  try { dive(take, depth - 1); }"
								 "  catch (int) { take(nullptr); if (depth % 3) throw; }"
								 "}"
								 "extern \"C\" void thrower(void (*take)(void *), void *, unsigned long) {"
								 "  for (int i = 0; i < 20; i++) try { dive(take, i); } catch (int) { take(nullptr); }"
								 "}";
	char folder[] = "/tmp/test_native_cache.XXXXXX";

	assert_non_null(mkdtemp(folder));
	void *library = build(folder, "thrower", "c++ -x c++", source);

	remove_folder(folder);
	if (library == NULL)
		skip(); // no compiler here
#if defined(__clang__) && defined(__SANITIZE_ADDRESS__)
	skip(); // clang's sanitizer ends a program that throws and was started without C++
#endif

	uint64_t walks = self->walks;

	((frame_maker *)dlsym(library, "thrower"))(take, NULL, 0);
	assert_true(self->walks - walks > 100);
	assert_int_equal(capture_file_header()->verify_mismatched, 0);
	dlclose(library);
	native_stack_modules_changed();
}

RUN_TESTS_IN(start, NULL)
