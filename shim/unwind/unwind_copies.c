/* unwind_copies.c - see unwind_copies.h. */
#include "unwind/unwind_copies.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mappings.h"
#include "base/raw_sys.h"

#define COPIES_MAX 8u
#define FINDS_PER_REST 512u
#define PAGE_BYTES UINT64_C(4096)

/*
 * relaxed, all of it: whoever sees a shift reads a mapping that was there before and is never taken away.
 *   T1  a place belongs to the first who writes its header_addr, and to that address for good
 *   T2  shift 0 = it cannot be used, or not yet. Of another version than `checked` it is used only after what is mapped there was
 *       held against it: another object may have come to the same address, of another file of the same name
 *   T3  a file is used only while the kernel says that the mapped one has not been deleted or replaced
 */
struct copy {
	_Atomic uint64_t header_addr; // 0 = free
	_Atomic uint64_t shift;
	_Atomic uint64_t bytes;   // from the page of header_addr to the end of its segment
	_Atomic uint64_t checked; // version + 1
	_Atomic uint64_t file;    // which it was: identity_of()
};
static struct copy copies[COPIES_MAX];
uint64_t unwind_copies_least_bytes = UINT64_C(1) << 20;
static _Atomic uint32_t finds; // since the last rest

static uint64_t
load(_Atomic uint64_t *word)
{
	return atomic_load_explicit(word, memory_order_relaxed);
}

static void
store(_Atomic uint64_t *word, uint64_t value)
{
	atomic_store_explicit(word, value, memory_order_relaxed);
}

static uint64_t
page_of(uint64_t addr)
{
	return addr & ~(PAGE_BYTES - 1);
}

/* What of the object's file is mapped from the page of `addr` on: *offset in the file, and its bytes; 0 = it may be changed in memory. */
static uint64_t
file_part(const struct loaded_object *object, uint64_t addr, uint64_t *offset)
{
	unsigned count = 0;
	const Elf64_Phdr *headers = loaded_object_headers(object, &count);

	for (unsigned i = 0; i < count; i++) {
		uint64_t start = headers[i].p_vaddr + object->link_map->l_addr;

		if (headers[i].p_type != PT_LOAD || addr < start || addr - start >= headers[i].p_filesz)
			continue;
		*offset = headers[i].p_offset + (page_of(addr) - start);
		return (headers[i].p_flags & PF_W) == 0 && *offset % PAGE_BYTES == 0
		           ? start + headers[i].p_filesz - page_of(addr)
		           : 0;
	}
	return 0;
}

/* The first page has the beginning of the search table: the first five hundred functions of the object, by address. */
static bool
is_same(uint64_t header_addr, uint64_t shift, uint64_t bytes)
{
	const char *mapped = (const char *)(uintptr_t)page_of(header_addr);
	const char *copy = (const char *)(uintptr_t)(page_of(header_addr) + shift); // it may lie below

	return memcmp(mapped, copy, PAGE_BYTES) == 0 &&
	       memcmp(mapped + page_of(bytes - PAGE_BYTES), copy + page_of(bytes - PAGE_BYTES), PAGE_BYTES) == 0;
}

static uint64_t
identity_of(const struct stat *file)
{
	const uint64_t words[] = { file->st_dev, file->st_ino, (uint64_t)file->st_size, (uint64_t)file->st_mtim.tv_sec,
		                       (uint64_t)file->st_mtim.tv_nsec };
	uint64_t hash = 0;

	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		hash = (hash ^ words[i]) * UINT64_C(0x9e3779b97f4a7c15) ^ hash >> 29;
	return hash;
}

/* Is the name still that of the file in the copy? Then an object that was loaded by it since has the same tables (T2). */
static bool
is_same_file(struct copy *copy, const struct loaded_object *object)
{
	struct stat file;

	return raw_sys_may_call() && raw_stat(object->link_map->l_name, &file) == 0 &&
	       identity_of(&file) == load(&copy->file);
}

static bool
contains(const struct mappings_line *line, void *addr)
{
	return *(const uint64_t *)addr >= line->start && *(const uint64_t *)addr < line->end;
}

/* Was the file that is mapped there deleted, or another one put in its place? Also when it cannot be told. */
static bool
is_file_gone(uint64_t addr)
{
	struct mappings_line line = { 0 };

	return !mappings_visit(&line, contains, &addr) || line.is_file_gone || !contains(&line, &addr);
}

static void
make(struct copy *copy, const struct loaded_object *object, uint64_t header_addr, uint64_t version)
{
	uint64_t offset = 0;
	uint64_t bytes = file_part(object, header_addr, &offset);
	int fd = bytes >= unwind_copies_least_bytes && bytes <= raw_reserve_max() && object->link_map->l_name[0] == '/'
	             // a pipe is not waited for
	             ? raw_open(object->link_map->l_name, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0)
	             : -1;

	struct stat file;

	if (fd < 0)
		return;
	// else to read it would be SIGBUS
	bool is_usable = raw_fstat(fd, &file) == 0 && (uint64_t)file.st_size >= offset + bytes &&
	                 !is_file_gone(header_addr); // T3
	void *place = is_usable ? raw_reserve(KMEM_OWN_STACKS, bytes, PROT_NONE) : NULL;

	if (place != NULL &&
	    raw_mmap(place, bytes, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, (int64_t)offset) != MAP_FAILED) {
		uint64_t shift = (uint64_t)place - page_of(header_addr);

		store(&copy->bytes, bytes);
		store(&copy->file, identity_of(&file));
		if (is_same(header_addr, shift, bytes)) {
			store(&copy->checked, version + 1);
			store(&copy->shift, shift);
		}
	}
	raw_close(fd);
}

/* T1. NULL: none is free. */
static struct copy *
copy_of(const struct loaded_object *object, uint64_t header_addr, uint64_t version)
{
	for (unsigned i = 0; i < COPIES_MAX; i++) {
		uint64_t owner = load(&copies[i].header_addr);

		if (owner == 0 && atomic_compare_exchange_strong_explicit(&copies[i].header_addr, &owner, header_addr,
		                                                          memory_order_relaxed, memory_order_relaxed))
			make(&copies[i], object, header_addr, version);
		else if (owner != header_addr)
			continue;
		return &copies[i];
	}
	return NULL;
}

uint64_t
unwind_copies_find(const struct loaded_object *object, uint64_t frames_addr, uint64_t version,
                   struct unwind_tables *tables)
{
	uint64_t header_addr = tables->header_addr;
	struct copy *copy = NULL;
	uint64_t shift, bytes, offset;

	if (frames_addr >= header_addr && frames_addr < tables->header_end_addr &&
	    tables->header_end_addr - header_addr >= unwind_copies_least_bytes)
		copy = copy_of(object, header_addr, version);
	shift = copy != NULL ? load(&copy->shift) : 0;
	bytes = shift != 0 ? load(&copy->bytes) : 0;
	if (frames_addr - page_of(header_addr) >= bytes)
		return 0;
	if (load(&copy->checked) != version + 1) { // T2
		if (file_part(object, header_addr, &offset) != bytes || !is_same(header_addr, shift, bytes) ||
		    !is_same_file(copy, object)) {
			store(&copy->shift, 0);
			return 0;
		}
		store(&copy->checked, version + 1);
	}
	tables->header_addr += shift;
	tables->low_addr = tables->header_addr;
	tables->header_end_addr = tables->high_addr = page_of(header_addr) + shift + bytes;
	if (atomic_fetch_add_explicit(&finds, 1, memory_order_relaxed) >= FINDS_PER_REST)
		unwind_copies_rest();
	return shift;
}

void
unwind_copies_rest(void)
{
	if (atomic_exchange_explicit(&finds, 0, memory_order_relaxed) == 0)
		return;
	for (unsigned i = 0; i < COPIES_MAX; i++) {
		uint64_t shift = load(&copies[i].shift);

		if (shift != 0)
			raw_madvise((void *)(uintptr_t)(page_of(load(&copies[i].header_addr)) + shift), load(&copies[i].bytes),
			            MADV_DONTNEED);
	}
}
