/*
 * test_every_instruction.c - is the stack right wherever a signal may come: in stubs of the PLT, the loader, hand-written assembly?
 *
 * A trap at each instruction walks from there. The frames outside the scene must be what they are, whatever is inside; libunwind repeats
 * every walk.
 */
#include "test.h"

#include <dlfcn.h>
#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/settings.h"
#include "capture/capture_file.h"
#include "kmem_format.h"
#include "unwind/each_instruction.h"
#include "unwind/native_stack.h"

#define NOINLINE __attribute__((noinline))
#define KEEP_FRAME() __asm__ volatile("" ::: "memory") // no tail call

typedef void scene(void *);

static struct native_stack stack;
static uint64_t outer_pc[NATIVE_STACK_MAX]; // of the frames outside the scene, innermost first
static uint32_t outer_count;
static volatile bool is_over;
static struct {
	uint64_t instructions;
	uint64_t wrong; // the frames outside are other ones
	uint64_t lost;  // the walk did not get there
	uint64_t pc;    // of the last of these
} seen;

static bool
is_outer_part(void)
{
	return stack.is_complete && stack.count > outer_count &&
	       memcmp(stack.pc + stack.count - outer_count, outer_pc, outer_count * sizeof(outer_pc[0])) == 0;
}

/* Called by the handler; from here on as from a hook. */
static NOINLINE bool
look(void)
{
	int host_errno = errno;

	native_stack_walk(NULL, __builtin_frame_address(0), 0, &stack);
	seen.instructions++;
	if (!is_outer_part()) {
		seen.wrong += stack.is_complete;
		seen.lost += !stack.is_complete;
		seen.pc = stack.pc[2] & KMEM_FRAME_PC_MASK; // behind the handler and its trampoline
	}
	errno = host_errno;
	return !is_over;
}

/* The hook. */
static NOINLINE void
learn_outer(void)
{
	native_stack_walk(NULL, __builtin_frame_address(0), 0, &stack);
	outer_count = stack.count - 1; // without that of run()
	memcpy(outer_pc, stack.pc + 1, outer_count * sizeof(outer_pc[0]));
	KEEP_FRAME();
}

static NOINLINE void
run(scene *play, void *context)
{
	learn_outer();
	is_over = false;
	each_instruction(look);
	play(context);
	is_over = true;
	KEEP_FRAME();
}

static void
check(const char *name, scene *play, void *context)
{
	struct kmem_header *header = capture_file_header();
	uint64_t checked = header->verify_checked, mismatched = header->verify_mismatched;
	uint64_t fallbacks = header->losses[KMEM_LOST_FALLBACK_UNWINDS];
	Dl_info info = { 0 };

	memset(&seen, 0, sizeof(seen));
	run(play, context);
	if (seen.wrong + seen.lost != 0 && dladdr((void *)seen.pc, &info) != 0)
		print_message("%s: at %s, %s\n", name, info.dli_sname != NULL ? info.dli_sname : "?", info.dli_fname);
	checked = header->verify_checked - checked;
	fallbacks = header->losses[KMEM_LOST_FALLBACK_UNWINDS] - fallbacks;
	print_message(
		"%s: %lu instructions, %lu walks by rules repeated by libunwind, %lu by libunwind alone, %lu wrong, %lu lost\n",
		name, seen.instructions, checked, fallbacks, seen.wrong, seen.lost);
	assert_true(checked > 20);
	assert_true(checked + fallbacks > seen.instructions / 10 * 9); // libunwind did not give up
	assert_int_equal(header->verify_mismatched, mismatched);
	assert_int_equal(seen.wrong + seen.lost, 0);
}

static void
copies(void *context)
{
	static char room[2][3000];
	volatile size_t sizes[] = { 3, 40, 700, 3000 };

	for (size_t i = 0; i < 4; i++) {
		memset(room[0], 'x', sizes[i]);
		memcpy(room[1], room[0], sizes[i]);
		memmove(room[1], room[1] + 1, sizes[i] - 1);
		room[1][sizes[i] - 1] = '\0';
		if (strlen(room[1]) > sizes[i])
			abort();
	}
}

static void
jumps(void *context)
{
	jmp_buf back;

	if (setjmp(back) == 0)
		longjmp(back, 1);
}

static void
contexts(void *context)
{
	ucontext_t here;
	volatile unsigned turns = 0;

	if (getcontext(&here) == 0 && turns++ == 0)
		setcontext(&here);
}

static void
vforks(void *context)
{
	int status;
	pid_t pid = vfork();

	if (pid == 0)
		_exit(0);
	(void)waitpid(pid, &status, 0);
}

static void
handler(int number)
{
}

static void
signals(void *context)
{
	struct sigaction action = { .sa_handler = handler };

	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
}

TEST(assembly_of_libc)
{
#if defined(__SANITIZE_ADDRESS__)
	print_message("the sanitizer brings its own\n");
	skip();
#endif
	check("copies", copies, NULL);
	check("setjmp", jumps, NULL);
	check("setcontext", contexts, NULL);
	check("vfork", vforks, NULL);
	check("signal", signals, NULL);
}

/* The first call goes through the loader, the second does not. */
TEST(through_stubs)
{
	static const char *const kinds[] = { "-fcf-protection=none", "-fcf-protection=full -Wl,-z,ibtplt",
		                                 "-mtls-dialect=gnu2" };
	char library[] = "/tmp/test_every_instruction.XXXXXX.so";
	char command[512];
	int fd = mkstemps(library, 3);

	assert_true(fd >= 0);
	close(fd);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		snprintf(
			command, sizeof(command),
			"printf '#include <stdlib.h>\nstatic __thread int own; int twice(void) { int a = abs(-3); own += a; return a + abs(-4); }"
			" void call(void *unused) { (void)unused; (void)twice(); }' |"
			" ${CC:-cc} -x c -shared -fPIC -O1 -fno-builtin -fplt -Wl,-z,lazy %s -o %s - 2>/dev/null",
			kinds[i], library);
		void *handle = system(command) == 0 ? dlopen(library, RTLD_LAZY) : NULL;

		if (handle == NULL) {
			print_message("%s: not built here\n", kinds[i]);
			continue;
		}
		void *function = dlsym(handle, "call");

		check(kinds[i], (scene *)function, NULL);
		dlclose(handle);
		native_stack_modules_changed();
	}
	unlink(library);
}

int
main(void)
{
	settings.verify_every = 1;
	native_stack_start();
	return test_run(NULL, NULL, NULL, NULL);
}
