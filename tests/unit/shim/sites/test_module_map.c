/*
 * test_module_map.c - what becomes of a module that there is no room for, and of one that comes where generated code was?
 */
#include "unit.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include "base/capture_life.h"
#include "capture/capture_file.h"
#include "sites/module_map.h"
#include "unwind/unwind_rules.h"

#define MODULES 3300 // more than there are slots, by more than a thousand
#define SLOTS 2048

static void *handles[MODULES];
static uint64_t pcs[MODULES];

/*
 * A copy of a small library is another one to the loader, where its name is another. Not mkstemp(): glibc 2.36 makes its first name of
 * the clock's nanoseconds, of 3,300 names that were free again two are the same in one of 300 runs, and the loader knows that library.
 */
static void
load_copy(unsigned number, int library, const char *folder)
{
	char path[64];
	struct link_map *map = NULL;
	struct stat status;

	snprintf(path, sizeof path, "%s/%u", folder, number);
	int copy = open(path, O_WRONLY | O_CREAT | O_EXCL, 0700);
	assert_true(copy >= 0 && fstat(library, &status) == 0);
	assert_true(lseek(library, 0, SEEK_SET) == 0 &&
	            sendfile(copy, library, NULL, (size_t)status.st_size) == status.st_size);
	assert_int_equal(close(copy), 0);
	handles[number] = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	assert_non_null(handles[number]);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(dlinfo(handles[number], RTLD_DI_LINKMAP, &map), 0);
	pcs[number] = (uint64_t)map->l_ld;
}

static unsigned
recorded(void)
{
	unsigned count = 0;

	for (uint32_t at = capture_file_header()->modules; at != 0; count++)
		at = ((const struct kmem_record *)capture_file_item(KMEM_SECTION_RECORDS, at))->previous;
	return count;
}

TEST(a_module_without_a_slot_is_counted_once_and_has_another_chance)
{
	void *any = dlopen("libutil.so.1", RTLD_NOW | RTLD_LOCAL);
	struct link_map *map = NULL;
	const _Atomic uint64_t *lost = &capture_file_header()->losses[KMEM_LOST_MODULES];
	char folder[] = "/tmp/module_map_XXXXXX";

	if (any == NULL || dlinfo(any, RTLD_DI_LINKMAP, &map) != 0) {
		print_message("SKIPPED: no libutil.so.1 to make copies of\n");
		skip();
	}
	int library = open(map->l_name, O_RDONLY);
	assert_true(library >= 0 && mkdtemp(folder) != NULL);
	for (unsigned i = 0; i < MODULES; i++)
		load_copy(i, library, folder);
	assert_int_equal(close(library), 0);
	assert_int_equal(rmdir(folder), 0);

	for (unsigned round = 0; round < 2; round++) {
		for (unsigned i = 0; i < MODULES; i++)
			module_map_note_pc(pcs[i]);
		assert_int_equal(recorded(), SLOTS);
		assert_int_equal(*lost, MODULES - SLOTS);
	}
	for (unsigned i = 0; i < MODULES - SLOTS; i++)
		assert_int_equal(dlclose(handles[i]), 0);
	module_map_unloaded_check(true);
	for (unsigned i = MODULES - SLOTS; i < MODULES; i++)
		module_map_note_pc(pcs[i]);
	assert_int_equal(recorded(), MODULES);
	assert_int_equal(*lost, MODULES - SLOTS);
}

/* What was learned of generated code, that there are no tables, is not said of a library that the loader puts there. */
TEST(a_module_in_the_place_of_generated_code_has_its_own_rules)
{
	enum { BYTES = 4096 };
	void *library = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);
	uint64_t pc = library != NULL ? (uint64_t)dlsym(library, "cbrt") + 1 : 0; // in its first instruction
	void *page = (void *)(pc & ~(uint64_t)(BYTES - 1));

	if (library == NULL || dlclose(library) != 0 ||
	    mmap(page, BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != page)
		skip(); // it is not there, or stays
	module_map_unloaded_check(true);
	assert_int_equal(unwind_word_kind(unwind_rules_get(pc, unwind_rules_version())), UNWIND_NONE);
	munmap(page, BYTES);
	library = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);
	assert_non_null(library);
	if ((uint64_t)dlsym(library, "cbrt") + 1 != pc) {
		print_message("it came to another address\n");
		skip();
	}
	module_map_note_pc(pc + 100); // by another stack
	assert_int_equal(unwind_word_kind(unwind_rules_get(pc, unwind_rules_version())), UNWIND_NORMAL);
	uint64_t generation = unwind_rules_version();

	module_map_note_pc((uint64_t)load_copy); // nothing was generated meanwhile: what is known of the code stays
	assert_int_equal(unwind_rules_version(), generation);
	assert_int_equal(dlclose(library), 0);
	module_map_unloaded_check(true);
}

int
main(void)
{
	capture_file_forked();
	unwind_rules_start();
	return test_run(NULL, NULL, NULL, NULL);
}
