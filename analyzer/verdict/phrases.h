/*
 * phrases.h - how is each cause of death said in a paragraph?
 *
 * Safe from   one thread.
 */
#ifndef PHRASES_H
#define PHRASES_H

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/place.h"
#include "verdict/facts.h"
#include "verdict/findings.h"

/* After "accumulates". */
#define VERDICT_BUILT_ONCE ", or was built at one go, for little else was allocated meanwhile"

/* After "accumulates". */
#define VERDICT_BUILT_ONCE ", or was built at one go, for little else was allocated meanwhile"

/* Appends to the paragraph. */
__attribute__((format(printf, 2, 3))) static inline void
say(struct verdict *verdict, const char *format, ...)
{
	size_t used = strlen(verdict->text);
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(verdict->text + used, sizeof(verdict->text) - used, format, arguments);
	va_end(arguments);
}

/* Appends to the one thing to do. */
__attribute__((format(printf, 2, 3))) static inline void
say_next(struct verdict *verdict, const char *format, ...)
{
	size_t used = strlen(verdict->next);
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(verdict->next + used, sizeof(verdict->next) - used, format, arguments);
	va_end(arguments);
}

/* In parts per million. */
static inline uint32_t
verdict_share(uint64_t part, uint64_t whole)
{
	if (whole == 0)
		return 0;
	return part >= whole ? 1000000 : (uint32_t)((double)part / (double)whole * 1e6);
}

void verdict_say_process(const struct model_process *process, struct verdict *verdict); // "train.py (pid 7)"
#define VERDICT_WORD_BYTES 160
// before verdict_line_text()
const char *verdict_where_word(const struct verdict_facts *facts, const struct rank_line *line,
                               char text[VERDICT_WORD_BYTES]);
/* " The peak of its heap was ..."; `is_line_next`: who held most at the end is told right after. */
void verdict_say_peak(const struct verdict_facts *facts, bool is_line_next, struct verdict *verdict);
// not the story, worth a note: a pool ends its workers so
void verdict_say_lost(const struct verdict_facts *facts, struct verdict *verdict);
// "train.py (pid 7) exited with status 1"
void verdict_say_ending(const struct verdict_facts *facts, struct verdict *verdict);
// the same, or who killed it for want of memory; "."
void verdict_say_death(const struct verdict_facts *facts, struct verdict *verdict);
// "for 2 MiB in ..."
void verdict_say_wanted(const struct model *model, const struct model_failed *refused, struct verdict *verdict);
// "a request for 2 MiB in ... was refused"
void verdict_say_refusal(const struct verdict_facts *facts, struct verdict *verdict);
// " (likely: ...).", after the refusal
void verdict_say_if_caught(const struct verdict_facts *facts, struct verdict *verdict);
// " Its address space is limited to ..."
void verdict_say_limit(const struct verdict_facts *facts, struct verdict *verdict);

void verdict_tell_machine_restarted(const struct verdict_facts *facts, struct verdict *verdict);
void verdict_tell_running(const struct verdict_facts *facts, struct verdict *verdict);
void verdict_tell_replaced(const struct verdict_facts *facts, struct verdict *verdict);
void verdict_tell_exited(const struct verdict_facts *facts, struct verdict *verdict);
void verdict_tell_container_limit(const struct verdict_facts *facts, struct verdict *verdict);
void verdict_tell_machine_memory(const struct verdict_facts *facts, struct verdict *verdict);
void verdict_tell_shm_full(const struct verdict_facts *facts, struct verdict *verdict);
void verdict_tell_device_memory(const struct verdict_facts *facts, struct verdict *verdict);
void verdict_tell_request_refused(const struct verdict_facts *facts, struct verdict *verdict);
void verdict_tell_low_memory_daemon(const struct verdict_facts *facts, struct verdict *verdict);
void verdict_tell_crashed(const struct verdict_facts *facts, struct verdict *verdict);
void verdict_tell_signal(const struct verdict_facts *facts, struct verdict *verdict);
void verdict_tell_failed(const struct verdict_facts *facts, struct verdict *verdict);
void verdict_tell_gone(const struct verdict_facts *facts, struct verdict *verdict);
void verdict_tell_child_killed(const struct verdict_facts *facts, struct verdict *verdict);
/* Of every cause: facts->copies; what could not be read. */
void verdict_tell_copies(const struct verdict_facts *facts, struct verdict *verdict);
void verdict_tell_damage(const struct verdict_facts *facts, struct verdict *verdict);

/* headroom, of a program that ended well; nothing, or false: there was room. */
void verdict_tell_tight(const struct verdict_facts *facts, struct verdict *verdict);

/*
 * Where is what was in memory? Told before any line that holds less than a third of it; and freed memory that cannot be
 * given back, where that is much.
 */
void verdict_tell_memory(const struct verdict_facts *facts, struct verdict *verdict);
void verdict_tell_freed(const struct verdict_facts *facts, struct verdict *verdict); // the latter alone
/* " Of the 2 GiB that PLACE asked for, 4 KiB was in memory." */
void verdict_tell_untouched(const struct verdict_facts *facts, struct verdict *verdict);
/* The heap of one of the processes is another allocator's, which stands before the recorder: its note says so; NULL = of none. */
const char *verdict_hidden_heap(const struct model *model);
void verdict_tell_hidden_heap(const struct verdict_facts *facts, struct verdict *verdict);

/* Devices, and memory of the host that their drivers gave out; nothing is said where there is none. */
void verdict_tell_device_alive(const struct verdict_facts *facts, struct verdict *verdict); // of a process that goes on
void verdict_tell_pinned(const struct verdict_facts *facts, struct verdict *verdict);

/* "train.py:41 epoch", of a line in a ranking. */
const char *verdict_line_text(const struct rank_line *line, char text[PLACE_TEXT_BYTES]);

#endif
