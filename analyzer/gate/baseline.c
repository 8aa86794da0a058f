/*
 * baseline.c - reduces runs to figures; baseline_file.c keeps them.
 *
 * When failing  it cannot.
 */
#include "gate/baseline.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/rank.h"
#include "base/items.h"
#include "base/machine.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/shell_words.h"
#include "base/sorted.h"
#include "base/text_clean.h"
#include "model/site_key.h"

/* One site family, or one domain (family 0), in one run. */
struct sample {
	struct baseline_site of; // without what is counted over runs
	uint64_t largest_bytes;  // of the site that of.where is from
	uint64_t step_bytes;
	uint64_t elsewhere_bytes; // of a domain
	uint64_t run;
	uint64_t live_bytes;
	uint64_t peak_bytes;
};

struct baseline_builder {
	struct baseline *of;         // without rows until all runs are there
	const struct config *config; // NULL = nobody watches
	struct sample *samples;
	size_t count;
};

ORDER_OF(compare_samples, struct sample,
	order_numbers(a->of.family, b->of.family) ?: (a->of.family == 0 ? strcmp(a->of.domain, b->of.domain) : 0)
	?: order_numbers(a->run, b->run))

static bool
is_same_row(const struct sample *left, const struct sample *right)
{
	return left->of.family == right->of.family &&
	       (left->of.family != 0 || strcmp(left->of.domain, right->of.domain) == 0);
}

/* What holds of a sibling, or in a run, holds of the whole. A leak outweighs all else; what an import left is only that when all agree. */
static void
join(struct sample *to, const struct sample *from)
{
	if (from->largest_bytes > to->largest_bytes) {
		to->largest_bytes = from->largest_bytes;
		memcpy(to->of.where, from->of.where, sizeof(to->of.where));
		to->of.file = from->of.file;
		to->of.line = from->of.line;
	}
	if (from->of.growing.bytes > to->of.growing.bytes)
		to->of.growing = from->of.growing;
	to->of.suppression = to->of.suppression != 0 ? to->of.suppression : from->of.suppression;
	if (model_leak_is_more_telling(from->of.leak, to->of.leak))
		to->of.leak = from->of.leak;
	to->of.is_elsewhere = to->of.is_elsewhere || from->of.is_elsewhere;
	to->of.may_accumulate = to->of.may_accumulate || from->of.may_accumulate;
	to->of.has_accumulated = to->of.has_accumulated || from->of.has_accumulated;
}

struct baseline_builder *
baseline_begin(void)
{
	struct baseline_builder *builder = memory_zeroed(1, sizeof(*builder));

	builder->of = memory_zeroed(1, sizeof(*builder->of));
	builder->of->texts = text_pool_new();
	builder->of->command = "";
	return builder;
}

static struct sample *
add_sample(struct baseline_builder *builder)
{
	struct sample *sample = MEMORY_NEXT(builder->samples, builder->count);

	*sample = (struct sample){ .run = builder->of->run_count, .of.file = "", .of.growing.file = "" };
	return sample;
}

/* Adds the siblings of a family into one sample; samples of this run start at `first` and are sorted. */
static void
merge_siblings(struct baseline_builder *builder, size_t first)
{
	size_t kept = first;

	for (size_t i = first; i < builder->count; i++) {
		struct sample *to = &builder->samples[kept];
		const struct sample *from = &builder->samples[i];

		if (i == first || !is_same_row(to, from)) {
			kept += i != first;
			builder->samples[kept] = *from;
			continue;
		}
		join(to, from);
		to->live_bytes += from->live_bytes;
		to->peak_bytes += from->peak_bytes;
		to->step_bytes += from->step_bytes;
	}
	builder->count = builder->count > first ? kept + 1 : kept;
}

const char *
baseline_builder_program(const struct baseline_builder *builder)
{
	return builder->of->program;
}

const char *
baseline_program(const struct model *model, char program[BASELINE_PROGRAM_BYTES])
{
	const char *name = model->processes[0].name;
	size_t versionless = strlen("python");

	if (strncmp(name, "python", versionless) != 0 ||
	    strspn(name + versionless, "0123456789.t") != strlen(name + versionless))
		versionless = BASELINE_PROGRAM_BYTES - 1;
	(void)snprintf(program, BASELINE_PROGRAM_BYTES, "%.*s", (int)versionless, name);
	(void)text_clean(program, strlen(program));
	return program;
}

void
baseline_watch(struct baseline_builder *builder, const struct config *config)
{
	builder->config = config;
}

/* By a function, file or module of any frame, or by the line itself as it is written. */
static size_t
suppression_of(const struct baseline_builder *builder, const struct model_site *site, const char *where)
{
	size_t found = builder->config != NULL && builder->config->suppression_count != 0
	                   ? config_suppressed_by(builder->config, where)
	                   : SIZE_MAX;

	if (builder->config == NULL || builder->config->suppression_count == 0)
		return 0;
	for (uint32_t i = 0; i < site->frame_count && found == SIZE_MAX; i++) {
		const char *const texts[] = { site->frames[i]->function, site->frames[i]->file, site->frames[i]->module };

		for (size_t k = 0; k < COUNT_OF(texts) && found == SIZE_MAX; k++)
			found = texts[k][0] != '\0' ? config_suppressed_by(builder->config, texts[k]) : SIZE_MAX;
	}
	return found + 1; // SIZE_MAX is 0
}

/* Of the process that made most steps: the others are its helpers. */
static uint64_t
steps_of(const struct model *model)
{
	return MOST_OF(process, model->processes, model->process_count,
	               process->steps.source != KMEM_STEPS_NONE ? process->steps.count : 0);
}

/* The most generations that one of its lines has seen: with too few, no line can be called a leak. */
static uint64_t
generations_of(const struct model *model)
{
	return MOST_OF(site, model->sites, model->site_count, site->generations_total);
}

static bool
is_growing(const struct model_site *site)
{
	return site->leak == MODEL_LEAK_LEAK || rank_may_accumulate(site) || rank_has_accumulated(site);
}

/*
 * A line that grows keeps this much in each step since it began; a line that was built once keeps none. Most rounds of a quick loop are
 * missed: where the rounds were only recognised, a line is taken to keep one block in each, so that missed rounds fail no check.
 */
static uint64_t
step_bytes_of(const struct model_site *site, uint64_t steps, bool is_recognised)
{
	uint64_t own_steps = site->steps != 0 ? site->steps : steps;

	if (is_recognised && own_steps != 0 && own_steps < site->live_count)
		own_steps = site->live_count;

	return is_growing(site) && own_steps != 0 ? site->live_bytes / own_steps : 0;
}

/* To be called when the sample has its own place. */
static void
note_growing(struct baseline_site *of, const struct model_site *site)
{
	if (!is_growing(site))
		return;
	memcpy(of->growing.where, of->where, sizeof(of->where));
	of->growing.file = of->file;
	of->growing.line = of->line;
	of->growing.bytes = site->live_bytes;
}

static const char *
command_of(struct baseline_builder *builder, const struct kmem_identity *identity)
{
	OWNED char *joined = shell_words_join(identity->command, identity->command_bytes);
	const char *command = text_pool_add_text(builder->of->texts, joined);

	return command;
}

void
baseline_add_run(struct baseline_builder *builder, struct finished_model finished)
{
	const struct model *model = finished.model;
	size_t first = builder->count;
	uint64_t steps = steps_of(model);

	if (builder->of->run_count == 0 || generations_of(model) < builder->of->generations)
		builder->of->generations = generations_of(model);
	builder->of->steps = builder->of->run_count == 0 || steps < builder->of->steps ? steps : builder->of->steps;
	builder->of->heap_sample_bytes = amount_greater(builder->of->heap_sample_bytes, model->heap_sample_bytes);
	(void)baseline_program(model, builder->of->program);
	if (builder->of->run_count == 0)
		builder->of->command = command_of(builder, model->processes[0].identity);
	for (size_t i = 0; i < model->process_count && builder->of->python_version[0] == '\0'; i++) {
		uint32_t version = model->processes[i].python_version;

		if (version != 0)
			(void)snprintf(builder->of->python_version, sizeof(builder->of->python_version),
			               "%" PRIu32 ".%" PRIu32 ".%" PRIu32, version >> 24, version >> 16 & 0xff,
			               version >> 8 & 0xff);
	}
	for (size_t i = 0; i < model->domain_count; i++) {
		struct sample *sample = add_sample(builder);

		(void)snprintf(sample->of.domain, sizeof(sample->of.domain), "%s", model->domains[i].name);
		sample->live_bytes = model->domains[i].live_bytes;
		sample->peak_bytes = model->domains[i].peak_bytes;
		sample->of.domain_kind = model->domains[i].id.kind;
		sample->elsewhere_bytes = rank_elsewhere_bytes(model, &model->domains[i]);
	}
	EACH (site, model->sites, model->site_count) {
		const struct model_frame *where = site->where;

		if (site->live_bytes == 0 && site->peak_bytes == 0)
			continue;

		struct sample *sample = add_sample(builder);

		sample->of.family = site_key_family(site->key);
		(void)snprintf(sample->of.domain, sizeof(sample->of.domain), "%s", model->domains[site->domain].name);
		(void)place_text(where != NULL ? where->file : "", where != NULL ? where->line : 0,
		                 where != NULL ? where->function : "", where != NULL ? where->module : "", 0, sample->of.where);
		sample->largest_bytes = site->live_bytes > site->peak_bytes ? site->live_bytes : site->peak_bytes;
		sample->of.domain_kind = model->domains[site->domain].id.kind;
		sample->of.leak = site->leak;
		sample->of.is_elsewhere = rank_is_elsewhere(model, site);
		sample->of.may_accumulate = rank_may_accumulate(site);
		sample->of.has_accumulated = rank_has_accumulated(site);
		sample->of.file = text_pool_add_text(builder->of->texts, where != NULL ? where->file : "");
		sample->of.line = where != NULL ? where->line : 0;
		sample->of.suppression = suppression_of(builder, site, sample->of.where);
		sample->step_bytes = step_bytes_of(site, steps,
		                                   model->processes[site->process].steps.source == KMEM_STEPS_LOOP);
		note_growing(&sample->of, site);
		site_key_likeness(site, sample->of.domain, sample->of.likeness);
		sample->live_bytes = site->live_bytes;
		sample->peak_bytes = site->peak_bytes;
	}
	SORT(builder->samples + first, builder->count - first, compare_samples);
	merge_siblings(builder, first);
	builder->of->run_count++;
}

ORDER_OF(compare_numbers, uint64_t, order_numbers(*a, *b))

/* numbers: one per run, those without a value are 0; sorted in place. */
static struct baseline_figure
figure_of(uint64_t *numbers, uint64_t count)
{
	SORT(numbers, count, compare_numbers);
	return (struct baseline_figure){ numbers[0], numbers[(count - 1) / 2], numbers[count - 1] };
}

/* One row from the samples [first, end): one of each run that had the site. */
static struct baseline_site
reduce(const struct sample *first, const struct sample *end, uint64_t runs)
{
	struct sample sum = *first;
	OWNED uint64_t *live = memory_zeroed(runs, sizeof(*live));
	OWNED uint64_t *peak = memory_zeroed(runs, sizeof(*peak));
	OWNED uint64_t *step = memory_zeroed(runs, sizeof(*step));

	for (const struct sample *sample = first; sample < end; sample++) {
		live[sample->run] = sample->live_bytes;
		peak[sample->run] = sample->peak_bytes;
		step[sample->run] = sample->step_bytes;
		join(&sum, sample);
	}

	struct baseline_site row = sum.of;

	row.run_count = (uint64_t)(end - first);
	row.live_bytes = figure_of(live, runs);
	row.peak_bytes = figure_of(peak, runs);
	row.step_bytes = figure_of(step, runs);
	return row;
}

/* The recorder runs on one kind of processor. Versions of Python differ where the minor number does. */
static void
set_platform(struct baseline *baseline)
{
	const char *version = baseline->python_version;
	const char *dot = strchr(version, '.');
	size_t length = dot != NULL ? (size_t)(dot - version) + 1 + strspn(dot + 1, "0123456789") : 0;

	if (length == 0)
		(void)snprintf(baseline->platform, sizeof(baseline->platform), MACHINE_NAME);
	else
		(void)snprintf(baseline->platform, sizeof(baseline->platform), MACHINE_NAME "-python%.*s", (int)length,
		               version);
}

struct baseline *
baseline_finish(struct baseline_builder *builder)
{
	struct baseline *baseline = builder->of;
	struct sample *end;

	set_platform(baseline);
	baseline->domains = memory_zeroed(builder->count, sizeof(*baseline->domains));
	baseline->sites = memory_zeroed(builder->count, sizeof(*baseline->sites));
	SORT(builder->samples, builder->count, compare_samples);
	for (struct sample *first = builder->samples; builder->count != 0 && first < builder->samples + builder->count;
	     first = end) {

		for (end = first + 1; end < builder->samples + builder->count && is_same_row(first, end); end++)
			continue;

		struct baseline_site row = reduce(first, end, baseline->run_count);

		if (row.family != 0) {
			baseline->sites[baseline->site_count++] = row;
		} else {
			struct baseline_domain *domain = &baseline->domains[baseline->domain_count++];

			memcpy(domain->name, row.domain, sizeof(domain->name));
			domain->kind = row.domain_kind;
			domain->live_bytes = row.live_bytes;
			domain->peak_bytes = row.peak_bytes;
			domain->elsewhere_bytes = MOST_OF(sample, first, (size_t)(end - first), sample->elsewhere_bytes);
		}
	}
	free(builder->samples);
	free(builder);
	return baseline;
}

void
baseline_free(struct baseline *baseline)
{
	if (baseline == NULL)
		return;
	if (baseline->texts != NULL)
		text_pool_free(baseline->texts);
	free(baseline->domains);
	free(baseline->sites);
	free(baseline);
}

const struct baseline_site *
baseline_find_site(const struct baseline *baseline, uint64_t family)
{
	size_t until = SORTED_UP_TO(baseline->sites, baseline->site_count, family, family);

	return until != 0 && baseline->sites[until - 1].family == family ? &baseline->sites[until - 1] : NULL;
}

const struct baseline_domain *
baseline_find_domain(const struct baseline *baseline, const char *name)
{
	return FIRST(domain, baseline->domains, baseline->domain_count, strcmp(domain->name, name) == 0);
}

void
baseline_narrow(struct baseline *baseline, const char *domain)
{
	size_t domains = 0;
	size_t sites = 0;

	for (size_t i = 0; i < baseline->domain_count; i++) {
		if (rank_domain_matches(baseline->domains[i].name, domain))
			baseline->domains[domains++] = baseline->domains[i];
	}
	for (size_t i = 0; i < baseline->site_count; i++) {
		if (rank_domain_matches(baseline->sites[i].domain, domain))
			baseline->sites[sites++] = baseline->sites[i];
	}
	baseline->domain_count = domains;
	baseline->site_count = sites;
	(void)snprintf(baseline->domain, sizeof(baseline->domain), "%s", domain);
}
