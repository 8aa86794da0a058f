/*
 * model_library.c - whose allocator is it that grew (see model_library.h)?
 *
 * A library that Python imported is called by its package, which people know: pyarrow, and not libarrow.so.2100.
 *
 * When failing  it cannot.
 */
#include "model_library.h"

#include <string.h>

/* What stands between the library and the system in the stack of a mapping. */
static bool
is_between(const char *module)
{
	static const char *const starts[] = { "libc.so", "libc-", "libpthread", "ld-linux", "libkmemshim" };

	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		if (strncmp(module, starts[i], strlen(starts[i])) == 0)
			return true;
	}
	return module[0] == '\0';
}

static const struct model_frame *
maker_of(const struct model_site *site)
{
	for (uint32_t i = 0; i < site->frame_count; i++) {
		if (site->frames[i]->kind == MODEL_FRAME_NATIVE && !is_between(site->frames[i]->module))
			return site->frames[i];
	}
	return NULL;
}

/* Of the path of a library in an environment of Python: "pyarrow/libarrow.so.2100"; NULL: it is elsewhere. */
static const char *
below_packages(const char *path)
{
	static const char *const folders[] = { "/site-packages/", "/dist-packages/" };

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
		const char *found = strstr(path, folders[i]);

		if (found != NULL)
			return found + strlen(folders[i]);
	}
	return NULL;
}

static const char *
name_of(const struct model_site *site, struct text_pool *pool)
{
	const struct model_frame *maker = maker_of(site);
	const char *start = maker != NULL ? below_packages(maker->module_path) : "";
	size_t length;

	if (start == NULL)
		start = maker->module;
	while (*start == '_') // "_duckdb.cpython-311-x86_64-linux-gnu.so"
		start++;
	length = strcspn(start, "./");
	for (const char *cut = strstr(start, "_runtime"); cut != NULL && cut < start + length; cut = NULL)
		length = (size_t)(cut - start); // "_polars_runtime_32"
	return length != 0 ? text_pool_add(pool, start, length) : "a library";
}

void
model_libraries_name(struct model *model, struct text_pool *pool)
{
	for (size_t i = 0; i < model->site_count; i++) {
		if (strcmp(model->domains[model->sites[i].domain].name, "library") == 0)
			model->sites[i].library = name_of(&model->sites[i], pool);
	}
}

const char *
model_library_switch(const struct model_site *site)
{
	static const struct {
		const char *module;
		const char *setting;
	} switches[] = {
		{ "libarrow.so", "ARROW_DEFAULT_MEMORY_POOL=system" }, // Arrow's documentation, "Environment Variables"
	};
	const struct model_frame *maker = maker_of(site);

	for (size_t i = 0; maker != NULL && i < sizeof(switches) / sizeof(switches[0]); i++) {
		if (strncmp(maker->module, switches[i].module, strlen(switches[i].module)) == 0)
			return switches[i].setting;
	}
	return NULL;
}
