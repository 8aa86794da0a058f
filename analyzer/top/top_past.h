/*
 * top_past.h - what did lines hold at the samples before?
 *
 * Looks are remembered for a little more than a minute. Before there are any, the timeline of a capture tells what was held a minute ago.
 */
#ifndef TOP_PAST_H
#define TOP_PAST_H

#include "top/top_sample.h"

struct top_past;

struct top_past *top_past_new(void);
void top_past_free(struct top_past *past);
void top_past_forget(struct top_past *past); // something else is shown from now on

/* Fills in growth and rates of a sample, puts its rows in order, and remembers it. */
void top_past_compare(struct top_past *past, struct top_sample *sample, enum top_order order);

#endif
