/*
 * module_map.c - see module_map.h.
 *
 * A table of the modules that are there, written under a lock and read without; and the last ones that are gone, so that what is
 * loaded in their place gets a version of its own. Of what was gone before those only the time is known: a stack from then has
 * to lead into modules that have been there since. The loader is asked by loaded_object.h only.
 *
 * Not chosen  all that was ever there: a program that loads and unloads all day would look through it at every new stack.
 */
#include "sites/module_map.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include "base/effort.h"
#include "base/loaded_object.h"
#include "base/mappings.h"
#include "base/raw_sys.h"
#include "base/wait_lock.h"
#include "capture/capture_file.h"
#include "kmem_format.h"
#include "kmem_words.h"
#include "python/python_runtime.h"
#include "unwind/native_stack.h"
#include "unwind/unwind_rules.h"

#define SLOTS_MAX 2048u    // modules that are there at once
#define KNOWN_MAX 512u     // a power of two
#define GONE_MAX 1024u     // a power of two
#define REFUSED_MAX 32768u // a power of two: twice as many as there can be modules
#define REFUSED_PROBES_MAX 16u
#define PATH_BYTES_MAX 1024u // on the stack, which may be a small one
#define NOTE_GNU "GNU"

/* One module that is there. All of it is written under the lock. */
struct slot {
	_Atomic uint64_t key;    // identity of the mapping, 0 = free
	_Atomic uint32_t record; // index + 1 in RECORDS; 0 = there was no room for it. Stored with release before the key
	uint64_t start_addr;
	uint64_t end_addr;
	const struct link_map *link_map;
};
static struct slot slots[SLOTS_MAX];
static _Atomic uint32_t slot_count;       // that were ever used; relaxed: a slot without a key is skipped
static _Atomic uint16_t known[KNOWN_MAX]; // by key: the slot, or another; relaxed: the slot's key decides

/* Keys of modules that found no slot, so that each is counted and looked at once. Written under the lock. relaxed. */
static _Atomic uint64_t refused[REFUSED_MAX];
static _Atomic uint32_t refused_count; // 0: there is a free slot, for all that is known

static struct {
	_Atomic uint32_t record; // index + 1 in RECORDS; 0 = none. Stored with release when `unloaded` is in the record
	_Atomic uint64_t back;   // of is_back(): version of the unwind rules, the record, the answer; relaxed, one word
} gone[GONE_MAX];
static uint32_t gone_count; // ever; the last ones are in `gone`
// version at which the last module that is not in `gone` any more was unloaded
static _Atomic uint32_t forgotten;

static struct wait_lock lock; // what it guards is whole at each step: a slot counts from its key on

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

static bool
begins_at(const struct mappings_line *line, void *addr)
{
	return line->start == *(const uint64_t *)addr;
}

/*
 * As the kernel calls the file; 0 = it does not say. Not chosen: the current folder and the relative name, for the program may have changed
 * its folder since; /proc/self/map_files, which is for privileged processes only.
 */
static size_t
mapped_path(uint64_t start_addr, char path[PATH_BYTES_MAX])
{
	struct mappings_line line = { .path = path, .room = PATH_BYTES_MAX };

	return mappings_visit(&line, begins_at, &start_addr) && line.path_bytes < PATH_BYTES_MAX ? line.path_bytes : 0;
}

/*
 * The main program has no name, the kernel's object one that is no file. A relative one is of a folder that may have changed since.
 * Returns the length.
 */
static size_t
path_of(const struct loaded_object *object, char path[PATH_BYTES_MAX])
{
	const char *name = object->link_map->l_name;

	if (object->start_addr == getauxval(AT_SYSINFO_EHDR)) {
		memcpy(path, "[vdso]", 7);
		return 6;
	}
	if (name == NULL || name[0] == '\0') {
		ssize_t bytes = !raw_sys_may_call()
		                    ? 0
		                    : raw_syscall(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", path, PATH_BYTES_MAX - 1);

		path[bytes > 0 ? bytes : 0] = '\0';
		return bytes > 0 ? (size_t)bytes : 0;
	}

	size_t bytes = name[0] != '/' && strchr(name, '/') != NULL ? mapped_path(object->start_addr, path) : 0;

	if (bytes == 0) {
		bytes = strnlen(name, PATH_BYTES_MAX - 1);
		memcpy(path, name, bytes);
	}
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

static const struct kmem_module *
module_of(uint32_t record)
{
	return capture_file_item(KMEM_SECTION_RECORDS, record);
}

/* relaxed: stored before what led here. */
static uint32_t
unloaded_of(const struct kmem_module *module)
{
	return (uint32_t)atomic_load_explicit(&module->unloaded, memory_order_relaxed);
}

/* First version at which the object can have been there: after everything that was there before. Under the lock. */
static uint32_t
loaded_version_of(const struct loaded_object *object)
{
	uint32_t version = atomic_load_explicit(&forgotten, memory_order_relaxed);

	for (uint32_t i = 0; i < GONE_MAX && i < gone_count; i++) {
		const struct kmem_module *module = module_of(atomic_load_explicit(&gone[i].record, memory_order_relaxed));

		if (module->start_addr < object->end_addr && object->start_addr < module->end_addr &&
		    unloaded_of(module) > version)
			version = unloaded_of(module);
	}
	return version;
}

/* What is read of a module and of its file, before the lock is taken. */
struct facts {
	char path[PATH_BYTES_MAX];
	size_t path_bytes;
	uint64_t file_size_bytes;
	uint64_t file_mtime_ns;
	uint32_t build_id_bytes;
	uint8_t build_id[32];
};

static void
learn_file(const struct loaded_object *object, struct facts *facts)
{
	struct stat file;

	facts->path_bytes = path_of(object, facts->path);
	facts->file_size_bytes = facts->file_mtime_ns = 0;
	if (raw_sys_may_call() && raw_stat(facts->path, &file) == 0) {
		facts->file_size_bytes = (uint64_t)file.st_size;
		facts->file_mtime_ns = (uint64_t)file.st_mtim.tv_sec * 1000000000u + (uint64_t)file.st_mtim.tv_nsec;
	}
}

/* Index + 1 of its record; 0 = no room. Under the lock. */
static uint32_t
record_module(const struct loaded_object *object, const struct facts *facts)
{
	size_t bytes = sizeof(struct kmem_module) + facts->path_bytes;
	uint32_t index;
	/* It names the frames of many stacks. */
	struct kmem_module *module = capture_file_append_sparing(KMEM_SECTION_RECORDS, bytes, CAPTURE_FILE_SPARE_BYTES / 2,
	                                                         &index);

	if (module == NULL)
		return 0;
	module->record.type = KMEM_RECORD_MODULE;
	module->record.bytes = (uint32_t)bytes;
	module->start_addr = object->start_addr;
	module->end_addr = object->end_addr;
	module->load_bias = object->link_map->l_addr;
	module->loaded_version = loaded_version_of(object);
	module->file_size_bytes = facts->file_size_bytes;
	module->file_mtime_ns = facts->file_mtime_ns;
	module->build_id_bytes = facts->build_id_bytes;
	memcpy(module->build_id, facts->build_id, facts->build_id_bytes);
	module->path_bytes = (uint32_t)facts->path_bytes;
	memcpy(module + 1, facts->path, facts->path_bytes);
	return capture_file_link(&capture_file_header()->modules, index) + 1;
}

/* ---- what there is no slot for ---- */

/* The place of the key, or a free one; NULL = there is none. */
static _Atomic uint64_t *
refused_place(uint64_t key)
{
	for (uint32_t i = 0; i < REFUSED_PROBES_MAX; i++) {
		_Atomic uint64_t *place = &refused[(key + i) % REFUSED_MAX];
		uint64_t seen = atomic_load_explicit(place, memory_order_relaxed);

		if (seen == key || seen == 0)
			return place;
	}
	return NULL;
}

static bool
is_full(void)
{
	return atomic_load_explicit(&refused_count, memory_order_relaxed) != 0;
}

static bool
was_refused(uint64_t key)
{
	const _Atomic uint64_t *place = is_full() ? refused_place(key) : NULL;

	return place != NULL && atomic_load_explicit(place, memory_order_relaxed) == key;
}

/* Under the lock, as the next one. */
static void
refuse(uint64_t key)
{
	_Atomic uint64_t *place = refused_place(key);

	if (place != NULL)
		atomic_store_explicit(place, key, memory_order_relaxed);
	atomic_fetch_add_explicit(&refused_count, 1, memory_order_relaxed);
}

static void
welcome_all(void)
{
	for (uint32_t i = 0; is_full() && i < REFUSED_MAX; i++)
		atomic_store_explicit(&refused[i], 0, memory_order_relaxed);
	atomic_store_explicit(&refused_count, 0, memory_order_relaxed);
}

/* ---- what is there, and what is gone: under the lock ---- */

static void
push_gone(uint32_t record)
{
	uint32_t place = gone_count++ % GONE_MAX;
	uint32_t last = atomic_load_explicit(&gone[place].record, memory_order_relaxed);

	if (last != 0) // relaxed: who sees the new record in this place sees that as well
		atomic_store_explicit(&forgotten, unloaded_of(module_of(last)), memory_order_relaxed);
	atomic_store_explicit(&gone[place].record, record, memory_order_release); // pairs with module_map_is_over()
}

static void
close_slot(struct slot *slot)
{
	uint32_t record = atomic_load_explicit(&slot->record, memory_order_relaxed);

	atomic_store_explicit(&slot->key, 0, memory_order_relaxed);
	welcome_all(); // there is room again
	if (record == 0)
		return;
	struct kmem_module *module = capture_file_item(KMEM_SECTION_RECORDS, record);

	/* A stack with the new version has no frame in this module: it was gone before. relaxed, both: a count, and what `gone` publishes. */
	uint32_t version = atomic_fetch_add_explicit(&capture_file_header()->module_version, 1, memory_order_relaxed) + 1;

	atomic_store_explicit(&module->unloaded, kmem_twice(version), memory_order_relaxed);
	push_gone(record);
}

/* Slots that overlap the object are of objects that were unloaded unseen (not through dlclose). */
static bool
close_overlapping(const struct loaded_object *object)
{
	uint32_t count = atomic_load_explicit(&slot_count, memory_order_relaxed);
	bool was_any = false;

	for (uint32_t i = 0; i < count; i++) {
		if (atomic_load_explicit(&slots[i].key, memory_order_relaxed) == 0 || slots[i].start_addr >= object->end_addr ||
		    object->start_addr >= slots[i].end_addr)
			continue;
		close_slot(&slots[i]);
		was_any = true;
	}
	return was_any;
}

static struct slot *
find_slot(uint64_t key)
{
	_Atomic uint16_t *place = &known[key % KNOWN_MAX];
	struct slot *slot = &slots[atomic_load_explicit(place, memory_order_relaxed)];
	uint32_t count = atomic_load_explicit(&slot_count, memory_order_relaxed);

	/* acquire: pairs with add_slot(), for the record. */
	if (atomic_load_explicit(&slot->key, memory_order_acquire) == key)
		return slot;
	for (uint32_t i = 0; i < count; i++) {
		if (atomic_load_explicit(&slots[i].key, memory_order_acquire) == key) {
			atomic_store_explicit(place, (uint16_t)i, memory_order_relaxed);
			return &slots[i];
		}
	}
	return NULL;
}

/* False: there is no room for it in the table, or in the capture. */
static bool
add_slot(const struct loaded_object *object, uint64_t key, const struct facts *facts)
{
	uint32_t count = atomic_load_explicit(&slot_count, memory_order_relaxed);
	uint32_t i = 0;

	while (i < count && atomic_load_explicit(&slots[i].key, memory_order_relaxed) != 0)
		i++;
	if (i == SLOTS_MAX) {
		refuse(key);
		return false;
	}
	uint32_t record = record_module(object, facts);

	slots[i].start_addr = object->start_addr;
	slots[i].end_addr = object->end_addr;
	slots[i].link_map = object->link_map;
	atomic_store_explicit(&slots[i].record, record, memory_order_relaxed);
	/* release: the record and its place before the key that leads to them. Pairs with find_slot(). */
	atomic_store_explicit(&slots[i].key, key, memory_order_release);
	if (i == count)
		atomic_store_explicit(&slot_count, count + 1, memory_order_relaxed);
	return record != 0;
}

static void
look_for_python(const struct loaded_object *object)
{
	const struct elf_object elf = {
		.load_bias = object->link_map->l_addr,
		.dynamic_addr = (uint64_t)object->link_map->l_ld,
	};

	python_runtime_look_at(&elf, object->link_map->l_name);
}

/*
 * Its path is no part of the stack of those that find their module. Of one that there is no slot for the file is not looked at; if a slot
 * has become free meanwhile, the next stack through it sees that.
 */
static __attribute__((noinline)) void
note_module(const struct loaded_object *object, uint64_t key)
{
	struct facts facts;
	bool has_facts = !is_full();
	bool is_new = false;
	bool is_lost = true;

	effort_count(KMEM_EFFORT_MODULES);
	if (has_facts) {
		learn_file(object, &facts);
		facts.build_id_bytes = build_id_of(object, facts.build_id);
	}
	if (wait_lock_take(&lock)) {
		is_new = find_slot(key) == NULL;
		if (is_new && close_overlapping(object))
			native_stack_modules_changed();
		is_lost = is_new && (has_facts ? !add_slot(object, key, &facts) : is_full());
		if (is_lost && !has_facts)
			refuse(key);
		wait_lock_give(&lock);
	}
	if (is_lost)
		capture_file_lost(KMEM_LOST_MODULES, 1);
	if (is_new) {
		unwind_rules_object_came();
		look_for_python(object);
	}
}

void
module_map_note_pc(uint64_t pc)
{
	struct loaded_object object;
	int host_errno = errno;

	if (!loaded_object_find(pc, &object))
		return;

	uint64_t key = key_of(&object);

	if (find_slot(key) != NULL || was_refused(key))
		return;
	note_module(&object, key);
	errno = host_errno;
}

/* Is the object the one that the record describes, at the same place? */
static bool
is_recorded(const struct loaded_object *object, const struct kmem_module *module)
{
	struct facts now;

	now.build_id_bytes = build_id_of(object, now.build_id);
	if (object->start_addr != module->start_addr || object->end_addr != module->end_addr ||
	    object->link_map->l_addr != module->load_bias || now.build_id_bytes != module->build_id_bytes)
		return false;
	if (now.build_id_bytes != 0)
		return memcmp(now.build_id, module->build_id, now.build_id_bytes) == 0;
	learn_file(object, &now);
	return now.file_size_bytes != 0 && now.file_size_bytes == module->file_size_bytes &&
	       now.file_mtime_ns == module->file_mtime_ns && now.path_bytes == module->path_bytes &&
	       memcmp(now.path, module + 1, module->path_bytes) == 0;
}

/* Was the same library loaded again where it had been? Looked up once after each unloading. */
static bool
is_back(uint32_t place, uint32_t record)
{
	uint64_t rules = atomic_load_explicit(&unwind_rules.version, memory_order_relaxed);
	uint64_t asked = rules << 33 | (uint64_t)record << 1;
	uint64_t answered = atomic_load_explicit(&gone[place].back, memory_order_relaxed);
	const struct kmem_module *module = module_of(record);
	struct loaded_object object;
	int host_errno = errno;

	if ((answered & ~UINT64_C(1)) == asked)
		return answered & 1;
	answered = asked | (loaded_object_find(module->start_addr, &object) && is_recorded(&object, module));
	atomic_store_explicit(&gone[place].back, answered, memory_order_relaxed);
	errno = host_errno;
	return answered & 1;
}

/* Has the module been there since then? */
static bool
is_old_enough(const struct loaded_object *object, uint32_t version)
{
	const struct slot *slot = find_slot(key_of(object));
	// its key was acquired
	uint32_t record = slot != NULL ? atomic_load_explicit(&slot->record, memory_order_relaxed) : 0;

	return record != 0 && module_of(record)->loaded_version <= version;
}

static bool
is_over(uint64_t pc, uint32_t version)
{
	struct loaded_object object;
	bool is_in_object = loaded_object_find(pc, &object);

	if (is_in_object && is_old_enough(&object, version)) // nearly all
		return false;
	for (uint32_t i = 0; i < GONE_MAX; i++) {
		uint32_t record = atomic_load_explicit(&gone[i].record, memory_order_acquire); // pairs with push_gone()

		if (record == 0)
			break;
		const struct kmem_module *module = module_of(record);

		if (pc >= module->start_addr && pc < module->end_addr && module->loaded_version <= version &&
		    version < unloaded_of(module))
			return !is_back(i, record);
	}
	/* Whether something else was there then is forgotten. What lies in no module was not made by the loader. */
	return is_in_object && version < atomic_load_explicit(&forgotten, memory_order_relaxed); // see push_gone()
}

bool
module_map_is_over(uint32_t version, const uint64_t *frames, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		if ((frames[i] & KMEM_FRAME_PYTHON) == 0 && is_over(frames[i] & KMEM_FRAME_PC_MASK, version))
			return true;
	}
	return false;
}

void
module_map_forked(void)
{
	memset(slots, 0, sizeof slots); // the child has one thread
	memset(gone, 0, sizeof gone);
	atomic_store_explicit(&refused_count, 0, memory_order_relaxed);
	gone_count = 0;
	atomic_store_explicit(&slot_count, 0, memory_order_relaxed);
	atomic_store_explicit(&forgotten, 0, memory_order_relaxed);
}

bool
module_map_unloaded_check(bool was_unloaded)
{
	bool is_taken = wait_lock_take(&lock);
	uint32_t count = atomic_load_explicit(&slot_count, memory_order_relaxed);

	for (uint32_t i = 0; is_taken && i < count; i++) {
		struct loaded_object now;

		if (atomic_load_explicit(&slots[i].key, memory_order_relaxed) == 0)
			continue;
		if (!loaded_object_find(slots[i].start_addr, &now) || now.start_addr != slots[i].start_addr ||
		    now.end_addr != slots[i].end_addr || now.link_map != slots[i].link_map) {
			close_slot(&slots[i]);
			was_unloaded = true;
		}
	}
	if (is_taken) // else who loads something in its place finds it
		wait_lock_give(&lock);
	if (was_unloaded)
		native_stack_modules_changed();
	return was_unloaded;
}
