/*
 * test_model_library.c - whose allocator is it that made a reservation, and can it be switched to malloc?
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "capture_builder.h"
#include "model.h"
#include "model_library.h"
#include "scratch.h"

static const struct {
	const char *inner; // module of the first native frame
	const char *outer;
	unsigned domain;
	const char *name;   // NULL: no library's
	const char *setting;
} cases[] = {
	{ "/v/lib/python3.11/site-packages/polars/polars.abi3.so", "/usr/bin/python3.11", KMEM_DOMAIN_LIBRARY, "polars", NULL },
	{ "/v/lib/python3.11/site-packages/_polars_runtime_32/_polars_runtime.abi3.so", "/usr/bin/python3.11", KMEM_DOMAIN_LIBRARY, "polars", NULL },
	{ "/v/site-packages/_duckdb.cpython-311-x86_64-linux-gnu.so", "/usr/bin/python3.11", KMEM_DOMAIN_LIBRARY, "duckdb", NULL },
	{ "/v/site-packages/pyarrow/libarrow.so.2100", "/usr/bin/python3.11", KMEM_DOMAIN_LIBRARY, "pyarrow", "ARROW_DEFAULT_MEMORY_POOL=system" },
	{ "/usr/lib/x86_64-linux-gnu/libarrow.so.2100", "/opt/server", KMEM_DOMAIN_LIBRARY, "libarrow", "ARROW_DEFAULT_MEMORY_POOL=system" },
	{ "/usr/lib/x86_64-linux-gnu/libc.so.6", "/usr/bin/node", KMEM_DOMAIN_LIBRARY, "node", NULL },
	{ "/usr/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib/x86_64-linux-gnu/libc.so.6", KMEM_DOMAIN_LIBRARY, "a library", NULL },
	{ "/v/site-packages/polars/polars.abi3.so", "/usr/bin/python3.11", KMEM_DOMAIN_MMAP, NULL, NULL },
};

static void
the_first_native_frame_names_the_library(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const uint64_t frames[] = { 0x400100, 0x500200 };
		struct capture_builder *builder = capture_builder_new();
		struct model_options options = { .capture = scratch_file };
		struct fail fail;
		unsigned char *file;
		struct model *model;
		const char *setting;
		size_t bytes;

		strcpy(capture_builder_domain(builder, KMEM_DOMAIN_LIBRARY)->name, "library");
		capture_builder_module(builder, cases[i].inner, 0x400000, 0x410000, 1, 0);
		capture_builder_module(builder, cases[i].outer, 0x500000, 0x510000, 1, 0);
		capture_builder_site(builder, cases[i].domain, capture_builder_stack(builder, frames, 2, 0), 1u << 20, 1, 0, 0);
		file = capture_builder_finish(builder, KMEM_STATE_RUNNING, &bytes);
		capture_builder_write(scratch_file, file, bytes);
		model = model_load(&options, &fail);
		assert_non_null(model);
		assert_int_equal(model->site_count, 1);
		if ((model->sites[0].library == NULL) != (cases[i].name == NULL) ||
		    (cases[i].name != NULL && strcmp(model->sites[0].library, cases[i].name) != 0))
			fail_msg("%s: %s", cases[i].inner, model->sites[0].library != NULL ? model->sites[0].library : "none");
		setting = cases[i].name != NULL ? model_library_switch(&model->sites[0]) : NULL;
		assert_true(setting == cases[i].setting || strcmp(setting, cases[i].setting) == 0);
		assert_true(model->processes[0].live_bytes == 1u << 20);
		model_free(model);
		capture_builder_free(builder);
		free(file);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(the_first_native_frame_names_the_library) };

	return cmocka_run_group_tests_name("libraries", tests, scratch_make, scratch_remove);
}
