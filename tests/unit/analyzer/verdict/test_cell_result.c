/*
 * test_cell_result.c - which cells end with a value that IPython keeps?
 */
#include "test.h"

#include "verdict/cell_result.h"

static const struct {
	const char *text;
	uint32_t line;
	bool is_shown;
} cells[] = {
	{ "table()", 1, true },
	{ "x = 1\ntable(x, y=2)", 2, true },
	{ "table()\n\n", 1, true },
	{ "table() # = a remark;", 1, true },
	{ "f('=')[a == b]", 1, true },
	{ "x == y", 1, true },
	{ "'it''s = '", 1, true },
	{ "data", 1, true },
	{ "iffy()", 1, true },
	{ "(1, 2)", 1, true },
	{ "await load()", 1, false }, // left alone: may be None as often
	{ "table();", 1, false },
	{ "table() ; # no", 1, false },
	{ "x = table()", 1, false },
	{ "x += table()", 1, false },
	{ "a, b = table()", 1, false },
	{ "for i in range(9): table()", 1, false },
	{ "for i in range(9):\n    table()", 2, false },
	{ "if x:", 1, false },
	{ "print(table())", 1, false },
	{ "%time table()", 1, false },
	{ "!ls", 1, false },
	{ "# nothing", 1, false },
	{ "table()\nx = 1", 1, false }, // not the last line
	{ "table(\n1)", 1, false },
	{ "table(\n1)", 2, false },
	{ "'open", 1, false },
	{ "table()", 2, false },
	{ "", 1, false },
	{ "\n", 1, false },
	{ "table()", 0, true }, // no such line: the first
};

TEST(the_last_expression_is_kept)
{
	for (size_t i = 0; i < ARRAY_LEN(cells); i++) {
		if (cell_result_is_shown(cells[i].text, cells[i].line) != cells[i].is_shown)
			fail_msg("case %zu: %s", i, cells[i].text);
	}
}

/* The outermost cell counts: what it calls may be another cell's. */
TEST(the_outermost_cell_counts)
{
	static const struct model_frame inner = { .file = "cell In[1]", .line = 2, .function = "table" };
	static const struct model_frame outer = { .file = "cell In[9]", .line = 1, .function = "<module>" };
	static const struct model_frame runner = { .file = "/usr/bin/ipython", .line = 7, .function = "<module>" };
	const struct model_frame *const frames[] = { &inner, &outer, &runner };
	struct model_cell texts[] = { { "cell In[1]", "def table():\n    return 1" }, { "cell In[9]", "table()" } };
	struct model model = { .cell_count = 2, .cells = texts };
	struct model_site site = { .frame_count = 3, .frames = frames };

	assert_ptr_equal(cell_result_of(&model, &site), &outer);
	texts[1].text = "x = table()";
	assert_null(cell_result_of(&model, &site));
	texts[1].text = "";
	assert_null(cell_result_of(&model, &site));
	model.cell_count = 1; // its text is not known
	assert_null(cell_result_of(&model, &site));
	site.frame_count = 0;
	assert_null(cell_result_of(&model, &site));
}

TEST(ipython_keeps_results_by_names_of_its_own)
{
	static const struct {
		enum way_step_kind kind;
		const char *name;
		bool is_kept;
	} roots[] = {
		{ WAY_GLOBAL, "_oh", true }, { WAY_GLOBAL, "Out", true },     { WAY_GLOBAL, "_", true },
		{ WAY_GLOBAL, "_12", true }, { WAY_GLOBAL, "_cache", false }, { WAY_GLOBAL, "history", false },
		{ WAY_LOCAL, "_", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(roots); i++) {
		struct way_step step = { .kind = roots[i].kind, .name = roots[i].name };

		if (cell_result_is_kept(&(struct holders_way){ .step_count = 1, .steps = &step }) != roots[i].is_kept)
			fail_msg("root %s", roots[i].name);
	}
	assert_false(cell_result_is_kept(&(struct holders_way){ .step_count = 0 }));
}

RUN_TESTS(NULL, NULL)
