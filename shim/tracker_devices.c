/*
 * tracker_devices.c - what lives on devices: memory that the driver gave out, and the tensors that lie in it (see tracker.h).
 *
 * Both by address in one table, which is not that of host memory. A tensor may begin where its memory does, so its key has a bit
 * more.
 *
 * Called by   hooks_cuda_call.c, hooks_torch.c, inside the reentry guard.
 * Safe from   any thread. One thread at a time owns an address: the driver, and PyTorch's mutex, guarantee it.
 * When full   the event is counted as lost.
 */
#include "address_table.h"
#include "capture_file.h"
#include "tracker_parts.h"

#define TENSOR_KEY (UINT64_C(1) << 62)

static struct address_table devices;

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

void
tracker_device_allocated(const void *hook_frame, unsigned domain, uint64_t key, uint64_t bytes)
{
	struct thread_slot *slot = thread_slot_here();
	struct address_block block = tracker_born(slot, hook_frame, domain, bytes), old;

	if (block.site == 0)
		return;
	if (address_table_replace(&devices, key, block, &old)) { // its release was not seen
		capture_file_lost(KMEM_LOST_MISSED_FREES, 1);
		tracker_dead(slot, old);
	} else if (!address_table_put(&devices, key, block)) {
		tracker_lost(slot, block);
	}
}

struct live_block
tracker_device_take(uint64_t key)
{
	struct address_block block = { 0 };

	if (key != 0 && !address_table_take(&devices, key, &block) && !tracker_is_teardown())
		capture_file_lost(KMEM_LOST_UNKNOWN_FREES, 1);
	return (struct live_block){ (void *)key, block.bytes, block.site, block.generation };
}

void
tracker_device_put_back(struct live_block block)
{
	struct address_block again = { block.bytes, block.site, block.generation };

	if (block.site != 0 && !address_table_put(&devices, (uint64_t)block.addr, again))
		tracker_dead(thread_slot_here(), again);
}

/* ---- tensors ---- */

static unsigned
tensor_domain(int device)
{
	return row_of(device, KMEM_DOMAIN_TENSORS_FIRST, KMEM_DOMAIN_TENSORS_LAST);
}

void
tracker_tensor_allocated(const void *hook_frame, int device, uint64_t addr, uint64_t bytes)
{
	tracker_device_allocated(hook_frame, tensor_domain(device), addr | TENSOR_KEY, bytes);
}

void
tracker_tensor_released(uint64_t addr)
{
	tracker_released(tracker_device_take(addr | TENSOR_KEY));
}

void
tracker_tensor_failed(const void *hook_frame, int device, uint64_t bytes, int result)
{
	tracker_failed(hook_frame, tensor_domain(device), bytes, result);
}

void
tracker_devices_clear(void)
{
	address_table_clear(&devices);
}
