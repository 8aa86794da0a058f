/* loaded_object.c - see loaded_object.h. The only file that asks the loader what is mapped. */
#include "base/loaded_object.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#define PAGE_BYTES UINT64_C(4096)

#if !__GLIBC_PREREQ(2, 35)
#error "kmemshim needs glibc 2.35 or newer, for _dl_find_object()"
#endif

bool
loaded_object_find(uint64_t pc, struct loaded_object *object)
{
	struct dl_find_object found;

	if (_dl_find_object((void *)(uintptr_t)pc, &found) != 0)
		return false;
	object->start_addr = (uintptr_t)found.dlfo_map_start;
	object->end_addr = (uintptr_t)found.dlfo_map_end;
	object->eh_frame_header_addr = (uintptr_t)found.dlfo_eh_frame;
	object->link_map = found.dlfo_link_map;
	return object->link_map != NULL && object->start_addr < object->end_addr;
}

const Elf64_Phdr *
loaded_object_headers(const struct loaded_object *object, unsigned *count)
{
	const Elf64_Ehdr *elf = (const Elf64_Ehdr *)(uintptr_t)object->start_addr;

	/*
	 * The first page of an object is its ELF header. Tools that rewrite objects may move the program
	 * headers to the end of the file: where that is mapped cannot be told from here.
	 */
	if (object->start_addr % PAGE_BYTES != 0 || object->end_addr - object->start_addr < sizeof *elf)
		return NULL;
	if (memcmp(elf->e_ident, ELFMAG, SELFMAG) != 0 || elf->e_phentsize != sizeof(Elf64_Phdr))
		return NULL;
	if (elf->e_phoff % 8 != 0 || elf->e_phoff > PAGE_BYTES ||
	    elf->e_phnum * sizeof(Elf64_Phdr) > PAGE_BYTES - elf->e_phoff)
		return NULL;
	*count = elf->e_phnum;
	return (const Elf64_Phdr *)(uintptr_t)(object->start_addr + elf->e_phoff);
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
