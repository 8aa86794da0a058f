/*
 * report_memory.c - where was what was in memory, and what are its parts called?
 *
 * When failing  it cannot.
 */
#include "report/report_build.h"
#include "verdict/verdict.h"

static const struct resident_part {
	const char *name;
	const char *meaning;
} resident_parts[KMEM_RESIDENT_PARTS] = {
	[KMEM_RESIDENT_OTHER] = { "not attributed", "mapped by direct system calls or by libraries" },
	[KMEM_RESIDENT_BRK] = { "brk", "malloc, below the program break" },
	[KMEM_RESIDENT_HEAP] = { "heap", "malloc's other mappings, with their free parts" },
	[KMEM_RESIDENT_MMAP] = { "mmap", "" },
	[KMEM_RESIDENT_RESERVED] = { "reserved", "" },
	[KMEM_RESIDENT_PYTHON_ARENA] = { "python/arena", "" },
	[KMEM_RESIDENT_SHARED] = { "shared", "" },
	[KMEM_RESIDENT_FILE] = { "file", "" },
	[KMEM_RESIDENT_PROGRAM] = { "program", "and its libraries, code and data" },
	[KMEM_RESIDENT_STACKS] = { "stacks", "of all threads" },
	[KMEM_RESIDENT_OWN] = { "kmemshim", "used by the recording" },
	[KMEM_RESIDENT_INHERITED] = { "inherited", "from before the fork" },
};

const char *
report_resident_name(unsigned part)
{
	return part < KMEM_RESIDENT_PARTS ? resident_parts[part].name : NULL;
}

const char *
report_resident_meaning(unsigned part)
{
	return resident_parts[part].meaning;
}

const char *
report_own_name(unsigned part)
{
	static const char *const names[KMEM_OWN_PARTS] = {
		[KMEM_OWN_OTHER] = "library",      [KMEM_OWN_ADDRESSES] = "addresses", [KMEM_OWN_SITES] = "sites",
		[KMEM_OWN_STACKS] = "stack rules", [KMEM_OWN_THREADS] = "threads",     [KMEM_OWN_CAPTURE] = "capture",
	};

	return part < KMEM_OWN_PARTS ? names[part] : NULL;
}

struct report_fragmentation
report_fragmentation_of(const struct model *model, const struct model_process *process)
{
	struct verdict_freed freed = verdict_freed_of(model, process);

	return (struct report_fragmentation){
		.freed_bytes = freed.freed_bytes,
		.heap_bytes = freed.heap_bytes,
		.live_bytes = freed.heap_bytes > freed.freed_bytes ? freed.heap_bytes - freed.freed_bytes : 0,
		.resident_bytes = freed.resident_bytes,
		.share_ppm = freed.resident_bytes != 0
		                 ? (uint64_t)((double)freed.freed_bytes / (double)freed.resident_bytes * 1e6)
		                 : 0,
		.empty_bytes = freed.empty_bytes,
		.sparse_bytes = freed.sparse_bytes,
		.sparse_live_bytes = freed.sparse_live_bytes,
		.is_later = freed.is_later,
	};
}

static_assert(VERDICT_PINNING_MAX <= REPORT_PINNING_MAX, "");
static_assert(VERDICT_PARTS_MAX <= REPORT_MEMORY_PARTS_MAX, "");

const struct report_memory *
report_memory_of(const struct report_rows *rows, const struct verdict_memory *from, struct report_memory *to)
{
	if (from->bytes == 0)
		return NULL;
	*to = (struct report_memory){
		.bytes = from->bytes,
		.sample_bytes = from->sample_bytes,
		.age_ns = from->age_ns,
		.kept_bytes = from->freed.freed_bytes,
		.kept_empty_bytes = from->freed.empty_bytes,
		.part_count = from->part_count,
	};
	for (size_t i = 0; i < from->part_count; i++) {
		to->parts[i].name = from->parts[i].name;
		to->parts[i].bytes = from->parts[i].bytes;
	}
	if (from->freed.freed_bytes != 0)
		to->fragmented_pid = from->freed.process->identity->pid;
	for (size_t i = 0; i < VERDICT_PINNING_MAX && from->freed.pinning[i].site_count != 0; i++)
		to->pinning[to->pinning_count++] = (struct report_pinning){
			report_place_of(rows, from->freed.pinning[i].largest), from->freed.pinning[i].pinned_bytes
		};
	return to;
}
