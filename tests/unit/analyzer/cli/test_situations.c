/*
 * test_situations.c - what is a person told in some situations (tests/golden/situations)?
 *
 * Each is a model made by hand. Its file holds the whole page, which begins with the verdict, and the verdict's JSON without
 * the texts. Run from the root of the repository; `make golden` writes the files anew, and the difference is for review.
 */
#include "scene.h"

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

#define FAMILY 4
#define SECOND UINT64_C(1000000000)
#define LIFE (60 * SECOND) // hand_model_waited()

static struct hand_model hand;
static struct model_process family[FAMILY];
static struct kmem_identity family_identity[FAMILY];
static struct kmem_heartbeat family_beat[FAMILY];

/* So much of malloc's and of libraries' mappings was in memory, at a look just before the end. */
#define LOOKED(heap, reserved) \
	"look brk=" heap " reserved=" reserved " program=20M own=4M monotonic_ns=65s; heartbeat monotonic_ns=65s; "

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
		family[i].inherited_bytes = family[i].inherited_heap_bytes = live_bytes;
	}
	hand.model.processes = family;
	hand.model.process_count = FAMILY;
	hand.model.argument = "kmemshim.out";
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
	scene_add(&hand, LOOKED("35M", "0") "exit 0; launcher max_resident_bytes=203M");
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

	hand_model_domain(&hand.domains[MMAP], "python/arena");
	struct model_site *site = hand_model_site(&hand, MMAP, 99, bytes);
	site->is_rest_of_arenas = true;
	site->stack_flags = KMEM_STACK_ARENA;
	site->where = &frame;
	site->frames = frames;
	site->frame_count = 1;
}

static void
arenas_with_1_mib_free(void)
{
	free_in_arenas(MIB);
}

static void
arenas_with_50_mib_free(void)
{
	free_in_arenas(50 * MIB);
}

static void
arenas_with_500_mib_free(void)
{
	free_in_arenas(500 * MIB);
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
	struct model_site *site = &hand.sites[0];

	site->frames = stack;
	site->frame_count = ARRAY_LEN(stack);
	site->where = &frames[1];
	hand.process.name = "server";
	hand.process.python_version = 0;
	memcpy(hand.identity.command, command, sizeof(command));
	hand.identity.command_bytes = sizeof(command);
}

static void
time_was_up(void)
{
	static const char command[] = "timeout\0"
								  "60\0python\0train.py";
	seen_here();
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
device_lines_grow_together(void)
{
	static struct model_failed failed[3];

	scene_add(
		&hand,
		"domain tensors live_bytes=8G peak_bytes=8G; last live_bytes=8G peak_bytes=8G; tensors:45 6G leak blocks=700");
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

/* Three seconds before its end, of 450 MiB. */
static void
passed_guard(void)
{
	hand.process.ended_monotonic_ns = hand.identity.start_monotonic_ns + LIFE;
	hand.process.guard = (struct kmem_guard_passing){ .monotonic_ns = hand.process.ended_monotonic_ns - 3 * SECOND,
		                                              .used_bytes = 406 * MIB,
		                                              .guard_bytes = 405 * MIB,
		                                              .limit_bytes = 450 * MIB,
		                                              .limit_kind = KMEM_LIMIT_CGROUP,
		                                              .action = KMEM_GUARD_INTERRUPT,
		                                              .number = 1 };
}

static void
guard_refused_a_request(void)
{
	passed_guard();
	hand.process.guard.action = KMEM_GUARD_RAISE;
	hand.process.guard.request_bytes = 60 * MIB;
}

/* Of a notebook: what killed it is not what the guard had stopped. */
static void
guard_stopped_a_cell_and_others_ran(void)
{
	passed_guard();
	hand.process.cells_since_guard = (struct model_cells_since){
		.count = 2,
		.number = 6,
		.began_ns = hand.process.ended_monotonic_ns - SECOND,
		.command = "%kmem",
	};
}

static void
imports_hold_it(void)
{
	for (unsigned i = 0; i < 3; i++)
		hand.frames[i][1].is_importlib = true;
}

static void
forked_workers_copied(void)
{
	static struct model_built built;

	built = (struct model_built){ .site = &hand.sites[0], .live_bytes = 2 * GIB };
	forked(2 * GIB, 30 * MIB);
	for (unsigned i = 1; i < FAMILY; i++) {
		family[i].copied_bytes = 600 * MIB;
		family[i].private_dirty_bytes = 650 * MIB;
		family[i].built = &built;
		family[i].built_count = 1;
	}
}

/* One of three; the others only read. */
static void
one_worker_copied(void)
{
	forked_workers_copied();
	family[1].copied_bytes = family[3].copied_bytes = 0;
}

static void
child_killed(void)
{
	seen_here();
	forked(60 * MIB, 10 * MIB);
	for (unsigned i = 1; i < FAMILY; i++) {
		family[i].state = i == 2 ? KMEM_STATE_RUNNING : KMEM_STATE_CLEAN_EXIT;
		family[i].exit_code = i == 2 ? -1 : 0;
	}
	family[2].live_bytes = family[2].peak_bytes = 900 * MIB;
	family[2].inherited_bytes = 0;
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

/* A minute; 1.5 MiB a second, of 450 MiB. */
static void
beats_that_grow(void)
{
	for (size_t i = 0; i < 60; i++)
		hand.beats[i] = (struct kmem_heartbeat){ .monotonic_ns = hand.identity.start_monotonic_ns + (i + 1) * SECOND,
			                                     .resident_bytes = 40 * MIB + i * MIB * 3 / 2,
			                                     .cgroup_bytes = 40 * MIB + i * MIB * 3 / 2,
			                                     .limit_bytes = 450 * MIB,
			                                     .available_bytes = 8 * GIB };
	hand.process.heartbeats = hand.beats;
	hand.process.heartbeat_count = 60;
}

/* ---- */

#define CONTAINER(limit, charged) "limit cgroup " limit "; heartbeat cgroup_bytes=" charged "; "
#define KILLED_AT(limit, room)       \
	CONTAINER(limit, limit "-" room) \
	"killed; after cgroup_oom_kill=1 cgroup_oom=1 cgroup_max_hits=900 machine_oom_kill=1; "
#define UNCOUNTED(counters) counters " cgroup_oom_kill=max cgroup_oom=max cgroup_max_hits=max machine_oom_kill=max; "
#define MACHINE_IS_FULL                                                                                             \
	"heap:41 9G; mmap:52 4G; " LOOKED("13G", "0") "heartbeat available_bytes=90M; killed; after cgroup_oom_kill=1 " \
												  "machine_oom_kill=1; "
/* PyTorch's allocator took so much of the driver. */
#define PYTORCH(bytes) "cuda0:44 " bytes " module=/opt/torch/lib/libc10_cuda.so; model domain_count=5; "
/* So long before its end a device had no room for a tensor of the last site. */
#define DEVICE_REFUSED(bytes, free, total, site)                                          \
	"process failed_count=1 ended_monotonic_ns=65s; refuse " bytes " of=tensors at=" site \
	" error=2 thread=1 monotonic_ns=65s-100ms free_bytes=" free " total_bytes=" total "; "
#define DEVICE_IS_FULL \
	"heap:12 180M; " PYTORCH("15G") "tensors:44 14G leak blocks=700; exit 1; " DEVICE_REFUSED("20M", "12M", "16G", "2")
#define DEVICE_IN_PIECES \
	PYTORCH("15G") "tensors:44 9G live_count=500 freed=90G/9000; exit 1; " DEVICE_REFUSED("2G", "300M", "16G", "1")
#define REFUSED_AT_LIMIT                                                                                          \
	"heap:41 3G; exit 1; refuse 2G monotonic_ns=65s-100ms own_space_bytes=225M; launcher max_resident_bytes=3G; " \
	"process failed_count=1; limit as 4G; "
#define RECOVERED \
	"heap:41 700M; exit 0; refuse 64G monotonic_ns=35s had_success_after=1 got_bytes=600M; process failed_count=1; "
#define FORKED "heap:18 2G; " LOOKED("2G", "0") KILLED_AT("4G", "16M")
#define CHILD_KILLED                                                                                               \
	"heap:18 60M; heap:71 900M leak blocks=3000 process=2; exit 0; " CONTAINER("1G",                               \
	                                                                           "1G-3M") "after cgroup_oom_kill=1 " \
																						"cgroup_oom=1 "            \
																						"cgroup_max_hits=300 "     \
																						"machine_oom_kill=1; "
/* HEAP and MMAP stand for the two domains of small objects. */
#define SAMPLED "name heap python/object; model sample_bytes=256K; heap:41 "
#define GUARDED "heap:41 400M leak blocks=4000; " LOOKED("420M", "0") KILLED_AT("450M", "1800K")

static const struct situation {
	const char *name; // of the file
	const char *scene;
	void (*then)(void); // what no scene tells
} situations[] = {
	{ "container_limit_with_a_leak",
	  "heap:41 400M leak blocks=1200; heap:50 60M freed=900M/4000; " LOOKED("470M", "0") KILLED_AT("512M", "2M"),
	  NULL },
	{ "machine_ran_out_of_memory", MACHINE_IS_FULL, NULL },
	{ "device_full_of_tensors", DEVICE_IS_FULL, NULL },
	{ "device_in_pieces", DEVICE_IN_PIECES, NULL },
	/* Weights that are made once, and activations of each step. */
	{ "device_in_pieces_though_expandable",
	  DEVICE_IN_PIECES "tensors:12 2G live_count=60 allocated_count=60; process has_expandable_segments=1", NULL },
	{ "shared_memory_is_full", "name mmap shared; mmap:31 61M; heap:20 110M; identity shm_bytes=64M; signal 7", NULL },
	{ "request_refused_at_the_limit", REFUSED_AT_LIMIT, NULL },
	{ "request_refused_and_recovered", RECOVERED, NULL },
	{ "crash_with_much_memory", "heap:41 6G; heap:60 2G; " LOOKED("8G", "0") "signal 11", NULL },
	{ "swap_was_full_too", MACHINE_IS_FULL "identity swap_bytes=8G; heartbeat swap_free_bytes=858993459", NULL },
	{ "aborted_itself", "heap:41 200M; " LOOKED("210M", "0") "signal 6", NULL },
	{ "processor_time_was_up", "heap:41 200M; " LOOKED("210M", "0") "signal 24", NULL },
	{ "file_grew_too_large", "heap:41 200M; " LOOKED("210M", "0") "signal 25", NULL },
	{ "ended_by_sigterm", "heap:41 200M; " LOOKED("210M", "0") "signal 15", NULL },
	{ "failed_exit_with_a_leak",
	  "heap:41 300M leak blocks=5000; heap:50 10M freed=1G/30000; " LOOKED("320M", "0") "exit 1", NULL },
	{ "clean_exit",
	  "heap:41 40M freed=2G/700 peak_bytes=880M; domain heap peak_bytes=900M concurrent_peak_bytes=900M; "
	  "process peak_bytes=900M; exit 0",
	  NULL },
	/* Four times as much was allocated meanwhile: it is no data set. */
	{ "clean_exit_with_a_leak",
	  "heap:41 300M leak blocks=5000 volume_bytes=1300M; heap:50 10M freed=1G/30000; " LOOKED("320M", "0") "exit 0",
	  NULL },
	{ "peak_while_importing", "", peak_while_importing },
	/* Of many small blocks. */
	{ "recorder_takes_a_quarter",
	  "heap:41 60M live_count=2000000; look brk=70M program=20M own=30M monotonic_ns=65s; "
	  "heartbeat monotonic_ns=65s resident_bytes=94M; exit 0; launcher max_resident_bytes=121M",
	  NULL },
	{ "still_running", "heap:41 150M leak blocks=800; heap:50 80M; " LOOKED("240M", "0") "alive", NULL },
	{ "gone_without_a_trace", "heap:41 420M; " LOOKED("430M", "0") UNCOUNTED("before"), seen_here },
	{ "forked_workers_copied", FORKED, forked_workers_copied },
	{ "child_killed", CHILD_KILLED, child_killed },
	{ "freed_memory_is_kept",
	  "heap:7 5M pinned_bytes=140M live_count=900; heap:9 45M pinned_bytes=10M freed=3G/90000; " LOOKED(
		  "300M",
		  "0") "sample bytes=300M empty_bytes=105M sparse_bytes=150M sparse_live_bytes=5M; process thread_count=24; " KILLED_AT("330M",
	                                                                                                                            "1320K"),
	  NULL },
	{ "library_with_its_own_allocator",
	  "name mmap library; mmap:18 812M library=polars "
	  "module=/opt/v/lib/python3.11/site-packages/_polars_runtime_32/_polars_runtime_32.abi3.so; heap:20 30M; " LOOKED(
		  "40M", "840M") KILLED_AT("900M", "3600K"),
	  NULL },
	{ "memory_that_was_never_touched",
	  "heap:2 2G untouched=2G-4K; heap:6 316M leak blocks=900; " LOOKED("330M", "0") KILLED_AT("400M", "1600K"), NULL },
	{ "imports_hold_it",
	  "heap:1 300M import import=torch; heap:2 210M import import=transformers; heap:3 120M import import=numpy; "
	  "heap:41 40M; " LOOKED("690M", "0") KILLED_AT("720M", "2880K"),
	  imports_hold_it },
	{ "data_set_loaded_once",
	  "heap:12 700M leak blocks=70000 volume_bytes=800M born_generations=12 span_bytes=780M; " LOOKED("740M", "0")
	      KILLED_AT("768M", "3M"),
	  NULL },
	{ "small_objects_are_kept",
	  SAMPLED "600M leak blocks=7864320 samples=2400; " LOOKED("20M", "0") KILLED_AT("700M", "2800K"),
	  arenas_with_50_mib_free },
	/* At the peak there were samples; of what is live there are none. */
	{ "small_objects_were_live_only_at_the_peak",
	  SAMPLED
	  "600M leak blocks=7864320 live_bytes=0 live_count=0 samples=0; domain heap live_bytes=0 live_count=0; exit 0",
	  arenas_with_50_mib_free },
	{ "small_objects_too_few_to_judge",
	  SAMPLED "2M gens=1/1/1/1 blocks=26214 samples=8; cuda0:12 300M; " LOOKED("20M", "0"), arenas_with_1_mib_free },
	{ "small_objects_were_released",
	  SAMPLED "10M gens=1/12/0/3 blocks=131072 samples=40; " LOOKED("20M", "0") KILLED_AT("520M", "2080K"),
	  arenas_with_500_mib_free },
	{ "program_in_cpp", "heap:88 420M leak blocks=9000; " LOOKED("430M", "0") KILLED_AT("450M", "1800K"),
	  program_in_cpp },
	{ "time_was_up", "heap:41 90M process=1; " LOOKED("100M", "0") UNCOUNTED("before") "status 124", time_was_up },
	{ "notebook_lost_a_tensor",
	  "heap:12 180M; " LOOKED("190M", "0") PYTORCH("12G") "tensors:44 11G live_count=300; alive; " DEVICE_REFUSED(
		  "8G", "3G", "16G", "2") "process ended_monotonic_ns=0 python_version=0x030c01f0",
	  NULL },
	/* In C, say: Python never comes to it. */
	{ "guard_passed_and_killed_all_the_same", GUARDED, passed_guard },
	{ "guard_stopped_a_cell_and_others_ran", GUARDED, guard_stopped_a_cell_and_others_ran },
	{ "guard_interrupted_it",
	  "heap:41 380M leak blocks=4000; " LOOKED("400M", "0") CONTAINER("450M", "407M") "signal 2", passed_guard },
	{ "guard_refused_a_request",
	  "heap:41 380M; " LOOKED("400M", "0") CONTAINER("450M", "400M") "exit 1; process failed_count=1; "
	                                                                 "refuse 60M is_by_guard=1 monotonic_ns=62s",
	  guard_refused_a_request },
	{ "it_will_reach_the_limit",
	  "heap:41 100M leak blocks=4000; " LOOKED("130M", "0") CONTAINER("450M", "140M") "alive", beats_that_grow },
	{ "device_taken_in_advance",
	  "heap:12 180M; cuda0:44 14G live_count=2; exit 1; " DEVICE_REFUSED(
		  "3G", "100M", "16G", "1") "refuse 3G of=cuda0 at=1 "
	                                "error=2 thread=1 monotonic_ns=65s-100ms free_bytes=100M total_bytes=16G",
	  NULL },
	{ "device_lines_grow_together", DEVICE_IS_FULL, device_lines_grow_together },
	{ "request_beyond_overcommit", REFUSED_AT_LIMIT "limit as max; identity overcommit_mode=2", NULL },
	{ "request_refused_and_perhaps_caught", REFUSED_AT_LIMIT "exit 3; failed got_bytes=8M", NULL },
	{ "failed_after_requests_were_met", RECOVERED "exit 1; process failed_count=3", NULL },
	{ "machine_nearly_full", MACHINE_IS_FULL UNCOUNTED("before") UNCOUNTED("after"), NULL },
	{ "children_killed", CHILD_KILLED, children_killed },
	{ "one_worker_copied", FORKED, one_worker_copied },
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
	char name[128];
	char *text = NULL;
	size_t length = 0;
	FILE *stream = open_memstream(&text, &length);

	hand_model_make(&hand);
	scene_add(&hand, "%s", situation->scene);
	if (situation->then != NULL)
		situation->then();
	while (hand.domains[hand.model.domain_count - 1].allocated_count == 0)
		hand.model.domain_count--; // as of a capture: those that were used
	site_key_assign(hand.sites, hand.model.site_count, hand.domains);
	struct report *report = report_build(&hand.model, &rank_peak, &rows, &fail);
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
