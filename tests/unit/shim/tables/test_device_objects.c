/*
 * test_device_objects.c - does device memory live exactly as long as a handle or a mapping refers to it?
 */
#include "test.h"

#include "tables/device_objects.h"
#include "unwind/each_instruction.h"

#define HANDLE UINT64_C(0x500000000000)
#define ADDR UINT64_C(0x700000000000)
#define CHUNK UINT64_C(0x200000)

static struct address_block
block_of(uint32_t site)
{
	return (struct address_block){ .bytes = site * 1000, .site = site, .generation = 1 };
}

static bool
create(uint64_t handle, uint32_t site)
{
	struct address_block old;
	bool is_created = device_objects_create(handle, block_of(site), DEVICE_OBJECTS_NO_OWNER, &old);

	assert_int_equal(old.site, 0);
	return is_created;
}

/* The site of the object that ended; 0 = none did. */
static uint32_t
release(uint64_t handle)
{
	struct device_drop dropped = device_objects_release(handle);

	device_objects_released(dropped);
	return dropped.is_dead ? dropped.block.site : 0;
}

static bool
map(uint64_t addr, uint64_t handle)
{
	struct device_drop unseen;
	bool is_imported = device_objects_mapped(addr, CHUNK, handle, &unseen);

	assert_false(unseen.is_dead);
	device_objects_released(unseen);
	return is_imported;
}

static uint32_t
unmap(uint64_t addr, uint64_t bytes, unsigned *mappings)
{
	struct device_drop dropped;
	uint32_t dead = 0;

	*mappings = 0;
	for (uint64_t end = addr + bytes; device_objects_unmapped(&addr, end, &dropped); ++*mappings) {
		if (dropped.is_dead)
			dead += dropped.block.site;
		device_objects_released(dropped);
	}
	return dead;
}

SETUP(clear)
{
	device_objects_clear();
}

TEST(O1_the_last_reference_ends_it)
{
	unsigned mappings;

	assert_true(create(HANDLE, 7));
	map(ADDR, HANDLE);
	map(ADDR + CHUNK, HANDLE);
	device_objects_retain(HANDLE);
	assert_int_equal(release(HANDLE), 0);
	assert_int_equal(release(HANDLE), 0);
	assert_int_equal(release(HANDLE), 0); // nobody's any more
	assert_int_equal(unmap(ADDR, CHUNK, &mappings), 0);
	assert_int_equal(mappings, 1);
	assert_int_equal(unmap(ADDR + CHUNK, CHUNK, &mappings), 7);
}

TEST(O1_never_mapped)
{
	assert_true(create(HANDLE, 7));
	assert_int_equal(release(HANDLE), 7);
	assert_int_equal(release(HANDLE), 0);
}

TEST(O2_a_release_that_failed_changes_nothing)
{
	unsigned mappings;

	assert_true(create(HANDLE, 7));
	struct device_drop dropped = device_objects_release(HANDLE);
	assert_true(dropped.is_dead);
	device_objects_not_released(dropped, HANDLE);
	map(ADDR, HANDLE);
	dropped = device_objects_release(HANDLE);
	assert_true(dropped.was_last_handle && !dropped.is_dead);
	device_objects_not_released(dropped, HANDLE);
	assert_int_equal(unmap(ADDR, CHUNK, &mappings), 0);
	assert_int_equal(release(HANDLE), 7);
}

/* The driver gives the number out again while the memory is still mapped. */
TEST(O3_a_mapping_is_of_the_memory)
{
	unsigned mappings;

	assert_true(create(HANDLE, 7));
	map(ADDR, HANDLE);
	assert_int_equal(release(HANDLE), 0);
	assert_true(create(HANDLE, 9));
	assert_int_equal(unmap(ADDR, CHUNK, &mappings), 7);
	assert_int_equal(release(HANDLE), 9);
}

TEST(several_mappings_are_unmapped_at_once)
{
	unsigned mappings;

	for (uint32_t i = 0; i < 10; i++) {
		assert_true(create(HANDLE + i, 1u << i));
		map(ADDR + i * CHUNK, HANDLE + i);
		assert_int_equal(release(HANDLE + i), 0);
	}
	assert_int_equal(unmap(ADDR + 2 * CHUNK, 5 * CHUNK, &mappings), 0x7c);
	assert_int_equal(mappings, 5);
	assert_int_equal(unmap(ADDR + 2 * CHUNK, 5 * CHUNK, &mappings), 0);
	assert_int_equal(mappings, 0);
}

/* All handles were released; the driver makes one for who asks by address. */
TEST(O1_a_handle_of_what_is_mapped)
{
	unsigned mappings;

	assert_true(create(HANDLE, 7));
	map(ADDR, HANDLE);
	assert_int_equal(release(HANDLE), 0);
	device_objects_retain_mapped(HANDLE + 1, ADDR);
	device_objects_retain_mapped(HANDLE + 1, ADDR);
	device_objects_retain_mapped(HANDLE + 2, ADDR + CHUNK); // nothing is there
	assert_int_equal(unmap(ADDR, CHUNK, &mappings), 0);
	assert_int_equal(release(HANDLE + 1), 0);
	assert_int_equal(release(HANDLE + 2), 0);
	assert_int_equal(release(HANDLE + 1), 7);
}

/* Of a multicast object, say. */
TEST(handles_without_an_object_are_nobodys)
{
	unsigned mappings;

	assert_false(device_objects_retain(HANDLE));
	assert_false(map(ADDR, HANDLE));
	assert_int_equal(release(HANDLE), 0);
	device_objects_not_released(device_objects_release(HANDLE), HANDLE);
	assert_int_equal(unmap(ADDR, CHUNK, &mappings), 0);
	assert_int_equal(mappings, 1);
}

/* Of another process: its mappings say so, also when the handle is gone. */
TEST(imports_are_nobodys)
{
	struct address_block none = { 0 };
	struct device_drop dropped;
	uint64_t at = ADDR;

	assert_true(device_objects_create(HANDLE, none, DEVICE_OBJECTS_NO_OWNER, &none));
	assert_true(device_objects_retain(HANDLE));
	assert_true(map(ADDR, HANDLE));
	assert_int_equal(release(HANDLE), 0);
	assert_int_equal(release(HANDLE), 0);
	assert_false(device_objects_retain(HANDLE));
	assert_true(device_objects_unmapped(&at, ADDR + CHUNK, &dropped));
	assert_true(dropped.is_imported && dropped.is_dead);
	device_objects_released(dropped);
	assert_true(create(HANDLE, 7));
	assert_false(map(ADDR, HANDLE));
}

TEST(a_release_that_nobody_saw_is_told)
{
	struct address_block old;

	assert_true(create(HANDLE, 7));
	assert_true(device_objects_create(HANDLE, block_of(9), DEVICE_OBJECTS_NO_OWNER, &old));
	assert_int_equal(old.site, 7);
	assert_int_equal(release(HANDLE), 9);
}

/* The sum of the sites of the objects that ended. */
static uint32_t
end(unsigned owner)
{
	struct device_drop dropped;
	uint64_t cursor = 0;
	uint32_t dead = 0;

	while (device_objects_ended(&cursor, owner, &dropped)) {
		if (dropped.is_dead)
			dead += dropped.block.site;
		device_objects_released(dropped);
	}
	return dead;
}

/* However often it was opened; what could not be closed is still its owner's. */
TEST(an_owner_takes_its_handles_with_it)
{
	struct address_block old;

	assert_true(create(HANDLE, 1));
	for (unsigned i = 0; i < 4; i++)
		assert_true(device_objects_create(HANDLE + 1 + i, block_of(2u << i), i % 2, &old));
	assert_true(device_objects_retain(HANDLE + 1));
	assert_true(device_objects_retain(HANDLE + 1));
	assert_int_equal(release(HANDLE + 1), 0);
	struct device_drop dropped = device_objects_release(HANDLE + 3);
	assert_true(dropped.is_dead);
	device_objects_not_released(dropped, HANDLE + 3);
	assert_int_equal(end(7), 0);
	assert_int_equal(end(0), 2 + 8);
	assert_int_equal(end(0), 0);
	assert_int_equal(release(HANDLE + 1), 0);
	assert_int_equal(release(HANDLE + 2), 4);
	assert_int_equal(end(1), 16);
	assert_int_equal(release(HANDLE), 1);
}

TEST(an_unmapping_that_nobody_saw_is_told)
{
	struct device_drop unseen;
	unsigned mappings;

	assert_true(create(HANDLE, 7));
	assert_true(create(HANDLE + 1, 9));
	map(ADDR, HANDLE);
	assert_int_equal(release(HANDLE), 0);
	assert_false(device_objects_mapped(ADDR, CHUNK, HANDLE + 1, &unseen));
	assert_true(unseen.is_dead);
	assert_int_equal(unseen.block.site, 7);
	device_objects_released(unseen);
	assert_int_equal(release(HANDLE + 1), 0);
	assert_int_equal(unmap(ADDR, CHUNK, &mappings), 9);
}

TEST(when_full_it_says_so_and_goes_on)
{
	uint32_t count = 0;

	while (count < DEVICE_OBJECTS_MAX && create(HANDLE + count * 16, count + 1))
		count++;
	assert_int_equal(count, DEVICE_OBJECTS_MAX);
	for (uint32_t i = 0; i < 100000; i++) // without a look at all of them each time
		assert_false(create(HANDLE + count * 16, 1));
	assert_int_equal(release(HANDLE + 5 * 16), 6);
	assert_true(create(HANDLE + 5 * 16, 77));
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(release(HANDLE + i * 16), i == 5 ? 77 : i + 1);
}

#ifdef __SANITIZE_ADDRESS__
enum { STRIDE = 16 }; // of a sanitizer's code each step is many instructions
#else
enum { STRIDE = 1 };
#endif
static unsigned instruction, opens_at;
static bool is_over, is_opened;
static uint32_t made, ended; // sums of sites

static bool
open_meanwhile(void)
{
	struct address_block old = { 0 };

	if (is_over || instruction++ < opens_at)
		return !is_over;
	if (!device_objects_retain(HANDLE) && device_objects_create(HANDLE, block_of(9), 1, &old))
		made += 9;
	ended += old.site;
	is_opened = true;
	return false;
}

/* Another thread opens what this one closes for the last time, after each instruction of that. */
TEST(O2_who_opens_meanwhile_keeps_what_it_opened)
{
	for (opens_at = 0, is_opened = true; is_opened; opens_at += STRIDE) {
		struct address_block old;

		assert_true(device_objects_create(HANDLE, block_of(7), 5, &old));
		made = 7;
		ended = instruction = 0;
		is_over = is_opened = false;
		each_instruction(open_meanwhile);
		struct device_drop dropped = device_objects_release(HANDLE);
		is_over = true;
		assert_true(!dropped.was_last_handle || dropped.owner == 5);
		ended += dropped.is_dead ? dropped.block.site : 0;
		device_objects_released(dropped);
		ended += release(HANDLE);
		assert_int_equal(ended, made);
	}
	assert_true(opens_at > 50);
}

/* Against plain counters. */
TEST(O1_random_work_agrees_with_counters)
{
	enum { HANDLES = 64, PLACES = 256 };
	static uint32_t site_of_handle[HANDLES], handles[HANDLES * 100000 / 8], mapped[HANDLES * 100000 / 8], at[PLACES];
	uint32_t next_site = 1;
	unsigned mappings;

	srandom(1);
	for (unsigned i = 0; i < 50000; i++) {
		unsigned number = (unsigned)random() % HANDLES, place = (unsigned)random() % PLACES;
		uint32_t site = site_of_handle[number];

		switch (random() % 6) {
		case 0:
			if (site != 0)
				break;
			site_of_handle[number] = next_site;
			handles[next_site] = 1;
			assert_true(create(HANDLE + number, next_site++));
			break;
		case 1:
			if (site == 0)
				break;
			handles[site]++;
			device_objects_retain(HANDLE + number);
			break;
		case 2:
		case 5:
			if (site == 0)
				break;
			handles[site]--;
			if (handles[site] == 0)
				site_of_handle[number] = 0;
			assert_int_equal(release(HANDLE + number), handles[site] == 0 && mapped[site] == 0 ? site : 0);
			break;
		case 3:
			if (site == 0 || at[place] != 0)
				break;
			at[place] = site;
			mapped[site]++;
			map(ADDR + place * CHUNK, HANDLE + number);
			break;
		default:
			if (at[place] == 0)
				break;
			mapped[at[place]]--;
			assert_int_equal(unmap(ADDR + place * CHUNK, CHUNK, &mappings),
			                 handles[at[place]] == 0 && mapped[at[place]] == 0 ? at[place] : 0);
			at[place] = 0;
		}
	}
	assert_true(next_site > 1000);
}

RUN_TESTS(clear, NULL)
