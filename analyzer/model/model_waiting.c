/*
 * model_waiting.c - which line gave their work to threads that ran no line of the user's?
 *
 * What such threads allocate is put to the line that was at work meanwhile ([while]). If they did the same again and again at several lines
 * of one function, one of these gave them the work, and the others waited for it (block_until_ready). To give work allocates, to wait hardly does:
 * it is the line that allocated most often by itself, in calls of the library whose threads these are. Threads that nobody gave work, as
 * those of a logger, have no such line, and stay where they are.
 *
 * Context     when the sites have their keys.
 * When failing  it cannot.
 */
#include <string.h>

#include "base/amount.h"
#include "base/hash.h"
#include "base/items.h"
#include "base/order.h"
#include "model/model_build.h"
#include "model/model_library.h"

#define OFTEN_PART 64 // of the most: who waits for long has nearly all
#define OFTEN_MIN 4   // a line with less has work of its own

struct own_calls {
	struct calls_of {
		const struct model_frame *where;
		const char *module; // equal names are one pointer
	} of;
	uint64_t calls;
	UT_hash_handle hh;
};

/* How many frames are the threads' own. */
static size_t
thread_frames(const struct model_site *site)
{
	size_t count = 0;

	while (count < site->frame_count && site->frames[count] != site->where)
		count++;
	return count;
}

/* Each module of the library's once: a module of the system is in every stack. NULL: there is no further one. */
static const char *
next_module(const struct model_site *site, size_t *at)
{
	for (size_t end = thread_frames(site); *at < end;) {
		const struct model_frame *frame = site->frames[(*at)++];

		if (frame->kind == MODEL_FRAME_NATIVE && !model_library_is_between(frame->module) &&
		    !ANY(before, site->frames, *at - 1, (*before)->module == frame->module))
			return frame->module;
	}
	return NULL;
}

static void
add_own(struct own_calls **lines, const struct model_site *site)
{
	size_t at = 0;

	for (const char *module; (module = next_module(site, &at)) != NULL;) {
		struct own_calls *line;

		(void)HASH_MADE(*lines, of, ((struct calls_of){ site->where, module }), line);
		line->calls += site->allocated_count;
	}
}

/* How often did the line of this work allocate in the library whose thread did it? */
static uint64_t
own_calls(const struct own_calls *lines, const struct model_site *site)
{
	uint64_t most = 0;
	size_t at = 0;

	for (const char *module; (module = next_module(site, &at)) != NULL;) {
		const struct calls_of of = { site->where, module };
		const struct own_calls *line;

		HASH_FIND(hh, lines, &of, sizeof(of), line);
		most = amount_greater(most, line != NULL ? line->calls : 0);
	}
	return most;
}

ORDER_OF_POINTERS(compare_work, struct model_site,
                  order_numbers(a->process, b->process) ?: order_texts(a->where->function, b->where->function)
                  ?: order_texts(a->where->file, b->where->file) ?: order_numbers(thread_frames(a), thread_frames(b))
                  ?: memcmp(a->frames, b->frames, thread_frames(a) * sizeof(*a->frames)))

static void
put_to(struct model_site *site, const struct model_frame *where, struct text_pool *pool)
{
	const struct model_frame **frames = text_pool_room(pool, site->frame_count * sizeof(*frames));
	size_t own = thread_frames(site);

	memcpy(frames, site->frames, site->frame_count * sizeof(*frames));
	if (own < site->frame_count)
		frames[own] = where;
	site->frames = frames;
	site->where = where;
}

void
model_waiting_settle(struct model_site *sites, size_t count, struct text_pool *pool)
{
	OWNED struct model_site **given = memory_zeroed(count, sizeof(*given));
	struct own_calls *lines = NULL;
	size_t given_count = 0;

	for (size_t i = 0; i < count; i++) {
		if (sites[i].where == NULL || !sites[i].where->is_user)
			continue;
		if (sites[i].where_relation == MODEL_RELATION_WHILE)
			given[given_count++] = &sites[i];
		if (sites[i].where_relation == MODEL_RELATION_OWN)
			add_own(&lines, &sites[i]);
	}
	SORT(given, given_count, compare_work);
	for (size_t first = 0, end; first < given_count; first = end) {
		const struct model_frame *most = NULL;
		uint64_t most_calls = 0;
		uint64_t often = 0;

		for (end = first; end < given_count && compare_work(&given[first], &given[end]) == 0; end++)
			often = amount_greater(often, given[end]->allocated_count / OFTEN_PART);
		often = amount_greater(often, OFTEN_MIN);
		for (size_t i = first; i < end; i++) {
			uint64_t calls = given[i]->allocated_count >= often ? own_calls(lines, given[i]) : 0;

			most = calls > most_calls ? given[i]->where : most;
			most_calls = amount_greater(calls, most_calls);
		}
		for (size_t i = first; i < end && most != NULL; i++) {
			if (given[i]->where != most && given[i]->allocated_count >= often)
				put_to(given[i], most, pool);
		}
	}
	HASH_FREE(lines, free);
}
