/*
 * tracker_devices.c - what lives on devices: memory that the driver gave out, and the tensors that lie in it (see tracker_devices.h).
 *
 * Both by address in one table, which is not that of host memory. A tensor may begin where its memory does, so its key has a bit
 * more.
 *
 * Context     inside the reentry guard.
 * Safe from   any thread. One thread at a time owns an address: the driver, and PyTorch's mutex, guarantee it.
 * When full   the event is counted as lost.
 */
#include "capture/capture_file.h"
#include "gpu/tracker_devices.h"
#include "record/tracker_parts.h"
#include "sites/site_table.h"
#include "tables/address_table.h"
#include "tables/device_objects.h"

#define TENSOR_KEY (UINT64_C(1) << 62)
/* The size in a block of `devices` has its owner in front; that of a tensor how often PyTorch had given up on one before. */
#define OWNER_SHIFT 48
#define BYTES_MASK ((UINT64_C(1) << OWNER_SHIFT) - 1)

static struct address_table devices;
static _Atomic uint32_t tensor_failed_requests[KMEM_DOMAIN_TENSORS_LAST - KMEM_DOMAIN_TENSORS_FIRST + 1];

static unsigned
row_of(int device, unsigned first, unsigned last)
{
	return device >= 0 && (unsigned)device < last - first ? first + (unsigned)device : last;
}

unsigned
tracker_device_domain(int device)
{
	return row_of(device, KMEM_DOMAIN_CUDA_FIRST, KMEM_DOMAIN_CUDA_LAST);
}

static struct address_block
without_mark(struct address_block block)
{
	block.bytes &= BYTES_MASK;
	return block;
}

/* A booked block into the map. */
static void
map_device(struct thread_slot *slot, uint64_t key, struct address_block block)
{
	struct address_block old;

	switch (address_table_put(&devices, key, block, &old)) {
	case ADDRESS_TABLE_STORED:
		break;
	case ADDRESS_TABLE_REPLACED: // its release was not seen
		capture_file_lost(KMEM_LOST_MISSED_FREES, 1);
		tracker_dead(slot, without_mark(old));
		break;
	case ADDRESS_TABLE_FULL:
		tracker_lost(slot, without_mark(block));
		break;
	}
}

void
tracker_device_allocated(const void *hook_frame, unsigned domain, uint64_t key, uint64_t bytes, unsigned owner)
{
	struct thread_slot *slot = thread_slot_here();

	if (bytes > BYTES_MASK) { // a driver that says yes to anything
		capture_file_lost(KMEM_LOST_EVENTS, 1);
		return;
	}

	struct address_block block = tracker_born(slot, hook_frame, domain, bytes);

	if (block.site == 0)
		return;
	failed_requests_got(domain, bytes);
	block.bytes |= (uint64_t)owner << OWNER_SHIFT; // 16 bits
	map_device(slot, key, block);
}

struct live_block
tracker_device_take(uint64_t key)
{
	struct address_block block = { 0 };

	if (key != 0 && !address_table_take(&devices, key, &block) && !tracker_is_teardown(0))
		capture_file_lost(KMEM_LOST_UNKNOWN_FREES, 1);
	return (struct live_block){ (void *)key, block.bytes, block.site, block.generation }; // with its mark, for put_back
}

void
tracker_device_put_back(struct live_block block)
{
	if (block.site != 0)
		map_device(thread_slot_here(), (uint64_t)block.addr,
		           (struct address_block){ block.bytes, block.site, block.generation });
}

void
tracker_device_released(struct live_block block)
{
	block.bytes &= BYTES_MASK;
	tracker_released(block);
}

void
tracker_device_refused(const void *hook_frame, unsigned domain, uint64_t bytes, int result, struct device_memory memory)
{
	tracker_refused(hook_frame, (struct failed_request){ .domain = domain,
	                                                     .bytes = bytes,
	                                                     .error = result,
	                                                     .free_bytes = memory.free_bytes,
	                                                     .total_bytes = memory.total_bytes,
	                                                     .pool_kept_bytes = memory.pool_kept_bytes });
}

static bool
is_owned(uint64_t addr, struct address_block block, void *context)
{
	const unsigned *owner = context;

	return (addr & TENSOR_KEY) == 0 && block.bytes >> OWNER_SHIFT == *owner;
}

void
tracker_owner_gone(unsigned owner)
{
	struct address_block block;
	struct device_drop dropped;
	uint64_t cursor = 0;

	while (!tracker_is_teardown(0) && address_table_sweep(&devices, &cursor, is_owned, &owner, &block))
		tracker_dead(thread_slot_here(), without_mark(block));
	cursor = 0;
	while (!tracker_is_teardown(0) && device_objects_ended(&cursor, owner, &dropped))
		tracker_object_released(dropped);
}

/* ---- physical memory ---- */

void
tracker_object_created(const void *hook_frame, unsigned domain, uint64_t handle, uint64_t bytes, unsigned owner)
{
	struct thread_slot *slot = thread_slot_here();
	struct address_block block = tracker_born(slot, hook_frame, domain, bytes), old;

	if (block.site == 0)
		return;
	failed_requests_got(domain, bytes);
	if (!device_objects_create(handle, block, owner, &old)) {
		tracker_lost(slot, block);
	} else if (old.site != 0) {
		capture_file_lost(KMEM_LOST_MISSED_FREES, 1);
		tracker_dead(slot, old);
	}
}

/* An object without a site. */
void
tracker_object_imported(uint64_t handle)
{
	struct address_block old;

	if (!device_objects_create(handle, (struct address_block){ 0 }, TRACKER_OWNER_NONE, &old)) {
		capture_file_lost(KMEM_LOST_EVENTS, 1);
	} else if (old.site != 0) {
		capture_file_lost(KMEM_LOST_MISSED_FREES, 1);
		tracker_dead(thread_slot_here(), old);
	}
}

/* The mapping that began at `addr` is gone. */
static void
unmapped(uint64_t addr, struct device_drop dropped)
{
	if (dropped.is_imported)
		tracker_device_released(tracker_device_take(addr));
	tracker_object_released(dropped);
}

void
tracker_object_mapped(const void *hook_frame, uint64_t addr, uint64_t bytes, uint64_t handle)
{
	struct device_drop unseen;
	bool is_imported = device_objects_mapped(addr, bytes, handle, &unseen);

	if (unseen.is_dead || unseen.is_imported) {
		capture_file_lost(KMEM_LOST_MISSED_FREES, 1);
		unmapped(addr, unseen);
	}
	if (is_imported)
		tracker_device_allocated(hook_frame, KMEM_DOMAIN_CUDA_IMPORTED, addr, bytes, TRACKER_OWNER_NONE);
}

void
tracker_object_released(struct device_drop dropped)
{
	if (dropped.is_dead)
		tracker_released(
			(struct live_block){ NULL, dropped.block.bytes, dropped.block.site, dropped.block.generation });
	device_objects_released(dropped);
}

void
tracker_object_unmapped(uint64_t addr, uint64_t bytes)
{
	struct device_drop dropped;

	for (uint64_t end = addr + bytes, start = addr; device_objects_unmapped(&addr, end, &dropped); start = addr)
		unmapped(start, dropped);
}

void
tracker_object_opened(const void *hook_frame, unsigned domain, uint64_t addr, uint64_t bytes, unsigned owner)
{
	if (!device_objects_retain(TRACKER_OPENED(addr)))
		tracker_object_created(hook_frame, domain, TRACKER_OPENED(addr), bytes, owner);
}

/* ---- tensors ---- */

static unsigned
tensor_domain(int device)
{
	return row_of(device, KMEM_DOMAIN_TENSORS_FIRST, KMEM_DOMAIN_TENSORS_LAST);
}

/* relaxed: a tensor that is made at that very moment may count as before or after. */
static unsigned
version_of(unsigned domain)
{
	return atomic_load_explicit(&tensor_failed_requests[domain - KMEM_DOMAIN_TENSORS_FIRST], memory_order_relaxed) &
	       0xffff;
}

void
tracker_tensor_allocated(const void *hook_frame, int device, uint64_t addr, uint64_t bytes)
{
	unsigned domain = tensor_domain(device);

	tracker_device_allocated(hook_frame, domain, addr | TENSOR_KEY, bytes, version_of(domain));
}

void
tracker_tensor_released(uint64_t addr)
{
	tracker_device_released(tracker_device_take(addr | TENSOR_KEY));
}

void
tracker_tensor_failed(const void *hook_frame, int device, uint64_t bytes, int result)
{
	unsigned domain = tensor_domain(device);

	tracker_failed(hook_frame, domain, bytes, result);
	atomic_fetch_add_explicit(&tensor_failed_requests[domain - KMEM_DOMAIN_TENSORS_FIRST], 1, memory_order_relaxed);
}

/* Where in device_snapshot->sites a record stands, by its number: index + 1. */
#define KEPT_PLACES 1024u
struct kept {
	struct kmem_device_snapshot *device_snapshot;
	unsigned domain;
	unsigned version;
	uint16_t places[KEPT_PLACES];
};

static uint16_t *
kept_place(struct kept *kept, uint32_t site)
{
	uint32_t at = site;

	while (kept->places[at % KEPT_PLACES] != 0 &&
	       kept->device_snapshot->sites[kept->places[at % KEPT_PLACES] - 1].site != site)
		at++;
	return &kept->places[at % KEPT_PLACES];
}

static bool
add_kept(uint64_t addr, struct address_block block, void *context)
{
	struct kept *kept = context;

	if ((addr & TENSOR_KEY) == 0 || block.bytes >> OWNER_SHIFT == kept->version || block.site == 0 ||
	    site_table_at(block.site)->domain != kept->domain)
		return false;

	uint16_t place = *kept_place(kept, block.site);

	if (place != 0)
		kept->device_snapshot->sites[place - 1].kept_bytes += block.bytes & BYTES_MASK;
	return false; // it stays where it is
}

static_assert(KMEM_DEVICE_SNAPSHOT_MAX <= KEPT_PLACES / 2, "a probe ends");

void
tracker_tensors_kept(struct kmem_device_snapshot *device_snapshot, unsigned domain)
{
	struct kept kept = { .device_snapshot = device_snapshot, .domain = domain };
	struct address_block block;
	uint64_t cursor = 0;

	if (domain < KMEM_DOMAIN_TENSORS_FIRST || domain > KMEM_DOMAIN_TENSORS_LAST ||
	    atomic_load_explicit(&tensor_failed_requests[domain - KMEM_DOMAIN_TENSORS_FIRST], memory_order_relaxed) == 0)
		return;
	kept.version = version_of(domain);
	for (uint16_t i = 0; i < KMEM_DEVICE_SNAPSHOT_MAX; i++) {
		if (device_snapshot->sites[i].site != 0)
			*kept_place(&kept, device_snapshot->sites[i].site) = (uint16_t)(i + 1);
	}
	while (address_table_sweep(&devices, &cursor, add_kept, &kept, &block))
		; // takes none
}

void
tracker_devices_clear(void)
{
	address_table_clear(&devices);
	device_objects_clear();
	failed_requests_forked();
	for (unsigned i = 0; i < sizeof(tensor_failed_requests) / sizeof(tensor_failed_requests[0]); i++)
		atomic_store_explicit(&tensor_failed_requests[i], 0, memory_order_relaxed);
}
