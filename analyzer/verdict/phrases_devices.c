/*
 * phrases_devices.c - how is it said what filled a device, or was pinned for one?
 *
 * Of a device that refused a request; what a device held at another end is a domain (phrases_domains.c).
 *
 * When failing  it cannot; long texts are cut.
 */
#include "verdict/phrases.h"

#include <inttypes.h>

#include "base/units.h"
#include "verdict/words.h"

PHRASE_TEXT(
	PINNED,
	" In addition, {whole} of the host's memory was pinned by the GPU's driver. {bytes} of it was allocated at {where}.")
PHRASE_TEXT(
	PINNED_ROUNDED,
	" {bytes} of it is in blocks of powers of two: PyTorch rounds pinned memory up, to as much as twice of what was asked for.")
PHRASE_TEXT(DEVICE_FULL, " The device then had {bytes} free of {whole}.")

PHRASE(DEVICE_HELD)
{
	const struct device_parts *parts = &facts->device;
	const char *holder = facts->model->process_count == 1 ? "The process" : "Its processes, summed,";

	if (parts->device == NULL) {
		say(verdict, " %s held nothing there.", holder);
		return;
	}
	say(verdict, " %s held %s ", holder, UNITS_BYTES(finding->bytes));
	if (parts->tensors != NULL)
		say(verdict, "of %s", parts->device->name);
	else
		say(verdict, "there");
	/* Of several processes the figures are sums: the one that was refused need not be the one that filled the device. */
	if (facts->model->process_count > 1 && facts->refused->has_held)
		say(verdict, " (the one that was refused %s then)", UNITS_BYTES(facts->refused_held_bytes));
	if (parts->tensors != NULL)
		say(verdict, ", %s of it tensors", UNITS_BYTES(parts->tensor_bytes));
	say(verdict, ".");
}

PHRASE(DEVICE_ACCUMULATES)
{
	const struct rank_line *top = &finding->line;

	say(verdict, " It looks like a leak: ");
	say_generations(top, verdict);
	if (facts->growing_count > 1 && facts->growing_rounds != 0)
		say(verdict,
		    ". %zu lines grow together, by %s a round (%s rounds), as when a loss tensor is kept: it keeps its whole graph alive.",
		    facts->growing_count, UNITS_BYTES(finding->bytes / facts->growing_rounds),
		    UNITS_COUNT(facts->growing_rounds));
	else if (verdict_tells_pace(top))
		say(verdict,
		    top->allocated_count / 5 <= top->live_count / 4 ? "; it keeps %s each time it runs (%s blocks)."
		                                                    : ", %s each (%s blocks).",
		    UNITS_BYTES(top->live_bytes / top->live_count), UNITS_COUNT(top->live_count));
	else
		say(verdict, ".");
}

PHRASE(DEVICE_POOLS)
{
	say_finding(finding,
	            verdict_is_kept_by_pools(facts)
	                ? " Another {bytes} lay unused in the driver's pools (cudaMallocAsync): "
	                  "enough for the request, with what was free."
	                : " Another {bytes} lay unused in the driver's pools (cudaMallocAsync).",
	            verdict);
}

PHRASE(DEVICE_PREALLOCATED)
{
	if (finding->line.live_count == 1)
		say(verdict, " That is one block");
	else
		say(verdict, " Those are %" PRIu64 " blocks", finding->line.live_count);
	say_finding(finding,
	            finding->whole_bytes != 0 ? ", {share} of the device, as when a framework takes its memory in advance."
	                                      : ", as when a framework takes its memory in advance.",
	            verdict);
}

PHRASE(DEVICE_RETRIED)
{
	say(verdict,
	    " %zu earlier requests were met only after memory was given back: the device had been nearly full for longer.",
	    facts->retried_count);
}

PHRASE(DEVICE_REFUSED)
{
	say(verdict, " Its last request on the device, ");
	say_wanted(facts->model, facts->refused, verdict);
	say(verdict, ", was refused.");
}

PHRASE_TEXT(DEVICE_LINE, " {bytes} of that ({share}) was allocated at {where}.")
PHRASE_TEXT(DEVICE_CACHE,
            " Frameworks keep a cache between tensors and the driver: lines shown are where the cache grew.")
PHRASE_TEXT(
	DEVICE_KEPT,
	" {bytes} of the tensors were those of an earlier step, which was refused memory as well: often the traceback of its exception keeps them.")
PHRASE_TEXT(DEVICE_OTHERS,
            " {bytes} of what is in use there is not this program's: other processes, contexts, kernels.")
PHRASE(DEVICE_FRAGMENTED)
{
	say(verdict, " PyTorch's cache held another %s there, more than was asked for, but in pieces that were too small",
	    UNITS_BYTES(finding->bytes));
	for (size_t i = 0; i < facts->lasting_count; i++)
		say(verdict, "%s %s of %s", i == 0 ? ": between them lie tensors that live long," : " and",
		    UNITS_BYTES(facts->lasting[i].live_bytes), verdict_line_text(&facts->lasting[i], PLACE_ROOM));
	say(verdict, ".");
}
