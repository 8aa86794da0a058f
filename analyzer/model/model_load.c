/*
 * model_load.c - from a CAPTURE argument to a model: the order of the steps (see model_load.h).
 */
#include "model/model_load.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/items.h"
#include "base/memory.h"
#include "base/owner.h"
#include "base/place.h"
#include "base/progress.h"
#include "base/shell_words.h"
#include "capture/capture_cross_check.h"
#include "capture/capture_folder.h"
#include "capture/capture_guard.h"
#include "capture/capture_held.h"
#include "capture/capture_reader.h"
#include "capture/capture_phase.h"
#include "capture/capture_snapshot.h"
#include "capture/process_alive.h"
#include "model/model_build.h"
#include "model/model_holders.h"
#include "model/model_library.h"
#include "model/site_key.h"

#define UNLISTED_WORTH_BYTES (UINT64_C(1) << 20)

/* The caller gets the first member; the others own what it points to. */
struct owned_model {
	struct model model;
	struct text_pool *pool;
};

void
model_damage(struct build *build, const char *text)
{
	*MEMORY_NEXT(build->damages, build->damage_count) = text_pool_add_text(build->pool, text);
}

static void
take_damages(struct build *build, const struct capture *capture)
{
	char more[128];

	build->under_way_count += capture->under_way_count;
	build->damages_unsaid += capture->damages_unsaid - (capture->damages_unsaid != 0); // less the line that says so

	for (size_t i = 0; i < capture->damage_count; i++)
		model_damage(build, capture->damages[i]);
	if (capture->damages_unsaid == 0)
		return;
	(void)snprintf(more, sizeof(more), "%.60s: %" PRIu64 " more damaged places", capture->name,
	               capture->damages_unsaid);
	model_damage(build, more);
}

bool
capture_is_final(const struct capture *capture)
{
	return !capture->was_closed && capture->is_still && !process_is_alive(capture->identity);
}

/* "#7" is the mark of that number; another text the newest snapshot of that name. */
static bool
is_meant(const struct kmem_mark *mark, const char *at)
{
	char *end = NULL;
	uint64_t number = at[0] == '#' ? strtoull(at + 1, &end, 10) : 0;

	if (mark->record == 0)
		return false;
	return (end != NULL && end != at + 1 && *end == '\0' && mark->sequence == number) || strcmp(mark->name, at) == 0;
}

static bool
rewind_to(struct capture *capture, const char *at)
{
	for (size_t i = capture->mark_count; i > 0; i--) {
		if (is_meant(&capture->marks[i - 1], at) &&
		    capture_mark_rewind(capture, &capture->marks[i - 1], process_is_alive(capture->identity)))
			return true;
	}
	return false;
}

/* The recorder's own tables name records, not sites: their readers need this. */
static void
keep_records(struct build *build, const struct capture *capture, const uint32_t *sites)
{
	struct model_process *process = &build->processes[build->process_count - 1];
	size_t bytes = capture_site_count(capture) * sizeof(*sites);
	uint32_t *copy = text_pool_room(build->pool, bytes);

	memcpy(copy, sites, bytes);
	process->record_count = capture_site_count(capture);
	process->record_sites = copy;
}

/* What each record held at a snapshot of an open capture is taken off, where it has one. */
static void
take_off(struct build *build, struct capture *capture)
{
	struct capture *then;
	struct fail fail;

	if (!capture_open(capture->path, build->options->is_salvage, &then, &fail))
		return;
	if (rewind_to(then, build->options->since)) {
		build->taken_off_count++;
		capture_arenas_split(then);
		for (size_t i = 0; i < capture_site_count(then) && i < capture_site_count(capture); i++)
			capture_held_take_off(capture_site_copy(capture, i), capture_site_copy(then, i));
	}
	capture_close(then);
}

static void
add_capture(struct build *build, struct capture *capture)
{
	struct domain_rows rows;

	build->is_trusted = owner_is_trusted(capture->owner);
	if (!build->is_trusted && build->distrusted_count++ == 0) {
		build->distrusted_owner = capture->owner;
		build->distrusted_name = text_pool_add_text(build->pool, capture->name);
	}
	build->rules.directory = text_pool_add_text(build->pool, capture->identity->directory);
	if (capture_is_final(capture))
		capture_cross_check(capture);
	if (capture->is_salvage && capture_is_final(capture))
		capture_drop_bad(capture);
	if (!build->options->is_of_phase)
		capture_phase_join(capture, process_is_alive(capture->identity));
	if (build->options->is_at_guard)
		(void)capture_guard_rewind(capture);
	else if (build->options->at != NULL && rewind_to(capture, build->options->at))
		build->rewound_count++;
	else
		capture_exit_rewind(capture);
	capture_arenas_split(capture);
	if (capture_arenas_sample_bytes(capture) > build->sample_bytes)
		build->sample_bytes = capture_arenas_sample_bytes(capture);
	build->heap_sample_bytes = amount_greater(build->heap_sample_bytes, capture_heap_sample_bytes(capture));
	if (build->options->since != NULL)
		take_off(build, capture);
	model_add_process(build, capture, &rows);

	uint32_t *sites = model_add_sites(build, capture, &rows);

	if (build->options->wants_records)
		keep_records(build, capture, sites);
	model_add_resident(build, capture, sites);
	model_add_failed(build, capture, &rows, sites);
	model_add_types(build, capture, sites);
	model_add_steps(build, capture);
	model_add_history(build, capture, &rows, sites);
	model_family_add(build, capture, &rows, sites);
	take_damages(build, capture);
}

/* One after the other: only one capture is in memory at a time. False when none could be read. */
static bool
add_captures(struct build *build, const struct capture_list *list, struct fail *fail)
{
	build->processes = memory_zeroed(list->count, sizeof(*build->processes));
	build->capture_count = list->count;
	for (size_t i = 0; i < list->damage_count; i++)
		model_damage(build, list->damages[i]);
	build->damages_unsaid += list->damages_unsaid - (list->damages_unsaid != 0); // less the line that says so
	for (size_t i = 0; i < list->count; i++) {
		struct capture *capture;

		progress_show("reading captures", i, list->count);
		if (!capture_open(list->paths[i], build->options->is_salvage, &capture, fail)) {
			if (fail->code != EXIT_USAGE) // it is gone since it was listed
				model_damage(build, fail->text);
			continue;
		}
		add_capture(build, capture);
		capture_close(capture);
	}
	model_cells_add_written(build, list->paths[0]);
	const char *missing = build->options->at != NULL && build->rewound_count == 0        ? build->options->at
	                      : build->options->since != NULL && build->taken_off_count == 0 ? build->options->since
	                                                                                     : NULL;

	if (build->process_count != 0 && missing != NULL)
		return fail_set(fail, EXIT_USAGE,
		                "%.400s: has no snapshot \"%.100s\": kmemshim report lists those that there are",
		                list->paths[0], missing);
	return build->process_count != 0;
}

/* The argument that reads these captures again, also when the folder has got a newer session: a single capture is named itself. */
static const char *
argument_of(const struct build *build)
{
	const char *path = build->processes[0].path;
	const char *slash = strrchr(path, '/');
	bool is_single = build->process_count == 1 || slash == NULL || slash == path;
	OWNED char *words = shell_words_join(path, is_single ? strlen(path) : (size_t)(slash - path));

	return text_pool_add_text(build->pool, words);
}

/* Totals of a damaged capture are the ones in its head; the sites that are left may hold less. */
static void
tell_unlisted(struct build *build, struct model *model)
{
	for (size_t i = 0; i < build->domain_count; i++) {
		const struct model_domain *domain = &build->domains[i];
		uint64_t listed_bytes = SUM_OF(site, build->sites, build->site_count, site->domain == i ? site->live_bytes : 0);

		if (listed_bytes + UNLISTED_WORTH_BYTES > domain->live_bytes)
			continue;
		model->unlisted_bytes += domain->live_bytes - listed_bytes;
		model_damage(build,
		             TEXT(192, "%s: %" PRIu64 " of %" PRIu64 " live bytes belong to no line: their records are lost",
		                  domain->name, domain->live_bytes - listed_bytes, domain->live_bytes));
	}
}

/* NULL: all captures are trusted. */
static const char *
distrusted_line(const struct build *build)
{
	char owner[OWNER_TEXT_BYTES];
	char text[512];

	if (build->distrusted_count == 0)
		return NULL;
	(void)owner_text(build->distrusted_owner, owner);
	if (build->process_count == 1)
		(void)snprintf(
			text, sizeof(text),
			"%s comes from %s, who may have written anything into it: source lines are not shown: run this as that user to see them",
			build->distrusted_name, owner);
	else
		(void)snprintf(
			text, sizeof(text),
			"%zu of %zu captures come from other users (%s from %s), who may have written anything into them: source lines that only they name are not shown",
			build->distrusted_count, build->process_count, build->distrusted_name, owner);
	return text_pool_add_text(build->pool, text);
}

static struct model *
finish(struct build *build, size_t session_count)
{
	struct owned_model *owned = memory_zeroed(1, sizeof(*owned));
	struct model *model = &owned->model;
	const char *const *notices = NULL;
	size_t notice_count = 0;

	model_processes_link(build->processes, build->process_count);
	model_family_link(build);
	if (build->symbolizer != NULL)
		notice_count = symbolizer_notices(build->symbolizer, &notices);
	if (build->options->is_salvage && build->damage_count != 0)
		tell_unlisted(build, model);
	model->capture_damage_count = build->damage_count;
	model->under_way_count = build->under_way_count;
	model->damaged_places = build->damage_count + build->damages_unsaid;
	for (size_t i = 0; i < notice_count; i++)
		model_damage(build, notices[i]);

	model->project = build->options->project;
	model->distrusted = distrusted_line(build);
	if (model->distrusted != NULL)
		model_damage(build, model->distrusted);

	owned->pool = build->pool;
	model->texts = build->pool;
	model->process_count = build->process_count;
	model->processes = build->processes;
	model->unknown_end_count = model_family_unknown_ends(build);
	model->domain_count = build->domain_count;
	model->domains = build->domains;
	model->sample_bytes = build->sample_bytes;
	model->heap_sample_bytes = build->heap_sample_bytes;
	model->site_count = build->site_count;
	model->sites = build->sites;
	model->damage_count = build->damage_count;
	model->damages = build->damages;
	model->session = build->processes[0].identity->session;
	model->session_count = session_count;
	model->argument = argument_of(build);
	model->needs_salvage = build->options->is_salvage && model->capture_damage_count != 0;
	model_take_failed(build, model);
	site_key_assign(model->sites, model->site_count, model->domains);
	model_waiting_settle(model->sites, model->site_count, build->pool);
	model_wrappers_skip(model->sites, model->site_count, model->domain_count);
	site_key_assign_places(model->sites, model->site_count);
	model_libraries_name(model, build->pool);
	model->cell_count = model_cells_label(build, &model->cells);
	model_frames_label(build);
	model_frames_tell_files(build);
	return model;
}

static void
free_indexes(struct build *build)
{
	model_family_free(build);
	model_cells_free(build);
	model_sites_free(build);
	model_stacks_free(build);
	model_frames_free(build);
	symbolizer_free(build->symbolizer);
	free(build->failed);
}

/* The path from the root on, without resolving anything in it. */
static char *
absolute(const char *path)
{
	OWNED char *directory = path[0] != '/' ? getcwd(NULL, 0) : NULL;

	while (strncmp(path, "./", 2) == 0)
		path += 2;
	if (directory == NULL)
		return memory_text(path);
	return memory_printed("%s/%s", directory, path);
}

/* Names from the command line, and names from the environment. */
static char *
wrappers_of(const struct model_options *options)
{
	const char *always = getenv("KMEMSHIM_WRAPPERS");

	return memory_printed("%s,%s", options->wrappers != NULL ? options->wrappers : "", always != NULL ? always : "");
}

static void
free_processes(struct model_process *processes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		model_holders_free(processes[i].holders);
		free(processes[i].holders);
	}
	free(processes);
}

struct model *
model_load(const struct model_options *options, struct fail *fail)
{
	struct capture_list list;
	struct model *model = NULL;
	struct build build = { .options = options };
	OWNED char *project = NULL;
	OWNED char *as_given = NULL;
	OWNED char *wrappers = NULL;

	if (!capture_folder_list(options->capture, options->session, options->is_salvage, &list, fail))
		return NULL;
	if (options->project != NULL) {
		project = realpath(options->project, NULL);
		as_given = absolute(options->project); // the program may have been called through a link, or elsewhere
	}
	build.pool = text_pool_new();
	build.rules.project = project != NULL ? project : as_given;
	build.rules.project_as_given = as_given;
	build.rules.wrappers = wrappers = wrappers_of(options);
	if (options->wants_symbols)
		build.symbolizer = symbolizer_new(build.pool, options->sysroot);
	if (add_captures(&build, &list, fail))
		model = finish(&build, list.session_count);
	progress_end();
	free_indexes(&build);
	capture_list_free(&list);
	if (model == NULL) {
		free_processes(build.processes, build.process_count);
		free(build.damages);
		text_pool_free(build.pool);
	}
	return model;
}

void
model_free(struct model *model)
{
	struct owned_model *owned = (struct owned_model *)model;

	if (owned == NULL)
		return;
	place_forget();
	text_pool_free(owned->pool);
	free_processes(model->processes, model->process_count);
	free(model->domains);
	free(model->sites);
	free(model->failed);
	free(model->cells);
	free((void *)model->damages);
	free(owned);
}
