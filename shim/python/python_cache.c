/*
 * python_cache.c - comparing a chain of frames with the remembered one; see python_cache.h.
 */
#include "python/python_cache.h"

#include <string.h>

static_assert(PYTHON_CACHE_PLACES == 1 << (32 - 23), "python_cache_place() gives 9 bits");

/* The evaluator outside of the one at `cframe`. */
static inline uint64_t
outer_cframe(const struct python_layout *layout, uint64_t cframe)
{
	return python_memory_is_object(cframe) ? python_memory_u64(cframe + layout->cframe_previous) : cframe;
}

/* Does a visit hold whose words are equal? And what follows it in the other chain? */
static inline bool
is_special_frame(const struct python_interpreter *python, enum python_chain_kind chain,
                 const struct python_visit *visit, const struct python_extent *extent, uint64_t *cframe)
{
	if (visit->kind == PYTHON_VISIT_FOREIGN && !python_visit_is_foreign(python, visit->code_word))
		return false;
	if (!python_visit_ends_run(chain, visit))
		return true;
	if (python_extent_contains(extent, visit->anchor_addr) != visit->is_anchored)
		return false;
	if (python_visit_has_cframes(chain))
		*cframe = outer_cframe(&python->layout, *cframe);
	return true;
}

/* Bits in which code and instruction are not those of the visit. */
static inline uint64_t
difference(const struct python_layout *layout, enum python_chain_kind chain, const struct python_visit *visit,
           uint64_t frame)
{
	return (python_memory_u64(frame + layout->frame_code) ^ visit->code_word) |
	       (python_visit_instruction(layout, chain, frame) ^ visit->instruction_word);
}

/* The same of owner and is_entry, and PYTHON_VISIT_IS_SPECIAL. */
static inline uint32_t
owner_difference(const struct python_layout *layout, enum python_chain_kind chain, const struct python_visit *visit,
                 uint64_t frame)
{
	return python_visit_owner_word(layout, chain, frame) ^ visit->owner_word;
}

/*
 * One copy for each kind of chain, so that a frame costs four loads beside those of the cache, and one branch. The next address is taken
 * from the cache once it has been compared, not from the frame: the loads of several frames overlap.
 */
static inline __attribute__((always_inline)) uint32_t
verify_chain(const struct python_interpreter *python, enum python_chain_kind chain, const struct python_visit *visits,
             uint32_t at, uint32_t last, const struct python_extent *extent, struct python_position *position)
{
	const struct python_layout layout = {
		.frame_code = python->layout.frame_code,
		.frame_instruction = python->layout.frame_instruction,
		.frame_owner = python->layout.frame_owner,
		.frame_is_entry = python->layout.frame_is_entry,
		.frame_previous = python->layout.frame_previous,
		.cframe_previous = python->layout.cframe_previous,
	};
	const bool has_cframes = python_visit_has_cframes(chain);
	const bool is_each_special = chain == PYTHON_CHAIN_OBJECTS_CFRAME; // that is done in the loop as well
	const struct python_visit *visit = &visits[at];
	const struct python_visit *end = &visits[last];
	uint64_t frame = position->frame;
	bool goes_on = !has_cframes || position->cframe == visit->anchor_addr;

	while (goes_on) {
		for (; visit != end; visit--) {
			uint64_t next = visit[-1].frame_addr;
			uint64_t differs = difference(&layout, chain, visit, frame) |
			                   owner_difference(&layout, chain, visit, frame) |
			                   (python_memory_u64(frame + layout.frame_previous) ^ next);

			if (is_each_special) {
				differs |= outer_cframe(&layout, visit->anchor_addr) ^ visit[-1].anchor_addr;
				differs |= python_extent_contains(extent, visit->anchor_addr) ^ visit->is_anchored;
			}
			// or the compiler sees that both addresses are equal, and waits for the later one
			__asm__("" : "+r"(differs));
			if (differs != 0)
				break;
			frame = next;
		}

		__asm__("" : "+r"(frame)); // read again below: the loop shall not keep what it has read

		/* A special one, or the last one that holds, or the first one that does not. */
		uint32_t owner_differs = owner_difference(&layout, chain, visit, frame);
		bool is_special = is_each_special || owner_differs == PYTHON_VISIT_IS_SPECIAL;

		if (has_cframes)
			position->cframe = visit->anchor_addr; // equal: compared before this visit became the one in question
		if (difference(&layout, chain, visit, frame) != 0 || (owner_differs != 0 && !is_special) ||
		    (is_special && !is_special_frame(python, chain, visit, extent, &position->cframe)))
			break;
		frame = python_memory_u64(frame + layout.frame_previous);
		goes_on = visit != end && frame == visit[-1].frame_addr &&
		          (!has_cframes || position->cframe == visit[-1].anchor_addr);
		visit--;
	}
	position->frame = frame;
	return (uint32_t)(&visits[at] - visit);
}

uint32_t
python_cache_verify(const struct python_interpreter *python, const struct python_cache *cache, uint32_t at,
                    uint32_t last, const struct python_extent *extent, struct python_position *position)
{
	switch ((enum python_chain_kind)python->layout.chain) {
	case PYTHON_CHAIN_OBJECTS:
		return verify_chain(python, PYTHON_CHAIN_OBJECTS, cache->visits, at, last, extent, position);
	case PYTHON_CHAIN_OBJECTS_CFRAME:
		return verify_chain(python, PYTHON_CHAIN_OBJECTS_CFRAME, cache->visits, at, last, extent, position);
	case PYTHON_CHAIN_CFRAME_ENTRY:
		return verify_chain(python, PYTHON_CHAIN_CFRAME_ENTRY, cache->visits, at, last, extent, position);
	case PYTHON_CHAIN_CFRAME_SHIM:
	case PYTHON_CHAIN_SHIM:
		return verify_chain(python, PYTHON_CHAIN_SHIM, cache->visits, at, last, extent, position);
	}
	return 0;
}

bool
python_cache_continues(const struct python_interpreter *python, const struct python_cache *cache, uint32_t at,
                       const struct python_extent *extent, struct python_position position)
{
	enum python_chain_kind chain = python->layout.chain;
	const struct python_visit *visit = &cache->visits[at];

	if (python_visit_has_cframes(chain) && position.cframe != visit->anchor_addr)
		return false;
	position.frame = python_memory_u64(position.frame + python->layout.frame_previous);
	if (!is_special_frame(python, chain, visit, extent, &position.cframe))
		return false;
	if (at == 0)
		return position.frame == 0;
	return position.frame == cache->visits[at - 1].frame_addr &&
	       python_cache_verify(python, cache, at - 1, 0, extent, &position) == at && position.frame == 0;
}

uint32_t
python_cache_join(struct python_cache *cache, uint32_t joined, uint32_t fresh_visits, uint32_t fresh_frames)
{
	uint32_t kept = joined == 0 ? 0 : cache->kept[joined - 1];
	uint32_t total = kept + fresh_frames;

	memmove(&cache->visits[joined], &cache->visits[PYTHON_CACHE_FRAMES - fresh_visits],
	        fresh_visits * sizeof(cache->visits[0]));
	memmove(&cache->frames[kept], &cache->frames[PYTHON_CACHE_FRAMES - fresh_frames],
	        fresh_frames * sizeof(cache->frames[0]));
	for (uint32_t i = joined; i < joined + fresh_visits; i++) {
		kept += cache->visits[i].kind == PYTHON_VISIT_FRAME;
		cache->kept[i] = (uint16_t)kept;
		cache->places[python_cache_place(cache->visits[i].frame_addr)] = (uint16_t)i;
	}
	return total;
}
