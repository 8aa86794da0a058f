/*
 * test_filled_at_end.c - killed while it filled a block that the last look saw empty: does the block count as memory then?
 */
#include "hand_model.h"

#include <signal.h>

#include "analysis/filled_at_end.h"
#include "base/memory.h"

#define LIMIT (160 * MIB)
#define SEEN (30 * MIB)

static struct hand_model hand;
static uint64_t kills_now; // what the counter says when it is read today

static void
read_counters(const struct kmem_identity *identity, struct kmem_kill_counters *counters)
{
	(void)identity;
	*counters = (struct kmem_kill_counters){ 0, kills_now, 0, 0 };
	counters->cgroup_oom_kill = kills_now;
}

static const char *logged; // by the kernel; NULL: nothing

static void
read_log(const struct model_process *process, struct system_log *log)
{
	if (logged == NULL)
		return;
	log->lines = memory_zeroed(1, sizeof(*log->lines));
	log->count = 1;
	log->lines[0].monotonic_ns = process->identity->start_monotonic_ns + 1;
	(void)snprintf(log->lines[0].writer, sizeof(log->lines[0].writer), "kernel");
	(void)snprintf(log->lines[0].text, sizeof(log->lines[0].text),
	               "Memory cgroup out of memory: Killed process %u (train) total-vm:1519412kB, %s",
	               process->identity->pid, logged);
}

static const struct verdict_now this_boot = { .boot_id = "this-boot",
	                                          .read_counters = read_counters,
	                                          .read_log = read_log };

/* A data set of 1 GiB was asked for, and 30 MiB were in memory at the last look and heartbeat. */
static int
make(void **state)
{
	struct model_site *site;

	(void)state;
	kills_now = 0;
	logged = NULL;
	hand_model_make(&hand);
	(void)snprintf(hand.identity.boot_id, sizeof(hand.identity.boot_id), "this-boot");
	site = hand_model_site(&hand, HEAP, 7, GIB);
	site->process_count = 1;
	site->untouched_bytes = hand.domains[HEAP].untouched_bytes = hand.process.untouched_bytes = GIB;
	hand.process.live_bytes = GIB;
	hand.process.resident = &hand.resident;
	hand.process.heartbeats = &hand.heartbeat;
	hand.process.heartbeat_count = 1;
	hand.resident = (struct kmem_resident){ .sequence = 1, .resident_bytes = SEEN };
	hand.heartbeat.resident_bytes = SEEN;
	hand.heartbeat.live_bytes = 5 * MIB;
	hand.heartbeat.cgroup_bytes = SEEN;
	hand.identity.limits[0] = (struct kmem_limit){ .kind = KMEM_LIMIT_CGROUP, .bytes = LIMIT };
	hand.identity.before = (struct kmem_kill_counters){ 0 };
	hand_model_waited(&hand, SIGKILL);
	hand.launcher.after = (struct kmem_kill_counters){ 1, 1, 1, 1 };
	hand.launcher.max_resident_bytes = LIMIT - MIB;
	return 0;
}

static uint64_t
touched(void)
{
	filled_at_end_settle(&hand.model, &this_boot);
	assert_int_equal(hand.sites[0].untouched_bytes, hand.process.untouched_bytes);
	assert_int_equal(hand.sites[0].untouched_bytes, hand.domains[HEAP].untouched_bytes);
	return GIB - hand.sites[0].untouched_bytes;
}

TEST(what_was_missing_to_the_limit_was_touched)
{
	assert_int_equal(touched(), LIMIT - MIB - SEEN); // as the launcher saw
}

TEST(without_a_launcher_the_counters_are_read_later)
{
	hand.process.launcher = NULL;
	kills_now = 1;
	assert_int_equal(touched(), LIMIT - SEEN);
}

TEST(without_a_kill_nothing_is_concluded)
{
	hand.process.launcher = NULL; // gone, and no counter rose
	assert_int_equal(touched(), 0);
	(void)make(NULL);
	hand_model_exited(&hand, 1);
	hand.process.state = KMEM_STATE_CLEAN_EXIT; // it was looked at then
	assert_int_equal(touched(), 0);
}

/* The kernel says how much it was; of the container nothing is left. */
TEST(what_the_kernel_logged_was_touched)
{
	hand.process.launcher = NULL;
	(void)snprintf(hand.identity.executable, sizeof(hand.identity.executable), "/usr/bin/train");
	hand.identity.pid_namespace = UINT32_C(4026531836); // the first one: its numbers are those of the log
	logged = "anon-rss:122880kB, file-rss:1024kB, shmem-rss:1024kB";
	assert_int_equal(touched(), 122 * MIB - SEEN);
	assert_true(hand.process.is_filling_known);
	assert_int_equal(hand.process.filled_bytes, 122 * MIB - SEEN);
}

/* Nothing says how much was in memory. What the look before the last did not have may have been filled, up to the limit. */
TEST(what_was_new_at_the_last_look_is_not_known_to_be_untouched)
{
	hand.process.launcher = NULL;
	hand.sites[0].new_untouched_bytes = hand.process.new_untouched_bytes = 50 * MIB;
	assert_int_equal(touched(), 50 * MIB);
	assert_false(hand.process.is_filling_known);
	(void)make(NULL);
	hand.process.launcher = NULL;
	hand.sites[0].new_untouched_bytes = hand.process.new_untouched_bytes = GIB;
	assert_int_equal(touched(), LIMIT - SEEN);
	(void)make(NULL);
	hand.sites[0].new_untouched_bytes = hand.process.new_untouched_bytes = GIB;
	hand_model_exited(&hand, 1);
	hand.launcher.max_resident_bytes = SEEN; // and it was looked at when it ended
	assert_int_equal(touched(), 0);
}

/* What a line took later is as what the last look saw of it, where all else would be more than there was. */
TEST(more_than_there_ever_was_is_not_in_memory)
{
	struct model_site *other = hand_model_site(&hand, HEAP, 8, LIMIT / 2);

	other->process_count = 1;
	other->large_bytes = other->large_resident_bytes = LIMIT / 2;
	hand.sites[0].live_bytes = 2 * GIB; // half of it came after the look
	hand.sites[0].large_bytes = GIB;
	hand.process.live_bytes = 2 * GIB + LIMIT / 2;
	filled_at_end_settle(&hand.model, &this_boot);
	assert_int_equal(2 * GIB + LIMIT / 2 - hand.process.untouched_bytes, LIMIT - MIB); // as the launcher saw
	assert_int_equal(other->untouched_bytes, 0);
	(void)make(NULL);
	hand.sites[0].live_bytes = 2 * GIB;
	hand.sites[0].large_bytes = hand.sites[0].large_resident_bytes = GIB; // it was touched then
	hand.process.live_bytes = 2 * GIB;
	filled_at_end_settle(&hand.model, &this_boot);
	assert_true(hand.sites[0].untouched_bytes <= GIB);
}

/* A block that came after the last look, beside small ones: no look knows it, so it counts as far as there was room for it. */
TEST(what_no_look_knew_was_in_memory_as_far_as_there_was_room)
{
	struct model_site *other = hand_model_site(&hand, HEAP, 8, 60 * MIB);

	other->process_count = 1;
	other->live_count = 100;
	hand.sites[0].live_bytes = hand.sites[0].allocated_bytes = 200 * MIB;
	hand.sites[0].live_count = 200; // of 1 MiB: looks list so many, and no smaller ones
	hand.sites[0].untouched_bytes = hand.domains[HEAP].untouched_bytes = hand.process.untouched_bytes = 0;
	hand.process.live_bytes = 260 * MIB;
	hand.heartbeat.live_bytes = 260 * MIB; // before a page of it was touched
	hand.resident.resident_bytes = hand.heartbeat.resident_bytes = 70 * MIB;
	filled_at_end_settle(&hand.model, &this_boot);
	assert_int_equal(hand.process.untouched_bytes, 260 * MIB - (LIMIT - MIB)); // as the launcher saw
	assert_int_equal(hand.sites[0].untouched_bytes, hand.process.untouched_bytes);
	assert_int_equal(other->untouched_bytes, 0);
	assert_int_equal(hand.process.filled_bytes, LIMIT - MIB - 60 * MIB);
	assert_true(hand.process.is_filling_known);
}

/* An import mapped memory that it never uses; a block that no look knew was filled at the end. */
TEST(what_was_untouched_all_along_is_not_what_was_filled)
{
	struct model_site *mapped = hand_model_site(&hand, MMAP, 8, 64 * MIB);

	mapped->process_count = 1;
	mapped->large_bytes = mapped->untouched_bytes = hand.domains[MMAP].untouched_bytes = 64 * MIB;
	hand.process.untouched_bytes = 64 * MIB;
	hand.sites[0].untouched_bytes = hand.domains[HEAP].untouched_bytes = 0; // not known
	hand.process.live_bytes = GIB + 64 * MIB;
	hand.heartbeat.live_bytes = GIB + 64 * MIB; // before a page of it was touched
	filled_at_end_settle(&hand.model, &this_boot);
	assert_int_equal(mapped->untouched_bytes, 64 * MIB);
	assert_int_equal(GIB - hand.sites[0].untouched_bytes, LIMIT - MIB);
	assert_int_equal(hand.process.filled_bytes, LIMIT - MIB);
}

/* A worker wrote it, and this one has not looked into it yet. */
TEST(what_is_shared_may_be_in_memory_all_the_same)
{
	struct model_process processes[2];

	processes[0] = processes[1] = hand.process;
	hand.model.processes = processes;
	hand.model.process_count = 2;
	hand_model_domain(&hand.domains[HEAP], "shared");
	processes[0].untouched_bytes = hand.sites[0].untouched_bytes = hand.domains[HEAP].untouched_bytes = 0;
	hand.sites[0].large_bytes = GIB / 2;
	filled_at_end_settle(&hand.model, &this_boot);
	assert_int_equal(hand.sites[0].untouched_bytes, 0);
}

/* In that room are libraries too, and the recorder's own: of the limit alone, these. */
TEST(what_is_beside_the_lines_takes_room_too)
{
	hand.sites[0].untouched_bytes = hand.domains[HEAP].untouched_bytes = hand.process.untouched_bytes = 0;
	hand.resident.part_bytes[KMEM_RESIDENT_PROGRAM] = 8 * MIB;
	hand.resident.part_bytes[KMEM_RESIDENT_OWN] = 2 * MIB;
	hand.heartbeat.live_bytes = GIB;
	filled_at_end_settle(&hand.model, &this_boot);
	assert_int_equal(GIB - hand.process.untouched_bytes, LIMIT - MIB - 10 * MIB);
	hand.process.launcher = NULL;
	hand.sites[0].untouched_bytes = hand.domains[HEAP].untouched_bytes = hand.process.untouched_bytes = 0;
	filled_at_end_settle(&hand.model, &this_boot);
	assert_int_equal(GIB - hand.process.untouched_bytes, LIMIT - 2 * MIB);
}

/* However it ended, its launcher saw what was in memory at most: no more than that was touched. */
TEST(what_the_launcher_saw_was_touched)
{
	hand.launcher.after = (struct kmem_kill_counters){ 0 };
	assert_int_equal(touched(), LIMIT - MIB - SEEN);
	(void)make(NULL);
	hand_model_waited(&hand, SIGSEGV);
	hand.launcher.max_resident_bytes = SEEN + 3 * MIB;
	assert_int_equal(touched(), 3 * MIB);
	(void)make(NULL);
	hand_model_waited(&hand, SIGSEGV);
	hand.heartbeat.resident_bytes = LIMIT; // before the last look it was as much
	assert_int_equal(touched(), 0);
}

/* The most that was in memory may be what was freed since, or another process's. */
TEST(what_may_be_something_else_is_left_alone)
{
	struct model_process processes[2];

	hand_model_waited(&hand, SIGSEGV);
	hand.process.peak_bytes = 2 * GIB;
	assert_int_equal(touched(), 0);
	(void)make(NULL);
	hand_model_waited(&hand, SIGSEGV);
	processes[0] = processes[1] = hand.process;
	hand.model.processes = processes;
	hand.model.process_count = 2;
	assert_int_equal(touched(), 0);
}

/* Another program of the container took it, or it is in what was allocated since. */
TEST(what_is_explained_otherwise_is_not_touched)
{
	hand.launcher.max_resident_bytes = SEEN + MIB;
	assert_int_equal(touched(), 0);
	(void)make(NULL);
	hand.heartbeat.cgroup_bytes = LIMIT - MIB;
	assert_int_equal(touched(), 0);
	(void)make(NULL);
	hand.process.live_bytes += 100 * MIB;
	assert_int_equal(touched(), 0);
}

/* A quarter of the limit is enough, and less is not. */
TEST(little_is_left_alone)
{
	hand.launcher.max_resident_bytes = SEEN + LIMIT / 4;
	assert_int_equal(touched(), LIMIT / 4);
	(void)make(NULL);
	hand.launcher.max_resident_bytes = SEEN + LIMIT / 4 - 1;
	assert_int_equal(touched(), 0);
}

/* Seven eighths of the peak are the whole of it, and less is not. */
TEST(a_little_may_have_been_freed)
{
	uint64_t eighth_bytes = GIB / 7;

	hand_model_waited(&hand, SIGSEGV);
	hand.process.peak_bytes = 8 * eighth_bytes;
	assert_int_equal(touched(), LIMIT - MIB - SEEN);
	(void)make(NULL);
	hand_model_waited(&hand, SIGSEGV);
	hand.process.peak_bytes = 8 * (eighth_bytes + 1);
	assert_int_equal(touched(), 0);
}

/* Two that were untouched have their shares. */
TEST(of_several_each_has_its_share)
{
	struct model_site *other = hand_model_site(&hand, HEAP, 8, 3 * GIB);

	other->process_count = 1;
	other->untouched_bytes = 3 * GIB;
	hand.domains[HEAP].untouched_bytes = hand.process.untouched_bytes = 4 * GIB;
	hand.process.live_bytes = 4 * GIB;
	hand.launcher.max_resident_bytes = SEEN + 100 * MIB;
	filled_at_end_settle(&hand.model, &this_boot);
	assert_int_equal(hand.sites[0].untouched_bytes, GIB - 25 * MIB);
	assert_int_equal(other->untouched_bytes, 3 * GIB - 75 * MIB);
}

RUN_TESTS(make, NULL)
