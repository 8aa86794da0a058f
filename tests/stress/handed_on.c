/*
 * handed_on.c - what one thread of the recorder has written before its release, does the thread that acquires see it? See hand_on.h.
 *
 *   handed_on [NAME]    one case
 */
#include "hand_on.h"

#include <dlfcn.h>
#include <link.h>

#include "../unit/shim/python/python_fakes.h"
#include "base/elf_symbols.h"
#include "base/loader_list.h"
#include "base/memory_limits.h"
#include "base/real_libc.h"
#include "base/settings.h"
#include "gpu/real_cuda.h"
#include "hooks/abandoned_captures.h"
#include "moments/exit_figures.h"
#include "moments/failed_requests.h"
#include "moments/history.h"
#include "moments/marks.h"
#include "periodic/inherited.h"
#include "periodic/memory_guard.h"
#include "periodic/object_census.h"
#include "python/python_cells.h"
#include "python/python_code.h"
#include "python/python_frames.h"
#include "python/python_lines.h"
#include "python/python_runtime.h"
#include "record/teardown.h"
#include "record/tracker.h"
#include "sites/call_stack.h"
#include "sites/module_map.h"
#include "sites/releases.h"
#include "sites/site_table.h"
#include "tables/address_table.h"
#include "tables/device_objects.h"
#include "tables/generations.h"

#define LEAF ((uint64_t)1 << POINTER_MAP_LEAF_LOG2)
#define HERE __builtin_frame_address(0)

/* ---- what is found once ---- */

static void
find_libc(void)
{
	CHECK(real_libc_find());
}
static void
libc_is_found(void)
{
	CHECK(real_libc_is_found());
}

/* A library that says that it is Python, and has no version that anybody knows. */
static struct elf_object
fake_library(void)
{
	static const char names[] = "\0_PyRuntime";
	static const Elf64_Sym symbols[2] = { { 0 }, { .st_name = 1, .st_shndx = 1, .st_value = 4096 } };
	static const uint32_t hash[] = { 1, 2, 1, 0, 0 };
	static Elf64_Dyn dynamic[4];

	dynamic[0] = (Elf64_Dyn){ DT_SYMTAB, { .d_ptr = (uint64_t)symbols } };
	dynamic[1] = (Elf64_Dyn){ DT_STRTAB, { .d_ptr = (uint64_t)names } };
	dynamic[2] = (Elf64_Dyn){ DT_HASH, { .d_ptr = (uint64_t)hash } };
	return (struct elf_object){ .load_bias = 0, .dynamic_addr = (uint64_t)dynamic };
}

static struct elf_object python_library;

static void
prepare_python_library(void)
{
	python_library = fake_library();
	settings.python = true;
}
static void
look_at_python(void)
{
	python_runtime_look_at(&python_library, "");
}
static void
ask_for_python(void)
{
	CHECK(!python_frames_available());
}

static void *
any_function(void *handle, const char *name)
{
	return (void *)any_function;
}

static void
prepare_lookup(void)
{
	real_cuda_dlsym = any_function;
}
static void
look_up_torch(void)
{
	CHECK(real_cuda_torch((enum real_torch)0, (void *)look_up_torch) == (void *)any_function);
}

/* ---- owners of memory ---- */

static void
share_stack(void)
{
	const struct call_stack *stack = call_stack_take(NULL, HERE, CALL_STACK_WHOLE);

	call_stack_give_back(NULL, stack);
}

static void
use_slot(void)
{
	CHECK(thread_slot_here() != NULL);
}

/* ---- flags that a second thread does not wait for ---- */

static void *
a_thread_state(void)
{
	return &handed_on;
}

static void
attach(bool is_attached)
{
	python_runtime.interpreter.layout.version = 0x030d;
	python_runtime.interpreter.layout.object_type = 8;
	python_runtime.current_state = python_runtime.thread_state = a_thread_state;
	python_runtime.addr = (uint64_t)&python_runtime;
	atomic_store_explicit(&python_runtime.state, is_attached ? PYTHON_RUNTIME_FOUND : PYTHON_RUNTIME_NEVER_LOOKED,
	                      memory_order_relaxed);
}

static void
prepare_object_census(void)
{
	attach(true);
	object_census_begin(OBJECT_CENSUS_ALL);
}
static void
detach(void)
{
	attach(false);
}
static void
take_object_census(void)
{
	object_census_take(true);
}
static void
read_object_census(void)
{
	READ(capture_file_header()->object_count_total);
}
static void
look_for_section(void)
{
	CHECK(elf_symbols_file_has_section("/proc/self/exe", ".text"));
}
static void
gather(void)
{
	inherited_gather();
}
static void
look_at_inherited(void)
{
	inherited_sample(true);
}

static void
prepare_guard(void)
{
	settings.guard.percent = 90;
	capture_file_header()->identity.cgroup_version = 2;
	atomic_store_explicit(tracker_state, TRACKER_ON, memory_order_relaxed);
}

/* Below it, and then above: what the one that judges leaves, the next one needs. */
static void
judge(void)
{
	struct memory_limits_now now = { .resident_bytes = 1 << 20, .cgroup_bytes = 1 << 20, .limit_bytes = 1 << 24 };

	(void)memory_guard_judge(&now, 0);
	now.resident_bytes = now.cgroup_bytes = 1 << 24;
	(void)memory_guard_judge(&now, 0);
}

static struct python_interpreter python;
static struct fake_code fakes[2];
static uint64_t fake_frame[16]; // its namespace is none
static uint32_t code_index;

/* A line table that is worth reading as a whole. */
static void
prepare_lines(void)
{
	const size_t table_bytes = 1000;
	struct kmem_code *code = capture_file_append(KMEM_SECTION_RECORDS, sizeof(*code) + table_bytes, &code_index);

	*code = (struct kmem_code){ .python_version = 0x030b, .first_line = 1, .line_table_bytes = (uint32_t)table_bytes };
	for (size_t i = 0; i < table_bytes; i += 2)
		((uint8_t *)(code + 1))[i] = 0x83;
}

static void
read_line(void)
{
	CHECK(python_lines_first(code_index, 100) < 100);
}
static void
read_other_line(void)
{
	CHECK(python_lines_first(code_index, 202) < 202);
}
static void
note_cells(void)
{
	python_cells_note(&python, (uint64_t)fake_frame);
}

static void
prepare_codes(void)
{
	python = fake_interpreter();
	for (unsigned i = 0; i < 2; i++)
		fake_code_make(&fakes[i], "/x.py", i == 0 ? "one" : "another", 1, "t");
	settings.capture_max = 1; // no room
}

static void
name_code(void)
{
	CHECK(python_code_find(&python, (uint64_t)fakes[0].code).is_found);
}
static void
name_other_code(void)
{
	CHECK(python_code_find(&python, (uint64_t)fakes[1].code).is_found);
}
static void
give_room(void)
{
	settings.capture_max = 0;
}

static _Atomic uint64_t finalizing; // relaxed

static void
begin_teardown(void)
{
	atomic_store_explicit(&finalizing, 1, memory_order_relaxed);
	CHECK(teardown_ask(0) == TEARDOWN_YES);
}

static void
prepare_teardown(void)
{
	atomic_store_explicit(&python_runtime.finalizing_word, &finalizing, memory_order_relaxed);
	begin_teardown();
}

static void
end_teardown(void)
{
	atomic_store_explicit(&finalizing, 0, memory_order_relaxed);
	CHECK(teardown_ask(10) == TEARDOWN_OVER);
	teardown_done();
}

static void
keep_release(void)
{
	teardown_keep((struct address_block){ .bytes = 1, .site = 1 }, true);
}

static void
ask_release(void)
{
	struct teardown_release release;

	CHECK(!teardown_released(99, &release));
}

static void
tear_down_again(void)
{
	begin_teardown();
	end_teardown();
}

/* ---- tables that come into being ---- */

static const uint64_t first_leaf = UINT64_C(0x7e0000000000);
static uint64_t leaf_addr = first_leaf; // one in a leaf that is not there yet, for each case

static void
put(uint64_t addr)
{
	struct address_block old;

	CHECK(pointer_map_put((void *)addr, (struct address_block){ .bytes = 100, .site = 1 }, &old) != POINTER_MAP_FULL);
}

static void
put_first(void)
{
	put(leaf_addr);
}
static void
open_map(void)
{
	put(first_leaf + 100 * LEAF);
}
/* It has no word: but for the leaf nothing is handed on. */
static void
put_large(void)
{
	struct address_block old;

	CHECK(pointer_map_put((void *)leaf_addr, (struct address_block){ .bytes = 100000, .site = 1 }, &old) ==
	      POINTER_MAP_STORED);
}
static void
ask_for_other_leaf(void)
{
	CHECK(pointer_map_place_of(leaf_addr + 8 * LEAF).state == NULL);
}
static void
ask_for_place(void)
{
	(void)pointer_map_place_of(leaf_addr);
}
static void
put_into_next_region(void)
{
	put(first_leaf + 100 * LEAF + (1u << KMEM_REGION_LOG2));
}
static void
ask_for_next_region(void)
{
	(void)pointer_map_place_of(first_leaf + 100 * LEAF + (1u << KMEM_REGION_LOG2));
}
static void
next_leaf(void)
{
	leaf_addr += LEAF;
}

static void
take_nothing(void)
{
	struct address_block block;

	CHECK(!pointer_map_take_slow(leaf_addr + 8 * LEAF, &block));
}

static void
take_beside(void)
{
	struct address_block block;

	CHECK(!pointer_map_take_slow(leaf_addr + 64, &block));
}

static void
trim(void)
{
	(void)pointer_map_trim(UINT64_MAX, SIZE_MAX);
}

static bool
visit_nothing(void *context, uint64_t addr, struct address_block block)
{
	CHECK(addr + block.bytes == 0);
	return true;
}

static void
visit(void)
{
	CHECK(pointer_map_visit_objects(SIZE_MAX, visit_nothing, NULL));
}

static void
ask_lowest(void)
{
	bool was_used;

	(void)pointer_map_lowest(leaf_addr, leaf_addr + LEAF, &was_used);
}

/* A region that is empty is closed. */
static void
prepare_empty_region(void)
{
	struct address_block block;

	put(leaf_addr);
	CHECK(pointer_map_take((void *)leaf_addr, &block));
}

static struct address_table table;

static void
put_address(uint64_t addr)
{
	struct address_block old;

	CHECK(address_table_put(&table, addr, (struct address_block){ .bytes = 1 }, &old) != ADDRESS_TABLE_FULL);
}

static void
put_into_table(void)
{
	put_address(4096);
}

static void
ask_table(void)
{
	struct address_block block;

	CHECK(!address_table_find(&table, 8192, &block));
}

/* Another one is there already. */
static void
prepare_table(void)
{
	put_address(64);
}

static bool
is_not_meant(uint64_t addr, struct address_block block, void *context)
{
	CHECK(block.bytes == 1);
	return addr == 0;
}

static void
sweep_table(void)
{
	struct address_block block;
	uint64_t cursor = 0;

	CHECK(!address_table_sweep(&table, &cursor, is_not_meant, NULL, &block));
}

static struct site_owner owners[3] = { { .slot = 1 }, { .slot = 2 }, { .slot = 1 } };
static uint32_t site;

static uint32_t
find_site(struct site_owner *owner, uint64_t number)
{
	struct call_stack stack = { .hash = number, .frame_count = 1, .frames = { KMEM_FRAME_PYTHON | number } };

	return site_table_find(owner, &stack, KMEM_DOMAIN_HEAP, 1);
}

static void
find_first_site(void)
{
	CHECK(find_site(&owners[0], 0x1234567) != 0);
}
static void
find_second_site(void)
{
	CHECK(find_site(&owners[1], 0x2345678) != 0);
}
static void
find_fresh_site(void)
{
	CHECK(find_site(&owners[0], 0x3456789) != 0);
}
static void
prepare_ring(void)
{
	site = find_site(&owners[1], 0x4567891);
}
static void
join_ring(void)
{
	CHECK(site_table_own(&owners[0], site, 1) != 0);
}

static void
follow_ring(void)
{
	uint32_t own = site_table_own(&owners[2], site, 1);

	CHECK(own != site && site_table_at(own)->slot == 1);
}

static struct kmem_site *held_site;

static void
prepare_generations(void)
{
	prepare_ring();
	held_site = site_table_at(site);
	held_site->allocated_bytes = 10 * GENERATIONS_MIN_BYTES;
	capture_file_header()->generation_clock = 5;
}

static void
be_born(void)
{
	CHECK(generations_born(held_site, site, 5) != 0);
}
static void
be_born_again(void)
{
	CHECK(generations_born_own(held_site, site) != 0);
}
static void
die(void)
{
	generations_died(held_site, site, 1);
}
static void
die_in_own(void)
{
	if (generations_is_counted(held_site, 1))
		generations_died_own(held_site, 1);
}

static void
prepare_exit(void)
{
	prepare_generations();
	held_site->generations = 0;
}

static void
take_exit_figures(void)
{
	exit_figures_take();
}

/* ---- the history ---- */

static void
take_point(void)
{
	history_beat(0, 0, UINT64_MAX, 1);
}

/* ---- who releases ---- */

static void
prepare_releases(void)
{
	prepare_generations();
}
static void
count_release(void)
{
	releases_count(site, site, 0, RELEASES_TEMPORARY);
}

/* ---- marks ---- */

static void
note_mark(void)
{
	marks_note(KMEM_MARK_PROGRAM, "mark");
}
static void
take_snapshot(void)
{
	marks_snapshot(KMEM_MARK_PROGRAM, "snapshot");
}

/* ---- captures that children leave ---- */

static const struct kmem_identity of_child = { .pid = 1, .start_ticks = 1, .executable = "/bin/a" };

static void
add_leftover(void)
{
	abandoned_captures_add(&of_child);
}
static void
remove_nowhere(void)
{
	abandoned_captures_remove("/dev/null", &of_child);
} // it stays on the list
static void
remove_leftover(void)
{
	abandoned_captures_remove("/", &of_child);
}

/* ---- objects of a device ---- */

static struct device_drop dropped;

static bool
create_object(uint64_t handle)
{
	struct address_block old;

	return device_objects_create(handle, (struct address_block){ .bytes = 1, .site = 1 }, DEVICE_OBJECTS_NO_OWNER,
	                             &old);
}

static void
create_first_object(void)
{
	CHECK(create_object(4096));
}
static void
touch_object(void)
{
	device_objects_released((struct device_drop){ .object = 2, .is_dead = true });
}

static void
prepare_handles(void)
{
	CHECK(create_object(2 << 20));
	device_objects_retain(2 << 20);
}

static void
drop_one(void)
{
	CHECK(!device_objects_release(2 << 20).is_dead);
}

static void
drop_last(void)
{
	dropped = device_objects_release(2 << 20);
	CHECK(dropped.is_dead);
}

static void
prepare_full(void)
{
	device_objects_released(dropped);
	for (uint64_t i = 3; create_object(i << 20); i++)
		;
	dropped = device_objects_release(3 << 20);
}

static void
give_object_back(void)
{
	device_objects_released(dropped);
}
static void
take_object(void)
{
	CHECK(create_object(1 << 20));
}

static struct kmem_site *device_site;

static void
prepare_device_site(void)
{
	struct call_stack stack = { .hash = 0x5678912, .frame_count = 1, .frames = { KMEM_FRAME_PYTHON | 5 } };

	site = site_table_find(&owners[0], &stack, KMEM_DOMAIN_CUDA_FIRST, 1);
	device_site = site_table_at(site);
	device_site->allocated_bytes = 10 * GENERATIONS_MIN_BYTES;
}

static void
be_born_on_device(void)
{
	CHECK(generations_born(device_site, site, 5) != 0);
}

static void
refuse_on_device(void)
{
	(void)failed_requests_note(&(struct failed_request){ .bytes = 100, .domain = KMEM_DOMAIN_CUDA_FIRST });
}

/* ---- modules ---- */

static uint64_t gone_pc;

static uint64_t
pc_in(void *handle)
{
	struct link_map *map;

	CHECK(handle != NULL && dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0);
	return (uint64_t)map->l_ld;
}

static void
prepare_modules(void)
{
	void *handle = dlopen("libBrokenLocale.so.1", RTLD_NOW | RTLD_LOCAL);

	module_map_forked();
	gone_pc = pc_in(handle);
	module_map_note_pc(gone_pc);
	dlclose(handle);
}

static void
prepare_other_module(void)
{
	module_map_forked();
	module_map_note_pc(pc_in(dlopen("libc.so.6", RTLD_NOW | RTLD_LOCAL)));
}

static void
close_modules(void)
{
	module_map_unloaded_check(true);
}
static void
ask_whether_over(void)
{
	CHECK(module_map_is_over(0, &gone_pc, 1));
}
static void
note_main(void)
{
	module_map_note_pc((uint64_t)note_main);
}

/* ---- objects of the loader's list, where it has no _dl_find_object() ---- */

static uint64_t code_that_comes_late;

static void
prepare_late_object(void)
{
	struct loaded_object object;

	CHECK(loader_list_find((uintptr_t)note_main, &object)); // what comes from now on may be unloaded
	void *library = dlopen("libz.so.1", RTLD_NOW);
	CHECK(library != NULL);
	code_that_comes_late = (uintptr_t)dlsym(library, "inflate");
	loader_list_unloaded();
}
static void
find_late_object(void)
{
	struct loaded_object object;

	CHECK(loader_list_find(code_that_comes_late, &object));
}

/* ---- where the limit is ---- */

static struct kmem_identity moved;
static pthread_mutex_t without_cgroups = PTHREAD_MUTEX_INITIALIZER;

/* It began elsewhere, so that it was moved. */
static void
prepare_move(void)
{
	moved.page_bytes = 4096;
	memory_limits_read(&moved);
	strcpy(moved.cgroup_path, "/elsewhere");
	CHECK(!memory_limits_follow(&moved, 1)); // from now on
}

/* Where there are no cgroups nothing is handed on. */
static void
need_cgroups(void)
{
	if (moved.cgroup_version == 0) {
		pthread_mutex_lock(&without_cgroups);
		pthread_mutex_unlock(&without_cgroups);
	}
}

static void
follow_move(void)
{
	CHECK(memory_limits_follow(&moved, UINT64_MAX / 2) == (moved.cgroup_version != 0));
	need_cgroups();
}
static void
read_moved(void)
{
	struct memory_limits_now now;

	need_cgroups();
	memory_limits_read_now(&moved, &now);
}

/* In this order: some things come into being once. */
static const struct hand_on_case cases[] = {
	{ "real_libc", NULL, NULL, { find_libc, libc_is_found, find_libc } },
	{ "python_looked_at",
	  prepare_python_library,
	  NULL,
	  { look_at_python, ask_for_python, look_at_python, python_runtime_pin } },
	{ "cuda_caller", prepare_lookup, NULL, { look_up_torch, look_up_torch } },
	{ "stack_memory", share_stack, NULL, { share_stack, share_stack } },
	{ "thread_slot", NULL, NULL, { use_slot, use_slot } },
	{ "site_level", NULL, NULL, { find_first_site, find_second_site } },
	{ "site_stack", prepare_object_census, detach, { find_fresh_site, take_object_census } },
	{ "site_ring", prepare_ring, NULL, { join_ring, follow_ring } },
	{ "site_generations", prepare_generations, NULL, { be_born, be_born_again, be_born, die, die_in_own } },
	{ "exit_generations", prepare_exit, NULL, { be_born, take_exit_figures } },
	{ "history", history_forked, NULL, { take_point, take_point } },
	{ "releases", prepare_releases, NULL, { count_release, count_release } },
	{ "marks", marks_forked, NULL, { note_mark, note_mark } },
	{ "snapshots", marks_forked, NULL, { take_snapshot, take_snapshot } },
	{ "abandoned_captures",
	  abandoned_captures_prepare,
	  NULL,
	  { add_leftover, remove_nowhere, remove_leftover, add_leftover } },
	{ "object_census", prepare_object_census, detach, { take_object_census, read_object_census, take_object_census } },
	{ "section_of_file", NULL, NULL, { look_for_section, look_for_section } },
	{ "gathering", NULL, NULL, { gather, gather } },
	{ "looking_at_inherited", inherited_forked_child, NULL, { look_at_inherited, look_at_inherited } },
	{ "guard_judging", prepare_guard, NULL, { judge, judge } },
	{ "line_table", prepare_lines, NULL, { read_line, read_other_line } },
	{ "cells", NULL, NULL, { note_cells, note_cells } },
	{ "code_without_room", prepare_codes, give_room, { name_code, name_other_code } },
	{ "teardown_list", NULL, NULL, { keep_release, keep_release, ask_release } },
	{ "teardown", prepare_teardown, NULL, { end_teardown, tear_down_again } },
	{ "map_top", NULL, next_leaf, { put_first, ask_for_other_leaf, take_nothing } },
	{ "map_leaf", open_map, next_leaf, { put_large, ask_for_place, take_beside } },
	{ "map_leaf_trimmed", open_map, next_leaf, { put_first, trim } },
	{ "map_leaf_visited", open_map, next_leaf, { put_first, visit } },
	{ "map_leaf_searched", open_map, next_leaf, { put_first, ask_lowest } },
	{ "map_region", open_map, NULL, { put_into_next_region, ask_for_next_region } },
	{ "map_moves", prepare_empty_region, next_leaf, { trim, ask_for_place } },
	{ "map_trimming", open_map, NULL, { trim, trim } },
	{ "map_visiting", open_map, NULL, { visit, visit } },
	{ "address_slots", NULL, NULL, { put_into_table, ask_table } },
	{ "address_swept", prepare_table, NULL, { put_into_table, sweep_table } },
	{ "device_objects", NULL, NULL, { create_first_object, touch_object } },
	{ "device_object_dropped", prepare_handles, NULL, { drop_one, drop_last } },
	{ "device_object_free", prepare_full, NULL, { give_object_back, take_object } },
	{ "device_snapshot", prepare_device_site, NULL, { refuse_on_device, refuse_on_device } },
	{ "device_snapshot_generations", prepare_device_site, NULL, { be_born_on_device, refuse_on_device } },
	{ "module", module_map_forked, NULL, { note_main, note_main } },
	{ "module_behind_another", prepare_other_module, NULL, { note_main, note_main } },
	{ "object_on_list", prepare_late_object, NULL, { find_late_object, find_late_object } },
	{ "object_unloaded", prepare_late_object, NULL, { find_late_object, loader_list_unloaded } },
	{ "object_on_list_again", prepare_late_object, NULL, { find_late_object, loader_list_unloaded, find_late_object } },
	{ "moved_folder", prepare_move, NULL, { follow_move, read_moved } },
	{ "modules_gone", prepare_modules, NULL, { close_modules, ask_whether_over } },
};

int
main(int argc, char **argv)
{
	return hand_on(cases, sizeof(cases) / sizeof(cases[0]), argc > 1 ? argv[1] : NULL);
}
