/* diff_words.c - see diff_words.h. */
#include "diff/diff_words.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *
diff_change_text(int64_t change, char text[DIFF_CHANGE_BYTES])
{
	uint64_t bytes = change < 0 ? 0 - (uint64_t)change : (uint64_t)change;
	char number[UNITS_TEXT_BYTES];

	(void)snprintf(text, DIFF_CHANGE_BYTES, "%s%s",
	               change < 0   ? "-"
	               : change > 0 ? "+"
	                            : "",
	               units_bytes(bytes, number));
	return text;
}

__attribute__((format(printf, 2, 3))) static void
add(char text[DIFF_REMARK_BYTES], const char *format, ...)
{
	size_t used = strlen(text);
	va_list arguments;

	if (used != 0)
		used += (size_t)snprintf(text + used, DIFF_REMARK_BYTES - used, "; ");
	va_start(arguments, format);
	(void)vsnprintf(text + used, DIFF_REMARK_BYTES - used, format, arguments);
	va_end(arguments);
}

static void
add_leak(const struct diff_row *row, char text[DIFF_REMARK_BYTES])
{
	char then[UNITS_TEXT_BYTES];
	char now[UNITS_TEXT_BYTES];

	(void)units_bytes(row->then.leaking_bytes, then);
	(void)units_bytes(row->now.leaking_bytes, now);
	if (row->then.leaking_bytes != 0 && row->now.leaking_bytes != 0)
		add(text, strcmp(then, now) == 0 ? "leaks %s" : "leaks %s, before %s", now, then);
	else if (row->now.leaking_bytes != 0)
		add(text, row->before != NULL ? "leaks %s, before nothing" : "leaks %s", now);
	else if (row->then.leaking_bytes != 0)
		add(text, row->after != NULL ? "leaked %s, now nothing" : "leaked %s", then);
}

const char *
diff_remark(const struct diff *diff, const struct diff_row *row, char text[DIFF_REMARK_BYTES])
{
	uint64_t error = row->live_error_bytes > row->peak_error_bytes ? row->live_error_bytes : row->peak_error_bytes;
	const char *was = diff_row_was(diff, row);
	char bytes[UNITS_TEXT_BYTES];

	text[0] = '\0';
	if (was != NULL && strcmp(row->before->function, row->after->function) == 0)
		add(text, "was line %" PRIu32, row->before->line);
	else if (was != NULL)
		add(text, "was %s", was);
	add_leak(row, text);
	if (error != 0)
		add(text, "an estimate, \302\261%s", units_bytes(error, bytes));
	return text;
}

bool
diff_rest_text(const struct diff *diff, const struct diff_section *section, unsigned number, char text[DIFF_REST_BYTES])
{
	const char *unit = diff->by == DIFF_BY_FUNCTION ? "function" : "line";
	char live[DIFF_CHANGE_BYTES];
	char peak[DIFF_CHANGE_BYTES];
	char error[UNITS_TEXT_BYTES];

	if (section->rest_count != 0 && number-- == 0) {
		(void)snprintf(text, DIFF_REST_BYTES, "%zu more %s%s: %s at the end, %s at the peak", section->rest_count, unit,
		               section->rest_count == 1 ? "" : "s", diff_change_text(section->rest_live_change, live),
		               diff_change_text(section->rest_peak_change, peak));
		return true;
	}
	if (section->doubtful_count != 0 && number-- == 0) {
		(void)snprintf(text, DIFF_REST_BYTES,
		               "%zu %s%s of small Python objects: less than the error of the estimate (together %s \302\261%s)",
		               section->doubtful_count, unit, section->doubtful_count == 1 ? "" : "s",
		               diff_change_text(section->doubtful_change, live),
		               units_bytes(section->doubtful_error_bytes, error));
		return true;
	}
	if (section->space_count != 0 && number-- == 0) {
		(void)snprintf(text, DIFF_REST_BYTES, "%zu %s%s of address space, which is no memory: %s", section->space_count,
		               unit, section->space_count == 1 ? "" : "s", diff_change_text(section->space_change, live));
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
