/*
 * model.c - short questions about a model (see model.h).
 */
#include "model/model.h"

#include <math.h>
#include <string.h>

#include "base/items.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/text_pool.h"
#include "base/units.h"
#include "model/frame_rules.h"

#define UNRECORDED_WORTH_BYTES (UINT64_C(1) << 20)

const char *
model_file_on_disk(const struct model *model, const char *file)
{
	return model->texts != NULL ? text_pool_original(model->texts, file) : file;
}

/*
 * A sample is a draw with a small probability, so their number is Poisson's: of k it is off by 1.96 sqrt(k) in 95 of 100 cases. For
 * few, the upper half of the score interval, which is the wider one: k + 1.92 + 1.96 sqrt(k + 0.96).
 */
uint64_t
model_estimate_error(uint64_t sample_bytes, uint64_t bytes)
{
	if (sample_bytes == 0 || bytes == 0)
		return 0;

	double samples = (double)bytes / (double)sample_bytes;

	return (uint64_t)((1.92 + 1.96 * sqrt(samples + 0.96)) * (double)sample_bytes);
}

uint64_t
model_sample_bytes(const struct model *model, enum domain_kind kind)
{
	return kind == DOMAIN_PYTHON_OBJECT ? model->sample_bytes
	       : kind == DOMAIN_HEAP_SAMPLE ? model->heap_sample_bytes
	                                    : 0;
}

uint64_t
model_site_peak(const struct model_site *site)
{
	return site->peak_bytes;
}

uint64_t
model_site_live(const struct model_site *site)
{
	return site->live_bytes;
}

/*
 * The thread's own Python frames are all of libraries. The frames that were given to it begin behind them, at the first one that is not.
 */
static enum model_relation
relation_behind_library(const struct model_site *site, uint32_t frame_index)
{
	uint32_t given = 0;

	while (given < frame_index && (site->frames[given]->kind != MODEL_FRAME_PYTHON || site->frames[given]->is_library))
		given++;
	if (site->frames[given]->kind != MODEL_FRAME_PYTHON || site->frames[given]->is_library)
		return MODEL_RELATION_OWN;
	return given == frame_index && (site->stack_flags & KMEM_STACK_WHILE) != 0 ? MODEL_RELATION_WHILE
	                                                                           : MODEL_RELATION_STARTED_BY;
}

const struct kmem_heartbeat *
model_last_beat(const struct model_process *process)
{
	return process->heartbeat_count != 0 ? &process->heartbeats[process->heartbeat_count - 1] : NULL;
}

bool
model_was_nearly_full(const struct model_process *process)
{
	const struct kmem_heartbeat *last = model_last_beat(process);

	return last != NULL && last->cgroup_bytes != 0 && last->limit_bytes != UINT64_MAX &&
	       last->cgroup_bytes >= last->limit_bytes / 4 * 3;
}

const char *
model_damage_text(const struct model *model, char text[MODEL_DAMAGE_BYTES])
{
	if (model->damaged_places <= model->under_way_count)
		return memory_text_in(text, MODEL_DAMAGE_BYTES, "%s; all was read", model->damages[0]);
	return memory_text_in(text, MODEL_DAMAGE_BYTES, "%s; %zu damaged place%s in total, the rest was read",
	                      model->damages[0], model->damaged_places, UNITS_S(model->damaged_places));
}

uint64_t
model_last_seen_ns(const struct model_process *process)
{
	const struct kmem_heartbeat *last = model_last_beat(process);

	return last != NULL ? last->monotonic_ns : 0;
}

uint64_t
model_ended_ns(const struct model_process *process)
{
	const struct kmem_launcher *launcher = process->launcher;
	const struct kmem_identity *identity = process->identity;

	if (process->ended_monotonic_ns != 0)
		return process->ended_monotonic_ns;
	if (launcher == NULL || launcher->ended_realtime_ns <= identity->start_realtime_ns)
		return 0;
	return identity->start_monotonic_ns + (launcher->ended_realtime_ns - identity->start_realtime_ns);
}

enum model_relation
model_relation_of(const struct model_site *site, uint32_t frame_index)
{
	const unsigned given = KMEM_STACK_WHILE | KMEM_STACK_STARTED_BY;

	if ((site->stack_flags & given) == 0 || site->frames[frame_index]->kind != MODEL_FRAME_PYTHON)
		return MODEL_RELATION_OWN;
	if ((site->stack_flags & KMEM_STACK_LIBRARY_ONLY) != 0)
		return relation_behind_library(site, frame_index);
	/* The frames that were given stand behind all native ones. */
	if ((site->stack_flags & KMEM_STACK_WHILE) != 0 &&
	    (frame_index == 0 || site->frames[frame_index - 1]->kind != MODEL_FRAME_PYTHON))
		return MODEL_RELATION_WHILE;
	return MODEL_RELATION_STARTED_BY;
}

const struct model_frame *
model_entered_package(const struct model_site *site)
{
	const struct model_frame *package = NULL;
	enum frame_origin direct = FRAME_ORIGIN_USER;
	char name[FRAME_RULES_NAME_BYTES];

	for (uint32_t i = 0; i < site->frame_count && site->frames[i] != site->where; i++) {
		if (site->frames[i]->kind != MODEL_FRAME_PYTHON)
			continue;
		direct = frame_rules_origin(site->frames[i], name);
		package = direct == FRAME_ORIGIN_PACKAGE ? site->frames[i] : package;
	}
	return direct == FRAME_ORIGIN_STANDARD_LIBRARY ? package : NULL;
}

int
model_compare_functions(const struct model_frame *left, const struct model_frame *right)
{
	return order_texts(left->function, right->function)
	           ?: order_texts(left->module, right->module) ?: order_numbers(left->first_line, right->first_line);
}

const struct model_frame *
model_caller_of(const struct model_site *site)
{
	bool is_past = false;

	for (uint32_t i = 0; i < site->frame_count; i++) {
		const struct model_frame *frame = site->frames[i];

		if (is_past && frame->is_user && frame->function[0] != '\0' &&
		    model_relation_of(site, i) == MODEL_RELATION_OWN && model_compare_functions(frame, site->where) != 0)
			return frame;
		is_past = is_past || frame == site->where;
	}
	return NULL;
}

uint64_t
model_unrecorded_bytes(const struct model *model)
{
	uint64_t bytes = SUM_OF(process, model->processes, model->process_count, process->losses[KMEM_LOST_EVENT_BYTES]);
	uint64_t peak_bytes = SUM_OF(process, model->processes, model->process_count, process->peak_bytes);

	return bytes >= UNRECORDED_WORTH_BYTES && bytes >= peak_bytes / 32 ? bytes : 0;
}

bool
model_could_not_grow(const struct model *model)
{
	return ANY(process, model->processes, model->process_count, process->losses[KMEM_LOST_GROWTH] != 0);
}

NAMES_OF(model_relation_name, [MODEL_RELATION_OWN] = "", [MODEL_RELATION_WHILE] = "while",
         [MODEL_RELATION_STARTED_BY] = "started by")

static const struct leak_row {
	const char *name;
	unsigned weight;
} leak_rows[] = {
#define ROW(class, ...) [MODEL_LEAK_##class] = { __VA_ARGS__ },
	MODEL_LEAK_ROWS(ROW)
#undef ROW
};

const char *
model_leak_name(unsigned leak)
{
	return leak < MODEL_LEAK_CLASSES ? leak_rows[leak].name : NULL;
}

enum model_leak_class
model_leak_named(const char *name)
{
	enum model_leak_class leak = MODEL_LEAK_NONE;

	while (leak < MODEL_LEAK_CLASSES && strcmp(leak_rows[leak].name, name) != 0)
		leak++;
	return leak;
}

bool
model_leak_is_more_telling(enum model_leak_class leak, enum model_leak_class than)
{
	return leak_rows[leak].weight > leak_rows[than].weight;
}
