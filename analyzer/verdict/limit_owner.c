/*
 * limit_owner.c - who set the limit of a cgroup (see limit_owner.h).
 *
 * When failing  it says that the path does not tell.
 */
#include "verdict/limit_owner.h"

#include <stdio.h>
#include <string.h>

#include "base/text_start.h"

#define ID_BYTES 12 // of a container's name, as `docker ps` shows it

static bool
is_hexadecimal(const char *text, size_t length)
{
	return length >= 32 && strspn(text, "0123456789abcdef") >= length;
}

bool
limit_owner_of(const char *path, char text[LIMIT_OWNER_BYTES])
{
	const char *job = strstr(path, "/job_");
	const char *last = strrchr(path, '/');

	if (job != NULL && strstr(path, "slurm") != NULL) {
		job += strlen("/job_");
		(void)snprintf(text, LIMIT_OWNER_BYTES, "Slurm job %.*s (sbatch --mem)", (int)strspn(job, "0123456789"), job);
		return strspn(job, "0123456789") != 0;
	}
	if (strstr(path, "/kubepods") != NULL) {
		(void)snprintf(text, LIMIT_OWNER_BYTES, "a container of Kubernetes (resources.limits.memory)");
		return true;
	}
	/* /docker/ID or /system.slice/docker-ID.scope */

	const char *id = strstr(path, "/docker");

	if (id != NULL && (id[7] == '/' || id[7] == '-') && is_hexadecimal(id + 8, strcspn(id + 8, "/."))) {
		(void)snprintf(text, LIMIT_OWNER_BYTES, "Docker container %.*s (docker run --memory)", ID_BYTES, id + 8);
		return true;
	}

	if (last != NULL && last[1] != '\0' && (text_ends(last + 2, ".service") || text_ends(last + 2, ".scope"))) {
		(void)snprintf(text, LIMIT_OWNER_BYTES, "unit %.80s (MemoryMax)", last + 1);
		return true;
	}
	return false;
}
