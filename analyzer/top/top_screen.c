/*
 * top_screen.c - the terminal, by ncurses (see top_screen.h).
 */
#define NCURSES_WIDECHAR 1
#include "top/top_screen.h"

#include <locale.h>
#include <ncurses.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static volatile sig_atomic_t is_over; // a signal wants us to end
static SCREEN *screen;
static attr_t attributes[TOP_STYLES];

static void
end(int number)
{
	(void)number;
	is_over = 1;
}

/* Without SA_RESTART, so that waiting for a key ends. ncurses keeps those for the size and for Ctrl-Z. */
static void
catch_signals(void)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction action = { .sa_handler = end };

	(void)sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		(void)sigaction(numbers[i], &action, NULL);
}

static void
choose_looks(bool has_color)
{
	attributes[TOP_BOLD] = A_BOLD;
	attributes[TOP_SOFT] = A_DIM;
	attributes[TOP_ALARM] = A_BOLD;
	attributes[TOP_CHOSEN] = A_REVERSE;
	if (!has_color || !has_colors() || start_color() == ERR)
		return;
	(void)use_default_colors();
	(void)init_pair(1, COLOR_RED, -1);
	(void)init_pair(2, COLOR_CYAN, -1);
	attributes[TOP_ALARM] = A_BOLD | (attr_t)COLOR_PAIR(1);
	attributes[TOP_BAR] = (attr_t)COLOR_PAIR(2);
}

bool
top_screen_open(bool has_color, struct fail *fail)
{
	const char *kind = getenv("TERM");

	if (setlocale(LC_CTYPE, "") == NULL || MB_CUR_MAX == 1)
		(void)setlocale(LC_CTYPE, "C.UTF-8"); // texts are UTF-8
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return fail_set(fail, EXIT_USAGE, "top: this is not a terminal: --once prints one screen as text");
	screen = newterm(NULL, stdout, stdin);
	if (screen == NULL)
		return fail_set(fail, EXIT_USAGE,
		                "top: TERM=%.40s is a terminal that is not known here: set TERM, or use --once",
		                kind != NULL ? kind : "");
	(void)set_term(screen);
	catch_signals();
	(void)cbreak();
	(void)noecho();
	(void)nonl();
	(void)keypad(stdscr, TRUE);
	(void)set_escdelay(25);
	(void)curs_set(0);
	choose_looks(has_color);
	return true;
}

void
top_screen_close(void)
{
	if (screen == NULL)
		return;
	(void)endwin();
	delscreen(screen);
	screen = NULL;
}

void
top_screen_size(unsigned *rows, unsigned *columns)
{
	*rows = LINES > 0 ? (unsigned)LINES : 1;
	*columns = COLS > 0 ? (unsigned)COLS : 1;
}

void
top_screen_show(const struct top_canvas *canvas)
{
	(void)erase();
	for (unsigned row = 0; row < canvas->rows; row++) {
		for (unsigned column = 0; column < canvas->columns; column++) {
			const struct top_cell *cell = &canvas->cells[(size_t)row * canvas->columns + column];
			wchar_t text[2] = { cell->character != 0 ? cell->character : L' ', 0 };
			cchar_t shown;

			if (cell->character == 0 && cell->style == TOP_PLAIN)
				continue;
			if (setcchar(&shown, text, attributes[cell->style] & ~A_COLOR, (short)PAIR_NUMBER(attributes[cell->style]),
			             NULL) == OK)
				(void)mvadd_wch((int)row, (int)column, &shown);
		}
	}
	(void)refresh();
}

/* Then no key comes, and waiting for one does not wait. */
static bool
is_terminal_gone(void)
{
	struct pollfd keys = { .fd = STDIN_FILENO };

	return poll(&keys, 1, 0) == 1 && (keys.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0;
}

enum top_key
top_screen_key(unsigned milliseconds, int *letter)
{
	*letter = 0;
	if (is_over)
		return TOP_KEY_QUIT;
	timeout((int)milliseconds);

	int key = getch();

	if (is_over)
		return TOP_KEY_QUIT;
	switch (key) {
	case ERR:
		return is_terminal_gone() ? TOP_KEY_QUIT : TOP_KEY_NONE;
	case KEY_RESIZE:
	case 'L' & 0x1f:
		(void)clearok(stdscr, TRUE); // what the terminal kept of the screen is not known
		return TOP_KEY_NONE;
	case KEY_UP:
	case 'k':
		return TOP_KEY_UP;
	case KEY_DOWN:
	case 'j':
		return TOP_KEY_DOWN;
	case KEY_PPAGE:
		return TOP_KEY_PAGE_UP;
	case KEY_NPAGE:
	case ' ':
		return TOP_KEY_PAGE_DOWN;
	case KEY_HOME:
		return TOP_KEY_HOME;
	case KEY_END:
		return TOP_KEY_END;
	case KEY_ENTER:
	case KEY_RIGHT:
	case '\n':
	case '\r':
		return TOP_KEY_OPEN;
	case KEY_LEFT:
	case KEY_BACKSPACE:
	case 27:
		return TOP_KEY_BACK;
	case 'q':
	case 'Q':
	case 3:
		return TOP_KEY_QUIT;
	default:
		*letter = key;
		return TOP_KEY_LETTER;
	}
}
