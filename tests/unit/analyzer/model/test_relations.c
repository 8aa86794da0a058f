/*
 * test_relations.c - is a line that a thread was given shown as what it is?
 */

#include <signal.h>

#include "hand_model.h"
#include "load_built.h"
#include "model/model_build.h"
#include "base/document.h"
#include "report/render.h"
#include "report/report.h"

static char *json;
static char *text;
static struct model *model;
static struct ranked *ranked;

/* The same line four times: of a stack's own, while, started by, and of an import. */
static int
load(void **state)
{
	static const uint8_t table[] = { 0xf8 };
	struct capture_builder *builder = capture_builder_new();
	uint32_t step = capture_builder_code(builder, "/srv/u/train.py", "step", 41, 0, table, sizeof(table));
	uint32_t main_code = capture_builder_code(builder, "/srv/u/train.py", "main", 7, 0, table, sizeof(table));
	uint64_t line = capture_builder_python_frame(step, 0);
	uint64_t outer = capture_builder_python_frame(main_code, 0);
	const uint64_t native = 0x7f0000001234;
	const struct {
		uint64_t frames[3];
		uint32_t count;
		uint16_t flags;
	} stacks[] = {
		{ { native, line, outer }, 3, KMEM_STACK_EVALUATOR_CUT },
		{ { native, line, outer }, 3, KMEM_STACK_WHILE | KMEM_STACK_STARTED_BY },
		{ { native, line, outer }, 3, KMEM_STACK_STARTED_BY },
		{ { native, line }, 2, KMEM_STACK_WHILE | KMEM_STACK_IMPORT_CUT },
	};
	struct render_options as_text = { .heading = NULL };
	struct report_options all = { .top = UINT64_MAX, .frames_bytes = UINT64_MAX };
	struct document document = { .count = 0 };
	struct fail fail = { .text = "" };
	size_t bytes;

	if (scratch_make(state) != 0)
		return -1;
	for (unsigned i = 0; i < 4; i++)
		capture_builder_site(builder, KMEM_DOMAIN_HEAP,
		                     capture_builder_stack(builder, stacks[i].frames, stacks[i].count, stacks[i].flags),
		                     1000000 - i, 10, 0, 0);
	model = load_built(builder, KMEM_STATE_CLEAN_EXIT);
	struct report *report = report_build(model, &rank_sites, &all, &fail);
	assert_non_null(report);
	FILE *stream = open_memstream(&json, &bytes);
	render_json(report, stream);
	fclose(stream);
	stream = open_memstream(&text, &bytes);
	render_lines(report, &as_text, &document);
	document_put(&document, stream);
	fclose(stream);
	report_free(report);
	ranked = rank_run((struct finished_model){ model }, &rank_sites, NULL);
	return 0;
}

static int
unload(void **state)
{
	rank_free(ranked);
	model_free(model);
	free(json);
	free(text);
	return scratch_remove(state);
}

/* Own Python frames of libraries: what was given begins at the user's first frame. */
TEST(behind_frames_of_libraries_stand_the_given_ones)
{
	struct model_frame native = { .kind = MODEL_FRAME_NATIVE };
	struct model_frame library = { .kind = MODEL_FRAME_PYTHON, .is_library = true };
	struct model_frame line = { .kind = MODEL_FRAME_PYTHON, .is_user = true };
	const struct model_frame *frames[] = { &native, &library, &library, &line, &library, &line };
	static const struct {
		uint16_t flags;
		enum model_relation first;
	} cases[] = {
		{ KMEM_STACK_WHILE | KMEM_STACK_STARTED_BY, MODEL_RELATION_WHILE },
		{ KMEM_STACK_WHILE, MODEL_RELATION_WHILE },
		{ KMEM_STACK_STARTED_BY, MODEL_RELATION_STARTED_BY },
	};

	for (unsigned i = 0; i < 3; i++) {
		struct model_site site = { .frames = frames, .frame_count = 6 };

		site.stack_flags = (uint16_t)(cases[i].flags | KMEM_STACK_LIBRARY_ONLY);
		for (uint32_t k = 0; k < 3; k++)
			assert_int_equal(model_relation_of(&site, k), MODEL_RELATION_OWN);
		assert_int_equal(model_relation_of(&site, 3), cases[i].first);
		assert_int_equal(model_relation_of(&site, 4), MODEL_RELATION_STARTED_BY);
		assert_int_equal(model_relation_of(&site, 5), MODEL_RELATION_STARTED_BY);
	}
}

static unsigned
times(const char *in, const char *what)
{
	unsigned count = 0;

	for (; (in = strstr(in, what)) != NULL; in += strlen(what))
		count++;
	return count;
}

TEST(each_relation_is_a_line_of_its_own)
{
	unsigned seen[3] = { 0 };

	assert_int_equal(ranked->line_count, 4); // the import's apart from the other one's
	for (size_t i = 0; i < ranked->site_count; i++) {
		const struct model_site *site = ranked->sites[i];

		assert_string_equal(site->where->function, "step");
		seen[site->where_relation]++;
		assert_int_equal(model_relation_of(site, 0), MODEL_RELATION_OWN); // native
		assert_int_equal(rank_is_import(site), (site->stack_flags & KMEM_STACK_IMPORT_CUT) != 0);
	}
	assert_int_equal(seen[MODEL_RELATION_OWN], 1);
	assert_int_equal(seen[MODEL_RELATION_WHILE], 2);
	assert_int_equal(seen[MODEL_RELATION_STARTED_BY], 1);
}

TEST(behind_the_line_stands_the_creator)
{
	for (size_t i = 0; i < model->site_count; i++) {
		const struct model_site *site = &model->sites[i];

		if (site->where_relation == MODEL_RELATION_WHILE && site->frame_count == 3)
			assert_int_equal(model_relation_of(site, 2), MODEL_RELATION_STARTED_BY);
		if (site->where_relation == MODEL_RELATION_OWN)
			assert_int_equal(model_relation_of(site, 2), MODEL_RELATION_OWN);
	}
}

TEST(both_outputs_say_it)
{
	/* Lines and sites, and the frames of sites. */
	assert_int_equal(times(json, "\"relation\": \"while\""), 2 + 2 + 2);
	assert_int_equal(times(json, "\"relation\": \"started by\""), 1 + 1 + 1 + 2);
	assert_true(times(text, "step [while]") >= 1);
	assert_int_equal(times(text, "step [started by]"), 1);
	assert_int_equal(times(text, "by   train.py:7 main"), 2);
	assert_int_equal(times(text, "from train.py:7 main"), 1);
	assert_int_equal(times(text, "see docs/report.md"), 1);
}

/* JAX: a line gives work to threads, and the next one waits for it. Which of them is at work when the threads allocate is chance. */
TEST(what_threads_did_is_put_to_the_line_that_gave_the_work)
{
	enum { GIVES, WAITS, OWN_GIVES, OWN_WAITS, OTHER_WORK, OTHER_FUNCTION, BEGINS, OWN_BEGINS, LOGS, LOGS_TOO, SITES };
	static const char library[] = "libxla.so";
	struct model_frame native[] = {
		{ .kind = MODEL_FRAME_NATIVE, .function = "run", .module = library },
		{ .kind = MODEL_FRAME_NATIVE, .module = library },
		{ .kind = MODEL_FRAME_NATIVE, .module = "liblogger.so" }, // nobody gives it work
	};
	struct model_frame at[] = {
		{ .kind = MODEL_FRAME_PYTHON, .function = "main", .file = "/train.py", .line = 20, .is_user = true },
		{ .kind = MODEL_FRAME_PYTHON, .function = "main", .file = "/train.py", .line = 21, .is_user = true },
		{ .kind = MODEL_FRAME_PYTHON, .function = "test", .file = "/train.py", .line = 31, .is_user = true },
		{ .kind = MODEL_FRAME_PYTHON, .function = "main", .file = "/train.py", .line = 16, .is_user = true },
	};
	const struct model_frame *stacks[SITES][2] = {
		{ &native[0], &at[0] }, { &native[0], &at[1] }, { &native[1], &at[0] }, { &native[1], &at[1] },
		{ &native[1], &at[1] }, { &native[0], &at[2] }, { &native[0], &at[3] }, { &native[1], &at[3] },
		{ &native[2], &at[0] }, { &native[2], &at[1] },
	};
	struct model_site sites[SITES];
	struct text_pool *pool = text_pool_new();

	for (unsigned i = 0; i < SITES; i++) {
		sites[i] = (struct model_site){ .frames = stacks[i], .frame_count = 2, .where = stacks[i][1] };
		sites[i].where_relation = i == OWN_GIVES || i == OWN_WAITS || i == OWN_BEGINS ? MODEL_RELATION_OWN
		                                                                              : MODEL_RELATION_WHILE;
		sites[i].allocated_count = i == OWN_GIVES ? 1000 : i == OWN_WAITS ? 10 : 500;
	}
	sites[BEGINS].allocated_count = 3; // once, with much work of its own
	sites[OWN_BEGINS].allocated_count = 5000;
	model_waiting_settle(sites, SITES, pool);
	assert_ptr_equal(sites[GIVES].where, &at[0]);
	assert_ptr_equal(sites[WAITS].where, &at[0]);
	assert_ptr_equal(sites[WAITS].frames[1], &at[0]);
	assert_ptr_equal(sites[OWN_WAITS].where, &at[1]);
	assert_ptr_equal(sites[OTHER_WORK].where, &at[1]);
	assert_ptr_equal(sites[OTHER_FUNCTION].where, &at[2]);
	assert_ptr_equal(sites[BEGINS].where, &at[3]);
	assert_ptr_equal(sites[LOGS_TOO].where, &at[1]);
	text_pool_free(pool);
}

/* A person who never reads of marks elsewhere is told that this one is no proof. */
TEST(a_verdict_says_what_the_mark_is)
{
	static struct hand_model hand;
	struct verdict verdict;

	for (unsigned relation = MODEL_RELATION_OWN; relation <= MODEL_RELATION_WHILE; relation++) {
		hand_model_make(&hand);
		hand_model_site(&hand, HEAP, 41, 400 * MIB)->where_relation = relation;
		hand_model_waited(&hand, SIGKILL);
		hand_model_decide(&hand, &verdict);
		assert_int_equal(
			strstr(verdict.text,
		           " [while] marks the last line known when threads that ran no line of yours allocated: look "
		           "there, or near it.") != NULL,
			relation == MODEL_RELATION_WHILE);
	}
}

RUN_TESTS_IN(load, unload)
