/*
 * golden.h - is a text exactly the one that was agreed, in tests/golden?
 *
 * Include behind cmocka.h. Run from the root of the repository. UPDATE_GOLDEN=1 (make golden) writes the files anew; the
 * difference is for review.
 */
#ifndef GOLDEN_H
#define GOLDEN_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline char *
golden_read(FILE *stream)
{
	static char text[1 << 18];
	size_t length = fread(text, 1, sizeof(text) - 1, stream);

	text[length] = '\0';
	return text;
}

/* Compares what was written with tests/golden/`name`, and says where they part. */
static inline void
golden_compare(const char *name, const char *written)
{
	char path[256];
	size_t same = 0, line = 1, start = 0;
	FILE *stream;

	(void)snprintf(path, sizeof(path), "tests/golden/%s", name);
	if (getenv("UPDATE_GOLDEN") != NULL) {
		stream = fopen(path, "w");
		assert_non_null(stream);
		assert_true(fputs(written, stream) >= 0);
		assert_int_equal(fclose(stream), 0);
		return;
	}
	stream = fopen(path, "r");
	if (stream == NULL)
		fail_msg("%s: %s: run from the root of the repository", path, strerror(errno));
	const char *wanted = golden_read(stream);
	(void)fclose(stream);
	for (; written[same] != '\0' && written[same] == wanted[same]; same++) {
		if (written[same] == '\n') {
			line++;
			start = same + 1;
		}
	}
	if (strcmp(written, wanted) != 0)
		fail_msg("%s:%zu differs\nwanted: %.*s\ngot:    %.*s\nmake golden writes it anew", path, line,
		         (int)strcspn(wanted + start, "\n"), wanted + start, (int)strcspn(written + start, "\n"),
		         written + start);
	assert_true(same > 100);
}

#endif
