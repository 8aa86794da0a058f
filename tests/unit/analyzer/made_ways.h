/*
 * made_ways.h - ways to blocks, for tests: texts that a test does not give are empty.
 *
 *     { HEAD(HELD, 32, "list", 30, "a.py:9 g"), STEPS(ROOT(GLOBAL, "hot", "__main__"), MANY("list", 30), OBJECT("tuple")) }
 */
#ifndef MADE_WAYS_H
#define MADE_WAYS_H

#include "base/memory.h"
#include "base/text_pool.h"
#include "model/model_holders.h"

#define HEAD(kind_, samples_, container_, items_, grown_at_) \
	.kind = HOLDERS_##kind_, .samples = samples_, .container = container_, .items = items_, .grown_at = grown_at_
#define STEPS(...)                               \
	.steps = (struct way_step[]){ __VA_ARGS__ }, \
	.step_count = sizeof((struct way_step[]){ __VA_ARGS__ }) / sizeof(struct way_step)
#define ROOT(kind_, name_, of_)                       \
	{                                                 \
		.kind = WAY_##kind_, .name = name_, .of = of_ \
	}
#define STACK                         \
	{                                 \
		.kind = WAY_STACK, .count = 7 \
	}
#define OBJECT(type, ...)                               \
	{                                                   \
		.kind = WAY_OBJECT, .name = type, ##__VA_ARGS__ \
	}
#define CONTAINER(type, items, ...) OBJECT(type, .count = items, .is_container = true, ##__VA_ARGS__)
#define MANY(type, items) CONTAINER(type, items, .by = WAY_BY_ITEM, .member = "*")

/* Its text is that of its steps; it stays as long as the test. */
static inline struct holders_way
made_way(struct holders_way way)
{
	static struct text_pool *pool;

#define MADE(text) ((text) = (text) != NULL ? (text) : "")
	MADE(way.container);
	MADE(way.grown_at);
	MADE(way.module);
	MADE(way.grown_file);
	MADE(way.uncollected);
	for (size_t i = 0; i < way.step_count; i++) {
		struct way_step *step = &way.steps[i];

		MADE(step->name);
		MADE(step->of);
		MADE(step->member);
		MADE(step->function);
	}
	way.text = "";
	if (way.step_count != 0) {
		OWNED char *text = model_way_words(&way, 0, way.step_count, false);

		pool = pool != NULL ? pool : text_pool_new();
		way.text = text_pool_add_text(pool, text);
	}
	return way;
}

#endif
