/*
 * unwind_tables.h - which entry of .eh_frame covers a code address, and how are its bytes read?
 *
 * Safe from   any hook: no state, no allocation. Reads nothing outside the two ranges of struct unwind_tables.
 * When failing  false: no entry, or damaged ones.
 */
#ifndef UNWIND_TABLES_H
#define UNWIND_TABLES_H

#include <stdbool.h>
#include <stdint.h>

/* The unwind tables of one object, in memory. Some linkers put the two parts into different segments. */
struct unwind_tables {
	uint64_t header_addr;     // .eh_frame_hdr
	uint64_t header_end_addr; // of the readable bytes from there on
	uint64_t low_addr;        // of the readable bytes around .eh_frame
	uint64_t high_addr;
};

/* Where the header says that .eh_frame is; 0 = a damaged header. Needs only the first two fields. */
uint64_t unwind_tables_frames(const struct unwind_tables *tables);

/* Bytes still to be read. Reading past the end gives 0 and sets is_damaged, for good. */
struct unwind_bytes {
	const uint8_t *at;
	const uint8_t *end;
	bool is_damaged;
};

/* What a CIE says about the FDEs that name it. */
struct unwind_common {
	uint64_t code_factor;
	int64_t data_factor;
	uint8_t pointer_encoding;
	bool has_augmentation;
	bool is_signal;
	bool is_foreign; // says things that we do not know: correct, but not for us
	struct unwind_bytes program;
};

/*
 * The entry that covers `pc`.
 *
 * begin    out: its first code address
 * program  out: its call frame instructions, to be run after those of `common`
 */
bool unwind_tables_find(const struct unwind_tables *tables, uint64_t pc, struct unwind_common *common, uint64_t *begin,
                        struct unwind_bytes *program);

/* One value each; count is at most 8. */
uint64_t unwind_bytes_fixed(struct unwind_bytes *from, unsigned count);
uint8_t unwind_bytes_u8(struct unwind_bytes *from);
uint64_t unwind_bytes_uleb128(struct unwind_bytes *from);
int64_t unwind_bytes_sleb128(struct unwind_bytes *from);
void unwind_bytes_skip(struct unwind_bytes *from, uint64_t count);

/*
 * An encoded pointer that we need the value of. Indirect, text- and function-relative ones do not occur
 * there on x86-64; only .eh_frame_hdr has data-relative ones (data_base is its address, 0 = refused).
 */
uint64_t unwind_bytes_pointer(struct unwind_bytes *from, uint8_t encoding, uint64_t data_base);

#endif
