/*
 * hand_model.h - a model made by hand: one process on a machine of 16 GiB, four domains, room for sites.
 *
 * Tests change what their case is about and leave the rest.
 */
#ifndef HAND_MODEL_H
#define HAND_MODEL_H

#include "test.h"

#include <errno.h>
#include <sys/wait.h>

#include "analysis/rank.h"
#include "analysis/held_over_time.h"
#include "model/model.h"
#include "verdict/verdict.h"

#define HAND_SITES 16
#define HAND_FRAMES 8
#define HAND_FAMILY 6
#define HAND_BEATS 64
#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

/* TENSORS0 is there for tests that count it in: model.domain_count. */
enum { HEAP, MMAP, RESERVED, CUDA0, HAND_DOMAINS, TENSORS0 = HAND_DOMAINS };

struct hand_model {
	struct model model;
	struct model_process process;
	struct kmem_identity identity;
	struct kmem_launcher launcher;
	struct kmem_heartbeat heartbeat;
	struct kmem_resident resident;
	struct model_domain domains[HAND_DOMAINS + 1];
	struct model_site sites[HAND_SITES];
	struct model_frame frames[HAND_SITES][HAND_FRAMES];
	const struct model_frame *stacks[HAND_SITES][HAND_FRAMES];
	struct model_failed failed;
	struct model_process family[HAND_FAMILY]; // of a scene with children: the processes
	struct kmem_identity identities[HAND_FAMILY];
	struct kmem_heartbeat beats[HAND_BEATS]; // of a scene with beats: those of the process
	struct kmem_heartbeat seen[HAND_FAMILY]; // of each of them alone
	char names[HAND_SITES][128], domain_names[HAND_DOMAINS + 1][32];
};

/* What can be read of this machine: nothing, until a test says so. */
static struct kmem_kill_counters hand_model_counters;

static inline void
hand_model_domain(struct model_domain *domain, const char *name)
{
	domain->name = name;
	domain->id = domain_id_named(name);
}

static inline void
hand_model_make(struct hand_model *hand)
{
	static const char *const names[] = { "heap", "mmap", "reserved", "cuda:0", "cuda:0/tensors" };
	static const char command[] = "python\0train.py\0it's";

	memset(hand, 0, sizeof(*hand));
	memset(&hand_model_counters, 0xff, sizeof(hand_model_counters));
	for (unsigned i = 0; i <= HAND_DOMAINS; i++)
		hand_model_domain(&hand->domains[i], names[i]);
	hand->identity.pid = 4242;
	hand->identity.parent_pid = 1;
	hand->identity.is_first = 1;
	hand->identity.start_realtime_ns = UINT64_C(1700000000000000000);
	hand->identity.start_monotonic_ns = UINT64_C(5000000000);
	hand->identity.machine_bytes = 16 * GIB;
	hand->identity.cgroup_version = 2;
	strcpy(hand->identity.boot_id, "this-boot");
	strcpy(hand->identity.session, "feed.4242");
	strcpy(hand->identity.tool_version, "0.9.0");
	strcpy(hand->identity.directory, "/data/someone/project");
	memcpy(hand->identity.command, command, sizeof(command));
	hand->identity.command_bytes = sizeof(command);
	hand->heartbeat = (struct kmem_heartbeat){
		.sequence = 1,
		.limit_bytes = UINT64_MAX,
		.available_bytes = 8 * GIB,
		.resident_bytes = 300 * MIB,
	};
	hand->resident = (struct kmem_resident){ .sequence = 1,
		                                     .resident_bytes = 300 * MIB,
		                                     .part_bytes = {
												 [KMEM_RESIDENT_OTHER] = MIB,
												 [KMEM_RESIDENT_HEAP] = 250 * MIB,
												 [KMEM_RESIDENT_PROGRAM] = 49 * MIB,
											 } };
	hand->process = (struct model_process){
		.path = "kmemshim.out/python.4242.1.kmem",
		.identity = &hand->identity,
		.state = KMEM_STATE_RUNNING,
		.exit_code = -1,
		.heartbeat_count = 1,
		.heartbeats = &hand->heartbeat,
		.resident = &hand->resident,
		.parent = -1,
		.name = "train.py",
		.python_version = 0x030b07f0,
	};
	hand->model = (struct model){
		.process_count = 1,
		.processes = &hand->process,
		.domain_count = HAND_DOMAINS,
		.domains = hand->domains,
		.sites = hand->sites,
		.failed = &hand->failed,
		.session = "feed.4242",
		.session_count = 1,
		.argument = "kmemshim.out/python.4242.1.kmem",
	};
}

/* A site below a user's line of a Python script: malloc < library < the line < main. */
static inline struct model_site *
hand_model_site(struct hand_model *hand, unsigned domain, uint32_t line, uint64_t live_bytes)
{
	size_t number = hand->model.site_count++;
	struct model_site *site = &hand->sites[number];
	struct model_frame *frames = hand->frames[number];

	assert_true(number < HAND_SITES);
	frames[0] = (struct model_frame){ .kind = MODEL_FRAME_NATIVE,
		                              .function = "alloc",
		                              .file = "",
		                              .module = "libfast-0a1b2c3d.so.1.2",
		                              .module_path = "/opt/libfast-0a1b2c3d.so.1.2",
		                              .module_offset = 64 };
	frames[1] = (struct model_frame){ .kind = MODEL_FRAME_PYTHON,
		                              .function = "full",
		                              .file = "/usr/lib/python3/dist-packages/fast/core.py",
		                              .line = 330,
		                              .module = "core.py",
		                              .module_path = "" };
	frames[2] = (struct model_frame){ .kind = MODEL_FRAME_PYTHON,
		                              .function = "epoch",
		                              .file = "/data/someone/project/train.py",
		                              .line = line,
		                              .module = "train.py",
		                              .module_path = "",
		                              .is_user = true };
	frames[3] = (struct model_frame){ .kind = MODEL_FRAME_PYTHON,
		                              .function = "<module>",
		                              .file = "/data/someone/project/train.py",
		                              .line = 95,
		                              .module = "train.py",
		                              .module_path = "",
		                              .is_user = true };
	for (unsigned i = 0; i < 4; i++)
		hand->stacks[number][i] = &frames[i];
	*site = (struct model_site){
		.key = (number + 1) << 16,
		.domain = domain,
		.process_count = 1,
		.live_bytes = live_bytes,
		.live_count = 1,
		.peak_bytes = live_bytes,
		.allocated_bytes = live_bytes,
		.allocated_count = 1,
		.generations_alive = 1,
		.generations_total = 12,
		.recent_total = 3,
		.frame_count = 4,
		.frames = hand->stacks[number],
		.where = &frames[2],
		.bytes_per_generation = live_bytes,
		.import = "",
	};
	hand->domains[domain].live_bytes += live_bytes;
	hand->domains[domain].peak_bytes += live_bytes;
	hand->domains[domain].together_live_bytes += live_bytes;
	hand->domains[domain].concurrent_peak_bytes += live_bytes;
	hand->domains[domain].allocated_bytes += live_bytes;
	hand->domains[domain].live_count++;
	hand->domains[domain].allocated_count++;
	return site;
}

static inline void
hand_model_generations(struct model_site *site, uint32_t alive, uint32_t total, uint32_t recent, uint32_t recent_total)
{
	site->generations_alive = alive;
	site->generations_total = total;
	site->recent_alive = recent;
	site->recent_total = recent_total;
}

/* The launcher saw it end with this wait status (as wait4() gives it). */
static inline void
hand_model_waited(struct hand_model *hand, int wait_status)
{
	hand->launcher.is_filled = 1;
	hand->launcher.wait_status = wait_status;
	hand->launcher.ended_realtime_ns = hand->identity.start_realtime_ns + UINT64_C(60000000000);
	hand->process.launcher = &hand->launcher;
}

static inline void
hand_model_exited(struct hand_model *hand, int status)
{
	hand->process.state = KMEM_STATE_CLEAN_EXIT;
	hand->process.exit_code = status;
	hand_model_waited(hand, (status & 0xff) << 8);
}

/* The last request for memory of the heap, by the first site, was refused. */
static inline void
hand_model_refuse(struct hand_model *hand, uint64_t bytes)
{
	hand->failed = (struct model_failed){ .bytes = bytes,
		                                  .domain = HEAP,
		                                  .error = ENOMEM,
		                                  .monotonic_ns = hand->identity.start_monotonic_ns,
		                                  .site = &hand->sites[0] };
	hand->model.failed_count = 1;
}

static inline struct kmem_identity
hand_model_child(const struct hand_model *hand)
{
	struct kmem_identity child = hand->identity;

	child.pid = 4243;
	child.is_first = 0;
	return child;
}

static inline void
hand_model_read_counters(const struct kmem_identity *identity, struct kmem_kill_counters *counters)
{
	*counters = hand_model_counters;
}

static const struct verdict_now hand_model_now = { .boot_id = "this-boot", .read_counters = hand_model_read_counters };

static inline void
hand_model_decide(struct hand_model *hand, struct verdict *verdict)
{
	rank_leaks_classify(&hand->model);
	held_over_time_classify(&hand->model);
	verdict_decide((struct finished_model){ &hand->model }, &hand_model_now, verdict);
}

#endif
