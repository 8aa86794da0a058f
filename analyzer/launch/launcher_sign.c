/*
 * launcher_sign.c - writes into the capture how its program ended.
 *
 * The counters of kills for memory are read first of all: the sooner after the death, the less another process's kill
 * can be taken for this one. One pwrite of one checksummed struct, at a place that the recorder never writes.
 *
 * When failing  the capture stays as it was: unsigned, which the verdict allows for.
 */
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/read_each.h"
#include "base/regular_file.h"
#include "base/text_start.h"
#include "capture/kill_counters.h"
#include "kmem_words.h"
#include "launch/launcher.h"
#include "launch/launcher_memory.h"

/*
 * Opens a capture of this launch and reads the part of its head that says so; -1 = it is of another. This open file is signed later: in
 * a folder that others can write, the name may lead elsewhere by then.
 */
static int
open_own(const struct launch *launch, const char *path, struct kmem_header *header)
{
	int file = launcher_memory_open(strrchr(path, '/') + 1);

	if (file < 0)
		file = regular_file_open(path, O_RDWR | O_NOFOLLOW, NULL);

	if (file >= 0 && pread(file, header, sizeof(*header), 0) == (ssize_t)sizeof(*header) &&
	    memcmp(header->magic, KMEM_MAGIC, 8) == 0 && kmem_version_is_read(header->version) &&
	    header->endian == KMEM_ENDIAN && header->identity.pid == (uint32_t)launch->pid &&
	    strncmp(header->identity.session, launch->session, sizeof(header->identity.session)) == 0)
		return file;
	regular_file_close(&file);
	return -1;
}

/*
 * The capture of the process's last image: the ones before were replaced by exec and did not end this way. Returns the open file, or -1.
 */
static int
find_capture(const struct launch *launch, char *path, struct kmem_header *found)
{
	OWNED struct kmem_header *header = memory_zeroed(1, sizeof(*header));
	int found_file = -1;

	path[0] = '\0';
	EACH_NAME (name, launch->folder) {
		const char *candidate = TEXT(PATH_MAX, "%s/%s", launch->folder, name);
		int file;

		if (!text_ends(name, ".kmem") || (file = open_own(launch, candidate, header)) < 0)
			continue;
		if (atomic_load_explicit(&header->state, memory_order_relaxed) == KMEM_STATE_EXEC_REPLACED ||
		    (found_file >= 0 && header->identity.start_monotonic_ns < found->identity.start_monotonic_ns)) {
			(void)close(file);
			continue;
		}
		regular_file_close(&found_file);
		found_file = file;
		memcpy(found, header, sizeof(*found));
		(void)snprintf(path, PATH_MAX, "%s", candidate);
	}
	return found_file;
}

void
launcher_sign(const struct launch *launch, char *path)
{
	OWNED struct kmem_header *header = memory_zeroed(1, sizeof(*header));
	struct kmem_launcher signature;
	int file = find_capture(launch, path, header);

	memset(&signature, 0, sizeof(signature));
	if (file >= 0) {
		header->identity.cgroup_path[KMEM_TEXT_BYTES - 1] = '\0';
		header->identity.limit_path[KMEM_TEXT_BYTES - 1] = '\0';
		kill_counters_read(&header->identity, &signature.after);
		kill_counters_leave_out(&signature.after, &header->identity.before, launch->killed_looks);
		signature.is_filled = 1;
		signature.wait_status = launch->wait_status;
		signature.flags = (launch->has_system_allocators ? KMEM_LAUNCHER_SYSTEM_ALLOCATORS : 0) |
		                  (launch->killed_looks != 0 ? KMEM_LAUNCHER_LOOK_KILLED : 0);
		signature.max_resident_bytes = launch->max_resident_bytes;
		signature.ended_realtime_ns = launch->ended_realtime_ns;
		signature.checksum = kmem_checksum(KMEM_CHECKSUM_START, (const char *)&signature + sizeof(signature.checksum),
		                                   sizeof(signature) - sizeof(signature.checksum));
		(void)!pwrite(file, &signature, sizeof(signature), offsetof(struct kmem_header, launcher));
		(void)close(file);
	}
}
