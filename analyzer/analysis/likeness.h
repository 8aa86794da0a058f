/*
 * likeness.h - which of those that are gone is this new one, under another name?
 *
 * A function that was renamed or moved to another file differs from what it was in one frame alone: site_key_likeness() is the same.
 * Those that are gone are kept in an index; whoever is new takes the nearest of those that are alike. Each is taken once.
 *
 * When full     of very many that are alike, as in hostile files, only the first 256 are tried.
 */
#ifndef LIKENESS_H
#define LIKENESS_H

#include <stddef.h>
#include <stdint.h>

#include "model/site_key.h"

#define LIKENESS_NONE SIZE_MAX

struct likeness_index;

struct likeness_index *likeness_index_new(void);
void likeness_index_free(struct likeness_index *index);

/* item: the caller's number of it, not LIKENESS_NONE. */
void likeness_index_add(struct likeness_index *index, const uint64_t likeness[SITE_KEY_LIKENESSES], size_t item);

/*
 * The item for which `distance` is least; the first of equals. LIKENESS_NONE: none that is left fits.
 *
 * distance  LIKENESS_TOO_FAR = it does not fit
 */
#define LIKENESS_TOO_FAR UINT64_MAX
size_t likeness_index_take(struct likeness_index *index, const uint64_t likeness[SITE_KEY_LIKENESSES],
                           uint64_t (*distance)(const void *context, size_t item), const void *context);

#endif
