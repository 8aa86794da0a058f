/* site_counts.c - see site_counts.h. */
#include "site_counts.h"

#include <stdatomic.h>

#include "heartbeat.h"
#include "site_table.h"

uint64_t
site_counts_allocated(unsigned domain, uint64_t now_ns)
{
	static _Atomic uint64_t known[KMEM_DOMAINS_MAX]; // relaxed, both: an estimate
	static _Atomic uint64_t next_ns;
	struct site_totals totals[KMEM_DOMAINS_MAX];

	if (now_ns >= atomic_load_explicit(&next_ns, memory_order_relaxed)) {
		site_table_totals(totals);
		for (unsigned i = 0; i < KMEM_DOMAINS_MAX; i++)
			atomic_store_explicit(&known[i], totals[i].allocated_count, memory_order_relaxed);
		uint64_t end_ns = heartbeat_now_ns();

		atomic_store_explicit(&next_ns, end_ns + 50 * (end_ns - now_ns), memory_order_relaxed);
	}
	return atomic_load_explicit(&known[domain], memory_order_relaxed);
}
