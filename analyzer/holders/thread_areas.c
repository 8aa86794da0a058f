/*
 * thread_areas.c - thread-local variables of libraries, by thread (see thread_areas.h).
 */
#include "holders/thread_areas.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "base/machine.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/place.h"
#include "base/sorted.h"
#include "base/text_start.h"

#define LIBRARIES_MAX 4096u // with thread-local variables, in the loader's list
#define AREAS_MAX 65536u
#define ENTRY_BYTES 16u // of a thread's table: where the variables are, and what is to be freed
#define LIST_LENGTH 0u  // of the loader's list: parts, each with its length, the next one, and its libraries
#define LIST_NEXT 8u
#define LIST_FIRST 16u
#define LIBRARY_BYTES 16u // since when it is there, and the loader's record of it
#define RECORD_DYNAMIC 16u

struct search {
	struct process_memory *memory;
	const struct stopped_process *process;
	struct process_modules *modules;
	struct thread_areas *areas;
	uint64_t offset_at; // in the loader's record: how far from the control block the variables are
};

static uint64_t
symbol_of(struct search *search, const char *const *names, const char *symbol)
{
	uint64_t addr = 0;

	for (size_t i = 0; i < search->modules->count && addr == 0; i++) {
		struct process_module *module = &search->modules->modules[i];
		bool is_one = false;

		for (size_t k = 0; names[k] != NULL; k++)
			is_one = is_one || text_starts(place_base(module->path), names[k]);
		if (is_one)
			addr = process_module_named(search->modules, module, symbol);
	}
	return addr;
}

/* The description that glibc has for debuggers: bits, how many, offset. False: there is none, or the member is no word. */
static bool
offset_of(struct search *search, const char *symbol, uint64_t *offset)
{
	static const char *const names[] = { "libc.so.", "libc-", "libpthread", NULL };
	uint64_t addr = symbol_of(search, names, symbol);

	*offset = addr != 0 ? process_memory_half(search->memory, addr + 8) : 0;
	return addr != 0;
}

/* How many bytes of thread-local variables the library has; 0 = none. */
static uint64_t
bytes_of(struct process_memory *memory, const struct process_module *module)
{
	Elf64_Phdr part;

	for (unsigned i = 0; process_memory_header(memory, module->start, i, &part); i++) {
		if (part.p_type == PT_TLS)
			return part.p_memsz;
	}
	return 0;
}

/*
 * Where the library's variables are in this thread; 0 = nowhere, or not known. A thread's table may be older than the library: then its
 * entry belongs to an earlier library.
 */
static uint64_t
start_in(const struct search *search, const struct stopped_thread *thread, uint64_t number, uint64_t since,
         uint64_t offset)
{
	if (offset != 0 && offset < UINT64_MAX - 1) // as the loader has it, in static memory
		return MACHINE_THREAD_LOCAL_IS_BELOW ? thread->thread_addr - offset : thread->thread_addr + offset;

	uint64_t table = process_memory_word(search->memory, thread->thread_addr + MACHINE_THREAD_TABLE);

	if (table == 0 || process_memory_word(search->memory, table - ENTRY_BYTES) < number ||
	    process_memory_word(search->memory, table) < since)
		return 0;

	uint64_t start = process_memory_word(search->memory, table + number * ENTRY_BYTES);

	return start != UINT64_MAX ? start : 0;
}

static void
add_library(struct search *search, uint64_t number, uint64_t since, uint64_t record)
{
	struct process_module *module = process_modules_at(search->modules,
	                                                   process_memory_word(search->memory, record + RECORD_DYNAMIC));
	uint64_t bytes = module != NULL ? bytes_of(search->memory, module) : 0;
	uint64_t offset = process_memory_word(search->memory, record + search->offset_at);
	struct thread_areas *areas = search->areas;

	for (uint32_t i = 0; bytes != 0 && i < search->process->count && areas->count < AREAS_MAX; i++) {
		const struct stopped_thread *thread = &search->process->threads[i];
		uint64_t start = thread->thread_addr != 0 ? start_in(search, thread, number, since, offset) : 0;

		if (start == 0 || start + bytes < start)
			continue;
		*MEMORY_NEXT(areas->areas, areas->count) = (struct thread_area){ start, start + bytes, module, i };
	}
}

ORDER_OF(compare, struct thread_area, order_numbers(a->end, b->end) ?: order_numbers(a->start, b->start))

void
thread_areas_find(struct process_memory *memory, const struct stopped_process *process, struct process_modules *modules,
                  struct thread_areas *areas)
{
	static const char *const loaders[] = { "ld-", NULL };
	struct search search = { .memory = memory, .process = process, .modules = modules, .areas = areas };
	uint64_t number = 0;
	uint64_t list_at;

	*areas = (struct thread_areas){ 0 };

	uint64_t list = symbol_of(&search, loaders, "_rtld_global");

	if (list == 0 || !offset_of(&search, "_thread_db_rtld_global__dl_tls_dtv_slotinfo_list", &list_at) ||
	    !offset_of(&search, "_thread_db_link_map_l_tls_offset", &search.offset_at))
		return;
	for (list = process_memory_word(memory, list + list_at); list != 0 && number < LIBRARIES_MAX;
	     list = process_memory_word(memory, list + LIST_NEXT)) {
		uint64_t count = process_memory_word(memory, list + LIST_LENGTH);

		for (uint64_t i = 0; i < count && number < LIBRARIES_MAX; i++, number++) {
			uint64_t library = list + LIST_FIRST + i * LIBRARY_BYTES;
			uint64_t record = process_memory_word(memory, library + 8);

			if (record != 0)
				add_library(&search, number, process_memory_word(memory, library), record);
		}
		if (count == 0)
			break;
	}
	SORT(areas->areas, areas->count, compare);
}

void
thread_areas_free(struct thread_areas *areas)
{
	free(areas->areas);
	*areas = (struct thread_areas){ 0 };
}

const struct thread_area *
thread_areas_at(const struct thread_areas *areas, uint64_t addr)
{
	size_t at = SORTED_UP_TO(areas->areas, areas->count, end, addr);

	return at < areas->count && areas->areas[at].start <= addr ? &areas->areas[at] : NULL;
}
