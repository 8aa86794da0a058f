/*
 * capture.c - what is damaged in a capture (see capture.h)?
 */
#include "capture/capture.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/memory.h"

#define SALVAGE_HINT "--salvage reads what is intact"

const char *const capture_section_names[KMEM_SECTION_COUNT] = { "none", "sites", "generations", "records", "holders" };

void
capture_damaged(struct capture *capture, const char *format, ...)
{
	struct fail line;
	char text[768];
	va_list arguments;

	if (capture->damage_count == CAPTURE_DAMAGES_MAX) {
		capture->damages_unsaid++;
		return;
	}
	va_start(arguments, format);
	(void)vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	fail_set(&line, EXIT_CAPTURE, "%s: %s", capture->name, text);
	capture->damages[capture->damage_count++] = memory_text(line.text);
}

bool
capture_refuse(struct capture *capture, struct fail *fail, const char *format, ...)
{
	va_list values;

	va_start(values, format);

	OWNED char *text = memory_vprinted(format, values);

	va_end(values);
	if (!capture->is_salvage)
		return fail_set(fail, EXIT_CAPTURE, "%s: %s; %s", capture->path, text, SALVAGE_HINT);
	capture_damaged(capture, "%s", text);
	return true;
}
