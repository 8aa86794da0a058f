/*
 * test_loader_list.c - does the list of the loader say the same as _dl_find_object(), and no more than that when objects come and go?
 *
 * A glibc that has no _dl_find_object() is in tests/packaging/test_fresh_debian.py.
 */
#include "unit.h"

#include <dlfcn.h>
#include <iconv.h>
#include <link.h>

#include "base/loader_list.h"

static const char *const libraries[] = { "libz.so.1",      "libelf.so.1",  "libjansson.so.4",
	                                     "libyaml-0.so.2", "liblzma.so.5", "libncursesw.so.6" };

static void
same_at(uint64_t addr)
{
	struct dl_find_object theirs;
	struct loaded_object ours = { 0 };
	bool is_there = _dl_find_object((void *)(uintptr_t)addr, &theirs) == 0;

	assert_int_equal(loader_list_find(addr, &ours), is_there);
	if (!is_there)
		return;
	assert_int_equal(ours.start_addr, (uintptr_t)theirs.dlfo_map_start);
	assert_int_equal(ours.end_addr, (uintptr_t)theirs.dlfo_map_end);
	assert_int_equal(ours.eh_frame_header_addr, (uintptr_t)theirs.dlfo_eh_frame);
	assert_ptr_equal(ours.link_map, theirs.dlfo_link_map);
}

/* Are segments far apart, as on aarch64? Then each of them may be an object there, and all of them are one here. */
static bool
has_gap(const struct dl_phdr_info *info)
{
	uint64_t end = 0;
	bool is_found = false;

	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const Elf64_Phdr *header = &info->dlpi_phdr[i];

		if (header->p_type != PT_LOAD)
			continue;
		is_found = is_found || (end != 0 && (header->p_vaddr & ~UINT64_C(4095)) > end);
		end = (header->p_vaddr + header->p_memsz + 4095) & ~UINT64_C(4095);
	}
	return is_found;
}

static void
same_object_at(uint64_t addr)
{
	struct dl_find_object theirs;
	struct loaded_object ours = { 0 };

	assert_int_equal(_dl_find_object((void *)(uintptr_t)addr, &theirs), 0);
	assert_true(loader_list_find(addr, &ours));
	assert_true(ours.start_addr <= (uintptr_t)theirs.dlfo_map_start && ours.end_addr >= (uintptr_t)theirs.dlfo_map_end);
	assert_int_equal(ours.eh_frame_header_addr, (uintptr_t)theirs.dlfo_eh_frame);
	assert_ptr_equal(ours.link_map, theirs.dlfo_link_map);
}

static int
same_in_object(struct dl_phdr_info *info, size_t bytes, void *count)
{
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		uint64_t start = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;

		if (info->dlpi_phdr[i].p_type != PT_LOAD)
			continue;
		if (has_gap(info)) {
			same_object_at(start);
			same_object_at(start + info->dlpi_phdr[i].p_memsz - 1);
			continue;
		}
		same_at(start);
		same_at(start + info->dlpi_phdr[i].p_memsz - 1);
		same_at(start + info->dlpi_phdr[i].p_memsz / 2);
		same_at(start - 1);
		same_at(start + info->dlpi_phdr[i].p_memsz);
	}
	++*(unsigned *)count;
	return 0;
}

static unsigned
same_everywhere(void)
{
	unsigned count = 0;

	dl_iterate_phdr(same_in_object, &count);
	return count;
}

TEST(it_says_what_the_loader_says)
{
	static const uint32_t rooms[] = { 0, 1, 3, LOADER_LIST_ROOM };
	void *handles[ARRAY_LEN(libraries)];
	unsigned before = same_everywhere();

	assert_true(before > 4); // the program, the kernel's object, libc, ...
	for (size_t room = 0; room < ARRAY_LEN(rooms); room++) {
		loader_list_room = rooms[room];
		for (size_t i = 0; i < ARRAY_LEN(libraries); i++)
			assert_non_null(handles[i] = dlopen(libraries[i], RTLD_NOW));
		assert_true(same_everywhere() > before);
		for (size_t i = 0; i < ARRAY_LEN(libraries); i++)
			dlclose(handles[i]);
		loader_list_unloaded();
		assert_int_equal(same_everywhere(), before);
	}
}

TEST(what_is_in_no_object_is_not_found)
{
	struct loaded_object object;
	int on_the_stack = 0;
	void *in_the_heap = malloc(1);
	void *mapped = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (unsigned i = 0; i < 3; i++) { // the second time from memory
		assert_false(loader_list_find((uintptr_t)&on_the_stack, &object));
		assert_false(loader_list_find((uintptr_t)in_the_heap, &object));
		assert_false(loader_list_find((uintptr_t)mapped, &object));
		assert_false(loader_list_find(0, &object));
		assert_false(loader_list_find(UINT64_MAX, &object));
	}
	munmap(mapped, 4096);
	free(in_the_heap);
}

/* Where it was. */
static uint64_t
address_of(const char *library, const char *function)
{
	void *handle = dlopen(library, RTLD_NOW);
	uint64_t addr = handle == NULL ? 0 : (uintptr_t)dlsym(handle, function);

	if (handle != NULL)
		dlclose(handle);
	loader_list_unloaded();
	return addr;
}

TEST(an_object_is_found_as_soon_as_it_is_there)
{
	for (size_t i = 0; i < 20; i++) {
		uint64_t addr = address_of("libz.so.1", "inflate");
		void *handle;

		assert_int_not_equal(addr, 0);
		same_at(addr); // it is gone
		assert_non_null(handle = dlopen("libz.so.1", RTLD_NOW));
		same_at(addr);
		same_at((uintptr_t)dlsym(handle, "inflate"));
		dlclose(handle);
		loader_list_unloaded();
		same_at(addr);
	}
}

/* L3: libc unloads its converters without dlclose(). */
TEST(what_libc_unloads_by_itself_is_not_given_out)
{
	struct dl_find_object theirs;

	for (size_t i = 0; i < 3; i++) {
		iconv_t converter = iconv_open("UTF-16", "KOI8-R");
		struct link_map *map = _r_debug.r_map;

		assert_true(converter != (iconv_t)-1);
		while (map != NULL && strstr(map->l_name, "/KOI8-R.so") == NULL)
			map = map->l_next;
		assert_non_null(map);
		uint64_t addr = (uintptr_t)map->l_ld;
		same_at(addr);
		assert_int_equal(iconv_close(converter), 0);
		for (int other = 0; other < 5; other++) { // it is unloaded when it was not asked for for a while
			converter = iconv_open("UTF-16", other % 2 ? "CP1252" : "ISO-8859-15");
			assert_true(converter != (iconv_t)-1);
			iconv_close(converter);
		}
		same_at(addr);
		if (_dl_find_object((void *)(uintptr_t)addr, &theirs) != 0)
			return;
	}
	fail_msg("libc did not unload its converter");
}

RUN_TESTS(NULL, NULL)
