/*
 * verdict_device.c - a device had no more memory: what filled it, how is that said, and what is the one thing to do?
 *
 * Each signature is one sentence and one action, tried from the most to the least telling: others hold the device; an exception's
 * traceback keeps tensors; tensors accumulate; the driver's pools keep what nobody uses; one request took most of it in advance; what is
 * free lies in pieces; pinned memory is rounded up.
 *
 * When failing  it cannot; long texts are cut.
 */
#include <inttypes.h>
#include <string.h>

#include "base/units.h"
#include "verdict/failed_requests.h"
#include "verdict/verdict_tell.h"

#define FRAGMENTED_PART 8 // of what PyTorch took: as much must lie idle before fragmentation is to blame
#define KEPT_PART 8       // of the tensors: as much must be left of an earlier refusal
// of the device: as much that pools keep is worth a sentence, even where it was not enough
#define POOLS_PART 8
#define CHURN 4      // allocations for each block that is alive: tensors of a step, not weights
#define ROUNDS_MIN 6 // lines that ran less often do not tell the pace
#define PREALLOCATED_BLOCKS 3
#define PINNED_PART 8                     // of the host's memory: less is not worth a sentence
#define ROUNDED_BYTES (UINT64_C(1) << 20) // smaller powers of two are what programs ask for themselves

static uint64_t
untracked_bytes(const struct verdict_facts *facts)
{
	uint64_t used = facts->refused->total_bytes - facts->refused->free_bytes;

	uint64_t known = facts->device.live_bytes + facts->refused->pool_kept_bytes;

	return used > known ? used - known : 0;
}

/* ---- facts ---- */

static void
gather_growth(struct verdict_facts *facts, const struct ranked *ranked)
{
	for (size_t i = 0; i < ranked->line_count; i++) {
		const struct rank_line *line = &ranked->lines[i];

		if (line->leak != MODEL_LEAK_LEAK)
			continue;
		facts->growing_count++;
		facts->growing_bytes += line->leaking_bytes;
		if (line->live_count >= ROUNDS_MIN && (facts->growing_rounds == 0 || line->live_count < facts->growing_rounds))
			facts->growing_rounds = line->live_count;
	}
}

/* What asked for it: a line of a framework says more than the user's line that called it, where an optimizer's state is made, too. */
static const struct model_frame *
innermost_python(const struct model_site *site)
{
	for (uint32_t i = 0; i < site->frame_count; i++) {
		if (site->frames[i]->kind == MODEL_FRAME_PYTHON)
			return site->frames[i];
	}
	return site->where;
}

/* Does its line make tensors and give them back, again and again? Those that it holds belong to a step, and are no weights. */
static bool
is_of_steps(const struct model *model, const struct model_held *held)
{
	const struct model_frame *line = innermost_python(held->site);
	uint64_t allocated_count = 0;

	for (size_t i = 0; i < model->site_count; i++) { // equal frames are one object
		if (model->sites[i].domain == held->site->domain && innermost_python(&model->sites[i]) == line)
			allocated_count += model->sites[i].allocated_count;
	}
	return held->site->leak != MODEL_LEAK_LEAK && allocated_count >= CHURN * held->live_count;
}

/* Of what was alive when PyTorch gave up before, and still was when it did so last: what a step alone needs. */
static void
gather_kept(struct verdict_facts *facts)
{
	const struct model *model = facts->model;
	const struct model_failed *last = NULL;
	uint64_t bytes = 0;

	for (size_t i = 0; i < model->failed_count; i++) {
		if (&model->processes[model->failed[i].process] == facts->process && model->failed[i].has_held &&
		    device_parts_is_tensors(model->domains[model->failed[i].domain].name))
			last = &model->failed[i];
	}
	for (size_t i = 0; last != NULL && i < last->held_count; i++) {
		const struct model_held *held = &last->held[i];

		if (held->kept_bytes != 0 && held->site->domain == last->domain && is_of_steps(model, held))
			bytes += held->kept_bytes;
	}
	if (last != NULL && bytes >= last->domain_bytes[last->domain] / KEPT_PART)
		facts->kept_bytes = bytes;
}

static bool
is_of_pytorch(const struct model_site *site)
{
	for (uint32_t i = 0; i < site->frame_count; i++) {
		if (strncmp(site->frames[i]->module, "libtorch", 8) == 0 || strncmp(site->frames[i]->module, "libc10", 6) == 0)
			return true;
	}
	return false;
}

static void
gather_pinned(struct verdict_facts *facts)
{
	const struct model *model = facts->model;
	const char *domain = "";
	struct ranked *ranked;

	for (size_t i = 0; i < model->site_count; i++) {
		const struct model_site *site = &model->sites[i];
		uint64_t block = site->live_count != 0 ? site->live_bytes / site->live_count : 0;

		if (!device_parts_is_pinned(model->domains[site->domain].name))
			continue;
		domain = model->domains[site->domain].name;
		facts->pinned_bytes += site->live_bytes;
		if (block >= ROUNDED_BYTES && (block & (block - 1)) == 0 && is_of_pytorch(site))
			facts->rounded_bytes += site->live_bytes;
	}
	if (facts->pinned_bytes == 0)
		return;
	ranked = rank_run(model, &rank_sites, domain);
	facts->top_pinned = ranked->lines[0];
	rank_free(ranked);
}

/* What was alive on the device that had no more. */
static void
gather_refused(const struct verdict_now *now, struct verdict_facts *facts)
{
	const struct model *model = facts->model;
	struct device_parts then;
	struct ranked *ranked;
	unsigned device;

	if (facts->refused == NULL)
		return;
	device = device_parts_device(model, facts->refused->domain);
	for (size_t i = 0; i < model->failed_count; i++)
		facts->retried_count += model->failed[i].process == facts->refused->process &&
		                        model->failed[i].outcome == KMEM_FAILED_GOT_ENOUGH &&
		                        strcmp(refusal_state(model, now, &model->failed[i]), "recovered") == 0;
	if (device_parts_of(model, device, facts->refused, &then))
		facts->refused_held_bytes = then.live_bytes;
	if (!device_parts_of(model, device, NULL, &facts->device)) {
		facts->device.device = NULL;
		return;
	}
	ranked = rank_run(model, &rank_sites,
	                  facts->device.tensors != NULL ? facts->device.tensors->name : facts->device.device->name);
	if (ranked->line_count != 0 && ranked->lines[0].live_bytes != 0)
		facts->top_device = ranked->lines[0];
	gather_growth(facts, ranked);
	rank_free(ranked);
}

void
verdict_device_gather(const struct verdict_now *now, struct verdict_facts *facts)
{
	gather_refused(now, facts);
	gather_kept(facts);
	gather_pinned(facts);
}

/* ---- which signature ---- */

static bool
is_held_by_others(const struct verdict_facts *facts)
{
	return facts->refused->total_bytes != 0 && untracked_bytes(facts) > facts->refused->total_bytes / 2 &&
	       untracked_bytes(facts) > facts->device.live_bytes;
}

/* What pools keep for what they are asked next would have been enough. */
static bool
is_kept_by_pools(const struct verdict_facts *facts)
{
	return facts->refused->pool_kept_bytes != 0 &&
	       facts->refused->pool_kept_bytes + facts->refused->free_bytes >= facts->refused->bytes;
}

static bool
is_growing(const struct verdict_facts *facts)
{
	return facts->top_device.leak == MODEL_LEAK_LEAK;
}

static bool
is_growth_the_story(const struct verdict_facts *facts)
{
	return is_growing(facts) && facts->growing_bytes >= facts->device.live_bytes / 3 * 2;
}

static bool
is_fragmented(const struct verdict_facts *facts)
{
	return facts->device.tensors != NULL && facts->device.cache_bytes >= facts->refused->bytes &&
	       facts->device.cache_bytes >= facts->device.live_bytes / FRAGMENTED_PART;
}

/* A few blocks that are most of the device. */
static bool
is_preallocated(const struct verdict_facts *facts)
{
	const struct rank_line *top = &facts->top_device;
	uint64_t whole = facts->refused->total_bytes != 0 ? facts->refused->total_bytes : facts->device.live_bytes;

	return top->site_count != 0 && top->live_count <= PREALLOCATED_BLOCKS && top->live_bytes >= whole / 10 * 7;
}

/* ---- sentences ---- */

static void
say_growth(const struct verdict_facts *facts, struct verdict *verdict)
{
	const struct rank_line *top = &facts->top_device;
	char bytes[UNITS_TEXT_BYTES];
	char rounds[UNITS_TEXT_BYTES];

	say(verdict, " It accumulates: blocks from %" PRIu32 " of %" PRIu32 " generations are still alive",
	    top->telling->generations_alive, top->telling->generations_total);
	if (facts->growing_count > 1 && facts->growing_rounds != 0)
		say(verdict,
		    ". %zu lines grow together, by %s a round (%s rounds): a loss that is kept keeps all that it was made of.",
		    facts->growing_count, units_bytes(facts->growing_bytes / facts->growing_rounds, bytes),
		    units_count(facts->growing_rounds, rounds));
	else if (top->live_count >= ROUNDS_MIN)
		say(verdict, ", %s %s (%s blocks).", units_bytes(top->live_bytes / top->live_count, bytes),
		    top->allocated_count / 5 <= top->live_count / 4 ? "each time it runs" : "each",
		    units_count(top->live_count, rounds));
	else
		say(verdict, ".");
}

/* "; 58.0 MiB of that (97 %) was allocated at train.py:41 step." and how it grew. */
static void
say_holder(const struct verdict_facts *facts, uint64_t whole_bytes, struct verdict *verdict)
{
	const struct rank_line *top = &facts->top_device;
	char held[UNITS_TEXT_BYTES];
	char share[UNITS_TEXT_BYTES];
	char place[PLACE_TEXT_BYTES];

	if (top->site_count == 0) {
		say(verdict, ".");
		return;
	}
	say(verdict, "; %s of that (%s) was allocated at %s.", units_bytes(top->live_bytes, held),
	    units_share(verdict_share(top->live_bytes, whole_bytes), share), verdict_line_text(top, place));
	if (is_growing(facts))
		say_growth(facts, verdict);
}

/* Of several processes the figures are sums: the one that was refused need not be the one that filled the device. */
static void
say_own(const struct verdict_facts *facts, struct verdict *verdict)
{
	char held[UNITS_TEXT_BYTES];

	if (facts->model->process_count > 1 && facts->refused->has_held)
		say(verdict, " (the one that was refused %s then)", units_bytes(facts->refused_held_bytes, held));
}

static void
say_kept(const struct verdict_facts *facts, struct verdict *verdict)
{
	char bytes[UNITS_TEXT_BYTES];

	if (facts->kept_bytes != 0)
		say(verdict,
		    " %s of the tensors were those of an earlier step, which was refused memory as well: often the traceback of its "
		    "exception keeps them.",
		    units_bytes(facts->kept_bytes, bytes));
}

static void
say_pools(const struct verdict_facts *facts, struct verdict *verdict)
{
	const struct model_failed *refused = facts->refused;
	char bytes[UNITS_TEXT_BYTES];

	if (is_kept_by_pools(facts) || refused->pool_kept_bytes > refused->total_bytes / POOLS_PART)
		say(verdict, " Another %s lay unused in the driver's pools (cudaMallocAsync)%s.",
		    units_bytes(refused->pool_kept_bytes, bytes),
		    is_kept_by_pools(facts) ? ": enough for the request, with what was free" : "");
}

static void
say_preallocated(const struct verdict_facts *facts, struct verdict *verdict)
{
	const struct rank_line *top = &facts->top_device;
	char share[UNITS_TEXT_BYTES];

	say(verdict, top->live_count == 1 ? " That is one block" : " Those are %" PRIu64 " blocks", top->live_count);
	if (facts->refused->total_bytes != 0)
		say(verdict, ", %s of the device",
		    units_share(verdict_share(top->live_bytes, facts->refused->total_bytes), share));
	say(verdict, ", as when a framework takes its memory in advance.");
}

void
verdict_tell_device_memory(const struct verdict_facts *facts, struct verdict *verdict)
{
	const struct device_parts *parts = &facts->device;
	const struct model_failed *refused = facts->refused;
	const char *holder = facts->model->process_count == 1 ? "The process" : "Its processes, summed,";
	char held[UNITS_TEXT_BYTES];
	char taken[UNITS_TEXT_BYTES];

	verdict_say_ending(facts, verdict);
	say(verdict, " after ");
	verdict_say_refusal(facts, verdict);
	say(verdict, " by the driver (%s).", verdict->confidence);
	if (refused->total_bytes != 0)
		say(verdict, " The device then had %s free of %s.", units_bytes(refused->free_bytes, held),
		    units_bytes(refused->total_bytes, taken));
	if (parts->device == NULL) {
		say(verdict, " %s held nothing there.", holder);
	} else if (parts->tensors != NULL) {
		say(verdict, " %s held %s of %s", holder, units_bytes(parts->live_bytes, taken), parts->device->name);
		say_own(facts, verdict);
		say(verdict, ", tensors %s", units_bytes(parts->tensor_bytes, held));
		say_holder(facts, parts->tensor_bytes, verdict);
	} else {
		say(verdict, " %s held %s there", holder, units_bytes(parts->live_bytes, held));
		say_own(facts, verdict);
		say_holder(facts, parts->live_bytes, verdict);
		if (!is_preallocated(facts) && facts->process->python_version != 0)
			say(verdict,
			    " Frameworks keep a cache between tensors and the driver, so lines shown are where the cache grew.");
	}
	say_kept(facts, verdict);
	say_pools(facts, verdict);
	if (is_held_by_others(facts))
		say(verdict, " %s of what is in use there is not this program's: other processes, contexts, kernels.",
		    units_bytes(untracked_bytes(facts), held));
	else if (parts->device != NULL && is_preallocated(facts))
		say_preallocated(facts, verdict);
	else if (parts->device != NULL && is_fragmented(facts) && !is_growth_the_story(facts))
		say(verdict,
		    " PyTorch's cache held another %s there, more than was asked for, but in pieces that were too small.",
		    units_bytes(parts->cache_bytes, held));
	if (facts->retried_count != 0)
		say(verdict,
		    " %zu requests before it were met after others were given up: the device was nearly full for longer.",
		    facts->retried_count);
}

void
verdict_tell_device_alive(const struct verdict_facts *facts, struct verdict *verdict)
{
	if (facts->refused != NULL && verdict_is_device_request(facts)) {
		say(verdict, " Last, ");
		verdict_say_refusal(facts, verdict);
		say(verdict, ", and nothing was done there since.");
	}
	say_kept(facts, verdict);
}

void
verdict_tell_pinned(const struct verdict_facts *facts, struct verdict *verdict)
{
	char pinned[UNITS_TEXT_BYTES];
	char bytes[UNITS_TEXT_BYTES];
	char place[PLACE_TEXT_BYTES];

	if (facts->pinned_bytes <= (facts->live_bytes + facts->pinned_bytes) / PINNED_PART)
		return;
	say(verdict, " Beside that, %s of the host's memory was pinned by the GPU's driver; %s of it was allocated at %s.",
	    units_bytes(facts->pinned_bytes, pinned), units_bytes(facts->top_pinned.live_bytes, bytes),
	    verdict_line_text(&facts->top_pinned, place));
	if (facts->rounded_bytes != 0)
		say(verdict,
		    " %s of it is in blocks of powers of two: PyTorch rounds pinned memory up, to as much as twice of what was asked for.",
		    units_bytes(facts->rounded_bytes, bytes));
}

/* ---- actions ---- */

static const char
	jax[] = "JAX takes most of a device when it starts: XLA_PYTHON_CLIENT_PREALLOCATE=false shows what is really used, "
			"XLA_PYTHON_CLIENT_MEM_FRACTION=.50 leaves room for others";
static const char tensorflow
	[] = "TensorFlow takes most of a device when it starts: TF_FORCE_GPU_ALLOW_GROWTH=true shows what is really used";
static const char let_go
	[] = "let go of the exception before going on: leave the except block, keep no reference to it, in a notebook `import sys, gc; "
		 "sys.last_value = sys.last_traceback = sys.last_exc = None; gc.collect()`";

static void
advise_preallocated(const struct verdict_facts *facts, struct verdict *verdict)
{
	const char *taker = facts->device.part_count != 0 ? facts->device.parts[0].name : "";
	char place[PLACE_TEXT_BYTES];

	if (strcmp(taker, "JAX") == 0)
		say_next(verdict, "%s", jax);
	else if (strcmp(taker, "TensorFlow") == 0)
		say_next(verdict, "%s", tensorflow);
	else
		say_next(
			verdict,
			"take less in advance at %s: a framework has a switch for that (vLLM: --gpu-memory-utilization, a memory pool: "
			"its initial size)",
			verdict_line_text(&facts->top_device, place));
}

void
verdict_advise_others(const char *device, struct verdict *verdict)
{
	bool is_hip = strncmp(device, "hip", 3) == 0;

	say_next(verdict, "see with %s what else uses %s, or take another device (%s)", is_hip ? "rocm-smi" : "nvidia-smi",
	         device, is_hip ? "HIP_VISIBLE_DEVICES" : "CUDA_VISIBLE_DEVICES");
}

bool
verdict_advise_device(const struct verdict_facts *facts, struct verdict *verdict)
{
	const struct rank_line *top = &facts->top_device;
	const char *device;
	char bytes[UNITS_TEXT_BYTES];
	char place[PLACE_TEXT_BYTES];

	if (facts->kept_bytes != 0) {
		say_next(verdict, "%s", let_go);
		return true;
	}
	if (!verdict_is_device_request(facts))
		return false;
	device = facts->model->domains[device_parts_device(facts->model, facts->refused->domain)].name;
	if (is_held_by_others(facts) || (facts->device.device == NULL && !is_kept_by_pools(facts)))
		verdict_advise_others(device, verdict);
	else if (is_kept_by_pools(facts) && !is_growth_the_story(facts))
		say_next(
			verdict,
			"give back what the driver's pools keep before such a request: cudaMemPoolTrimTo(pool, 0), or a smaller "
			"cudaMemPoolAttrReleaseThreshold (RMM: release_threshold)");
	else if (is_preallocated(facts) && (facts->device.tensors == NULL || !is_growth_the_story(facts)))
		advise_preallocated(facts, verdict);
	else if (is_fragmented(facts) && !is_growth_the_story(facts))
		say_next(
			verdict,
			"run with PYTORCH_ALLOC_CONF=expandable_segments:True (before 2.9: PYTORCH_CUDA_ALLOC_CONF): then the %s that "
			"PyTorch had free in pieces can be used",
			units_bytes(facts->device.cache_bytes, bytes));
	else if (is_growing(facts) && facts->device.tensors != NULL)
		say_next(verdict, "look for what keeps the tensors of %s alive" VERDICT_TENSORS_KEPT,
		         verdict_line_text(top, place));
	else if (is_growing(facts))
		say_next(verdict, "look for what keeps the blocks of %s alive", verdict_line_text(top, place));
	else if (facts->end == VERDICT_END_RUNNING)
		return false;
	else
		say_next(verdict, "`kmemshim peak " VERDICT_CAPTURE " --domain %s` shows who held it", device);
	return true;
}

bool
verdict_advise_pinned(const struct verdict_facts *facts, struct verdict *verdict)
{
	bool is_refused = facts->refused != NULL &&
	                  device_parts_is_pinned(facts->model->domains[facts->refused->domain].name);
	char place[PLACE_TEXT_BYTES];

	if (facts->top_pinned.site_count == 0 || (!is_refused && facts->pinned_bytes <= facts->live_bytes))
		return false;
	if (facts->rounded_bytes > facts->pinned_bytes / 2)
		say_next(
			verdict,
			"pin pieces just below a power of two at %s, or run with PYTORCH_ALLOC_CONF=pinned_max_round_threshold_mb:1 "
			"(PyTorch of 2026 and later)",
			verdict_line_text(&facts->top_pinned, place));
	else
		say_next(verdict,
		         "pin less of the host's memory at %s: fewer workers or smaller batches with pin_memory, or none",
		         verdict_line_text(&facts->top_pinned, place));
	return true;
}
