/*
 * reentry_guard.c - the one word per thread behind reentry_guard.h.
 */
#include "reentry_guard.h"

__thread unsigned reentry_guard_depth __attribute__((tls_model("initial-exec")));
