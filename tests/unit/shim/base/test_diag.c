/*
 * test_diag.c - is a message one whole line on stderr, and does the program notice nothing of it?
 */
#include "unit.h"

#include <fcntl.h>
#include <errno.h>
#include <signal.h>

TEST(formats_agree_with_printf)
{
	char ours[256];
	char theirs[256];
	size_t length;

#define AGREES(...)                                            \
	do {                                                       \
		length = diag_format(ours, sizeof(ours), __VA_ARGS__); \
		snprintf(theirs, sizeof(theirs), __VA_ARGS__);         \
		assert_string_equal(ours, theirs);                     \
		assert_int_equal(length, strlen(theirs));              \
	} while (0)
	AGREES("plain");
	AGREES("%s|%s", "", "text");
	AGREES("%d %d %d", 0, INT32_MAX, INT32_MIN);
	AGREES("%ld %ld", INT64_MAX, INT64_MIN);
	AGREES("%u %lu", UINT32_MAX, UINT64_MAX);
	AGREES("%x %lx", 0xbeefu, UINT64_MAX);
	AGREES("%zu%%", (size_t)77);
	static char *volatile nothing; // hidden from the compiler's own check
	assert_int_equal(diag_format(ours, sizeof(ours), "%s", nothing), 6);
	assert_string_equal(ours, "(null)");
}

TEST(what_does_not_fit_is_cut_and_terminated)
{
	static const struct {
		size_t size;
		const char *wanted;
	} cases[] = { { 1, "" }, { 2, "a" }, { 6, "abc12" }, { 7, "abc123" }, { 8, "abc123" } };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char buffer[16];

		memset(buffer, 'x', sizeof(buffer));
		assert_int_equal(diag_format(buffer, cases[i].size, "abc%d", 123), strlen(cases[i].wanted));
		assert_string_equal(buffer, cases[i].wanted);
		assert_int_equal(buffer[cases[i].size], 'x');
	}
}

static int
speaks(void *level)
{
	diag_level = *(enum diag_level *)level;
	errno = ERANGE;
	diag_warn("%s: a warning", "here");
	diag_debug("a detail");
	CHECK_IN_CHILD(errno == ERANGE);
	return 0;
}

TEST(levels_decide_what_is_said)
{
	static const char *const wanted[] = {
		[DIAG_QUIET] = "",
		[DIAG_WARN] = "kmemshim: here: a warning\n",
		[DIAG_DEBUG] = "kmemshim: here: a warning\nkmemshim: a detail\n",
	};
	char text[256];

	for (enum diag_level level = DIAG_QUIET; level <= DIAG_DEBUG; level++) {
		assert_int_equal(in_child_telling(speaks, &level, text, sizeof(text)), 0);
		assert_string_equal(text, wanted[level]);
	}
}

static int
says_much(void *unused)
{
	static char much[5000];

	memset(much, 'm', sizeof(much) - 1);
	diag_warn("%s", much);
	diag_warn("two\nlines\x1b[31m");
	return 0;
}

TEST(a_message_is_always_one_line)
{
	char text[8192];

	assert_int_equal(in_child_telling(says_much, NULL, text, sizeof(text)), 0);
	char *end = strchr(text, '\n');
	assert_non_null(end);
	assert_int_equal(end + 1 - text, 1024);
	assert_string_equal(end + 1, "kmemshim: two?lines?[31m\n");
}

/* The program closed stderr, and a file of its own got the number. */
static int
speaks_into_a_file_of_the_program(void *context)
{
	char path[] = "/tmp/kmemshim-diag-XXXXXX";
	int fd = mkstemp(path);

	CHECK_IN_CHILD(fd >= 0);
	unlink(path);
	dup2(fd, STDERR_FILENO); // after diag_start()
	diag_warn("into your data");
	return lseek(fd, 0, SEEK_END) == 0 ? 0 : 4;
}

/* Nobody empties the pipe. */
static int
speaks_into_a_full_pipe(void *context)
{
	int ends[2];
	char page[4096] = { 0 };

	CHECK_IN_CHILD(pipe(ends) == 0);
	fcntl(ends[1], F_SETFL, O_NONBLOCK);
	while (write(ends[1], page, sizeof(page)) > 0)
		;
	fcntl(ends[1], F_SETFL, 0);
	dup2(ends[1], STDERR_FILENO);
	diag_start();
	alarm(60); // a message that waits is killed
	diag_warn("nobody listens");
	return 0;
}

TEST(only_the_stderr_of_the_start_is_written_and_never_waited_for)
{
	char text[256];

	assert_int_equal(in_child_telling(speaks_into_a_file_of_the_program, NULL, text, sizeof(text)), 0);
	assert_int_equal(in_child_telling(speaks_into_a_full_pipe, NULL, text, sizeof(text)), 0);
}

/* Nobody reads stderr any more. The program's own SIGPIPE, pending since before, must survive. */
static int
speaks_to_nobody(void *has_pending)
{
	int ends[2];
	sigset_t pipes;
	sigset_t pending;

	CHECK_IN_CHILD(pipe(ends) == 0);
	close(ends[0]);
	dup2(ends[1], STDERR_FILENO);
	diag_start();
	signal(SIGPIPE, SIG_DFL);
	sigemptyset(&pipes);
	sigaddset(&pipes, SIGPIPE);
	if (*(bool *)has_pending) {
		sigprocmask(SIG_BLOCK, &pipes, NULL);
		raise(SIGPIPE);
	}
	errno = ERANGE;
	diag_warn("into the void");
	if (errno != ERANGE)
		return 2;
	sigpending(&pending);
	return (sigismember(&pending, SIGPIPE) == 1) == *(bool *)has_pending ? 0 : 3;
}

TEST(a_closed_pipe_is_not_the_programs_sigpipe)
{
	bool has_pending[] = { false, true };

	assert_int_equal(in_child(speaks_to_nobody, &has_pending[0]), 0);
	assert_int_equal(in_child(speaks_to_nobody, &has_pending[1]), 0);
}

RUN_TESTS(NULL, NULL)
