/*
 * python_memo.c - comparing a chain of frames with the remembered one; see python_memo.h.
 */
#include "python_memo.h"

#include <string.h>

static_assert(PYTHON_MEMO_PLACES == 1 << (32 - 23), "python_memo_place() gives 9 bits");

/* Does a visit hold whose words are equal, and what follows it in the other chain? */
static inline bool
is_special_holding(const struct python_interpreter *python, enum python_chain chain, const struct python_visit *visit,
                   const struct python_extent *extent, uint64_t *cframe)
{
	bool has_cframes = chain == PYTHON_CHAIN_OBJECTS_CFRAME || chain == PYTHON_CHAIN_CFRAME_ENTRY;

	if (visit->kind == PYTHON_VISIT_FOREIGN && !python_visit_is_foreign(python, visit->code_word))
		return false;
	if (!python_visit_ends_run(chain, visit))
		return true;
	if (python_extent_contains(extent, visit->anchor_addr) != visit->is_anchored)
		return false;
	if (has_cframes && python_memory_is_object(*cframe))
		*cframe = python_memory_u64(*cframe + python->layout.cframe_previous);
	return true;
}

/*
 * One copy for each kind of chain, so that a frame costs four or five loads beside those of the memo. The next address is taken from
 * the memo as soon as it has been compared: the loads of several frames overlap.
 */
static inline __attribute__((always_inline)) uint32_t
verify_chain(const struct python_interpreter *python, enum python_chain chain, const struct python_visit *visits,
             uint32_t at, uint32_t last, const struct python_extent *extent, struct python_position *position)
{
	const struct python_layout layout = {
		.frame_code = python->layout.frame_code,
		.frame_instruction = python->layout.frame_instruction,
		.frame_owner = python->layout.frame_owner,
		.frame_is_entry = python->layout.frame_is_entry,
	};
	const uint16_t frame_previous = python->layout.frame_previous;
	const bool has_cframes = chain == PYTHON_CHAIN_OBJECTS_CFRAME || chain == PYTHON_CHAIN_CFRAME_ENTRY;
	const struct python_visit *visit = &visits[at];
	const struct python_visit *end = &visits[last];
	uint64_t frame = position->frame;

	if (has_cframes && position->cframe != visit->anchor_addr)
		return 0;
	for (;; visit--) {
		uint32_t owner_differs = python_visit_owner_word(&layout, chain, frame) ^ visit->owner_word;
		uint64_t differs = (python_memory_u64(frame + layout.frame_code) ^ visit->code_word) |
		                   (python_visit_instruction(&layout, chain, frame) ^ visit->instruction_word);

		if ((differs | owner_differs) != 0) {
			if (differs != 0 || owner_differs != PYTHON_VISIT_IS_SPECIAL ||
			    !is_special_holding(python, chain, visit, extent, &position->cframe))
				break;
			if (has_cframes && visit != end && position->cframe != visit[-1].anchor_addr)
				end = visit; // the next one does not hold
		}
		frame = python_memory_u64(frame + frame_previous);
		if (visit == end || frame != visit[-1].frame_addr) {
			visit--;
			break;
		}
		frame = visit[-1].frame_addr;
	}
	position->frame = frame;
	return (uint32_t)(&visits[at] - visit);
}

uint32_t
python_memo_verify(const struct python_interpreter *python, const struct python_memo *memo, uint32_t at, uint32_t last,
                   const struct python_extent *extent, struct python_position *position)
{
	switch ((enum python_chain)python->layout.chain) {
	case PYTHON_CHAIN_OBJECTS:
		return verify_chain(python, PYTHON_CHAIN_OBJECTS, memo->visits, at, last, extent, position);
	case PYTHON_CHAIN_OBJECTS_CFRAME:
		return verify_chain(python, PYTHON_CHAIN_OBJECTS_CFRAME, memo->visits, at, last, extent, position);
	case PYTHON_CHAIN_CFRAME_ENTRY:
		return verify_chain(python, PYTHON_CHAIN_CFRAME_ENTRY, memo->visits, at, last, extent, position);
	case PYTHON_CHAIN_CFRAME_SHIM:
	case PYTHON_CHAIN_SHIM:
		return verify_chain(python, PYTHON_CHAIN_SHIM, memo->visits, at, last, extent, position);
	}
	return 0;
}

uint32_t
python_memo_join(struct python_memo *memo, uint32_t joined, uint32_t fresh_visits, uint32_t fresh_frames)
{
	uint32_t kept = joined == 0 ? 0 : memo->kept[joined - 1];
	uint32_t total = kept + fresh_frames;

	memmove(&memo->visits[joined], &memo->visits[PYTHON_MEMO_FRAMES - fresh_visits],
	        fresh_visits * sizeof(memo->visits[0]));
	memmove(&memo->frames[kept], &memo->frames[PYTHON_MEMO_FRAMES - fresh_frames],
	        fresh_frames * sizeof(memo->frames[0]));
	for (uint32_t i = joined; i < joined + fresh_visits; i++) {
		kept += memo->visits[i].kind == PYTHON_VISIT_FRAME;
		memo->kept[i] = (uint8_t)kept;
		memo->places[python_memo_place(memo->visits[i].frame_addr)] = (uint8_t)i;
	}
	return total;
}
