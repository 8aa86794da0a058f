/*
 * test_elf_symbols.c - does our own look-up find what the loader finds?
 */
#include "unit.h"

#include <dlfcn.h>
#include <link.h>

#include "base/checked_memory.h"
#include "base/elf_symbols.h"

static struct elf_object
object_of(const char *part_of_name)
{
	struct elf_object object = { 0 };

	for (const struct link_map *map = _r_debug.r_map; map != NULL; map = map->l_next) {
		if (strstr(map->l_name, part_of_name) == NULL || (part_of_name[0] == '\0') != (map->l_name[0] == '\0'))
			continue;
		object.load_bias = map->l_addr;
		object.dynamic_addr = (uint64_t)map->l_ld;
		break;
	}
	assert_int_not_equal(object.dynamic_addr, 0);
	return object;
}

TEST(finds_what_the_loader_finds)
{
	static const char *const names[] = { "stdout", "environ", "getenv", "qsort", "strtoul", "malloc", "printf" };
	struct elf_object libc = object_of("libc.so");
	void *handle = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD); // libc's own, whatever stands in front of it
	Elf64_Sym symbol;

	assert_non_null(handle);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		assert_int_not_equal(elf_symbols_addr(&libc, names[i]), 0);
		assert_ptr_equal((void *)elf_symbols_addr(&libc, names[i]), dlsym(handle, names[i]));
	}
	assert_true(elf_symbols_find(&libc, "qsort", &symbol));
	assert_int_not_equal(symbol.st_size, 0);
	dlclose(handle);
}

TEST(finds_the_version_of_today)
{
	static const char *const names[] = {
		"pthread_cond_signal", "pthread_cond_wait", "quick_exit", "memcpy", "realpath", "glob", "regexec",
		"posix_spawn",         "sched_setaffinity", "fmemopen"
	};
	struct elf_object libc = object_of("libc.so");
	void *handle = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);

	assert_non_null(handle);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		Elf64_Sym symbol;

		assert_true(elf_symbols_find(&libc, names[i], &symbol));
		if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC) // and not one that chooses
			assert_ptr_equal((void *)elf_symbols_addr(&libc, names[i]), dlsym(handle, names[i]));
	}
	dlclose(handle);
}

TEST(finds_nothing_else)
{
	struct elf_object libc = object_of("libc.so");
	struct elf_object cmocka = object_of("libcmocka");
	struct elf_object none = { 0 };

	assert_int_equal(elf_symbols_addr(&libc, "_PyRuntime"), 0);
	assert_int_equal(elf_symbols_addr(&libc, ""), 0);
	assert_int_equal(elf_symbols_addr(&cmocka, "malloc"), 0); // it refers to it, that is no definition
	assert_int_not_equal(elf_symbols_addr(&cmocka, "_cmocka_run_group_tests"), 0);
	assert_int_equal(elf_symbols_addr(&none, "malloc"), 0);
}

/* The kernel's object: its dynamic section is not relocated. */
TEST(reads_an_object_that_the_loader_cannot_write)
{
	struct elf_object vdso = object_of("linux-vdso");

	assert_int_not_equal(elf_symbols_addr(&vdso, "clock_gettime"), 0);
}

/* What may be unloaded meanwhile is read through the kernel: the same is found, and of what is gone nothing. */
TEST(reads_what_may_be_gone)
{
	struct checked_window window = { .addr = CHECKED_WINDOW_EMPTY };
	struct elf_object libc = object_of("libc.so");
	struct elf_object gone = { .load_bias = 0x1000, .dynamic_addr = 0x2000, .window = &window };
	uint64_t addr = elf_symbols_addr(&libc, "qsort");

	libc.window = &window;
	assert_int_not_equal(addr, 0);
	assert_int_equal(elf_symbols_addr(&libc, "qsort"), addr);
	assert_int_equal(elf_symbols_addr(&libc, "_PyRuntime"), 0);
	assert_true(elf_symbols_is_called(&libc, "libc.so.6"));
	assert_false(elf_symbols_is_called(&libc, "libc.so"));
	assert_int_equal(elf_symbols_addr(&gone, "qsort"), 0);
	assert_false(elf_symbols_is_called(&gone, "libc.so.6"));
}

/* A table with the old kind of hashes: two symbols in one bucket. */
TEST(reads_old_hashes)
{
	static const char names[] = "\0one\0two";
	static Elf64_Sym symbols[3] = { { 0 },
		                            { .st_name = 1, .st_shndx = 5, .st_value = 0x10 },
		                            { .st_name = 5, .st_shndx = SHN_UNDEF, .st_value = 0x20 } };
	static uint32_t hash[] = { 1, 3, /* bucket */ 2, /* next */ 0, 0, 1 };
	Elf64_Dyn dynamic[] = { { DT_SYMTAB, { .d_ptr = (uint64_t)symbols } },
		                    { DT_STRTAB, { .d_ptr = (uint64_t)names } },
		                    { DT_HASH, { .d_ptr = (uint64_t)hash } },
		                    { DT_NULL, { 0 } } };
	struct elf_object object = { .load_bias = 0x1000, .dynamic_addr = (uint64_t)dynamic };

	assert_int_equal(elf_symbols_addr(&object, "one"), 0x1010);
	assert_int_equal(elf_symbols_addr(&object, "two"), 0);
	assert_int_equal(elf_symbols_addr(&object, "three"), 0);
}

RUN_TESTS(NULL, NULL)
