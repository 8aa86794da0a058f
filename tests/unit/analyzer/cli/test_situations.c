/*
 * test_situations.c - what is a person told in some situations (tests/golden/situations)?
 *
 * Each is a model made by hand. Its file holds the whole page, which begins with the verdict, and the verdict's JSON without
 * the texts. Run from the root of the repository; `make golden` writes the files anew, and the difference is for review.
 */
#include "hand_model.h"

#include <signal.h>
#include <stdlib.h>

#include <jansson.h>

#include "base/document.h"
#include "base/items.h"
#include "base/units.h"
#include "cli/cmd_report.h"
#include "golden.h"
#include "model/site_key.h"
#include "base/paragraph.h"
#include "report/render.h"
#include "report/report.h"
#include "verdict/verdict.h"

#define FAMILY 4
#define SECOND UINT64_C(1000000000)
#define LIFE (60 * SECOND) // hand_model_waited()

static struct hand_model hand;
static struct model_process family[FAMILY];
static struct kmem_identity family_identity[FAMILY];
static struct kmem_heartbeat family_beat[FAMILY];

/* ---- what the situations are made of ---- */

/* So much of malloc's and of libraries' mappings was in memory, at a look just before the end. */
static void
looked(uint64_t heap_bytes, uint64_t reserved_bytes)
{
	hand.resident = (struct kmem_resident){ .sequence = 1,
		                                    .monotonic_ns = hand.identity.start_monotonic_ns + LIFE,
		                                    .part_bytes = { [KMEM_RESIDENT_BRK] = heap_bytes,
		                                                    [KMEM_RESIDENT_RESERVED] = reserved_bytes,
		                                                    [KMEM_RESIDENT_PROGRAM] = 20 * MIB,
		                                                    [KMEM_RESIDENT_OWN] = 4 * MIB } };
	hand.resident.resident_bytes = heap_bytes + reserved_bytes + 24 * MIB;
	hand.heartbeat.resident_bytes = hand.resident.resident_bytes;
	hand.heartbeat.monotonic_ns = hand.resident.monotonic_ns;
}

static struct model_site *
leaking(unsigned domain, uint32_t line, uint64_t bytes, uint64_t count)
{
	struct model_site *site = hand_model_site(&hand, domain, line, bytes);

	hand.domains[domain].live_count += count - 1;
	hand.domains[domain].allocated_count += count - 1;
	site->live_count = site->allocated_count = count;
	hand_model_generations(site, 12, 12, 3, 3);
	return site;
}

/* It worked with so much more and gave it back. */
static void
released(struct model_site *site, uint64_t bytes, uint64_t count)
{
	site->allocated_bytes += bytes;
	site->allocated_count += count;
	hand.domains[site->domain].allocated_bytes += bytes;
	hand.domains[site->domain].allocated_count += count;
	hand.domains[site->domain].freed_bytes += bytes;
	hand.domains[site->domain].freed_count += count;
}

static void
untouched(struct model_site *site, uint64_t bytes)
{
	site->untouched_bytes = bytes;
	hand.domains[site->domain].untouched_bytes += bytes;
	hand.process.untouched_bytes += bytes;
}

static void
container(uint64_t limit_bytes, uint64_t charged_bytes)
{
	hand.identity.limits[0] = (struct kmem_limit){ .kind = KMEM_LIMIT_CGROUP, .bytes = limit_bytes };
	hand.heartbeat.limit_bytes = limit_bytes;
	hand.heartbeat.cgroup_bytes = charged_bytes;
}

static void
killed_in_container(uint64_t limit_bytes)
{
	container(limit_bytes, limit_bytes - limit_bytes / 256);
	hand_model_waited(&hand, SIGKILL);
	hand.launcher.after = (struct kmem_kill_counters){ 1, 1, 900, 1 };
}

/* So long before its end a device had no room for a tensor of the last site. */
static void
device_refused(uint64_t bytes, uint64_t free_bytes, uint64_t total_bytes)
{
	hand.process.failed_count = 1;
	hand.process.ended_monotonic_ns = hand.identity.start_monotonic_ns + LIFE;
	hand.failed = (struct model_failed){ .bytes = bytes,
		                                 .domain = TENSORS0,
		                                 .error = 2,
		                                 .thread = 1,
		                                 .monotonic_ns = hand.process.ended_monotonic_ns - SECOND / 10,
		                                 .free_bytes = free_bytes,
		                                 .total_bytes = total_bytes,
		                                 .site = &hand.sites[hand.model.site_count - 1] };
	hand.model.failed_count = 1;
}

/* PyTorch's allocator took so much of the driver. */
static void
taken_by_pytorch(uint64_t bytes)
{
	struct model_site *site = hand_model_site(&hand, CUDA0, 44, bytes);

	hand.model.domain_count = HAND_DOMAINS + 1;
	hand.frames[site - hand.sites][0].module = "libc10_cuda.so";
	hand.frames[site - hand.sites][0].module_path = "/opt/torch/lib/libc10_cuda.so";
}

/* On this boot of this machine: else nobody knows whether a process still runs. */
static void
seen_here(void)
{
	(void)snprintf(hand.identity.boot_id, sizeof(hand.identity.boot_id), "%s", verdict_now()->boot_id);
}

/* A parent and three that it forked, pids 4242 and up; after everything else of the parent. */
static void
forked(uint64_t live_bytes, uint64_t child_bytes)
{
	for (unsigned i = 0; i < FAMILY; i++) {
		family[i] = hand.process;
		family_identity[i] = hand.identity;
		family_beat[i] = hand.heartbeat;
		family_identity[i].pid += i;
		family_identity[i].parent_pid = i == 0 ? 1 : hand.identity.pid;
		family_identity[i].is_first = i == 0;
		family_identity[i].start_monotonic_ns += i * SECOND;
		family_beat[i].monotonic_ns = hand.identity.start_monotonic_ns + LIFE;
		family[i].identity = &family_identity[i];
		family[i].heartbeats = &family_beat[i];
		family[i].live_bytes = family[i].peak_bytes = i == 0 ? live_bytes : child_bytes;
		family[i].parent = i == 0 ? -1 : 0;
		if (i == 0)
			continue;
		family[i].launcher = NULL;
		family[i].resident = NULL;
		family[i].inherited_bytes = live_bytes;
	}
	hand.model.processes = family;
	hand.model.process_count = FAMILY;
	hand.model.argument = "kmemshim.out";
}

/* ---- the situations ---- */

static void
container_limit_with_a_leak(void)
{
	leaking(HEAP, 41, 400 * MIB, 1200);
	released(hand_model_site(&hand, HEAP, 50, 60 * MIB), 900 * MIB, 4000);
	looked(470 * MIB, 0);
	killed_in_container(512 * MIB);
}

static void
machine_ran_out_of_memory(void)
{
	hand_model_site(&hand, HEAP, 41, 9 * GIB);
	hand_model_site(&hand, MMAP, 52, 4 * GIB);
	looked(13 * GIB, 0);
	hand.heartbeat.available_bytes = 90 * MIB;
	hand_model_waited(&hand, SIGKILL);
	hand.launcher.after = (struct kmem_kill_counters){ 1, 0, 0, 1 };
}

static void
device_full_of_tensors(void)
{
	hand_model_site(&hand, HEAP, 12, 180 * MIB);
	taken_by_pytorch(15 * GIB);
	leaking(TENSORS0, 44, 14 * GIB, 700);
	hand_model_exited(&hand, 1);
	device_refused(20 * MIB, 12 * MIB, 16 * GIB);
}

static void
device_in_pieces(void)
{
	struct model_site *site;

	taken_by_pytorch(15 * GIB);
	site = hand_model_site(&hand, TENSORS0, 44, 9 * GIB);
	site->live_count = 500;
	released(site, 90 * GIB, 9000);
	hand_model_exited(&hand, 1);
	device_refused(2 * GIB, 300 * MIB, 16 * GIB);
}

/* Weights that are made once, and activations of each step. */
static void
device_in_pieces_though_expandable(void)
{
	struct model_site *site;

	device_in_pieces();
	site = hand_model_site(&hand, TENSORS0, 12, 2 * GIB);
	site->live_count = site->allocated_count = 60;
	hand.process.has_expandable_segments = true;
}

static void
shared_memory_is_full(void)
{
	hand_model_domain(&hand.domains[MMAP], "shared");
	hand_model_site(&hand, MMAP, 31, 61 * MIB);
	hand_model_site(&hand, HEAP, 20, 110 * MIB);
	hand.identity.shm_bytes = 64 * MIB;
	hand_model_waited(&hand, SIGBUS);
}

static void
request_refused_at_the_limit(void)
{
	hand_model_site(&hand, HEAP, 41, 3 * GIB);
	hand_model_exited(&hand, 1);
	hand_model_refuse(&hand, 2 * GIB);
	hand.failed.monotonic_ns += LIFE - SECOND / 10;
	hand.failed.own_space_bytes = 225 * MIB;
	hand.launcher.max_resident_bytes = 3 * GIB;
	hand.process.failed_count = 1;
	hand.identity.limits[0] = (struct kmem_limit){ .kind = KMEM_LIMIT_ADDRESS_SPACE, .bytes = 4 * GIB };
}

static void
request_refused_and_recovered(void)
{
	hand_model_site(&hand, HEAP, 41, 700 * MIB);
	hand_model_exited(&hand, 0);
	hand_model_refuse(&hand, 64 * GIB);
	hand.failed.monotonic_ns += LIFE / 2;
	hand.failed.had_success_after = true;
	hand.failed.got_bytes = 600 * MIB;
	hand.process.failed_count = 1;
}

static void
crash_with_much_memory(void)
{
	hand_model_site(&hand, HEAP, 41, 6 * GIB);
	hand_model_site(&hand, HEAP, 60, 2 * GIB);
	looked(8 * GIB, 0);
	hand_model_waited(&hand, SIGSEGV);
}

static void
swap_was_full_too(void)
{
	machine_ran_out_of_memory();
	hand.identity.swap_bytes = 8 * GIB;
	hand.heartbeat.swap_free_bytes = 8 * GIB / 10;
}

static void
aborted_itself(void)
{
	hand_model_site(&hand, HEAP, 41, 200 * MIB);
	looked(210 * MIB, 0);
	hand_model_waited(&hand, SIGABRT);
}

static void
processor_time_was_up(void)
{
	hand_model_site(&hand, HEAP, 41, 200 * MIB);
	looked(210 * MIB, 0);
	hand_model_waited(&hand, SIGXCPU);
}

static void
file_grew_too_large(void)
{
	hand_model_site(&hand, HEAP, 41, 200 * MIB);
	looked(210 * MIB, 0);
	hand_model_waited(&hand, SIGXFSZ);
}

static void
ended_by_sigterm(void)
{
	hand_model_site(&hand, HEAP, 41, 200 * MIB);
	looked(210 * MIB, 0);
	hand_model_waited(&hand, SIGTERM);
}

static void
failed_exit_with_a_leak(void)
{
	leaking(HEAP, 41, 300 * MIB, 5000);
	released(hand_model_site(&hand, HEAP, 50, 10 * MIB), GIB, 30000);
	looked(320 * MIB, 0);
	hand_model_exited(&hand, 1);
}

/* Tables of the user's own module, of which most is temporary; its other kind of memory is a list. */
static void
peak_while_importing(void)
{
	static struct model_point_site sites[] = { { 0, 150 * MIB }, { 1, 20 * MIB } };
	static struct model_point points[2];
	static struct model_frame frame;

	points[0] = (struct model_point){ .live_bytes = 175 * MIB, .site_count = ARRAY_LEN(sites), .sites = sites };
	points[1] = (struct model_point){ .live_bytes = 30 * MIB };
	for (unsigned i = 0; i < ARRAY_LEN(sites); i++) {
		struct model_site *site = hand_model_site(&hand, i == 0 ? HEAP : MMAP, 3, 15 * MIB);

		frame = hand.frames[i][2];
		frame.function = "<module>";
		frame.file = "/data/someone/project/tables.py";
		hand.frames[i][2] = frame;
		hand.stacks[i][2] = site->where = hand.stacks[0][2]; // as of a capture: equal frames are one object
		hand.frames[i][3].is_importlib = true;
		hand.frames[i][3].is_user = false;
		site->peak_bytes = sites[i].bytes;
		site->first_ms = 100;
		hand.domains[site->domain].peak_bytes = hand.domains[site->domain].concurrent_peak_bytes = sites[i].bytes;
	}
	hand_model_site(&hand, HEAP, 50, 2 * MIB)->first_ms = 2500;
	points[0].monotonic_ns = hand.identity.start_monotonic_ns + 2 * SECOND;
	points[1].monotonic_ns = hand.identity.start_monotonic_ns + LIFE;
	hand.process.points = points;
	hand.process.point_count = ARRAY_LEN(points);
	hand.process.live_bytes = 32 * MIB;
	hand.process.peak_bytes = 170 * MIB;
	looked(35 * MIB, 0);
	hand_model_exited(&hand, 0);
	hand.launcher.max_resident_bytes = 203 * MIB;
}

/* Of many small blocks. */
static void
recorder_takes_a_quarter(void)
{
	hand_model_site(&hand, HEAP, 41, 60 * MIB)->live_count = 2000000;
	looked(70 * MIB, 0);
	hand.resident.part_bytes[KMEM_RESIDENT_OWN] = 30 * MIB;
	hand.resident.resident_bytes += 26 * MIB;
	hand_model_exited(&hand, 0);
	hand.launcher.max_resident_bytes = 121 * MIB;
}

/* Four times as much was allocated meanwhile: it is no data set. */
static void
clean_exit_with_a_leak(void)
{
	struct model_site *site = leaking(HEAP, 41, 300 * MIB, 5000);

	released(hand_model_site(&hand, HEAP, 50, 10 * MIB), GIB, 30000);
	site->volume_bytes = 1300 * MIB;
	looked(320 * MIB, 0);
	hand_model_exited(&hand, 0);
}

static void
clean_exit(void)
{
	released(hand_model_site(&hand, HEAP, 41, 40 * MIB), 2 * GIB, 700);
	hand.domains[HEAP].peak_bytes = hand.domains[HEAP].concurrent_peak_bytes = 900 * MIB;
	hand.sites[0].peak_bytes = 880 * MIB;
	hand.process.peak_bytes = 900 * MIB;
	hand_model_exited(&hand, 0);
}

static void
still_running(void)
{
	leaking(HEAP, 41, 150 * MIB, 800);
	hand_model_site(&hand, HEAP, 50, 80 * MIB);
	looked(240 * MIB, 0);
	hand.process.is_alive = true;
}

static void
gone_without_a_trace(void)
{
	hand_model_site(&hand, HEAP, 41, 420 * MIB);
	looked(430 * MIB, 0);
	seen_here();
	memset(&hand.identity.before, 0xff, sizeof(hand.identity.before)); // no kill can be counted
}

static void
forked_workers_copied(void)
{
	static struct model_built built;

	hand_model_site(&hand, HEAP, 18, 2 * GIB);
	looked(2 * GIB, 0);
	killed_in_container(4 * GIB);
	built = (struct model_built){ .site = &hand.sites[0], .live_bytes = 2 * GIB };
	forked(2 * GIB, 30 * MIB);
	for (unsigned i = 1; i < FAMILY; i++) {
		family[i].copied_bytes = 600 * MIB;
		family[i].private_dirty_bytes = 650 * MIB;
		family[i].built = &built;
		family[i].built_count = 1;
	}
}

static void
child_killed(void)
{
	struct model_site *site;

	hand_model_site(&hand, HEAP, 18, 60 * MIB);
	site = leaking(HEAP, 71, 900 * MIB, 3000);
	site->process = 2;
	seen_here();
	hand_model_exited(&hand, 0);
	container(GIB, GIB - 3 * MIB);
	hand.launcher.after = (struct kmem_kill_counters){ 1, 1, 300, 1 };
	forked(60 * MIB, 10 * MIB);
	for (unsigned i = 1; i < FAMILY; i++) {
		family[i].state = i == 2 ? KMEM_STATE_RUNNING : KMEM_STATE_CLEAN_EXIT;
		family[i].exit_code = i == 2 ? -1 : 0;
	}
	family[2].live_bytes = family[2].peak_bytes = 900 * MIB;
	family[2].inherited_bytes = 0;
}

static void
freed_memory_is_kept(void)
{
	struct model_site *site = hand_model_site(&hand, HEAP, 7, 5 * MIB);

	site->pinned_bytes = 140 * MIB;
	site->live_count = 900;
	site = hand_model_site(&hand, HEAP, 9, 45 * MIB);
	site->pinned_bytes = 10 * MIB;
	released(site, 3 * GIB, 90000);
	looked(300 * MIB, 0);
	hand.process.heap_sample = (struct model_heap_sample){ .sampled_pages = 1000,
		                                                   .bytes = 300 * MIB,
		                                                   .empty_bytes = 105 * MIB,
		                                                   .sparse_bytes = 150 * MIB,
		                                                   .sparse_live_bytes = 5 * MIB };
	hand.process.thread_count = 24;
	killed_in_container(330 * MIB);
}

static void
library_with_its_own_allocator(void)
{
	hand_model_domain(&hand.domains[MMAP], "library");
	hand_model_site(&hand, MMAP, 18, 812 * MIB)->library = "polars";
	hand.frames[0][0].module = "_polars_runtime_32.abi3.so";
	hand.frames[0][0].module_path = "/opt/v/lib/python3.11/site-packages/_polars_runtime_32/_polars_runtime_32.abi3.so";
	hand_model_site(&hand, HEAP, 20, 30 * MIB);
	looked(40 * MIB, 840 * MIB);
	killed_in_container(900 * MIB);
}

static void
memory_that_was_never_touched(void)
{
	untouched(hand_model_site(&hand, HEAP, 2, 2 * GIB), 2 * GIB - 4 * KIB);
	leaking(HEAP, 6, 316 * MIB, 900);
	looked(330 * MIB, 0);
	killed_in_container(400 * MIB);
}

static void
imports_hold_it(void)
{
	static const char *const modules[] = { "torch", "transformers", "numpy" };

	for (unsigned i = 0; i < ARRAY_LEN(modules); i++) {
		hand_model_site(&hand, HEAP, 1 + i, (300 - 90 * i) * MIB)->import = modules[i];
		hand.sites[i].stack_flags = KMEM_STACK_IMPORT_CUT;
		hand.frames[i][1].is_importlib = true;
	}
	hand_model_site(&hand, HEAP, 41, 40 * MIB);
	looked(690 * MIB, 0);
	killed_in_container(720 * MIB);
}

static void
data_set_loaded_once(void)
{
	struct model_site *site = leaking(HEAP, 12, 700 * MIB, 70000);

	site->volume_bytes = 800 * MIB;
	site->born_generations = 12;
	site->span_bytes = 780 * MIB;
	looked(740 * MIB, 0);
	killed_in_container(768 * MIB);
}

/* HEAP and MMAP stand for the two domains of small objects. */
static struct model_site *
sampled(uint32_t line, uint64_t bytes)
{
	struct model_site *site;

	hand_model_domain(&hand.domains[HEAP], "python/object");
	hand.model.sample_bytes = KMEM_PYTHON_SAMPLE_BYTES;
	site = leaking(HEAP, line, bytes, bytes / 80);
	site->samples = bytes / KMEM_PYTHON_SAMPLE_BYTES;
	return site;
}

static void
free_in_arenas(uint64_t bytes)
{
	static const struct model_frame frame = { .kind = MODEL_FRAME_PYTHON,
		                                      .function = "free in arenas of small Python objects",
		                                      .file = "",
		                                      .module = "",
		                                      .module_path = "" };
	static const struct model_frame *const frames[] = { &frame };
	struct model_site *site;

	hand_model_domain(&hand.domains[MMAP], "python/arena");
	site = hand_model_site(&hand, MMAP, 99, bytes);
	site->is_rest_of_arenas = true;
	site->stack_flags = KMEM_STACK_ARENA;
	site->where = &frame;
	site->frames = frames;
	site->frame_count = 1;
}

static void
small_objects_are_kept(void)
{
	sampled(41, 600 * MIB);
	free_in_arenas(50 * MIB);
	looked(20 * MIB, 0);
	killed_in_container(700 * MIB);
}

/* At the peak there were samples; of what is live there are none. */
static void
small_objects_were_live_only_at_the_peak(void)
{
	struct model_site *site = sampled(41, 600 * MIB);

	site->live_bytes = site->live_count = site->samples = 0;
	hand.domains[HEAP].live_bytes = hand.domains[HEAP].live_count = 0;
	hand.process.live_bytes = 0;
	free_in_arenas(50 * MIB);
	hand_model_exited(&hand, 0);
}

static void
small_objects_too_few_to_judge(void)
{
	struct model_site *site = sampled(41, 2 * MIB);

	hand_model_generations(site, 1, 1, 1, 1);
	free_in_arenas(1 * MIB);
	hand_model_site(&hand, CUDA0, 12, 300 * MIB);
	looked(20 * MIB, 0);
}

static void
small_objects_were_released(void)
{
	struct model_site *site = sampled(41, 10 * MIB);

	hand_model_generations(site, 1, 12, 0, 3);
	free_in_arenas(500 * MIB);
	looked(20 * MIB, 0);
	killed_in_container(520 * MIB);
}

static void
program_in_cpp(void)
{
	static const struct model_frame frames[] = {
		{ .kind = MODEL_FRAME_NATIVE,
		  .function = "operator new",
		  .file = "",
		  .module = "libstdc++.so.6",
		  .module_path = "/usr/lib/libstdc++.so.6" },
		{ .kind = MODEL_FRAME_NATIVE,
		  .function = "Cache::insert",
		  .file = "/data/someone/project/cache.cc",
		  .line = 88,
		  .module = "server",
		  .module_path = "/data/someone/project/server",
		  .is_user = true },
		{ .kind = MODEL_FRAME_NATIVE,
		  .function = "main",
		  .file = "/data/someone/project/server.cc",
		  .line = 20,
		  .module = "server",
		  .module_path = "/data/someone/project/server",
		  .is_user = true },
	};
	static const struct model_frame *const stack[] = { &frames[0], &frames[1], &frames[2] };
	static const char command[] = "./server\0--port\0"
								  "80";
	struct model_site *site = leaking(HEAP, 88, 420 * MIB, 9000);

	site->frames = stack;
	site->frame_count = ARRAY_LEN(stack);
	site->where = &frames[1];
	hand.process.name = "server";
	hand.process.python_version = 0;
	memcpy(hand.identity.command, command, sizeof(command));
	hand.identity.command_bytes = sizeof(command);
	looked(430 * MIB, 0);
	killed_in_container(450 * MIB);
}

static void
time_was_up(void)
{
	static const char command[] = "timeout\0"
								  "60\0python\0train.py";
	hand_model_site(&hand, HEAP, 41, 90 * MIB)->process = 1;
	looked(100 * MIB, 0);
	seen_here();
	memset(&hand.identity.before, 0xff, sizeof(hand.identity.before));
	hand_model_waited(&hand, 124 << 8);
	forked(0, 90 * MIB);
	hand.model.process_count = 2;
	memcpy(family_identity[0].command, command, sizeof(command));
	family_identity[0].command_bytes = sizeof(command);
	family[0].state = KMEM_STATE_CLEAN_EXIT;
	family[0].exit_code = 124;
	family[0].name = "timeout";
	family[0].python_version = 0;
	family[0].resident = NULL;
	family[1].resident = &hand.resident;
}

static void
notebook_lost_a_tensor(void)
{
	hand_model_site(&hand, HEAP, 12, 180 * MIB);
	looked(190 * MIB, 0);
	taken_by_pytorch(12 * GIB);
	hand_model_site(&hand, TENSORS0, 44, 11 * GIB)->live_count = 300;
	hand.process.is_alive = true;
	device_refused(8 * GIB, 3 * GIB, 16 * GIB);
	hand.process.ended_monotonic_ns = 0;
	hand.process.python_version = 0x030c01f0;
}

/* One of three; the others only read. */
static void
one_worker_copied(void)
{
	forked_workers_copied();
	family[1].copied_bytes = family[3].copied_bytes = 0;
}

static void
children_killed(void)
{
	child_killed();
	hand.launcher.after.cgroup_oom_kill = 2;
	hand.launcher.after.machine_oom_kill = 2;
	family[3].state = KMEM_STATE_RUNNING;
	family[3].exit_code = -1;
	family[3].live_bytes = family[3].peak_bytes = 40 * MIB;
}

static void
machine_nearly_full(void)
{
	machine_ran_out_of_memory();
	memset(&hand.identity.before, 0xff, sizeof(hand.identity.before)); // no kill can be counted
	memset(&hand.launcher.after, 0xff, sizeof(hand.launcher.after));
}

static void
failed_after_requests_were_met(void)
{
	request_refused_and_recovered();
	hand_model_exited(&hand, 1);
	hand.process.failed_count = 3;
}

static void
request_refused_and_perhaps_caught(void)
{
	request_refused_at_the_limit();
	hand_model_exited(&hand, 3);
	hand.failed.got_bytes = 8 * MIB;
}

static void
request_beyond_overcommit(void)
{
	request_refused_at_the_limit();
	hand.identity.limits[0] = (struct kmem_limit){ .kind = KMEM_LIMIT_ADDRESS_SPACE, .bytes = UINT64_MAX };
	hand.identity.overcommit_mode = 2;
}

static void
device_lines_grow_together(void)
{
	static struct model_failed failed[3];

	device_full_of_tensors();
	hand.domains[TENSORS0].live_bytes = hand.domains[TENSORS0].peak_bytes = 8 * GIB;
	hand.sites[2].live_bytes = hand.sites[2].peak_bytes = 8 * GIB;
	leaking(TENSORS0, 45, 6 * GIB, 700);
	for (unsigned i = 0; i < ARRAY_LEN(failed); i++) {
		failed[i] = hand.failed;
		failed[i].outcome = KMEM_FAILED_GOT_ENOUGH;
		failed[i].had_success_after = true;
		failed[i].monotonic_ns -= (ARRAY_LEN(failed) - i) * SECOND;
	}
	failed[ARRAY_LEN(failed) - 1] = hand.failed;
	hand.model.failed = failed;
	hand.model.failed_count = hand.process.failed_count = ARRAY_LEN(failed);
}

static void
device_taken_in_advance(void)
{
	hand_model_site(&hand, HEAP, 12, 180 * MIB);
	hand_model_site(&hand, CUDA0, 44, 14 * GIB)->live_count = 2;
	hand_model_exited(&hand, 1);
	device_refused(3 * GIB, 100 * MIB, 16 * GIB);
	hand.failed.domain = CUDA0;
}

/* So long before its end, of 450 MiB. */
static void
passed_guard(enum kmem_guard_action action, uint64_t request_bytes)
{
	hand.process.ended_monotonic_ns = hand.identity.start_monotonic_ns + LIFE;
	hand.process.guard = (struct kmem_guard_passing){ .monotonic_ns = hand.process.ended_monotonic_ns - 3 * SECOND,
		                                              .used_bytes = 406 * MIB,
		                                              .guard_bytes = 405 * MIB,
		                                              .limit_bytes = 450 * MIB,
		                                              .limit_kind = KMEM_LIMIT_CGROUP,
		                                              .action = action,
		                                              .request_bytes = request_bytes,
		                                              .number = 1 };
}

/* In C, say: Python never comes to it. */
static void
guard_passed_and_killed_all_the_same(void)
{
	leaking(HEAP, 41, 400 * MIB, 4000);
	looked(420 * MIB, 0);
	killed_in_container(450 * MIB);
	passed_guard(KMEM_GUARD_INTERRUPT, 0);
}

/* Of a notebook: what killed it is not what the guard had stopped. */
static void
guard_stopped_a_cell_and_others_ran(void)
{
	guard_passed_and_killed_all_the_same();
	hand.process.cells_since_guard = (struct model_cells_since){
		.count = 2,
		.number = 6,
		.began_ns = hand.process.ended_monotonic_ns - SECOND,
		.command = "%kmem",
	};
}

static void
guard_interrupted_it(void)
{
	leaking(HEAP, 41, 380 * MIB, 4000);
	looked(400 * MIB, 0);
	container(450 * MIB, 407 * MIB);
	hand_model_waited(&hand, SIGINT);
	passed_guard(KMEM_GUARD_INTERRUPT, 0);
}

static void
guard_refused_a_request(void)
{
	hand_model_site(&hand, HEAP, 41, 380 * MIB);
	looked(400 * MIB, 0);
	container(450 * MIB, 400 * MIB);
	hand_model_waited(&hand, 1 << 8);
	hand.process.state = KMEM_STATE_CLEAN_EXIT;
	hand.process.exit_code = 1;
	hand.process.failed_count = 1;
	passed_guard(KMEM_GUARD_RAISE, 60 * MIB);
	hand.failed = (struct model_failed){ .bytes = 60 * MIB,
		                                 .domain = HEAP,
		                                 .error = 12,
		                                 .is_by_guard = true,
		                                 .monotonic_ns = hand.process.guard.monotonic_ns,
		                                 .site = &hand.sites[0] };
	hand.model.failed_count = 1;
}

/* Some MiB a second, of 450 MiB. */
static void
beats_that_grow(uint64_t first_bytes, uint64_t step_bytes)
{
	static struct kmem_heartbeat beats[60];

	for (size_t i = 0; i < ARRAY_LEN(beats); i++)
		beats[i] = (struct kmem_heartbeat){ .monotonic_ns = hand.identity.start_monotonic_ns + (i + 1) * SECOND,
			                                .resident_bytes = first_bytes + i * step_bytes,
			                                .cgroup_bytes = first_bytes + i * step_bytes,
			                                .limit_bytes = 450 * MIB,
			                                .available_bytes = 8 * GIB };
	hand.process.heartbeats = beats;
	hand.process.heartbeat_count = ARRAY_LEN(beats);
}

static void
it_will_reach_the_limit(void)
{
	leaking(HEAP, 41, 100 * MIB, 4000);
	looked(130 * MIB, 0);
	container(450 * MIB, 140 * MIB);
	hand.process.is_alive = true;
	beats_that_grow(40 * MIB, MIB * 3 / 2);
}

/* ---- */

#define SITUATION(name) \
	{                   \
#name, name     \
	}

static const struct situation {
	const char *name; // of the file
	void (*make)(void);
} situations[] = {
	SITUATION(container_limit_with_a_leak),
	SITUATION(machine_ran_out_of_memory),
	SITUATION(device_full_of_tensors),
	SITUATION(device_in_pieces),
	SITUATION(device_in_pieces_though_expandable),
	SITUATION(shared_memory_is_full),
	SITUATION(request_refused_at_the_limit),
	SITUATION(request_refused_and_recovered),
	SITUATION(crash_with_much_memory),
	SITUATION(swap_was_full_too),
	SITUATION(aborted_itself),
	SITUATION(processor_time_was_up),
	SITUATION(file_grew_too_large),
	SITUATION(ended_by_sigterm),
	SITUATION(failed_exit_with_a_leak),
	SITUATION(clean_exit),
	SITUATION(clean_exit_with_a_leak),
	SITUATION(peak_while_importing),
	SITUATION(recorder_takes_a_quarter),
	SITUATION(still_running),
	SITUATION(gone_without_a_trace),
	SITUATION(forked_workers_copied),
	SITUATION(child_killed),
	SITUATION(freed_memory_is_kept),
	SITUATION(library_with_its_own_allocator),
	SITUATION(memory_that_was_never_touched),
	SITUATION(imports_hold_it),
	SITUATION(data_set_loaded_once),
	SITUATION(small_objects_are_kept),
	SITUATION(small_objects_were_live_only_at_the_peak),
	SITUATION(small_objects_too_few_to_judge),
	SITUATION(small_objects_were_released),
	SITUATION(program_in_cpp),
	SITUATION(time_was_up),
	SITUATION(notebook_lost_a_tensor),
	SITUATION(guard_passed_and_killed_all_the_same),
	SITUATION(guard_stopped_a_cell_and_others_ran),
	SITUATION(guard_interrupted_it),
	SITUATION(guard_refused_a_request),
	SITUATION(it_will_reach_the_limit),
	SITUATION(device_taken_in_advance),
	SITUATION(device_lines_grow_together),
	SITUATION(request_beyond_overcommit),
	SITUATION(request_refused_and_perhaps_caught),
	SITUATION(failed_after_requests_were_met),
	SITUATION(machine_nearly_full),
	SITUATION(children_killed),
	SITUATION(one_worker_copied),
};

/* The verdict as programs read it. */
static void
write_facts(const struct report *report, FILE *stream)
{
	char *text = NULL;
	size_t length = 0;
	FILE *whole = open_memstream(&text, &length);
	json_error_t error;
	json_t *root, *verdict;

	render_json(report, whole);
	assert_int_equal(fclose(whole), 0);
	root = json_loads(text, 0, &error);
	free(text);
	if (root == NULL)
		fail_msg("no JSON: %s", error.text);
	verdict = json_object_get(root, "verdict");
	for (const char *const *name = (const char *const[]){ "headline", "next", "evidence", "text", NULL }; *name != NULL;
	     name++)
		(void)json_object_del(verdict, *name);
	assert_int_equal(json_dumpf(verdict, stream, JSON_INDENT(2)), 0);
	json_decref(root);
	(void)fputc('\n', stream);
}

/* What a person reads first is short, and what the bar shows is all that the first sentence names. */
static void
check_form(const struct report_verdict *verdict)
{
	assert_true(paragraph_put(NULL, PAGE_COLUMNS, verdict->headline, 0, 0) +
	                paragraph_put(NULL, PAGE_COLUMNS, verdict->next, 6, 6) <=
	            6);
	if (verdict->bar_count != 0) {
		assert_int_equal(SUM_OF(part, verdict->bar, verdict->bar_count, part->bytes), verdict->memory->of.bytes);
		assert_non_null(strstr(verdict->headline, UNITS_BYTES(verdict->memory->of.bytes)));
	}
	assert_null(strchr(verdict->text, '{'));
	assert_null(strchr(verdict->next, '{'));
}

static void
is_told_as_agreed(void **state)
{
	const struct situation *situation = *state;
	const struct report_options rows = { .top = 5 };
	const struct options options = { .top = UINT64_MAX };
	struct document document = { .count = 0 };
	struct fail fail = { .text = "" };
	struct report *report;
	char name[128];
	char *text = NULL;
	size_t length = 0;
	FILE *stream = open_memstream(&text, &length);

	hand_model_make(&hand);
	situation->make();
	while (hand.domains[hand.model.domain_count - 1].allocated_count == 0)
		hand.model.domain_count--; // as of a capture: those that were used
	site_key_assign(hand.sites, hand.model.site_count, hand.domains);
	report = report_build(&hand.model, &rank_peak, &rows, &fail);
	if (report == NULL)
		fail_msg("no report: %s", fail.text);
	check_form(&report->verdict);
	assert_true(cmd_report_page(report, &options, 5, &document, &fail));
	document_put(&document, stream);
	(void)fputs("\n---- \"verdict\" of --json ----\n", stream);
	write_facts(report, stream);
	(void)fputs("\n---- at the end of a run, 80 columns ----\n", stream);
	assert_true(render_glance(report, &(struct glance_options){ .columns = 80 }, stream, &fail));
	assert_int_equal(fclose(stream), 0);
	report_free(report);
	(void)snprintf(name, sizeof(name), "situations/%s.txt", situation->name);
	golden_compare(name, text);
	free(text);
}

int
main(void)
{
	struct CMUnitTest tests[ARRAY_LEN(situations)];

	(void)setenv("TZ", "UTC", 1);
	for (size_t i = 0; i < ARRAY_LEN(situations); i++)
		tests[i] = (struct CMUnitTest){ .name = situations[i].name,
			                            .test_func = is_told_as_agreed,
			                            .initial_state = (void *)(uintptr_t)&situations[i] };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
