/*
 * test_device_parts.c - do the parts of a device add up, and is a framework's cache told from what lies in it?
 */
#include "hand_model.h"

#include "analysis/device_parts.h"
#include "verdict/verdict.h"

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

TEST(parts_add_up)
{
	struct device_parts parts;

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
TEST(without_tensors_nothing_is_a_cache)
{
	struct device_parts parts;

	hand_model_make(&hand);
	taken_by("libc10_cuda.so", 41, 900 * MIB);
	assert_true(device_parts_of(&hand.model, CUDA0, NULL, &parts));
	assert_false(device_parts_is_cache(&hand.model, &hand.sites[0]));
	assert_null(parts.tensors);
	assert_int_equal(parts.cache_bytes, 0);
	assert_int_equal(part_bytes(&parts, "libc10_cuda.so"), 900 * MIB);
}

TEST(many_modules_are_others)
{
	static char names[12][16];
	struct device_parts parts;

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
TEST(parts_never_exceed_the_device)
{
	struct device_parts parts;

	hand_model_make(&hand);
	hand.model.domain_count = HAND_DOMAINS + 1;
	taken_by("libc10_cuda.so", 41, 100 * MIB);
	hand_model_site(&hand, TENSORS0, 41, 102 * MIB);
	assert_true(device_parts_of(&hand.model, CUDA0, NULL, &parts));
	assert_int_equal(sum(&parts), 100 * MIB);
	assert_int_equal(parts.cache_bytes, 0);
}

/* Each signature: a part of its sentence, and the one thing to do. */
TEST(each_signature_has_a_sentence_and_one_thing_to_do)
{
	static const struct {
		const char *module;
		uint64_t tensors, blocks, taken, wanted; // MiB
		uint64_t free, total;                    // as the driver said
		unsigned growing;                        // lines
		const char *says;
		const char *next;
	} cases[] = {
		{ "libc10_cuda.so", 950, 500, 1000, 2, 24, 1024, 1,
		  "It looks like a leak: it keeps 1.9 MiB each time it runs (500 blocks).", "loss.item()" },
		{ "libc10_cuda.so", 900, 300, 1000, 2, 24, 1024, 3, "3 lines grow together, by 3.0 MiB a round (300 rounds)",
		  "loss.item()" },
		{ "libc10_cuda.so", 700, 500, 1000, 300, 24, 1024, 1, "The device then had 24.0 MiB free of 1.00 GiB",
		  "loss.item()" },
		{ "libc10_cuda.so", 500, 500, 1000, 300, 24, 1024, 0, "PyTorch's cache held another 500 MiB there, in pieces",
		  "expandable_segments" },
		{ "libc10_cuda.so", 950, 500, 1000, 300, 24, 1024, 0, "950 MiB of it tensors", "--domain cuda:0`" },
		{ "libc10_cuda.so", 950, 2, 1000, 300, 24, 1024, 0, "Those are 2 blocks, 93 % of the device, as when",
		  "--gpu-memory-utilization" },
		{ "xla_extension.so", 0, 1, 1000, 300, 0, 0, 0,
		  "That is one block, as when a framework takes its memory in advance.",
		  "XLA_PYTHON_CLIENT_PREALLOCATE=false" },
		{ "xla_extension.so", 0, 1, 750, 300, 200, 1000, 0, "That is one block, 75 % of the device, as when",
		  "XLA_PYTHON_CLIENT_PREALLOCATE=false" },
		{ "_pywrap_tensorflow_internal.so", 0, 1, 1000, 300, 0, 0, 0, "in advance", "TF_FORCE_GPU_ALLOW_GROWTH=true" },
		{ "mine.so", 0, 1, 1000, 300, 0, 0, 0, "in advance", "take less in advance at train.py:41 epoch" },
		{ "mine.so", 0, 400, 1000, 300, 0, 0, 0, "held 1000 MiB of cuda:0", "--domain cuda:0`" },
		{ "mine.so", 0, 400, 1000, 300, 100, 4096, 0, "2.93 GiB of what is in use there is not this program's",
		  "nvidia-smi" },
	};
	struct verdict verdict;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct model_site *site;
		unsigned lines = cases[i].growing > 1 ? cases[i].growing : 1;

		hand_model_make(&hand);
		site = taken_by(cases[i].module, 41, cases[i].taken * MIB);
		site->live_count = cases[i].blocks;
		for (unsigned k = 0; cases[i].tensors != 0 && k < lines; k++) {
			hand.model.domain_count = HAND_DOMAINS + 1;
			site = hand_model_site(&hand, TENSORS0, 44 + k, cases[i].tensors / lines * MIB);
			site->live_count = cases[i].blocks;
			hand_model_generations(site, cases[i].growing != 0 ? 12 : 1, 12, cases[i].growing != 0 ? 3 : 1, 3);
		}
		hand.process.state = KMEM_STATE_CLEAN_EXIT;
		hand.process.exit_code = 1;
		hand.process.ended_monotonic_ns = 50000000;
		hand.failed = (struct model_failed){ .bytes = cases[i].wanted * MIB,
			                                 .error = 2,
			                                 .monotonic_ns = 40000000,
			                                 .free_bytes = cases[i].free * MIB,
			                                 .total_bytes = cases[i].total * MIB,
			                                 .domain = cases[i].tensors != 0 ? TENSORS0 : CUDA0,
			                                 .site = &hand.sites[hand.model.site_count - 1] };
		hand.model.failed_count = 1;
		rank_leaks_classify(&hand.model);
		verdict_decide((struct finished_model){ &hand.model }, verdict_now(), &verdict);
		if (strstr(verdict.next, cases[i].next) == NULL || strstr(verdict.text, cases[i].says) == NULL)
			print_error("case %zu: wanted \"%s\" and \"%s\", got %s: %s\nNext: %s\n", i, cases[i].says, cases[i].next,
			            verdict_cause_name(verdict.cause), verdict.text, verdict.next);
		assert_string_equal(verdict_cause_name(verdict.cause), "device-memory");
		assert_non_null(strstr(verdict.next, cases[i].next));
		assert_non_null(strstr(verdict.text, cases[i].says));
	}
}

/* What one step needed, alive since PyTorch gave up on a tensor in it, though the program went on. Weights are alive all the time. */
TEST(a_traceback_keeps_tensors)
{
	static const struct {
		uint64_t allocated_count, kept_bytes;
		bool is_leak, is_alive, is_told;
	} cases[] = {
		{ 4000, 400 * MIB, false, true, true },  // a notebook
		{ 4000, 400 * MIB, false, false, true }, // it died of the next one
		{ 80, 400 * MIB, false, true, false },   // weights
		{ 4000, 0, false, true, false },         // released
		{ 4000, 400 * MIB, true, true, false },  // they accumulate anyway
	};
	static const uint64_t bytes[HAND_DOMAINS + 1] = { [CUDA0] = 1000 * MIB, [TENSORS0] = 800 * MIB };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct model_held held = { .live_bytes = 800 * MIB, .live_count = 80, .kept_bytes = cases[i].kept_bytes };
		struct verdict verdict;

		hand_model_make(&hand);
		hand.model.domain_count = HAND_DOMAINS + 1;
		taken_by("libc10_cuda.so", 41, 1000 * MIB);
		held.site = hand_model_site(&hand, TENSORS0, 44, 800 * MIB);
		hand.sites[1].live_count = 80;
		hand.sites[1].allocated_count = cases[i].allocated_count;
		hand_model_generations(&hand.sites[1], cases[i].is_leak ? 12 : 2, 12, cases[i].is_leak ? 3 : 1, 3);
		hand.failed = (struct model_failed){ .bytes = 30 * MIB,
			                                 .domain = TENSORS0,
			                                 .monotonic_ns = UINT64_C(40000000000),
			                                 .has_held = true,
			                                 .held_count = 1,
			                                 .held = &held,
			                                 .site = held.site,
			                                 .domain_count = HAND_DOMAINS + 1,
			                                 .domain_bytes = bytes };
		hand.model.failed_count = 1;
		hand.process.is_alive = cases[i].is_alive;
		hand.process.state = cases[i].is_alive ? KMEM_STATE_RUNNING : KMEM_STATE_CLEAN_EXIT;
		hand.process.exit_code = 1;
		hand.process.ended_monotonic_ns = UINT64_C(41000000000);
		rank_leaks_classify(&hand.model);
		verdict_decide((struct finished_model){ &hand.model }, verdict_now(), &verdict);
		assert_string_equal(verdict_cause_name(verdict.cause), cases[i].is_alive ? "running" : "device-memory");
		assert_true((strstr(verdict.text, "400 MiB of the tensors were those of an earlier step") != NULL) ==
		            cases[i].is_told);
		assert_true((strstr(verdict.next, "let go of the exception") != NULL) == cases[i].is_told);
	}
}

/* Pinned memory is the host's: it is told where the host had no more, and no device is blamed. */
TEST(pinned_memory_is_the_hosts)
{
	static const struct {
		uint64_t blocks, bytes;
		const char *module, *says, *never, *next;
		bool is_refused;
	} cases[] = {
		{ 3, 3 * 512 * MIB, "libtorch_cuda.so", "1.50 GiB of it is in blocks of powers of two", "device",
		  "pinned_max_round_threshold_mb", true },
		{ 3, 3 * 500 * MIB, "libtorch_cuda.so", "1.46 GiB of the host's memory was pinned", "powers of two", "pin less",
		  true },
		{ 3, 3 * 512 * MIB, "libmine.so", "1.50 GiB of the host's memory was pinned", "powers of two", "pin less",
		  true },
		{ 3, 3 * 512 * MIB, "libtorch_cuda.so", "1.50 GiB of it is in blocks of powers of two", "device",
		  "pinned_max_round_threshold_mb", false },
		{ 1, 16 * MIB, "libtorch_cuda.so", "was killed by the kernel", "pinned", "hold less at once at train.py:50",
		  false },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct verdict verdict;
		struct model_site *site;

		hand_model_make(&hand);
		hand_model_site(&hand, HEAP, 50, 300 * MIB);
		hand_model_domain(&hand.domains[MMAP], "cuda/pinned");
		site = hand_model_site(&hand, MMAP, 41, cases[i].bytes);
		site->live_count = cases[i].blocks;
		hand.frames[1][0].module = cases[i].module;
		if (cases[i].is_refused) {
			hand.process.state = KMEM_STATE_CLEAN_EXIT;
			hand.process.exit_code = 1;
			hand.process.ended_monotonic_ns = 50000000;
			hand.failed = (struct model_failed){
				.bytes = GIB, .error = 2, .monotonic_ns = 40000000, .domain = MMAP, .site = site
			};
			hand.model.failed_count = 1;
		} else {
			hand_model_waited(&hand, 9);
			hand.launcher.after = (struct kmem_kill_counters){ 1, 1, 900, 1 };
		}
		rank_leaks_classify(&hand.model);
		verdict_decide((struct finished_model){ &hand.model }, verdict_now(), &verdict);
		if (strstr(verdict.text, cases[i].says) == NULL || strstr(verdict.text, cases[i].never) != NULL ||
		    strstr(verdict.next, cases[i].next) == NULL)
			print_error("case %zu: %s: %s\nNext: %s\n", i, verdict_cause_name(verdict.cause), verdict.text,
			            verdict.next);
		assert_string_equal(verdict_cause_name(verdict.cause),
		                    cases[i].is_refused ? "request-refused" : "container-limit");
		assert_non_null(strstr(verdict.text, cases[i].says));
		assert_null(strstr(verdict.text, cases[i].never));
		assert_non_null(strstr(verdict.next, cases[i].next));
	}
}

RUN_TESTS(NULL, NULL)
