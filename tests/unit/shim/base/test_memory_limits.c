/*
 * test_memory_limits.c - are the limits found that could end this process?
 */
#include "unit.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>

#include "base/memory_limits.h"
#include "base/raw_sys.h"

#define CGROUPS "/sys/fs/cgroup/memory"
#define LIMIT_BYTES (96u << 20)

TEST(files_are_read_up_to_the_buffers_end)
{
	char path[] = "/tmp/kmemshim-unit-XXXXXX";
	char text[16];
	int fd = mkstemp(path);

	assert_int_equal(write(fd, "0123456789", 10), 10);
	close(fd);
	assert_int_equal(memory_limits_read_file(path, text, sizeof(text)), 10);
	assert_string_equal(text, "0123456789");
	assert_int_equal(memory_limits_read_file(path, text, 5), 4);
	assert_string_equal(text, "0123");
	assert_int_equal(memory_limits_read_file(path, text, 1), 0);
	assert_string_equal(text, "");
	unlink(path);
	assert_int_equal(memory_limits_read_file(path, text, sizeof(text)), 0);
	assert_string_equal(text, "");
}

static uint64_t
limit_of(const struct kmem_identity *identity, uint32_t kind)
{
	for (unsigned i = 0; i < KMEM_LIMITS_MAX; i++) {
		if (identity->limits[i].kind == kind)
			return identity->limits[i].bytes;
	}
	return 0;
}

TEST(the_machine_is_read)
{
	struct kmem_identity identity = { .page_bytes = 4096 };
	struct memory_limits_now now;
	struct sysinfo info;

	assert_int_equal(sysinfo(&info), 0);
	memory_limits_read(&identity);
	assert_int_equal(identity.machine_bytes, info.totalram * info.mem_unit);
	assert_int_equal(identity.swap_bytes, info.totalswap * info.mem_unit);
	assert_int_equal(limit_of(&identity, KMEM_LIMIT_MACHINE), identity.machine_bytes);
	memory_limits_read_now(&identity, &now);
	assert_true(now.resident_bytes > 100000 && now.resident_bytes < identity.machine_bytes);
	assert_true(now.available_bytes > 0 && now.available_bytes <= identity.machine_bytes);
	assert_true(now.limit_bytes <= identity.machine_bytes);
}

static int
reads_rlimits(void *unused)
{
	const uint64_t space = UINT64_C(1) << 47; // a sanitizer fits below it
	struct rlimit address_space = { space, space };
	struct rlimit data = { space - 4096, space - 4096 };
	struct kmem_identity identity = { .page_bytes = 4096 };

	memory_limits_read(&identity);
	CHECK_IN_CHILD(limit_of(&identity, KMEM_LIMIT_ADDRESS_SPACE) == 0);
	CHECK_IN_CHILD(limit_of(&identity, KMEM_LIMIT_DATA) == 0);
	CHECK_IN_CHILD(setrlimit(RLIMIT_AS, &address_space) == 0 && setrlimit(RLIMIT_DATA, &data) == 0);
	memset(&identity, 0, sizeof(identity));
	memory_limits_read(&identity);
	CHECK_IN_CHILD(limit_of(&identity, KMEM_LIMIT_ADDRESS_SPACE) == space);
	CHECK_IN_CHILD(limit_of(&identity, KMEM_LIMIT_DATA) == space - 4096);
	return 0;
}

/* As the program sets them while it runs. */
static int
reads_what_recording_leaves(void *unused)
{
	const size_t own = (size_t)64 << 20;
	const uint64_t space = UINT64_C(1) << 47;
	struct rlimit limit = { space, space };
	struct kmem_identity identity = { .page_bytes = 4096 };
	struct memory_limits_now before, now;

	memory_limits_read_now(&identity, &before);
	CHECK_IN_CHILD(before.space_limit_bytes == 0 && before.space_bytes != 0);
	CHECK_IN_CHILD(setrlimit(RLIMIT_AS, &limit) == 0 && raw_reserve(KMEM_OWN_CAPTURE, own, PROT_NONE) != NULL);
	memory_limits_read_now(&identity, &now);
	CHECK_IN_CHILD(now.space_limit_bytes == space - raw_reserved_bytes() && raw_reserved_bytes() >= own);
	CHECK_IN_CHILD(now.space_bytes < before.space_bytes + own / 2);
	limit.rlim_cur = own / 2;
	CHECK_IN_CHILD(setrlimit(RLIMIT_AS, &limit) == 0);
	memory_limits_read_now(&identity, &now);
	CHECK_IN_CHILD(now.space_limit_bytes == 0); // nothing is left, whatever the program does
	return 0;
}

TEST(process_limits_are_read_when_there_are_some)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur != RLIM_INFINITY) {
		print_message("this test itself runs under a limit\n");
		skip();
	}
	assert_int_equal(in_child(reads_rlimits, NULL), 0);
	assert_int_equal(in_child(reads_what_recording_leaves, NULL), 0);
}

static int
write_text(const char *folder, const char *file, const char *text)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", folder, file);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int result = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) ? 0 : -1;
	close(fd);
	return result;
}

struct groups {
	char outer[128];
	char inner[160];
};

static int
reads_its_group(void *context)
{
	const struct groups *groups = context;
	struct kmem_identity identity = { .page_bytes = 4096 };
	struct memory_limits_now now;

	CHECK_IN_CHILD(write_text(groups->inner, "cgroup.procs", "0") == 0);
	memory_limits_read(&identity);
	CHECK_IN_CHILD(identity.cgroup_version == 1);
	CHECK_IN_CHILD(strcmp(identity.cgroup_path, groups->inner) == 0);
	CHECK_IN_CHILD(strcmp(identity.limit_path, groups->outer) == 0);
	CHECK_IN_CHILD(limit_of(&identity, KMEM_LIMIT_CGROUP) == LIMIT_BYTES);
	CHECK_IN_CHILD(identity.before.cgroup_oom_kill != UINT64_MAX);
	CHECK_IN_CHILD(identity.before.cgroup_max_hits == 0);
	CHECK_IN_CHILD(identity.before.machine_oom_kill != UINT64_MAX);
	memory_limits_read_now(&identity, &now);
	CHECK_IN_CHILD(now.limit_bytes == LIMIT_BYTES);
	CHECK_IN_CHILD(now.cgroup_bytes < LIMIT_BYTES);
	CHECK_IN_CHILD(write_text(groups->outer, "memory.limit_in_bytes", "50331648") == 0); // changed while it runs
	memory_limits_read_now(&identity, &now);
	CHECK_IN_CHILD(now.limit_bytes == 50331648);
	return 0;
}

#define FOLLOW_NS UINT64_C(5000000000)

/* It begins outside, is moved into the inner one, and back. */
static int
is_moved(void *context)
{
	const struct groups *groups = context;
	struct kmem_identity identity = { .page_bytes = 4096 };
	struct memory_limits_now now;
	char back[KMEM_TEXT_BYTES];

	memory_limits_read(&identity);
	struct kmem_identity before = identity;
	snprintf(back, sizeof(back), "%s", identity.cgroup_path);
	CHECK_IN_CHILD(!memory_limits_follow(&identity, 1)); // it was not
	CHECK_IN_CHILD(write_text(groups->inner, "cgroup.procs", "0") == 0);
	CHECK_IN_CHILD(!memory_limits_follow(&identity, FOLLOW_NS)); // not yet time
	memory_limits_read_now(&identity, &now);
	CHECK_IN_CHILD(now.limit_bytes != LIMIT_BYTES);
	CHECK_IN_CHILD(memory_limits_follow(&identity, 1 + FOLLOW_NS));
	memory_limits_read_now(&identity, &now);
	CHECK_IN_CHILD(now.limit_bytes == LIMIT_BYTES && now.cgroup_bytes < LIMIT_BYTES);
	CHECK_IN_CHILD(!memory_limits_follow(&identity, 1 + 2 * FOLLOW_NS)); // it is still there
	CHECK_IN_CHILD(write_text(back, "cgroup.procs", "0") == 0);
	CHECK_IN_CHILD(memory_limits_follow(&identity, 1 + 3 * FOLLOW_NS));
	memory_limits_read_now(&identity, &now);
	CHECK_IN_CHILD(now.limit_bytes != LIMIT_BYTES);
	CHECK_IN_CHILD(memcmp(&before, &identity, sizeof(before)) == 0);
	return 0;
}

static int
in_groups(int (*act)(void *))
{
	struct groups groups;
	char number[32];

	snprintf(groups.outer, sizeof(groups.outer), CGROUPS "/kmemshim-unit-%d", (int)getpid());
	snprintf(groups.inner, sizeof(groups.inner), "%s/inner", groups.outer);
	snprintf(number, sizeof(number), "%u", LIMIT_BYTES);
	if (mkdir(groups.outer, 0755) != 0 || write_text(groups.outer, "memory.limit_in_bytes", number) != 0 ||
	    mkdir(groups.inner, 0755) != 0) {
		rmdir(groups.outer);
		print_message("no memory cgroup (version 1) can be made here\n");
		skip();
	}
	int status = in_child(act, &groups);
	rmdir(groups.inner);
	rmdir(groups.outer);
	return status;
}

TEST(the_limit_of_an_outer_group_is_found_with_its_owner)
{
	assert_int_equal(in_groups(reads_its_group), 0);
}

TEST(a_process_that_is_moved_is_followed)
{
	assert_int_equal(in_groups(is_moved), 0);
}

RUN_TESTS(NULL, NULL)
