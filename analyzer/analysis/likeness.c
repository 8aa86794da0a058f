/* likeness.c - see likeness.h. */
#include "analysis/likeness.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/order.h"
#include "base/sorted.h"

#define TRIED_MAX 256

/* One way in which an item may be found. */
struct trace {
	uint64_t likeness;
	size_t item;
};

struct likeness_index {
	struct trace *traces;
	size_t count;
	bool is_sorted;
	bool *is_taken; // by item
	size_t item_room;
};

struct likeness_index *
likeness_index_new(void)
{
	return memory_zeroed(1, sizeof(struct likeness_index));
}

void
likeness_index_free(struct likeness_index *index)
{
	free(index->traces);
	free(index->is_taken);
	free(index);
}

void
likeness_index_add(struct likeness_index *index, const uint64_t likeness[SITE_KEY_LIKENESSES], size_t item)
{
	for (size_t i = 0; i < SITE_KEY_LIKENESSES; i++) {
		if (likeness[i] == 0)
			continue;
		*MEMORY_NEXT(index->traces, index->count) = (struct trace){ likeness[i], item };
	}
	index->item_room = item >= index->item_room ? item + 1 : index->item_room;
	index->is_sorted = false;
}

ORDER_OF(compare_traces, struct trace, order_numbers(a->likeness, b->likeness) ?: order_numbers(a->item, b->item))

static void
sort(struct likeness_index *index)
{
	if (index->is_sorted)
		return;
	SORT(index->traces, index->count, compare_traces);
	free(index->is_taken);
	index->is_taken = memory_zeroed(index->item_room + 1, sizeof(*index->is_taken));
	index->is_sorted = true;
}

/* Where those of this likeness begin. */
static size_t
first_trace(const struct likeness_index *index, uint64_t likeness)
{
	return likeness == 0 ? 0 : SORTED_UP_TO(index->traces, index->count, likeness, likeness - 1);
}

size_t
likeness_index_take(struct likeness_index *index, const uint64_t likeness[SITE_KEY_LIKENESSES],
                    uint64_t (*distance)(const void *context, size_t item), const void *context)
{
	uint64_t nearest = LIKENESS_TOO_FAR;
	size_t best = LIKENESS_NONE;

	sort(index);
	for (size_t k = 0; k < SITE_KEY_LIKENESSES; k++) {
		size_t first = likeness[k] != 0 ? first_trace(index, likeness[k]) : index->count;

		for (size_t i = first; i < index->count && i - first < TRIED_MAX && index->traces[i].likeness == likeness[k];
		     i++) {
			size_t item = index->traces[i].item;
			uint64_t far = index->is_taken[item] ? LIKENESS_TOO_FAR : distance(context, item);

			if (far < nearest) {
				nearest = far;
				best = item;
			}
		}
	}
	if (best != LIKENESS_NONE)
		index->is_taken[best] = true;
	return best;
}
