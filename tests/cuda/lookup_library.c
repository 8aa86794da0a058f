/*
 * lookup_library.c - built twice, as two libraries (WHICH=1, 2) that define the same names; the first asks for the
 * next one, as interposers do.
 */
#include <dlfcn.h>
#include <stddef.h>

int cuddle(void); // "cu", but not CUDA
int cuddle_next(void);
int cuMemFreeHost(void *unused); // CUDA's name, on something of its own
int cudaHostAlloc(void);

int
cuMemFreeHost(void *unused)
{
	return unused == NULL ? 40 + WHICH : 0;
}

int
cudaHostAlloc(void)
{
	return 50 + WHICH;
}

int
cuddle(void)
{
	return WHICH;
}

int
cuddle_next(void)
{
	int (*next)(void) = (int (*)(void))dlsym(RTLD_NEXT, "cuddle");

	return next == NULL ? 0 : next();
}
