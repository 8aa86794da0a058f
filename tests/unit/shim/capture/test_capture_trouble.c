/*
 * test_capture_trouble.c - what is left of a capture when disk, limits, rights or the file itself are in the way?
 */
#include "unit.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include "capture_fixture.h"

/* What every failure to open must leave: a recorder that works and keeps nothing. */
static int
goes_on_in_private(const char *at)
{
	CHECK_IN_CHILD(!capture_file_open(at, "name"));
	for (uint64_t i = 1; i <= 3000; i++)
		CHECK_IN_CHILD(append_site(i) == i);
	capture_file_identified();
	capture_file_mark(KMEM_STATE_CLEAN_EXIT, 0, 1);
	capture_file_close();
	capture_file_remove();
	return 0;
}

static int
opens_as_nobody(void *unused)
{
	CHECK_IN_CHILD(geteuid() != 0 || (setgid(65534) == 0 && setuid(65534) == 0));
	return goes_on_in_private(folder);
}

static int
opens_below_a_file(void *unused)
{
	char below[160];

	snprintf(below, sizeof(below), "%s/below", path);
	write_file(path, "a file");
	return goes_on_in_private(below);
}

static int
opens_with_no_room(void *unused)
{
	struct rlimit limit = { KMEM_HEAD_BYTES - 1, KMEM_HEAD_BYTES - 1 };

	CHECK_IN_CHILD(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	return goes_on_in_private(folder);
}

TEST(what_cannot_be_opened_is_one_message_and_a_private_capture)
{
	static const struct {
		int (*run)(void *);
		int mode;
		const char *error;
	} cases[] = {
		{ opens_as_nobody, 0555, "EACCES" },
		{ opens_below_a_file, 0755, "ENOTDIR" },
		{ opens_with_no_room, 0755, "EFBIG" },
	};
	char text[4096];

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		chmod(folder, (mode_t)cases[i].mode);
		assert_int_equal(in_child_telling(cases[i].run, NULL, text, sizeof(text)), 0);
		assert_int_equal(strncmp(text, "kmemshim: ", 10), 0);
		assert_non_null(strstr(text, cases[i].error));
		assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1); // one line
		chmod(folder, 0755);
		if (cases[i].run == opens_below_a_file)
			unlink(path);
		assert_int_equal(access(path, F_OK), -1); // no empty file is left
	}
}

/* Appends until nothing fits, then checks that the rest still works and what is in the file is whole. */
static int
fills_up(void)
{
	struct capture capture;
	uint64_t stored = 0;

	while (append_site(stored + 1) != 0)
		CHECK_IN_CHILD(++stored < 1000000);
	CHECK_IN_CHILD(append_site(stored + 1) == 0);
	CHECK_IN_CHILD(capture_file_header()->losses[KMEM_LOST_GROWTH] >= 1);
	CHECK_IN_CHILD(capture_file_header()->losses[KMEM_LOST_GROWTH] <= KMEM_SECTION_COUNT);
	for (uint32_t i = 0; i < stored; i++) {
		struct kmem_site *site = capture_file_at(KMEM_SECTION_SITES, i);

		site->freed_bytes = site->allocated_bytes; // every page can be touched
	}
	capture_file_mark(KMEM_STATE_CLEAN_EXIT, 0, 1);
	capture_file_close();
	CHECK_IN_CHILD(capture_read(path, &capture));
	CHECK_IN_CHILD(!capture.has_holes);
	CHECK_IN_CHILD(capture_is_sealed(&capture));
	CHECK_IN_CHILD(capture_sites(&capture) == (long)stored);
	return 0;
}

static int
grows_into_a_limit(void *chunks)
{
	rlim_t bytes = KMEM_HEAD_BYTES + *(unsigned *)chunks * KMEM_CHUNK_BYTES;
	struct rlimit limit = { bytes, bytes };

	CHECK_IN_CHILD(setrlimit(RLIMIT_FSIZE, &limit) == 0); // SIGXFSZ would kill this child
	CHECK_IN_CHILD(capture_file_open(folder, "name"));
	return fills_up();
}

TEST(F2_a_file_size_limit_stops_growth_without_a_signal)
{
	static unsigned chunks[] = { 0, 1, 2, 3, 50 };
	char text[4096];

	for (size_t i = 0; i < ARRAY_LEN(chunks); i++) {
		assert_int_equal(in_child_telling(grows_into_a_limit, &chunks[i], text, sizeof(text)), 0);
		assert_int_equal(strncmp(text, "kmemshim: ", 10), 0);
		assert_non_null(strstr(text, "EFBIG"));
		unlink(path);
	}
}

static int
grows_into_a_full_disk(void *kib)
{
	char options[64];

	snprintf(options, sizeof(options), "size=%uk", *(unsigned *)kib);
	if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("tmpfs", folder, "tmpfs", 0, options) != 0)
		return 77;
	CHECK_IN_CHILD(capture_file_open(folder, "name") || *(unsigned *)kib * 1024 < KMEM_HEAD_BYTES);
	if (*(unsigned *)kib * 1024 < KMEM_HEAD_BYTES) {
		CHECK_IN_CHILD(access(path, F_OK) != 0);
		CHECK_IN_CHILD(append_site(1) == 1);
		return 0;
	}
	return fills_up(); // a touched hole would be SIGBUS
}

TEST(F2_a_full_disk_stops_growth_without_a_signal)
{
	static unsigned sizes[] = { 32, 128, 256, 1024, 3000 };
	char text[4096];

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		int status = in_child_telling(grows_into_a_full_disk, &sizes[i], text, sizeof(text));

		if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
			print_message("a small file system cannot be mounted here\n");
			skip();
		}
		assert_int_equal(status, 0);
		assert_int_equal(strncmp(text, "kmemshim: ", 10), 0);
		assert_non_null(strstr(text, "ENOSPC"));
	}
}

static int
loses_its_file(void *replacement)
{
	uint64_t stored = 0;

	CHECK_IN_CHILD(capture_file_open(folder, "name"));
	CHECK_IN_CHILD(append_site(1) == 1);
	unlink(path);
	if (replacement != NULL)
		write_file(path, replacement);
	while (append_site(stored + 1) != 0)
		CHECK_IN_CHILD(++stored < 100000);
	CHECK_IN_CHILD(capture_file_header()->losses[KMEM_LOST_GROWTH] >= 1);
	((struct kmem_site *)capture_file_at(KMEM_SECTION_SITES, 0))->allocated_bytes = 5;
	capture_file_mark(KMEM_STATE_CLEAN_EXIT, 0, 1);
	capture_file_close();
	capture_file_remove();
	return 0;
}

TEST(a_file_that_is_deleted_or_replaced_meanwhile_is_left_alone)
{
	char text[4096];

	assert_int_equal(in_child_telling(loses_its_file, NULL, text, sizeof(text)), 0);
	assert_non_null(strstr(text, "ENOENT"));
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(in_child_telling(loses_its_file, (void *)"another's", text, sizeof(text)), 0);
	assert_non_null(strstr(text, "ESTALE"));
	assert_file_says(path, "another's");
}

static int
goes_on_without_a_file(uint32_t stored)
{
	uint32_t index;

	CHECK_IN_CHILD(append_site(stored + 1) == 0);
	for (enum kmem_section i = KMEM_SECTION_SITES; i < KMEM_SECTION_COUNT; i++)
		CHECK_IN_CHILD(capture_file_append(i, 8, &index) == NULL && capture_file_count(i) == 0);
	for (uint32_t i = 0; i < stored; i++) {
		struct kmem_site *site = capture_file_at(KMEM_SECTION_SITES, i);

		CHECK_IN_CHILD(site->allocated_bytes == 0);
		site->allocated_bytes = 5;
	}
	CHECK_IN_CHILD(((const struct kmem_record *)capture_file_item(KMEM_SECTION_RECORDS, 0))->bytes == 0);
	capture_file_mark(KMEM_STATE_CLEAN_EXIT, 0, 1);
	capture_file_close();
	capture_file_remove();
	return 0;
}

static int
loses_what_it_had(void *longer)
{
	struct stat status;
	uint64_t stored = 0;

	CHECK_IN_CHILD(capture_file_open(folder, "name"));
	while (stored < 3000)
		CHECK_IN_CHILD(append_site(++stored) != 0);
	CHECK_IN_CHILD(stat(path, &status) == 0 && truncate(path, 0) == 0);
	if (longer == NULL) { // as the handler for SIGBUS does
		CHECK_IN_CHILD(capture_file_abandon());
	} else { // zeros, and no signal: growth notices
		CHECK_IN_CHILD(truncate(path, status.st_size) == 0);
		for (unsigned i = 0; i < 100000 && append_site(1) != 0; i++)
			;
	}
	return goes_on_without_a_file((uint32_t)stored);
}

TEST(what_was_cut_is_given_up_and_stays_so)
{
	char text[4096];

	for (unsigned is_longer = 0; is_longer < 2; is_longer++) {
		assert_int_equal(in_child_telling(loses_what_it_had, is_longer != 0 ? path : NULL, text, sizeof(text)), 0);
		assert_non_null(strstr(text, "was cut short"));
		assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1); // one line
		unlink(path);
	}
}

/* The hook that a signal handler interrupted, which forked, goes on; the child has given up rights, or somebody deleted the file. */
static int
writes_on_without_the_file(void *context)
{
	uint64_t *record = context;
	uint32_t index;

	capture_file_privatize();
	*record = 2;
	capture_file_lost(KMEM_LOST_EVENTS, 5);
	return capture_file_append(KMEM_SECTION_RECORDS, 1024, &index) == NULL ? 0 : 1;
}

TEST(a_child_that_was_forked_out_of_a_hook_leaves_a_file_alone_that_it_cannot_open)
{
	uint32_t index;
	char elsewhere[sizeof(path) + 8];

	assert_true(capture_file_open(folder, "name"));
	uint64_t *record = capture_file_append(KMEM_SECTION_RECORDS, 1024, &index);
	*record = 1;
	snprintf(elsewhere, sizeof(elsewhere), "%s.moved", path);
	assert_int_equal(rename(path, elsewhere), 0);
	assert_int_equal(in_child(writes_on_without_the_file, record), 0);
	assert_int_equal(*record, 1);
	assert_int_equal(capture_file_header()->losses[KMEM_LOST_EVENTS], 0);
}

RUN_TESTS(make_folder, remove_folder)
