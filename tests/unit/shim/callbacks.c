/*
 * callbacks.c - what stands above the recorder's parts in programs without hooks: heartbeats, and no life cycle.
 */
#include "record/tracker_library.h"
#include "sites/callbacks.h"

#include "gpu/tracker_devices.h"
#include "periodic/heartbeat.h"
#include "periodic/memory_guard.h"
#include "periodic/object_census.h"
#include "periodic/resident.h"

static bool
stay_asleep(void)
{
	return false;
}

static void
do_nothing(void)
{
}

static void
sample_last(void)
{
	object_census_take(true);
	resident_take(NULL, 0);
}

const struct record_callbacks record_callbacks = {
	.wake = stay_asleep,
	.needs_file = do_nothing,
	.python_arrived = do_nothing,
	.beat = heartbeat_take,
	.guard_allows = memory_guard_allows,
	.library_due = tracker_library_sample,
	.python_ends = sample_last,
	.tensors_kept = tracker_tensors_kept,
};
