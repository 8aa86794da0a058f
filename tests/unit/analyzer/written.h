/*
 * written.h - what does a part of the page, or the JSON, of a model read?
 */
#ifndef WRITTEN_H
#define WRITTEN_H

#include "test.h"

#include <stdio.h>

#include "analysis/rank.h"
#include "model/model.h"
#include "report/render.h"
#include "report/report.h"

/* What `write` writes of a report on the model. For free(). */
static inline char *
written(struct model *model, const struct ranking *ranking, const struct report_options *rows,
        void (*write)(const struct report *report, FILE *stream))
{
	struct fail fail = { .text = "" };
	struct report *report = report_build(model, ranking, rows, &fail);
	char *text = NULL;
	size_t length = 0;
	FILE *stream = open_memstream(&text, &length);

	if (report == NULL)
		fail_msg("no report: %s", fail.text);
	write(report, stream);
	assert_int_equal(fclose(stream), 0);
	report_free(report);
	return text;
}

/* For `write`: the table of the ranking. */
static inline void
written_lines(const struct report *report, FILE *stream)
{
	const struct render_options look = { .scope = RENDER_ALL };

	render_text_lines(report, &look, stream);
}

#endif
