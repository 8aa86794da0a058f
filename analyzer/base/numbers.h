/*
 * numbers.h - which number has a text, a frame, a pair of numbers, in a file that lists each once?
 *
 * From 0 on, in the order in which they were met. NULL is an empty list; `hh.next` leads through it in that order.
 *
 * When failing  without memory the command ends with a message (memory.h).
 */
#ifndef NUMBERS_H
#define NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uthash.h>

struct number {
	uint32_t number;
	UT_hash_handle hh;
	_Alignas(8) char key[]; // a copy
};

/* The one with an equal key, or a new one. is_new: NULL = not asked. */
const struct number *numbers_of(struct number **numbers, const void *key, size_t bytes, bool *is_new);
uint32_t numbers_of_text(struct number **numbers, const char *text);

void numbers_free(struct number **numbers);

#endif
