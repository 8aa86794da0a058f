/*
 * test_top_golden.c - does `kmemshim top --once` of a capture read as it was agreed?
 */
#include "test.h"

#include <unistd.h>

#include "capture_builder.h"
#include "golden.h"
#include "scratch.h"
#include "top/top.h"

#define MIB (UINT64_C(1) << 20)

/* A stack of two lines of a script: `epoch` is called by the module's body. */
static uint32_t
stack_of(struct capture_builder *builder, const char *file, const char *function, uint32_t first_line)
{
	static const uint8_t table[] = { 0x80 | 13 << 3 | 3, 4 }; // two lines below the first
	uint64_t frames[2];

	frames[0] = capture_builder_python_frame(
		capture_builder_code(builder, file, function, first_line, 0, table, sizeof(table)), 0);
	frames[1] = capture_builder_python_frame(
		capture_builder_code(builder, "/srv/project/train.py", "<module>", 80, 0, table, sizeof(table)), 0);
	return capture_builder_stack(builder, frames, 2, 0);
}

/* One line that leaks, one that turns over, one of mappings; a limit of which three quarters are used. */
static void
write_capture(void)
{
	struct capture_builder *builder = capture_builder_new();
	size_t bytes;

	strcpy(capture_builder_header(builder)->identity.directory, "/srv/project");
	capture_builder_site(builder, KMEM_DOMAIN_HEAP, stack_of(builder, "/srv/project/train.py", "epoch", 39), 96 * MIB,
	                     96, 0, 0);
	capture_builder_site(builder, KMEM_DOMAIN_HEAP, stack_of(builder, "/srv/project/load.py", "Loader.batch", 10),
	                     900 * MIB, 900, 890 * MIB, 890);
	capture_builder_site(builder, KMEM_DOMAIN_MMAP,
	                     stack_of(builder, "/srv/project/a_folder_with_a_long_name/tables_of_everything.py",
	                              "TablesOfEverything.read_all_of_them_at_once", 200),
	                     40 * MIB, 2, 0, 0);
	capture_builder_header(builder)->generation_clock = 80;
	capture_builder_site_at(builder, 0)->first_generation = 71;
	struct kmem_generations *block = capture_builder_generations(builder, 0, 71, 80); // ten generations, the latest now
	for (unsigned tick = 71; tick <= 80; tick++)
		*capture_builder_born(block, tick) = 9;
	capture_builder_heartbeats(builder)[0] = (struct kmem_heartbeat){ .sequence = 1,
		                                                              .monotonic_ns = 1000000000,
		                                                              .live_bytes = 146 * MIB,
		                                                              .resident_bytes = 160 * MIB,
		                                                              .cgroup_bytes = 192 * MIB,
		                                                              .limit_bytes = 256 * MIB };
	unsigned char *file = capture_builder_finish(builder, KMEM_STATE_CLEAN_EXIT, &bytes);
	capture_builder_write(scratch_file, file, bytes);
	free(file);
	capture_builder_free(builder);
}

/* What top_once() writes on standard output. */
static void
add_screen(unsigned rows, unsigned columns, const char *domain, FILE *to)
{
	const struct top_options options = {
		.captures = { .capture = scratch_file }, .domain = domain, .rows = rows, .columns = columns
	};
	struct fail fail = { .text = "" };
	char path[160];
	char text[1 << 14];

	(void)snprintf(path, sizeof(path), "%s/screen", scratch_folder);
	(void)fflush(stdout);
	int before = dup(STDOUT_FILENO);
	FILE *stream = fopen(path, "w+");
	assert_non_null(stream);
	assert_true(dup2(fileno(stream), STDOUT_FILENO) >= 0);
	bool is_done = top_once(&options, &fail);
	(void)fflush(stdout);
	assert_true(dup2(before, STDOUT_FILENO) >= 0);
	(void)close(before);
	if (!is_done)
		fail_msg("%s", fail.text);
	rewind(stream);
	text[fread(text, 1, sizeof(text) - 1, stream)] = '\0';
	(void)fclose(stream);
	(void)fprintf(to, "---- %u rows of %u columns%s%s ----\n%s", rows, columns, domain != NULL ? ", domain " : "",
	              domain != NULL ? domain : "", text);
}

TEST_WITH(the_first_screen_reads_as_agreed, scratch_make, scratch_remove)
{
	char *text = NULL;
	size_t length = 0;
	FILE *stream = open_memstream(&text, &length);

	assert_non_null(stream);
	write_capture();
	add_screen(24, 80, NULL, stream);
	add_screen(24, 120, NULL, stream);
	add_screen(7, 40, NULL, stream);
	add_screen(24, 80, "mmap", stream);
	assert_int_equal(fclose(stream), 0);
	golden_compare("top.txt", text);
	free(text);
}

RUN_TESTS(NULL, NULL)
