/*
 * test_model_cells.c - are cells of notebooks named by their numbers, and are runs of one text one site, across kernels?
 */
#include "test.h"

#include <unistd.h>

#include "base/place.h"
#include "capture_builder.h"
#include "scratch.h"
#include "owned.h"

#define KEEP "keep=[]\ndef f(n):\n    keep.append(bytearray(n))\nprint(f.__code__.co_filename, len(In))"
#define KEEP_HASH "1846177606" // as ipykernel 7.4 named it

static unsigned captures;

static struct capture_builder *
begin(uint32_t pid)
{
	struct capture_builder *builder = capture_builder_new();

	capture_builder_header(builder)->identity.pid = pid;
	capture_builder_header(builder)->identity.start_realtime_ns = pid;
	return builder;
}

static void
allocate_at(struct capture_builder *builder, const char *file, const char *function, unsigned line, uint64_t bytes)
{
	uint64_t frame = capture_builder_python_frame(
		capture_builder_code(builder, file, function, line, KMEM_CODE_CELL, NULL, 0), 0);

	capture_builder_site(builder, KMEM_DOMAIN_HEAP, capture_builder_stack(builder, &frame, 1, 0), bytes, 1, 0, 0);
}

static void
allocate(struct capture_builder *builder, const char *file, uint64_t bytes)
{
	allocate_at(builder, file, "<module>", 1, bytes);
}

static void
end(struct capture_builder *builder)
{
	size_t bytes;
	OWNED unsigned char *file = capture_builder_finish(builder, KMEM_STATE_CLEAN_EXIT, &bytes);

	const char *path = TEXT(256, "%s/%u.kmem", scratch_folder, captures++);
	capture_builder_write(path, file, bytes);
	capture_builder_free(builder);
}

static struct model *
load(void)
{
	const struct model_options options = { .capture = scratch_folder };
	struct fail fail = { .text = "" };
	struct model *model = model_load(&options, &fail);

	if (model == NULL)
		fail_msg("%s", fail.text);
	while (captures > 0) {
		const char *path = TEXT(256, "%s/%u.kmem", scratch_folder, --captures);
		(void)unlink(path);
	}
	return model;
}

static const struct model_site *
site_of(const struct model *model, const char *file)
{
	for (size_t i = 0; i < model->site_count; i++) {
		if (strcmp(model->sites[i].where->file, file) == 0)
			return &model->sites[i];
	}
	fail_msg("no site in %s", file);
	return NULL;
}

static const char *
text_of(const struct model *model, const char *file)
{
	for (size_t i = 0; i < model->cell_count; i++) {
		if (strcmp(model->cells[i].file, file) == 0)
			return model->cells[i].text;
	}
	return NULL;
}

TEST(runs_of_one_text_are_one_cell_across_kernels)
{
	struct capture_builder *builder = begin(100);
	char text[PLACE_TEXT_BYTES];

	allocate(builder, "/tmp/ipykernel_100/" KEEP_HASH ".py", 1000);
	capture_builder_cell(builder, 2, KEEP, "", 0);
	capture_builder_cell(builder, 7, KEEP, "", 0);
	end(builder);
	builder = begin(200);
	allocate(builder, "/var/tmp/ipykernel_200/" KEEP_HASH ".py", 500);
	capture_builder_cell(builder, 3, KEEP, "", 0);
	end(builder);
	OWNED_BY(model) struct model *model = load();
	assert_int_equal(model->site_count, 1);
	assert_int_equal(model->sites[0].live_bytes, 1500);
	assert_int_equal(model->sites[0].process_count, 2);
	assert_string_equal(text_of(model, "cell In[7]"), KEEP);
	assert_true(model->sites[0].where->is_user);
	assert_string_equal(place_text(site_of(model, "cell In[7]")->where->file, 3, "<module>", "", 0, text),
	                    "cell In[7] line 3");
	assert_string_equal(place_text("cell In[7]", 3, "f", "", 0, text), "cell In[7] line 3 f");
	assert_string_equal(place_text("cell In[7]", 3, "<cell line: 1>", "", 0, text), "cell In[7] line 3");
}

TEST(different_cells_of_one_number_stay_apart)
{
	struct capture_builder *builder = begin(100);

	allocate(builder, "/tmp/ipykernel_100/" KEEP_HASH ".py", 1000);
	capture_builder_cell(builder, 2, KEEP, "", 0);
	end(builder);
	builder = begin(200);
	allocate(builder, "/tmp/ipykernel_200/1379592348.py", 500);
	capture_builder_cell(builder, 2, "import os; os.getpid()", "", 0);
	end(builder);
	OWNED_BY(model) struct model *model = load();
	assert_int_equal(model->site_count, 2);
	assert_string_not_equal(model->sites[0].where->file, model->sites[1].where->file);
}

#define TONE "@step\nclass Tone:\n    def __init__(self): self.table = make(GAMMA)\n"

TEST(a_line_of_a_cell_that_is_changed_a_little_and_run_again_is_one_line)
{
	static const char *const texts[] = {
		"GAMMA = 1\n" TONE, "GAMMA = 2\n" TONE "\n", "import os\n\nGAMMA = 2\n" TONE,
		"GAMMA = 2\nimages = load(9)\nimages = images[::GAMMA]\nprint(images)\nshow(images)"
	};
	struct capture_builder *builder = begin(100);

	for (uint32_t i = 0; i < 4; i++) {
		const char *file = TEXT(64, "<ipython-input-%u-%u>", 3 + i, 7 + i);

		allocate_at(builder, file, "Tone.__init__", i == 2 ? 6 : 4, 1000);
		allocate_at(builder, file, "<module>", 1, 10); // another text each time
		capture_builder_cell(builder, 3 + i, texts[i], "", 0);
	}
	end(builder);
	OWNED_BY(model) struct model *model = load();
	const struct model_site *site = site_of(model, "cell In[5]");
	site = site->where->line == 6 ? site : site + 1;
	assert_int_equal(model->site_count, 6);
	assert_int_equal(site->live_bytes, 3000);
	assert_int_equal(site->where->line, 6);
	assert_int_equal(site->where->cell_count, 3);
	assert_string_equal(site->where->module, "cell In[5]");
	assert_int_equal(site_of(model, "cell In[3]")->live_bytes, 10); // its changed line
	assert_int_equal(site_of(model, "cell In[6]")->where->cell_count, 0);
}

TEST(a_text_is_matched_without_the_newlines_that_ipython_drops)
{
	/* "import os; os.getpid()" with one and with two newlines behind it; what was compiled is what lines are counted in */
	static const char *const files[] = { "/tmp/ipykernel_1/1745320667.py", "/tmp/ipykernel_1/3989835012.py" };

	for (unsigned i = 0; i < 2; i++) {
		struct capture_builder *builder = begin(100);

		allocate(builder, files[i], 1000);
		capture_builder_cell(builder, 4, "import os; os.getpid()", "compiled", 0);
		end(builder);
		OWNED_BY(model) struct model *model = load();
		assert_string_equal(text_of(model, "cell In[4]"), "compiled");
	}
}

TEST(lines_of_a_cell_magic_are_those_of_the_notebook)
{
	struct capture_builder *builder = begin(100);

	allocate(builder, "/tmp/ipykernel_100/762965178.py", 1000);
	capture_builder_cell(builder, 4, "\n%%kmem\na = 1", "get_ipython().run_cell_magic('kmem', '', 'a = 1\\n')", 0);
	end(builder);
	OWNED_BY(model) struct model *model = load();
	assert_string_equal(text_of(model, "cell In[4]"), "%%kmem\na = 1");
}

TEST(names_with_a_number_need_nothing_else)
{
	struct capture_builder *builder = begin(100);

	allocate(builder, "<ipython-input-5-0123456789ab>", 1000);
	allocate(builder, "<ipython-input-9-0123456789ab>", 500); // again
	allocate(builder, "/tmp/ipython-input-6-77.py", 10);      // Colab
	capture_builder_cell(builder, 9, "a = 1", "", 0);
	capture_builder_cell(builder, 6, "b = 1", "", KMEM_CELL_NO_LINES);
	end(builder);
	builder = begin(200);
	allocate(builder, "<ipython-input-9-ba9876543210>", 1);
	end(builder);
	OWNED_BY(model) struct model *model = load();
	assert_int_equal(model->site_count, 3);
	assert_int_equal(site_of(model, "cell In[9]")->live_bytes, 1500);
	assert_string_equal(text_of(model, "cell In[9]"), "a = 1");
	assert_string_equal(text_of(model, "cell In[6]"), "");
	assert_int_equal(site_of(model, "cell In[9] of 200 (#ba9876543210)")->live_bytes, 1);
}

TEST(an_unknown_number_is_not_made_up)
{
	struct capture_builder *builder = begin(100);
	char text[PLACE_TEXT_BYTES];

	allocate(builder, "/tmp/ipykernel_100/42.py", 1000);
	capture_builder_cell(builder, 1, "something else", "", 0);
	end(builder);
	OWNED_BY(model) struct model *model = load();
	assert_string_equal(place_text(site_of(model, "cell #42")->where->file, 3, "<module>", "", 0, text),
	                    "cell #42 line 3");
	assert_string_equal(text_of(model, "cell #42"), "");
}

TEST(what_only_looks_like_a_cell_is_a_file)
{
	static const char *const files[] = {
		"/srv/me/ipykernel_notes/x.py", "<ipython-input-x-1>", "/tmp/ipython-input-7", "<ipython-input-", "/ipykernel_",
		"/tmp/ipykernel_1.py"
	};
	struct capture_builder *builder = begin(100);

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		allocate(builder, files[i], 1000);
	end(builder);
	OWNED_BY(model) struct model *model = load();
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		assert_int_equal(site_of(model, files[i])->live_bytes, 1000);
	assert_int_equal(model->cell_count, 0);
}

/* What the notebook's extension wrote beside the captures. */
static void
write_texts(const char *lines)
{
	const char *path = TEXT(256, "%s/cells.jsonl", scratch_folder);
	capture_builder_write(path, (const unsigned char *)lines, strlen(lines));
}

static void
remove_texts(void)
{
	const char *path = TEXT(256, "%s/cells.jsonl", scratch_folder);
	(void)unlink(path);
}

TEST(the_extension_knows_what_the_interpreter_did_not_tell)
{
	struct capture_builder *builder = begin(100);

	allocate(builder, "/tmp/ipykernel_100/42.py", 1000);
	allocate(builder, "/tmp/ipykernel_100/" KEEP_HASH ".py", 500);
	capture_builder_cell(builder, 2, KEEP, "", 0);
	end(builder);
	write_texts(
		"{\"file\": \"/tmp/ipykernel_100/42.py\", \"execution_count\": 3, \"text\": \"a = 1\\nb = \\\"\\u00fc\\\"\"}\n"
		"{\"file\": \"/tmp/ipykernel_100/" KEEP_HASH ".py\", \"execution_count\": 9, \"text\": \"another\"}\n"
		"{\"file\": \"/tmp/ipykernel_100/42.py\", \"execution_count\": 5, \"text\": \"\"}\n"
		"{\"file\": \"/tmp/ipykernel_100/42.py\", \"execution_count\": 0, \"text\": \"\"}\n"
		"{\"file\": \"/tmp/ipykernel_100/43.py\", \"execution_count\": 4, \"text\": \"holds nothing\"}\n");
	struct model *model = load();
	assert_int_equal(model->damage_count, 0);
	assert_int_equal(model->cell_count, 2);
	assert_int_equal(site_of(model, "cell In[5]")->live_bytes, 1000);
	assert_string_equal(text_of(model, "cell In[5]"), "a = 1\nb = \"\xc3\xbc\"");
	assert_string_equal(text_of(model, "cell In[2]"), KEEP); // the interpreter's comes first
	model_free(model);
	remove_texts();
}

TEST(what_ran_after_the_guard_is_known)
{
	struct capture_builder *builder = begin(100);

	allocate(builder, "train.py", 1000); // no cell holds anything
	struct kmem_guard *guard = capture_builder_guard(builder, 0);
	guard->passing = (struct kmem_guard_passing){ .monotonic_ns = 5000, .limit_bytes = 1, .number = 1 };
	capture_builder_seal(&guard->record);
	end(builder);
	write_texts(
		"{\"file\": \"/tmp/ipykernel_100/42.py\", \"execution_count\": 3, \"text\": \"load(1000)\", \"began_ns\": 4000}\n"
		"{\"file\": \"/tmp/ipykernel_100/43.py\", \"execution_count\": 4, \"text\": \"1 + 1\", \"began_ns\": 6000}\n"
		"{\"file\": \"/tmp/ipykernel_200/43.py\", \"execution_count\": 9, \"text\": \"of another kernel\", \"began_ns\": 6500}\n"
		"{\"file\": \"/tmp/ipykernel_100/44.py\", \"execution_count\": 5, \"text\": \"%kmem\", \"began_ns\": 7000}\n");
	struct model *model = load();
	const struct model_cells_since *since = &model->processes[0].cells_since_guard;
	assert_int_equal(model->damage_count, 0);
	assert_int_equal(since->count, 2);
	assert_int_equal(since->number, 5);
	assert_int_equal(since->began_ns, 7000);
	assert_string_equal(since->command, "%kmem");
	model_free(model);
	remove_texts();
}

TEST(lines_that_are_no_cells_are_told_and_the_others_read)
{
	struct capture_builder *builder = begin(100);

	allocate(builder, "/tmp/ipykernel_100/42.py", 1000);
	end(builder);
	write_texts("{\"file\": \"/tmp/ipykernel_100/42.py\", \"execution_count\": -1, \"text\": \"x\"}\n"
	            "[]\n\n"
	            "{\"file\": \"/tmp/ipykernel_100/42.py\", \"execution_count\": 3, \"text\": \"a = 1\"}\n"
	            "{\"file\": \"/tmp/ipykernel_100/42.py\", \"exec");
	struct model *model = load();
	assert_string_equal(text_of(model, "cell In[3]"), "a = 1");
	assert_int_equal(model->damage_count, 1);
	assert_non_null(strstr(model->damages[0], "cells.jsonl:1: is not a cell: left out, and 3 further lines"));
	model_free(model);
	remove_texts();
}

RUN_TESTS_IN(scratch_make, scratch_remove)
