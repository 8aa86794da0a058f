/*
 * units.c - how is a number written for a person?
 *
 * When failing  it does not: every value of the type has a spelling that fits UNITS_TEXT_BYTES.
 */
#include "base/units.h"

#include <inttypes.h>
#include <stdio.h>

static const char *const names[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };

#define GIB_UNIT 3
#define FEW_UNITS 9.995 // of GiB and more: a tenth of one is too coarse for the others

struct units_column
units_column_of(uint64_t most_bytes)
{
	struct units_column column = { .digits = 1 };
	double value = (double)most_bytes;

	while (column.unit + 1 < sizeof(names) / sizeof(names[0]) && value >= 1023.5) { // rounds to 1024
		column.unit++;
		value /= 1024;
	}
	if (column.unit >= GIB_UNIT && value < FEW_UNITS)
		column.digits = 2;
	return column;
}

const char *
units_bytes_in(struct units_column column, uint64_t bytes, char text[UNITS_TEXT_BYTES])
{
	double value = (double)bytes / (double)(UINT64_C(1) << 10 * column.unit);
	double least = column.digits == 2 ? 0.01 : 0.1;
	int digits = value >= 99.95 ? 0 : column.digits;

	if (bytes == 0 || column.unit == 0)
		(void)snprintf(text, UNITS_TEXT_BYTES, "%" PRIu64 " B", bytes);
	else
		(void)snprintf(text, UNITS_TEXT_BYTES, "%s%.*f %s", value < least / 2 ? "<" : "", digits,
		               value < least / 2 ? least : value, names[column.unit]);
	return text;
}

const char *
units_bytes(uint64_t bytes, char text[UNITS_TEXT_BYTES])
{
	return units_bytes_in(units_column_of(bytes), bytes, text);
}

const char *
units_count(uint64_t count, char text[UNITS_TEXT_BYTES])
{
	char digits[24];
	int length = snprintf(digits, sizeof(digits), "%" PRIu64, count);
	int out = 0;

	for (int i = 0; i < length; i++) {
		if (i > 0 && (length - i) % 3 == 0)
			text[out++] = ',';
		text[out++] = digits[i];
	}
	text[out] = '\0';
	return text;
}

const char *
units_bytes_of(uint64_t bytes, bool is_estimated, char text[UNITS_TEXT_BYTES])
{
	(void)snprintf(text, UNITS_TEXT_BYTES, "%s%s", is_estimated ? "≈" : "", UNITS_BYTES(bytes));
	return text;
}

const char *
units_count_of(uint64_t count, bool is_estimated, char text[UNITS_TEXT_BYTES])
{
	(void)snprintf(text, UNITS_TEXT_BYTES, "%s%s", is_estimated ? "≈" : "",
	               UNITS_COUNT(is_estimated ? units_rounded(count, 3) : count));
	return text;
}

const char *
units_share(uint32_t ppm, char text[UNITS_TEXT_BYTES])
{
	if (ppm > 0 && ppm < 500)
		(void)snprintf(text, UNITS_TEXT_BYTES, "<0.1 %%");
	else if (ppm > 0 && ppm < 9950)
		(void)snprintf(text, UNITS_TEXT_BYTES, "%.1f %%", (double)ppm / 10000);
	else
		(void)snprintf(text, UNITS_TEXT_BYTES, "%.0f %%", (double)ppm / 10000);
	return text;
}

uint64_t
units_rounded(uint64_t count, unsigned digits)
{
	const uint64_t most = digits == 2 ? 100 : 1000;
	uint64_t unit = 1;

	while (count / unit >= most)
		unit *= 10;
	return (count + unit / 2) / unit * unit;
}
