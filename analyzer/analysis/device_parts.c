/*
 * device_parts.c - what is the memory of a device made of (see device_parts.h)?
 *
 * When failing  it cannot.
 */
#include "analysis/device_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/items.h"
#include "base/order.h"
#include "base/text_start.h"

#define OTHERS "others"

/* Libraries that take memory of their own, by the name of the file. */
static const struct library {
	const char *file;
	const char *name;
} libraries[] = {
	{ "libcublas", "cuBLAS" },
	{ "libcudnn", "cuDNN" },
	{ "libnccl", "NCCL" },
	{ "libcufft", "cuFFT" },
	{ "libcusolver", "cuSOLVER" },
	{ "libcusparse", "cuSPARSE" },
	{ "libcurand", "cuRAND" },
	{ "libtensorflow", "TensorFlow" },
	{ "_pywrap_tensorflow", "TensorFlow" },
	{ "xla_", "JAX" },
	{ "libjax", "JAX" },
	{ "libxla", "JAX" },
	{ "libnvrtc", "NVRTC" },
	{ "libtriton", "Triton" },
	{ "libnvshmem", "NVSHMEM" },
	{ "librocblas", "rocBLAS" },
	{ "libhipblas", "hipBLAS" },
	{ "libMIOpen", "MIOpen" },
	{ "librccl", "RCCL" },
	{ "librocfft", "rocFFT" },
	{ "librocsparse", "rocSPARSE" },
};

/* Who called the driver, or the runtime: the innermost frame that is recorded. */
static const char *
module_of(const struct model_site *site)
{
	for (uint32_t i = 0; i < site->frame_count; i++) {
		const char *module = site->frames[i]->module;

		if (site->frames[i]->kind != MODEL_FRAME_PYTHON && module[0] != '\0' && !text_starts(module, "libcuda") &&
		    !text_starts(module, "libamdhip64"))
			return module;
	}
	return "";
}

static const char *
part_name(const char *module)
{
	const struct library *known = FIRST(library, libraries, COUNT_OF(libraries), text_starts(module, library->file));

	return known != NULL ? known->name : module[0] != '\0' ? module : OTHERS;
}

const struct model_domain *
device_parts_tensors(const struct model *model, unsigned domain)
{
	struct domain_id device = model->domains[domain].id;

	for (size_t i = 0; device.kind == DOMAIN_DEVICE && i < model->domain_count; i++) {
		struct domain_id id = model->domains[i].id;

		if (id.kind == DOMAIN_TENSORS && id.device == device.device && id.is_hip == device.is_hip)
			return &model->domains[i];
	}
	return NULL;
}

unsigned
device_parts_device(const struct model *model, unsigned domain)
{
	const struct model_domain *own = &model->domains[domain];

	for (unsigned i = 0; own->id.kind == DOMAIN_TENSORS && i < model->domain_count; i++) {
		if (device_parts_tensors(model, i) == own)
			return i;
	}
	return domain;
}

bool
device_parts_is_cache(const struct model *model, const struct model_site *site)
{
	return device_parts_tensors(model, site->domain) != NULL &&
	       (text_starts(module_of(site), "libc10_cuda") || text_starts(module_of(site), "libc10_hip"));
}

static void
add(struct device_parts *parts, const char *name, uint64_t bytes)
{
	for (size_t i = 0; i < parts->part_count; i++) {
		if (strcmp(parts->parts[i].name, name) == 0) {
			parts->parts[i].live_bytes += bytes;
			return;
		}
	}
	if (parts->part_count >= DEVICE_PARTS_MAX - 1 && strcmp(name, OTHERS) != 0)
		add(parts, OTHERS, bytes); // the last room is theirs
	else if (bytes != 0)
		parts->parts[parts->part_count++] = (struct device_part){ name, bytes };
}

ORDER_OF(compare_parts, struct device_part,
	order_numbers(strcmp(a->name, OTHERS) == 0, strcmp(b->name, OTHERS) == 0)
	?: order_numbers(b->live_bytes, a->live_bytes) ?: strcmp(a->name, b->name))

/* What each site held: at the end, or at the refusal. False: there are no more. */
static bool
next_held(const struct model *model, const struct model_failed *at, size_t *number, const struct model_site **site,
          uint64_t *bytes)
{
	if (*number >= (at != NULL ? at->held_count : model->site_count))
		return false;
	*site = at != NULL ? at->held[*number].site : &model->sites[*number];
	*bytes = at != NULL ? at->held[*number].live_bytes : (*site)->live_bytes;
	(*number)++;
	return true;
}

static uint64_t
domain_bytes(const struct model *model, const struct model_failed *at, const struct model_domain *domain)
{
	size_t index = (size_t)(domain - model->domains);

	if (at == NULL)
		return domain->live_bytes;
	return index < at->domain_count ? at->domain_bytes[index] : 0;
}

bool
device_parts_of(const struct model *model, unsigned domain, const struct model_failed *at, struct device_parts *parts)
{
	const struct model_site *site;
	uint64_t taken_bytes = 0; // by PyTorch's allocator
	uint64_t known_bytes = 0;
	uint64_t bytes;

	*parts = (struct device_parts){ .device = &model->domains[domain], .tensors = device_parts_tensors(model, domain) };
	if (parts->device->id.kind != DOMAIN_DEVICE || (at != NULL && !at->has_held))
		return false;
	parts->live_bytes = domain_bytes(model, at, parts->device);
	parts->tensor_bytes = parts->tensors != NULL ? domain_bytes(model, at, parts->tensors) : 0;
	if (parts->live_bytes == 0)
		return false;
	for (size_t i = 0; next_held(model, at, &i, &site, &bytes);) {
		if (site->domain == domain && device_parts_is_cache(model, site))
			taken_bytes += bytes;
		if (site->domain == domain)
			known_bytes += bytes;
	}
	/* A tensor is told of after its memory was taken, so a dead process may have one more than it had room for. */
	parts->cache_bytes = taken_bytes > parts->tensor_bytes ? taken_bytes - parts->tensor_bytes : 0;
	add(parts, "tensors", taken_bytes - parts->cache_bytes);
	add(parts, "cached by PyTorch", parts->cache_bytes);
	for (size_t i = 0; next_held(model, at, &i, &site, &bytes);) {
		if (site->domain == domain && !device_parts_is_cache(model, site))
			add(parts, part_name(module_of(site)), bytes);
	}
	if (known_bytes < parts->live_bytes) // of sites without a place
		add(parts, OTHERS, parts->live_bytes - known_bytes);
	SORT(parts->parts, parts->part_count, compare_parts);
	return true;
}
