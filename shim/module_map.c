/*
 * module_map.c - see module_map.h.
 *
 * A table of what was recorded, insert-only: an unloaded module's slot stays, so that what is loaded in
 * its place later gets a generation of its own. The loader is asked by loaded_object.h only.
 */
#include "module_map.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include "capture_file.h"
#include "kmem_format.h"
#include "kmem_words.h"
#include "loaded_object.h"
#include "native_stack.h"
#include "python_runtime.h"
#include "raw_sys.h"
#include "unwind_rules.h"

#define SLOTS_MAX      2048u // a power of two
#define PATH_BYTES_MAX 1024u // on the stack, which may be a small one
#define NOTE_GNU       "GNU"

enum slot_state { SLOT_WRITING = 0, SLOT_LOADED = 1, SLOT_UNLOADED = 2 };

struct slot {
	_Atomic uint64_t key;   // identity of the mapping, 0 = free; relaxed: the rest has a flag of its own
	_Atomic uint32_t state; // enum slot_state; stored last, with release
	uint32_t record_index;  // in RECORDS
	uint64_t start_addr;
	uint64_t end_addr;
	const struct link_map *link_map;
	_Atomic bool is_in_gone;
	uint32_t next_gone;     // index + 1, 0 = the last
	_Atomic uint64_t back;  // of is_back(): 2 * generation of the unwind rules + the answer; relaxed, one word
};
static struct slot slots[SLOTS_MAX];

static _Atomic uint32_t gone; // index + 1 of the slot closed last; a list that only grows

static uint64_t
key_of(const struct loaded_object *object)
{
	uint64_t key = object->start_addr * UINT64_C(0x9e3779b97f4a7c15);

	key = (key ^ object->end_addr) * UINT64_C(0xff51afd7ed558ccd);
	key = (key ^ (uintptr_t)object->link_map) * UINT64_C(0x9e3779b97f4a7c15);
	key ^= key >> 32;
	return key != 0 ? key : 1;
}

/* ---- what is known of a module ---- */

/* The main program has no name, the kernel's object one that is no file. Returns the length. */
static size_t
path_of(const struct loaded_object *object, char path[PATH_BYTES_MAX])
{
	const char *name = object->link_map->l_name;

	if (object->start_addr == getauxval(AT_SYSINFO_EHDR)) {
		memcpy(path, "[vdso]", 7);
		return 6;
	}
	if (name == NULL || name[0] == '\0') {
		ssize_t bytes = !raw_sys_may_call() ? 0 : readlink("/proc/self/exe", path, PATH_BYTES_MAX - 1);

		path[bytes > 0 ? bytes : 0] = '\0';
		return bytes > 0 ? (size_t)bytes : 0;
	}

	size_t bytes = strnlen(name, PATH_BYTES_MAX - 1);

	memcpy(path, name, bytes);
	path[bytes] = '\0';
	return bytes;
}

/* The build-id in one PT_NOTE, as mapped. Returns its length, 0 = not there. */
static uint32_t
build_id_in(const uint8_t *note, uint64_t bytes, uint8_t id[static 32])
{
	Elf64_Nhdr head;

	while (bytes >= sizeof head) {
		memcpy(&head, note, sizeof head);

		uint64_t name = sizeof head;
		uint64_t text = name + ((uint64_t)head.n_namesz + 3) / 4 * 4;
		uint64_t end = text + ((uint64_t)head.n_descsz + 3) / 4 * 4;

		if (text + head.n_descsz > bytes)
			return 0;
		if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == sizeof NOTE_GNU &&
		    memcmp(note + name, NOTE_GNU, sizeof NOTE_GNU) == 0 && head.n_descsz <= 32) {
			memcpy(id, note + text, head.n_descsz);
			return head.n_descsz;
		}
		if (end > bytes)
			return 0;
		note += end;
		bytes -= end;
	}
	return 0;
}

static uint32_t
build_id_of(const struct loaded_object *object, uint8_t id[static 32])
{
	unsigned count = 0;
	const Elf64_Phdr *headers = loaded_object_headers(object, &count);

	for (unsigned i = 0; i < count; i++) {
		uint64_t addr = headers[i].p_vaddr + object->link_map->l_addr;
		uint64_t low;
		uint64_t high;

		/* Notes that ask for 8-byte alignment hold properties, never the build-id. */
		if (headers[i].p_type != PT_NOTE || headers[i].p_align > 4 ||
		    !loaded_object_readable(object, addr, &low, &high) || headers[i].p_memsz > high - addr)
			continue;

		uint32_t bytes = build_id_in((const uint8_t *)(uintptr_t)addr, headers[i].p_memsz, id);

		if (bytes != 0)
			return bytes;
	}
	return 0;
}

/* First generation at which the object can have been there: after everything that was there before. */
static uint32_t
loaded_generation_of(const struct loaded_object *object)
{
	uint32_t generation = 0;

	for (unsigned i = 0; i < SLOTS_MAX; i++) {
		/* acquire: pairs with close_slot() */
		if (atomic_load_explicit(&slots[i].state, memory_order_acquire) != SLOT_UNLOADED ||
		    slots[i].start_addr >= object->end_addr || object->start_addr >= slots[i].end_addr)
			continue;

		struct kmem_module *module = capture_file_at(KMEM_SECTION_RECORDS, slots[i].record_index);
		/* relaxed: the state, stored after it, was acquired */
		uint32_t unloaded = (uint32_t)atomic_load_explicit(&module->unloaded, memory_order_relaxed);

		if (unloaded > generation)
			generation = unloaded;
	}
	return generation;
}

static bool
record_module(const struct loaded_object *object, struct slot *slot)
{
	char path[PATH_BYTES_MAX];
	size_t path_bytes = path_of(object, path);
	size_t bytes = sizeof(struct kmem_module) + path_bytes;
	struct stat file;
	uint32_t index;
	struct kmem_module *module = capture_file_append(KMEM_SECTION_RECORDS, bytes, &index);

	if (module == NULL)
		return false;
	module->record.type = KMEM_RECORD_MODULE;
	module->record.bytes = (uint32_t)bytes;
	module->start_addr = object->start_addr;
	module->end_addr = object->end_addr;
	module->load_bias = object->link_map->l_addr;
	module->loaded_generation = loaded_generation_of(object);
	if (raw_sys_may_call() && stat(path, &file) == 0) {
		module->file_size_bytes = (uint64_t)file.st_size;
		module->file_mtime_ns =
			(uint64_t)file.st_mtim.tv_sec * 1000000000u + (uint64_t)file.st_mtim.tv_nsec;
	}
	module->build_id_bytes = build_id_of(object, module->build_id);
	module->path_bytes = (uint32_t)path_bytes;
	memcpy(module + 1, path, path_bytes);
	slot->record_index = capture_file_link(&capture_file_header()->modules, index);
	slot->start_addr = object->start_addr;
	slot->end_addr = object->end_addr;
	slot->link_map = object->link_map;
	/* release: pairs with every acquire load of a state */
	atomic_store_explicit(&slot->state, SLOT_LOADED, memory_order_release);
	return true;
}

/* ---- what is gone ---- */

static void
push_gone(struct slot *slot)
{
	uint32_t first = atomic_load_explicit(&gone, memory_order_relaxed);

	if (atomic_exchange_explicit(&slot->is_in_gone, true, memory_order_relaxed))
		return;
	do
		slot->next_gone = first;
	while (!atomic_compare_exchange_weak_explicit(&gone, &first, (uint32_t)(slot - slots) + 1, memory_order_release,
	                                              memory_order_relaxed)); // release: pairs with module_map_is_over()
}

static void
close_slot(struct slot *slot)
{
	struct kmem_module *module = capture_file_at(KMEM_SECTION_RECORDS, slot->record_index);
	uint64_t none = 0;

	/*
	 * A stack with the new generation has no frame in this module: it was gone before. Two threads may
	 * both raise the generation, one of them names it here. release: pairs with the reader.
	 */
	uint32_t generation = atomic_fetch_add_explicit(&capture_file_header()->module_generation, 1,
	                                                memory_order_acq_rel) +
	                      1;

	(void)atomic_compare_exchange_strong_explicit(&module->unloaded, &none, kmem_twice(generation), memory_order_release,
	                                              memory_order_relaxed);
	/* release: the generation before the state. Pairs with loaded_generation_of(). */
	atomic_store_explicit(&slot->state, SLOT_UNLOADED, memory_order_release);
	push_gone(slot);
}

/* Slots that overlap the object are of objects that were unloaded unseen (not through dlclose). */
static bool
close_overlapping(const struct loaded_object *object)
{
	bool was_any = false;

	for (unsigned i = 0; i < SLOTS_MAX; i++) {
		/* acquire: pairs with record_module() */
		if (atomic_load_explicit(&slots[i].state, memory_order_acquire) != SLOT_LOADED ||
		    slots[i].start_addr >= object->end_addr || object->start_addr >= slots[i].end_addr)
			continue;
		close_slot(&slots[i]);
		was_any = true;
	}
	return was_any;
}

static void
look_for_python(const struct loaded_object *object)
{
	struct elf_object elf = {
		.load_bias = object->link_map->l_addr,
		.dynamic_addr = (uint64_t)object->link_map->l_ld,
	};

	elf.headers = loaded_object_headers(object, &elf.header_count);
	python_runtime_look_at(&elf, object->link_map->l_name);
}

void
module_map_note_pc(uint64_t pc)
{
	struct loaded_object object;

	if (!loaded_object_find(pc, &object))
		return;

	uint64_t key = key_of(&object);

	for (uint64_t i = 0; i < SLOTS_MAX; i++) {
		struct slot *slot = &slots[(key + i) % SLOTS_MAX];
		uint64_t owner = atomic_load_explicit(&slot->key, memory_order_relaxed);

		if (owner == 0 &&
		    atomic_compare_exchange_strong_explicit(&slot->key, &owner, key, memory_order_relaxed,
		                                            memory_order_relaxed)) {
			int host_errno = errno;

			if (close_overlapping(&object))
				native_stack_modules_changed();
			if (!record_module(&object, slot))
				capture_file_lost(KMEM_LOST_MODULES, 1);
			look_for_python(&object);
			errno = host_errno;
			return;
		}
		/* relaxed: the state alone decides, nothing behind it is read */
		if (owner == key &&
		    atomic_load_explicit(&slot->state, memory_order_relaxed) != SLOT_UNLOADED)
			return; // recorded, or about to be by another thread
	}
	capture_file_lost(KMEM_LOST_MODULES, 1);
}

/* Is the object the one that the record describes, at the same place? */
static bool
is_recorded(const struct loaded_object *object, const struct kmem_module *module)
{
	uint8_t id[32];
	char path[PATH_BYTES_MAX];
	struct stat file;
	uint32_t id_bytes = build_id_of(object, id);

	if (object->start_addr != module->start_addr || object->end_addr != module->end_addr ||
	    object->link_map->l_addr != module->load_bias || id_bytes != module->build_id_bytes)
		return false;
	if (id_bytes != 0)
		return memcmp(id, module->build_id, id_bytes) == 0;
	return raw_sys_may_call() && path_of(object, path) == module->path_bytes && memcmp(path, module + 1, module->path_bytes) == 0 &&
	       stat(path, &file) == 0 && (uint64_t)file.st_size == module->file_size_bytes &&
	       (uint64_t)file.st_mtim.tv_sec * 1000000000u + (uint64_t)file.st_mtim.tv_nsec == module->file_mtime_ns;
}

/* Was the same library loaded again where it had been? Looked up once after each unloading. */
static bool
is_back(struct slot *slot)
{
	uint64_t asked = atomic_load_explicit(&unwind_rules.generation, memory_order_relaxed) << 1;
	uint64_t known = atomic_load_explicit(&slot->back, memory_order_relaxed);
	struct loaded_object object;
	int host_errno = errno;

	if ((known & ~UINT64_C(1)) == asked && known != 0)
		return known & 1;
	known = asked | (loaded_object_find(slot->start_addr, &object) &&
	                 is_recorded(&object, capture_file_at(KMEM_SECTION_RECORDS, slot->record_index)));
	atomic_store_explicit(&slot->back, known, memory_order_relaxed);
	errno = host_errno;
	return known & 1;
}

static bool
is_over(uint64_t pc, uint32_t first, uint32_t generation)
{
	for (uint32_t at = first; at != 0; at = slots[at - 1].next_gone) {
		struct slot *slot = &slots[at - 1];

		if (pc < slot->start_addr || pc >= slot->end_addr)
			continue;
		const struct kmem_module *module = capture_file_at(KMEM_SECTION_RECORDS, slot->record_index);

		/* relaxed: was stored before the slot came into the list */
		if (module->loaded_generation <= generation &&
		    generation < (uint32_t)atomic_load_explicit(&module->unloaded, memory_order_relaxed) && !is_back(slot))
			return true;
	}
	return false;
}

bool
module_map_is_over(uint32_t generation, const uint64_t *frames, uint32_t count)
{
	uint32_t first = atomic_load_explicit(&gone, memory_order_acquire); // pairs with push_gone()

	for (uint32_t i = 0; first != 0 && i < count; i++) {
		if ((frames[i] & KMEM_FRAME_PYTHON) == 0 && is_over(frames[i] & KMEM_FRAME_PC_MASK, first, generation))
			return true;
	}
	return false;
}

void
module_map_forked(void)
{
	memset(slots, 0, sizeof slots); // the child has one thread
	atomic_store_explicit(&gone, 0, memory_order_relaxed);
}

void
module_map_unloaded_check(void)
{
	for (unsigned i = 0; i < SLOTS_MAX; i++) {
		struct loaded_object now;

		/* acquire: pairs with record_module() */
		if (atomic_load_explicit(&slots[i].state, memory_order_acquire) != SLOT_LOADED)
			continue;
		if (!loaded_object_find(slots[i].start_addr, &now) ||
		    now.start_addr != slots[i].start_addr || now.end_addr != slots[i].end_addr ||
		    now.link_map != slots[i].link_map)
			close_slot(&slots[i]);
	}
	native_stack_modules_changed();
}
