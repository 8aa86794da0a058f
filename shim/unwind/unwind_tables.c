/*
 * unwind_tables.c - see unwind_tables.h.
 *
 * The formats are those of the Linux Standard Base (.eh_frame and .eh_frame_hdr) and of the DWARF 5
 * standard (6.4).
 */
#include "unwind/unwind_tables.h"

#include <string.h>

#include "base/arch.h"

enum {
	ENCODING_ABSPTR = 0x00,
	ENCODING_ULEB128 = 0x01,
	ENCODING_UDATA2 = 0x02,
	ENCODING_UDATA4 = 0x03,
	ENCODING_UDATA8 = 0x04,
	ENCODING_SLEB128 = 0x09,
	ENCODING_SDATA2 = 0x0a,
	ENCODING_SDATA4 = 0x0b,
	ENCODING_SDATA8 = 0x0c,
	ENCODING_PCREL = 0x10,
	ENCODING_DATAREL = 0x30,
	ENCODING_ALIGNED = 0x50,
	ENCODING_OMIT = 0xff,
};

uint64_t
unwind_bytes_fixed(struct unwind_bytes *from, unsigned count)
{
	uint64_t value = 0;

	if ((uint64_t)(from->end - from->at) < count) {
		from->is_damaged = true;
		from->at = from->end;
		return 0;
	}
	memcpy(&value, from->at, count); // little-endian, see base/arch.h
	from->at += count;
	return value;
}

uint8_t
unwind_bytes_u8(struct unwind_bytes *from)
{
	return (uint8_t)unwind_bytes_fixed(from, 1);
}

void
unwind_bytes_skip(struct unwind_bytes *from, uint64_t count)
{
	if ((uint64_t)(from->end - from->at) < count) {
		from->is_damaged = true;
		from->at = from->end;
		return;
	}
	from->at += count;
}

static uint64_t
bytes_leb128(struct unwind_bytes *from, bool is_signed)
{
	uint64_t value = 0;
	unsigned shift = 0;
	uint8_t byte;

	do {
		byte = unwind_bytes_u8(from);
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	if (is_signed && shift < 64 && (byte & 0x40))
		value |= ~UINT64_C(0) << shift;
	return value;
}

uint64_t
unwind_bytes_uleb128(struct unwind_bytes *from)
{
	return bytes_leb128(from, false);
}

int64_t
unwind_bytes_sleb128(struct unwind_bytes *from)
{
	return (int64_t)bytes_leb128(from, true);
}

/* A value without its base. */
static uint64_t
bytes_pointer_format(struct unwind_bytes *from, uint8_t encoding)
{
	switch (encoding & 0x0f) {
	case ENCODING_ABSPTR:
	case ENCODING_UDATA8:
	case ENCODING_SDATA8:
		return unwind_bytes_fixed(from, 8);
	case ENCODING_UDATA2:
		return unwind_bytes_fixed(from, 2);
	case ENCODING_UDATA4:
		return unwind_bytes_fixed(from, 4);
	case ENCODING_SDATA2:
		return (uint64_t)(int64_t)(int16_t)unwind_bytes_fixed(from, 2);
	case ENCODING_SDATA4:
		return (uint64_t)(int64_t)(int32_t)unwind_bytes_fixed(from, 4);
	case ENCODING_ULEB128:
		return unwind_bytes_uleb128(from);
	case ENCODING_SLEB128:
		return (uint64_t)unwind_bytes_sleb128(from);
	default:
		from->is_damaged = true;
		return 0;
	}
}

uint64_t
unwind_bytes_pointer(struct unwind_bytes *from, uint8_t encoding, uint64_t data_base)
{
	uint64_t here = (uintptr_t)from->at;

	switch (encoding & 0xf0) {
	case 0:
		return bytes_pointer_format(from, encoding);
	case ENCODING_PCREL:
		return here + bytes_pointer_format(from, encoding);
	case ENCODING_DATAREL:
		if (data_base != 0)
			return data_base + bytes_pointer_format(from, encoding);
		break;
	case ENCODING_ALIGNED:
		unwind_bytes_skip(from, -here & 7);
		return unwind_bytes_fixed(from, 8);
	default:
		break;
	}
	from->is_damaged = true;
	return 0;
}

/* ---- entries of .eh_frame ---- */

/* The entry at `addr` without its length; false when it is the terminator or does not fit the tables. */
static bool
entry_open(const struct unwind_tables *tables, uint64_t addr, struct unwind_bytes *entry)
{
	if (addr < tables->low_addr || addr >= tables->high_addr)
		return false;
	*entry = (struct unwind_bytes){ (const uint8_t *)(uintptr_t)addr, (const uint8_t *)(uintptr_t)tables->high_addr,
		                            false };

	uint64_t length = unwind_bytes_fixed(entry, 4);

	/* 0xffffffff would announce a 64-bit length: no linker writes that into .eh_frame. */
	if (entry->is_damaged || length < 4 || length > (uint64_t)(entry->end - entry->at))
		return false;
	entry->end = entry->at + length;
	return true;
}

static bool
common_parse(const struct unwind_tables *tables, uint64_t addr, struct unwind_common *common)
{
	struct unwind_bytes entry;

	if (!entry_open(tables, addr, &entry) || unwind_bytes_fixed(&entry, 4) != 0)
		return false;
	*common = (struct unwind_common){ .pointer_encoding = ENCODING_ABSPTR };

	uint8_t version = unwind_bytes_u8(&entry);
	const char *augmentation = (const char *)entry.at;

	while (unwind_bytes_u8(&entry) != 0)
		; // reading past the end gives 0, too
	if (entry.is_damaged || (version != 1 && version != 3 && version != 4))
		return false;
	if (version == 4)
		unwind_bytes_skip(&entry, 2); // address and segment selector size
	common->code_factor = unwind_bytes_uleb128(&entry);
	common->data_factor = unwind_bytes_sleb128(&entry);
	if ((version == 1 ? unwind_bytes_u8(&entry) : unwind_bytes_uleb128(&entry)) != ARCH_DWARF_RETURN)
		common->is_foreign = true;

	if (augmentation[0] == 'z') {
		uint64_t length = unwind_bytes_uleb128(&entry);
		struct unwind_bytes data = entry;

		common->has_augmentation = true;
		unwind_bytes_skip(&entry, length);
		data.end = entry.at;
		for (const char *letter = augmentation + 1; *letter != '\0'; letter++) {
			if (*letter == 'R') {
				common->pointer_encoding = unwind_bytes_u8(&data);
			} else if (*letter == 'P') {
				uint8_t encoding = unwind_bytes_u8(&data);

				if (encoding == ENCODING_ALIGNED)
					(void)unwind_bytes_pointer(&data, encoding, 0);
				else if (encoding != ENCODING_OMIT)
					(void)bytes_pointer_format(&data, encoding);
			} else if (*letter == 'L') {
				(void)unwind_bytes_u8(&data);
			} else if (*letter == 'S') {
				common->is_signal = true;
			} else if (ARCH_LINK_REGISTER && *letter == 'B') {
				// return addresses are signed with another key: neither is looked at
			} else {
				common->is_foreign = true; // what follows has a meaning that we do not know
				break;
			}
		}
		if (data.is_damaged)
			return false;
	} else if (augmentation[0] != '\0') {
		common->is_foreign = true;
	}
	common->program = entry;
	return !entry.is_damaged;
}

/* The FDE at `addr`: its CIE, its first address, and its program. False when it does not cover `pc`. */
static bool
description_parse(const struct unwind_tables *tables, uint64_t addr, uint64_t pc, struct unwind_common *common,
                  uint64_t *begin, struct unwind_bytes *program)
{
	struct unwind_bytes entry;

	if (!entry_open(tables, addr, &entry))
		return false;

	uint64_t here = (uintptr_t)entry.at;
	uint64_t back = unwind_bytes_fixed(&entry, 4);

	if (back == 0 || back > here || !common_parse(tables, here - back, common))
		return false;
	*begin = unwind_bytes_pointer(&entry, common->pointer_encoding, 0);

	uint64_t length = bytes_pointer_format(&entry, common->pointer_encoding);

	if (common->has_augmentation)
		unwind_bytes_skip(&entry, unwind_bytes_uleb128(&entry));
	*program = entry;
	return !entry.is_damaged && pc >= *begin && pc - *begin < length;
}

/* ---- .eh_frame_hdr ---- */

static uint64_t
table_value(const struct unwind_tables *tables, uint64_t addr, uint8_t encoding)
{
	struct unwind_bytes entry = { (const uint8_t *)(uintptr_t)addr, (const uint8_t *)(uintptr_t)tables->header_end_addr,
		                          false };

	return unwind_bytes_pointer(&entry, encoding, tables->header_addr);
}

/* Without a sorted table: entry after entry. */
static uint64_t
description_scan(const struct unwind_tables *tables, uint64_t frames_addr, uint64_t pc)
{
	struct unwind_bytes entry;

	for (uint64_t addr = frames_addr; entry_open(tables, addr, &entry); addr = (uintptr_t)entry.end) {
		struct unwind_common common;
		struct unwind_bytes program;
		uint64_t begin;

		if (description_parse(tables, addr, pc, &common, &begin, &program))
			return addr;
	}
	return 0;
}

struct header {
	struct unwind_bytes rest; // what follows the fields below
	uint8_t count_encoding;
	uint8_t table_encoding;
	uint64_t frames_addr;
};

static bool
header_open(const struct unwind_tables *tables, struct header *header)
{
	if (tables->header_addr >= tables->header_end_addr)
		return false;
	header->rest = (struct unwind_bytes){ (const uint8_t *)(uintptr_t)tables->header_addr,
		                                  (const uint8_t *)(uintptr_t)tables->header_end_addr, false };

	uint8_t version = unwind_bytes_u8(&header->rest);
	uint8_t frames_encoding = unwind_bytes_u8(&header->rest);

	header->count_encoding = unwind_bytes_u8(&header->rest);
	header->table_encoding = unwind_bytes_u8(&header->rest);
	if (version != 1 || frames_encoding == ENCODING_OMIT)
		return false;
	header->frames_addr = unwind_bytes_pointer(&header->rest, frames_encoding, tables->header_addr);
	return !header->rest.is_damaged;
}

uint64_t
unwind_tables_frames(const struct unwind_tables *tables)
{
	struct header header;

	return header_open(tables, &header) ? header.frames_addr : 0;
}

/* Address of the FDE that may cover pc, 0 = none. */
static uint64_t
description_find(const struct unwind_tables *tables, uint64_t pc)
{
	struct header header;

	if (!header_open(tables, &header))
		return 0;
	if (header.count_encoding == ENCODING_OMIT || header.table_encoding == ENCODING_OMIT)
		return description_scan(tables, header.frames_addr, pc);

	uint64_t count = unwind_bytes_pointer(&header.rest, header.count_encoding, tables->header_addr);
	uint64_t table_addr = (uintptr_t)header.rest.at;
	uint64_t value_bytes = 0;

	switch (header.table_encoding & 0x0f) {
	case ENCODING_UDATA4:
	case ENCODING_SDATA4:
		value_bytes = 4;
		break;
	case ENCODING_ABSPTR:
	case ENCODING_UDATA8:
	case ENCODING_SDATA8:
		value_bytes = 8;
		break;
	default:
		return description_scan(tables, header.frames_addr, pc); // cannot be searched by halves
	}
	if (header.rest.is_damaged || count > (tables->header_end_addr - table_addr) / (2 * value_bytes))
		return 0;

	uint64_t low = 0;
	uint64_t high = count; // the entry wanted is the one before the first that starts after pc

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (table_value(tables, table_addr + middle * 2 * value_bytes, header.table_encoding) <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0)
		return 0;
	return table_value(tables, table_addr + (low - 1) * 2 * value_bytes + value_bytes, header.table_encoding);
}

bool
unwind_tables_find(const struct unwind_tables *tables, uint64_t pc, struct unwind_common *common, uint64_t *begin,
                   struct unwind_bytes *program)
{
	uint64_t addr = description_find(tables, pc);

	return addr != 0 && description_parse(tables, addr, pc, common, begin, program);
}
