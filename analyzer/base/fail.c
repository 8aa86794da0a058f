/*
 * fail.c - one error as one line of text: how is it made?
 *
 * When failing  a text that is too long is cut; it is never empty and never more than one line.
 */
#include "base/fail.h"

#include <stdarg.h>
#include <stdio.h>

bool
fail_late(struct fail *fail)
{
	fail->needs_time = true;
	return false;
}

bool
fail_set(struct fail *fail, enum exit_code code, const char *format, ...)
{
	va_list arguments;

	fail->code = code;
	fail->needs_time = false;
	va_start(arguments, format);

	int written = vsnprintf(fail->text, sizeof(fail->text), format, arguments);

	va_end(arguments);
	if (written < 0)
		(void)snprintf(fail->text, sizeof(fail->text), "%s", format);

	/* Paths and file contents come from outside: they must not end the line or steer the terminal. */
	for (char *at = fail->text; *at != '\0'; at++) {
		if ((unsigned char)*at < 0x20 || *at == 0x7f)
			*at = '?';
	}
	return false;
}
