/*
 * process_link.c - who started whom (see process_link.h)?
 */
#include "model/process_link.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/order.h"

struct by_pid {
	uint32_t pid;
	uint64_t start_ns;
	int index;
};

static int
compare_by_pid(const void *left, const void *right)
{
	const struct by_pid *a = left;
	const struct by_pid *b = right;

	return order_numbers(a->pid, b->pid) ?: order_numbers(a->start_ns, b->start_ns) ?: a->index - b->index;
}

void
process_link_parents(struct model_process *processes, size_t count)
{
	struct by_pid *order = memory_zeroed(count, sizeof(*order));

	for (size_t i = 0; i < count; i++)
		order[i] = (struct by_pid){ processes[i].identity->pid, processes[i].identity->start_realtime_ns, (int)i };
	qsort(order, count, sizeof(*order), compare_by_pid);
	for (size_t i = 0; i < count; i++) {
		const struct kmem_identity *identity = processes[i].identity;
		uint32_t parent_pid = identity->is_forked != 0 && identity->forked_from != 0 ? identity->forked_from
		                                                                             : identity->parent_pid;
		size_t low = 0;
		size_t high = count;

		/* The last image with the parent's pid that started before this one. */
		while (low < high) {
			size_t middle = low + (high - low) / 2;

			if (order[middle].pid < parent_pid ||
			    (order[middle].pid == parent_pid && order[middle].start_ns < identity->start_realtime_ns))
				low = middle + 1;
			else
				high = middle;
		}
		bool has_parent = low > 0 && order[low - 1].pid == parent_pid && parent_pid != identity->pid;

		processes[i].parent = has_parent ? order[low - 1].index : -1;
	}
	free(order);
}
