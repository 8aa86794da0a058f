/*
 * failed_requests.h - what did the system refuse, and what was asked for last?
 *
 * Context     inside the reentry guard.
 * Safe from   any hook.
 * When full   the oldest of KMEM_FAILED_MAX gives way; of the host's, within a second, only to one that is large, and larger.
 */
#ifndef FAILED_REQUESTS_H
#define FAILED_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>

#define FAILED_REQUESTS_LARGE_BYTES ((uint64_t)1 << 20)

/* Before a large request is passed on; small ones are not noted. */
void failed_requests_attempt(unsigned domain, uint64_t bytes);

struct failed_request {
	uint64_t bytes;
	uint64_t free_bytes;  // of the device, right after
	uint64_t total_bytes; // 0: the two are not known
	uint64_t pool_kept_bytes;
	unsigned domain;
	uint16_t slot; // the thread's; 0 = it has none of its own
	int error;
	bool is_by_guard;
	uint32_t site; // index + 1; 0 = unknown
};

/* A request was refused. True: now and then, and when it was a large one, it is worth a heartbeat. */
bool failed_requests_note(const struct failed_request *request);

/*
 * Device memory was given out: it may be what this thread was refused before. Requests of fewer bytes do not matter; most threads
 * were refused nothing.
 */
extern __thread uint64_t failed_requests_least __attribute__((tls_model("initial-exec"), visibility("hidden")));
void failed_requests_got_slow(unsigned domain, uint64_t bytes);

static inline void
failed_requests_got(unsigned domain, uint64_t bytes)
{
	if (__builtin_expect(bytes >= failed_requests_least, 0))
		failed_requests_got_slow(domain, bytes);
}

void failed_requests_forked(void); // forked child: one thread

#endif
