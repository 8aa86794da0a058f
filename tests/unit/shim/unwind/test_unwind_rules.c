/*
 * test_unwind_rules.c - do rules say what the unwind tables say, and survive tables that lie?
 */
#include "test.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>

#include "base/loaded_object.h"
#include "kmem_format.h"
#include "unwind/unwind_rules.h"

static uint64_t seed = 20240607;
static uintptr_t libc_code; // some of libc's own, not an interceptor of a sanitizer

static uint64_t
next_random(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	return seed ^= seed << 17;
}

/* ---- tables written by hand ---- */

#define CODE_BYTES 64
#define MADE_MAX 256

#ifdef __aarch64__
#include "unwind/cfi_rows_aarch64.h"
#else
#include "unwind/cfi_rows_x86_64.h"
#endif

/* One CIE, one FDE for addresses base to base + CODE_BYTES, and a header with a table of one. */
struct made {
	uint8_t bytes[MADE_MAX];
	size_t used;
	struct unwind_tables tables;
};

static void
put(struct made *made, const void *bytes, size_t count)
{
	assert_true(made->used + count <= MADE_MAX);
	memcpy(made->bytes + made->used, bytes, count);
	made->used += count;
}

static void
put_u32(struct made *made, uint32_t value)
{
	put(made, &value, 4);
}

static void
make(struct made *made, const char *augmentation, const uint8_t *program, size_t program_bytes)
{
	/* code factor 1, data factor -8 */
	static const uint8_t factors[] = { 1, 0x78, ARCH_DWARF_RETURN };
	static const uint8_t initial[] = INITIAL;
	static const uint8_t header[] = { 1, 0x1b, 0x03, 0x3b };
	uint8_t version = 1;
	uint8_t encodings[] = { 1, 0x1b };
	uint8_t no_data = 0;

	memset(made, 0, sizeof *made);
	put(made, header, sizeof header);
	put_u32(made, 16);      // .eh_frame, from here
	put_u32(made, 1);       // entries
	put_u32(made, 0x10000); // code, from the header
	size_t fde_at = made->used;
	put_u32(made, 0);
	size_t cie_at = made->used;
	put_u32(made, 0);
	put_u32(made, 0);
	put(made, &version, 1);
	put(made, augmentation, strlen(augmentation) + 1);
	put(made, factors, sizeof factors);
	put(made, encodings, sizeof encodings);
	put(made, initial, sizeof initial);
	uint32_t length = (uint32_t)(made->used - cie_at - 4);
	memcpy(made->bytes + cie_at, &length, 4);

	uint32_t fde = (uint32_t)made->used;
	memcpy(made->bytes + fde_at, &fde, 4);
	put_u32(made, 0);
	put_u32(made, (uint32_t)(made->used - cie_at));
	put_u32(made, (uint32_t)(0x10000 - made->used));
	put_u32(made, CODE_BYTES);
	put(made, &no_data, 1);
	put(made, program, program_bytes);
	length = (uint32_t)(made->used - fde - 4);
	memcpy(made->bytes + fde, &length, 4);
	made->tables.header_addr = (uintptr_t)made->bytes;
	made->tables.header_end_addr = (uintptr_t)made->bytes + cie_at;
	made->tables.low_addr = (uintptr_t)made->bytes + cie_at; // as if in a segment of their own
	made->tables.high_addr = (uintptr_t)made->bytes + made->used;
}

TEST_EARLY(code_takes_few_pages, NULL, NULL)

TEST(rows_are_what_the_instructions_say)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct made made;

		make(&made, "zR", rows[i].program, sizeof rows[i].program);
		uint64_t pc = made.tables.header_addr + 0x10000 + rows[i].offset;

		/* A PLT looks at the last four bits of the address: put the code where they are right. */
		if (strstr(rows[i].why, "PLT") != NULL || strstr(rows[i].why, "stub") != NULL)
			pc &= ~UINT64_C(15), pc |= rows[i].offset & 15, pc += pc < made.tables.header_addr + 0x10000 ? 16 : 0;

		struct unwind_rule rule = unwind_cfi_rule(&made.tables, pc, pc);

		if (rule.kind != rows[i].rule.kind)
			fail_msg("%s: kind %d", rows[i].why, rule.kind);
		if (rule.kind != UNWIND_NORMAL && rule.kind != UNWIND_ALIGNED)
			continue;
		if (rule.cfa_offset != rows[i].rule.cfa_offset || rule.rbp_offset != rows[i].rule.rbp_offset ||
		    rule.is_cfa_from_rbp != rows[i].rule.is_cfa_from_rbp || rule.is_rbp_saved != rows[i].rule.is_rbp_saved)
			fail_msg("%s: CFA %d rbp %d", rows[i].why, rule.cfa_offset, rule.rbp_offset);
	}
}

TEST(augmentations)
{
	static const uint8_t nothing[4];
	struct made made;

	make(&made, "zS", nothing, sizeof nothing);
	/* 'S' has no data of its own, so pointers are absolute here and the entry covers nothing of ours. */
	uint64_t pc = made.tables.header_addr + 0x10000;
	assert_int_equal(unwind_cfi_rule(&made.tables, pc, pc).kind, UNWIND_NONE);
	make(&made, "zRS", nothing, sizeof nothing);
	pc = made.tables.header_addr + 0x10000;
	assert_int_equal(unwind_cfi_rule(&made.tables, pc, pc).kind, UNWIND_SIGNAL);
	make(&made, "zRQ", nothing, sizeof nothing);
	assert_int_equal(unwind_cfi_rule(&made.tables, pc, pc).kind, UNWIND_INEXPRESSIBLE);
}

/* ---- real tables ---- */

static struct loaded_object
object_of(void *addr)
{
	struct loaded_object object;

	assert_true(loaded_object_find((uintptr_t)addr, &object));
	return object;
}

struct census {
	uint64_t kinds[8];
	uint64_t lookups;
};

static struct census
count_kinds(const struct loaded_object *object)
{
	struct census census = { 0 };
	unsigned count = 0;
	const Elf64_Phdr *headers = loaded_object_headers(object, &count);

	assert_non_null(headers);
	for (unsigned i = 0; i < count; i++) {
		uint64_t start = headers[i].p_vaddr + object->link_map->l_addr;

		if (headers[i].p_type != PT_LOAD || !(headers[i].p_flags & PF_X))
			continue;
		for (uint64_t pc = start; pc < start + headers[i].p_memsz; pc += 1 + next_random() % 23) {
			uint64_t rule = unwind_rules_get(pc | (next_random() & 1 ? KMEM_FRAME_EXACT : 0), 0);

			census.kinds[unwind_word_kind(rule)]++;
			census.lookups++;
		}
	}
	return census;
}

TEST(whole_libraries)
{
	static const char *const names[] = { "libc.so.6",      "libstdc++.so.6",       "libunwind.so.8",
		                                 "libcrypto.so.3", "libpython3.11.so.1.0", "ld-linux-x86-64.so.2" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct link_map *map = dlopen(names[i], RTLD_LAZY | RTLD_LOCAL);

		if (map == NULL) {
			print_message("not on this machine: %s\n", names[i]);
			continue;
		}
		struct loaded_object object = object_of(map->l_ld);
		struct census census = count_kinds(&object);

		print_message("%s: %lu lookups, %lu normal, %lu inexpressible, %lu without tables\n", names[i], census.lookups,
		              census.kinds[UNWIND_NORMAL], census.kinds[UNWIND_INEXPRESSIBLE], census.kinds[UNWIND_NONE]);
		assert_int_equal(census.kinds[UNWIND_UNKNOWN], 0);
		/* On aarch64 constants lie in the same segment. */
		uint64_t looked_up = census.lookups - (ARCH_LINK_REGISTER ? census.kinds[UNWIND_NONE] : 0);
		assert_true(census.kinds[UNWIND_NORMAL] + census.kinds[UNWIND_LEAF] > looked_up / 2);
		/* Hand-written assembly of libcrypto keeps its CFA in stack slots: 7 %. */
		assert_true(census.kinds[UNWIND_INEXPRESSIBLE] < census.lookups / 10);
	}
}

TEST(damaged_tables_do_not_crash)
{
	struct loaded_object object = object_of((void *)libc_code);
	struct unwind_tables real = { .header_addr = object.eh_frame_header_addr };
	uint64_t normal = 0;

	assert_true(loaded_object_readable(&object, real.header_addr, &real.low_addr, &real.high_addr));
	real.header_end_addr = real.high_addr; // libc has both parts in one segment

	/* From the header to the end of .eh_frame; exactly, so that the sanitizer sees a byte too many. */
	size_t bytes = real.high_addr - real.header_addr;

	if (bytes > 300000)
		bytes = 300000;
	for (int round = 0; round < 400; round++) {
		uint8_t *copy = malloc(bytes);
		struct unwind_tables tables = { (uintptr_t)copy, (uintptr_t)copy + bytes, (uintptr_t)copy,
			                            (uintptr_t)copy + bytes };
		uint64_t shift = tables.header_addr - real.header_addr; // everything in it is relative

		memcpy(copy, (const void *)(uintptr_t)real.header_addr, bytes);
		for (int flips = 0; round > 0 && flips < 3000; flips++)
			copy[flips < 4 && round % 4 == 0 ? next_random() % 24 : next_random() % bytes] ^= (uint8_t)next_random();
		for (int i = 0; i < 200; i++) {
			uint64_t pc = libc_code + next_random() % 200000;
			struct unwind_rule rule = unwind_cfi_rule(&tables, pc + shift, pc + shift - 1);

			normal += rule.kind == UNWIND_NORMAL;
			if (round == 0) { // undamaged: the copy says what the original says
				struct unwind_rule same = unwind_cfi_rule(&real, pc, pc - 1);

				assert_int_equal(rule.kind, same.kind);
				assert_int_equal(rule.cfa_offset, same.cfa_offset);
				assert_int_equal(rule.rbp_offset, same.rbp_offset);
			}
		}
		free(copy);
	}
	assert_true(normal > 100); // the damage left something to run over
}

/* ---- the table ---- */

/* U1. Whole libraries leave so few entries that an address may find none, by where the loader put them: the table is emptied before. */
static struct unwind_entry *
entry_in_empty_table(uint64_t pc)
{
	struct unwind_entry *entry = unwind_rules.entries;

	memset(entry, 0, (unwind_rules.mask + 1 + UNWIND_NEAR_ENTRIES) * sizeof *entry);
	(void)unwind_rules_get(pc, unwind_rules_version());
	while (entry->pc != pc)
		assert_true(++entry <= unwind_rules.entries + unwind_rules.mask + UNWIND_NEAR_ENTRIES);
	return entry;
}

TEST(invariants)
{
	uint64_t pc = libc_code + 20;
	uint64_t version = unwind_rules_version();
	struct unwind_entry *entry = entry_in_empty_table(pc);
	uint64_t rule = unwind_rules_get(pc, version);

	assert_int_equal(entry->rule, rule); // U2
	assert_int_equal(unwind_rules_get(pc, version), rule);

	entry->rule = rule ^ UINT64_C(1) << 40; // a wrong rule shows who uses it
	assert_int_equal(unwind_rules_get(pc, version), rule ^ UINT64_C(1) << 40);
	unwind_rules_void();
	version = unwind_rules_version();
	uint64_t fresh = unwind_rules_get(pc, version);
	assert_int_equal(fresh >> 16, rule >> 16); // U3: computed again
	assert_int_equal(entry->pc, pc);
	assert_int_equal(entry->rule, fresh);

	entry->rule = fresh ^ UINT64_C(1) << 40;
	for (unsigned i = 0; i <= UNWIND_VERSION_MASK; i++) // all the way round
		unwind_rules_void();
	assert_int_equal(unwind_rules_version(), version);
	assert_int_equal(unwind_rules_get(pc, version), fresh);
	fresh = unwind_rules_get(libc_code + 4, version);
	assert_int_equal(unwind_rules_function(libc_code + 4, version),
	                 libc_code); // U4: beside the rule, and not in its place
	assert_int_equal(unwind_rules_get(libc_code + 4, version), fresh);
}

/* U3: a walk that began before the last unloading of a round stores its rules when the table was emptied. */
TEST(U3_a_rule_that_is_stored_late_does_not_come_back)
{
	static const uint64_t began[] = { 0, 0x7fff, 0x8000, 0xffff };
	uint64_t pc = libc_code + 20;
	struct unwind_entry *entry = entry_in_empty_table(pc);
	uint64_t rule = unwind_rules_get(pc, unwind_rules_version()) & ~UNWIND_VERSION_MASK;

	for (size_t i = 0; i < ARRAY_LEN(began); i++) {
		atomic_store(&unwind_rules.version, began[i]);
		unwind_rules_void();
		entry->rule = (rule ^ UINT64_C(1) << 40) | began[i];
		while (unwind_rules_version() != began[i])
			unwind_rules_void();
		assert_int_equal(unwind_rules_get(pc, began[i]) & ~UNWIND_VERSION_MASK, rule);
	}
}

TEST(nothing_is_found_where_nothing_is)
{
	for (int i = 0; i < 100000; i++) {
		uint64_t pc = next_random() >> (17 + next_random() % 40);

		(void)unwind_rules_get(pc, unwind_rules_version());
	}
	assert_int_equal(unwind_word_kind(unwind_rules_get(0x1000, unwind_rules_version())), UNWIND_NONE);
	assert_int_equal(unwind_word_kind(unwind_rules_get(0, unwind_rules_version())), UNWIND_NONE);
}

TEST(a_full_table_computes_each_time)
{
	uint64_t pc = libc_code + 40;
	uint64_t version = unwind_rules_version();
	struct unwind_rules before = { .entries = unwind_rules.entries, .mask = unwind_rules.mask };
	struct unwind_entry full[4 + UNWIND_NEAR_ENTRIES];
	uint64_t rule = unwind_rules_get(pc, version);

	for (size_t i = 0; i < ARRAY_LEN(full); i++)
		full[i] = (struct unwind_entry){ 1, 0 };
	unwind_rules.entries = full;
	unwind_rules.mask = 3;
	assert_int_equal(unwind_rules_get(pc, version), rule);
	unwind_rules.entries = NULL; // or none at all
	assert_int_equal(unwind_rules_get(pc, version), rule);
	unwind_rules.entries = before.entries;
	unwind_rules.mask = before.mask;
}

/* Pages of the table in which addresses of these bytes of code have an entry. */
static unsigned
pages_of(uint64_t code, uint64_t bytes, unsigned *entries)
{
	const unsigned page_entries = 4096 / sizeof(struct unwind_entry);
	unsigned pages = 0;

	*entries = 0;
	for (uint64_t first = 0; first <= unwind_rules.mask; first += page_entries) {
		unsigned before = *entries;

		for (uint64_t i = first; i < first + page_entries; i++)
			*entries += unwind_rules.entries[i].pc - code < bytes;
		pages += *entries != before;
	}
	return pages;
}

/* Whether each 8 bytes or each 4 KiB of it are called from. */
static void
code_takes_few_pages(void **state)
{
	const uint64_t code = 0x300000000000, dense_bytes = 65536, sparse_bytes = 4 << 20;
	unsigned entries;

	for (uint64_t offset = 0; offset < dense_bytes; offset += 8)
		(void)unwind_rules_get(code + offset, unwind_rules_version());
	assert_in_range(pages_of(code, dense_bytes, &entries), 1, 50); // 2 of each 32 KiB, and 32 of each 2 KiB
	assert_int_equal(entries, dense_bytes / 8);
	for (uint64_t offset = 0; offset < sparse_bytes; offset += 4096)
		(void)unwind_rules_get(2 * code + offset, unwind_rules_version());
	assert_in_range(pages_of(2 * code, sparse_bytes, &entries), 1, 140);
	assert_int_equal(entries, sparse_bytes / 4096);
}

static void *
look_up_all(void *result)
{
	uint64_t version = unwind_rules_version();
	uint64_t sum = 0;

	for (uint64_t offset = 0; offset < 100000; offset += 3)
		sum = sum * 31 + unwind_rules_get(libc_code + offset, version);
	*(uint64_t *)result = sum;
	return NULL;
}

TEST(threads_agree)
{
	pthread_t threads[4];
	uint64_t sums[4];

	unwind_rules_void();
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, look_up_all, &sums[i]), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	for (int i = 1; i < 4; i++)
		assert_int_equal(sums[i], sums[0]);
}

static int
start(void **state)
{
	unwind_rules_start();
	libc_code = (uintptr_t)dlsym(dlopen("libc.so.6", RTLD_LAZY), "qsort");
	assert_true(libc_code != 0);
	return unwind_rules.entries == NULL;
}

RUN_TESTS_IN(start, NULL)
