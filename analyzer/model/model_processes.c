/*
 * model_processes.c - what does the head of one capture say about its process, and which process started which?
 *
 * When failing  a damaged part counts as absent and is told by a line in the capture's damages.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/order.h"
#include "base/owner.h"
#include "base/place.h"
#include "base/sorted.h"
#include "capture/capture_copy.h"
#include "kmem_words.h"
#include "capture/capture_guard.h"
#include "capture/capture_holders.h"
#include "capture/process_alive.h"
#include "model/model_build.h"
#include "model/model_holders.h"

static bool
is_interpreter(const char *name)
{
	static const char *const starts[] = { "python", "pypy", "ipython", "ruby", "perl", "node",
		                                  "php",    "sh",   "bash",    "dash", "zsh",  "ld-linux" };

	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		size_t length = strlen(starts[i]);

		if (strncmp(name, starts[i], length) == 0 && strspn(name + length, "0123456789.t") == strlen(name + length))
			return true;
	}
	return false;
}

/* The name under which it was called: what is executed may be the target of a link, or one program of many names. */
static const char *
called_name(const char *word)
{
	const char *name = place_base(word + (word[0] == '-')); // of a login shell

	return strcspn(name, " :") == strlen(name) ? name : ""; // a title
}

/* What the program was called; for an interpreter its script, or its module after -m. */
static const char *
process_name(const struct kmem_identity *identity)
{
	const char *executable = place_base(identity->executable);
	const char *end = identity->command + identity->command_bytes;
	const char *at = identity->command;
	bool is_module = false;

	if (executable[0] == '\0')
		executable = place_base(at);
	if (at < end && !is_interpreter(executable) && called_name(at)[0] != '\0')
		return called_name(at);
	if (!is_interpreter(executable) || at >= end)
		return executable[0] != '\0' ? executable : "unknown";
	for (at += strlen(at) + 1; at < end; at += strlen(at) + 1) {
		if (is_module)
			return at;
		if (at[0] != '-' && at[0] != '\0')
			return place_base(at);
		if (strcmp(at, "-c") == 0)
			break;
		is_module = strcmp(at, "-m") == 0;
		if (strcmp(at, "-X") == 0 || strcmp(at, "-W") == 0)
			at += strlen(at) + 1;
		if (at >= end)
			break;
	}
	return executable;
}

static void
add_notes(struct build *build, struct capture *capture, struct model_process *process)
{
	OWNED const char **notes = NULL;
	const char **kept;
	const char *text;
	uint32_t next = capture_list(&capture->header->notes);
	uint32_t bytes;

	while (capture_next_note(capture, &next, &text, &bytes)) {
		*MEMORY_NEXT(notes, process->note_count) = text_pool_add(build->pool, text, bytes);
	}
	kept = text_pool_room(build->pool, process->note_count * sizeof(*kept));
	for (size_t i = 0; i < process->note_count; i++) // the list leads from new to old
		kept[i] = notes[process->note_count - 1 - i];
	process->notes = kept;
}

static const struct kmem_launcher *
kept_launcher(struct build *build, struct capture *capture)
{
	static const struct kmem_launcher nothing;
	const struct kmem_launcher *stored = &capture->header->launcher;
	const size_t start = sizeof(stored->checksum);
	struct kmem_launcher *kept;

	if (memcmp(stored, &nothing, sizeof(nothing)) == 0)
		return NULL;

	uint32_t found = kmem_checksum(KMEM_CHECKSUM_START, (const char *)stored + start, sizeof(*stored) - start);

	if (found != stored->checksum) {
		capture_damaged(capture,
		                "section \"launcher\": checksum wanted 0x%08x, found 0x%08x: how the program ended is unknown",
		                stored->checksum, found);
		return NULL;
	}
	kept = text_pool_room(build->pool, sizeof(*kept));
	*kept = *stored;
	return kept;
}

static bool
adds_up(const uint64_t *parts, unsigned count, uint64_t whole)
{
	for (unsigned i = 0; i < count; i++) {
		if (parts[i] > whole)
			return false;
		whole -= parts[i];
	}
	return whole == 0;
}

/* The newer of the two looks whose parts add up to the whole. */
static const struct kmem_resident *
kept_resident(struct build *build, struct capture *capture, struct model_process *process)
{
	uint64_t *own_bytes = process->own_bytes;
	const struct kmem_resident *stored = capture->header->resident;
	const struct kmem_resident *newer = COPY_OF(stored[0].sequence) > COPY_OF(stored[1].sequence) ? &stored[0]
	                                                                                              : &stored[1];
	struct kmem_resident *kept;

	if (COPY_OF(newer->sequence) == 0)
		return NULL;
	if (!adds_up(newer->part_bytes, KMEM_RESIDENT_PARTS, newer->resident_bytes)) {
		capture_damaged(capture, "section \"head\": the parts of the resident set do not add up to it: left out");
		return NULL;
	}
	kept = text_pool_room(build->pool, sizeof(*kept));
	*kept = *newer;
	memcpy(own_bytes, capture->header->own_bytes[newer - stored], KMEM_OWN_PARTS * sizeof(*own_bytes));
	process->container = capture->header->container[newer - stored];
	if (!adds_up(own_bytes, KMEM_OWN_PARTS, newer->part_bytes[KMEM_RESIDENT_OWN])) {
		capture_damaged(capture,
		                "section \"head\": the parts of the memory that recording uses do not add up to it: left out");
		memset(own_bytes, 0, KMEM_OWN_PARTS * sizeof(*own_bytes));
	}
	return kept;
}

static struct holders *
kept_holders(struct capture *capture)
{
	const struct kmem_holders *look = capture_holders_newest(capture);
	struct holders *holders = look != NULL ? model_holders_read(look->text, look->text_bytes) : NULL;

	if (look != NULL && holders == NULL)
		capture_damaged(capture,
		                "section \"holders\": the newest look is not written as this version writes it: left out");
	if (holders != NULL) {
		holders->sequence = look->sequence;
		holders->monotonic_ns = look->monotonic_ns;
		holders->volume_bytes = look->volume_bytes;
		holders->leak_bytes = look->leak_bytes;
	}
	return holders;
}

static void
add_efforts(const struct capture *capture, struct model_efforts *efforts)
{
	const struct kmem_efforts *stored = &capture->header->efforts;
	uint64_t pause = COPY_OF(stored->longest_pause);
	unsigned kind = pause & ((1u << KMEM_PAUSE_NS_SHIFT) - 1);

	for (unsigned i = 0; i < KMEM_EFFORT_COUNT; i++)
		efforts->counts[i] = COPY_OF(stored->counts[i]);
	if (kind < KMEM_EFFORT_COUNT) {
		efforts->longest_pause = (enum kmem_effort)kind;
		efforts->longest_pause_ns = pause >> KMEM_PAUSE_NS_SHIFT;
	}
	for (size_t i = 0; i < capture_site_count(capture); i++) {
		const struct kmem_site *site = capture_site(capture, i);

		if (site->domain != KMEM_DOMAIN_LIBRARY && !kmem_domain_is_sampled(site->domain))
			efforts->events += COPY_OF(site->allocated_count) + COPY_OF(site->freed_count);
	}
}

void
model_add_process(struct build *build, struct capture *capture, struct domain_rows *rows)
{
	const struct kmem_header *header = capture->header;
	struct model_process *process = &build->processes[build->process_count++];
	struct kmem_identity *identity = text_pool_room(build->pool, sizeof(*identity));
	struct kmem_heartbeat *heartbeats = NULL;

	*identity = *capture->identity;
	if (capture->heartbeat_count != 0) {
		heartbeats = text_pool_room(build->pool, capture->heartbeat_count * sizeof(*heartbeats));
		memcpy(heartbeats, capture->heartbeats, capture->heartbeat_count * sizeof(*heartbeats));
	}
	*process = (struct model_process){
		.path = text_pool_add_text(build->pool, capture->path),
		.identity = identity,
		.state = capture->state,
		.is_alive = process_is_alive(identity),
		.is_trusted = owner_is_trusted(capture->owner),
		.is_hidden = process_is_hidden(identity),
		.is_finalizing = COPY_OF(header->is_finalizing) != 0,
		.has_expandable_segments = COPY_OF(header->has_expandable_segments) == KMEM_YES,
		.is_at_exit = capture->released_bytes != NULL,
		.moment_ns = capture->rewound_ns,
		.after_exit_bytes = capture->after_exit_bytes,
		.exit_code = capture->state == KMEM_STATE_CLEAN_EXIT ? COPY_OF(header->exit_code) : -1,
		.ended_monotonic_ns = capture->state == KMEM_STATE_CLEAN_EXIT ? COPY_OF(header->ended_monotonic_ns) : 0,
		.launcher = kept_launcher(build, capture),
		.python_version = (uint32_t)COPY_OF(header->python_version), // once of twice
		.peak_error_bytes = COPY_OF(header->peak_error_bytes),
		.verify_checked = COPY_OF(header->verify_checked),
		.verify_mismatched = COPY_OF(header->verify_mismatched),
		.heartbeat_count = capture->heartbeat_count,
		.heartbeats = heartbeats,
		.parent = -1,
		.name = text_pool_add_text(build->pool, process_name(identity)),
	};
	const struct kmem_guard *guard = capture_guard_newest(capture);

	if (guard != NULL)
		process->guard = guard->passing;
	process->holders = kept_holders(capture);
	process->resident = kept_resident(build, capture, process);
	for (unsigned i = 0; i < KMEM_LOSS_COUNT; i++)
		process->losses[i] = COPY_OF(header->losses[i]);
	add_efforts(capture, &process->efforts);
	model_add_domains(build, capture, process, rows);
	add_notes(build, capture, process);
}

struct by_pid {
	uint32_t pid;
	uint64_t start_ns;
	int index;
};

ORDER_OF(compare_by_pid, struct by_pid,
	order_numbers(a->pid, b->pid) ?: order_numbers(a->start_ns, b->start_ns) ?: a->index - b->index)

void
model_processes_link(struct model_process *processes, size_t count)
{
	OWNED struct by_pid *order = memory_zeroed(count, sizeof(*order));

	for (size_t i = 0; i < count; i++)
		order[i] = (struct by_pid){ processes[i].identity->pid, processes[i].identity->start_realtime_ns, (int)i };
	SORT(order, count, compare_by_pid);
	for (size_t i = 0; i < count; i++) {
		const struct kmem_identity *identity = processes[i].identity;
		uint32_t parent_pid = identity->is_forked != 0 && identity->forked_from != 0 ? identity->forked_from
		                                                                             : identity->parent_pid;
		/* The last image with the parent's pid that started before this one is in front of it. */
		size_t until = SORTED_BEFORE(at, count,
		                             order[at].pid < parent_pid || (order[at].pid == parent_pid &&
		                                                            order[at].start_ns < identity->start_realtime_ns));
		bool has_parent = until > 0 && order[until - 1].pid == parent_pid && parent_pid != identity->pid;

		processes[i].parent = has_parent ? order[until - 1].index : -1;
	}
}
