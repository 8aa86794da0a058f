/*
 * written.h - what does a part of the page, or the JSON, of a model read?
 */
#ifndef WRITTEN_H
#define WRITTEN_H

#include "test.h"

#include "analysis/rank.h"
#include "base/document.h"
#include "model/model.h"
#include "report/render.h"
#include "report/report.h"

/* What `add` adds of a report on the model, or `write` writes; one of the two is NULL. For free(). */
static inline char *
written_by(struct model *model, const struct ranking *ranking, const struct report_options *rows,
           void (*add)(const struct report *report, struct document *document),
           void (*write)(const struct report *report, FILE *stream))
{
	struct document document = { .count = 0 };
	struct fail fail = { .text = "" };
	struct report *report = report_build(model, ranking, rows, &fail);
	char *text = NULL;
	size_t length = 0;
	FILE *stream = open_memstream(&text, &length);

	if (report == NULL)
		fail_msg("no report: %s", fail.text);
	if (add != NULL)
		add(report, &document);
	else
		write(report, stream);
	document_put(&document, stream);
	assert_int_equal(fclose(stream), 0);
	report_free(report);
	return text;
}

#define written(model, ranking, rows, write) written_by(model, ranking, rows, NULL, write)
#define written_part(model, ranking, rows, add) written_by(model, ranking, rows, add, NULL)

/* For `add`: the table of the ranking. */
static inline void
written_lines(const struct report *report, struct document *document)
{
	const struct render_options look = { .scope = RENDER_ALL };

	render_lines(report, &look, document);
}

#endif
