/*
 * hooks_new_entries.h - what the assembly of operator new (hooks_new_entries_*.c) and hooks_new.c must know alike.
 */
#ifndef HOOKS_NEW_ENTRIES_H
#define HOOKS_NEW_ENTRIES_H

#include "base/real_new.h"
#include "kmem_format.h"

/*
 * Which library's code is at this address: rows first, then a pointer for each GiB of addresses, to the numbers of rows of its pages. Each
 * page has an entry of its own: no two pages ever compete for one. Address space that costs memory only where it is used.
 */
#define PAGE_SHIFT 12
#define REGION_SHIFT 30
#define REGION_PAGES (1u << (REGION_SHIFT - PAGE_SHIFT))
#define REGIONS_MAX (1u << (KMEM_ADDRESS_BITS - REGION_SHIFT))
#define ROWS_MAX 16384 // row 0 is empty. A process that may have 65,530 mappings has fewer libraries
#define ROUTE_BYTES 16

#define TEXT_OF(word) #word
#define TEXT(word) TEXT_OF(word)
/* Between strings the formatter takes a name better than a call. */
#define PAGE_SHIFT_TEXT TEXT(PAGE_SHIFT)
#define PAGE_BITS_TEXT TEXT(REGION_SHIFT) " - " TEXT(PAGE_SHIFT)
#define REGION_SHIFT_TEXT TEXT(REGION_SHIFT)
#define REGIONS_BITS_TEXT TEXT(KMEM_ADDRESS_BITS) " - " TEXT(REGION_SHIFT)
#define ROW_BYTES_TEXT TEXT(REAL_NEW_COUNT) " * " TEXT(ROUTE_BYTES)
#define ROWS_BYTES_TEXT TEXT(ROWS_MAX) " * " ROW_BYTES_TEXT

#endif
