/*
 * report_steps.c - what is told of a process's steps and marks (see report.h)?
 *
 * When failing  it cannot.
 */
#include "base/items.h"
#include "base/memory.h"
#include "report/report_build.h"

NAMES_OF(report_step_source, NULL, "cells", "loop", "program")

/* enum kmem_mark_kind */
NAMES_OF(report_mark_kind, NULL, "program", "outside", "guard", "refused", "even", "high-water")

struct report_steps
report_steps_of(const struct model_process *process, uint64_t end_ns)
{
	const struct model_steps *from = &process->steps;

	if (from->source == KMEM_STEPS_NONE || from->count == 0)
		return (struct report_steps){ .file = "", .function = "" };
	return (struct report_steps){
		.count = from->count,
		.source = (enum report_steps_of)(from->source & REPORT_STEPS_PROGRAM), // its byte is there four times
		.is_estimated = from->source == KMEM_STEPS_LOOP,
		.file = from->where != NULL ? from->where->file : "",
		.line = from->where != NULL ? from->where->line : 0,
		.function = from->where != NULL ? from->where->function : "",
		.ns = end_ns > from->began_ns && from->began_ns != 0 ? (end_ns - from->began_ns) / from->count : 0,
	};
}

struct report_mark *
report_marks_of(const struct model_process *process)
{
	uint64_t start_ns = process->identity->start_monotonic_ns;
	struct report_mark *marks = memory_zeroed(process->mark_count + 1, sizeof(*marks));

	for (size_t i = 0; i < process->mark_count; i++)
		marks[i] = (struct report_mark){
			.of = process->marks[i],
			.age_ns = process->marks[i].monotonic_ns > start_ns ? process->marks[i].monotonic_ns - start_ns : 0,
		};
	return marks;
}
