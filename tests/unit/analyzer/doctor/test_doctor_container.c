/*
 * test_doctor_container.c - which limits of swap are told? Played in folders: the machine of a test may have none.
 */
#include "test.h"

#include <sys/stat.h>

#include "doctor/doctor.h"
#include "scratch.h"

#define GIB (UINT64_C(1) << 30)

static const struct {
	const char *what;
	uint32_t version;
	uint64_t machine_swap_bytes;
	const char *file; // of the limit, in the folder above the process's own
	const char *text;
	const char *said; // NULL = nothing
} cases[] = {
	{ "none may be used", 2, 4 * GIB, "memory.swap.max", "0\n", "0 B of the machine's 4.00 GiB" },
	{ "a part of it", 2, 4 * GIB, "memory.swap.max", "1073741824\n", "1.00 GiB of the machine's 4.00 GiB" },
	{ "more than there is", 2, 4 * GIB, "memory.swap.max", "8589934592\n", NULL },
	{ "no limit", 2, 4 * GIB, "memory.swap.max", "max\n", NULL },
	{ "the machine has none", 2, 0, "memory.swap.max", "0\n", NULL },
	{ "version 1 limits both together", 1, 4 * GIB, "memory.memsw.limit_in_bytes", "2147483648\n", "1.00 GiB of" },
	{ "version 1, no limit", 1, 4 * GIB, "memory.memsw.limit_in_bytes", "9223372036854771712\n", NULL },
};

TEST(swap_that_a_container_may_not_use_is_told)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct kmem_identity identity = { .machine_bytes = 16 * GIB, .shm_bytes = 8 * GIB };
		struct doctor doctor = { .count = 0 };
		const struct doctor_finding *found = NULL;
		char path[PATH_MAX];
		FILE *file;

		identity.cgroup_version = cases[i].version;
		identity.swap_bytes = cases[i].machine_swap_bytes;
		identity.limits[0] = (struct kmem_limit){ .kind = KMEM_LIMIT_CGROUP, .bytes = GIB };
		(void)snprintf(identity.limit_path, sizeof(identity.limit_path), "%s/case%zu", scratch_folder, i);
		assert_int_equal(mkdir(identity.limit_path, 0700), 0);
		(void)snprintf(path, sizeof(path), "%s/%s", identity.limit_path, cases[i].file);
		file = fopen(path, "w");
		assert_non_null(file);
		(void)fputs(cases[i].text, file);
		(void)fclose(file);
		(void)snprintf(identity.cgroup_path, sizeof(identity.cgroup_path), "%.200s/own", identity.limit_path);

		doctor_check_container(&doctor, &identity);
		for (size_t k = 0; k < doctor.count; k++) {
			if (strcmp(doctor.findings[k].where, "swap limit") == 0)
				found = &doctor.findings[k];
		}
		if ((found != NULL) != (cases[i].said != NULL) ||
		    (found != NULL &&
		     (strstr(found->what, cases[i].said) == NULL || strstr(found->what, identity.limit_path) == NULL)))
			fail_msg("%s: %s", cases[i].what, found != NULL ? found->what : "nothing is told");
		doctor_free(&doctor);
	}
}

RUN_TESTS_IN(scratch_make, scratch_remove)
