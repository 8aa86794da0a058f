/*
 * test_output.c - does a file appear whole or not at all, also when the command is ended while it writes?
 */
#include "test.h"

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/output.h"
#include "scratch.h"

static const char *
out_path(void)
{
	static char path[128];

	(void)snprintf(path, sizeof(path), "%s/out", scratch_folder);
	return path;
}

/* What is in the folder: "", "out", or a file beside it. */
static const char *
only_file(void)
{
	static char name[300];
	DIR *folder = opendir(scratch_folder);
	struct dirent *entry;
	unsigned count = 0;

	assert_non_null(folder);
	name[0] = '\0';
	while ((entry = readdir(folder)) != NULL) {
		if (entry->d_name[0] == '.')
			continue;
		(void)snprintf(name, sizeof(name), "%s", entry->d_name);
		count++;
	}
	(void)closedir(folder);
	assert_true(count <= 1);
	return name;
}

static const char *
content(void)
{
	static char text[64];
	FILE *stream = fopen(out_path(), "r");
	size_t length = stream != NULL ? fread(text, 1, sizeof(text) - 1, stream) : 0;

	text[length] = '\0';
	if (stream != NULL)
		(void)fclose(stream);
	return text;
}

static struct output_file *
begin(const char *text)
{
	struct fail fail;

	struct output_file *file = output_open(out_path(), OUTPUT_OF_ALL, &fail);
	assert_non_null(file);
	assert_true(fputs(text, output_stream(file)) >= 0);
	assert_int_equal(fflush(output_stream(file)), 0);
	return file;
}

/* These come first: signals are watched once in a process, and their children have to begin. */

/* Whatever ends the command, nothing half-written is left, and it ends as without us. */
TEST(a_signal_takes_away_what_is_not_whole)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };

	for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
		pid_t child = fork();
		int status;

		if (child == 0) {
			const struct rlimit none = { 0, 0 };

			(void)setrlimit(RLIMIT_CORE, &none);
			(void)signal(signals[i], SIG_DFL);
			(void)begin("half");
			(void)raise(signals[i]);
			_exit(0);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), signals[i]);
		assert_string_equal(only_file(), "");
	}
}

/* Under nohup SIGHUP is ignored: it stays so. */
TEST(an_ignored_signal_stays_ignored)
{
	pid_t child = fork();
	int status;

	if (child == 0) {
		struct fail fail;

		(void)signal(SIGHUP, SIG_IGN);
		struct output_file *file = begin("whole");

		(void)raise(SIGHUP);
		_exit(output_close(file, &fail) ? 7 : 8);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 7);
	assert_string_equal(content(), "whole");
	assert_int_equal(unlink(out_path()), 0);
}

TEST(a_file_appears_whole_or_not_at_all)
{
	struct fail fail;
	struct output_file *file = begin("first");

	assert_string_equal(content(), ""); // it is not there yet
	assert_true(output_close(file, &fail));
	assert_string_equal(content(), "first");
	output_drop(begin("second"));
	assert_string_equal(content(), "first");
	assert_string_equal(only_file(), "out");
	assert_int_equal(unlink(out_path()), 0);
}

/* What others may not read they may not read afterwards. */
TEST(a_file_that_is_replaced_keeps_its_mode)
{
	static const mode_t modes[] = { 0600, 0640, 0666, 0755 };
	const mode_t mask = umask(022);
	struct fail fail;
	struct stat there;

	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		assert_true(output_close(begin("first"), &fail));
		assert_int_equal(chmod(out_path(), modes[i]), 0);
		struct output_file *file = begin("second");

		assert_true(output_close(file, &fail));
		assert_string_equal(content(), "second");
		assert_int_equal(stat(out_path(), &there), 0);
		assert_int_equal(there.st_mode & 07777, modes[i]);
	}
	assert_int_equal(unlink(out_path()), 0);
	assert_true(output_close(begin("new"), &fail));
	assert_int_equal(stat(out_path(), &there), 0);
	assert_int_equal(there.st_mode & 07777, 0644);
	assert_int_equal(unlink(out_path()), 0);
	(void)umask(mask);
}

RUN_TESTS_IN(scratch_make, scratch_remove)
