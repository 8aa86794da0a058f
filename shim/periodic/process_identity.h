/*
 * process_identity.h - which process is this, what was it started as, and which session does it belong to?
 *
 * Context     at the start and in a forked child. No allocation; errno changes.
 */
#ifndef PROCESS_IDENTITY_H
#define PROCESS_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kmem_format.h"

/* Fills in what may change and what is needed at once. The session is settings.session, or a fresh one named after this process. */
void process_identity_read(struct kmem_identity *identity);

/* Fills in the rest: what stays as it is, limits, and the counters that tell who was killed. Needed before its name. */
void process_identity_read_more(struct kmem_identity *identity);

/* EXE.PID.START, without ".kmem": the name of this process's capture, or of the capture of a child that runs the same program. */
void process_identity_name(const struct kmem_identity *identity, uint32_t pid, uint64_t start_ticks, char *name,
                           size_t size);

/* Memory that the program has without asking for it: it may touch all of that and never allocate. */
uint64_t process_identity_static_bytes(void);

/*
 * Is it the command itself, or the Python that becomes it (the script of a wheel)? Run where LD_PRELOAD is exported, it is not to be
 * recorded: it would become the newest session.
 */
bool process_identity_is_our_own_command(void);

#endif
