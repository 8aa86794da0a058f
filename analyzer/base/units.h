/*
 * units.h - how is a number written for a person?
 *
 * Every function writes into `text`, which has UNITS_TEXT_BYTES of room, and returns it. The macro of the same name gives each call room of
 * its own, which lasts until the end of the block in which the call stands.
 */
#ifndef UNITS_H
#define UNITS_H

#include <stdbool.h>
#include <stdint.h>

#define UNITS_TEXT_BYTES 32

/* "0 B", "512 B", "1.5 KiB", "1.16 GiB", "11.6 GiB", "128 MiB": powers of two, rounded to nearest. */
const char *units_bytes(uint64_t bytes, char text[UNITS_TEXT_BYTES]);

/* One unit for all of a column whose rows compare; where small figures matter by themselves, each has its own. */
struct units_column {
	unsigned unit;
	int digits; // behind the point, of less than 100
};

/* most_bytes: the largest of the column. */
struct units_column units_column_of(uint64_t most_bytes);

/* "288 MiB", "0.7 MiB", "<0.1 MiB"; of a column whose largest has 1 to 10 GiB "0.06 GiB". Nothing is "0 B" in any column. */
const char *units_bytes_in(struct units_column column, uint64_t bytes, char text[UNITS_TEXT_BYTES]);

/* "0", "9,999", "12,345,678": exact. */
const char *units_count(uint64_t count, char text[UNITS_TEXT_BYTES]);

/* Of an estimate "≈128 MiB", "≈4,190,000". */
const char *units_bytes_of(uint64_t bytes, bool is_estimated, char text[UNITS_TEXT_BYTES]);
const char *units_count_of(uint64_t count, bool is_estimated, char text[UNITS_TEXT_BYTES]);

/* digits: 2 or 3, of which 12,345,678 is 12,300,000. For what is known no better. */
uint64_t units_rounded(uint64_t count, unsigned digits);

/* "0 %", "0.4 %", "37 %"; parts per million in. */
const char *units_share(uint32_t ppm, char text[UNITS_TEXT_BYTES]);

/* "line" and "lines": what is behind the number. */
#define UNITS_S(count) ((count) == 1 ? "" : "s")

#define UNITS_ROOM ((char[UNITS_TEXT_BYTES]){ 0 })
#define UNITS_BYTES(bytes) units_bytes(bytes, UNITS_ROOM)
#define UNITS_BYTES_OF(bytes, is_estimated) units_bytes_of(bytes, is_estimated, UNITS_ROOM)
#define UNITS_BYTES_IN(column, bytes) units_bytes_in(column, bytes, UNITS_ROOM)
#define UNITS_COUNT(count) units_count(count, UNITS_ROOM)
#define UNITS_COUNT_OF(count, is_estimated) units_count_of(count, is_estimated, UNITS_ROOM)
#define UNITS_SHARE(ppm) units_share(ppm, UNITS_ROOM)

#endif
