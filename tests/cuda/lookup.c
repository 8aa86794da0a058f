/*
 * lookup.c - what a program sees of dlsym with the shim in front. Prints one "name value" per line; test_cuda.py says
 * what they should be. argv[1]: a library without CUDA names.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

int cuddle_next(void);
extern int cudaMalloc(void **addr, size_t bytes) __attribute__((weak));
extern int cuMemAlloc_v2(unsigned long long *addr, size_t bytes) __attribute__((weak));

int
main(int argc, char **argv)
{
	void *library = dlopen(argc > 1 ? argv[1] : NULL, RTLD_NOW | RTLD_LOCAL);
	unsigned long long device_addr = 0;
	void *addr = NULL;
	int (*cuddle)(void);

	printf("next %d\n", cuddle_next());
	dlerror();
	printf("invented %d\n", dlsym(library, "cuMemAlloc_v2") != NULL);
	printf("error_says_name %d\n", strstr(dlerror(), "cuMemAlloc_v2") != NULL);
	dlerror();
	cuddle = (int (*)(void))dlsym(library, "cuddle");
	printf("explicit %d\n", cuddle == NULL ? 0 : cuddle());
	printf("own_driver %d\n", ((int (*)(void *))dlsym(library, "cuMemFreeHost"))(NULL));
	printf("own_runtime %d\n", ((int (*)(void))dlsym(library, "cudaHostAlloc"))());
	printf("missing_cu %d\n", dlsym(library, "cu") != NULL);
	printf("missing_empty %d\n", dlsym(library, "") != NULL);
	printf("default %d\n", dlsym(RTLD_DEFAULT, "cuddle") != NULL);
	printf("puts %d\n", dlsym(RTLD_DEFAULT, "puts") == (void *)puts);
	errno = 77;
	if (cudaMalloc != NULL) // only the shim defines it here: no driver, no crash
		printf("weak_runtime %d\n", cudaMalloc(&addr, 100));
	if (cuMemAlloc_v2 != NULL)
		printf("weak_driver %d\n", cuMemAlloc_v2(&device_addr, 100));
	printf("errno %d\n", errno);
	return 0;
}
