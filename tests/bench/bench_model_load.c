/*
 * bench_model_load.c - how long does a capture of many call sites take to read?
 *
 *   bench_model_load [SITES] [FRAMES] [THREADS]    default 100000 sites of 40 frames in one thread
 *
 * Makes the capture in a temporary file, loads it with symbols, prints CPU seconds and the highest resident size, and fails
 * above 5 s or 500 MiB, which is what the tool promises for 100,000 sites. Stacks are shaped like those of a deep program:
 * every site has its own combination of functions, shares some outer frames with the one before, and addresses are spread over
 * this program and its C library. Each thread has a record of each site.
 */
#include <inttypes.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../unit/analyzer/capture_builder.h"
#include "model/model_load.h"

#define SECONDS_MAX 5.0
#define RESIDENT_MAX_MIB 500
#define CODES 3000

struct text_range {
	uint64_t start;
	uint64_t bytes;
};

struct setup {
	struct capture_builder *builder;
	unsigned count;
	struct text_range ranges[4];
};

/* The objects of this process become the modules of the capture: their files are here and have symbols. */
static int
add_module(struct dl_phdr_info *object, size_t size, void *argument)
{
	struct setup *setup = argument;
	char path[4096];
	uint64_t end = 0;

	if (object->dlpi_name[0] == '\0') {
		ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);

		path[length > 0 ? length : 0] = '\0';
	} else {
		(void)snprintf(path, sizeof(path), "%s", object->dlpi_name);
	}
	if (path[0] != '/' || setup->count == sizeof(setup->ranges) / sizeof(setup->ranges[0]))
		return 0;
	for (int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &object->dlpi_phdr[i];

		if (segment->p_type != PT_LOAD)
			continue;
		if (segment->p_vaddr + segment->p_memsz > end)
			end = segment->p_vaddr + segment->p_memsz;
		if ((segment->p_flags & PF_X) != 0)
			setup->ranges[setup->count] = (struct text_range){ object->dlpi_addr + segment->p_vaddr, segment->p_memsz };
	}
	capture_builder_module(setup->builder, path, object->dlpi_addr, object->dlpi_addr + end, 1, 0);
	setup->count++;
	return 0;
}

static uint32_t
next_random(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

/* Other frames from the innermost on, as many as `own`. */
static void
next_frames(const struct setup *setup, const uint32_t *codes, uint32_t *seed, uint64_t *frames, uint32_t own)
{
	for (uint32_t k = 0; k < own; k++) {
		const struct text_range *range = &setup->ranges[next_random(seed) % setup->count];

		if (k % 2 == 0)
			frames[k] = capture_builder_python_frame(codes[next_random(seed) % CODES], next_random(seed) % 16 * 2);
		else
			frames[k] = range->start + next_random(seed) % 8192 * (range->bytes / 8192);
	}
}

static void
write_capture(const char *path, uint32_t site_count, uint32_t frame_count, uint32_t thread_count)
{
	static const uint8_t table[] = { 0x80 | 13 << 3 | 7, 4, 0x80 | 13 << 3 | 7, 6 };
	struct setup setup = { .builder = capture_builder_new() };
	uint64_t *frames = calloc(frame_count, sizeof(*frames));
	uint32_t codes[CODES];
	uint32_t seed = 1;
	uint32_t stack = 0;
	uint32_t chain = KMEM_STACK_CHAIN_MAX;
	size_t bytes;

	dl_iterate_phdr(add_module, &setup);
	for (unsigned i = 0; i < CODES; i++) {
		char text[96];

		(void)snprintf(text, sizeof(text), "/data/user/project/package_%u/module_%u.py", i / 100, i / 10);
		codes[i] = capture_builder_code(setup.builder, text, text + 19, i, 0, table, sizeof(table));
	}
	for (uint32_t i = 0; i < site_count; i++) {
		bool is_whole = chain == KMEM_STACK_CHAIN_MAX || frame_count < 4;
		uint32_t own = is_whole ? frame_count : 2 + next_random(&seed) % (frame_count / 2);

		next_frames(&setup, codes, &seed, frames, own);
		chain = is_whole ? 0 : chain + 1;
		stack = capture_builder_stack_on(setup.builder, is_whole ? 0 : stack, frame_count - own, frames, own, 0);
		for (uint32_t thread = 0; thread < thread_count; thread++)
			capture_builder_site(setup.builder, KMEM_DOMAIN_HEAP, stack, i + 100, 1, i, 0);
	}
	unsigned char *file = capture_builder_finish(setup.builder, KMEM_STATE_CLEAN_EXIT, &bytes);
	capture_builder_write(path, file, bytes);
	printf("%" PRIu32 " sites of %" PRIu32 " frames in %" PRIu32 " threads, %zu MiB\n", site_count, frame_count,
	       thread_count, bytes >> 20);
	free(file);
	free(frames);
	capture_builder_free(setup.builder);
}

/* In a child: what making the file needs is not in the figures of reading it. */
static int
write_in_child(const char *path, uint32_t sites, uint32_t frames, uint32_t threads)
{
	int status = -1;

	(void)fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		write_capture(path, sites, frames, threads);
		(void)fflush(stdout);
		_exit(0);
	}
	return child > 0 && waitpid(child, &status, 0) == child ? status : -1;
}

int
main(int count, char **arguments)
{
	char path[] = "/tmp/bench-model-load-XXXXXX";
	uint32_t sites = count > 1 ? (uint32_t)strtoul(arguments[1], NULL, 10) : 100000;
	uint32_t frames = count > 2 ? (uint32_t)strtoul(arguments[2], NULL, 10) : 40;
	uint32_t threads = count > 3 ? (uint32_t)strtoul(arguments[3], NULL, 10) : 1;
	struct model_options options = { .capture = path, .wants_symbols = true };
	struct timespec begin;
	struct timespec end;
	struct rusage usage;
	struct fail fail = { .text = "" };
	int fd = mkstemp(path);

	if (fd < 0 || close(fd) != 0 || write_in_child(path, sites, frames, threads) != 0) {
		puts("cannot make the capture");
		return 1;
	}
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
	struct model *model = model_load(&options, &fail);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	(void)unlink(path);
	if (model == NULL || model->site_count != sites) {
		printf("not read: %s\n", fail.text);
		return 1;
	}
	getrusage(RUSAGE_SELF, &usage);

	double seconds = (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) * 1e-9;
	long resident_mib = usage.ru_maxrss / 1024;

	printf("loaded in %.2f s, %ld MiB resident (at most %.0f s, %d MiB)\n", seconds, resident_mib, SECONDS_MAX,
	       RESIDENT_MAX_MIB);
	model_free(model);
	return seconds > SECONDS_MAX || resident_mib > RESIDENT_MAX_MIB;
}
