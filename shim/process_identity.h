/*
 * process_identity.h - which process is this, what was it started as, and which session does it belong to?
 *
 * Called by   lifecycle.c, at the start and in a forked child. No allocation; errno changes.
 */
#ifndef PROCESS_IDENTITY_H
#define PROCESS_IDENTITY_H

#include <stddef.h>

#include "kmem_format.h"

/* Behind the session in the environment: its captures are refused, and that was said. */
#define PROCESS_IDENTITY_REFUSED "!"

/* Fills the identity, limits included. The session is settings.session, or a fresh one named after this process. */
void process_identity_read(struct kmem_identity *identity);

/* EXE.PID.START: the capture's name without ".kmem". */
void process_identity_name(const struct kmem_identity *identity, char *name, size_t size);

#endif
