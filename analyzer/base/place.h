/*
 * place.h - how is a line of code written for a person?
 *
 * Context     its only state is the list of files; the caller gives the room.
 */
#ifndef PLACE_H
#define PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PLACE_TEXT_BYTES 256
#define PLACE_ROOM ((char[PLACE_TEXT_BYTES]){ 0 }) // until the end of the block in which it stands

/*
 * "train.py:41 epoch", "json/decoder.py:12 decode", "libfoo.so grow", "libfoo.so+0x1159", "unknown place": place_short() of the file, line,
 * function; what is not known is left out. A text that is too long loses its middle.
 *
 * file, function, module  "" when unknown; all three may come from outside: control characters become '?'
 * offset                  in the module, for what has no name; 0 = none
 */
const char *place_text(const char *file, uint32_t line, const char *function, const char *module, uint64_t offset,
                       char text[PLACE_TEXT_BYTES]);

/* The same, and nothing is cut. For free(). */
char *place_whole(const char *file, uint32_t line, const char *function, const char *module, uint64_t offset);

/* Adds " [while]" to the text, or whatever the relation is; "" adds nothing. Returns the text. */
const char *place_related(const char *relation, char text[PLACE_TEXT_BYTES]);

/*
 * The file as far as it helps: below site-packages or the standard library the path from there, else the base name, with as many
 * folders as tell it from others of that name, and one where the name says nothing ("pkg/__init__.py").
 */
const char *place_short(const char *path);

/* Which files of the user's there are, until the next call; several times the same is one. The texts must live as long. */
void place_learn(const char *const *paths, size_t count);
void place_forget(void);

/* A cell of a notebook, "cell In[12]" (see model.h): its line is written "cell In[12] line 3". */
bool place_is_cell(const char *file);

/* The last component of a path. */
const char *place_base(const char *path);

/* Does the file belong to the C library? Nobody looks for a line in it. */
bool place_is_of_libc(const char *path);

#endif
