/*
 * hooks_cuda_pool.c - where is the memory of a pool, and how much does it keep for itself?
 *
 * The second question is asked when memory was refused. The driver names a device's own pool; of pools that the program makes, it is
 * noted here where their memory is.
 *
 * Safe from   any thread. The real result is passed on whatever becomes of our record.
 * When full   the oldest pool is forgotten: it is taken for the pool of the current device, and what it keeps for another process's.
 */
#include <stdatomic.h>

#include "gpu/tracker_devices.h"
#include "base/wait_lock.h"
#include "gpu/hooks_cuda_call.h"
#include "gpu/real_cuda.h"

#define HOOK_LAYER CUDA_LAYER_DRIVER
#define HOOK_FIND real_cuda_driver
#define HOOK_NOT_FOUND CUDA_ABI_NOT_INITIALIZED

#define POOLS_MAX 64u
#define DOMAIN_BITS 6
_Static_assert(KMEM_DOMAINS_MAX <= 1u << DOMAIN_BITS, "it fits");

/* The newest pools: the handle (48 bits), then its domain. relaxed: a thread that uses a pool was given it by the thread that made it. */
static _Atomic uint64_t pools[POOLS_MAX];
static _Atomic uint32_t pool_count;
static struct wait_lock asking; // no pool ends while the driver is asked about those that are noted

static void
note(const void *pool, const struct cuda_memory_place *place)
{
	uint32_t number = atomic_fetch_add_explicit(&pool_count, 1, memory_order_relaxed);
	unsigned domain = KMEM_DOMAIN_CUDA_PINNED;

	if (place->type == CUDA_TYPE_MANAGED)
		domain = KMEM_DOMAIN_CUDA_MANAGED;
	else if (place->location_type == CUDA_LOCATION_DEVICE)
		domain = tracker_device_domain(place->location_id);
	atomic_store_explicit(&pools[number % POOLS_MAX], (uint64_t)(uintptr_t)pool << DOMAIN_BITS | domain,
	                      memory_order_relaxed);
}

/* Where it stands; POOLS_MAX: nowhere. */
static unsigned
find(const void *pool)
{
	unsigned place = 0;

	while (place < POOLS_MAX &&
	       atomic_load_explicit(&pools[place], memory_order_relaxed) >> DOMAIN_BITS != (uint64_t)(uintptr_t)pool)
		place++;
	return place;
}

/*
 * Before it ends: its handle is given out again, also for a device's own pool. A new one of another thread may be lost here at that
 * moment. Returns what stood there.
 */
static uint64_t
forget(const void *pool, unsigned *place)
{
	bool is_locked = wait_lock_take(&asking);
	uint64_t word = 0;

	*place = pool == NULL ? POOLS_MAX : find(pool);
	if (*place < POOLS_MAX)
		word = atomic_exchange_explicit(&pools[*place], 0, memory_order_relaxed);
	if (is_locked)
		wait_lock_give(&asking);
	return word;
}

static unsigned
domain_of(uint64_t word)
{
	return word & ((1u << DOMAIN_BITS) - 1);
}

void
cuda_call_forget_pools(unsigned device)
{
	for (unsigned place = 0; place < POOLS_MAX; place++) {
		uint64_t word = atomic_load_explicit(&pools[place], memory_order_relaxed);

		if (word != 0 && domain_of(word) == tracker_device_domain((int)device))
			atomic_store_explicit(&pools[place], 0, memory_order_relaxed);
	}
}

uint64_t
cuda_call_pools_kept(int device, void *pool)
{
	void *own = real_cuda_own_pool(device);
	uint64_t bytes = real_cuda_pool_kept(own);

	if (pool != NULL && pool != own && find(pool) == POOLS_MAX)
		bytes += real_cuda_pool_kept(pool);
	if (!wait_lock_take(&asking))
		return bytes;
	for (unsigned place = 0; place < POOLS_MAX; place++) {
		uint64_t word = atomic_load_explicit(&pools[place], memory_order_relaxed);

		if (word != 0 && domain_of(word) == tracker_device_domain(device))
			bytes += real_cuda_pool_kept((void *)(uintptr_t)(word >> DOMAIN_BITS));
	}
	wait_lock_give(&asking);
	return bytes;
}

unsigned
cuda_call_pool_domain(const void *pool)
{
	unsigned place = pool == NULL ? POOLS_MAX : find(pool);

	if (place < POOLS_MAX)
		return domain_of(atomic_load_explicit(&pools[place], memory_order_relaxed));

	int device = real_cuda_pool_device(pool, KMEM_DOMAIN_CUDA_LAST - KMEM_DOMAIN_CUDA_FIRST + 1);

	return tracker_device_domain(device >= 0 ? device : real_cuda_device());
}

HOOK_AFTER(cuMemPoolCreate, (void **pool, const struct cuda_memory_place *place), (pool, place),
           pool != NULL && place != NULL, note(*pool, place));

int
hook_cuMemPoolDestroy(void *pool)
{
	HOOK_BEGIN(cuMemPoolDestroy);
	unsigned place;
	uint64_t word = forget(pool, &place);
	int result = HOOK_REAL(cuMemPoolDestroy)(pool);

	if (result != CUDA_ABI_SUCCESS && word != 0)
		atomic_store_explicit(&pools[place], word, memory_order_relaxed);
	cuda_call_end(&call);
	return result;
}
HOOK_EXPORT(cuMemPoolDestroy);
