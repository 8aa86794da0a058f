/*
 * judged.h - a model whose figures are final: what rankings, verdict and gate take.
 *
 * model_judge() makes one (judge.h). Nothing writes the model afterwards.
 */
#ifndef JUDGED_H
#define JUDGED_H

#include "model/model.h"

struct judged_model {
	const struct model *model;
};

#endif
