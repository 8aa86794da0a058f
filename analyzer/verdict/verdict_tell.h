/*
 * verdict_tell.h - how is each cause of death said in a paragraph?
 *
 * Private to verdict*.c: one function per row of the table in verdict.c. Each appends to verdict->text, after
 * verdict->confidence was set.
 */
#ifndef VERDICT_TELL_H
#define VERDICT_TELL_H

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/place.h"
#include "verdict/verdict.h"

/* In texts: what verdict.c puts there, so that a command can be copied. */
#define VERDICT_CAPTURE "\1"
#define VERDICT_COMMAND "\2"
#define VERDICT_CHILD "\3" // the capture of lost_child

/* After "accumulates". */
#define VERDICT_BUILT_ONCE ", or was built at one go, for little else was allocated meanwhile"

/* After "look for what keeps ... alive". */
#define VERDICT_TENSORS_KEPT \
	": often losses in a list or a running sum (take loss.item()), or outputs that are collected (.detach().cpu())"

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

/* The one thing to do. */
__attribute__((format(printf, 2, 3))) static inline void
say_next(struct verdict *verdict, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	(void)vsnprintf(verdict->next, sizeof(verdict->next), format, arguments);
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
const char *verdict_blocks_kept(const struct verdict_facts *facts); // ": often a list ...", after "alive"
/*
 * Of a line that accumulates, perhaps while a data set is loaded: who ended well had room for it, and may have kept very little of
 * what it took to read it. "" = hardly so.
 */
const char *verdict_if_data_set(const struct verdict *verdict, const struct rank_line *line);
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
/* It is the request, not what was held. */
bool verdict_is_request_alone(const struct verdict_facts *facts); // much more than that
/* A limit was set that recording alone, which did not know of it, had used up. */
bool verdict_is_of_recording(const struct verdict_facts *facts);
bool verdict_is_beyond_machine(const struct verdict_facts *facts); // more than the machine has
/* More was given to its thread, or another status followed, than when nothing catches the error: it may have gone on, for a time. */
bool verdict_was_perhaps_caught(const struct verdict_facts *facts);
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
/* Of every cause: facts->copies (verdict_copies.c); what could not be read. */
void verdict_tell_copies(const struct verdict_facts *facts, struct verdict *verdict);
void verdict_tell_damage(const struct verdict_facts *facts, struct verdict *verdict);

/* verdict_tight.c, of a program that ended well; nothing, or false: there was room. */
void verdict_tell_tight(const struct verdict_facts *facts, struct verdict *verdict);
bool verdict_advise_tight(const struct verdict_facts *facts, struct verdict *verdict);

/*
 * verdict_memory.c. Where is what was in memory? Told before any line that holds less than a third of it; and freed memory that cannot be
 * given back, where that is much.
 */
void verdict_tell_memory(const struct verdict_facts *facts, struct verdict *verdict);
void verdict_tell_freed(const struct verdict_facts *facts, struct verdict *verdict); // the latter alone
/* " Of the 2 GiB that PLACE asked for, 4 KiB was in memory." */
void verdict_tell_untouched(const struct verdict_facts *facts, struct verdict *verdict);
bool verdict_is_freed_first(const struct verdict_facts *facts); // it is more than the first line holds
bool verdict_advise_freed(const struct verdict_facts *facts, struct verdict *verdict); // false: there is none
void verdict_tell_hidden_heap(const struct verdict_facts *facts, struct verdict *verdict);
// puts it before what is there
void verdict_advise_hidden_heap(const struct verdict_facts *facts, struct verdict *verdict);
void verdict_advise_library(const struct verdict_facts *facts, struct verdict *verdict); // adds to what is there

/* verdict_device.c. Devices, and memory of the host that their drivers gave out; nothing is said where there is none. */
void verdict_tell_device_alive(const struct verdict_facts *facts, struct verdict *verdict); // of a process that goes on
void verdict_tell_pinned(const struct verdict_facts *facts, struct verdict *verdict);
/* The one thing to do. False: nothing better than the table's. */
bool verdict_advise_device(const struct verdict_facts *facts, struct verdict *verdict);
void verdict_advise_others(const char *device, struct verdict *verdict); // who else is there?
bool verdict_advise_pinned(const struct verdict_facts *facts, struct verdict *verdict);

/* verdict_domain.c: of the domains that `wanted` matches, at least one; the whole paragraph, and the one thing to do. */
void verdict_tell_domain(const struct verdict_facts *facts, const struct verdict_now *now, const char *wanted,
                         struct verdict *verdict);

/* Of this domain, when its total was highest or at the end; without the start of the interpreter. */
uint64_t verdict_left_by_imports(const struct model *model, const char *domain, bool is_peak);

bool verdict_has_device(const struct verdict_facts *facts); // that held something
/* The largest device, where it held enough to be worth it; sets growing_device. */
void verdict_tell_devices(struct verdict_facts *facts, struct verdict *verdict);
bool verdict_advise_growing_device(const struct verdict_facts *facts, struct verdict *verdict); // false: none grows

/* "train.py:41 epoch", of a line in a ranking. */
const char *verdict_line_text(const struct rank_line *line, char text[PLACE_TEXT_BYTES]);

#endif
