/*
 * test_filled_at_end.c - killed while it filled a block that the last look saw empty: does the block count as memory then?
 */
#include "scene.h"

#include "analysis/filled_at_end.h"
#include "base/memory.h"

#define LIMIT (160 * MIB)
#define SEEN (30 * MIB)

static struct hand_model hand;
static uint64_t kills_now; // what the counter says when it is read today

static void
read_counters(const struct kmem_identity *identity, struct kmem_kill_counters *counters)
{
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

#define NOT_KNOWN "heap:7 1G; "
#define UNTOUCHED "heap:7 1G untouched=1G; "
/* A data set of 1 GiB was asked for, and 30 MiB were in memory at the last look and heartbeat. */
#define DATA_SET                                                                                                    \
	"process live_bytes=1G; look own=30M; resident resident_bytes=30M; heartbeat resident_bytes=30M live_bytes=5M " \
	"cgroup_bytes=30M; limit cgroup 160M; heartbeat limit_bytes=max; oom; launcher max_resident_bytes=159M; "

static void
make(const char *site, const char *more)
{
	kills_now = 0;
	logged = NULL;
	hand_model_make(&hand);
	scene_add(&hand, "%s" DATA_SET "%s", site, more);
	hand.resident.part_bytes[KMEM_RESIDENT_OWN] = 0;
}

static uint64_t
settled(void)
{
	filled_at_end_settle(&hand.model, &this_boot);
	assert_int_equal(hand.sites[0].untouched_bytes, hand.model.processes[0].untouched_bytes);
	assert_int_equal(hand.sites[0].untouched_bytes, hand.domains[HEAP].untouched_bytes);
	return GIB - hand.sites[0].untouched_bytes;
}

static uint64_t
touched(const char *more)
{
	make(UNTOUCHED, more);
	return settled();
}

TEST(what_was_missing_to_the_limit_was_touched)
{
	assert_int_equal(touched(""), LIMIT - MIB - SEEN); // as the launcher saw
}

TEST(without_a_launcher_the_counters_are_read_later)
{
	make(UNTOUCHED, "process launcher=0");
	kills_now = 1;
	assert_int_equal(settled(), LIMIT - SEEN);
}

TEST(without_a_kill_nothing_is_concluded)
{
	assert_int_equal(touched("process launcher=0"), 0); // gone, and no counter rose
	assert_int_equal(touched("exit 1"), 0);             // it was looked at then
}

/* The kernel says how much it was; of the container nothing is left. */
TEST(what_the_kernel_logged_was_touched)
{
	make(UNTOUCHED, "process launcher=0");
	(void)snprintf(hand.identity.executable, sizeof(hand.identity.executable), "/usr/bin/train");
	hand.identity.pid_namespace = UINT32_C(4026531836); // the first one: its numbers are those of the log
	logged = "anon-rss:122880kB, file-rss:1024kB, shmem-rss:1024kB";
	assert_int_equal(settled(), 122 * MIB - SEEN);
	assert_true(hand.process.is_filling_known);
	assert_int_equal(hand.process.filled_bytes, 122 * MIB - SEEN);
}

static uint64_t
touched_of_new(uint64_t bytes, const char *more)
{
	make(UNTOUCHED, more);
	hand.sites[0].new_untouched_bytes = hand.process.new_untouched_bytes = bytes;
	return settled();
}

/* Nothing says how much was in memory. What the look before the last did not have may have been filled, up to the limit. */
TEST(what_was_new_at_the_last_look_is_not_known_to_be_untouched)
{
	assert_int_equal(touched_of_new(50 * MIB, "process launcher=0"), 50 * MIB);
	assert_false(hand.process.is_filling_known);
	assert_int_equal(touched_of_new(GIB, "process launcher=0"), LIMIT - SEEN);
	assert_int_equal(touched_of_new(GIB, "exit 1; launcher max_resident_bytes=30M"),
	                 0); // it was looked at when it ended
}

/* What a line took later is as what the last look saw of it, where all else would be more than there was. */
TEST(more_than_there_ever_was_is_not_in_memory)
{
	/* Half of the first line came after the look. */
	make(UNTOUCHED, "heap:8 80M; process live_bytes=2128M");
	hand.sites[1].large_bytes = hand.sites[1].large_resident_bytes = LIMIT / 2;
	hand.sites[0].live_bytes = 2 * GIB;
	hand.sites[0].large_bytes = GIB;
	filled_at_end_settle(&hand.model, &this_boot);
	assert_int_equal(2 * GIB + LIMIT / 2 - hand.process.untouched_bytes, LIMIT - MIB); // as the launcher saw
	assert_int_equal(hand.sites[1].untouched_bytes, 0);
	make(UNTOUCHED, "process live_bytes=2G");
	hand.sites[0].live_bytes = 2 * GIB;
	hand.sites[0].large_bytes = hand.sites[0].large_resident_bytes = GIB; // it was touched then
	filled_at_end_settle(&hand.model, &this_boot);
	assert_true(hand.sites[0].untouched_bytes <= GIB);
}

/* Most of the large blocks was there, and the look knew nothing of the small ones: these were no more than what there was. */
TEST(what_a_line_has_in_small_blocks_is_as_its_large_ones)
{
	make("heap:7 1G untouched=300M; ", "");
	hand.sites[0].large_bytes = 700 * MIB;
	hand.sites[0].large_resident_bytes = 400 * MIB;
	assert_true(settled() > GIB - 300 * MIB - 324 * MIB); // the rest of it, in the same part
	assert_true(hand.sites[0].untouched_bytes > 400 * MIB);
}

/* A block that came after the last look, beside small ones: no look knows it, so it counts as far as there was room for it. */
TEST(what_no_look_knew_was_in_memory_as_far_as_there_was_room)
{
	/* Blocks of 1 MiB: looks list these, and no smaller ones. The heartbeat was before a page of them was touched. */
	make("heap:7 200M live_count=200; heap:8 60M live_count=100; ",
	     "process live_bytes=260M; resident resident_bytes=70M; heartbeat live_bytes=260M resident_bytes=70M");
	filled_at_end_settle(&hand.model, &this_boot);
	assert_int_equal(hand.process.untouched_bytes, 260 * MIB - (LIMIT - MIB)); // as the launcher saw
	assert_int_equal(hand.sites[0].untouched_bytes, hand.process.untouched_bytes);
	assert_int_equal(hand.sites[1].untouched_bytes, 0);
	assert_int_equal(hand.process.filled_bytes, LIMIT - MIB - 60 * MIB);
	assert_true(hand.process.is_filling_known);
}

/* An import mapped memory that it never uses; a block that no look knew was filled at the end. */
TEST(what_was_untouched_all_along_is_not_what_was_filled)
{
	make(NOT_KNOWN "mmap:8 64M untouched=64M; ", "process live_bytes=1088M; heartbeat live_bytes=1088M");
	hand.sites[1].large_bytes = 64 * MIB;
	filled_at_end_settle(&hand.model, &this_boot);
	assert_int_equal(hand.sites[1].untouched_bytes, 64 * MIB);
	assert_int_equal(GIB - hand.sites[0].untouched_bytes, LIMIT - MIB);
	assert_int_equal(hand.process.filled_bytes, LIMIT - MIB);
}

/* A worker wrote it, and this one has not looked into it yet. */
TEST(what_is_shared_may_be_in_memory_all_the_same)
{
	make(NOT_KNOWN, "name heap shared; child parent=-1");
	hand.sites[0].large_bytes = GIB / 2;
	assert_int_equal(settled(), GIB);
}

/* In that room are libraries too, and the recorder's own: of the limit alone, these. */
TEST(what_is_beside_the_lines_takes_room_too)
{
	for (unsigned has_launcher = 0; has_launcher < 2; has_launcher++) {
		make(NOT_KNOWN, has_launcher ? "heartbeat live_bytes=1G" : "heartbeat live_bytes=1G; process launcher=0");
		hand.resident.part_bytes[KMEM_RESIDENT_PROGRAM] = 8 * MIB;
		hand.resident.part_bytes[KMEM_RESIDENT_OWN] = 2 * MIB;
		kills_now = 1;
		assert_int_equal(settled(), has_launcher ? LIMIT - MIB - 10 * MIB : LIMIT - 2 * MIB);
	}
}

/* However it ended, its launcher saw what was in memory at most: no more than that was touched. */
TEST(what_the_launcher_saw_was_touched)
{
	assert_int_equal(touched("after cgroup_oom_kill=0 cgroup_oom=0 cgroup_max_hits=0 machine_oom_kill=0"),
	                 LIMIT - MIB - SEEN);
	assert_int_equal(touched("signal 11; launcher max_resident_bytes=33M"), 3 * MIB);
	assert_int_equal(touched("signal 11; heartbeat resident_bytes=160M"), 0); // before the last look it was as much
}

/* The most that was in memory may be what was freed since, or another process's. */
TEST(what_may_be_something_else_is_left_alone)
{
	assert_int_equal(touched("signal 11; process peak_bytes=2G"), 0);
	assert_int_equal(touched("signal 11; child parent=-1"), 0);
}

/* Another program of the container took it, or it is in what was allocated since. */
TEST(what_is_explained_otherwise_is_not_touched)
{
	assert_int_equal(touched("launcher max_resident_bytes=31M"), 0);
	assert_int_equal(touched("heartbeat cgroup_bytes=159M"), 0);
	assert_int_equal(touched("process live_bytes=1160M"), 0);
}

/* Large blocks need nothing for malloc's own words, or for what recording remembers of each: all else was touched. */
TEST(what_was_allocated_in_large_blocks_explains_no_more_than_itself)
{
	for (unsigned is_small = 0; is_small < 2; is_small++) {
		make("heap:7 1G untouched=1G; heap:8 60M; ", "process live_bytes=1084M; launcher max_resident_bytes=155M");
		hand.sites[0].live_count = 1;
		hand.sites[1].live_count = is_small ? 1000 * 1000 * 1000 : 1;
		filled_at_end_settle(&hand.model, &this_boot);
		assert_int_equal((GIB - hand.sites[0].untouched_bytes) / MIB, is_small ? 42 : 69); // of 70, less half of 55
	}
}

/* A quarter of the limit is enough, and less is not. */
TEST(little_is_left_alone)
{
	assert_int_equal(touched("launcher max_resident_bytes=70M"), LIMIT / 4);
	assert_int_equal(touched("launcher max_resident_bytes=70M-1"), 0);
}

/* Seven eighths of the peak are the whole of it, and less is not. */
TEST(a_little_may_have_been_freed)
{
	assert_int_equal(GIB / 7, 153391689);
	assert_int_equal(touched("signal 11; process peak_bytes=1227133512"), LIMIT - MIB - SEEN);
	assert_int_equal(touched("signal 11; process peak_bytes=1227133520"), 0);
}

/* Two that were untouched have their shares. */
TEST(of_several_each_has_its_share)
{
	make(UNTOUCHED "heap:8 3G untouched=3G; ", "process live_bytes=4G; launcher max_resident_bytes=130M");
	filled_at_end_settle(&hand.model, &this_boot);
	assert_int_equal(hand.sites[0].untouched_bytes, GIB - 25 * MIB);
	assert_int_equal(hand.sites[1].untouched_bytes, 3 * GIB - 75 * MIB);
}

RUN_TESTS(NULL, NULL)
