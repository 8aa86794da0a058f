/*
 * cached_names.h - which samples are names that only the interpreter's cache of attributes keeps?
 *
 * Where Python looks up an attribute (from 3.10 on), 4,096 places keep the name that was looked up last. The address of the name says in
 * which. Names that are made anew for each look lie at few addresses of an arena by turns, and push each other out. A sample
 * lies at an address of its own, and so in a place where nobody pushes it out: in a loop of such looks each of them would stay, and stand for
 * many that are gone. So one that the cache alone refers to is booked as released. Nothing takes a name out of the cache again.
 *
 * Safe from   inside a hook, guard held; no allocation, no lock. errno is kept.
 * When failing  the samples stay with the line that made them: where the state of the interpreter is not found, and where there
 *             are sub-interpreters, which have caches of their own, and from 3.12 on locks of their own.
 */
#ifndef CACHED_NAMES_H
#define CACHED_NAMES_H

#include <stdbool.h>

/* Looks when this thread may, and when it is time. is_last: it is time. */
void cached_names_look(bool is_last);

/* The same, after some samples more. To be called for each. */
void cached_names_sampled(void);

void cached_names_forked(void); // forked child: one thread, which may not be the one that looked

#endif
