/*
 * diag.c - one-line messages from inside somebody else's process (see diag.h).
 */
#include "base/diag.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <time.h>

#include "base/raw_sys.h"

enum diag_level diag_level = DIAG_WARN;

struct text {
	char *at;
	size_t room; // left, the terminator's byte already set aside
};

static void
put_char(struct text *out, char c)
{
	if (out->room == 0)
		return;
	*out->at++ = c;
	out->room--;
}

static void
put_string(struct text *out, const char *string)
{
	for (string = string != NULL ? string : "(null)"; *string != '\0'; string++)
		put_char(out, *string);
}

static void
put_number(struct text *out, uint64_t number, unsigned base)
{
	char digits[20];
	unsigned count = 0;

	do {
		digits[count++] = "0123456789abcdef"[number % base];
		number /= base;
	} while (number != 0);
	while (count > 0)
		put_char(out, digits[--count]);
}

static void
put_signed(struct text *out, int64_t number)
{
	if (number < 0)
		put_char(out, '-');
	put_number(out, number < 0 ? -(uint64_t)number : (uint64_t)number, 10);
}

/* Only what our own messages use; an unknown conversion is printed as it stands. */
static void
put_format(struct text *out, const char *format, va_list values)
{
	for (; *format != '\0'; format++) {
		if (*format != '%') {
			put_char(out, *format);
			continue;
		}
		format++;
		bool is_long = *format == 'l' || *format == 'z';
		if (is_long)
			format++;
		switch (*format) {
		case 's':
			put_string(out, va_arg(values, const char *));
			break;
		case 'd':
			put_signed(out, is_long ? va_arg(values, long) : va_arg(values, int));
			break;
		case 'u':
			put_number(out, is_long ? va_arg(values, unsigned long) : va_arg(values, unsigned), 10);
			break;
		case 'x':
			put_number(out, is_long ? va_arg(values, unsigned long) : va_arg(values, unsigned), 16);
			break;
		case '\0':
			return;
		default:
			put_char(out, *format);
		}
	}
}

size_t
diag_format(char *buffer, size_t size, const char *format, ...)
{
	struct text out = { buffer, size - 1 };
	va_list values;

	va_start(values, format);
	put_format(&out, format, values);
	va_end(values);
	*out.at = '\0';
	return (size_t)(out.at - buffer);
}

#define SIGNAL_BIT(number) (UINT64_C(1) << ((number)-1)) // the kernel's signal set

/*
 * The program must not get what our message may raise: SIGPIPE where nobody reads any more, SIGXFSZ where stderr is a file at its
 * limit, SIGTTOU in the background.
 */
static void
write_quietly(const char *text, size_t bytes)
{
	static const uint64_t raised = SIGNAL_BIT(SIGPIPE) | SIGNAL_BIT(SIGXFSZ) | SIGNAL_BIT(SIGTTOU);
	static const struct timespec at_once = { 0, 0 };
	uint64_t mask;
	uint64_t pending = 0;

	raw_syscall(SYS_rt_sigpending, &pending, sizeof(pending));
	raw_syscall(SYS_rt_sigprocmask, SIG_BLOCK, &raised, &mask, sizeof(mask));
	if (raw_syscall(SYS_write, STDERR_FILENO, text, bytes) < 0) {
		uint64_t ours = (errno == EPIPE ? SIGNAL_BIT(SIGPIPE) : errno == EFBIG ? SIGNAL_BIT(SIGXFSZ) : 0) & ~pending;

		if (ours != 0)
			raw_syscall(SYS_rt_sigtimedwait, &ours, NULL, &at_once, sizeof(ours));
	}
	raw_syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, sizeof(mask));
}

static struct stat first_stderr; // what stderr was when the shim started
static bool has_stderr;

void
diag_start(void)
{
	has_stderr = raw_fstat(STDERR_FILENO, &first_stderr) == 0;
}

/* By now descriptor 2 may be a file of the program's, or a pipe that nobody empties: then the message is dropped. */
static bool
may_write(void)
{
	struct pollfd ready = { .fd = STDERR_FILENO, .events = POLLOUT };
	struct timespec at_once = { 0, 0 };
	struct stat now;

	return has_stderr && raw_sys_may_call() && raw_fstat(STDERR_FILENO, &now) == 0 &&
	       now.st_dev == first_stderr.st_dev && now.st_ino == first_stderr.st_ino &&
	       raw_syscall(SYS_ppoll, &ready, 1L, &at_once, NULL, 0L) == 1;
}

static void
say(const char *format, va_list values)
{
	char line[1024];
	struct text out = { line, sizeof(line) - 1 };
	int host_errno = errno;

	put_string(&out, "kmemshim: ");
	put_format(&out, format, values);
	for (char *at = line; at < out.at; at++) {
		if ((unsigned char)*at < ' ')
			*at = '?'; // from a path or a variable: one message stays one line
	}
	*out.at++ = '\n'; // the byte that was set aside
	if (may_write())
		write_quietly(line, (size_t)(out.at - line));
	errno = host_errno;
}

void
diag_warn(const char *format, ...)
{
	va_list values;

	if (diag_level < DIAG_WARN)
		return;
	va_start(values, format);
	say(format, values);
	va_end(values);
}

void
diag_debug(const char *format, ...)
{
	va_list values;

	if (diag_level < DIAG_DEBUG)
		return;
	va_start(values, format);
	say(format, values);
	va_end(values);
}
