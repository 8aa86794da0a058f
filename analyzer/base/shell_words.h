/*
 * shell_words.h - how would this command be typed?
 */
#ifndef SHELL_WORDS_H
#define SHELL_WORDS_H

#include <stddef.h>

/*
 * "python train.py 'two words'" from zero-separated words; one that cannot be shown is written $'two\nlines', as bash, zsh and
 * ksh read it. The result can be shown (text_clean.h). The caller frees it.
 *
 * words, bytes  need not end with a zero: the recorder cuts long commands
 */
char *shell_words_join(const char *words, size_t bytes);

#endif
