/* hip_absent.c - a weak reference to hipMalloc where there is no HIP: prints what it answers. */
#include <stddef.h>
#include <stdio.h>

int hipMalloc(void **addr, size_t bytes) __attribute__((weak));

int
main(void)
{
	void *addr;

	printf("%d\n", hipMalloc != NULL ? hipMalloc(&addr, 10) : -1);
	return 0;
}
