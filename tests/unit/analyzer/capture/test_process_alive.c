/*
 * test_process_alive.c - does the process of a capture run now?
 */
#include "test.h"

#include <unistd.h>

#include "capture/process_alive.h"

TEST(a_process_is_alive_by_pid_start_and_boot)
{
	struct kmem_identity identity = { .pid = (uint32_t)getpid() };
	FILE *file = fopen("/proc/self/stat", "r");
	char text[1024];

	assert_non_null(file);
	assert_non_null(fgets(text, sizeof(text), file));
	(void)fclose(file);
	assert_int_equal(sscanf(strrchr(text, ')'),
	                        ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d "
	                        "%*d %*d %*d %lu",
	                        &identity.start_ticks),
	                 1);
	file = fopen("/proc/sys/kernel/random/boot_id", "r");
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%39s", identity.boot_id), 1);
	(void)fclose(file);

	for (unsigned is_elsewhere = 0; is_elsewhere < 2; is_elsewhere++) {
		identity.pid_namespace = is_elsewhere; // 1 is none: then it is looked for among all
		assert_true(process_is_alive(&identity));
		identity.start_ticks++;
		assert_false(process_is_alive(&identity));
		identity.start_ticks--;
	}
	identity.boot_id[0] ^= 1;
	assert_false(process_is_alive(&identity));
	identity.boot_id[0] ^= 1;
	identity.pid = UINT32_MAX; // nobody's
	identity.start_ticks = UINT64_MAX;
	assert_false(process_is_alive(&identity));
}

RUN_TESTS(NULL, NULL)
