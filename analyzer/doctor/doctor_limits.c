/*
 * doctor_limits.c - limits of a process that a shell sets (ulimit): see doctor.h.
 */
#include "doctor/doctor.h"

#include <sys/resource.h>

#include "base/units.h"

// the recorder opens one for a moment; with such a limit a program that opens files by the dozen is near it
#define FILES_FEW 64

static bool
find_limit(__rlimit_resource_t resource, uint64_t *limit)
{
	struct rlimit found;

	*limit = UINT64_MAX;
	if (getrlimit(resource, &found) == 0 && found.rlim_cur != RLIM_INFINITY)
		*limit = found.rlim_cur;
	return *limit != UINT64_MAX;
}

static void
check_locked(struct doctor *doctor)
{
	uint64_t limit;

	if (find_limit(RLIMIT_MEMLOCK, &limit))
		doctor_add(doctor, DOCTOR_OK, "ulimit -l", "",
		           "a program may lock %s, as without recording: mlockall leaves out what is the recorder's",
		           UNITS_BYTES(limit));
}

void
doctor_check_limits(struct doctor *doctor)
{
	uint64_t limit;

	if (find_limit(RLIMIT_AS, &limit))
		doctor_add(doctor, DOCTOR_NOTE, "ulimit -v",
		           "raise it while recording, or the program may reach it earlier than usual",
		           "the address space is limited to %s, and recording uses a part of it", UNITS_BYTES(limit));
	if (find_limit(RLIMIT_DATA, &limit))
		doctor_add(doctor, DOCTOR_NOTE, "ulimit -d",
		           "raise it while recording, or the program may reach it earlier than usual",
		           "private memory is limited to %s, and recording uses a part of it", UNITS_BYTES(limit));
	if (find_limit(RLIMIT_FSIZE, &limit) && limit < DOCTOR_ROOM_NEEDED)
		doctor_add(doctor, DOCTOR_PROBLEM, "ulimit -f", "ulimit -f unlimited",
		           "files are limited to %s: captures would be cut off there", UNITS_BYTES(limit));
	if (find_limit(RLIMIT_NOFILE, &limit) && limit < FILES_FEW)
		doctor_add(doctor, DOCTOR_NOTE, "ulimit -n", "ulimit -n 1024",
		           "%llu files may be open, and recording opens one more for a moment", (unsigned long long)limit);
	check_locked(doctor);
}
