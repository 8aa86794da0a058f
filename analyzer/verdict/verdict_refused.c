/*
 * verdict_refused.c - what was asked for in vain, and which limit was in the way?
 *
 * When failing  it cannot.
 */
#include <inttypes.h>

#include "base/units.h"
#include "verdict/verdict_tell.h"

#define MUCH_MORE 64 // times what was live
// an error that nothing caught, until Python is gone: 1 MiB, measured; from 1 MiB on it is known
#define ERROR_BYTES (UINT64_C(4) << 20)

bool
verdict_is_request_alone(const struct verdict_facts *facts)
{
	const struct model_failed *refused = facts->refused;

	return refused->bytes / MUCH_MORE > facts->live_bytes && refused->bytes / MUCH_MORE > facts->peak_bytes;
}

bool
verdict_is_beyond_machine(const struct verdict_facts *facts)
{
	const struct kmem_identity *identity = facts->process->identity;

	return identity->machine_bytes != 0 && facts->refused->bytes > identity->machine_bytes + identity->swap_bytes;
}

static bool
is_other_status(const struct verdict_facts *facts)
{
	return facts->end == VERDICT_END_FAILED && facts->process->python_version != 0 && facts->exit_code != 1;
}

bool
verdict_was_perhaps_caught(const struct verdict_facts *facts)
{
	return facts->refused->got_bytes >= ERROR_BYTES || is_other_status(facts);
}

void
verdict_say_if_caught(const struct verdict_facts *facts, struct verdict *verdict)
{
	char bytes[UNITS_TEXT_BYTES];

	if (!verdict_was_perhaps_caught(facts)) {
		say(verdict, " (%s: nothing shows that it went on from there).", verdict->confidence);
		return;
	}
	say(verdict, ". Whether it ended of that is not known (%s: ", verdict->confidence);
	if (facts->refused->got_bytes >= ERROR_BYTES)
		say(verdict, "the same thread was given %s after it", units_bytes(facts->refused->got_bytes, bytes));
	if (is_other_status(facts))
		say(verdict, "%san error that nothing catches ends Python with status 1",
		    facts->refused->got_bytes >= ERROR_BYTES ? ", and " : "");
	say(verdict, ").");
}

void
verdict_say_wanted(const struct model *model, const struct model_failed *refused, struct verdict *verdict)
{
	char bytes[UNITS_TEXT_BYTES];
	char place[PLACE_TEXT_BYTES];

	say(verdict, "for %s in %s", units_bytes(refused->bytes, bytes), model->domains[refused->domain].name);
	if (refused->site != NULL && refused->site->where != NULL) {
		struct rank_line line = { .where = refused->site->where, .largest = refused->site };

		say(verdict, " at %s", verdict_line_text(&line, place));
	}
}

void
verdict_say_refusal(const struct verdict_facts *facts, struct verdict *verdict)
{
	say(verdict, "a request ");
	verdict_say_wanted(facts->model, facts->refused, verdict);
	say(verdict, " was refused");
}

bool
verdict_is_of_recording(const struct verdict_facts *facts)
{
	const struct model_failed *refused = facts->refused;

	return refused->space_limit_bytes != 0 && refused->own_space_bytes >= refused->space_limit_bytes;
}

static void
say_own_space(const struct verdict_facts *facts, uint64_t limit_bytes, struct verdict *verdict)
{
	uint64_t own_bytes = facts->refused->own_space_bytes;
	char bytes[UNITS_TEXT_BYTES];

	if (own_bytes >= limit_bytes)
		say(verdict, ", when recording had reserved %s of addresses: unrecorded it might have got it",
		    units_bytes(own_bytes, bytes));
	else
		say(verdict, ", of which recording takes %s", own_bytes != 0 ? units_bytes(own_bytes, bytes) : "a part");
}

void
verdict_say_limit(const struct verdict_facts *facts, struct verdict *verdict)
{
	const struct kmem_identity *identity = facts->process->identity;
	uint64_t then_bytes = facts->refused->space_limit_bytes;
	char bytes[UNITS_TEXT_BYTES];

	for (size_t i = 0; i < KMEM_LIMITS_MAX; i++) {
		const struct kmem_limit *limit = &identity->limits[i];
		bool is_space = limit->kind == KMEM_LIMIT_ADDRESS_SPACE;

		if ((!is_space && limit->kind != KMEM_LIMIT_DATA) || limit->bytes == UINT64_MAX ||
		    (is_space && then_bytes != 0 && then_bytes < limit->bytes / 100 * 99))
			continue;
		say(verdict, " Its %s is limited to %s (ulimit -%s)", is_space ? "address space" : "data segment",
		    units_bytes(limit->bytes, bytes), is_space ? "v" : "d");
		if (is_space)
			say_own_space(facts, limit->bytes, verdict);
		say(verdict, ".");
		return;
	}
	if (then_bytes != 0) {
		say(verdict, " It had limited its address space to %s (setrlimit, RLIMIT_AS)", units_bytes(then_bytes, bytes));
		say_own_space(facts, then_bytes, verdict);
		say(verdict, ".");
	} else if (identity->overcommit_mode == 2) {
		say(verdict, " This machine refuses what it cannot back with memory (vm.overcommit_memory is 2).");
	} else if (verdict_is_beyond_machine(facts)) {
		say(verdict, " That is more than the machine has (%s).", units_bytes(identity->machine_bytes, bytes));
	}
}
