/*
 * test_unwind_copies.c - do the tables in a second mapping say the same, and is a mapping that is not the same file's refused?
 */
#include "unit.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <sys/stat.h>

#include "unwind/unwind_cfi.h"
#include "unwind/unwind_copies.h"

static struct loaded_object object;
static struct unwind_tables in_place;
static uint64_t frames_addr;

/* The object with that code. */
static void
open_tables(const void *code)
{
	uint64_t unused;

	unwind_copies_least_bytes = 4096;
	assert_true(loaded_object_find((uintptr_t)code, &object));
	in_place = (struct unwind_tables){ .header_addr = object.eh_frame_header_addr };
	assert_true(loaded_object_readable(&object, in_place.header_addr, &unused, &in_place.header_end_addr));
	frames_addr = unwind_tables_frames(&in_place);
	assert_true(loaded_object_readable(&object, frames_addr, &in_place.low_addr, &in_place.high_addr));
}

static uint64_t
find(uint64_t version, struct unwind_tables *tables)
{
	*tables = in_place;
	return unwind_copies_find(&object, frames_addr, version, tables);
}

/* Is the page of the second mapping in this process's page table? -1: it cannot be told. */
static int
is_there(uint64_t addr)
{
	uint64_t entry;
	int fd = open("/proc/self/pagemap", O_RDONLY);
	bool is_read = fd >= 0 && pread(fd, &entry, sizeof(entry), (off_t)(addr / 4096 * 8)) == sizeof(entry);

	if (fd >= 0)
		close(fd);
	return is_read ? (int)(entry >> 63) : -1;
}

TEST(the_second_mapping_says_the_same_and_rests)
{
	struct unwind_tables copy;
	unsigned normal = 0;

	open_tables((const void *)(uintptr_t)gnu_get_libc_version);
	uint64_t shift = find(7, &copy);

	assert_int_not_equal(shift, 0);
	assert_int_equal(find(7, &copy), shift); // the same one again
	for (uint64_t pc = object.start_addr; pc < object.end_addr; pc += 61) {
		struct unwind_rule one = unwind_cfi_rule(&in_place, pc, pc - 1);
		struct unwind_rule other = unwind_cfi_rule(&copy, pc + shift, pc + shift - 1);

		assert_int_equal(one.kind, other.kind);
		assert_int_equal(one.cfa_offset, other.cfa_offset);
		assert_int_equal(one.rbp_offset, other.rbp_offset);
		assert_int_equal(one.is_cfa_from_rbp, other.is_cfa_from_rbp);
		normal += one.kind == UNWIND_NORMAL;
	}
	assert_true(normal > 1000);
	assert_int_not_equal(is_there(copy.header_addr), 0);
	unwind_copies_rest();
	assert_int_not_equal(is_there(copy.header_addr), 1);
	assert_int_not_equal(is_there(in_place.header_addr), 0);
	assert_int_equal(unwind_tables_frames(&copy), frames_addr + shift);
}

TEST(T2_after_an_unload_it_is_compared_again)
{
	struct unwind_tables copy;

	open_tables((const void *)(uintptr_t)gnu_get_libc_version);
	void *page = (void *)(in_place.header_addr & ~UINT64_C(4095));
	assert_int_not_equal(find(8, &copy), 0);
	assert_int_equal(mprotect(page, 4096, PROT_READ | PROT_WRITE), 0);
	*(uint8_t *)(in_place.header_addr + 40) ^= 1; // another object, at the same address
	assert_int_not_equal(find(8, &copy), 0);      // nothing was unloaded: nobody asks
	assert_int_equal(find(9, &copy), 0);
	*(uint8_t *)(in_place.header_addr + 40) ^= 1;
	assert_int_equal(mprotect(page, 4096, PROT_READ), 0);
	assert_int_equal(find(10, &copy), 0); // for good
	assert_memory_equal(&copy, &in_place, sizeof(copy));
}

TEST(another_file_of_that_name_is_refused)
{
	char short_file[] = "/tmp/kmemshim-unit-XXXXXX";
	struct link_map other = { 0 };
	struct unwind_tables copy;
	void *library = dlopen("libgcc_s.so.1", RTLD_LAZY);
	int fd = mkstemp(short_file);

	assert_true(fd >= 0);
	assert_non_null(library);
	open_tables((const void *)(uintptr_t)_cmocka_run_group_tests);
	other.l_addr = object.link_map->l_addr;
	other.l_name = short_file;
	object.link_map = &other;
	assert_int_equal(find(7, &copy), 0); // to read it would be SIGBUS

	open_tables(dlsym(library, "_Unwind_GetIP"));
	assert_int_equal(ftruncate(fd, 64 << 20), 0); // zeros
	other.l_addr = object.link_map->l_addr;
	object.link_map = &other;
	assert_int_equal(find(7, &copy), 0);
	assert_memory_equal(&copy, &in_place, sizeof(copy));
	dlclose(library);
	close(fd);
	unlink(short_file);
}

static void
copy_file(const char *from, const char *to, long changed_at)
{
	static char bytes[8 << 20];
	FILE *file = fopen(from, "rb");
	size_t count = file != NULL ? fread(bytes, 1, sizeof(bytes), file) : 0;

	assert_true(count > 0 && count < sizeof(bytes) && changed_at < (long)count);
	fclose(file);
	if (changed_at >= 0)
		bytes[changed_at] ^= 1;
	file = fopen(to, "wb");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes, 1, count, file), count);
	assert_int_equal(fclose(file), 0);
}

/* An upgrade that changes one word in the middle: neither the first page nor the last one shows it. */
TEST(a_file_that_was_replaced_is_refused)
{
	char folder[] = "/tmp/kmemshim-unit-XXXXXX";
	char name[sizeof(folder) + 16];
	char fresh[sizeof(folder) + 16];
	struct unwind_tables copy;
	struct link_map *map;

	assert_non_null(mkdtemp(folder));
	snprintf(fresh, sizeof(fresh), "%s/fresh.so", folder);
	assert_int_equal(dlinfo(dlopen("libm.so.6", RTLD_NOW), RTLD_DI_LINKMAP, &map), 0);
	for (unsigned had_copy = 0; had_copy < 2; had_copy++) {
		snprintf(name, sizeof(name), "%s/library%u.so", folder, had_copy);
		copy_file(map->l_name, name, -1);
		void *handle = dlopen(name, RTLD_NOW);

		assert_non_null(handle); // stays: the next one has another address
		open_tables(dlsym(handle, "cbrt"));
		if (had_copy)
			assert_int_not_equal(find(20, &copy), 0);
		copy_file(map->l_name, fresh, (long)(frames_addr - object.link_map->l_addr) + 20000);
		assert_int_equal(rename(fresh, name), 0);
		assert_int_equal(find(21, &copy), 0);
		assert_memory_equal(&copy, &in_place, sizeof(copy));
		unlink(name);
	}
	rmdir(folder);
}

/* Opened by a name that stands for something else by now, such as /proc/self/fd/3. */
TEST(a_pipe_of_that_name_is_not_waited_for)
{
	char folder[] = "/tmp/kmemshim-unit-XXXXXX";
	char name[sizeof(folder) + 8];
	struct link_map other = { 0 };
	struct unwind_tables copy;
	void *handle = dlopen("libgcc_s.so.1", RTLD_NOW);

	assert_non_null(handle);
	assert_non_null(mkdtemp(folder));
	snprintf(name, sizeof(name), "%s/pipe", folder);
	assert_int_equal(mkfifo(name, 0600), 0);
	open_tables(dlsym(handle, "_Unwind_GetIP"));
	other.l_addr = object.link_map->l_addr;
	other.l_name = name;
	object.link_map = &other;
	alarm(60);
	assert_int_equal(find(7, &copy), 0);
	alarm(0);
	unlink(name);
	rmdir(folder);
	dlclose(handle);
}

TEST(few_tables_stay_where_they_are)
{
	struct unwind_tables copy;
	void *handle = dlopen("libm.so.6", RTLD_NOW);

	open_tables((const void *)(uintptr_t)is_there); // the program has no name
	assert_int_equal(find(7, &copy), 0);
	assert_non_null(handle);
	open_tables(dlsym(handle, "cbrt"));
	unwind_copies_least_bytes = 1 << 30;
	assert_int_equal(find(7, &copy), 0);
	unwind_copies_least_bytes = 4096;
	assert_int_not_equal(find(7, &copy), 0); // for no other reason
	dlclose(handle);
}

RUN_TESTS(NULL, NULL)
