/*
 * python_stack.c - the calling thread's C stack as words; see python_stack.h.
 *
 * The scan may run on a signal's or a coroutine's stack, whose end nobody knows. So no word is read before the
 * kernel said, once per thread and page, that it can be.
 *
 * Not chosen  the first word that equals `frame`: functions that the evaluator calls save its registers, so the
 *             match is often in a frame of theirs.
 */
#include "python_stack.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/uio.h>

#include "python_memory.h"
#include "raw_sys.h"

#define SCAN_BYTES 32768u
#define EVALUATOR_FRAME_BYTES 1024u // it needs 300 to 400 in 3.8 and 3.9
#define PAGE_BYTES 4096u            // of x86-64; larger pages only mean needless questions

/* The loader's: where the first thread's stack began. */
extern void *__libc_stack_end;

/* What the kernel said can be read: one range per thread, the one that holds its latest stack. */
static __thread uint64_t readable_addr __attribute__((tls_model("initial-exec")));
static __thread uint64_t readable_end __attribute__((tls_model("initial-exec")));

/*
 * A thread's control block lies above its stack, in the same mapping; the first thread's is elsewhere and below.
 * So the nearer of the two is the end.
 */
uint64_t
python_stack_end(uint64_t sp)
{
	uint64_t first_end = (uint64_t)__libc_stack_end;
	uint64_t block = (uint64_t)pthread_self();

	if (block > sp && (block < first_end || first_end <= sp))
		return block;
	return first_end > sp ? first_end : sp;
}

/* Asks for one byte of each page in one system call. */
static bool
is_readable(uint64_t addr, uint64_t end)
{
	struct iovec pages[SCAN_BYTES / PAGE_BYTES + 1];
	char bytes[SCAN_BYTES / PAGE_BYTES + 1];
	unsigned count = 0;

	for (uint64_t page = addr / PAGE_BYTES * PAGE_BYTES; page < end; page += PAGE_BYTES)
		pages[count++] = (struct iovec){ (void *)page, 1 };

	struct iovec here = { bytes, count };
	int host_errno = errno;
	long copied = syscall(SYS_process_vm_readv, syscall(SYS_getpid), &here, 1, pages, count, 0);

	errno = host_errno;
	return copied == (long)count;
}

/* Makes [addr, end) known to be readable; at most SCAN_BYTES. */
static bool
make_readable(uint64_t addr, uint64_t end)
{
	if (addr >= readable_addr && end <= readable_end)
		return true;

	bool extends = addr < readable_addr && end >= readable_addr && end <= readable_end;

	if (!is_readable(addr, extends ? readable_addr : end))
		return false;
	if (!extends)
		readable_end = end;
	readable_addr = addr / PAGE_BYTES * PAGE_BYTES;
	return true;
}

uint64_t
python_stack_find_evaluator(uint64_t sp, uint64_t frame, uint64_t text_addr, uint64_t text_end)
{
	uint64_t end = python_stack_end(sp);

	sp = (sp + 7) & ~UINT64_C(7);
	if (end > sp + SCAN_BYTES)
		end = sp + SCAN_BYTES;
	end &= ~UINT64_C(7);
	if (end <= sp || !make_readable(sp, end))
		return 0;

	for (uint64_t at = sp; at < end; at += 8) {
		uint64_t word = python_memory_u64(at);

		if (word < text_addr || word >= text_end)
			continue;

		uint64_t frame_end = at + 8 + EVALUATOR_FRAME_BYTES;

		for (uint64_t local = at + 8; local < end && local < frame_end; local += 8)
			if (python_memory_u64(local) == frame)
				return at + 8;
	}
	return 0;
}
