/*
 * hooks_new_entries.h - what the assembly of operator new (hooks_new_entries_*.c) and hooks_new.c must know alike.
 */
#ifndef HOOKS_NEW_ENTRIES_H
#define HOOKS_NEW_ENTRIES_H

#include "base/real_new.h"

#define PAGE_SHIFT 12
#define PAGES_BITS 12
#define ROW_BITS 10
#define ROWS_MAX (1u << ROW_BITS) // row 0 is nobody's
#define ROUTE_BYTES 16

#define TEXT_OF(word) #word
#define TEXT(word) TEXT_OF(word)
/* Between strings the formatter takes a name better than a call. */
#define PAGE_SHIFT_TEXT TEXT(PAGE_SHIFT)
#define PAGES_BITS_TEXT TEXT(PAGES_BITS)
#define ROW_BITS_TEXT TEXT(ROW_BITS)
#define ROW_BYTES_TEXT TEXT(REAL_NEW_COUNT) " * " TEXT(ROUTE_BYTES)

#endif
