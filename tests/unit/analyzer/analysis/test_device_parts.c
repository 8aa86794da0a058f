/*
 * test_device_parts.c - do the parts of a device add up, and is a framework's cache told from what lies in it?
 */
#include "verdict_case.h"

#include "analysis/device_parts.h"

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

/* Each signature: a part of its sentence, and the one thing to do. A request was refused at its end. */
TEST(each_signature_has_a_sentence_and_one_thing_to_do)
{
#define TAKEN(taken, module) "cuda0:41 " taken " module=" module
#define TENSORS(taken, held) TAKEN(taken, "libc10_cuda.so") " live_count=500; tensors:44 " held
#define REFUSED(wanted) "; closed 1; process ended_monotonic_ns=50ms; refuse " wanted " error=2 monotonic_ns=40ms "
#define SMALL REFUSED("2M") "of=tensors free_bytes=24M total_bytes=1G at="
#define LARGE REFUSED("300M") "of=tensors at=1 free_bytes=24M total_bytes=1G"
#define OF_DRIVER REFUSED("300M") "of=cuda0 "
	static const char *const cases[][3] = {
		{ TENSORS("1000M", "950M leak live_count=500") SMALL "1",
		  "It looks like a leak: it keeps 1.9 MiB each time it runs (500 blocks).", "loss.item()" },
		{ TENSORS("1000M", "300M leak live_count=300") "; tensors:45 300M leak live_count=300; tensors:46 300M leak "
		                                               "live_count=300" SMALL "3",
		  "3 lines grow together, by 3.0 MiB a round (300 rounds)", "loss.item()" },
		{ TENSORS("1000M", "700M leak live_count=500") LARGE, "The device then had 24.0 MiB free of 1.00 GiB",
		  "loss.item()" },
		{ TENSORS("1000M", "500M gens=1/12/1/3 live_count=500") LARGE,
		  "PyTorch's cache held another 500 MiB there, in pieces", "expandable_segments" },
		{ TENSORS("1000M", "950M gens=1/12/1/3 live_count=500") LARGE, "950 MiB of it tensors", "--domain cuda:0`" },
		{ TENSORS("1000M", "950M gens=1/12/1/3 live_count=2") LARGE, "Those are 2 blocks, 93 % of the device, as when",
		  "--gpu-memory-utilization" },
		{ TAKEN("1000M", "xla_extension.so") OF_DRIVER,
		  "That is one block, as when a framework takes its memory in advance.",
		  "XLA_PYTHON_CLIENT_PREALLOCATE=false" },
		{ TAKEN("750M", "xla_extension.so") OF_DRIVER "free_bytes=200M total_bytes=1000M",
		  "That is one block, 75 % of the device, as when", "XLA_PYTHON_CLIENT_PREALLOCATE=false" },
		{ TAKEN("1000M", "_pywrap_tensorflow_internal.so") OF_DRIVER, "in advance", "TF_FORCE_GPU_ALLOW_GROWTH=true" },
		{ TAKEN("1000M", "mine.so") OF_DRIVER, "in advance", "take less in advance at train.py:41 epoch" },
		{ TAKEN("1000M", "mine.so live_count=400") OF_DRIVER, "held 1000 MiB of cuda:0", "--domain cuda:0`" },
		{ TAKEN("1000M", "mine.so live_count=400") OF_DRIVER "free_bytes=100M total_bytes=4G",
		  "2.93 GiB of what is in use there is not this program's", "nvidia-smi" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		told(NULL, NULL, "%s", cases[i][0]);
		assert_cause(&verdict, "device-memory");
		said(cases[i][1]);
		next(cases[i][2]);
	}
}

/* What one step needed, alive since PyTorch gave up on a tensor in it, though the program went on. Weights are alive all the time. */
TEST(a_traceback_keeps_tensors)
{
	static const struct {
		unsigned allocated_count, kept_mib;
		const char *gens;
		bool is_alive, is_told;
	} cases[] = {
		{ 4000, 400, "2/12/1/3", true, true },   // a notebook
		{ 4000, 400, "2/12/1/3", false, true },  // it died of the next one
		{ 80, 400, "2/12/1/3", true, false },    // weights
		{ 4000, 0, "2/12/1/3", true, false },    // released
		{ 4000, 400, "12/12/3/3", true, false }, // they accumulate anyway
	};
	static const uint64_t bytes[HAND_DOMAINS + 1] = { [CUDA0] = 1000 * MIB, [TENSORS0] = 800 * MIB };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct model_held held = {
			.site = &hand.sites[1], .live_bytes = 800 * MIB, .live_count = 80, .kept_bytes = cases[i].kept_mib * MIB
		};

		scene("cuda0:41 1000M module=libc10_cuda.so; tensors:44 800M live_count=80 allocated_count=%u gens=%s; "
		      "refuse 30M error=0 of=tensors at=1 monotonic_ns=40s; %s; process ended_monotonic_ns=41s",
		      cases[i].allocated_count, cases[i].gens, cases[i].is_alive ? "alive" : "closed 1");
		hand.failed.has_held = true;
		hand.failed.held = &held;
		hand.failed.held_count = 1;
		hand.failed.domain_bytes = bytes;
		hand.failed.domain_count = HAND_DOMAINS + 1;
		decided(NULL, NULL);
		assert_cause(&verdict, cases[i].is_alive ? "running" : "device-memory");
		said(cases[i].is_told ? "400 MiB of the tensors were those of an earlier step"
		                      : "!were those of an earlier step");
		next(cases[i].is_told ? "let go of the exception" : "!let go of the exception");
	}
}

/* Pinned memory is the host's: it is told where the host had no more, and no device is blamed. */
TEST(pinned_memory_is_the_hosts)
{
#define PINNED(bytes, module) "heap:50 300M; name mmap cuda/pinned; mmap:41 " bytes " live_count=3 module=" module "; "
#define HOST_REFUSED "closed 1; process ended_monotonic_ns=50ms; refuse 1G error=2 monotonic_ns=40ms of=mmap at=1"
	static const char *const cases[][4] = {
		{ PINNED("1536M", "libtorch_cuda.so") HOST_REFUSED, "1.50 GiB of it is in blocks of powers of two", "!device",
		  "pinned_max_round_threshold_mb" },
		{ PINNED("1500M", "libtorch_cuda.so") HOST_REFUSED, "1.46 GiB of the host's memory was pinned",
		  "!powers of two", "pin less" },
		{ PINNED("1536M", "libmine.so") HOST_REFUSED, "1.50 GiB of the host's memory was pinned", "!powers of two",
		  "pin less" },
		{ PINNED("1536M", "libtorch_cuda.so") "oom", "1.50 GiB of it is in blocks of powers of two", "!device",
		  "pinned_max_round_threshold_mb" },
		{ PINNED("16M", "libtorch_cuda.so") "last live_count=1; oom", "was killed by the kernel", "!pinned",
		  "hold less at once at train.py:50" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		told(NULL, NULL, "%s", cases[i][0]);
		assert_cause(&verdict, i < 3 ? "request-refused" : "container-limit");
		said(cases[i][1]);
		said(cases[i][2]);
		next(cases[i][3]);
	}
}

RUN_TESTS(NULL, NULL)
