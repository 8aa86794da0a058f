/*
 * test_model_holders.c - is what a look found read as it was written, whatever stands there?
 */
#include "test.h"

#include "load_built.h"
#include "made_ways.h"

#define HEAD_TEXT "{\"schema\": 1, \"pid\": 7, \"stopped_us\": 12, \"python\": \"\", \"why\": \"\", \"holders\": "
#define LINE(line)                                                                                                                                                                                           \
	"{\"place\": \"a.py:3 f\", \"file\": \"/a.py\", \"line\": " line ", \"function\": \"f\", \"bytes\": 9000,"                                                                                               \
	" \"blocks\": 3, \"is_estimated\": true, \"samples\": 32, \"ways\": ["                                                                                                                                   \
	"{\"kind\": \"held\", \"text\": \"global `x` of module m -> list of 30, grown at a.py:9 g, [*] -> tuple\","                                                                                              \
	" \"steps\": [{\"kind\": \"global\", \"name\": \"x\", \"of\": \"m\"}, {\"kind\": \"object\", \"name\": \"list\", \"count\": 30, \"by\": \"item\","                                                       \
	" \"member\": \"*\", \"is_container\": true}, {\"kind\": \"object\", \"name\": \"tuple\"}], \"samples\": 30, \"container\": \"list\", \"items\": 30, \"grown_at\": \"a.py:9 g\", \"call\": \"python\"}," \
	"{\"kind\": \"stolen\", \"text\": \"\", \"samples\": 1}]}"

static struct holders *
read_text(const char *text)
{
	return model_holders_read(text, strlen(text));
}

static void
release(struct holders *holders)
{
	model_holders_free(holders);
	free(holders);
}

TEST(lines_and_ways_are_read)
{
	struct holders *holders = read_text(HEAD_TEXT "[" LINE("3") "]}");

	assert_non_null(holders);
	assert_int_equal(holders->pid, 7);
	assert_int_equal(holders->stopped_us, 12);
	assert_int_equal(holders->line_count, 1);
	const struct holders_line *line = &holders->lines[0];
	assert_string_equal(line->place, "a.py:3 f");
	assert_true(line->is_estimated && line->bytes == 9000 && line->samples == 32);
	assert_int_equal(line->way_count, 1); // a kind that is none of ours is left out
	assert_ptr_equal(model_holders_way(line), &line->ways[0]);
	assert_int_equal(line->ways[0].call, WAY_CALL_PYTHON);
	assert_int_equal(model_holders_container(&line->ways[0]), 1);

	OWNED char *words = model_way_words(&line->ways[0], 0, 3, false);

	assert_string_equal(words, line->ways[0].text);
	release(holders);
}

/* The text of a place says whether the line was only seen meanwhile. */
TEST(a_container_is_grown_by_the_line_or_elsewhere)
{
	static const struct model_frame frame = { .file = "/w/a.py", .line = 9, .function = "g", .module = "" };
	static const struct {
		const char *grown_at;
		enum model_relation relation;
		bool is_elsewhere;
	} cases[] = {
		{ "a.py:9 g", MODEL_RELATION_OWN, false },
		{ "a.py:10 g", MODEL_RELATION_OWN, true },
		{ "a.py:9 g [while]", MODEL_RELATION_WHILE, false },
		{ "", MODEL_RELATION_OWN, false },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct model_site site = { .where = &frame, .where_relation = cases[i].relation };

		assert_int_equal(
			model_holders_is_grown_elsewhere(&(struct holders_way){ .grown_at = cases[i].grown_at }, &site),
			cases[i].is_elsewhere);
	}
}

TEST(a_look_may_come_too_late)
{
	for (unsigned is_late = 0; is_late < 2; is_late++) {
		OWNED char *look = memory_printed(
			HEAD_TEXT
			"[{\"place\": \"a.py:3 f\", \"samples\": 32, \"ways\": [{\"kind\": \"perhaps\", \"text\": \"\","
			" \"steps\": [{\"kind\": \"stack\", \"count\": 7}, {\"kind\": \"%s\", \"name\": \"list\"}], \"samples\": 30}]}]}",
			is_late ? "released" : "object");
		struct holders *holders = read_text(look);

		assert_int_equal(model_holders_came_late(holders), is_late);
		release(holders);
	}
}

/* Of a look before there were steps, or of one with a step that is none of ours, the text is told. */
TEST(a_way_without_steps_has_its_text)
{
	static const char *const steps[] = { "", "\"steps\": [{\"kind\": \"hearsay\"}], ",
		                                 "\"steps\": [{\"kind\": \"stack\", \"by\": \"magic\"}], " };

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		OWNED char *look = memory_printed(
			HEAD_TEXT "[{\"ways\": [{\"kind\": \"held\", \"text\": \"local `a` of f()\", %s\"samples\": 3}]}]}",
			steps[i]);
		struct holders *holders = read_text(look);
		OWNED char *told = model_way_sentence(&holders->lines[0].ways[0], 5);
		OWNED char *words = model_way_words(&holders->lines[0].ways[0], 0, 1, false);

		assert_string_equal(told, "by local `a` of f()  (3 of 5 samples)");
		assert_string_equal(words, "local `a` of f()");
		assert_false(model_holders_is_local_of(&holders->lines[0].ways[0], "f"));
		release(holders);
	}
}

/* A copy under way has most samples; who keeps the original is what a person looks for. */
TEST(what_was_found_for_sure_comes_before_a_guess_that_ends_with_a_call)
{
	const struct {
		struct holders_way ways[2];
		const char *first;
	} cases[] = {
		{ { { HEAD(PERHAPS, 2, "", 0, ""), STEPS(STACK, OBJECT("ndarray")) },
		    { HEAD(HELD, 1, "", 0, ""), STEPS(ROOT(LOCAL, "a", "f()")) } },
		  "local `a` of f()" },
		{ { { HEAD(PERHAPS, 25, "", 0, ""), STEPS(STACK) },
		    { HEAD(HELD, 7, "", 0, ""), STEPS(ROOT(LOCAL, "a", "f()")) } },
		  "the stack of thread 7" }, // less than a quarter
		{ { { HEAD(PERHAPS, 24, "", 0, ""), STEPS(ROOT(REASON, "global `a`", "")) },
		    { HEAD(HELD, 8, "", 0, ""), STEPS(ROOT(LOCAL, "b", "f()")) } },
		  "global `a`" },
		{ { { HEAD(UNFINISHED, 20, "", 0, ""), STEPS(ROOT(REASON, "no time", "")) },
		    { HEAD(PERHAPS, 12, "", 0, ""), STEPS(STACK) } },
		  "the stack of thread 7" },
		{ { { HEAD(UNFINISHED, 30, "", 0, ""), STEPS(ROOT(REASON, "no time", "")) },
		    { HEAD(HELD, 2, "", 0, ""), STEPS(ROOT(LOCAL, "a", "f()")) } },
		  "no time" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct holders_way ways[] = { made_way(cases[i].ways[0]), made_way(cases[i].ways[1]) };
		struct holders_line line = { .samples = ways[0].samples + ways[1].samples, .way_count = 2, .ways = ways };

		model_holders_put_found_first(&line);
		assert_string_equal(ways[0].text, cases[i].first);
	}
}

TEST(what_is_not_ours_is_none)
{
	static const char *const texts[] = { "",
		                                 "[]",
		                                 "7",
		                                 "{}",
		                                 "{\"schema\": 1}",
		                                 "{\"schema\": 2, \"holders\": []}",
		                                 "{\"schema\": 1, \"holders\": {}}",
		                                 "{\"schema\": 1, \"holders\": [}" };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_null(read_text(texts[i]));
}

/* Members of any type, or none; texts with control characters. */
TEST(strange_contents_do_no_harm)
{
	struct holders *holders = read_text(
		HEAD_TEXT "[7, {}, null, {\"ways\": 3}, {\"ways\": [4, {\"kind\": \"lost\", \"call\": \"?\", \"items\": -5}],"
				  " \"place\": \"a\\u001b[31m\\nb\", \"line\": 1e99}]}");

	assert_non_null(holders);
	assert_int_equal(holders->line_count, 5);
	assert_int_equal(holders->lines[4].way_count, 1);
	assert_int_equal(holders->lines[4].ways[0].items, 0);
	assert_int_equal(model_holders_container(&holders->lines[4].ways[0]), 0);
	assert_string_equal(holders->lines[4].place, "a?[31m?b");
	assert_null(model_holders_way(&holders->lines[0]));
	release(holders);
}

TEST(the_newest_look_at_a_line_counts)
{
	struct model_process processes[3] = { { .path = "" } };
	struct model model = { .process_count = 3, .processes = processes };
	struct model_frame frame = { .file = "/a.py", .function = "f", .line = 3 };

	assert_null(model_holders_of(&model, &frame, DOMAIN_HEAP));
	processes[0].holders = read_text(HEAD_TEXT "[" LINE("3") "]}");
	processes[0].holders->monotonic_ns = 5;
	processes[1].holders = read_text(HEAD_TEXT "[" LINE("4") "," LINE("3") "]}");
	processes[1].holders->monotonic_ns = 4;
	assert_ptr_equal(model_holders_of(&model, &frame, DOMAIN_PYTHON_OBJECT), &processes[0].holders->lines[0]);
	assert_null(model_holders_of(&model, &frame, DOMAIN_HEAP)); // these are small objects
	processes[0].holders->lines[0].ways[0].step_count = 0;      // of a look that took both together
	assert_ptr_equal(model_holders_of(&model, &frame, DOMAIN_HEAP), &processes[0].holders->lines[0]);
	processes[1].holders->monotonic_ns = 6;
	assert_ptr_equal(model_holders_of(&model, &frame, DOMAIN_PYTHON_OBJECT), &processes[1].holders->lines[1]);
	assert_null(model_holders_of(&model, &frame, DOMAIN_MMAP)); // nobody looked at mappings
	processes[1].holders->lines[0].line = 3;                    // the same line's blocks of the heap
	processes[1].holders->lines[0].is_estimated = false;
	assert_ptr_equal(model_holders_of(&model, &frame, DOMAIN_HEAP), &processes[1].holders->lines[0]);
	assert_ptr_equal(model_holders_of(&model, &frame, DOMAIN_PYTHON_OBJECT), &processes[1].holders->lines[1]);
	frame.line = 5;
	assert_null(model_holders_of(&model, &frame, DOMAIN_HEAP));
	assert_null(model_holders_of(&model, NULL, DOMAIN_HEAP));
	release(processes[0].holders);
	release(processes[1].holders);
}

/* In a capture: a text that this version does not understand is told. */
TEST(a_look_of_another_version_is_told)
{
	struct capture_builder *builder = capture_builder_new();

	capture_builder_holders(builder, 0, 2, "{\"schema\": 9, \"holders\": []}");
	struct model *model = load_built(builder, KMEM_STATE_CLEAN_EXIT);
	assert_null(model->processes[0].holders);
	assert_true(is_told(model, "section \"holders\": the newest look is not written as this version writes it"));
	model_free(model);

	builder = capture_builder_new();
	capture_builder_holders(builder, 0, 2, HEAD_TEXT "[" LINE("3") "]}");
	model = load_built(builder, KMEM_STATE_CLEAN_EXIT);
	assert_int_equal(model->processes[0].holders->line_count, 1);
	assert_int_equal(model->processes[0].holders->sequence, 2);
	assert_int_equal(model->damage_count, 0);
	model_free(model);
}

RUN_TESTS_IN(scratch_make, scratch_remove)
