/*
 * verdict_tell.h - how is each cause of death said in a paragraph?
 *
 * Private to verdict*.c: one function per row of the table in verdict.c. Each appends to verdict->text, after
 * verdict->confidence was set.
 */
#ifndef VERDICT_TELL_H
#define VERDICT_TELL_H

#include "place.h"
#include "verdict.h"

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

/* "train.py:41 epoch", of a line in a ranking. */
const char *verdict_line_text(const struct rank_line *line, char text[PLACE_TEXT_BYTES]);

#endif
