/*
 * model_releases.c - which lines release what was allocated at a site?
 *
 * When failing  an entry that cannot be read is left out and told; one that the running program is writing is left out.
 */
#include "capture/capture_copy.h"
#include "kmem_words.h"
#include "model/model_build.h"

/* False: there is none, or it cannot be read. */
static bool
is_whole(struct build *build, struct capture *capture, const struct kmem_release *release)
{
	uint32_t checksum = COPY_OF(release->checksum);
	size_t site_count = capture_site_count(capture);
	bool is_written = build->processes[build->process_count - 1].is_alive;

	if (checksum == 0)
		return false;
	if (checksum == kmem_release_checksum(release) && release->site != 0 && release->site <= site_count &&
	    release->releaser != 0 && release->releaser <= site_count && release->count != 0)
		return true;
	if (!is_written) // or its sites are newer than what was read of them
		capture_damaged(capture, "section \"head\": who released blocks of site %u cannot be read: left out",
		                release->site);
	return false;
}

static void
add_temporary(struct build *build, struct capture *capture, uint64_t word, const uint32_t *sites)
{
	uint32_t number = (uint32_t)word;
	uint64_t watched = word >> 32 & UINT16_MAX;
	uint64_t temporary = word >> 48;
	bool is_written = build->processes[build->process_count - 1].is_alive;

	if (number != 0 && number <= capture_site_count(capture) && temporary <= watched) {
		if (sites[number - 1] != 0) {
			build->sites[sites[number - 1] - 1].temporary_of += watched;
			build->sites[sites[number - 1] - 1].temporary_releases += temporary;
		}
	} else if (!is_written) // or its site is newer than what was read of them
		capture_damaged(capture, "section \"head\": how many blocks of site %u were temporary cannot be read: left out",
		                number);
}

void
model_add_releases(struct build *build, struct capture *capture, struct process_stacks *stacks, const uint32_t *sites)
{
	const struct kmem_timeline *timeline = (const struct kmem_timeline *)(const void *)(capture->head +
	                                                                                    KMEM_TIMELINE_OFFSET);

	for (unsigned i = 0; i < KMEM_RELEASES_MAX; i++) {
		const struct kmem_release *release = &timeline->releases[i];
		struct model_tally *releases;
		struct model_site *site;

		if (!is_whole(build, capture, release) || sites[release->site - 1] == 0)
			continue;
		site = &build->sites[sites[release->site - 1] - 1];

		const struct build_stack *stack = process_stacks_find(stacks, capture_site(capture, release->releaser - 1),
		                                                      release->releaser - 1);

		site->watched_releases += release->count;
		if (stack->where == NULL)
			continue;
		releases = (struct model_tally *)site->releases;
		if (releases == NULL)
			site->releases = releases = text_pool_room(build->pool, MODEL_RELEASES_MAX * sizeof(*releases));
		model_tally_add(releases, &site->release_count, MODEL_RELEASES_MAX, stack->where, release->count);
	}
	for (unsigned i = 0; i < KMEM_TEMPORARY_MAX; i++) {
		uint64_t word = COPY_OF(timeline->temporary[i]);

		if (word != 0)
			add_temporary(build, capture, word, sites);
	}
}
