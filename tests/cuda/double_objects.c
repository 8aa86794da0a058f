/*
 * double_objects.c - the driver double's physical memory: cuMemCreate() and what goes with it.
 *
 * It lives as long as a handle or a mapping refers to it, and its handle is given out again as soon as nobody has it.
 */
#include "double_driver.h"

/* Of cuMemCreate(): handle number i is FIRST_HANDLE + i. */
#define OBJECTS_MAX 1024
#define FIRST_HANDLE UINT64_C(0x500000000000)
struct object {
	uint64_t bytes;
	int row;
	int handles, mappings;
	int handle; // its number, while handles != 0
};
struct mapping {
	uint64_t addr, bytes;
	int object;       // index, -1 = of none of ours
	bool is_imported; // then
};

/* Handles of memory of others: FIRST_IMPORT and what they gave. Other handles are of multicast objects, which hold nothing. */
#define FIRST_IMPORT UINT64_C(0x610000000000)

static struct object objects[OBJECTS_MAX];
static struct mapping mappings[OBJECTS_MAX];

static int
object_of_locked(uint64_t handle)
{
	for (int i = 0; i < OBJECTS_MAX; i++) {
		if (objects[i].handles != 0 && FIRST_HANDLE + (uint64_t)objects[i].handle == handle)
			return i;
	}
	return -1;
}

static int
free_handle_locked(void)
{
	int number = 0;

	while (object_of_locked(FIRST_HANDLE + (uint64_t)number) >= 0)
		number++;
	return number;
}

static void
end_object_locked(int number)
{
	struct object *object = &objects[number];

	if (object->handles != 0 || object->mappings != 0)
		return;
	double_account_freed_locked(object->row, object->bytes);
	object->bytes = 0;
}

int
cuMemCreate(cuda_memory_handle *handle, size_t bytes, const struct cuda_memory_place *place, unsigned long long flags)
{
	int row = place != NULL && place->location_type == CUDA_LOCATION_DEVICE ? LEDGER_DEVICE + place->location_id
	                                                                        : LEDGER_PINNED;
	int free_object = -1, free_handle;

	(void)flags;
	if (handle == NULL || place == NULL)
		return double_setting("KMEMDOUBLE_CARELESS", 0) != 0 ? CUDA_ABI_SUCCESS : INVALID_VALUE;
	if (!double_is_initialized)
		return CUDA_ABI_NOT_INITIALIZED;
	pthread_mutex_lock(&double_mutex);
	for (int i = OBJECTS_MAX - 1; i >= 0; i--) {
		if (objects[i].bytes == 0)
			free_object = i;
	}
	free_handle = free_handle_locked();
	if (free_object < 0 || ++double_allocations == double_setting("KMEMDOUBLE_FAIL_NTH", 0) ||
	    double_live_bytes(row) + bytes > double_capacity()) {
		double_ledger->rows[row].refused_count++;
		pthread_mutex_unlock(&double_mutex);
		return CUDA_ABI_OUT_OF_MEMORY;
	}
	objects[free_object] = (struct object){ bytes, row, 1, 0, free_handle };
	*handle = FIRST_HANDLE + (uint64_t)free_handle;
	double_account_locked(row, bytes);
	pthread_mutex_unlock(&double_mutex);
	return CUDA_ABI_SUCCESS;
}

int
cuMemRelease(cuda_memory_handle handle)
{
	int number, result = CUDA_ABI_SUCCESS;

	pthread_mutex_lock(&double_mutex);
	number = object_of_locked(handle);
	if (++double_releases == double_setting("KMEMDOUBLE_FAIL_FREE_NTH", 0)) {
		result = ILLEGAL_ADDRESS;
	} else if (number >= 0) {
		objects[number].handles--;
		end_object_locked(number);
	}
	pthread_mutex_unlock(&double_mutex);
	return result;
}

/* Addresses are not given back. */
int
cuMemAddressReserve(cuda_device_addr *addr, size_t bytes, size_t alignment, cuda_device_addr wanted,
                    unsigned long long flags)
{
	static _Atomic cuda_device_addr next = UINT64_C(0x710000000000);

	(void)alignment;
	(void)wanted;
	*addr = next;
	next += bytes;
	return flags == 0 ? CUDA_ABI_SUCCESS : INVALID_VALUE;
}

int
cuMemMap(cuda_device_addr addr, size_t bytes, size_t offset, cuda_memory_handle handle, unsigned long long flags)
{
	int result = INVALID_VALUE;

	(void)offset;
	(void)flags;
	pthread_mutex_lock(&double_mutex);
	for (int i = 0; i < OBJECTS_MAX && result != CUDA_ABI_SUCCESS; i++) {
		if (mappings[i].bytes != 0)
			continue;
		mappings[i] = (struct mapping){ addr, bytes, object_of_locked(handle), handle >= FIRST_IMPORT };
		if (mappings[i].object >= 0)
			objects[mappings[i].object].mappings++;
		else if (mappings[i].is_imported)
			double_account_locked(LEDGER_IMPORTED, bytes);
		result = CUDA_ABI_SUCCESS;
	}
	pthread_mutex_unlock(&double_mutex);
	return result;
}

int
cuMemUnmap(cuda_device_addr addr, size_t bytes)
{
	int result = INVALID_VALUE;

	pthread_mutex_lock(&double_mutex);
	for (int i = 0; i < OBJECTS_MAX; i++) {
		if (mappings[i].bytes == 0 || mappings[i].addr < addr || mappings[i].addr >= addr + bytes)
			continue;
		if (mappings[i].object >= 0) {
			objects[mappings[i].object].mappings--;
			end_object_locked(mappings[i].object);
		} else if (mappings[i].is_imported) {
			double_account_freed_locked(LEDGER_IMPORTED, mappings[i].bytes);
		}
		mappings[i].bytes = 0;
		result = CUDA_ABI_SUCCESS;
	}
	pthread_mutex_unlock(&double_mutex);
	return result;
}

int
cuMemRetainAllocationHandle(cuda_memory_handle *handle, void *addr)
{
	int result = INVALID_VALUE;

	pthread_mutex_lock(&double_mutex);
	for (int i = 0; i < OBJECTS_MAX; i++) {
		struct object *object = mappings[i].object < 0 ? NULL : &objects[mappings[i].object];

		if (mappings[i].bytes == 0 || mappings[i].addr != (uint64_t)addr || object == NULL)
			continue;
		if (object->handles == 0)
			object->handle = free_handle_locked();
		object->handles++;
		*handle = FIRST_HANDLE + (uint64_t)object->handle;
		result = CUDA_ABI_SUCCESS;
		break;
	}
	pthread_mutex_unlock(&double_mutex);
	return result;
}

int
cuMemImportFromShareableHandle(cuda_memory_handle *handle, void *shared, int shared_as)
{
	*handle = FIRST_IMPORT + (uint64_t)shared;
	return shared_as == 1 ? CUDA_ABI_SUCCESS : INVALID_VALUE;
}
