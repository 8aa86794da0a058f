/*
 * exit_figures.h - what did the program hold when it began to exit?
 *
 * Exit handlers and the destructors of static objects release what was held all along: caches, registries, histories. So what each
 * line holds is written down when exit() begins, or main returns, before any of them runs. Recording goes on: what is released and
 * allocated afterwards is booked as ever, and a reader has both.
 *
 * Context     inside the reentry guard.
 * Safe from   one thread, outside any hook; others may allocate meanwhile: each of their events is in what is written, or behind it.
 * When full   nothing is written: figures are those of the very end.
 */
#ifndef EXIT_FIGURES_H
#define EXIT_FIGURES_H

#include <stdbool.h>

/* Writes them down, once; programs that hold next to nothing have none. */
void exit_figures_take(void);

/* Do they count, at the end? Not where more is live than then: the program did its work in exit handlers. */
bool exit_figures_stand(void);

#endif
