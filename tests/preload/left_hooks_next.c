/* left_hooks_next.c - between us and libc: a signal comes in the middle of valloc(). */
#include <signal.h>
#include <stdlib.h>

static _Alignas(4096) char block[8192];

void *valloc(size_t bytes);

void *
valloc(size_t bytes)
{
	raise(SIGUSR1);
	return bytes <= sizeof(block) ? block : NULL;
}
