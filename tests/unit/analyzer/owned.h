/*
 * owned.h - what a block of a test has of its own is released where the block ends, as with OWNED (base/memory.h).
 *
 *     OWNED_BY(model) struct model *model = load(builder);
 */
#ifndef OWNED_H
#define OWNED_H

#include "test.h"

#include "analysis/rank.h"
#include "base/memory.h"
#include "capture/capture_reader.h"
#include "diff/diff.h"
#include "gate/baseline.h"
#include "gate/check_compare.h"
#include "gate/config.h"
#include "model/model_load.h"
#include "report/report.h"

#define OWNED_BY(kind) __attribute__((cleanup(release_##kind)))
#define RELEASED(kind, type, release)                      \
	static inline void release_##kind(struct type **owned) \
	{                                                      \
		if (*owned != NULL)                                \
			release(*owned);                               \
	}
RELEASED(model, model, model_free)
RELEASED(report, report, report_free)
RELEASED(ranked, ranked, rank_free)
RELEASED(capture, capture, capture_close)
RELEASED(baseline, baseline, baseline_free)
RELEASED(check, check, check_free)
RELEASED(config, config, config_free)
RELEASED(diff, diff, diff_free)
RELEASED(side, diff_side, diff_side_free)
#undef RELEASED

/* The model of a capture, or of a folder of them; ends the test where it is refused. */
static inline struct model *
loaded(struct model_options options)
{
	struct fail fail = { .text = "" };
	struct model *model = model_load(&options, &fail);

	if (model == NULL)
		fail_msg("refused: %s", fail.text);
	return model;
}

#endif
