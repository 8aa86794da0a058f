/*
 * device_parts.h - what is the memory of a device made of: tensors, the framework's cache, libraries' workspaces?
 *
 * Tensors lie in memory that PyTorch's allocator took from the driver: they are a part of it and never added to it.
 *
 * Context     Reads the model, finished or not.
 */
#ifndef DEVICE_PARTS_H
#define DEVICE_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/model.h"

#define DEVICE_PARTS_MAX 10u

struct device_part {
	const char *name; // "tensors", "cached by PyTorch", "cuBLAS", a module; static or the model's
	uint64_t live_bytes;
};

struct device_parts {
	const struct model_domain *device;  // "cuda:0"
	const struct model_domain *tensors; // "cuda:0/tensors", NULL = none were seen
	uint64_t live_bytes;                // on the device
	uint64_t tensor_bytes;
	uint64_t cache_bytes; // taken by PyTorch's allocator and not a tensor's; 0 without tensors
	size_t part_count;
	struct device_part parts[DEVICE_PARTS_MAX]; // sum up to live_bytes; largest first, the last may be "others"
};

/*
 * False when the domain is no device ("cuda:0"), or holds nothing. `domain` is an index in model.domains. `at`: at the moment of
 * this refusal, in one process; NULL = at the end, in all.
 */
bool device_parts_of(const struct model *model, unsigned domain, const struct model_failed *at,
                     struct device_parts *parts);

/* The domain of the tensors on the device whose memory the domain is; NULL = none were seen. */
const struct model_domain *device_parts_tensors(const struct model *model, unsigned domain);

/* The device on which the domain's memory is: "cuda:0" of "cuda:0/tensors". Others: the domain itself. */
unsigned device_parts_device(const struct model *model, unsigned domain);

/* Memory that PyTorch's allocator took from the driver while its tensors are recorded by themselves: never a line's fault. */
bool device_parts_is_cache(const struct model *model, const struct model_site *site);

#endif
