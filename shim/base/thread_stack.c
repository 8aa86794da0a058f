/*
 * thread_stack.c - see thread_stack.h.
 *
 * The main thread's stack ends where the loader says, and reaches down as far as its limit. A thread's
 * control block lies at the upper end of its stack, in the same mapping, whoever made that; so its stack is
 * what can be read without a gap below that block. The page under a stack is a guard or a hole: what lies
 * beyond, a coroutine's stack perhaps, is not taken for it.
 *
 * Not chosen  one mincore() over the range: it says nothing about the protection of a page, so a guard
 *             would join what it separates.
 */
#include "base/thread_stack.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>

#include "base/checked_memory.h"
#include "base/raw_sys.h"

#define MAIN_STACK_BYTES_MIN (UINT64_C(128) << 20) // the kernel keeps this free below the main stack
#define MAIN_STACK_BYTES_MAX (UINT64_C(1) << 30)
#define THREAD_STACK_BYTES_MAX (UINT64_C(256) << 20) // deeper than that it is not known; also bounds the questions

extern void *__libc_stack_end; // of the dynamic loader: the main thread's stack pointer at start

static uint64_t main_low_addr;
static uint64_t main_end_addr;
static uint64_t main_block_addr; // its control block: not near its stack
static uint64_t main_top_addr;   // the end of its mapping, from which its limit is counted: behind the program's name

__thread struct thread_stack_range thread_stack_known;
__thread struct thread_stack_range thread_stack_room;

/*
 * Everything from known_low_addr to the control block can be read; 0 = not asked yet. A stack never moves,
 * so what was found stays true. Only the thread itself writes, inside the reentry guard.
 */
static __thread uint64_t known_low_addr __attribute__((tls_model("initial-exec")));
static __thread bool is_known_lowest __attribute__((tls_model("initial-exec"))); // the page below cannot be read

static inline bool
is_in_main(uint64_t sp)
{
	return sp >= main_low_addr && sp < main_end_addr;
}

void
thread_stack_start(void)
{
	struct rlimit limit;
	uint64_t bytes = MAIN_STACK_BYTES_MIN;

	if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur > bytes)
		bytes = limit.rlim_cur < MAIN_STACK_BYTES_MAX ? limit.rlim_cur : MAIN_STACK_BYTES_MAX;
	main_end_addr = ((uintptr_t)__libc_stack_end + CHECKED_PAGE_BYTES) & ~(CHECKED_PAGE_BYTES - 1);
	main_low_addr = main_end_addr - bytes;
	main_top_addr = main_end_addr;
	const char *name = (const char *)(uintptr_t)getauxval(AT_EXECFN); // the last thing on the stack

	if (name != NULL && (uintptr_t)name > main_end_addr - CHECKED_PAGE_BYTES)
		main_top_addr = ((uintptr_t)name + strlen(name) + CHECKED_PAGE_BYTES) & ~(CHECKED_PAGE_BYTES - 1);
	if (is_in_main((uintptr_t)__builtin_frame_address(0)))
		main_block_addr = (uint64_t)pthread_self();
}

uint64_t
thread_stack_find_end(uint64_t sp)
{
	uint64_t block = (uint64_t)pthread_self();

	if (is_in_main(sp))
		return main_end_addr;
	if (block > sp && block != main_block_addr)
		return block;
	return main_end_addr > sp ? main_end_addr : sp;
}

static bool
know(uint64_t low, uint64_t end)
{
	thread_stack_known.low_addr = low;
	thread_stack_known.end_addr = end;
	return true;
}

bool
thread_stack_find(uint64_t sp)
{
	uint64_t block = (uint64_t)pthread_self();
	uint64_t low = known_low_addr != 0 ? known_low_addr : block & ~(CHECKED_PAGE_BYTES - 1);

	if (is_in_main(sp))
		return know(main_low_addr, main_end_addr);
	if (block == main_block_addr)
		return false;
	if (sp >= low)
		return sp < block && know(low, block);
	if (is_known_lowest || block - sp > THREAD_STACK_BYTES_MAX)
		return false;
	low = checked_memory_readable_from(sp, low);
	known_low_addr = low;
	is_known_lowest = low > sp;
	return !is_known_lowest && know(low, block);
}

/* The lowest page that the kernel lets the main thread's stack grow to, as the limit is now. */
static uint64_t
main_lowest(void)
{
	struct rlimit limit;
	uint64_t bytes = main_top_addr - main_low_addr;

	if (raw_syscall(SYS_prlimit64, 0, RLIMIT_STACK, NULL, &limit) == 0 && limit.rlim_cur < bytes)
		bytes = limit.rlim_cur;
	return main_top_addr - (bytes & ~(CHECKED_PAGE_BYTES - 1));
}

bool
thread_stack_find_room(uint64_t low)
{
	uint64_t sp = low + THREAD_STACK_ROOM_BYTES;
	int host_errno = errno;
	bool is_main = is_in_main(sp);

	if (!raw_sys_may_call() || !thread_stack_contains(sp))
		return true;
	if (!is_main && !thread_stack_contains(low))
		return false;
	thread_stack_room = thread_stack_known;
	if (is_main)
		thread_stack_room.low_addr = main_lowest();
	errno = host_errno;
	return low >= thread_stack_room.low_addr;
}
