/*
 * baseline_file.c - a baseline as a file: written by json_write.c, read by json_read.c.
 *
 * When failing  reading names the file, the place in it and what was expected there; a file edited by hand is
 *               checked member by member. Errors of writing stay in the stream.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/json_read.h"
#include "base/json_write.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/regular_file.h"
#include "base/text_clean.h"
#include "gate/baseline.h"
#include "gate/branch_file.h"
#include "version.h"

#define LIKENESS_WORTH_BYTES 4096 // a site that holds less is not looked for under another name
#define LIKENESS_FORMAT "%016" PRIx64 " %016" PRIx64 " %016" PRIx64

static void
put_figure(struct json_write *json, const char *name, const struct baseline_figure *figure)
{
	JSON_IN (json, name, '{') {
		json_write_number(json, "min", figure->min);
		json_write_number(json, "median", figure->median);
		json_write_number(json, "max", figure->max);
	}
}

void
baseline_write(const struct baseline *baseline, FILE *stream)
{
	struct json_write json = { .stream = stream, .inline_depth = 2 };
	char key[17];
	char like[64];

	JSON_IN (&json, NULL, '{') {
		json_write_number(&json, "schema", BASELINE_SCHEMA);
		json_write_text(&json, "kind", "kmemshim-baseline");
		json_write_text(&json, "tool_version", KMEMSHIM_VERSION_TEXT);
		json_write_text(&json, "program", baseline->program);
		if (baseline->python_version[0] != '\0')
			json_write_text(&json, "python_version", baseline->python_version);
		else
			json_write_null(&json, "python_version");
		if (baseline->platform[0] != '\0')
			json_write_text(&json, "platform", baseline->platform);
		json_write_number(&json, "runs", baseline->run_count);
		if (baseline->domain[0] != '\0')
			json_write_text(&json, "domain", baseline->domain);
		if (baseline->heap_sample_bytes != 0)
			json_write_number(&json, "heap_sample_bytes", baseline->heap_sample_bytes);
		JSON_IN (&json, "domains", '[') {
			for (size_t i = 0; i < baseline->domain_count; i++) {
				JSON_IN (&json, NULL, '{') {
					json_write_text(&json, "domain", baseline->domains[i].name);
					put_figure(&json, "live_bytes", &baseline->domains[i].live_bytes);
					put_figure(&json, "peak_bytes", &baseline->domains[i].peak_bytes);
					if (baseline->domains[i].elsewhere_bytes != 0)
						json_write_number(&json, "elsewhere_bytes", baseline->domains[i].elsewhere_bytes);
				}
			}
		}
		JSON_IN (&json, "sites", '[') {
			for (size_t i = 0; i < baseline->site_count; i++) {
				const struct baseline_site *site = &baseline->sites[i];

				(void)snprintf(key, sizeof(key), "%012" PRIx64, site->family);
				JSON_IN (&json, NULL, '{') {
					json_write_text(&json, "key", key);
					json_write_text(&json, "domain", site->domain);
					json_write_text(&json, "class", model_leak_name(site->leak));
					json_write_text(&json, "where", site->where);
					if (site->live_bytes.max >= LIKENESS_WORTH_BYTES) {
						(void)snprintf(like, sizeof(like), LIKENESS_FORMAT, site->likeness[0], site->likeness[1],
						               site->likeness[2]);
						json_write_text(&json, "like", like);
					}
					put_figure(&json, "live_bytes", &site->live_bytes);
					put_figure(&json, "peak_bytes", &site->peak_bytes);
					json_write_number(&json, "n", site->run_count);
				}
			}
		}
	}
}

/* Where in the file we are, for messages. */
struct place_in_file {
	const char *path;
	const char *list; // "domains", "sites"
	size_t number;
	struct fail *fail;
};

static bool
is_wrong(const struct place_in_file *at, const char *member, const char *wanted)
{
	return fail_set(at->fail, EXIT_USAGE,
	                "%s: %s[%zu]: \"%s\" is not %s: make the baseline again with kmemshim baseline", at->path, at->list,
	                at->number, member, wanted);
}

static bool
take_bytes(const json_t *object, const char *name, uint64_t *bytes)
{
	const json_t *value = json_object_get(object, name);

	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return false;
	*bytes = (uint64_t)json_integer_value(value);
	return true;
}

static bool
take_figure(const struct place_in_file *at, const json_t *row, const char *name, struct baseline_figure *figure)
{
	const json_t *object = json_object_get(row, name);

	if (!take_bytes(object, "min", &figure->min) || !take_bytes(object, "median", &figure->median) ||
	    !take_bytes(object, "max", &figure->max) || figure->min > figure->median || figure->median > figure->max)
		return is_wrong(at, name, "an object with min <= median <= max");
	return true;
}

/* A text that must be there and fit; cleaned, since it is printed. */
static bool
take_text(const struct place_in_file *at, const json_t *row, const char *name, char *to, size_t room)
{
	const char *text = json_string_value(json_object_get(row, name));

	if (text == NULL || strlen(text) >= room)
		return is_wrong(at, name, "a text");
	memcpy(to, text, strlen(text) + 1);
	(void)text_clean(to, strlen(to));
	return true;
}

static bool
take_class(const struct place_in_file *at, const json_t *row, enum model_leak_class *leak)
{
	const char *text = json_string_value(json_object_get(row, "class"));

	*leak = text != NULL ? model_leak_named(text) : MODEL_LEAK_CLASSES;
	return *leak != MODEL_LEAK_CLASSES || is_wrong(at, "class", "a leak class");
}

/* Returns true as well where the row has no likeness. */
static bool
take_likeness(const json_t *row, uint64_t likeness[SITE_KEY_LIKENESSES])
{
	const json_t *member = json_object_get(row, "like");
	const char *text = json_string_value(member);
	int end = 0;

	return member == NULL || (text != NULL &&
	                          sscanf(text, "%16" SCNx64 " %16" SCNx64 " %16" SCNx64 "%n", &likeness[0], &likeness[1],
	                                 &likeness[2], &end) == 3 &&
	                          text[end] == '\0');
}

static bool
take_site(const struct place_in_file *at, const json_t *row, struct baseline_site *site)
{
	char key[17];
	char *end;

	if (!take_text(at, row, "key", key, sizeof(key)))
		return false;
	site->file = "";
	site->family = strtoull(key, &end, 16);
	if (end == key || *end != '\0' || site->family == 0)
		return is_wrong(at, "key", "a number in hexadecimal");
	if (!take_likeness(row, site->likeness))
		return is_wrong(at, "like", "three numbers in hexadecimal");
	if (!take_bytes(row, "n", &site->run_count))
		return is_wrong(at, "n", "a number");
	if (!take_text(at, row, "domain", site->domain, sizeof(site->domain)))
		return false;
	site->domain_kind = domain_id_named(site->domain).kind;
	return take_text(at, row, "where", site->where, sizeof(site->where)) && take_class(at, row, &site->leak) &&
	       take_figure(at, row, "live_bytes", &site->live_bytes) &&
	       take_figure(at, row, "peak_bytes", &site->peak_bytes);
}

static bool
take_domain(const struct place_in_file *at, const json_t *row, struct baseline_domain *domain)
{
	if (json_object_get(row, "elsewhere_bytes") != NULL &&
	    !take_bytes(row, "elsewhere_bytes", &domain->elsewhere_bytes))
		return is_wrong(at, "elsewhere_bytes", "a number");
	if (!take_text(at, row, "domain", domain->name, sizeof(domain->name)))
		return false;
	domain->kind = domain_id_named(domain->name).kind;
	return take_figure(at, row, "live_bytes", &domain->live_bytes) &&
	       take_figure(at, row, "peak_bytes", &domain->peak_bytes);
}

ORDER_OF(compare_sites, struct baseline_site, order_numbers(a->family, b->family))

static bool
take_all(const char *path, const json_t *root, struct baseline *baseline, struct fail *fail)
{
	const json_t *domains = json_object_get(root, "domains");
	const json_t *sites = json_object_get(root, "sites");
	const char *kind = json_string_value(json_object_get(root, "kind"));
	const char *program = json_string_value(json_object_get(root, "program"));
	const char *python = json_string_value(json_object_get(root, "python_version"));
	const char *domain = json_string_value(json_object_get(root, "domain"));
	const char *platform = json_string_value(json_object_get(root, "platform"));
	uint64_t schema = 0;

	if (kind == NULL || strcmp(kind, "kmemshim-baseline") != 0)
		return fail_set(
			fail, EXIT_USAGE,
			"%s: is not a baseline (\"kind\" is missing or wrong): make one with kmemshim baseline RUN... -o FILE",
			path);
	if (!take_bytes(root, "schema", &schema) || schema != BASELINE_SCHEMA)
		return fail_set(fail, EXIT_USAGE,
		                "%s: the baseline has schema %" PRIu64
		                ", this version reads %d: make it again with kmemshim baseline",
		                path, schema, BASELINE_SCHEMA);
	if (!json_is_array(domains) || !json_is_array(sites) || !take_bytes(root, "runs", &baseline->run_count))
		return fail_set(
			fail, EXIT_USAGE,
			"%s: \"runs\", \"domains\" or \"sites\" is missing: make the baseline again with kmemshim baseline", path);
	(void)snprintf(baseline->program, sizeof(baseline->program), "%s", program != NULL ? program : "");
	(void)text_clean(baseline->program, strlen(baseline->program));
	(void)snprintf(baseline->python_version, sizeof(baseline->python_version), "%s", python != NULL ? python : "");
	(void)snprintf(baseline->platform, sizeof(baseline->platform), "%s", platform != NULL ? platform : "");
	(void)text_clean(baseline->platform, strlen(baseline->platform));
	(void)snprintf(baseline->domain, sizeof(baseline->domain), "%s", domain != NULL ? domain : "");
	(void)text_clean(baseline->domain, strlen(baseline->domain));
	(void)take_bytes(root, "heap_sample_bytes", &baseline->heap_sample_bytes);
	baseline->domains = memory_zeroed(json_array_size(domains), sizeof(*baseline->domains));
	baseline->sites = memory_zeroed(json_array_size(sites), sizeof(*baseline->sites));
	for (size_t i = 0; i < json_array_size(domains); i++) {
		struct place_in_file at = { path, "domains", i, fail };

		if (!take_domain(&at, json_array_get(domains, i), &baseline->domains[baseline->domain_count++]))
			return false;
	}
	for (size_t i = 0; i < json_array_size(sites); i++) {
		struct place_in_file at = { path, "sites", i, fail };

		if (!take_site(&at, json_array_get(sites, i), &baseline->sites[baseline->site_count++]))
			return false;
	}
	SORT(baseline->sites, baseline->site_count, compare_sites);
	return true;
}

bool
baseline_is_folder(const char *path)
{
	struct stat status;
	size_t length = strlen(path);

	return (length != 0 && path[length - 1] == '/') || (stat(path, &status) == 0 && S_ISDIR(status.st_mode));
}

char *
baseline_path_in(const char *folder, const char *platform)
{
	size_t length = strlen(folder);

	char *path = memory_printed("%s%s%s.json", folder, length != 0 && folder[length - 1] == '/' ? "" : "/", platform);

	return path;
}

static int
open_file(const char *path, struct fail *fail)
{
	int file = regular_file_open(path, O_RDONLY, NULL);

	if (file < 0 && errno == EISDIR)
		(void)fail_set(fail, EXIT_USAGE,
		               "%s: is a folder: make a baseline of captures with kmemshim baseline %s -o FILE", path, path);
	else if (file < 0)
		(void)fail_set(fail, EXIT_USAGE, "%s: %s: make a baseline with kmemshim baseline RUN... -o %s", path,
		               regular_file_why(errno), path);
	return file;
}

struct baseline *
baseline_read(const char *path, struct fail *fail)
{
	struct baseline *baseline;
	int file = branch_file_is(path) ? branch_file_open(path, fail) : open_file(path, fail);

	if (file < 0)
		return NULL;

	json_t *root = json_read_file(file, path, fail);

	if (root == NULL)
		return NULL;
	baseline = memory_zeroed(1, sizeof(*baseline));
	baseline->command = "";
	if (!take_all(path, root, baseline, fail)) {
		baseline_free(baseline);
		baseline = NULL;
	}
	json_decref(root);
	return baseline;
}
