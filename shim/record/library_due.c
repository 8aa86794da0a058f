/* library_due.c - see library_due.h. */
#include "record/library_due.h"

_Atomic uint64_t library_due_next_ticks;
_Atomic uint64_t library_due_next_switch_ticks;
