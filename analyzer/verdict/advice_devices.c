/*
 * advice_devices.c - what is the one thing to do where a device refused a request (see advice_rows.h)?
 */
#include <string.h>

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

const struct advice device_rows[] = {
	{ "release-exception", is_exception_kept,
	  .text = "let go of the exception before going on: leave the except block, keep no reference to it, in a notebook `import sys, gc; "
	          "sys.last_value = sys.last_traceback = sys.last_exc = None; gc.collect()`" },
	{ "see-other-users", is_used_by_others, .text = "{other_users}" },
	{ "trim-driver-pools", is_kept_by_pools,
	  .text = "give back what the driver's pools keep before such a request: cudaMemPoolTrimTo(pool, 0), or a smaller "
	          "cudaMemPoolAttrReleaseThreshold (RMM: release_threshold)" },
	{ "no-jax-preallocation", is_taken_by_jax,
	  .text = "JAX takes most of a device when it starts: XLA_PYTHON_CLIENT_PREALLOCATE=false shows what is really used, "
	          "XLA_PYTHON_CLIENT_MEM_FRACTION=.50 leaves room for others" },
	{ "no-tensorflow-preallocation", is_taken_by_tensorflow,
	  .text = "TensorFlow takes most of a device when it starts: TF_FORCE_GPU_ALLOW_GROWTH=true shows what is really used" },
	{ "preallocate-less", is_taken_by_another,
	  .text = "take less in advance at {device_line}: a framework has a switch for that (vLLM: --gpu-memory-utilization; a memory pool: its initial size)" },
	{ "make-lasting-first", is_in_expandable_pieces,
	  .text = "expandable_segments is on already: [make what lives long before the rest, at {lasting_lines}, or ]"
	          "give back what is free between two phases (torch.cuda.empty_cache())[{!lasting_lines}, or ask for less at once]" },
	{ "expandable-segments", is_in_pieces,
	  .text = "run with PYTORCH_ALLOC_CONF=expandable_segments:True (before PyTorch 2.9: PYTORCH_CUDA_ALLOC_CONF): then the {cache} that "
	          "PyTorch had free in pieces can be used" },
	{ "release-tensors", are_tensors_growing, .kept_line = offsetof(struct verdict_facts, top_device) },
	{ "release-device-blocks", are_device_blocks_growing,
	  .text = "look for what keeps the blocks of {device_line} alive" },
	{ "see-device-peak", is_device_full,
	  .text = "`kmemshim peak {capture} --domain {refusing_device}` shows which lines held it" },
	{ NULL, NULL, .say = NULL },
};
