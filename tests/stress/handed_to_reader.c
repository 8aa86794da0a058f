/*
 * handed_to_reader.c - what the recorder has written before its release, does the reader of the capture see it? See hand_on.h.
 *
 *   handed_to_reader [NAME]    one case
 */
#include "hand_on.h"

#include "base/settings.h"
#include "capture/capture_seal.h"
#include "moments/exit_figures.h"
#include "moments/failed_requests.h"
#include "moments/history.h"
#include "moments/marks.h"
#include "moments/phases.h"
#include "periodic/heartbeat.h"
#include "periodic/memory_guard.h"
#include "periodic/resident.h"
#include "record/tracker.h"
#include "sites/call_stack.h"
#include "sites/releases.h"
#include "sites/site_table.h"

static void
append_bytes(size_t bytes)
{
	uint32_t index;

	CHECK(capture_file_append(KMEM_SECTION_GENERATIONS, bytes, &index) != NULL);
}

static void
grow(void)
{
	append_bytes(8 * KMEM_CHUNK_BYTES);
}
static void
append(void)
{
	append_bytes(8);
}
static void
ask_count(void)
{
	CHECK(capture_file_count(KMEM_SECTION_GENERATIONS) != 0);
}

static void
read_chunk_count(void)
{
	READ(capture_file_header()->chunk_count);
}
static void
read_identity(void)
{
	READ(capture_file_header()->identity_checksum);
}
static void
read_state(void)
{
	READ(capture_file_header()->state);
}
static void
read_failed(void)
{
	READ(capture_file_header()->failed[1].checksum);
}

static void
read_notes(void)
{
	READ(capture_file_header()->notes);
}
static void
write_identity(void)
{
	capture_file_identified();
}
static void
write_state(void)
{
	capture_file_mark(KMEM_STATE_RUNNING, 0, 0);
}
static void
write_note(void)
{
	capture_file_note("text");
}

static void
refuse(uint64_t bytes)
{
	(void)failed_requests_note(&(struct failed_request){ .bytes = bytes, .domain = KMEM_DOMAIN_HEAP });
}

static void
write_failed(void)
{
	refuse(100);
}

/* Up to the same place of the ring: a larger one takes it, a smaller one that follows at once looks at it. */
static void
write_failed_again(void)
{
	for (unsigned i = 0; i < KMEM_FAILED_MAX; i++)
		refuse(200);
}

static void
look_at_failed(void)
{
	for (unsigned i = 0; i < KMEM_FAILED_MAX; i++)
		refuse(50);
}

static void
look_at_resident(void)
{
	resident_take(NULL, 0);
}

static void
read_resident(void)
{
	struct kmem_resident *looks = capture_file_header()->resident;
	uint64_t second = atomic_load_explicit(&looks[1].sequence, memory_order_relaxed);

	READ(looks[atomic_load_explicit(&looks[0].sequence, memory_order_relaxed) < second].sequence);
}

static void
read_resident_lines(void)
{
	const struct kmem_resident_lines *lines = capture_file_resident_lines();

	READ(lines[lines[0].sequence < lines[1].sequence].checksum);
}

static void
prepare_held(void)
{
	struct call_stack stack = { .hash = 0x6789123, .frame_count = 1, .frames = { KMEM_FRAME_PYTHON | 6 } };
	uint32_t site = site_table_find(NULL, &stack, KMEM_DOMAIN_HEAP, 1);

	CHECK(site != 0);
	site_table_at(site)->allocated_bytes = 1 << 20;
}

static void
take_exit_figures(void)
{
	exit_figures_take();
}
static void
read_exit_figures(void)
{
	READ(capture_file_header()->at_exit);
}

static void
prepare_guard(void)
{
	prepare_held();
	settings.guard.percent = 90;
	capture_file_header()->identity.cgroup_version = 2;
	atomic_store_explicit(tracker_state, TRACKER_ON, memory_order_relaxed);
	(void)memory_guard_judge(
		&(struct memory_limits_now){ .resident_bytes = 1 << 20, .cgroup_bytes = 1 << 20, .limit_bytes = 1 << 24 }, 0);
}
static void
pass_guard(void)
{
	(void)memory_guard_judge(
		&(struct memory_limits_now){ .resident_bytes = 1 << 24, .cgroup_bytes = 1 << 24, .limit_bytes = 1 << 24 }, 0);
}
static void
read_guard(void)
{
	READ(capture_file_header()->guard);
}

static void
note_mark(void)
{
	marks_note(KMEM_MARK_PROGRAM, "mark");
}
static void
read_mark(void)
{
	READ(capture_file_timeline()->marks[0].checksum);
}

static void
prepare_history(void)
{
	prepare_held();
	history_forked();
}
static void
take_point(void)
{
	history_beat(0, 0, UINT64_MAX, 1);
}
static void
read_history(void)
{
	READ(capture_file_header()->history[0]);
}
static void
prepare_first_point(void)
{
	prepare_history();
	history_beat(0, 0, UINT64_MAX, 1);
}
static void
take_second_point(void)
{
	history_beat(0, 0, UINT64_MAX, 2);
}
static void
read_second_point(void)
{
	const struct kmem_history *part = capture_file_at(KMEM_SECTION_RECORDS,
	                                                  (uint32_t)capture_file_header()->history[0] - 1);

	READ(part->points[1].checksum);
}

static uint32_t held_site;
static void
prepare_release(void)
{
	struct call_stack stack = { .hash = 0x6789124, .frame_count = 1, .frames = { KMEM_FRAME_PYTHON | 7 } };

	held_site = site_table_find(NULL, &stack, KMEM_DOMAIN_HEAP, 1);
	CHECK(held_site != 0);
}
static void
count_release(void)
{
	releases_count(held_site, held_site, 0, RELEASES_TEMPORARY);
}
static void
read_releases(void)
{
	for (unsigned i = 0; i < KMEM_RELEASES_MAX; i++)
		READ(capture_file_timeline()->releases[i].checksum);
}

/* A command has written its request. */
static void
prepare_request(void)
{
	struct kmem_request *request = &capture_file_timeline()->request;

	marks_forked();
	*request = (struct kmem_request){ .wants = 1, .number = 7, .name = "asked" };
	request->checksum = kmem_request_checksum(request);
}
static void
serve_request(void)
{
	marks_look();
}
static void
read_request_done(void)
{
	READ(capture_file_timeline()->request_done);
}

static void
take_beat(void)
{
	heartbeat_take(1);
}

static void
read_beat(void)
{
	unsigned newest = 0;

	for (unsigned i = 1; i < KMEM_HEARTBEATS_MAX; i++) {
		if (capture_file_heartbeats()[i].sequence > capture_file_heartbeats()[newest].sequence)
			newest = i;
	}
	READ(capture_file_header()->heartbeat_checksums[newest]);
}

static _Alignas(64) char sealed[KMEM_HEAD_BYTES + KMEM_CHUNK_BYTES];

static void
seal(void)
{
	capture_seal(sealed, 1);
}
static void
read_seal_of_chunk(void)
{
	READ(((struct kmem_chunk *)(void *)(sealed + KMEM_DIRECTORY_OFFSET))->is_sealed);
}
static void
read_seal_of_head(void)
{
	READ(((struct kmem_header *)(void *)sealed)->head_checksum);
}

static void
begin_phase(void)
{
	struct phases_row rows[KMEM_DOMAINS_MAX];
	uint32_t epoch = peak_gain(&capture_file_domain(KMEM_DOMAIN_HEAP)->peak, NULL, 100);

	peak_apply_shared(&site_table_at(1)->peak, 100, epoch);
	CHECK(phases_next(NULL, rows));
}
static void
read_kept_peak(void)
{
	READ(capture_file_timeline()->kept_peak);
}

static const struct hand_on_case cases[] = {
	{ "resident", NULL, NULL, { look_at_resident, read_resident, look_at_resident } },
	{ "resident_lines", NULL, NULL, { look_at_resident, read_resident_lines } },
	{ "exit_figures", prepare_held, NULL, { take_exit_figures, read_exit_figures } },
	{ "capture_growth", NULL, NULL, { grow, ask_count, append, read_chunk_count } },
	{ "capture_identity", NULL, NULL, { write_identity, read_identity } },
	{ "capture_state", NULL, NULL, { write_state, read_state } },
	{ "capture_note", NULL, NULL, { write_note, read_notes } },
	{ "capture_seal", NULL, NULL, { seal, read_seal_of_chunk, read_seal_of_head } },
	{ "failed_request", NULL, NULL, { write_failed, read_failed, write_failed_again } },
	{ "failed_request_kept", NULL, NULL, { write_failed, look_at_failed, write_failed_again } },
	{ "guard", prepare_guard, NULL, { pass_guard, read_guard } },
	{ "history", prepare_history, NULL, { take_point, read_history } },
	{ "history_point", prepare_first_point, NULL, { take_second_point, read_second_point } },
	{ "release", prepare_release, NULL, { count_release, read_releases } },
	{ "mark", marks_forked, NULL, { note_mark, read_mark } },
	{ "kept_peak", prepare_held, NULL, { begin_phase, read_kept_peak } },
	{ "request", prepare_request, NULL, { serve_request, read_request_done } },
	{ "heartbeat", NULL, NULL, { take_beat, read_beat } },
};

int
main(int argc, char **argv)
{
	return hand_on(cases, sizeof(cases) / sizeof(cases[0]), argc > 1 ? argv[1] : NULL);
}
