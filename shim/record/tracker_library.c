/*
 * tracker_library.c - memory inside reservations of libraries' own allocators (see tracker_library.h).
 *
 * Not chosen  booking at each question: the pages would have to be sampled each time.
 *             Asking only about the thread's own line: pools of the library do the work.
 *             The growth of a mapping as requests tell it: these allocators ask for a GiB at once.
 */
#include "record/library_due.h"
#include "record/tracker_library.h"

#include <errno.h>
#include <string.h>

#include "base/arch.h"
#include "base/clock.h"
#include "base/effort.h"
#include "base/memory_limits.h"
#include "base/raw_sys.h"
#include "base/settings.h"
#include "base/thread_stack.h"
#include "base/turn.h"
#include "capture/capture_file.h"
#include "python/python_frames.h"
#include "record/tracker_parts.h"
#include "sites/call_stack.h"
#include "sites/site_table.h"
#include "sites/thread_attribution.h"
#include "sites/thread_slot.h"
#include "tables/generations.h"

_Atomic uint64_t library_due_next_ticks;
_Atomic uint64_t library_due_next_switch_ticks;

#define PAGE_BYTES LIBRARY_MAP_PAGE_BYTES
#define LINES_MAX 8u
#define USES_MAX 4u                         // reservations' makers per line
#define LINE_BYTES_MIN ((uint64_t)64 << 10) // less growth waits for the next question
#define LOOK_BYTES_MIN ((uint64_t)1 << 20)
#define SAMPLE_SHARE 64 // a sample is worth while when resident memory has changed by this part of it
// the next sample comes when so many times the duration of the last one has passed
#define TIME_SHARE (settings.sample_bytes != 0 ? 512u : 128u)
// of the processor's clock, 70 to 130 ms: a switch of threads may use up at once the questions that so much time allows
#define BURST_TICKS (UINT64_C(1) << 28)
#define TICKS_A_NS 3 // of the processor's clock: it has 2 to 5; measuring it for so short a time would be less exact

/* What one line gets in this sample, of the reservations of one maker. */
struct use {
	uint64_t pc;
	uint32_t site;
	uint32_t booking;
	bool is_whole;
};

struct line {
	uint64_t grown_bytes; // since the last sample
	uint64_t given_pages;
	uint64_t told_bytes; // growth that the clock of generations knows
	uint32_t use_count;
	struct use uses[USES_MAX];
	struct call_stack stack;
};

static struct turn sampling; // all of the below is under it
static struct {
	uint64_t resident_bytes; // when it was asked last
	uint64_t other_bytes;    // live elsewhere, then
	uint64_t sampled_bytes;  // resident in the last sample
	uint64_t next_sample_ns;
	uint64_t paid_ticks; // until then questions of switches are paid for; in the past: so much time was not used
	uint32_t line_count;
	struct line lines[LINES_MAX];
	struct call_stack python; // where a Python thread was seen last; frame_count 0 = none was
	struct call_stack native; // the same of a thread without, in a program without Python
	struct call_stack booked; // a line's stack behind its maker's frame
	struct thread_slot *slot; // of the thread that samples
} state;

static bool
begin(void)
{
	/* What is live stays as it was when the interpreter began to end. */
	return raw_sys_may_call() &&
	       atomic_load_explicit(&capture_file_header()->is_finalizing, memory_order_relaxed) == 0 &&
	       turn_take(&sampling);
}

static void
end(void)
{
	turn_give(&sampling);
}

/* ---- what it takes ---- */

struct moment {
	uint64_t wall_ns;
	uint64_t own_ns; // of the processor, in this thread; 0 = nobody knows
};

static struct moment
moment_now(void)
{
	struct timespec own;
	bool is_known = raw_syscall(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, &own) == 0;

	return (struct moment){ clock_now_ns(), is_known ? (uint64_t)own.tv_sec * 1000000000 + (uint64_t)own.tv_nsec : 0 };
}

/*
 * The time that a question took of this thread: on a busy machine a question sometimes waits for its turn, a thousand times as long as
 * it takes. Where the clock of threads did not move it is a coarse one.
 */
static uint64_t
taken_ns(const struct moment *from, const struct moment *to)
{
	uint64_t wall_ns = to->wall_ns - from->wall_ns;
	uint64_t own_ns = to->own_ns > from->own_ns && from->own_ns != 0 ? to->own_ns - from->own_ns : wall_ns;

	return own_ns < wall_ns ? own_ns : wall_ns;
}

/* ---- lines ---- */

static void
copy_stack(struct call_stack *to, const struct call_stack *from)
{
	memcpy(to, from, offsetof(struct call_stack, frames) + from->frame_count * sizeof(from->frames[0]));
}

/* The line at which growth is booked now; NULL: not known. */
static const struct call_stack *
stack_here(const void *hook_frame)
{
	struct thread_slot *slot = thread_slot_here();
	const struct call_stack *stack;

	state.slot = slot;
	if (slot == NULL || (hook_frame == NULL && !python_frames_available()))
		return state.python.frame_count != 0 ? &state.python : NULL;
	(void)thread_attribution_find();
	/* The stack is memory of the thread, and need not be given back. */
	stack = call_stack_take(&slot->stack, hook_frame != NULL ? hook_frame : __builtin_frame_address(0),
	                        CALL_STACK_PYTHON_ONLY);
	if (slot->stack.python.count != 0)
		copy_stack(&state.python, stack);
	else if (state.python.frame_count != 0)
		stack = &state.python;
	else if (hook_frame == NULL)
		stack = NULL; // these frames are ours
	else
		copy_stack(&state.native, stack);
	return stack;
}

static void
add_line(const struct call_stack *stack, uint64_t grown_bytes)
{
	struct line *line = NULL;
	struct line *least = &state.lines[0];

	for (uint32_t i = 0; i < state.line_count && line == NULL; i++) {
		if (state.lines[i].stack.hash == stack->hash)
			line = &state.lines[i];
		else if (state.lines[i].grown_bytes < least->grown_bytes)
			least = &state.lines[i];
	}
	if (line == NULL) {
		uint64_t before = 0;

		if (state.line_count < LINES_MAX) {
			line = &state.lines[state.line_count++];
		} else {
			line = least;
			before = least->grown_bytes;
		}
		line->grown_bytes = before;
		line->given_pages = line->told_bytes = 0;
		line->use_count = 0;
		copy_stack(&line->stack, stack);
	}
	line->grown_bytes += grown_bytes;
}

/* Memory was given back: what came last is taken to have gone first. */
static void
take_back(uint64_t bytes)
{
	while (bytes != 0 && state.line_count != 0) {
		struct line *last = &state.lines[state.line_count - 1];
		uint64_t less = last->grown_bytes < bytes ? last->grown_bytes : bytes;

		last->grown_bytes -= less;
		bytes -= less;
		if (last->grown_bytes == 0)
			state.line_count--;
	}
}

/* ---- samples ---- */

/* A line's record for what a maker reserved; 0 = there is no room. */
static uint32_t
site_of(const struct line *line, uint64_t pc)
{
	struct call_stack *stack = &state.booked;
	uint32_t kept = line->stack.frame_count < CALL_STACK_FRAMES_MAX ? line->stack.frame_count
	                                                                : CALL_STACK_FRAMES_MAX - 1;
	uint32_t before = pc != 0;

	stack->frames[0] = pc;
	memcpy(stack->frames + before, line->stack.frames, kept * sizeof(stack->frames[0]));
	stack->frame_count = kept + before;
	stack->flags = (uint16_t)((line->stack.flags & ~KMEM_STACK_PYTHON_ONLY) | KMEM_STACK_ESTIMATED);
	stack->omitted = line->stack.omitted;
	stack->omitted_at = line->stack.omitted != 0 ? line->stack.omitted_at + before : 0;
	stack->hash = call_stack_hash(stack);
	return site_table_find(state.slot != NULL ? &state.slot->owner : NULL, stack, KMEM_DOMAIN_LIBRARY,
	                       generations_clock());
}

static void
open_use(struct line *line, struct use *use, uint64_t pc)
{
	bool is_joined = false;

	*use = (struct use){ .pc = pc, .site = site_of(line, pc) };
	if (use->site == 0)
		return;

	struct address_block block = tracker_place_at(
		use->site, line->grown_bytes > line->told_bytes ? line->grown_bytes - line->told_bytes : 0);
	line->told_bytes = line->grown_bytes;
	use->booking = library_map_booking(use->site, block.generation, &is_joined);
	if (is_joined || use->booking == 0)
		generations_died(site_table_at(use->site), use->site,
		                 block.generation); // it is no block of its own
	use->is_whole = !is_joined;
}

/* Divides the pages among the lines in proportion to what grew while each ran. */
static uint32_t
book(uint64_t pc, uint64_t pages)
{
	struct line *line = &state.lines[0];
	uint32_t i = 0;

	for (uint32_t k = 1; k < state.line_count; k++) {
		struct line *other = &state.lines[k];

		if ((unsigned __int128)other->given_pages * line->grown_bytes <
		    (unsigned __int128)line->given_pages * other->grown_bytes)
			line = other;
	}
	while (i < line->use_count && line->uses[i].pc != pc)
		i++;
	if (i == USES_MAX) {
		i = 0;
	} else if (i == line->use_count) {
		open_use(line, &line->uses[i], pc);
		line->use_count++;
	}

	struct use *use = &line->uses[i];

	line->given_pages += pages;
	return use->booking;
}

/* Under the map's lock: nothing of it can be gone before. */
static void
booked(void)
{
	for (uint32_t i = 0; i < state.line_count; i++) {
		struct line *line = &state.lines[i];

		for (uint32_t k = 0; k < line->use_count; k++) {
			const struct use *use = &line->uses[k];
			uint64_t pages = use->booking != 0 ? library_map_fresh(use->booking) : 0;

			if (pages != 0)
				tracker_gain(state.slot, use->site, KMEM_DOMAIN_LIBRARY, pages * PAGE_BYTES, use->is_whole);
		}
		line->use_count = 0;
	}
}

static void
gone(struct address_block block, bool is_whole)
{
	tracker_gone(thread_slot_here(), block, is_whole);
}

static void
sample_pages(uint64_t resident_bytes)
{
	struct moment begun = moment_now();
	uint64_t found;

	if (state.line_count == 0) { // growth of which nobody was asked
		static const struct call_stack nobody = { .hash = 1, .flags = KMEM_STACK_NO_STACK };

		add_line(state.python.frame_count != 0   ? &state.python
		         : state.native.frame_count != 0 ? &state.native
		                                         : &nobody,
		         PAGE_BYTES);
	}
	state.sampled_bytes = resident_bytes;
	if (library_map_sample(book, booked, gone, &found))
		state.line_count = 0;

	struct moment ended = moment_now();

	state.next_sample_ns = ended.wall_ns + TIME_SHARE * taken_ns(&begun, &ended);
}

static uint64_t
other_live_bytes(void)
{
	uint64_t all = tracker_live_host_bytes();
	uint64_t library = tracker_live_bytes(KMEM_DOMAIN_LIBRARY);

	return all > library ? all - library : 0;
}

/* Gives the running line what grew since the last question, less what was allocated elsewhere. Returns resident bytes; 0 = not known. */
static uint64_t
ask(const struct call_stack *stack)
{
	uint64_t resident_bytes = memory_limits_resident(&capture_file_header()->identity);
	uint64_t other_bytes = other_live_bytes();
	uint64_t others_grew = other_bytes > state.other_bytes ? other_bytes - state.other_bytes : 0;

	if (resident_bytes >= state.resident_bytes && resident_bytes - state.resident_bytes < LINE_BYTES_MIN)
		return resident_bytes;
	if (resident_bytes < state.resident_bytes)
		take_back(state.resident_bytes - resident_bytes);
	else if (stack != NULL && state.resident_bytes != 0 && resident_bytes - state.resident_bytes > others_grew)
		add_line(stack, resident_bytes - state.resident_bytes - others_grew);
	state.resident_bytes = resident_bytes;
	state.other_bytes = other_bytes;
	return resident_bytes;
}

static bool
is_worth_a_look(uint64_t resident_bytes, uint64_t now_ns)
{
	uint64_t change = resident_bytes > state.sampled_bytes ? resident_bytes - state.sampled_bytes
	                                                       : state.sampled_bytes - resident_bytes;

	return resident_bytes != 0 && change >= LOOK_BYTES_MIN && change >= resident_bytes / SAMPLE_SHARE &&
	       now_ns >= state.next_sample_ns;
}

/*
 * At most half of the time for questions is for those that wait. Switches have the rest, and time that was not used for a while; where
 * nothing changed the next switch waits as well: a library's threads wake each other many times in a row, and would use it up.
 */
static void
set_next(uint64_t taken, bool has_changed)
{
	uint64_t pause_ticks = TIME_SHARE * TICKS_A_NS * taken;
	uint64_t now_ticks = arch_ticks();
	uint64_t switch_ticks;

	if ((int64_t)(now_ticks - state.paid_ticks) > (int64_t)BURST_TICKS)
		state.paid_ticks = now_ticks - BURST_TICKS;
	state.paid_ticks += pause_ticks;
	switch_ticks = state.paid_ticks;
	if (!has_changed && (int64_t)(now_ticks + LIBRARY_DUE_TICKS - switch_ticks) > 0)
		switch_ticks = now_ticks + LIBRARY_DUE_TICKS;
	atomic_store_explicit(&library_due_next_switch_ticks, switch_ticks, memory_order_relaxed);
	pause_ticks *= 2;
	atomic_store_explicit(&library_due_next_ticks,
	                      now_ticks + (pause_ticks > LIBRARY_DUE_TICKS ? pause_ticks : LIBRARY_DUE_TICKS),
	                      memory_order_relaxed);
}

void
tracker_library_sample(const void *hook_frame)
{
	int host_errno = errno;

	if (!thread_stack_has_room() || !begin())
		return;

	uint64_t begun_ticks = effort_begin();

	effort_count(KMEM_EFFORT_LIBRARY_LOOKS);

	struct moment begun = moment_now();
	const struct call_stack *stack = stack_here(hook_frame);

	if (stack == NULL) { // the next one may know
		end();
		errno = host_errno;
		return;
	}

	uint64_t before_bytes = state.resident_bytes;
	uint64_t resident_bytes = ask(stack);
	struct moment ended = moment_now();

	set_next(taken_ns(&begun, &ended), state.resident_bytes != before_bytes);

	bool has_sampled = is_worth_a_look(resident_bytes, ended.wall_ns);

	if (has_sampled)
		sample_pages(resident_bytes);
	end();
	if (has_sampled)
		tracker_look_after_total();
	effort_end(begun_ticks, KMEM_EFFORT_LIBRARY_LOOKS);
	errno = host_errno;
}

void
tracker_library_sample_now(void)
{
	int host_errno = errno;

	if (!atomic_load_explicit(&library_map_is_any, memory_order_relaxed) || !begin())
		return;
	sample_pages(ask(stack_here(NULL)));
	end();
	errno = host_errno;
}

/* ---- reservations ---- */

void
tracker_library_reserved(const void *hook_frame, const void *addr, size_t bytes)
{
	uint64_t start = (uint64_t)addr;
	uint64_t pc = hook_frame != NULL ? ((const uint64_t *)hook_frame)[1] : 0; // its return address

	library_map_add(start, start + ((bytes + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1)), pc);
}

/* When Python's teardown begins at this event, resident memory is sampled: not under the map's lock. */
static void
prepare(void)
{
	if (atomic_load_explicit(&library_map_is_any, memory_order_relaxed))
		(void)tracker_is_teardown(0);
}

void
tracker_library_cut(uint64_t start, uint64_t end_addr)
{
	prepare();
	library_map_cut(start, end_addr, gone);
}

void
tracker_library_returned(uint64_t start, uint64_t end_addr)
{
	prepare();
	library_map_returned(start, end_addr, gone);
}

void
tracker_library_clear(void)
{
	library_map_clear();
	memset(&state, 0, offsetof(typeof(state), lines));
	state.python.frame_count = state.native.frame_count = 0;
}
