/*
 * reentry_guard.c - the one word per thread behind reentry_guard.h.
 */
#include "base/reentry_guard.h"

__thread uint64_t reentry_guard_word __attribute__((tls_model("initial-exec")));
