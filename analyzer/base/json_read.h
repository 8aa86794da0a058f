/*
 * json_read.h - reads JSON: the one door to jansson.
 *
 * Context     What we write is json_write.h's.
 * When failing  one line with the place in the file.
 */
#ifndef JSON_READ_H
#define JSON_READ_H

#include <jansson.h>

#include "base/fail.h"

struct json_object;
struct text_pool;

#define JSON_READ_BYTES_MAX (16u << 20) // in memory it is twenty times as much

/*
 * file      a descriptor, is closed in any case
 * path      of it, for the message
 * returns   to be freed by json_decref(); NULL and *fail (EXIT_USAGE) when it is not JSON
 */
json_t *json_read_file(int file, const char *path, struct fail *fail);

/* The same of a text in memory; NULL when it is not JSON. */
json_t *json_read_text(const char *text, size_t bytes);

/*
 * Fills the struct from foreign input: whatever is something else than its field becomes 0, false, an empty array, "", or of a text with `values`
 * NULL, of JSON_ENUM the number behind the last. Reads these, numbers, truths, texts and JSON_OBJECTS behind a pointer. Texts are clean; they and arrays live in the pool.
 */
void json_read_object(const json_t *from, const struct json_object *object, struct text_pool *pool, void *owner);

#endif
