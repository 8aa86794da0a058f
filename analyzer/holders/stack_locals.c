/*
 * stack_locals.c - names of local variables of a thread that stood still (see stack_locals.h).
 */
#include "holders/stack_locals.h"

#include <stdlib.h>
#include <string.h>

#include "base/items.h"
#include "base/memory.h"

#define WORD_BYTES 8u

void
stack_locals_copy(struct stack_locals *locals, struct process_look *look, uint32_t thread)
{
	struct stack_copy *copy = &locals->copies[locals->count];
	uint64_t start = (look->process.threads[thread].stack_addr - MACHINE_RED_ZONE_BYTES) & ~(uint64_t)(WORD_BYTES - 1);
	const struct root_range *range = root_ranges_at(&look->ranges, start);

	if (ANY(known, locals->copies, locals->count, known->thread == thread) || locals->count == STACK_COPIES ||
	    range == NULL)
		return;
	*copy = (struct stack_copy){ .thread = thread, .start = start, .end = range->end };
	if (copy->end - start > STACK_COPY_BYTES)
		copy->end = start + STACK_COPY_BYTES;
	copy->bytes = memory_zeroed(copy->end - start, 1);
	(void)process_memory_read(&look->memory, start, copy->bytes, copy->end - start);
	locals->count++;
}

static bool
read_word(void *context, uint64_t addr, uint64_t *word)
{
	const struct stack_copy *copy = context;

	if (copy->end - copy->start < WORD_BYTES || addr - copy->start > copy->end - copy->start - WORD_BYTES)
		return false;
	memcpy(word, copy->bytes + (addr - copy->start), sizeof(*word));
	return true;
}

/* Finds the function's file, and the address in that, of an address in the process. */
static bool
place_frame(struct process_modules *modules, struct stack_frame *frame)
{
	uint64_t before = frame->frame.code_addr - !frame->frame.is_exact;
	struct process_module *module = process_modules_at(modules, before);

	frame->file = module != NULL ? process_module_types(modules, module) : NULL;
	if (frame->file == NULL)
		return false;
	frame->frame.code_addr -= process_module_bias(module);
	return true;
}

static void
read_registers(const struct stopped_thread *thread, struct thread_frame *frame)
{
	frame->code_addr = thread->code_addr;
	frame->is_exact = true;
	frame->registers[MACHINE_DWARF_STACK] = (struct frame_register){ true, thread->stack_addr, MACHINE_DWARF_STACK };
	for (unsigned i = 0; i < MACHINE_REGISTERS; i++) {
		unsigned number = stopped_registers_dwarf[i];

		if (number < THREAD_FRAME_REGISTERS)
			frame->registers[number] = (struct frame_register){ true, thread->registers[i], number };
	}
}

static uint64_t
stack_of(const struct stack_frame *frame)
{
	return frame->frame.registers[MACHINE_DWARF_STACK].value;
}

static void
read_frames(struct stack_copy *copy, const struct stopped_thread *thread, struct process_modules *modules)
{
	struct stack_frame next = { .frame = { .read = read_word, .context = copy } };

	copy->frames = memory_zeroed(STACK_FRAMES, sizeof(*copy->frames));
	read_registers(thread, &next.frame);
	while (copy->frame_count < STACK_FRAMES && place_frame(modules, &next)) {
		struct stack_frame *frame = &copy->frames[copy->frame_count++];

		*frame = next;
		if (!symbolizer_caller(modules->symbolizer, frame->file, &frame->frame, &next.frame) ||
		    stack_of(&next) <= stack_of(frame))
			return;
	}
}

/*
 * A local stands in its own frame, in its caller's where it was passed by value, or where a register was saved. Of other functions, such
 * as those of the C library, debug information need not be read.
 */
static bool
may_have(const struct stack_copy *copy, size_t at, uint64_t place)
{
	const struct thread_frame *frame = &copy->frames[at].frame;
	uint64_t end = at + 1 < copy->frame_count ? copy->frames[at + 1].frame.cfa : 0;
	uint64_t start = stack_of(&copy->frames[at]) - MACHINE_RED_ZONE_BYTES;

	if (place >= start && place < (end != 0 ? end : copy->end))
		return true;
	return ANY(saved, frame->registers, THREAD_FRAME_REGISTERS, saved->is_known && saved->place == place);
}

/* From outside inwards: a caller's locals live longer than those of what it calls. */
static void
find(const struct stack_copy *copy, struct process_modules *modules, struct stack_answer *answer)
{
	uint64_t place = answer->place;

	if (answer->register_index >= 0)
		place = stopped_registers_dwarf[answer->register_index];
	for (size_t i = copy->frame_count; i > 0 && answer->depth == 0; i--) {
		const struct stack_frame *frame = &copy->frames[i - 1];

		if (may_have(copy, i - 1, place) &&
		    symbolizer_local(modules->symbolizer, frame->file, &frame->frame, place, &answer->local))
			answer->depth = i;
	}
}

static struct stack_copy *
copy_of(struct stack_locals *locals, uint32_t thread)
{
	return FIRST(copy, locals->copies, locals->count, copy->thread == thread);
}

static struct stack_answer *
known_answer(struct stack_locals *locals, uint32_t thread, int register_index, uint64_t place)
{
	return FIRST(answer, locals->answers, locals->answer_count,
	             answer->thread == thread && answer->register_index == register_index && answer->place == place);
}

const struct symbol_local *
stack_locals_at(struct stack_locals *locals, const struct process_look *look, struct process_modules *modules,
                uint32_t thread, int register_index, uint64_t place, size_t *depth)
{
	struct stack_answer *answer = known_answer(locals, thread, register_index, place);
	struct stack_copy *copy = copy_of(locals, thread);

	if (answer == NULL && copy != NULL && locals->answer_count < STACK_ANSWERS) {
		if (copy->frames == NULL)
			read_frames(copy, &look->process.threads[thread], modules);
		answer = &locals->answers[locals->answer_count++];
		*answer = (struct stack_answer){ .thread = thread, .register_index = register_index, .place = place };
		find(copy, modules, answer);
	}
	*depth = answer != NULL ? answer->depth : 0;
	return *depth != 0 ? &answer->local : NULL;
}

void
stack_locals_free(struct stack_locals *locals)
{
	for (size_t i = 0; i < locals->count; i++) {
		free(locals->copies[i].bytes);
		free(locals->copies[i].frames);
	}
	*locals = (struct stack_locals){ 0 };
}
