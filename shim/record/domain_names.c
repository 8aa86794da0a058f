/* domain_names.c - see domain_names.h. */
#include "record/domain_names.h"

#include "base/diag.h"
#include "capture/capture_file.h"

void
domain_names_store(void)
{
	static const char *const names[] = { "heap",   "mmap",        "reserved",     "file",
		                                 "shared", "cuda/pinned", "cuda/managed", "python/arena" };
	static const char *const late_names[] = { "cuda/registered", "cuda/imported", "cuda/graph", "library",
		                                      "python/object" };

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		diag_format(capture_file_domain(i)->name, sizeof(capture_file_domain(i)->name), "%s", names[i]);
	for (unsigned i = KMEM_DOMAIN_CUDA_FIRST; i <= KMEM_DOMAIN_CUDA_LAST; i++)
		diag_format(capture_file_domain(i)->name, sizeof(capture_file_domain(i)->name), "cuda:%u",
		            i - KMEM_DOMAIN_CUDA_FIRST);
	for (unsigned i = KMEM_DOMAIN_TENSORS_FIRST; i <= KMEM_DOMAIN_TENSORS_LAST; i++)
		diag_format(capture_file_domain(i)->name, sizeof(capture_file_domain(i)->name), "cuda:%u/tensors",
		            i - KMEM_DOMAIN_TENSORS_FIRST);
	for (unsigned i = 0; i < sizeof(late_names) / sizeof(late_names[0]); i++)
		diag_format(capture_file_domain(KMEM_DOMAIN_CUDA_REGISTERED + i)->name, sizeof(capture_file_domain(0)->name),
		            "%s", late_names[i]);
}
