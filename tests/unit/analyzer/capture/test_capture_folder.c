/*
 * test_capture_folder.c - which files does a CAPTURE argument mean, and which processes are in them?
 */
#include "test.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/text_clean.h"
#include "capture/capture_folder.h"
#include "capture_builder.h"
#include "scratch.h"
#include "owned.h"

static struct kmem_header *
header_of(unsigned char *file)
{
	return (struct kmem_header *)(void *)file;
}

TEST(wrong_paths_have_their_exit_codes)
{
	char text[256];
	struct fail fail;
	struct model_options options = { .capture = text };

	(void)snprintf(text, sizeof(text), "%s/missing.kmem", scratch_folder);
	assert_null(model_load(&options, &fail));
	assert_int_equal(fail.code, EXIT_USAGE);

	(void)snprintf(text, sizeof(text), "%s/empty", scratch_folder);
	assert_int_equal(mkdir(text, 0700), 0);
	assert_null(model_load(&options, &fail));
	assert_int_equal(fail.code, EXIT_USAGE); // as of one that is not there
	assert_non_null(strstr(fail.text, "contains no captures (*.kmem): record one"));

	const char *inner = TEXT(264, "%s/run", text);
	assert_int_equal(mkdir(inner, 0700), 0);
	const char *file = TEXT(280, "%s/a.kmem", inner);
	capture_builder_write(file, "", 0);
	assert_null(model_load(&options, &fail));
	assert_int_equal(fail.code, EXIT_USAGE);
	assert_non_null(strstr(fail.text, "but 1 folder in it does: give one of them, the newest is "));
	assert_non_null(strstr(fail.text, inner));
	assert_int_equal(unlink(file) | rmdir(inner), 0);

	(void)snprintf(text, sizeof(text), "%s/pipe.kmem", scratch_folder);
	assert_int_equal(mkfifo(text, 0600), 0);
	assert_null(model_load(&options, &fail));
	assert_int_equal(fail.code, EXIT_CAPTURE);
	assert_non_null(strstr(fail.text, "not a regular file"));
	assert_int_equal(unlink(text), 0);
}

TEST(a_file_of_somebody_else_is_told)
{
	struct model_options options = { .capture = scratch_file };
	struct fail fail = { .text = "" };
	size_t bytes;
	unsigned char *file = capture_builder_example(KMEM_STATE_RUNNING, &bytes);
	uid_t before = geteuid();

	capture_builder_write(scratch_file, file, bytes);
	free(file);
	assert_int_equal(chmod(scratch_file, 0), 0);
	assert_int_equal(chmod(scratch_folder, 0755), 0);
	if (before == 0)
		assert_int_equal(seteuid(65534), 0); // root may read anything
	struct model *model = model_load(&options, &fail);
	assert_int_equal(seteuid(before), 0);
	assert_null(model);
	assert_int_equal(fail.code, EXIT_CAPTURE);
	assert_non_null(strstr(fail.text, "Permission denied"));
	assert_int_equal(unlink(scratch_file), 0);
}

static void
write_process(const char *name, const char *session, uint32_t pid, uint32_t parent, uint64_t start_ns, bool is_first)
{
	size_t bytes;
	OWNED unsigned char *file = capture_builder_example(KMEM_STATE_RUNNING, &bytes);
	struct kmem_identity *identity = &header_of(file)->identity;

	(void)snprintf(identity->session, sizeof(identity->session), "%s", session);
	identity->pid = pid;
	identity->parent_pid = parent;
	identity->start_realtime_ns = start_ns;
	identity->is_first = is_first;
	capture_builder_reseal(file, bytes);
	const char *text = TEXT(256, "%s/%s", scratch_folder, name);
	capture_builder_write(text, file, bytes);
}

TEST(a_folder_means_its_newest_session)
{
	(void)unlink(scratch_file);
	write_process("a.kmem", "old", 10, 1, 100, true);
	write_process("b.kmem", "new", 21, 20, 900, false);
	write_process("c.kmem", "new", 20, 1, 500, true);
	write_process("d.kmem", "new", 20, 19, 1000, false); // the pid was used again: not the parent of 21
	(void)snprintf(scratch_file, sizeof(scratch_file), "%s/e.kmem", scratch_folder);
	capture_builder_write(scratch_file, "nonsense", 8);

	OWNED_BY(model) struct model *model = loaded((struct model_options){ .capture = scratch_folder });
	assert_string_equal(model->session, "new");
	assert_int_equal(model->session_count, 2);
	assert_string_equal(model->argument, scratch_folder);
	assert_int_equal(model->process_count, 3);
	assert_int_equal(model->processes[0].identity->pid, 20);
	assert_int_equal(model->processes[0].parent, -1);
	assert_int_equal(model->processes[1].identity->pid, 21);
	assert_int_equal(model->processes[1].parent, 0);
	assert_int_equal(model->processes[2].parent, -1);
	assert_int_equal(model->damage_count, 1);
	assert_non_null(strstr(model->damages[0], "e.kmem"));

	/* The same stacks in three processes are one site each, and their figures add up. */
	assert_int_equal(model->site_count, 6);
	assert_int_equal(model->sites[0].process_count, 3);
	assert_int_equal(model->sites[0].live_bytes, 3 * 4000);
	assert_int_equal(model->sites[0].peak_bytes, 3 * 4000);
	assert_int_equal(model->domains[0].live_bytes, 3 * 4200);
	assert_int_equal(model->failed_count, 3);
}

TEST(every_session_of_a_folder_is_a_run)
{
	struct session_list sessions;
	struct capture_list list;
	struct fail fail;

	// as the test before it left the folder
	assert_true(capture_folder_sessions(scratch_folder, false, &sessions, &fail));
	assert_int_equal(sessions.count, 2);
	assert_string_equal(sessions.names[0], "old");
	assert_string_equal(sessions.names[1], "new");
	assert_true(capture_folder_list(scratch_folder, sessions.names[0], false, &list, &fail));
	assert_int_equal(list.count, 1);
	assert_non_null(strstr(list.paths[0], "a.kmem"));
	capture_list_free(&list);
	session_list_free(&sessions);
	assert_false(capture_folder_list(scratch_folder, "gone", false, &list, &fail));
	assert_int_equal(fail.code, EXIT_CAPTURE);

	(void)snprintf(scratch_file, sizeof(scratch_file), "%s/a.kmem", scratch_folder);
	assert_true(capture_folder_sessions(scratch_file, false, &sessions, &fail));
	assert_int_equal(sessions.count, 1);
	assert_null(sessions.names[0]);
	session_list_free(&sessions);
	assert_false(capture_folder_sessions("/nonexistent", false, &sessions, &fail));
	assert_int_equal(fail.code, EXIT_USAGE);
	session_list_free(&sessions);
}

TEST(what_another_user_says_of_starts_and_first_processes_is_not_believed)
{
	static const char *const planted[] = { "planted/c.kmem", "planted/d.kmem" };
	char folder[256];
	char path[280];
	struct model_options options = { .capture = folder };
	struct session_list sessions;
	struct fail fail;

	if (geteuid() != 0) {
		print_message("needs root to give files to another user\n");
		skip();
	}
	(void)snprintf(folder, sizeof(folder), "%s/planted", scratch_folder);
	assert_int_equal(mkdir(folder, 0700), 0);
	write_process("planted/a.kmem", "own", 10, 1, 100, true);
	write_process("planted/b.kmem", "own", 11, 10, 200, false);
	write_process(planted[0], "own", 66, 1, 5000, true);
	write_process(planted[1], "future", 77, 1, 9000, true);
	for (size_t i = 0; i < ARRAY_LEN(planted); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", scratch_folder, planted[i]);
		assert_int_equal(chown(path, 65534, 65534), 0);
	}
	struct model *model = model_load(&options, &fail);
	assert_non_null(model);
	assert_string_equal(model->session, "own");
	assert_int_equal(model->process_count, 3);
	assert_int_equal(model->processes[0].identity->pid, 10);
	assert_true(model->processes[0].is_trusted);
	assert_int_equal(model->capture_damage_count, 0);
	assert_non_null(strstr(model->distrusted, "1 of 3 captures come from other users (c.kmem from user "));
	model_free(model);
	assert_true(capture_folder_sessions(folder, false, &sessions, &fail));
	assert_int_equal(sessions.count, 2);
	assert_string_equal(sessions.names[1], "own");
	session_list_free(&sessions);
	for (size_t i = 0; i < 4; i++) {
		(void)snprintf(path, sizeof(path), "%s/%c.kmem", folder, (char)('a' + i));
		assert_int_equal(unlink(path), 0);
	}
	assert_int_equal(rmdir(folder), 0);
}

TEST(captures_below_the_folder_are_found)
{
	struct capture_list list;
	struct fail fail;

	const char *outer = TEXT(160, "%s/project", scratch_folder);
	const char *inner = TEXT(192, "%s/" CAPTURE_FOLDER_DEFAULT, outer);
	assert_int_equal(mkdir(outer, 0700), 0);
	assert_int_equal(mkdir(inner, 0700), 0);
	write_process("project/" CAPTURE_FOLDER_DEFAULT "/x.kmem", "s", 30, 1, 100, true);
	assert_true(capture_folder_list(outer, NULL, false, &list, &fail));
	assert_int_equal(list.count, 1);
	assert_non_null(strstr(list.paths[0], "/project/" CAPTURE_FOLDER_DEFAULT "/x.kmem"));
	capture_list_free(&list);
	write_process("project/y.kmem", "t", 31, 1, 50, true); // its own captures come first
	assert_true(capture_folder_list(outer, NULL, false, &list, &fail));
	assert_int_equal(list.count, 1);
	assert_non_null(strstr(list.paths[0], "/project/y.kmem"));
	capture_list_free(&list);
}

TEST(texts_are_cleaned)
{
	static const struct {
		const char *text, *shown;
	} cases[] = {
		{ "plain", "plain" },
		{ "na\xc3\xafve \xe2\x82\xac \xf0\x9f\x90\x8d", "na\xc3\xafve \xe2\x82\xac \xf0\x9f\x90\x8d" },
		{ "a\nb\tc\033[31m\x7f", "a?b?c?[31m?" },
		{ "\xc0\xaf\xed\xa0\x80\xf4\x90\x80\x80", "?????????" }, // overlong, surrogate, too large
		{ "cut \xe2\x82", "cut ??" },
		{ "c1 \xc2\x9b", "c1 ??" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char text[64];

		strcpy(text, cases[i].text);
		text_clean(text, strlen(text));
		assert_string_equal(text, cases[i].shown);
	}
}

RUN_TESTS_IN(scratch_make, scratch_remove)
