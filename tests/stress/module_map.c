/*
 * module_map.c - threads load, note and unload libraries: does who finds a slot find the module in it whole?
 *
 * Each library is loaded by one thread at a time or by several, is noted while it is there, and is looked for in the list of
 * what is gone. Weakened to relaxed, one by one: see WEAKENED below.
 */
#include "stress.h"

#include <dlfcn.h>

#include "capture_file.h"
#include "kmem_format.h"
#include "module_map.h"

#define TURNS 150

static const struct {
	const char *library;
	const char *function;
} objects[] = {
	{ "libBrokenLocale.so.1", "__ctype_get_mb_cur_max" },
	{ "libthread_db.so.1", "td_init" },
	{ "libresolv.so.2", "ns_get16" },
};

static void
work(unsigned thread, uint64_t *random)
{
	for (unsigned turn = 0; turn < TURNS; turn++) {
		unsigned which = (unsigned)random_below(random, sizeof(objects) / sizeof(objects[0]));
		void *handle = dlopen(objects[which].library, RTLD_NOW | RTLD_LOCAL);
		void *function = handle != NULL ? dlsym(handle, objects[which].function) : NULL;

		if (function != NULL) {
			uint64_t frame = (uint64_t)function & KMEM_FRAME_PC_MASK;

			module_map_note_pc(frame);
			(void)module_map_is_over((uint32_t)random_below(random, 5), &frame, 1);
		}
		stress_yield(random);
		if (handle != NULL)
			dlclose(handle);
		if (turn % 4 == thread % 4)
			module_map_unloaded_check();
	}
}

int
main(void)
{
	unsigned modules = 0;

	stress_run(4, work, random_seed());
	for (uint32_t at = capture_file_header()->modules; at != 0; modules++) {
		const struct kmem_module *module = capture_file_at(KMEM_SECTION_RECORDS, at - 1);

		CHECK(module->record.type == KMEM_RECORD_MODULE && module->start_addr < module->end_addr);
		at = module->record.previous;
	}
	CHECK(modules > 0);
	return 0;
}
