/*
 * test_domain.c - what kind of memory is a domain, by its number and by its name?
 */
#include "test.h"

#include "kmem_format.h"
#include "model/domain.h"

static const struct {
	unsigned number;
	const char *name;
	struct domain_id id;
	bool is_address_space, is_driver;
} domains[] = {
	{ KMEM_DOMAIN_HEAP, "heap", { .kind = DOMAIN_HEAP }, false, false },
	{ KMEM_DOMAIN_MMAP, "mmap", { .kind = DOMAIN_MMAP }, false, false },
	{ KMEM_DOMAIN_RESERVED, "reserved", { .kind = DOMAIN_RESERVED }, true, false },
	{ KMEM_DOMAIN_FILE, "file", { .kind = DOMAIN_FILE }, true, false },
	{ KMEM_DOMAIN_SHARED, "shared", { .kind = DOMAIN_SHARED }, false, false },
	{ KMEM_DOMAIN_CUDA_PINNED, "cuda/pinned", { .kind = DOMAIN_PINNED }, false, true },
	{ KMEM_DOMAIN_CUDA_MANAGED, "cuda/managed", { .kind = DOMAIN_MANAGED }, false, true },
	{ KMEM_DOMAIN_PYTHON_ARENA, "python/arena", { .kind = DOMAIN_PYTHON_ARENA }, false, false },
	{ KMEM_DOMAIN_CUDA_FIRST, "cuda:0", { .kind = DOMAIN_DEVICE }, false, true },
	{ KMEM_DOMAIN_CUDA_LAST, "cuda:31", { .kind = DOMAIN_DEVICE, .device = 31 }, false, true },
	{ KMEM_DOMAIN_TENSORS_FIRST, "cuda:0/tensors", { .kind = DOMAIN_TENSORS }, false, true },
	{ KMEM_DOMAIN_TENSORS_LAST, "cuda:15/tensors", { .kind = DOMAIN_TENSORS, .device = 15 }, false, true },
	{ KMEM_DOMAIN_CUDA_REGISTERED, "cuda/registered", { .kind = DOMAIN_REGISTERED }, false, true },
	{ KMEM_DOMAIN_CUDA_IMPORTED, "cuda/imported", { .kind = DOMAIN_IMPORTED }, false, true },
	{ KMEM_DOMAIN_CUDA_GRAPH, "cuda/graph", { .kind = DOMAIN_GRAPH }, false, true },
	{ KMEM_DOMAIN_LIBRARY, "library", { .kind = DOMAIN_LIBRARY }, false, false },
	{ KMEM_DOMAIN_PYTHON_OBJECT, "python/object", { .kind = DOMAIN_PYTHON_OBJECT }, false, false },
	{ KMEM_DOMAIN_HEAP_SAMPLE, "heap/sample", { .kind = DOMAIN_HEAP_SAMPLE }, false, false },
	{ KMEM_DOMAIN_HEAP_SAMPLE + 1, "tomorrow's", { .kind = DOMAIN_OTHER }, false, false },
	{ KMEM_DOMAINS_MAX, "", { .kind = DOMAIN_OTHER }, false, false },
};

TEST(number_and_name_tell_the_same_kind)
{
	for (size_t i = 0; i < sizeof(domains) / sizeof(domains[0]); i++) {
		struct domain_id by_number = domain_id_of(domains[i].number, false);
		struct domain_id by_name = domain_id_named(domains[i].name);

		assert_int_equal(by_number.kind, domains[i].id.kind);
		assert_int_equal(by_number.device, domains[i].id.device);
		assert_false(by_number.is_hip);
		assert_int_equal(by_name.kind, domains[i].id.kind);
		assert_int_equal(by_name.device, domains[i].id.device);
		assert_int_equal(domain_is_address_space(by_number.kind), domains[i].is_address_space);
		assert_int_equal(domain_is_driver(by_number.kind), domains[i].is_driver);
	}
}

TEST(hip_is_a_driver_of_the_same_kinds)
{
	assert_true(domain_id_of(KMEM_DOMAIN_CUDA_FIRST + 3, true).is_hip);
	assert_false(domain_id_of(KMEM_DOMAIN_HEAP, true).is_hip);
	assert_int_equal(domain_id_named("hip/pinned").kind, DOMAIN_PINNED);
	assert_int_equal(domain_id_named("hip:3/tensors").kind, DOMAIN_TENSORS);
	assert_int_equal(domain_id_named("hip:3/tensors").device, 3);
	assert_true(domain_id_named("hip:3").is_hip);
}

RUN_TESTS(NULL, NULL)
