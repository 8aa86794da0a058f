/*
 * phrases_devices.c - how is said what filled a device?
 *
 * When failing  it cannot; long texts are cut.
 */
#include "verdict/phrases.h"

#include <inttypes.h>
#include <string.h>

#include "base/units.h"

// of the device: as much that pools keep is worth a sentence, even where it was not enough
#define POOLS_PART 8
#define ROUNDS_MIN 6  // lines that ran less often do not tell the pace
#define PINNED_PART 8 // of the host's memory: less is not worth a sentence

static void
say_growth(const struct verdict_facts *facts, struct verdict *verdict)
{
	const struct rank_line *top = &facts->top_device;
	char bytes[UNITS_TEXT_BYTES];
	char rounds[UNITS_TEXT_BYTES];

	say(verdict, " It accumulates: blocks from %" PRIu32 " of %" PRIu32 " generations are still alive",
	    top->telling->generations_alive, top->telling->generations_total);
	if (facts->growing_count > 1 && facts->growing_rounds != 0)
		say(verdict,
		    ". %zu lines grow together, by %s a round (%s rounds): a loss that is kept keeps all that it was made of.",
		    facts->growing_count, units_bytes(facts->growing_bytes / facts->growing_rounds, bytes),
		    units_count(facts->growing_rounds, rounds));
	else if (top->live_count >= ROUNDS_MIN)
		say(verdict, ", %s %s (%s blocks).", units_bytes(top->live_bytes / top->live_count, bytes),
		    top->allocated_count / 5 <= top->live_count / 4 ? "each time it runs" : "each",
		    units_count(top->live_count, rounds));
	else
		say(verdict, ".");
}

/* "; 58.0 MiB of that (97 %) was allocated at train.py:41 step." and how it grew. */
static void
say_holder(const struct verdict_facts *facts, uint64_t whole_bytes, struct verdict *verdict)
{
	const struct rank_line *top = &facts->top_device;
	char held[UNITS_TEXT_BYTES];
	char share[UNITS_TEXT_BYTES];
	char place[PLACE_TEXT_BYTES];

	if (top->site_count == 0) {
		say(verdict, ".");
		return;
	}
	say(verdict, "; %s of that (%s) was allocated at %s.", units_bytes(top->live_bytes, held),
	    units_share(verdict_share(top->live_bytes, whole_bytes), share), verdict_line_text(top, place));
	if (verdict_does_device_grow(facts))
		say_growth(facts, verdict);
}

/* Of several processes the figures are sums: the one that was refused need not be the one that filled the device. */
static void
say_own(const struct verdict_facts *facts, struct verdict *verdict)
{
	char held[UNITS_TEXT_BYTES];

	if (facts->model->process_count > 1 && facts->refused->has_held)
		say(verdict, " (the one that was refused %s then)", units_bytes(facts->refused_held_bytes, held));
}

static void
say_kept(const struct verdict_facts *facts, struct verdict *verdict)
{
	char bytes[UNITS_TEXT_BYTES];

	if (facts->kept_bytes != 0)
		say(verdict,
		    " %s of the tensors were those of an earlier step, which was refused memory as well: often the traceback of its "
		    "exception keeps them.",
		    units_bytes(facts->kept_bytes, bytes));
}

static void
say_pools(const struct verdict_facts *facts, struct verdict *verdict)
{
	const struct model_failed *refused = facts->refused;
	char bytes[UNITS_TEXT_BYTES];

	if (verdict_is_kept_by_pools(facts) || refused->pool_kept_bytes > refused->total_bytes / POOLS_PART)
		say(verdict, " Another %s lay unused in the driver's pools (cudaMallocAsync)%s.",
		    units_bytes(refused->pool_kept_bytes, bytes),
		    verdict_is_kept_by_pools(facts) ? ": enough for the request, with what was free" : "");
}

static void
say_preallocated(const struct verdict_facts *facts, struct verdict *verdict)
{
	const struct rank_line *top = &facts->top_device;
	char share[UNITS_TEXT_BYTES];

	say(verdict, top->live_count == 1 ? " That is one block" : " Those are %" PRIu64 " blocks", top->live_count);
	if (facts->refused->total_bytes != 0)
		say(verdict, ", %s of the device",
		    units_share(verdict_share(top->live_bytes, facts->refused->total_bytes), share));
	say(verdict, ", as when a framework takes its memory in advance.");
}

void
verdict_tell_device_memory(const struct verdict_facts *facts, struct verdict *verdict)
{
	const struct device_parts *parts = &facts->device;
	const struct model_failed *refused = facts->refused;
	const char *holder = facts->model->process_count == 1 ? "The process" : "Its processes, summed,";
	char held[UNITS_TEXT_BYTES];
	char taken[UNITS_TEXT_BYTES];

	verdict_say_ending(facts, verdict);
	say(verdict, " after ");
	verdict_say_refusal(facts, verdict);
	say(verdict, " by the driver (%s).", verdict_confidence_name(verdict->confidence));
	if (refused->total_bytes != 0)
		say(verdict, " The device then had %s free of %s.", units_bytes(refused->free_bytes, held),
		    units_bytes(refused->total_bytes, taken));
	if (parts->device == NULL) {
		say(verdict, " %s held nothing there.", holder);
	} else if (parts->tensors != NULL) {
		say(verdict, " %s held %s of %s", holder, units_bytes(parts->live_bytes, taken), parts->device->name);
		say_own(facts, verdict);
		say(verdict, ", tensors %s", units_bytes(parts->tensor_bytes, held));
		say_holder(facts, parts->tensor_bytes, verdict);
	} else {
		say(verdict, " %s held %s there", holder, units_bytes(parts->live_bytes, held));
		say_own(facts, verdict);
		say_holder(facts, parts->live_bytes, verdict);
		if (!verdict_is_preallocated(facts) && facts->process->python_version != 0)
			say(verdict,
			    " Frameworks keep a cache between tensors and the driver, so lines shown are where the cache grew.");
	}
	say_kept(facts, verdict);
	say_pools(facts, verdict);
	if (verdict_is_held_by_others(facts))
		say(verdict, " %s of what is in use there is not this program's: other processes, contexts, kernels.",
		    units_bytes(verdict_untracked_bytes(facts), held));
	else if (parts->device != NULL && verdict_is_preallocated(facts))
		say_preallocated(facts, verdict);
	else if (parts->device != NULL && verdict_is_device_fragmented(facts) && !verdict_is_device_growth_the_story(facts))
		say(verdict,
		    " PyTorch's cache held another %s there, more than was asked for, but in pieces that were too small.",
		    units_bytes(parts->cache_bytes, held));
	if (facts->retried_count != 0)
		say(verdict,
		    " %zu requests before it were met after others were given up: the device was nearly full for longer.",
		    facts->retried_count);
}

void
verdict_tell_device_alive(const struct verdict_facts *facts, struct verdict *verdict)
{
	if (facts->refused != NULL && verdict_is_device_request(facts)) {
		say(verdict, " Last, ");
		verdict_say_refusal(facts, verdict);
		say(verdict, ", and nothing was done there since.");
	}
	say_kept(facts, verdict);
}

void
verdict_tell_pinned(const struct verdict_facts *facts, struct verdict *verdict)
{
	char pinned[UNITS_TEXT_BYTES];
	char bytes[UNITS_TEXT_BYTES];
	char place[PLACE_TEXT_BYTES];

	if (facts->pinned_bytes <= (facts->live_bytes + facts->pinned_bytes) / PINNED_PART)
		return;
	say(verdict, " Beside that, %s of the host's memory was pinned by the GPU's driver; %s of it was allocated at %s.",
	    units_bytes(facts->pinned_bytes, pinned), units_bytes(facts->top_pinned.live_bytes, bytes),
	    verdict_line_text(&facts->top_pinned, place));
	if (facts->rounded_bytes != 0)
		say(verdict,
		    " %s of it is in blocks of powers of two: PyTorch rounds pinned memory up, to as much as twice of what was asked for.",
		    units_bytes(facts->rounded_bytes, bytes));
}
