/*
 * top_screen.h - the terminal. This file's .c is the only one that knows ncurses.
 *
 * Context     one screen at a time.
 * When failing  false, and one line in `fail`: it is no terminal, or of a kind that is not known. A signal that ends us, a window that
 *               changes its size and a stop by Ctrl-Z are seen to: the terminal is always given back as it was.
 */
#ifndef TOP_SCREEN_H
#define TOP_SCREEN_H

#include <stdbool.h>

#include "base/fail.h"
#include "top/top_view.h"

enum top_key {
	TOP_KEY_NONE, // the time is up, or the size has changed
	TOP_KEY_UP,
	TOP_KEY_DOWN,
	TOP_KEY_PAGE_UP,
	TOP_KEY_PAGE_DOWN,
	TOP_KEY_HOME,
	TOP_KEY_END,
	TOP_KEY_OPEN,
	TOP_KEY_BACK,
	TOP_KEY_QUIT, // also a signal
	TOP_KEY_LETTER,
};

bool top_screen_open(bool has_color, struct fail *fail);
void top_screen_close(void);

void top_screen_size(unsigned *rows, unsigned *columns);

/* What has changed is written, nothing else. */
void top_screen_show(const struct top_canvas *canvas);

/* Waits so long at most. *letter: of TOP_KEY_LETTER. */
enum top_key top_screen_key(unsigned milliseconds, int *letter);

#endif
