/*
 * module_map.c - threads that meet libraries for the first time: does who finds a slot find the module in it whole?
 *
 * All are loaded before: the sanitizer does not see the loader's own lock, so modules that are gone are not in here (see
 * tests/preload/test_plugins.py).
 */
#include "stress.h"

#include <dlfcn.h>
#include <link.h>

#include "capture/capture_file.h"
#include "kmem_format.h"
#include "sites/module_map.h"

#define ROUNDS 50

static const char *const libraries[] = { "libBrokenLocale.so.1", "libthread_db.so.1", "libresolv.so.2", "libutil.so.1",
	                                     "libm.so.6" };
#define LIBRARIES (sizeof(libraries) / sizeof(libraries[0]))

static _Atomic uint64_t pcs[LIBRARIES + 1];

static void
work(unsigned thread, uint64_t *random)
{
	for (unsigned i = 0; i < 2 * LIBRARIES; i++) {
		uint64_t pc = atomic_load_explicit(&pcs[random_below(random, LIBRARIES + 1)], memory_order_relaxed);

		stress_yield(random);
		if (pc != 0 && thread % 2 != 0) {
			CHECK(!module_map_is_over(0, &pc, 1));
			continue;
		}
		if (pc != 0)
			module_map_note_pc(pc);
		module_map_unloaded_check(true);
	}
}

int
main(void)
{
	uint64_t random = random_seed();
	unsigned modules = 0;
	unsigned found = 1;

	pcs[0] = (uint64_t)main;
	for (unsigned i = 0; i < LIBRARIES; i++) {
		void *handle = dlopen(libraries[i], RTLD_NOW | RTLD_LOCAL); // stays
		struct link_map *map = NULL;

		if (handle != NULL && dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0)
			pcs[found++] = (uint64_t)map->l_ld;
	}
	CHECK(found > 2);
	for (unsigned round = 0; round < ROUNDS; round++) {
		stress_run(4, work, random + round * 4);
		module_map_forked(); // all are new again
	}
	for (uint32_t at = capture_file_header()->modules; at != 0; modules++) {
		const struct kmem_module *module = capture_file_item(KMEM_SECTION_RECORDS, at);

		CHECK(module->record.type == KMEM_RECORD_MODULE && module->start_addr < module->end_addr);
		at = module->record.previous;
	}
	CHECK(modules > ROUNDS && capture_file_header()->losses[KMEM_LOST_MODULES] == 0);
	return 0;
}
