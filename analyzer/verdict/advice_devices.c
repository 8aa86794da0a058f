/*
 * advice_devices.c - what is the one thing to do where a device refused a request (see advice_rows.h)?
 */
#include <string.h>

#include "base/units.h"
#include "verdict/advice_rows.h"
#include "verdict/words.h"

const char *
refusing_device(const struct verdict_facts *facts)
{
	return facts->model->domains[device_parts_device(facts->model, facts->refused->domain)].name;
}

static bool
is_taken_in_advance(const struct verdict_facts *facts, const char *taker)
{
	return verdict_is_device_request(facts) && verdict_is_preallocated(facts) &&
	       (facts->device.tensors == NULL || !verdict_is_device_growth_the_story(facts)) &&
	       (taker == NULL || strcmp(facts->device.part_count != 0 ? facts->device.parts[0].name : "", taker) == 0);
}

ADVICE_TEST(is_exception_kept, facts->kept_bytes != 0)
ADVICE_TEST(is_used_by_others,
            verdict_is_device_request(facts) && (verdict_is_held_by_others(facts) ||
                                                 (facts->device.device == NULL && !verdict_is_kept_by_pools(facts))))
ADVICE_TEST(is_kept_by_pools, verdict_is_device_request(facts) && verdict_is_kept_by_pools(facts) &&
                                  !verdict_is_device_growth_the_story(facts))
ADVICE_TEST(is_taken_by_jax, is_taken_in_advance(facts, "JAX"))
ADVICE_TEST(is_taken_by_tensorflow, is_taken_in_advance(facts, "TensorFlow"))
ADVICE_TEST(is_taken_by_another, is_taken_in_advance(facts, NULL))
ADVICE_TEST(is_in_pieces, verdict_is_device_request(facts) && verdict_is_device_fragmented(facts) &&
                              !verdict_is_device_growth_the_story(facts))
ADVICE_TEST(is_in_expandable_pieces,
            is_in_pieces(facts, verdict) && facts->model->processes[facts->refused->process].has_expandable_segments)
ADVICE_TEST(are_tensors_growing,
            verdict_is_device_request(facts) && verdict_does_device_grow(facts) && facts->device.tensors != NULL)
ADVICE_TEST(are_device_blocks_growing, verdict_is_device_request(facts) && verdict_does_device_grow(facts))
ADVICE_TEST(is_device_full, verdict_is_device_request(facts))

void
say_other_users(const char *device, struct verdict *verdict)
{
	bool is_hip = strncmp(device, "hip", 3) == 0;

	say_next(verdict, "see with %s what else uses %s, or take another device (%s)", is_hip ? "rocm-smi" : "nvidia-smi",
	         device, is_hip ? "HIP_VISIBLE_DEVICES" : "CUDA_VISIBLE_DEVICES");
}

static void
say_others(const struct verdict_facts *facts, struct verdict *verdict)
{
	say_other_users(refusing_device(facts), verdict);
}

static void
say_expandable(const struct verdict_facts *facts, struct verdict *verdict)
{
	say_next(
		verdict,
		"run with PYTORCH_ALLOC_CONF=expandable_segments:True (before PyTorch 2.9: PYTORCH_CUDA_ALLOC_CONF): then the %s that "
		"PyTorch had free in pieces can be used",
		UNITS_BYTES(facts->device.cache_bytes));
}

/* Those that are small pin a whole segment each. */
static void
say_lasting(const struct verdict_facts *facts, struct verdict *verdict)
{
	say_next(verdict, "expandable_segments is on already: ");
	for (size_t i = 0; i < facts->lasting_count; i++)
		say_next(verdict, "%s%s", i == 0 ? "make what lives long before the rest, at " : " and ",
		         verdict_line_text(&facts->lasting[i], PLACE_ROOM));
	say_next(verdict,
	         facts->lasting_count != 0
	             ? ", or give back what is free between two phases (torch.cuda.empty_cache())"
	             : "give back what is free between two phases (torch.cuda.empty_cache()), or ask for less at once");
}

static void
say_device_tensors(const struct verdict_facts *facts, struct verdict *verdict)
{
	say_tensors_kept(&facts->top_device, "", verdict);
}

const struct advice device_rows[] = {
	{ "release-exception", is_exception_kept,
	  .text = "let go of the exception before going on: leave the except block, keep no reference to it, in a notebook `import sys, gc; "
	          "sys.last_value = sys.last_traceback = sys.last_exc = None; gc.collect()`" },
	{ "see-other-users", is_used_by_others, .say = say_others },
	{ "trim-driver-pools", is_kept_by_pools,
	  .text = "give back what the driver's pools keep before such a request: cudaMemPoolTrimTo(pool, 0), or a smaller "
	          "cudaMemPoolAttrReleaseThreshold (RMM: release_threshold)" },
	{ "no-jax-preallocation", is_taken_by_jax,
	  .text = "JAX takes most of a device when it starts: XLA_PYTHON_CLIENT_PREALLOCATE=false shows what is really used, "
	          "XLA_PYTHON_CLIENT_MEM_FRACTION=.50 leaves room for others" },
	{ "no-tensorflow-preallocation", is_taken_by_tensorflow,
	  .text = "TensorFlow takes most of a device when it starts: TF_FORCE_GPU_ALLOW_GROWTH=true shows what is really used" },
	{ "preallocate-less", is_taken_by_another,
	  .text = "take less in advance at {device line}: a framework has a switch for that (vLLM: --gpu-memory-utilization; a memory pool: its initial size)" },
	{ "make-lasting-first", is_in_expandable_pieces, .say = say_lasting },
	{ "expandable-segments", is_in_pieces, .say = say_expandable },
	{ "release-tensors", are_tensors_growing, .say = say_device_tensors },
	{ "release-device-blocks", are_device_blocks_growing,
	  .text = "look for what keeps the blocks of {device line} alive" },
	{ "see-device-peak", is_device_full,
	  .text = "`kmemshim peak " VERDICT_CAPTURE " --domain {device}` shows which lines held it" },
	{ NULL, NULL, .say = NULL },
};
