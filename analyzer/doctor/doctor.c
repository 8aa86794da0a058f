/*
 * doctor.c - the list of findings: see doctor.h.
 */
#include "doctor/doctor.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/text_clean.h"

/* Names of files and kernels are whatever somebody made of them. */
static char *
clean_copy(const char *text)
{
	return text_cleaned(memory_text(text));
}

void
doctor_add(struct doctor *doctor, enum doctor_level level, const char *where, const char *next, const char *what, ...)
{
	char text[1200];
	va_list values;

	va_start(values, what);
	(void)vsnprintf(text, sizeof(text), what, values);
	va_end(values);
	*MEMORY_NEXT(doctor->findings, doctor->count) = (struct doctor_finding){
		.level = level,
		.where = clean_copy(where),
		.what = clean_copy(text),
		.next = clean_copy(next),
	};
}

void
doctor_free(struct doctor *doctor)
{
	for (size_t i = 0; i < doctor->count; i++) {
		free(doctor->findings[i].where);
		free(doctor->findings[i].what);
		free(doctor->findings[i].next);
	}
	free(doctor->findings);
	for (size_t i = 0; i < doctor->library_count; i++)
		free(doctor->libraries[i]);
	free(doctor->libraries);
}
