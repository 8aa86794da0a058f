/*
 * abandoned_captures.c - see abandoned_captures.h.
 *
 * An entry is free, being written, written, in this order and back. A writer that is killed costs its entry.
 */
#include "hooks/abandoned_captures.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

#include "base/raw_sys.h"
#include "capture/capture_disk.h"
#include "periodic/process_identity.h"

#define PAGE_BYTES 4096u

enum { FREE, BEING_WRITTEN, WRITTEN };

struct leftover {
	_Atomic uint32_t state;
	uint32_t pid;
	uint64_t start_ticks;
};
#define ENTRIES (PAGE_BYTES / sizeof(struct leftover))

static struct leftover *shared; // NULL: this process has not forked, nor was it

void
abandoned_captures_prepare(void)
{
	int host_errno = errno;

	if (shared == NULL)
		shared = raw_reserve_shared(KMEM_OWN_OTHER, PAGE_BYTES);
	errno = host_errno;
}

void
abandoned_captures_add(const struct kmem_identity *child)
{
	for (size_t i = 0; shared != NULL && i < ENTRIES; i++) {
		uint32_t state = FREE;

		/* acquire: the process that removed the entry's last capture has read it. Pairs with abandoned_captures_remove(). */
		if (!atomic_compare_exchange_strong_explicit(&shared[i].state, &state, BEING_WRITTEN, memory_order_acquire,
		                                             memory_order_relaxed))
			continue;
		shared[i].pid = child->pid;
		shared[i].start_ticks = child->start_ticks;
		atomic_store_explicit(&shared[i].state, WRITTEN,
		                      memory_order_release); // pairs with abandoned_captures_remove()
		return;
	}
}

/* False: this process may not. */
static bool
remove_one(const char *folder, const struct kmem_identity *own, const struct leftover *entry)
{
	char name[160];

	process_identity_name(own, entry->pid, entry->start_ticks, name, sizeof(name));
	return capture_disk_remove_other(folder, name);
}

void
abandoned_captures_remove(const char *folder, const struct kmem_identity *own)
{
	int host_errno = errno;

	for (size_t i = 0; shared != NULL && raw_sys_may_call() && folder[0] != '\0' && i < ENTRIES; i++) {
		uint32_t state = WRITTEN;

		/*
		 * acquire: the entry's contents. Pairs with abandoned_captures_add(). BEING_WRITTEN: one of several processes here removes it.
		 */
		if (atomic_load_explicit(&shared[i].state, memory_order_relaxed) == WRITTEN &&
		    atomic_compare_exchange_strong_explicit(&shared[i].state, &state, BEING_WRITTEN, memory_order_acquire,
		                                            memory_order_relaxed))
			atomic_store_explicit(&shared[i].state, remove_one(folder, own, &shared[i]) ? FREE : WRITTEN,
			                      memory_order_release); // another one's turn: pairs as above
	}
	errno = host_errno;
}
