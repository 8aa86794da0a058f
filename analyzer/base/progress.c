/*
 * progress.c - one line on a terminal while something takes long (see progress.h).
 */
#include "base/progress.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"

#define PATIENCE_NS UINT64_C(1000000000)
#define STEP_NS UINT64_C(100000000)
#define CALLS_PER_LOOK 64 // at the clock

static struct {
	bool is_allowed;
	uint64_t began_ns; // 0 = nothing began
	uint64_t shown_ns; // 0 = no line is there
	const char *what;
	unsigned calls;
} state;

static bool
has_terminal(void)
{
	const char *kind = getenv("TERM");

	return isatty(STDERR_FILENO) == 1 && kind != NULL && strcmp(kind, "dumb") != 0;
}

void
progress_allow(void)
{
	state.is_allowed = true;
}

void
progress_show(const char *what, size_t done, size_t total)
{
	char counts[2][UNITS_TEXT_BYTES];

	if (!state.is_allowed)
		return;
	if (state.began_ns != 0 && state.what == what && ++state.calls % CALLS_PER_LOOK != 0 && done + 1 < total)
		return;

	uint64_t time = clock_monotonic_ns();

	state.what = what;
	if (state.began_ns == 0)
		state.began_ns = time;
	if (time - state.began_ns < PATIENCE_NS || time - state.shown_ns < STEP_NS || !has_terminal())
		return;
	(void)fflush(stdout); // what stands before it on the same terminal
	(void)fprintf(stderr, "\r\033[Kkmemshim: %s: %s%s%s", what, units_count(done, counts[0]), total != 0 ? " of " : "",
	              total != 0 ? units_count(total, counts[1]) : "");
	state.shown_ns = time;
}

void
progress_end(void)
{
	if (state.shown_ns != 0)
		(void)fputs("\r\033[K", stderr);
	state.shown_ns = 0;
}

void
progress_stop(void)
{
	progress_end();
	state.is_allowed = false;
}
