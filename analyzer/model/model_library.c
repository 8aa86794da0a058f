/*
 * model_library.c - whose allocator is it that grew (see model_library.h)?
 *
 * A library that Python imported is called by its package, which people know: pyarrow, and not libarrow.so.2100.
 *
 * When failing  it cannot.
 */
#include "model/model_library.h"

#include <string.h>

#include "base/items.h"
#include "base/text_start.h"

bool
model_library_is_between(const char *module)
{
	static const char *const starts[] = { "libc.so", "libc-", "libpthread", "ld-linux", "libkmemshim", NULL };

	return module[0] == '\0' || text_starts_with_any(module, starts);
}

static const struct model_frame *
maker_of(const struct model_site *site)
{
	const struct model_frame *const *found = FIRST(frame, site->frames, site->frame_count,
	                                               (*frame)->kind == MODEL_FRAME_NATIVE &&
	                                                   !model_library_is_between((*frame)->module));

	return found != NULL ? *found : NULL;
}

/* The part of a library's path below an environment's packages: "pyarrow/libarrow.so.2100"; NULL: it lies elsewhere. */
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

	if (start == NULL)
		start = maker->module;
	while (*start == '_') // "_duckdb.cpython-311-x86_64-linux-gnu.so"
		start++;

	size_t length = strcspn(start, "./");

	for (const char *cut = strstr(start, "_runtime"); cut != NULL && cut < start + length; cut = NULL)
		length = (size_t)(cut - start); // "_polars_runtime_32"
	return length != 0 ? text_pool_add(pool, start, length) : "a library";
}

void
model_libraries_name(struct model *model, struct text_pool *pool)
{
	for (size_t i = 0; i < model->site_count; i++) {
		if (model->domains[model->sites[i].domain].id.kind == DOMAIN_LIBRARY)
			model->sites[i].library = name_of(&model->sites[i], pool);
	}
}

const struct model_library_switch *
model_library_switch(const struct model_site *site)
{
	static const struct model_library_switch switches[] = {
		/* Arrow's documentation, "Environment Variables" */
		{ "libarrow.so", "ARROW_DEFAULT_MEMORY_POOL=system", "it takes its memory from malloc, and lines are exact" },
		/* jemalloc's "TUNING", under the name that the Rust crate gives it */
		{ "polars", MODEL_LIBRARY_JEMALLOC, "it gives back at once what it frees, and the lines are more exact" },
		{ "_polars", MODEL_LIBRARY_JEMALLOC, "it gives back at once what it frees, and the lines are more exact" },
	};
	const struct model_frame *maker = maker_of(site);

	return maker != NULL ? FIRST(one, switches, COUNT_OF(switches), text_starts(maker->module, one->module)) : NULL;
}

const struct model_runtime *
model_runtime_of(const struct model *model, const struct model_site *site)
{
	static const struct model_runtime runtimes[] = {
		{ "libjvm.so", "", "the JVM",
		  "let its own tools name the objects (`jcmd PID GC.class_histogram`); with -Xmx well below the limit it ends with an error of its own, and "
		  "-XX:+HeapDumpOnOutOfMemoryError writes who holds them" },
		{ "", "v8::", "V8",
		  "let its own tools name the objects: with --max-old-space-size=MIB below the limit, --heapsnapshot-near-heap-limit=2 of node "
		  "writes who holds them" },
		{ "", "x_cgo_mmap", "Go",
		  "let its own tools name the lines: a heap profile (runtime/pprof); GOMEMLIMIT makes it collect more before the limit" },
	};
	const struct model_frame *maker = !domain_is_heap(model->domains[site->domain].id.kind) ? maker_of(site) : NULL;

	return maker != NULL
	           ? FIRST(item, runtimes, COUNT_OF(runtimes),
	                   text_starts(maker->module, item->module) && text_starts(maker->function, item->function))
	           : NULL;
}
