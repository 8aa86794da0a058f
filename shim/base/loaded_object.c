/* loaded_object.c - see loaded_object.h. The only file that asks the loader what is mapped. */
#include "base/loaded_object.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>

#include "base/elf_symbols.h"
#include "base/loader_list.h"

#define PAGE_BYTES UINT64_C(4096)

#if !__GLIBC_PREREQ(2, 35)
#error "kmemshim is built with glibc 2.35 or newer, whose headers know _dl_find_object()"
#endif

typedef int find_function(void *pc, struct dl_find_object *found);

static find_function find_first;

/* relaxed: every thread finds the same one */
static _Atomic(find_function *) find = find_first;

static int
find_by_list(void *pc, struct dl_find_object *found)
{
	struct loaded_object object;

	if (!loader_list_find((uintptr_t)pc, &object))
		return -1;
	found->dlfo_map_start = (void *)(uintptr_t)object.start_addr;
	found->dlfo_map_end = (void *)(uintptr_t)object.end_addr;
	found->dlfo_eh_frame = (void *)(uintptr_t)object.eh_frame_header_addr;
	found->dlfo_link_map = (struct link_map *)(uintptr_t)object.link_map;
	return 0;
}

/* Not by its name, which the loader of an older glibc would miss. Those that are loaded now stay. */
static int
find_first(void *pc, struct dl_find_object *found)
{
	void *real = loader_list_symbol(_r_debug.r_map, "_dl_find_object");
	find_function *best = real != NULL ? (find_function *)real : find_by_list;

	atomic_store_explicit(&find, best, memory_order_relaxed);
	return best(pc, found);
}

bool
loaded_object_find(uint64_t pc, struct loaded_object *object)
{
	struct dl_find_object found;

	if (atomic_load_explicit(&find, memory_order_relaxed)((void *)(uintptr_t)pc, &found) != 0)
		return false;
	object->start_addr = (uintptr_t)found.dlfo_map_start;
	object->end_addr = (uintptr_t)found.dlfo_map_end;
	object->eh_frame_header_addr = (uintptr_t)found.dlfo_eh_frame;
	object->link_map = found.dlfo_link_map;
	return object->link_map != NULL && object->start_addr < object->end_addr;
}

bool
loaded_object_of_handle(void *handle, struct loaded_object *object)
{
	struct link_map node;

	return loader_list_read(handle, &node) && loaded_object_find((uintptr_t)node.l_ld, object) &&
	       object->link_map == handle;
}

bool
loaded_object_is_there(const struct link_map *link_map, uint64_t start_addr)
{
	struct loaded_object object;

	return loaded_object_find(start_addr, &object) && object.link_map == link_map && object.start_addr == start_addr;
}

bool
loaded_object_was_closed(const struct loaded_object *object)
{
	loader_list_closed(object->link_map);
	return !loaded_object_is_there(object->link_map, object->start_addr);
}

void
loaded_object_unloaded(void)
{
	loader_list_unloaded();
}

const Elf64_Phdr *
loaded_object_headers(const struct loaded_object *object, unsigned *count)
{
	return elf_symbols_headers(object->start_addr, object->end_addr - object->start_addr, count);
}

bool
loaded_object_readable(const struct loaded_object *object, uint64_t addr, uint64_t *low, uint64_t *high)
{
	unsigned count = 0;
	const Elf64_Phdr *headers = loaded_object_headers(object, &count);
	bool has_segments = false;
	bool is_inside = false;

	*low = object->start_addr;
	*high = object->end_addr;
	for (unsigned i = 0; i < count; i++) { // the format sorts PT_LOAD by address
		if (headers[i].p_type != PT_LOAD || !(headers[i].p_flags & PF_R))
			continue;

		uint64_t segment = headers[i].p_vaddr + object->link_map->l_addr;
		uint64_t start = segment & ~(PAGE_BYTES - 1);
		uint64_t end = (segment + headers[i].p_memsz + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);

		if (end <= start || start < object->start_addr)
			continue;
		if (!has_segments || start > *high) { // a gap
			if (is_inside)
				break;
			*low = start;
		}
		has_segments = true;
		*high = end;
		if (addr >= *low && addr < *high)
			is_inside = true;
	}
	if (!has_segments)
		return addr >= object->start_addr && addr < object->end_addr;
	return is_inside;
}
