/*
 * symbolizer.h - which function, file and line is at this address of an ELF file?
 *
 * The one door to elfutils. A file is used only when it is the one that was recorded (build-id, else size and time);
 * separate debug files are found the usual way (build-id, debug link, /usr/lib/debug). Nothing is asked of the network.
 *
 * When failing  no names; one line in the notices per cause.
 */
#ifndef SYMBOLIZER_H
#define SYMBOLIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text_pool.h"
#include "symbols/symbol_type.h"
#include "symbols/thread_frame.h"

struct symbolizer;
struct symbolizer_file; // one ELF object, opened at the first address that is asked for

struct symbol_frame {
	const char *function; // readable, "" when unknown; of the pool
	const char *file;     // "" when unknown; of the pool
	uint32_t line;        // 0 = unknown
};

struct symbolizer_identity {
	const char *path; // of the pool
	const uint8_t *build_id;
	uint32_t build_id_bytes; // 0 = none
	uint64_t size_bytes;     // 0 = unknown; compared when there is no build-id
	uint64_t mtime_ns;       // 0 = unknown; the same
};

/* sysroot: prefix of every path, tried first; NULL = none. The texts live in `pool`, which must outlive the symbolizer. */
struct symbolizer *symbolizer_new(struct text_pool *pool, const char *sysroot);
void symbolizer_free(struct symbolizer *symbolizer);

/* The same file for the same path and build-id. Opens nothing. */
struct symbolizer_file *symbolizer_file(struct symbolizer *symbolizer, const struct symbolizer_identity *identity);

/*
 * address   as in the file's symbol table (load bias taken off)
 * is_exact  false: a return address, so the call before it is meant
 * frames    out: innermost first, at least one; of the pool, the same array for the same question
 */
size_t symbolizer_resolve(struct symbolizer *symbolizer, struct symbolizer_file *file, uint64_t address, bool is_exact,
                          const struct symbol_frame **frames);

/*
 * Why nothing of this file has a name: "is not the build that was recorded (build id X, now Y)", "is not on this machine"; of the pool.
 * NULL = it is here, or nothing was asked of it yet.
 */
const char *symbolizer_absence(const struct symbolizer_file *file);

/*
 * Types of C and C++, by debug information alone; NULL = not known. They live in the pool.
 *
 * address  of a variable's begin, as in the file's symbol table; thread-local: from the beginning of the file's part
 * name     of a class, with its namespaces: "store::cache"
 */
const struct symbol_type *symbolizer_variable(struct symbolizer *symbolizer, struct symbolizer_file *file,
                                              uint64_t address, bool is_thread_local);
const struct symbol_type *symbolizer_class(struct symbolizer *symbolizer, struct symbolizer_file *file,
                                           const char *name);

/*
 * The word at this offset of what has the type. False: nobody knows.
 *
 * name   out: ".newest.data", "[*].data" of one of many; "" = the whole, or parts that have no name for people
 * leads  out: the type of what it points to; NULL = it is no pointer, or not known
 */
bool symbolizer_member(const struct symbol_type *type, int64_t offset, char name[SYMBOL_MEMBER_BYTES],
                       const struct symbol_type **leads);

/* A local variable, or an argument. */
struct symbol_local {
	const char *name;
	const char *function; // as in struct symbol_frame
	const char *file;     // the same
	uint32_t line;        // at which it is declared; 0 = unknown
	uint64_t offset;      // of the place in it
	const struct symbol_type *type;
};

/* Who called the function of this frame, whose cfa becomes known. caller: its code_addr is an address in the process. */
bool symbolizer_caller(struct symbolizer *symbolizer, struct symbolizer_file *file, struct thread_frame *frame,
                       struct thread_frame *caller);
/*
 * Which variable of the frame is at this place: an address of the stack, or the number of a register? False: nobody knows, or what is there
 * is no pointer: a word in it was left over.
 */
bool symbolizer_local(struct symbolizer *symbolizer, struct symbolizer_file *file, const struct thread_frame *frame,
                      uint64_t place, struct symbol_local *local);

/* Lines for the report: files that are not here, or not the ones that were recorded. Owned by the symbolizer. */
size_t symbolizer_notices(struct symbolizer *symbolizer, const char *const **notices);

#endif
