/*
 * python_fakes.h - str, bytes and code objects as CPython 3.11 lays them out, without an interpreter.
 */
#ifndef PYTHON_FAKES_H
#define PYTHON_FAKES_H

#include <stdint.h>
#include <string.h>

#include "python/python_layout.h"

static uint64_t fake_types[6]; // their addresses are the types

static struct python_interpreter
fake_interpreter(void)
{
	return (struct python_interpreter){
		.layout = *python_layout_find(0x030b07f0, false),
		.version_hex = 0x030b07f0,
		.types = {
			.type = (uint64_t)&fake_types[0],
			.code = (uint64_t)&fake_types[1],
			.frame = (uint64_t)&fake_types[2],
			.generator = (uint64_t)&fake_types[3],
			.string = (uint64_t)&fake_types[4],
			.bytes = (uint64_t)&fake_types[5],
		},
	};
}

static inline void
fake_put(void *object, size_t offset, uint64_t value)
{
	memcpy((char *)object + offset, &value, sizeof(value));
}

/* `kind` bytes per character; `object` has room for 80 bytes and the characters. */
static inline void
fake_string(void *object, unsigned kind, int is_ascii, const void *characters, uint64_t length)
{
	memset(object, 0, 80);
	fake_put(object, 8, (uint64_t)&fake_types[4]);
	fake_put(object, 16, length);
	fake_put(object, 32, kind << 2 | 1u << 5 | (is_ascii ? 1u << 6 : 0));
	memcpy((char *)object + (is_ascii ? 48 : 72), characters, length * kind);
}

static inline void
fake_bytes(void *object, const void *bytes, uint64_t length)
{
	memset(object, 0, 32);
	fake_put(object, 8, (uint64_t)&fake_types[5]);
	fake_put(object, 16, length);
	memcpy((char *)object + 32, bytes, length);
}

/* A code object with its texts; only what python_code.c looks at. */
struct fake_code {
	_Alignas(16) char code[256];
	char file[160];
	char name[160];
	char table[64];
};

static inline uint64_t
fake_code_make(struct fake_code *fake, const char *file, const char *name, uint32_t first_line, const char *table)
{
	memset(fake->code, 0, sizeof(fake->code));
	fake_string(fake->file, 1, 1, file, strlen(file));
	fake_string(fake->name, 1, 1, name, strlen(name));
	fake_bytes(fake->table, table, strlen(table));
	fake_put(fake->code, 8, (uint64_t)&fake_types[1]);
	fake_put(fake->code, 72, first_line);
	fake_put(fake->code, 112, (uint64_t)fake->file);
	fake_put(fake->code, 120, (uint64_t)fake->name);
	fake_put(fake->code, 128, (uint64_t)fake->name);
	fake_put(fake->code, 136, (uint64_t)fake->table);
	return (uint64_t)fake->code;
}

#endif
