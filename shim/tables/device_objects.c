/*
 * device_objects.c - device memory without an address (see device_objects.h).
 */
#include "tables/device_objects.h"

#include <stdatomic.h>
#include <stddef.h>

#include "base/raw_sys.h"

#define DEVICE_OBJECT_LIVE (UINT64_C(1) << 63)
#define CLAIMED (DEVICE_OBJECT_LIVE | UINT64_C(0x7fffffffffffffff)) // being filled in: nobody knows its number yet
#define ONE_REFERENCE UINT64_C(1)
#define ONE_HANDLE (UINT64_C(1) << 32) // and one reference
#define HANDLES(word) ((word) >> 32 & 0x7fffffff)
#define REFERENCES(word) ((word)&0xffffffff)

struct object {
	_Atomic uint64_t word; // O1
	struct address_block block;
};

static _Atomic(struct object *) objects;
static _Atomic uint32_t object_count; // claimed; relaxed: who frees one has done with it before it counts down
static _Atomic uint32_t next_hint;    // where to begin, nothing more
static struct address_table handles;  // handle -> object, owner
static struct address_table mappings; // address -> bytes, object

static struct object *
all_objects(bool creates)
{
	/* acquire: pairs with the exchange below, though a fresh reservation is all zeros anyway. */
	struct object *array = atomic_load_explicit(&objects, memory_order_acquire);
	struct object *fresh;

	if (array != NULL || !creates)
		return array;
	fresh = raw_reserve(KMEM_OWN_ADDRESSES, DEVICE_OBJECTS_MAX * sizeof(*fresh), PROT_READ | PROT_WRITE);
	if (fresh == NULL)
		return NULL;
	if (atomic_compare_exchange_strong_explicit(&objects, &array, fresh, memory_order_acq_rel, memory_order_acquire))
		return fresh;
	raw_unreserve(fresh, DEVICE_OBJECTS_MAX * sizeof(*fresh));
	return array;
}

static struct object *
object_at(uint32_t number)
{
	return number == 0 ? NULL : &all_objects(false)[number - 1];
}

static uint32_t
claim_free(struct object *array, struct address_block block)
{
	uint32_t hint = atomic_load_explicit(&next_hint, memory_order_relaxed);

	for (uint32_t step = 0; step < DEVICE_OBJECTS_MAX; step++) {
		uint32_t index = (hint + step) % DEVICE_OBJECTS_MAX;
		uint64_t expected = atomic_load_explicit(&array[index].word, memory_order_relaxed);

		/* acquire: pairs with device_objects_released(): its owner has read the block. */
		if (expected != 0 || !atomic_compare_exchange_strong_explicit(&array[index].word, &expected, CLAIMED,
		                                                              memory_order_acquire, memory_order_relaxed))
			continue;
		array[index].block = block;
		/* relaxed: who learns its number from a table sees word and block (A2). */
		atomic_store_explicit(&array[index].word, DEVICE_OBJECT_LIVE | ONE_HANDLE | ONE_REFERENCE,
		                      memory_order_relaxed);
		atomic_store_explicit(&next_hint, index + 1, memory_order_relaxed);
		return index + 1;
	}
	return 0;
}

/* index + 1 of an object with one handle; 0 = no room, which is seen without a look at them all. */
static uint32_t
claim(struct address_block block)
{
	struct object *array = all_objects(true);
	uint32_t number = 0;

	if (array != NULL && atomic_fetch_add_explicit(&object_count, 1, memory_order_relaxed) < DEVICE_OBJECTS_MAX)
		number = claim_free(array, block);
	if (array != NULL && number == 0)
		atomic_fetch_sub_explicit(&object_count, 1, memory_order_relaxed);
	return number;
}

/*
 * O2. release: our use of the object comes before its end; acquire: and after that of all others. What has no such reference any more is
 * dropped already, and perhaps somebody else's: nothing is done.
 */
static struct device_drop
drop(uint32_t number, uint64_t amount)
{
	struct object *object = object_at(number);
	struct device_drop dropped = { .object = number };
	uint64_t word = object == NULL ? 0 : atomic_load_explicit(&object->word, memory_order_relaxed), rest;

	do {
		if (REFERENCES(word) == 0 || HANDLES(word) < HANDLES(amount))
			return (struct device_drop){ 0 };
		dropped.is_imported = object->block.site == 0;
		rest = word - amount;
	} while (
		!atomic_compare_exchange_weak_explicit(&object->word, &word, rest, memory_order_acq_rel, memory_order_relaxed));
	dropped.was_last_handle = HANDLES(rest) == 0;
	dropped.is_dead = REFERENCES(rest) == 0;
	if (dropped.is_dead)
		dropped.block = object->block;
	return dropped;
}

static uint32_t
object_of(uint64_t handle)
{
	struct address_block known;

	return address_table_find(&handles, handle, &known) ? known.site : 0;
}

bool
device_objects_create(uint64_t handle, struct address_block block, unsigned owner, struct address_block *old)
{
	struct address_block entry = { .bytes = owner, .site = claim(block) }, known;

	*old = (struct address_block){ 0 };
	if (entry.site == 0)
		return false;

	enum address_table_put put = address_table_put(&handles, handle, entry, &known);

	if (put == ADDRESS_TABLE_REPLACED) {
		struct device_drop unseen = drop(known.site, ONE_HANDLE | ONE_REFERENCE);

		if (unseen.is_dead) {
			*old = unseen.block;
			device_objects_released(unseen);
		}
	} else if (put == ADDRESS_TABLE_FULL) {
		device_objects_released(drop(entry.site, ONE_HANDLE | ONE_REFERENCE));
	}
	return put != ADDRESS_TABLE_FULL;
}

bool
device_objects_retain(uint64_t handle)
{
	struct object *object = object_at(object_of(handle));
	uint64_t word = object == NULL ? 0 : atomic_load_explicit(&object->word, memory_order_relaxed);

	/* relaxed: it has a handle, so that it does not end; what another thread has just let go of is left alone. */
	while (HANDLES(word) != 0) {
		if (atomic_compare_exchange_weak_explicit(&object->word, &word, word + (ONE_HANDLE | ONE_REFERENCE),
		                                          memory_order_relaxed, memory_order_relaxed))
			return true;
	}
	return false;
}

void
device_objects_retain_mapped(uint64_t handle, uint64_t addr)
{
	struct address_block mapping, none;

	if (device_objects_retain(handle) || !address_table_find(&mappings, addr, &mapping))
		return;

	struct object *object = object_at(mapping.site);

	if (object == NULL ||
	    address_table_put(&handles, handle, (struct address_block){ DEVICE_OBJECTS_NO_OWNER, mapping.site, 0 },
	                      &none) == ADDRESS_TABLE_FULL)
		return;
	/* relaxed: the caller's memory is mapped, so that the object does not end. */
	atomic_fetch_add_explicit(&object->word, ONE_HANDLE | ONE_REFERENCE, memory_order_relaxed);
}

bool
device_objects_mapped(uint64_t addr, uint64_t bytes, uint64_t handle, struct device_drop *unseen)
{
	struct address_block entry = { .bytes = bytes, .site = object_of(handle) }, old;
	struct object *object = object_at(entry.site);

	if (object != NULL)
		atomic_fetch_add_explicit(&object->word, ONE_REFERENCE, memory_order_relaxed); // as above
	/* Without room the object lives on: better than that it ends while it is in use. */
	*unseen = (struct device_drop){ 0 };
	if (address_table_put(&mappings, addr, entry, &old) == ADDRESS_TABLE_REPLACED)
		*unseen = drop(old.site, ONE_REFERENCE);
	return object != NULL && object->block.site == 0;
}

struct device_drop
device_objects_release(uint64_t handle)
{
	struct address_block known = { 0 };

	(void)address_table_find(&handles, handle, &known);

	struct device_drop dropped = drop(known.site, ONE_HANDLE | ONE_REFERENCE);

	dropped.owner = (uint16_t)known.bytes;
	/* Another thread may have opened it anew by now: then it stands for that one's. */
	if (dropped.object != 0 && dropped.was_last_handle)
		(void)address_table_take_of(&handles, handle, dropped.object, &known);
	return dropped;
}

void
device_objects_released(struct device_drop dropped)
{
	if (!dropped.is_dead)
		return;
	/* release: the block was read before the object is used again. Pairs with claim_free(). */
	atomic_store_explicit(&object_at(dropped.object)->word, 0, memory_order_release);
	atomic_store_explicit(&next_hint, dropped.object - 1, memory_order_relaxed);
	atomic_fetch_sub_explicit(&object_count, 1, memory_order_relaxed);
}

void
device_objects_not_released(struct device_drop dropped, uint64_t handle)
{
	struct object *object = object_at(dropped.object);
	struct address_block none;

	if (object == NULL)
		return;
	atomic_fetch_add_explicit(&object->word, ONE_HANDLE | ONE_REFERENCE, memory_order_relaxed); // O2: ours
	if (dropped.was_last_handle)
		(void)address_table_put(&handles, handle, (struct address_block){ dropped.owner, dropped.object, 0 }, &none);
}

bool
device_objects_unmapped(uint64_t *addr, uint64_t end, struct device_drop *dropped)
{
	struct address_block mapping;

	if (*addr >= end || !address_table_take(&mappings, *addr, &mapping) || mapping.bytes == 0)
		return false;
	*addr += mapping.bytes;
	*dropped = drop(mapping.site, ONE_REFERENCE);
	return true;
}

static bool
is_owned(uint64_t handle, struct address_block entry, void *owner)
{
	(void)handle;
	return entry.bytes == *(const unsigned *)owner;
}

bool
device_objects_ended(uint64_t *cursor, unsigned owner, struct device_drop *dropped)
{
	struct address_block entry;

	if (!address_table_sweep(&handles, cursor, is_owned, &owner, &entry))
		return false;
	do
		*dropped = drop(entry.site, ONE_HANDLE | ONE_REFERENCE);
	while (dropped->object != 0 && !dropped->was_last_handle);
	return true;
}

void
device_objects_clear(void)
{
	struct object *array = all_objects(false);

	if (array != NULL)
		(void)raw_madvise(array, DEVICE_OBJECTS_MAX * sizeof(*array), MADV_DONTNEED);
	atomic_store_explicit(&object_count, 0, memory_order_relaxed);
	address_table_clear(&handles);
	address_table_clear(&mappings);
}
