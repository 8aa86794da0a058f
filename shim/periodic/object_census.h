/*
 * object_census.h - what kinds of Python objects are alive where most memory is held?
 *
 * Safe from   inside a hook, guard held; no allocation, no lock. object_census.c says why the objects stay while they are looked at.
 * When failing  the capture keeps what the last look said, or says nothing.
 */
#ifndef OBJECT_CENSUS_H
#define OBJECT_CENSUS_H

#include <stdbool.h>

/* Which objects are known from now on? Until this is called nothing is ever looked at. */
enum object_census_source {
	OBJECT_CENSUS_NONE,
	OBJECT_CENSUS_ALL,     // all of them are in the pointer map, as blocks of the heap
	OBJECT_CENSUS_SAMPLES, // python_samples.h
};
void object_census_begin(enum object_census_source source);

/* Looks when this thread may, and when it is time. is_last: it is time. */
void object_census_take(bool is_last);

void object_census_forked(void); // forked child: one thread

#endif
