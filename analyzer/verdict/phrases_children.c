/*
 * phrases_children.c - how is it said what child processes did?
 *
 * Those that are gone, and those that copied what their parent had built.
 *
 * When failing  it cannot; long texts are cut.
 */
#include "verdict/phrases.h"

#include "base/units.h"
#include "verdict/words.h"

/* Not the story, but worth a note: a pool ends its workers so. */
PHRASE(LOST_CHILDREN)
{
	bool is_one = facts->lost_count == 1;

	if (is_one)
		say(verdict, " One child process ended without a clean exit: ");
	else
		say(verdict, " %zu child processes ended without a clean exit, and held %s in sum. The largest, ",
		    facts->lost_count, UNITS_BYTES(finding->bytes));
	say_process(facts->lost_child, verdict);
	say(verdict, is_one ? ". It held " : ", held ");
	say_held(facts->lost_child, verdict);
	if (facts->first_lost != NULL) {
		uint64_t ended_ns = model_ended_ns(facts->process);
		uint64_t seen_ns = model_last_seen_ns(facts->first_lost);

		say(verdict, " The first to show no more activity (an idle process shows none) was ");
		say_process(facts->first_lost, verdict);
		if (ended_ns > seen_ns)
			say(verdict, ", %.1f s before the end", (double)(ended_ns - seen_ns) / 1e9);
		say(verdict, "; it held %s.", UNITS_BYTES(facts->first_lost->live_bytes));
	}
	say(verdict, " Only %s parent knows how%s.", is_one ? "its" : "their",
	    facts->model->process_count > 2 ? "; a pool that closes sends SIGTERM" : "");
}

PHRASE(COPIES)
{
	const struct verdict_copies *copies = &facts->copies;

	if (copies->child_count == 1)
		say(verdict, " One child process");
	else
		say(verdict, " %zu child processes", copies->child_count);
	say(verdict, " copied at least %s of what ", UNITS_BYTES(finding->bytes));
	say_process(copies->parent, verdict);
	say(verdict, " had built before it forked");
	for (size_t i = 0; i < copies->built_count; i++) {
		const struct verdict_built *built = &copies->built[i];
		const struct rank_line line = {
			.where = built->site->where, .largest = built->site, .domain = built->site->domain, .site_count = 1
		};

		say(verdict, "%s%s %s %s", i == 0 ? " (" : "; ", UNITS_BYTES(built->bytes),
		    verdict_where_word(facts, &line, VERDICT_WORD_ROOM), verdict_line_text(&line, PLACE_ROOM));
		if (built->copied_bytes != 0) {
			say(verdict, ", of which %s copied about %s", copies->child_count == 1 ? "it" : "one",
			    UNITS_BYTES(built->copied_bytes));
			say(verdict, " (± %s)", UNITS_BYTES(built->copied_error_bytes));
		}
	}
	say(verdict, "%s%s", copies->built_count != 0 ? ")" : "",
	    copies->child->python_version != 0
	        ? ": reading a Python object writes its reference count, and a page that is written to is copied."
	        : ": a page that is written to after the fork is copied.");
}
