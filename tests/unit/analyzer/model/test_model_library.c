/*
 * test_model_library.c - whose allocator is it that made a reservation, and can it be switched to malloc?
 */
#include "test.h"

#include "capture_builder.h"
#include "model/model_load.h"
#include "model/model_library.h"
#include "scratch.h"
#include "owned.h"

static const struct {
	const char *inner; // module of the first native frame
	const char *outer;
	unsigned domain;
	const char *name; // NULL: no library's
	const char *setting;
} cases[] = {
	{ "/v/lib/python3.11/site-packages/polars/polars.abi3.so", "/usr/bin/python3.11", KMEM_DOMAIN_LIBRARY, "polars",
	  MODEL_LIBRARY_JEMALLOC },
	{ "/v/lib/python3.11/site-packages/_polars_runtime_32/_polars_runtime.abi3.so", "/usr/bin/python3.11",
	  KMEM_DOMAIN_LIBRARY, "polars", MODEL_LIBRARY_JEMALLOC },
	{ "/v/site-packages/_duckdb.cpython-311-x86_64-linux-gnu.so", "/usr/bin/python3.11", KMEM_DOMAIN_LIBRARY, "duckdb",
	  NULL },
	{ "/v/site-packages/pyarrow/libarrow.so.2100", "/usr/bin/python3.11", KMEM_DOMAIN_LIBRARY, "pyarrow",
	  "ARROW_DEFAULT_MEMORY_POOL=system" },
	{ "/usr/lib/x86_64-linux-gnu/libarrow.so.2100", "/opt/server", KMEM_DOMAIN_LIBRARY, "libarrow",
	  "ARROW_DEFAULT_MEMORY_POOL=system" },
	{ "/usr/lib/x86_64-linux-gnu/libc.so.6", "/usr/bin/node", KMEM_DOMAIN_LIBRARY, "node", NULL },
	{ "/usr/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib/x86_64-linux-gnu/libc.so.6", KMEM_DOMAIN_LIBRARY, "a library",
	  NULL },
	{ "/v/site-packages/polars/polars.abi3.so", "/usr/bin/python3.11", KMEM_DOMAIN_MMAP, NULL, NULL },
};

TEST(the_first_native_frame_names_the_library)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const uint64_t frames[] = { 0x400100, 0x500200 };
		struct capture_builder *builder = capture_builder_new();
		size_t bytes;

		strcpy(capture_builder_domain(builder, KMEM_DOMAIN_LIBRARY)->name, "library");
		capture_builder_module(builder, cases[i].inner, 0x400000, 0x410000, 1, 0);
		capture_builder_module(builder, cases[i].outer, 0x500000, 0x510000, 1, 0);
		capture_builder_site(builder, cases[i].domain, capture_builder_stack(builder, frames, 2, 0), 1u << 20, 1, 0, 0);
		unsigned char *file = capture_builder_finish(builder, KMEM_STATE_RUNNING, &bytes);
		capture_builder_write(scratch_file, file, bytes);
		struct model *model = loaded((struct model_options){ .capture = scratch_file });
		assert_int_equal(model->site_count, 1);
		if ((model->sites[0].library == NULL) != (cases[i].name == NULL) ||
		    (cases[i].name != NULL && strcmp(model->sites[0].library, cases[i].name) != 0))
			fail_msg("%s: %s", cases[i].inner, model->sites[0].library != NULL ? model->sites[0].library : "none");
		const struct model_library_switch *one = cases[i].name != NULL ? model_library_switch(&model->sites[0]) : NULL;
		assert_true((one == NULL) == (cases[i].setting == NULL));
		assert_true(one == NULL || strcmp(one->setting, cases[i].setting) == 0);
		assert_true(model->processes[0].live_bytes == 1u << 20);
		model_free(model);
		capture_builder_free(builder);
		free(file);
	}
}

TEST(who_collects_objects_is_known_by_the_code_that_maps)
{
	static const struct {
		const char *inner; // function and module of the first two native frames
		const char *module;
		const char *outer;
		const char *outer_module;
		const char *name; // NULL: nobody
		bool is_of_malloc;
	} stacks[] = {
		{ "os::pd_commit_memory", "libjvm.so", "os::commit_memory", "libjvm.so", "the JVM", false },
		{ "", "libjvm.so", "", "libjvm.so", "the JVM", false }, // stripped
		{ "v8::base::OS::SetPermissions", "node", "v8::base::BoundedPageAllocator::AllocatePages", "node", "V8",
		  false },
		{ "mprotect", "libc.so.6", "v8::base::OS::SetPermissions", "libmini_racer.so", "V8", false },
		{ "x_cgo_mmap", "server", "runtime.callCgoMmap", "server", "Go", false },
		{ "operator new", "libstdc++.so.6", "v8::internal::MemoryChunk::MemoryChunk", "node", NULL, false },
		{ "os::malloc", "libjvm.so", "AllocateHeap", "libjvm.so", NULL, true },
		{ "grow", "server", "JNI_CreateJavaVM", "libjvm.so", NULL, false },
	};

	for (size_t i = 0; i < sizeof(stacks) / sizeof(stacks[0]); i++) {
		struct model_frame inner = { .kind = MODEL_FRAME_NATIVE,
			                         .function = stacks[i].inner,
			                         .module = stacks[i].module };
		struct model_frame outer = { .kind = MODEL_FRAME_NATIVE,
			                         .function = stacks[i].outer,
			                         .module = stacks[i].outer_module };
		const struct model_frame *frames[] = { &inner, &outer };
		struct model_domain domains[] = { { .name = "mmap", .id = { .kind = DOMAIN_MMAP } },
			                              { .name = "heap", .id = { .kind = DOMAIN_HEAP } } };
		struct model model = { .domains = domains, .domain_count = 2 };
		struct model_site site = { .domain = stacks[i].is_of_malloc, .frames = frames, .frame_count = 2 };
		const struct model_runtime *runtime = model_runtime_of(&model, &site);

		if ((runtime == NULL) != (stacks[i].name == NULL) ||
		    (runtime != NULL && strcmp(runtime->name, stacks[i].name) != 0))
			fail_msg("%zu: %s", i, runtime != NULL ? runtime->name : "none");
	}
}

RUN_TESTS_IN(scratch_make, scratch_remove)
