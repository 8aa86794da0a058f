/*
 * test_memory_guard.c - is the guard passed once, where it should be, and is it written down what was held?
 *
 * A folder stands for the cgroup.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include "base/capture_life.h"
#include "base/real_libc.h"
#include "base/settings.h"
#include "capture/capture_file.h"
#include "periodic/launcher_pipe.h"
#include "periodic/memory_guard.h"
#include "record/guard_due.h"
#include "record/tracker.h"

#define MIB ((uint64_t)1 << 20)
#define LIMIT (1024 * MIB)

static char group[64];

static void
write_file(const char *name, const char *text)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/%s", group, name);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static int
start(enum kmem_guard_action action)
{
	struct kmem_identity *identity;

	capture_file_forked();
	identity = &capture_file_header()->identity;
	identity->page_bytes = 4096;
	identity->machine_bytes = 16 * LIMIT;
	identity->cgroup_version = 2;
	memcpy(identity->limit_path, group, sizeof(group));
	capture_file_header()->generation_clock = 1;
	write_file("memory.stat", "");
	settings.guard = (struct kmem_guard_setting){ .percent = 90 };
	settings.guard_action = action;
	diag_level = DIAG_QUIET;
	atomic_store(tracker_state, TRACKER_ON);
	memory_guard_forked();
	return 0;
}

static int
start_group(void **state)
{
	(void)snprintf(group, sizeof(group), "/tmp/kmem-guard-XXXXXX");
	return mkdtemp(group) == NULL || !real_libc_find();
}

static int
end_group(void **state)
{
	char command[96];

	(void)snprintf(command, sizeof(command), "rm -r %s", group);
	return system(command);
}

/* In use of the cgroup; the process has a part of it in memory. */
static enum memory_guard_due
judge(uint64_t used_bytes)
{
	return memory_guard_judge(&(struct memory_limits_now){ .resident_bytes = used_bytes / 2,
	                                                       .cgroup_bytes = used_bytes,
	                                                       .limit_bytes = LIMIT,
	                                                       .available_bytes = 8 * LIMIT },
	                          used_bytes / 2);
}

/* The process is all that there is in the cgroup, and so much of it is live. */
static enum memory_guard_due
judge_live(uint64_t used_bytes, uint64_t live_bytes)
{
	return memory_guard_judge(&(struct memory_limits_now){ .resident_bytes = used_bytes,
	                                                       .cgroup_bytes = used_bytes,
	                                                       .limit_bytes = LIMIT,
	                                                       .available_bytes = 8 * LIMIT },
	                          live_bytes);
}

static const struct kmem_guard *
passed(void)
{
	uint64_t index = capture_file_header()->guard;

	assert_true(kmem_twice_agrees(index));
	return index != 0 ? capture_file_item(KMEM_SECTION_RECORDS, (uint32_t)index) : NULL;
}

static uint32_t
times(void)
{
	return passed() != NULL ? passed()->passing.number : 0;
}

TEST_IN_CHILD(G1_it_is_passed_once_until_there_is_room_again)
{
	start(KMEM_GUARD_INTERRUPT);
	ASSERT_IN_CHILD(!judge(100 * MIB) && times() == 0);
	ASSERT_IN_CHILD(!judge(921 * MIB) && times() == 0);
	ASSERT_IN_CHILD(memory_guard_room() == LIMIT / 100 * 90 - 921 * MIB);
	ASSERT_IN_CHILD(judge(922 * MIB) && times() == 1); // SIGINT is to follow
	ASSERT_IN_CHILD(memory_guard_room() == UINT64_MAX);
	ASSERT_IN_CHILD(!judge(1000 * MIB) && !judge(800 * MIB) && !judge(1000 * MIB) && times() == 1);
	ASSERT_IN_CHILD(!judge(692 * MIB) && !judge(1000 * MIB) && times() == 1); // 3/4 of 921.6 MiB is 691.2
	ASSERT_IN_CHILD(!judge(691 * MIB) && judge(1000 * MIB) && times() == 2);
	ASSERT_IN_CHILD(passed()->record.previous != 0);
}

/* glibc gives nothing back as long as something lives at the end of its heap. An eighth of the guard is 115.2 MiB. */
TEST_IN_CHILD(G4_what_malloc_keeps_is_asked_for)
{
	start(KMEM_GUARD_INTERRUPT);
	ASSERT_IN_CHILD(judge_live(100 * MIB, 50 * MIB) == MEMORY_GUARD_NOTHING);
	ASSERT_IN_CHILD(judge_live(930 * MIB, 880 * MIB) == MEMORY_GUARD_INTERRUPT);
	ASSERT_IN_CHILD(judge_live(930 * MIB, 880 * MIB) == MEMORY_GUARD_NOTHING);
	ASSERT_IN_CHILD(judge_live(930 * MIB, 642 * MIB) == MEMORY_GUARD_NOTHING);   // 692 MiB would be in use
	ASSERT_IN_CHILD(judge_live(930 * MIB, 640 * MIB) == MEMORY_GUARD_GIVE_BACK); // 690
	ASSERT_IN_CHILD(judge_live(930 * MIB, 526 * MIB) == MEMORY_GUARD_NOTHING);   // less than an eighth more was freed
	ASSERT_IN_CHILD(judge_live(930 * MIB, 524 * MIB) == MEMORY_GUARD_GIVE_BACK); // and more than that
	ASSERT_IN_CHILD(judge_live(930 * MIB, 524 * MIB) == MEMORY_GUARD_NOTHING);
	ASSERT_IN_CHILD(judge_live(600 * MIB, 524 * MIB) == MEMORY_GUARD_NOTHING && times() == 1); // it was given back
	ASSERT_IN_CHILD(judge_live(930 * MIB, 880 * MIB) == MEMORY_GUARD_INTERRUPT && times() == 2);
	ASSERT_IN_CHILD(judge_live(930 * MIB, 640 * MIB) == MEMORY_GUARD_GIVE_BACK);
}

TEST_IN_CHILD(G4_nobody_is_stopped_for_what_is_free)
{
	start(KMEM_GUARD_INTERRUPT);
	ASSERT_IN_CHILD(judge_live(100 * MIB, 50 * MIB) == MEMORY_GUARD_NOTHING);
	ASSERT_IN_CHILD(judge_live(930 * MIB, 400 * MIB) == MEMORY_GUARD_GIVE_BACK && times() == 0);
	ASSERT_IN_CHILD(judge_live(410 * MIB, 400 * MIB) == MEMORY_GUARD_NOTHING && times() == 0);
	ASSERT_IN_CHILD(judge_live(930 * MIB, 400 * MIB) == MEMORY_GUARD_GIVE_BACK && times() == 0);
	ASSERT_IN_CHILD(judge_live(930 * MIB, 400 * MIB) == MEMORY_GUARD_INTERRUPT &&
	                times() == 1); // in vain: it is not malloc's
}

/* Files that are mapped are in memory, and not malloc's: to give back what it keeps changes nothing. */
TEST_IN_CHILD(G4_a_request_is_stopped_though_nothing_can_be_given_back)
{
	start(KMEM_GUARD_INTERRUPT);
	write_file("memory.current", "314572800\n"); // 300 MiB
	write_file("memory.max", "1073741824\n");
	ASSERT_IN_CHILD(judge_live(300 * MIB, 100 * MIB) == MEMORY_GUARD_NOTHING);
	ASSERT_IN_CHILD(signal(SIGINT, SIG_IGN) != SIG_ERR);
	ASSERT_IN_CHILD(memory_guard_allows(KMEM_DOMAIN_HEAP, 2000 * MIB, false) && times() == 1);
}

TEST_IN_CHILD(G4_who_only_notes_leaves_malloc_alone)
{
	start(KMEM_GUARD_NOTE);
	ASSERT_IN_CHILD(judge_live(100 * MIB, 50 * MIB) == MEMORY_GUARD_NOTHING);
	ASSERT_IN_CHILD(judge_live(930 * MIB, 880 * MIB) == MEMORY_GUARD_NOTHING && times() == 1);
	ASSERT_IN_CHILD(judge_live(930 * MIB, 100 * MIB) == MEMORY_GUARD_NOTHING);
}

/* The pid that a passing writes into the launcher's pipe; 0: nothing. */
static unsigned long
told(int pipe_end)
{
	char text[32] = "";

	return read(pipe_end, text, sizeof(text) - 1) > 0 ? strtoul(text, NULL, 10) : 0;
}

/* Room in the capture comes before the word to the launcher. */
TEST_IN_CHILD(a_look_is_asked_for_where_somebody_looks)
{
	static const struct {
		enum kmem_guard_action action;
		uint64_t looker_pid;
		bool is_asked;
	} cases[] = { { KMEM_GUARD_NOTE, 1, true },
		          { KMEM_GUARD_NOTE, 0, false },
		          { KMEM_GUARD_INTERRUPT, 1, true },
		          { KMEM_GUARD_RAISE, 1, false } };
	char path[128];

	(void)snprintf(path, sizeof(path), KMEM_GUARD_PIPE, group, "5e55");
	ASSERT_IN_CHILD(mkfifo(path, 0600) == 0);
	int pipe_end = open(path, O_RDWR | O_NONBLOCK);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct kmem_identity *identity;

		start(cases[i].action);
		settings.looker_pid = cases[i].looker_pid;
		identity = &capture_file_header()->identity;
		identity->pid = 4711;
		(void)snprintf(identity->session, sizeof(identity->session), "5e55.1");
		launcher_pipe_start(group);
		memory_guard_start(false, false);
		(void)judge(100 * MIB);
		(void)judge(1000 * MIB);
		ASSERT_IN_CHILD(times() == 1);
		ASSERT_IN_CHILD(told(pipe_end) == (cases[i].is_asked ? 4711 : 0));
		ASSERT_IN_CHILD(capture_file_count(KMEM_SECTION_HOLDERS) == (cases[i].is_asked ? 2 : 0));
		if (!cases[i].is_asked)
			continue;
		(void)judge(100 * MIB);
		(void)judge(1000 * MIB); // the room is there
		ASSERT_IN_CHILD(times() == 2 && told(pipe_end) == 4711 && capture_file_count(KMEM_SECTION_HOLDERS) == 2);
		ASSERT_IN_CHILD(unlink(path) == 0 && mkfifo(path, 0600) == 0); // nobody reads
		(void)judge(100 * MIB);
		(void)judge(1000 * MIB);
		ASSERT_IN_CHILD(times() == 3 && told(pipe_end) == 0);
		(void)close(pipe_end);
		pipe_end = open(path, O_RDWR | O_NONBLOCK);
	}
}

TEST_IN_CHILD(G1_who_begins_above_it_waits)
{
	start(KMEM_GUARD_INTERRUPT);
	ASSERT_IN_CHILD(!judge(1000 * MIB) && !judge(1010 * MIB) && times() == 0);
	ASSERT_IN_CHILD(!judge(921 * MIB) && judge(1000 * MIB) && times() == 1);
}

TEST_IN_CHILD(who_stands_by_is_left_alone)
{
	struct memory_limits_now now = { .resident_bytes = 15 * MIB, .cgroup_bytes = MIB, .limit_bytes = LIMIT };

	start(KMEM_GUARD_INTERRUPT);
	ASSERT_IN_CHILD(!memory_guard_judge(&now, now.resident_bytes));
	now.cgroup_bytes = 1000 * MIB;
	ASSERT_IN_CHILD(!memory_guard_judge(&now, now.resident_bytes) && times() == 0);
	now.resident_bytes = 16 * MIB; // a 64th
	ASSERT_IN_CHILD(memory_guard_judge(&now, now.resident_bytes) && times() == 1);
}

/* The kernel drops contents of files before it kills. */
TEST_IN_CHILD(contents_of_files_are_not_in_use)
{
	start(KMEM_GUARD_INTERRUPT);
	write_file("memory.stat", "anon 5\ninactive_file 104857600\nactive_file 104857600\n"); // 100 MiB each
	ASSERT_IN_CHILD(!judge(100 * MIB) && !judge(1000 * MIB) && !judge(1024 * MIB) && times() == 0);
	write_file("memory.stat", "anon 5\ninactive_file 1048576\nactive_file 0\n");
	ASSERT_IN_CHILD(judge(1000 * MIB) && passed()->passing.used_bytes == 999 * MIB);
}

TEST_IN_CHILD(a_size_is_of_the_limit_and_never_above_it)
{
	start(KMEM_GUARD_INTERRUPT);
	settings.guard = (struct kmem_guard_setting){ .bytes = 500 * MIB };
	ASSERT_IN_CHILD(!judge(499 * MIB) && judge(500 * MIB) && passed()->passing.guard_bytes == 500 * MIB);
	start(KMEM_GUARD_INTERRUPT);
	settings.guard = (struct kmem_guard_setting){ .bytes = 2 * LIMIT };
	ASSERT_IN_CHILD(!judge(100 * MIB) && judge(922 * MIB) && passed()->passing.guard_bytes == LIMIT / 100 * 90);
}

TEST_IN_CHILD(the_nearer_of_two_limits_counts)
{
	struct memory_limits_now now = {
		.resident_bytes = 100 * MIB, .space_bytes = 100 * MIB, .cgroup_bytes = 100 * MIB, .limit_bytes = LIMIT
	};

	start(KMEM_GUARD_NOTE);
	now.space_limit_bytes = 512 * MIB;
	ASSERT_IN_CHILD(!memory_guard_judge(&now, now.resident_bytes));
	now.space_bytes = 500 * MIB;
	ASSERT_IN_CHILD(!memory_guard_judge(&now, now.resident_bytes) && times() == 1); // noted
	ASSERT_IN_CHILD(passed()->passing.limit_kind == KMEM_LIMIT_ADDRESS_SPACE);
	ASSERT_IN_CHILD(passed()->passing.limit_bytes == 512 * MIB);
}

TEST_IN_CHILD(without_a_limit_it_is_the_machines)
{
	struct memory_limits_now now = { .resident_bytes = LIMIT, .limit_bytes = 16 * LIMIT, .available_bytes = 8 * LIMIT };

	start(KMEM_GUARD_NOTE);
	capture_file_header()->identity.cgroup_version = 0;
	ASSERT_IN_CHILD(!memory_guard_judge(&now, now.resident_bytes) && times() == 0);
	now.available_bytes = LIMIT;
	ASSERT_IN_CHILD(!memory_guard_judge(&now, now.resident_bytes) && times() == 1);
	ASSERT_IN_CHILD(passed()->passing.limit_kind == KMEM_LIMIT_MACHINE && passed()->passing.used_bytes == 15 * LIMIT);

	start(KMEM_GUARD_NOTE);
	capture_file_header()->identity.cgroup_version = 0;
	settings.guard = (struct kmem_guard_setting){ .bytes = 2 * LIMIT }; // of this process
	ASSERT_IN_CHILD(!memory_guard_judge(&now, now.resident_bytes) && times() == 0);
	now.resident_bytes = 2 * LIMIT;
	ASSERT_IN_CHILD(!memory_guard_judge(&now, now.resident_bytes) && times() == 1);
}

/* As far below the machine's memory as it likes: nobody else's memory is in what is compared with it. */
TEST_IN_CHILD(a_small_size_without_a_limit_is_passed_where_it_is)
{
	struct memory_limits_now now = { .resident_bytes = 99 * MIB, .limit_bytes = 16 * LIMIT, .available_bytes = LIMIT };

	start(KMEM_GUARD_NOTE);
	capture_file_header()->identity.cgroup_version = 0;
	settings.guard = (struct kmem_guard_setting){ .bytes = 100 * MIB }; // a 64th of the machine is 256 MiB
	ASSERT_IN_CHILD(!memory_guard_judge(&now, now.resident_bytes) && times() == 0);
	now.resident_bytes = 100 * MIB;
	ASSERT_IN_CHILD(!memory_guard_judge(&now, now.resident_bytes) && times() == 1);
}

TEST_IN_CHILD(G2_what_each_record_holds_is_written_down)
{
	static const struct {
		uint64_t allocated_bytes, freed_bytes;
	} held[] = { { 1000, 0 }, { 500, 500 }, { 0, 300 } }; // the last one released what another thread allocated

	start(KMEM_GUARD_NOTE);
	for (size_t i = 0; i < ARRAY_LEN(held); i++) {
		uint32_t index;
		struct kmem_site *site = capture_file_append(KMEM_SECTION_SITES, sizeof(*site), &index);

		site->allocated_bytes = held[i].allocated_bytes;
		site->allocated_count = held[i].allocated_bytes / 100;
		site->freed_bytes = held[i].freed_bytes;
		site->freed_count = held[i].freed_bytes / 100;
	}
	ASSERT_IN_CHILD(!judge(100 * MIB) && !judge(1000 * MIB));
	const struct kmem_guard *guard = passed();
	ASSERT_IN_CHILD(guard != NULL && guard->record.type == KMEM_RECORD_GUARD);
	ASSERT_IN_CHILD(guard->record.checksum == kmem_record_checksum(&guard->record, 0));
	ASSERT_IN_CHILD(guard->passing.site_count == 2);
	ASSERT_IN_CHILD(guard->sites[0].site == 1 && guard->sites[0].live_bytes == 1000 &&
	                guard->sites[0].live_count == 10);
	ASSERT_IN_CHILD(guard->sites[1].site == 3 && guard->sites[1].live_bytes == -300 &&
	                guard->sites[1].live_count == -3);
}

static void
use_of_group(const char *bytes)
{
	write_file("memory.current", bytes);
	write_file("memory.max", "1073741824");
	write_file("memory.stat", "");
}

TEST_IN_CHILD(G3_what_would_pass_it_is_refused)
{
	start(KMEM_GUARD_RAISE);
	use_of_group("524288000"); // 500 MiB
	errno = 77;
	ASSERT_IN_CHILD(memory_guard_allows(KMEM_DOMAIN_HEAP, 421 * MIB, false) && times() == 0);
	ASSERT_IN_CHILD(guard_due_bytes > 200 * MIB && guard_due_bytes < 221 * MIB); // half of the room
	ASSERT_IN_CHILD(memory_guard_allows(KMEM_DOMAIN_MMAP, 422 * MIB, false) && times() == 0);
	ASSERT_IN_CHILD(!memory_guard_allows(KMEM_DOMAIN_HEAP, 422 * MIB, false) && times() == 1);
	ASSERT_IN_CHILD(passed()->passing.request_bytes == 422 * MIB);
	ASSERT_IN_CHILD(!memory_guard_allows(KMEM_DOMAIN_HEAP, 500 * MIB, false) && times() == 1); // at once: told once
	ASSERT_IN_CHILD(memory_guard_allows(KMEM_DOMAIN_HEAP, 50 * MIB, false));
	ASSERT_IN_CHILD(errno == 77);
}

TEST_IN_CHILD(G3_other_actions_refuse_nothing)
{
	start(KMEM_GUARD_NOTE);
	use_of_group("524288000");
	ASSERT_IN_CHILD(memory_guard_allows(KMEM_DOMAIN_HEAP, 520 * MIB, false) &&
	                times() == 0); // above the guard, below the limit
	ASSERT_IN_CHILD(memory_guard_allows(KMEM_DOMAIN_HEAP, 525 * MIB, false) &&
	                times() == 1); // above the limit, when it is touched
}

/* A list of 500 MiB that grows by an eighth is filled without another call of malloc. */
TEST_IN_CHILD(what_a_block_in_use_grows_by_counts_as_in_use)
{
	start(KMEM_GUARD_INTERRUPT);
	use_of_group("891289600"); // 850 MiB; the guard is at 921.6
	ASSERT_IN_CHILD(!judge(850 * MIB) && guard_due_is(90 * MIB));
	ASSERT_IN_CHILD(memory_guard_allows(KMEM_DOMAIN_HEAP, 150 * MIB, false) && times() == 0);
	ASSERT_IN_CHILD(memory_guard_allows(KMEM_DOMAIN_HEAP, 70 * MIB, true) && times() == 0);
	signal(SIGINT, SIG_IGN);
	ASSERT_IN_CHILD(memory_guard_allows(KMEM_DOMAIN_HEAP, 90 * MIB, true) && times() == 1);
	ASSERT_IN_CHILD(passed()->passing.request_bytes == 90 * MIB);
}

TEST_IN_CHILD(without_a_guard_nothing_is_judged)
{
	start(KMEM_GUARD_RAISE);
	settings.guard = (struct kmem_guard_setting){ 0 };
	use_of_group("1073741824");
	ASSERT_IN_CHILD(!judge(100 * MIB) && !judge(1024 * MIB) && times() == 0);
	ASSERT_IN_CHILD(memory_guard_allows(KMEM_DOMAIN_HEAP, 4096 * MIB, false) && times() == 0);
	ASSERT_IN_CHILD(!guard_due_is(UINT64_MAX - 1));
}

TEST_IN_CHILD(more_in_use_than_the_limit_is_no_room)
{
	const struct memory_limits_now now = { .resident_bytes = MIB, .cgroup_bytes = LIMIT + MIB, .limit_bytes = LIMIT };

	start(KMEM_GUARD_NOTE);
	(void)judge(100 * MIB); // armed; then others fill it, for a moment beyond the limit
	(void)memory_guard_judge(&now, MIB);
	ASSERT_IN_CHILD(guard_due_bytes <= 2 * MIB);
}

RUN_TESTS_IN(start_group, end_group)
