/*
 * top.c - what does a running program hold now (see top.h)?
 *
 * A sample takes as long as a report, and a look for a newer run reads each capture of the folder, so that after a slow one there is a longer
 * pause: a tenth of one processor at most.
 */
#include "top/top.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/memory.h"
#include "base/progress.h"
#include "capture/capture_folder.h"
#include "launch/ask_process.h"
#include "top/top_past.h"
#include "top/top_screen.h"
#include "top/top_view.h"

#define PAUSE_SECONDS 1.0
#define PAUSE_PART 9 // of what a sample takes
#define END_WAIT_NS 300000000
#define HELP "Enter opens  d domain  p process  n Python/native  o order  s snapshot  q quit"

struct watch {
	struct model_options captures;
	char *session; // of a folder: the one that is shown, where it was chosen here
	char *newer;   // of which it was said that it began meanwhile
	struct top_past *past;
	struct top_sample *sample;
	struct top_state state;
	char *capture; // of one process; NULL = all
	char *domain;
	char *process;
	char message[160];
	double next; // sample
	bool is_done;
};

/* After what was done since then. */
static double
after_pause(double since)
{
	double now = top_seconds_now();
	double pause = (now - since) * PAUSE_PART;

	return now + (pause > PAUSE_SECONDS ? pause : PAUSE_SECONDS);
}

static bool
sample_again(struct watch *watch, struct fail *fail)
{
	double before = top_seconds_now();
	struct top_sample *fresh = top_sample_take(&watch->captures, &watch->state.wish, fail);

	if (fresh == NULL)
		return false;
	top_past_compare(watch->past, fresh, watch->state.wish.order);
	top_sample_free(watch->sample);
	watch->sample = fresh;
	watch->next = after_pause(before);
	watch->state.taken = time(NULL);
	watch->state.every_seconds = watch->next - before;
	return true;
}

static void
replace(char **text, const char *with)
{
	char *copy = with != NULL ? memory_text(with) : NULL;

	free(*text);
	*text = copy;
}

static void
see_something_else(struct watch *watch)
{
	top_past_forget(watch->past);
	watch->state.chosen = watch->state.first = 0;
	watch->next = 0;
}

/*
 * A run that began in the folder meanwhile: it is shown where the one that is shown has ended; where that goes on, it is said.
 */
static void
look_for_newer(struct watch *watch)
{
	OWNED char *running = capture_folder_running(watch->captures.capture, watch->captures.is_salvage);
	const char *shown = watch->sample->model->session;

	if (running == NULL || (shown != NULL && strcmp(running, shown) == 0) ||
	    (watch->sample->is_running && watch->newer != NULL && strcmp(running, watch->newer) == 0))
		return;
	if (watch->sample->is_running) {
		replace(&watch->newer, running);
		(void)snprintf(watch->message, sizeof(watch->message),
		               "another run has begun in this folder: q, and kmemshim top again, shows it");
	} else {
		replace(&watch->session, running);
		watch->captures.session = watch->session;
		watch->state.process = 0;
		replace(&watch->capture, NULL);
		replace(&watch->process, NULL);
		watch->state.wish.capture = watch->state.process_name = NULL;
		see_something_else(watch);
	}
}

/* The host's memory, then each domain that holds anything. */
static void
next_domain(struct watch *watch)
{
	const struct report *report = watch->sample->report;
	size_t at = 0;

	while (watch->domain != NULL && at < report->domain_count &&
	       strcmp(report->domains[at].of.name, watch->domain) != 0)
		at++;
	at = watch->domain == NULL ? 0 : at + 1;
	replace(&watch->domain, at < report->domain_count ? report->domains[at].of.name : NULL);
	watch->state.wish.domain = watch->domain;
	see_something_else(watch);
}

/*
 * All, then each. The list is that of all: while one is shown, its own sample does not know the others.
 */
static void
next_process(struct watch *watch)
{
	const struct top_wish all = { .capture = NULL };
	struct fail fail;
	struct top_sample *sample = top_sample_take(&watch->captures, &all, &fail);
	char name[160];

	if (sample == NULL)
		return;
	watch->state.process = (watch->state.process + 1) % (sample->report->process_count + 1);
	if (watch->state.process == 0 || sample->report->process_count < 2) {
		watch->state.process = 0;
		replace(&watch->capture, NULL);
		replace(&watch->process, NULL);
	} else {
		const struct report_process *process = &sample->report->processes[watch->state.process - 1];

		(void)snprintf(name, sizeof(name), "%.100s %u", process->of.name, process->pid);
		replace(&watch->capture, process->of.path);
		replace(&watch->process, name);
	}
	watch->state.wish.capture = watch->capture;
	watch->state.process_name = watch->process;
	top_sample_free(sample);
	see_something_else(watch);
}

static void
take_snapshot(struct watch *watch)
{
	struct fail fail;
	char name[48];
	char pid[24];
	bool is_done;
	time_t now = time(NULL);
	struct tm local;

	(void)strftime(name, sizeof(name), "top %H:%M:%S", localtime_r(&now, &local));
	(void)snprintf(pid, sizeof(pid), "%u", watch->sample->report->processes[0].pid);
	if (!ask_process("top", pid, ASK_SNAPSHOT, name, &is_done, &fail))
		(void)snprintf(watch->message, sizeof(watch->message), "%.150s", fail.text);
	else
		(void)snprintf(watch->message, sizeof(watch->message), "snapshot \"%s\" of process %s: %s", name, pid,
		               is_done ? "kmemshim report --at shows it" : "it is made when the program allocates");
}

static void
act_on_letter(struct watch *watch, int letter)
{
	struct top_wish *wish = &watch->state.wish;

	if (letter == 'd') {
		next_domain(watch);
	} else if (letter == 'p') {
		next_process(watch);
	} else if (letter == 'n') {
		wish->kind = (enum top_kind)((wish->kind + 1) % TOP_KINDS);
		see_something_else(watch);
	} else if (letter == 'o') {
		wish->order = (enum top_order)((wish->order + 1) % TOP_ORDERS);
		watch->next = 0;
	} else if (letter == 's') {
		take_snapshot(watch);
	}
}

static void
move(struct watch *watch, long rows)
{
	size_t *at = watch->state.is_open ? &watch->state.scrolled : &watch->state.chosen;

	if (rows < 0 && *at < (size_t)-rows)
		*at = 0;
	else
		*at = (size_t)((long)*at + rows);
}

static void
act_on(struct watch *watch, enum top_key key, int letter)
{
	static const long moves[] = { [TOP_KEY_UP] = -1,        [TOP_KEY_DOWN] = 1,      [TOP_KEY_PAGE_UP] = -10,
		                          [TOP_KEY_PAGE_DOWN] = 10, [TOP_KEY_HOME] = -10000, [TOP_KEY_END] = TOP_ROWS_MAX };

	if (key != TOP_KEY_NONE)
		watch->message[0] = '\0';
	if (key >= TOP_KEY_UP && key <= TOP_KEY_END) {
		move(watch, moves[key]);
	} else if (key == TOP_KEY_OPEN || key == TOP_KEY_BACK) {
		watch->state.is_open = key == TOP_KEY_OPEN;
		watch->state.scrolled = 0;
	} else if (key == TOP_KEY_QUIT) {
		watch->is_done = true;
	} else if (key == TOP_KEY_LETTER) {
		act_on_letter(watch, letter);
	}
}

static void
show(struct watch *watch)
{
	struct top_canvas canvas;
	unsigned rows;
	unsigned columns;

	top_screen_size(&rows, &columns);
	top_canvas_make(&canvas, rows, columns);
	watch->state.message = watch->message[0] != '\0' ? watch->message : HELP;
	top_view_draw(watch->sample, &watch->state, &canvas);
	top_screen_show(&canvas);
	top_canvas_free(&canvas);
}

/* A key acts at once, also where a capture takes long to read. */
static void
show_that_it_reads(struct watch *watch)
{
	(void)snprintf(watch->message, sizeof(watch->message), "reading ...");
	show(watch);
	watch->message[0] = '\0';
}

/* The key that ends us, or the end of what ran when we began. *has_ended: the latter. */
static bool
loop(struct watch *watch, bool *has_ended, struct fail *fail)
{
	bool was_running = watch->sample->is_running;

	while (!watch->is_done) {
		double now = top_seconds_now();
		int letter;

		if (now >= watch->next && watch->next != 0) {
			look_for_newer(watch);
			if (!watch->sample->is_running && watch->next != 0)
				watch->next = after_pause(now);
		}
		if (watch->next == 0)
			show_that_it_reads(watch);
		if (now >= watch->next && (watch->next == 0 || watch->sample->is_running) && !sample_again(watch, fail))
			return false;
		was_running = was_running || watch->sample->is_running;
		if (was_running && !watch->sample->is_running) {
			(void)nanosleep(&(struct timespec){ .tv_nsec = END_WAIT_NS }, NULL); // until its launcher has told how
			*has_ended = true;
			return sample_again(watch, fail);
		}
		show(watch);
		now = top_seconds_now();

		enum top_key key = top_screen_key(watch->next > now + 0.01 ? (unsigned)((watch->next - now) * 1000) : 10,
		                                  &letter);

		act_on(watch, key, letter);
	}
	return true;
}

static void
begin(struct watch *watch, const struct top_options *options)
{
	watch->captures = options->captures;
	watch->past = top_past_new();
	replace(&watch->domain, options->domain);
	watch->state.wish.domain = watch->domain;
}

static void
finish(struct watch *watch)
{
	top_sample_free(watch->sample);
	top_past_free(watch->past);
	free(watch->capture);
	free(watch->domain);
	free(watch->process);
	free(watch->session);
	free(watch->newer);
}

static void
tell_end(const struct top_sample *sample)
{
	(void)printf("ended: %s\nMore: kmemshim report %s\n", sample->report->verdict.headline, sample->model->argument);
}

bool
top_watch(const struct top_options *options, struct fail *fail)
{
	struct watch watch = { .past = NULL };
	bool has_ended = false;

	begin(&watch, options);

	bool is_good = sample_again(&watch, fail);

	progress_stop();
	is_good = is_good && top_screen_open(options->has_color, fail);
	if (is_good) {
		is_good = loop(&watch, &has_ended, fail);
		top_screen_close();
	}
	if (is_good && has_ended)
		tell_end(watch.sample);
	finish(&watch);
	return is_good;
}

/* ---- one screen as text ---- */

static void
put_character(wchar_t character, FILE *stream)
{
	static const unsigned char leads[] = { 0, 0xc0, 0xe0, 0xf0 };
	unsigned long value = (unsigned long)character;

	if (value < 0x80) {
		(void)fputc((int)value, stream);
	} else {
		unsigned more = value < 0x800 ? 1 : value < 0x10000 ? 2 : 3;

		(void)fputc((int)(leads[more] | value >> (6 * more)), stream);
		for (; more != 0; more--)
			(void)fputc((int)(0x80 | (value >> (6 * (more - 1)) & 0x3f)), stream);
	}
}

static void
print(const struct top_canvas *canvas)
{
	unsigned last = 0;

	for (unsigned row = 0; row < canvas->rows; row++) {
		const struct top_cell *cells = &canvas->cells[(size_t)row * canvas->columns];
		unsigned end = canvas->columns;

		while (end != 0 && (cells[end - 1].character == 0 || cells[end - 1].character == L' '))
			end--;
		if (end == 0)
			continue;
		for (; last < row; last++)
			(void)fputc('\n', stdout);
		for (unsigned i = 0; i < end; i++)
			put_character(cells[i].character != 0 ? cells[i].character : L' ', stdout);
	}
	(void)fputc('\n', stdout);
}

bool
top_once(const struct top_options *options, struct fail *fail)
{
	struct watch watch = { .past = NULL };
	struct top_canvas canvas;

	if (setlocale(LC_CTYPE, "") == NULL || MB_CUR_MAX == 1)
		(void)setlocale(LC_CTYPE, "C.UTF-8"); // which characters take a column
	begin(&watch, options);

	bool is_good = sample_again(&watch, fail);

	if (is_good) {
		top_canvas_make(&canvas, options->rows, options->columns);
		watch.state.taken = 0;
		top_view_draw(watch.sample, &watch.state, &canvas);
		print(&canvas);
		top_canvas_free(&canvas);
	}
	finish(&watch);
	return is_good;
}
