/*
 * python_samples.h - which small objects of Python are in the sample, and how many does each stand for?
 *
 * hooks_python_sample.c draws one object for each PYTHON_SAMPLES_BYTES that are asked for, on average. Each byte is drawn with the same
 * probability. So an object of n bytes is in the sample with p = 1 - exp(-n / PYTHON_SAMPLES_BYTES), and stands for n / p bytes. For the 512
 * bytes that an object may have, that is PYTHON_SAMPLES_BYTES to within 0.1 %: each stands for just so many.
 *
 * Of the samples that may be objects, the addresses are kept, for object_census.c. Whether one is still alive, the pointer map says.
 *
 * Safe from   any thread and signal handler; no allocation, no lock.
 * When full   an older address goes: the kinds of objects are known from fewer samples. Figures of lines do not change.
 */
#ifndef PYTHON_SAMPLES_H
#define PYTHON_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/settings.h"
#include "kmem_format.h"

#define PYTHON_SAMPLES_BYTES (settings.object_sample_bytes)
#define PYTHON_SAMPLES_MAX 16384u                     // whose addresses are kept: 4 GiB of small objects
#define PYTHON_SAMPLES_HEAD_BYTES 16u                 // that debug hooks put in front of what they give out
#define PYTHON_SAMPLES_OBJECT_BYTES_MAX ((size_t)512) // larger ones come from malloc by themselves

/* About how many objects of this size one sample stands for. */
static inline uint64_t
python_samples_objects(uint64_t bytes)
{
	return bytes != 0 ? (PYTHON_SAMPLES_BYTES + bytes / 2) / bytes : PYTHON_SAMPLES_BYTES;
}

/* Notes a sample that was booked. block: what malloc returned. object: where the object begins, up to 240 bytes behind. */
void python_samples_note(const void *block, const void *object);

/*
 * Shows each noted sample that is alive. To be called by the thread that holds the interpreter's lock. Samples that are not alive any
 * more are forgotten.
 *
 * object  where it begins
 * bytes   that were asked for
 * site    index + 1
 */
typedef void python_samples_visitor(uint64_t object, uint64_t bytes, uint32_t site);
void python_samples_visit(python_samples_visitor *visitor);

/* Is this object a noted sample that is alive? *block: what malloc returned. The object begins there, or behind heads of debug hooks. */
bool python_samples_find(uint64_t object, uint64_t *block);

void python_samples_clear(void); // forked child: one thread

#endif
