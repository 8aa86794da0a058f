/*
 * test_device_parts.c - do the parts of a device add up, and is a framework's cache told from what lies in it?
 */
#include "hand_model.h"

#include "device_parts.h"
#include "verdict.h"

static struct hand_model hand;

static struct model_site *
taken_by(const char *module, uint32_t line, uint64_t bytes)
{
	struct model_site *site = hand_model_site(&hand, CUDA0, line, bytes);

	hand.frames[site - hand.sites][0].module = module;
	return site;
}

static uint64_t
part_bytes(const struct device_parts *parts, const char *name)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < parts->part_count; i++) {
		if (strcmp(parts->parts[i].name, name) == 0)
			bytes += parts->parts[i].live_bytes;
	}
	return bytes;
}

static uint64_t
sum(const struct device_parts *parts)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < parts->part_count; i++)
		bytes += parts->parts[i].live_bytes;
	return bytes;
}

static void
parts_add_up(void **state)
{
	struct device_parts parts;

	(void)state;
	hand_model_make(&hand);
	hand.model.domain_count = HAND_DOMAINS + 1;
	taken_by("libc10_cuda.so", 41, 900 * MIB);
	taken_by("libcublas.so.13", 42, 32 * MIB);
	taken_by("libcublasLt.so.13", 42, 8 * MIB);
	taken_by("libnccl.so.2", 43, 64 * MIB);
	hand_model_site(&hand, TENSORS0, 41, 700 * MIB);
	assert_true(device_parts_of(&hand.model, CUDA0, NULL, &parts));
	assert_int_equal(part_bytes(&parts, "tensors"), 700 * MIB);
	assert_int_equal(part_bytes(&parts, "cached by PyTorch"), 200 * MIB);
	assert_int_equal(parts.cache_bytes, 200 * MIB);
	assert_int_equal(part_bytes(&parts, "cuBLAS"), 40 * MIB);
	assert_int_equal(part_bytes(&parts, "NCCL"), 64 * MIB);
	assert_int_equal(sum(&parts), parts.device->live_bytes);
	assert_string_equal(parts.parts[0].name, "tensors");
	assert_true(device_parts_is_cache(&hand.model, &hand.sites[0]));
	assert_false(device_parts_is_cache(&hand.model, &hand.sites[1]));
	assert_int_equal(device_parts_device(&hand.model, TENSORS0), CUDA0);
	assert_int_equal(device_parts_device(&hand.model, HEAP), HEAP);
	assert_false(device_parts_of(&hand.model, TENSORS0, NULL, &parts));
	assert_false(device_parts_of(&hand.model, HEAP, NULL, &parts));
}

/* A build without the reporting function, or another framework: what was taken is all that is known. */
static void
without_tensors_nothing_is_a_cache(void **state)
{
	struct device_parts parts;

	(void)state;
	hand_model_make(&hand);
	taken_by("libc10_cuda.so", 41, 900 * MIB);
	assert_true(device_parts_of(&hand.model, CUDA0, NULL, &parts));
	assert_false(device_parts_is_cache(&hand.model, &hand.sites[0]));
	assert_null(parts.tensors);
	assert_int_equal(parts.cache_bytes, 0);
	assert_int_equal(part_bytes(&parts, "libc10_cuda.so"), 900 * MIB);
}

static void
many_modules_are_others(void **state)
{
	static char names[12][16];
	struct device_parts parts;

	(void)state;
	hand_model_make(&hand);
	for (unsigned i = 0; i < 12; i++) {
		(void)snprintf(names[i], sizeof(names[i]), "libmine%u.so", i);
		taken_by(names[i], i, (i + 1) * MIB);
	}
	assert_true(device_parts_of(&hand.model, CUDA0, NULL, &parts));
	assert_int_equal(parts.part_count, DEVICE_PARTS_MAX);
	assert_string_equal(parts.parts[DEVICE_PARTS_MAX - 1].name, "others");
	assert_int_equal(sum(&parts), 78 * MIB);
}

/* More tensors than memory, as a process that died in between may have left it. */
static void
parts_never_exceed_the_device(void **state)
{
	struct device_parts parts;

	(void)state;
	hand_model_make(&hand);
	hand.model.domain_count = HAND_DOMAINS + 1;
	taken_by("libc10_cuda.so", 41, 100 * MIB);
	hand_model_site(&hand, TENSORS0, 41, 102 * MIB);
	assert_true(device_parts_of(&hand.model, CUDA0, NULL, &parts));
	assert_int_equal(sum(&parts), 100 * MIB);
	assert_int_equal(parts.cache_bytes, 0);
}

static void
one_thing_to_do(void **state)
{
	static const struct {
		const char *module;
		uint64_t tensors, taken, wanted;
		bool is_leak;
		const char *next;
	} cases[] = {
		{ "libc10_cuda.so", 950, 1000, 2, true, "loss.item()" },
		{ "libc10_cuda.so", 500, 1000, 300, false, "expandable_segments" },
		{ "libc10_cuda.so", 950, 1000, 300, false, "kmemshim.out/python.4242.1.kmem --domain cuda`" },
		{ "xla_extension.so", 0, 1000, 300, false, "XLA_PYTHON_CLIENT_PREALLOCATE=false" },
		{ "_pywrap_tensorflow_internal.so", 0, 1000, 300, false, "TF_FORCE_GPU_ALLOW_GROWTH=true" },
		{ "mine.so", 0, 1000, 300, false, "kmemshim.out/python.4242.1.kmem --domain cuda`" },
	};
	struct verdict verdict;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		hand_model_make(&hand);
		taken_by(cases[i].module, 41, cases[i].taken * MIB);
		if (cases[i].tensors != 0) {
			hand.model.domain_count = HAND_DOMAINS + 1;
			hand_model_generations(hand_model_site(&hand, TENSORS0, 44, cases[i].tensors * MIB), cases[i].is_leak ? 12 : 1, 12,
			                       cases[i].is_leak ? 3 : 1, 3);
		}
		hand.process.state = KMEM_STATE_CLEAN_EXIT;
		hand.process.exit_code = 1;
		hand.process.ended_monotonic_ns = 50000000;
		hand.failed = (struct model_failed){ .bytes = cases[i].wanted * MIB, .error = 2, .monotonic_ns = 40000000,
			.domain = cases[i].tensors != 0 ? TENSORS0 : CUDA0, .site = &hand.sites[hand.model.site_count - 1] };
		hand.model.failed_count = 1;
		rank_leaks_classify(&hand.model);
		verdict_decide(&hand.model, verdict_now(), &verdict);
		if (strstr(verdict.next, cases[i].next) == NULL)
			print_error("case %zu: wanted \"%s\", got %s: %s\n", i, cases[i].next, verdict.cause, verdict.next);
		assert_string_equal(verdict.cause, "device-memory");
		assert_non_null(strstr(verdict.next, cases[i].next));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_add_up),
		cmocka_unit_test(without_tensors_nothing_is_a_cache),
		cmocka_unit_test(many_modules_are_others),
		cmocka_unit_test(parts_never_exceed_the_device),
		cmocka_unit_test(one_thing_to_do),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
