/*
 * test_units.c - do the figures of a column have one unit, and say as much of the small ones as can be?
 */
#include "test.h"

#include "base/units.h"

#define KIB UINT64_C(1024)
#define MIB (KIB * 1024)
#define GIB (MIB * 1024)

TEST(a_column_has_the_unit_of_its_largest)
{
	static const struct {
		uint64_t most, bytes;
		const char *text;
	} cases[] = {
		{ 1000, 1000, "1000 B" },
		{ 0, 0, "0 B" },
		{ 288 * MIB, 288 * MIB, "288 MiB" },
		{ 288 * MIB, 720 * KIB, "0.7 MiB" },
		{ 288 * MIB, 1, "<0.1 MiB" },
		{ 288 * MIB, 0, "0 B" },
		{ 9 * GIB, 9 * GIB, "9.00 GiB" }, // a tenth is too coarse for the others
		{ 9 * GIB, 60 * MIB + MIB / 2, "0.06 GiB" },
		{ 9 * GIB, MIB / 4, "<0.01 GiB" },
		{ 10 * GIB, 60 * MIB, "0.1 GiB" },
		{ 1024 * KIB - 1, 1024 * KIB - 1, "1.0 MiB" }, // never 1024.0 of a unit
		{ UINT64_MAX, UINT64_MAX, "16.0 EiB" },
	};
	char text[UNITS_TEXT_BYTES];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(units_bytes_in(units_column_of(cases[i].most), cases[i].bytes, text), cases[i].text);
}

RUN_TESTS(NULL, NULL)
