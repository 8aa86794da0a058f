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
	uint64_t family;
	char domain[BASELINE_NAME_BYTES];
	enum domain_kind domain_kind;
	char where[PLACE_TEXT_BYTES];
	uint64_t largest_bytes; // of the site that `where` is from
	enum model_leak_class leak;
	bool is_elsewhere;
	bool may_accumulate;
	bool has_accumulated;
	const char *file;
	uint32_t line;
	struct baseline_place growing;
	size_t suppression;
	uint64_t step_bytes;
	uint64_t likeness[SITE_KEY_LIKENESSES];
	uint64_t elsewhere_bytes; // of a domain
	uint64_t run;
	uint64_t live_bytes;
	uint64_t peak_bytes;
};

struct baseline_builder {
	uint64_t run_count;
	char program[BASELINE_PROGRAM_BYTES];
	char python_version[16];
	uint64_t generations; // the most of a line, of the run where that is least
	uint64_t steps;       // of the run with the fewest
	const char *command;
	const struct config *config; // NULL = nobody watches
	struct text_pool *texts;
	struct sample *samples;
	size_t count;
	size_t room;
};

static int
compare_samples(const void *a, const void *b)
{
	const struct sample *left = a;
	const struct sample *right = b;

	int order = order_numbers(left->family, right->family);

	order = order ?: (left->family == 0 ? strcmp(left->domain, right->domain) : 0);
	return order ?: order_numbers(left->run, right->run);
}

static bool
is_same_row(const struct sample *left, const struct sample *right)
{
	return left->family == right->family && (left->family != 0 || strcmp(left->domain, right->domain) == 0);
}

/* A leak in one sibling or run outweighs all else; what an import left is only that when all agree. */
static enum model_leak_class
more_telling(enum model_leak_class left, enum model_leak_class right)
{
	return model_leak_is_more_telling(right, left) ? right : left;
}

struct baseline_builder *
baseline_begin(void)
{
	struct baseline_builder *builder = memory_zeroed(1, sizeof(*builder));

	builder->texts = text_pool_new();
	builder->command = "";
	return builder;
}

static struct sample *
add_sample(struct baseline_builder *builder)
{
	builder->samples = memory_grown(builder->samples, &builder->room, builder->count + 1, sizeof(*builder->samples));
	builder->samples[builder->count] = (struct sample){ .run = builder->run_count, .file = "" };
	return &builder->samples[builder->count++];
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
		if (from->largest_bytes > to->largest_bytes) {
			to->largest_bytes = from->largest_bytes;
			memcpy(to->where, from->where, sizeof(to->where));
			to->file = from->file;
			to->line = from->line;
		}
		to->live_bytes += from->live_bytes;
		to->peak_bytes += from->peak_bytes;
		to->step_bytes += from->step_bytes;
		if (from->growing.bytes > to->growing.bytes)
			to->growing = from->growing;
		to->suppression = to->suppression != 0 ? to->suppression : from->suppression;
		to->leak = more_telling(to->leak, from->leak);
		to->is_elsewhere = to->is_elsewhere || from->is_elsewhere;
		to->may_accumulate = to->may_accumulate || from->may_accumulate;
		to->has_accumulated = to->has_accumulated || from->has_accumulated;
	}
	builder->count = builder->count > first ? kept + 1 : kept;
}

const char *
baseline_builder_program(const struct baseline_builder *builder)
{
	return builder->program;
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

		for (size_t k = 0; k < sizeof(texts) / sizeof(texts[0]) && found == SIZE_MAX; k++)
			found = texts[k][0] != '\0' ? config_suppressed_by(builder->config, texts[k]) : SIZE_MAX;
	}
	return found + 1; // SIZE_MAX is 0
}

/* Of the process that made most steps: the others are its helpers. */
static uint64_t
steps_of(const struct model *model)
{
	uint64_t steps = 0;

	for (size_t i = 0; i < model->process_count; i++) {
		if (model->processes[i].steps.source != KMEM_STEPS_NONE && model->processes[i].steps.count > steps)
			steps = model->processes[i].steps.count;
	}
	return steps;
}

/* The most generations that one of its lines has seen: with too few, no line can be called a leak. */
static uint64_t
generations_of(const struct model *model)
{
	uint64_t generations = 0;

	for (size_t i = 0; i < model->site_count; i++) {
		if (model->sites[i].generations_total > generations)
			generations = model->sites[i].generations_total;
	}
	return generations;
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
note_growing(struct sample *sample, const struct model_site *site)
{
	sample->growing = (struct baseline_place){ .file = "" };
	if (!is_growing(site))
		return;
	memcpy(sample->growing.where, sample->where, sizeof(sample->where));
	sample->growing.file = sample->file;
	sample->growing.line = sample->line;
	sample->growing.bytes = site->live_bytes;
}

static const char *
command_of(struct baseline_builder *builder, const struct kmem_identity *identity)
{
	char *joined = shell_words_join(identity->command, identity->command_bytes);
	const char *command = text_pool_add_text(builder->texts, joined);

	free(joined);
	return command;
}

void
baseline_add_run(struct baseline_builder *builder, struct finished_model finished)
{
	const struct model *model = finished.model;
	size_t first = builder->count;
	uint64_t steps = steps_of(model);

	if (builder->run_count == 0 || generations_of(model) < builder->generations)
		builder->generations = generations_of(model);
	builder->steps = builder->run_count == 0 || steps < builder->steps ? steps : builder->steps;
	(void)baseline_program(model, builder->program);
	if (builder->run_count == 0)
		builder->command = command_of(builder, model->processes[0].identity);
	for (size_t i = 0; i < model->process_count && builder->python_version[0] == '\0'; i++) {
		uint32_t version = model->processes[i].python_version;

		if (version != 0)
			(void)snprintf(builder->python_version, sizeof(builder->python_version), "%" PRIu32 ".%" PRIu32 ".%" PRIu32,
			               version >> 24, version >> 16 & 0xff, version >> 8 & 0xff);
	}
	for (size_t i = 0; i < model->domain_count; i++) {
		struct sample *sample = add_sample(builder);

		(void)snprintf(sample->domain, sizeof(sample->domain), "%s", model->domains[i].name);
		sample->live_bytes = model->domains[i].live_bytes;
		sample->peak_bytes = model->domains[i].peak_bytes;
		sample->domain_kind = model->domains[i].id.kind;
		sample->elsewhere_bytes = rank_elsewhere_bytes(model, &model->domains[i]);
	}
	EACH (site, model->sites, model->site_count) {
		const struct model_frame *where = site->where;
		struct sample *sample;

		if (site->live_bytes == 0 && site->peak_bytes == 0)
			continue;
		sample = add_sample(builder);
		sample->family = site_key_family(site->key);
		(void)snprintf(sample->domain, sizeof(sample->domain), "%s", model->domains[site->domain].name);
		(void)place_text(where != NULL ? where->file : "", where != NULL ? where->line : 0,
		                 where != NULL ? where->function : "", where != NULL ? where->module : "", 0, sample->where);
		sample->largest_bytes = site->live_bytes > site->peak_bytes ? site->live_bytes : site->peak_bytes;
		sample->domain_kind = model->domains[site->domain].id.kind;
		sample->leak = site->leak;
		sample->is_elsewhere = rank_is_elsewhere(model, site);
		sample->may_accumulate = rank_may_accumulate(site);
		sample->has_accumulated = rank_has_accumulated(site);
		sample->file = text_pool_add_text(builder->texts, where != NULL ? where->file : "");
		sample->line = where != NULL ? where->line : 0;
		sample->suppression = suppression_of(builder, site, sample->where);
		sample->step_bytes = step_bytes_of(site, steps,
		                                   model->processes[site->process].steps.source == KMEM_STEPS_LOOP);
		note_growing(sample, site);
		site_key_likeness(site, sample->domain, sample->likeness);
		sample->live_bytes = site->live_bytes;
		sample->peak_bytes = site->peak_bytes;
	}
	SORT(builder->samples + first, builder->count - first, compare_samples);
	merge_siblings(builder, first);
	builder->run_count++;
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
	struct baseline_site row = { .family = first->family, .run_count = (uint64_t)(end - first), .file = "" };
	uint64_t *live = memory_zeroed(runs, sizeof(*live));
	uint64_t *peak = memory_zeroed(runs, sizeof(*peak));
	uint64_t *step = memory_zeroed(runs, sizeof(*step));
	uint64_t largest = 0;

	for (const struct sample *sample = first; sample < end; sample++) {
		live[sample->run] = sample->live_bytes;
		peak[sample->run] = sample->peak_bytes;
		step[sample->run] = sample->step_bytes;
		if (sample->growing.bytes > row.growing.bytes)
			row.growing = sample->growing;
		row.suppression = row.suppression != 0 ? row.suppression : sample->suppression;
		row.leak = more_telling(row.leak, sample->leak);
		row.is_elsewhere = row.is_elsewhere || sample->is_elsewhere;
		row.may_accumulate = row.may_accumulate || sample->may_accumulate;
		row.has_accumulated = row.has_accumulated || sample->has_accumulated;
		if (sample == first || sample->largest_bytes > largest) {
			largest = sample->largest_bytes;
			memcpy(row.where, sample->where, sizeof(row.where));
			row.file = sample->file;
			row.line = sample->line;
		}
	}
	memcpy(row.domain, first->domain, sizeof(row.domain));
	row.domain_kind = first->domain_kind;
	memcpy(row.likeness, first->likeness, sizeof(row.likeness));
	row.live_bytes = figure_of(live, runs);
	row.peak_bytes = figure_of(peak, runs);
	row.step_bytes = figure_of(step, runs);
	free(live);
	free(peak);
	free(step);
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
	struct baseline *baseline = memory_zeroed(1, sizeof(*baseline));
	struct sample *end;

	baseline->run_count = builder->run_count;
	memcpy(baseline->program, builder->program, sizeof(baseline->program));
	memcpy(baseline->python_version, builder->python_version, sizeof(baseline->python_version));
	set_platform(baseline);
	baseline->domains = memory_zeroed(builder->count, sizeof(*baseline->domains));
	baseline->sites = memory_zeroed(builder->count, sizeof(*baseline->sites));
	SORT(builder->samples, builder->count, compare_samples);
	for (struct sample *first = builder->samples; builder->count != 0 && first < builder->samples + builder->count;
	     first = end) {
		struct baseline_site row;

		for (end = first + 1; end < builder->samples + builder->count && is_same_row(first, end); end++)
			continue;
		row = reduce(first, end, builder->run_count);
		if (row.family != 0) {
			baseline->sites[baseline->site_count++] = row;
		} else {
			struct baseline_domain *domain = &baseline->domains[baseline->domain_count++];

			memcpy(domain->name, row.domain, sizeof(domain->name));
			domain->kind = row.domain_kind;
			domain->live_bytes = row.live_bytes;
			domain->peak_bytes = row.peak_bytes;
			for (const struct sample *sample = first; sample < end; sample++) {
				if (sample->elsewhere_bytes > domain->elsewhere_bytes)
					domain->elsewhere_bytes = sample->elsewhere_bytes;
			}
		}
	}
	baseline->generations = builder->generations;
	baseline->steps = builder->steps;
	baseline->command = builder->command;
	baseline->texts = builder->texts;
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
