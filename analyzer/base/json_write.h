/*
 * json_write.h - JSON, written as it comes.
 *
 * A report may have 100,000 sites of 100 frames; a tree of it in memory would be larger than the capture. This
 * writer holds nothing but its depth. Members come in the order of the calls; objects and arrays opened at
 * `inline_depth` and deeper stay on one line, so that one site is one line and files compare well.
 *
 * Context     Reading JSON is json_read.h's.
 * When failing  errors of the stream stay in it (ferror): the caller checks once at the end.
 */
#ifndef JSON_WRITE_H
#define JSON_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct json_write {
	FILE *stream;
	unsigned inline_depth;
	bool is_dense; // no spaces: megabytes that nobody compares
	unsigned depth;
	bool has_member; // in the innermost open object or array
	void *context;   // the caller's
};

/* name: of the member; NULL inside arrays and for the outermost value. Texts may be any bytes: what is not UTF-8
 * becomes U+FFFD, control characters are escaped. */
void json_write_open(struct json_write *json, const char *name, char bracket); // '{' or '['
void json_write_close(struct json_write *json, char bracket);                  // '}' or ']'
void json_write_text(struct json_write *json, const char *name, const char *text);
/* Above 2^63 - 1 that. */
void json_write_number(struct json_write *json, const char *name, uint64_t number);
void json_write_signed(struct json_write *json, const char *name, int64_t number);
void json_write_bool(struct json_write *json, const char *name, bool value);
void json_write_null(struct json_write *json, const char *name);
/* What stands in the block behind it is in an object or array, which is closed behind the block: not to be left by break or return. */
#define JSON_IN(json, name, bracket) JSON_IN_AS(json, name, bracket, __COUNTER__)
#define JSON_IN_AS(json, name, bracket, number) JSON_IN_NAMED(json, name, bracket, number)
#define JSON_IN_NAMED(json, name, bracket, number)                                     \
	for (bool in_##number = (json_write_open(json, name, bracket), true); in_##number; \
	     in_##number = (json_write_close(json, (bracket) + 2), false)) // ']' and '}' are two behind theirs
/* A value of an array that is JSON already. */
void json_write_raw(struct json_write *json, const char *value, size_t bytes);

#endif
