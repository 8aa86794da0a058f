/*
 * peak_import.c - was a process at its highest while it imported a module (see peak_import.h)?
 *
 * The recorder notes no beginning and end of an import. But each site has a stack, which shows whether an import ran it, and a time when it
 * appeared, and the points of the timeline say what held most when.
 *
 * When failing  nothing is told: without a timeline, without stacks, or where lines of the user's appeared before the peak.
 */
#include "analysis/peak_import.h"

#include <stdio.h>
#include <string.h>

#include "analysis/rank.h"
#include "base/items.h"

#define OTHER_PART 8 // this part of what was live at the peak may be of other lines than the import's
#define GONE_PART 8  // this part of it may be released at the end
// A site appeared in some tick of the generations' clock. The tick may be this part of the time until then.
#define TICK_PART 5

static const struct model_point *
highest_point(const struct model_process *process)
{
	const struct model_point *highest = NULL;

	for (size_t i = 0; i < process->point_count; i++) {
		if (highest == NULL || process->points[i].live_bytes > highest->live_bytes)
			highest = &process->points[i];
	}
	return highest;
}

/* By an import of a library, or of a module of the user's. */
static bool
is_of_import(const struct model_site *site)
{
	return !rank_is_start_up(site) && (rank_is_import(site) || rank_is_below_import(site));
}

/* "/project/tables.py" is module tables, "/project/tables/__init__.py" too. */
static void
module_name(const char *file, char name[PEAK_IMPORT_BYTES])
{
	const char *slash = strrchr(file, '/');
	const char *start = slash != NULL ? slash + 1 : file;
	size_t length = strcspn(start, ".");

	if (slash != NULL && strncmp(start, "__init__.", 9) == 0) {
		const char *end = slash;

		for (start = end; start != file && start[-1] != '/'; start--)
			;
		length = (size_t)(end - start);
	}
	(void)snprintf(name, PEAK_IMPORT_BYTES, "%.*s", (int)(length < PEAK_IMPORT_BYTES ? length : 0), start);
}

/* The module whose import ran it: of nested ones of the user's own the innermost. */
static void
name_of(const struct model_site *site, char name[PEAK_IMPORT_BYTES])
{
	name[0] = '\0';
	if (rank_is_import(site)) {
		(void)snprintf(name, PEAK_IMPORT_BYTES, "%s", strlen(site->import) < PEAK_IMPORT_BYTES ? site->import : "");
		return;
	}
	for (uint32_t i = 1; i < site->frame_count && name[0] == '\0'; i++) {
		if (site->frames[i]->is_importlib)
			module_name(site->frames[i - 1]->file, name);
	}
}

/* Had a line of the user's appeared by then, which no import runs, later than this site? The import was over, or may have been. */
static bool
is_over(const struct model *model, const struct model_site *site, uint64_t peak_ms)
{
	return ANY(later, model->sites, model->site_count,
	           later->process == site->process && later->first_ms > site->first_ms &&
	               later->first_ms < peak_ms - peak_ms / TICK_PART && later->where != NULL && later->where->is_user &&
	               !is_of_import(later));
}

bool
peak_import_of(const struct model *model, const struct model_process *process, char name[PEAK_IMPORT_BYTES])
{
	const struct model_point *peak = highest_point(process);
	const struct model_site *most = NULL;
	uint64_t most_bytes = 0;
	uint64_t bytes = 0;

	name[0] = '\0';
	if (peak == NULL || process->live_bytes > peak->live_bytes - peak->live_bytes / GONE_PART)
		return false;
	for (size_t i = 0; i < peak->site_count; i++) {
		const struct model_site *site = &model->sites[peak->sites[i].site];

		if (!domain_is_host(model->domains[site->domain].id.kind) || !is_of_import(site))
			continue;
		bytes += peak->sites[i].bytes;
		if (peak->sites[i].bytes > most_bytes) {
			most_bytes = peak->sites[i].bytes;
			most = site;
		}
	}
	if (most == NULL || bytes < peak->live_bytes - peak->live_bytes / OTHER_PART || most->process_count != 1 ||
	    is_over(model, most, (peak->monotonic_ns - process->identity->start_monotonic_ns) / 1000000))
		return false;
	name_of(most, name);
	return name[0] != '\0';
}
