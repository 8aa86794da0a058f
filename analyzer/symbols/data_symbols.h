/*
 * data_symbols.h - which variable or function of an ELF file is at this address, and where is the one of a name?
 *
 * For looks into a running process: the symbol tables of the file alone (.symtab, else .dynsym), no debug information.
 *
 * When failing  NULL, or false: no names.
 */
#ifndef DATA_SYMBOLS_H
#define DATA_SYMBOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text_pool.h"

struct data_symbols;

enum data_symbol_kind { DATA_SYMBOL_VARIABLE, DATA_SYMBOL_FUNCTION, DATA_SYMBOL_THREAD_LOCAL, DATA_SYMBOL_KINDS };

/* Names live in the pool, which must outlive it. */
struct data_symbols *data_symbols_open(const char *path, struct text_pool *pool);
void data_symbols_close(struct data_symbols *symbols);

/* What the first page of the file's image has as its address in the file's tables: the load bias is the mapping's start less this. */
uint64_t data_symbols_first_addr(const struct data_symbols *symbols);

/* Which file it is: NULL = it has no build-id, *bytes: out. */
const void *data_symbols_build_id(const struct data_symbols *symbols, size_t *bytes);
uint64_t data_symbols_file_bytes(const struct data_symbols *symbols);

/* addr: as in the file's tables; thread-local: from the beginning of the file's part. *name: readable, of the pool. */
bool data_symbols_at(struct data_symbols *symbols, enum data_symbol_kind kind, uint64_t addr, const char **name,
                     uint64_t *offset);

/* As it stands in the table. 0 = there is none. */
uint64_t data_symbols_named(const struct data_symbols *symbols, const char *name);

#endif
