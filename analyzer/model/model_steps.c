/*
 * model_steps.c - which steps did a process make, and which moments have a name?
 *
 * When failing  as if there were none.
 */
#include <string.h>

#include "base/text_clean.h"
#include "capture/capture_copy.h"
#include "capture/capture_marks.h"
#include "capture/capture_snapshot.h"
#include "model/model_build.h"

/* The frame of the line that comes again; else the nearest frame of the user's further out. NULL = not known. */
static const struct model_frame *
place_of(struct build *build, struct capture *capture, const struct kmem_steps *steps)
{
	uint32_t index = (uint32_t)COPY_OF(steps->place); // once of twice
	uint32_t depth = COPY_OF(steps->depth);
	struct capture_stack *stack;
	const struct model_frame *found = NULL;

	if (index == 0 || depth == 0)
		return NULL;
	stack = text_pool_room(build->pool, sizeof(*stack));
	if (!capture_stack(capture, index, "stack of the steps", stack) || depth > stack->frame_count)
		return NULL;

	struct process_frames *frames = process_frames_new(build, capture);

	for (uint32_t i = stack->frame_count - depth; i < stack->frame_count && found == NULL; i++) {
		const struct model_frame *const *all;
		size_t count = process_frames_resolve(frames, stack->frames[i], stack->module_version, &all);

		for (size_t k = 0; k < count && found == NULL; k++)
			found = all[k]->is_user ? all[k] : NULL;
	}
	process_frames_free(frames);
	return found != NULL ? model_frames_newest(build, found) : NULL;
}

/* False: the mark belongs to another source, or to a loop before the present one, whose count is over. */
static bool
is_counted(const struct model_steps *steps, const struct kmem_mark *mark)
{
	return mark->step_source == (uint32_t)steps->source && mark->monotonic_ns >= steps->began_ns;
}

static void
add_marks(struct build *build, struct capture *capture, struct model_process *process)
{
	struct model_mark *marks;

	if (capture->mark_count == 0)
		return;
	marks = text_pool_room(build->pool, capture->mark_count * sizeof(*marks));
	for (size_t i = 0; i < capture->mark_count; i++) {
		const struct kmem_mark *from = &capture->marks[i];
		const struct kmem_snapshot *held = capture_snapshot(capture, from, process->is_alive);
		char name[KMEM_MARK_NAME_BYTES];

		memcpy(name, from->name, sizeof(name)); // terminated: capture_marks.c
		text_clean(name, strlen(name));
		marks[i] = (struct model_mark){
			.kind = (enum kmem_mark_kind)from->kind,
			.name = text_pool_add_text(build->pool, name),
			.is_cut = from->is_cut != 0,
			.sequence = from->sequence,
			.monotonic_ns = from->monotonic_ns,
			.step = is_counted(&process->steps, from) ? from->step : 0,
			.live_bytes = from->live_bytes > 0 ? (uint64_t)from->live_bytes : 0,
			.resident_bytes = from->resident_bytes,
			.is_snapshot = held != NULL || (from->kind == KMEM_MARK_GUARD && from->record != 0),
			.left_out = held != NULL ? held->left_out : 0,
		};
	}
	process->mark_count = capture->mark_count;
	process->marks = marks;
}

void
model_add_steps(struct build *build, struct capture *capture)
{
	struct model_process *process = &build->processes[build->process_count - 1];
	const struct kmem_steps *steps = capture_steps(capture);

	process->steps = (struct model_steps){
		.source = (enum kmem_step_source)COPY_OF(steps->source),
		.count = COPY_OF(steps->count),
		.began_ns = COPY_OF(steps->began_ns),
		.where = place_of(build, capture, steps),
	};
	add_marks(build, capture, process);
}

void
model_steps_since(const struct kmem_header *header, uint8_t clock, struct generation_counts *counts)
{
	const struct kmem_timeline *timeline = (const struct kmem_timeline *)(const void *)((const char *)header +
	                                                                                    KMEM_TIMELINE_OFFSET);
	const struct kmem_steps *steps = &timeline->steps;
	uint64_t count = COPY_OF(steps->count);
	uint64_t before = clock > 1 ? kmem_rough_count_of(COPY_OF(steps->count_at[clock])) : 0;

	counts->first_ms = clock > 1 ? kmem_rough_count_of(COPY_OF(steps->ms_at[clock])) : 0;
	counts->steps = COPY_OF(steps->source) != KMEM_STEPS_NONE && count > before ? count - before : 0;
}
