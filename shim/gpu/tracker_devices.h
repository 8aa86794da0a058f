/*
 * tracker_devices.h - devices: what hooks tell of memory that a driver gave out, and of the tensors that lie in it.
 *
 * The rules are those of tracker.h.
 *
 * Safe from   any thread, any signal handler; errno is left alone.
 */
#ifndef TRACKER_DEVICES_H
#define TRACKER_DEVICES_H

#include <stdint.h>

#include "kmem_format.h"
#include "record/tracker.h"
#include "tables/device_objects.h"

/*
 * Devices. `key` is the device address; device addresses live in a map of their own. `domain` comes from
 * tracker_device_domain(). All may be called from several threads at once.
 */
unsigned tracker_device_domain(int device); // row of "cuda:N"; the last row for numbers out of range
/*
 * The owner is what it ends with: a device's primary context by the device's number, a context that the program made by
 * TRACKER_OWNER_CONTEXT and more, or nothing but its release.
 */
enum { TRACKER_OWNER_CONTEXT = 0x100, TRACKER_OWNER_NONE = DEVICE_OBJECTS_NO_OWNER };
void tracker_device_allocated(const void *hook_frame, unsigned domain, uint64_t key, uint64_t bytes, unsigned owner);
/* What the driver said of the device right after it refused; total_bytes 0: nothing. */
struct device_memory {
	uint64_t free_bytes;
	uint64_t total_bytes;
	uint64_t pool_kept_bytes; // of it: of the device's own pool and of the one that refused
};
void tracker_device_refused(const void *hook_frame, unsigned domain, uint64_t bytes, int result,
                            struct device_memory memory);
void tracker_owner_gone(unsigned owner);
/* Physical memory by handle: what device_objects.h does not do by itself. */
void tracker_object_created(const void *hook_frame, unsigned domain, uint64_t handle, uint64_t bytes, unsigned owner);
void tracker_object_imported(uint64_t handle); // memory of another process: what is mapped of it is counted apart
void tracker_object_mapped(const void *hook_frame, uint64_t addr, uint64_t bytes, uint64_t handle);
void tracker_object_released(struct device_drop dropped);
void tracker_object_unmapped(uint64_t addr, uint64_t bytes);
/* Memory of another process by address, opened as often as it is closed: an object with this handle. */
#define TRACKER_OPENED(addr) ((addr) | UINT64_C(1) << 61)
void tracker_object_opened(const void *hook_frame, unsigned domain, uint64_t addr, uint64_t bytes, unsigned owner);
/* Before the real free. The block is for one of the other two afterwards. */
struct live_block tracker_device_take(uint64_t key);
void tracker_device_released(struct live_block block);
void tracker_device_put_back(struct live_block block);
/* Blocks of PyTorch's, in the device's memory: domain "cuda:N/tensors". A release of an unknown one is counted. */
void tracker_tensor_allocated(const void *hook_frame, int device, uint64_t addr, uint64_t bytes);
void tracker_tensor_released(uint64_t addr);
void tracker_tensor_failed(const void *hook_frame, int device, uint64_t bytes, int result);
/* Fills in kept_bytes, while PyTorch gives up on a tensor of the domain: what is still alive of the time before it did so last. */
void tracker_tensors_kept(struct kmem_device_snapshot *device_snapshot, unsigned domain);

#endif
