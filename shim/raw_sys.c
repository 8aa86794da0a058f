/* raw_sys.c - see raw_sys.h. */
#include "raw_sys.h"

_Atomic bool raw_sys_is_confined;
