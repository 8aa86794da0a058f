/*
 * first_in_line.c - linked last: the shim inside a program takes its place to be behind the sanitizer's malloc, for that is what the
 * loader would find first. Its hooks are asked first all the same.
 */
#include <stdbool.h>

#include "base/real_libc.h"
#include "tables/pointer_map.h"

/* The address sanitizer's blocks are 32 bytes apart at least, as glibc's; the thread sanitizer's are not. */
#ifdef __SANITIZE_ADDRESS__
#define ARE_OWN true
#else
#define ARE_OWN false
#endif

__attribute__((constructor)) static void
stand_in_front(void)
{
	real_libc_front = (struct real_libc_front){ 0 };
	pointer_map_start(ARE_OWN);
}
