/* diff_words.c - see diff_words.h. */
#include "diff/diff_words.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "base/units.h"

const char *
diff_change_text(int64_t change, char text[DIFF_CHANGE_BYTES])
{
	uint64_t bytes = change < 0 ? 0 - (uint64_t)change : (uint64_t)change;

	(void)snprintf(text, DIFF_CHANGE_BYTES, "%s%s", change < 0 ? "-" : change > 0 ? "+" : "", UNITS_BYTES(bytes));
	return text;
}

/* To what was said before. */
__attribute__((format(printf, 2, 3))) static void
add(FILE *stream, const char *format, ...)
{
	va_list arguments;

	if (ftell(stream) > 0)
		(void)fputs("; ", stream);
	va_start(arguments, format);
	(void)vfprintf(stream, format, arguments);
	va_end(arguments);
}

static void
add_leak(const struct diff_row *row, FILE *stream)
{
	const char *then = UNITS_BYTES(row->then.leaking_bytes);
	const char *now = UNITS_BYTES(row->now.leaking_bytes);
	if (row->then.leaking_bytes != 0 && row->now.leaking_bytes != 0 && strcmp(then, now) == 0)
		add(stream, "leaks %s", now);
	else if (row->then.leaking_bytes != 0 && row->now.leaking_bytes != 0)
		add(stream, "leaks %s, before %s", now, then);
	else if (row->now.leaking_bytes != 0)
		add(stream, row->before != NULL ? "leaks %s, before nothing" : "leaks %s", now);
	else if (row->then.leaking_bytes != 0)
		add(stream, row->after != NULL ? "leaked %s, now nothing" : "leaked %s", then);
}

char *
diff_remark(const struct diff *diff, const struct diff_row *row)
{
	uint64_t error = row->live_error_bytes > row->peak_error_bytes ? row->live_error_bytes : row->peak_error_bytes;
	const char *was = diff_row_was(diff, row);
	char *text;
	FILE *stream = memory_stream(&text, NULL);

	if (was != NULL && strcmp(row->before->function, row->after->function) == 0) {
		add(stream, "was line %" PRIu32, row->before->line);
	} else if (was != NULL) {
		OWNED char *name = diff_name(diff, was);

		add(stream, "was %s", name);
	}
	add_leak(row, stream);
	if (error != 0)
		add(stream, "an estimate, \302\261%s", UNITS_BYTES(error));
	memory_stream_close(stream);
	return text;
}

bool
diff_rest_text(const struct diff *diff, const struct diff_section *section, unsigned number, char text[DIFF_REST_BYTES])
{
	const char *unit = diff->by == DIFF_BY_FUNCTION ? "function" : "line";

	if (section->rest_count != 0 && number-- == 0) {
		(void)snprintf(text, DIFF_REST_BYTES, "%zu more %s%s: %s at the end, %s at the peak", section->rest_count, unit,
		               UNITS_S(section->rest_count), diff_change_text(section->rest_live_change, DIFF_CHANGE_ROOM),
		               diff_change_text(section->rest_peak_change, DIFF_CHANGE_ROOM));
		return true;
	}
	if (section->doubtful_count != 0 && number-- == 0) {
		(void)snprintf(text, DIFF_REST_BYTES,
		               "%zu %s%s of small Python objects: less than the error of the estimate (together %s \302\261%s)",
		               section->doubtful_count, unit, UNITS_S(section->doubtful_count),
		               diff_change_text(section->doubtful_change, DIFF_CHANGE_ROOM),
		               UNITS_BYTES(section->doubtful_error_bytes));
		return true;
	}
	if (section->space_count != 0 && number-- == 0) {
		(void)snprintf(text, DIFF_REST_BYTES, "%zu %s%s of address space, which is not memory: %s",
		               section->space_count, unit, UNITS_S(section->space_count),
		               diff_change_text(section->space_change, DIFF_CHANGE_ROOM));
		return true;
	}
	return false;
}

const char *
diff_heading(const struct diff *diff, enum diff_state state)
{
	static const char *const headings[2][DIFF_STATES] = {
		[DIFF_BY_LINE] = { "Lines that changed", "New lines", "Lines that are gone", "Lines that hold the same" },
		[DIFF_BY_FUNCTION] = { "Functions that changed", "New functions", "Functions that are gone",
		                       "Functions that hold the same" },
	};

	return headings[diff->by][state];
}
