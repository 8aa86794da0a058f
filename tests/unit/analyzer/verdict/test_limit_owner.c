/*
 * test_limit_owner.c - whose limit is it, by the name of the cgroup?
 */
#include "test.h"

#include "verdict/limit_owner.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const struct {
	const char *path;
	const char *owner; // NULL: it does not tell
} paths[] = {
	{ "/sys/fs/cgroup/memory/slurm/uid_0/job_41/step_0/task_0", "Slurm job 41 (sbatch --mem)" },
	{ "/sys/fs/cgroup/system.slice/slurmstepd.scope/job_7/step_0/user/task_0", "Slurm job 7 (sbatch --mem)" },
	{ "/sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podab_cd.slice/cri-containerd-" ID
	  ".scope",
	  "a container of Kubernetes (resources.limits.memory)" },
	{ "/sys/fs/cgroup/memory/kubepods/besteffort/podab-cd/" ID, "a container of Kubernetes (resources.limits.memory)" },
	{ "/sys/fs/cgroup/memory/docker/" ID, "Docker container 0123456789ab (docker run --memory)" },
	{ "/sys/fs/cgroup/system.slice/docker-" ID ".scope", "Docker container 0123456789ab (docker run --memory)" },
	{ "/sys/fs/cgroup/system.slice/train.service", "unit train.service (MemoryMax)" },
	{ "/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/app.slice/run-u5.scope",
	  "unit run-u5.scope (MemoryMax)" },
	{ "/sys/fs/cgroup/system.slice/docker.service", "unit docker.service (MemoryMax)" },
	{ "/sys/fs/cgroup", NULL },
	{ "", NULL },
	{ "/sys/fs/cgroup/user.slice", NULL },
	{ "/sys/fs/cgroup/mine/job_3", NULL },
	{ "/sys/fs/cgroup/slurm/job_", NULL },
	{ "/sys/fs/cgroup/.service", NULL },
};

TEST(names_of_cgroups)
{
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		char text[LIMIT_OWNER_BYTES];
		bool is_known = limit_owner_of(paths[i].path, text);

		if (is_known != (paths[i].owner != NULL))
			fail_msg("%s: %s", paths[i].path, is_known ? text : "not known");
		if (is_known)
			assert_string_equal(text, paths[i].owner);
	}
}

RUN_TESTS(NULL, NULL)
