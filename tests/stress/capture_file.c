/*
 * capture_file.c - does everybody get room of its own, in memory that is there, while the file grows under them?
 *
 * What one grower leaves for the next is atomic, or ordered by mapped_bytes already: wait_lock.c is about the lock.
 */
#include "stress.h"

#include <string.h>
#include <unistd.h>

#include "../unit/shim/capture_check.h"
#include "base/capture_life.h"
#include "capture/capture_file.h"

#define APPENDS 4000

static _Atomic bool is_done;
static _Atomic unsigned working;

/* Threads 0 to 5 append; 6 follows the directory as a reader does, 7 the notes. */
static void
follow_directory(uint64_t *random)
{
	const struct kmem_chunk *chunks = (const void *)((const char *)capture_file_header() + KMEM_DIRECTORY_OFFSET);

	while (!atomic_load_explicit(&is_done, memory_order_relaxed)) {
		/* acquire: pairs with grow_locked(). */
		uint32_t count = atomic_load_explicit(&capture_file_header()->chunk_count, memory_order_acquire);

		for (uint32_t i = 0; i < count; i++)
			CHECK(chunks[i].section != KMEM_SECTION_NONE && chunks[i].section < KMEM_SECTION_COUNT);
		stress_yield(random);
	}
}

static void
follow_notes(uint64_t *random)
{
	while (!atomic_load_explicit(&is_done, memory_order_relaxed)) {
		/* acquire: pairs with capture_file_note(). */
		uint32_t newest = atomic_load_explicit(&capture_file_header()->notes, memory_order_acquire);

		for (unsigned i = 0; newest != 0 && i < 20; i++) {
			const struct kmem_note *note = capture_file_at(KMEM_SECTION_RECORDS, newest - 1);

			CHECK(note->record.type == KMEM_RECORD_NOTE && note->text_bytes == 9);
			CHECK(memcmp(note + 1, "some text", 9) == 0);
			newest = note->record.previous;
		}
		stress_yield(random);
	}
}

static void
append(unsigned thread, uint64_t *random)
{
	for (uint64_t i = 0; i < APPENDS; i++) {
		uint32_t stack_index;
		uint32_t index;
		size_t frames = random_below(random, 60);
		struct kmem_stack *stack = capture_file_append(KMEM_SECTION_RECORDS, sizeof(*stack) + frames * 8, &stack_index);
		CHECK(stack != NULL);
		stack->record.type = KMEM_RECORD_STACK;
		stack->record.bytes = (uint32_t)(sizeof(*stack) + frames * 8);
		stack->frame_count = (uint32_t)frames;
		for (size_t f = 0; f < frames; f++) {
			CHECK(stack->frames[f] == 0); // nobody else's
			stack->frames[f] = thread + 1;
		}
		stress_yield(random);
		for (size_t f = 0; f < frames; f++)
			CHECK(stack->frames[f] == thread + 1);
		capture_file_seal_record(&stack->record);

		struct kmem_site *site = capture_file_append(KMEM_SECTION_SITES, sizeof(*site), &index);
		CHECK(site != NULL && site->stack == 0 && site->domain == 0);
		site->domain = (uint16_t)(thread + 1);
		atomic_store_explicit(&site->stack, stack_index + 1, memory_order_release);
		if (i % 50 == 0)
			capture_file_note("some text");
	}
}

static void
work(unsigned thread, uint64_t *random)
{
	if (thread == STRESS_THREADS - 1) {
		follow_notes(random);
	} else if (thread == STRESS_THREADS - 2) {
		follow_directory(random);
	} else {
		append(thread, random);
		if (atomic_fetch_sub_explicit(&working, 1, memory_order_relaxed) == 1)
			atomic_store_explicit(&is_done, true, memory_order_relaxed);
	}
}

int
main(void)
{
	char folder[] = "/tmp/kmemshim-stress-XXXXXX";
	char path[64];
	struct capture capture;

	CHECK(mkdtemp(folder) != NULL);
	snprintf(path, sizeof(path), "%s/name.kmem", folder);
	CHECK(capture_file_open(folder, "name"));
	atomic_store_explicit(&working, STRESS_THREADS - 2, memory_order_relaxed);
	stress_run(STRESS_THREADS, work, random_seed());
	CHECK(capture_file_header()->losses[KMEM_LOST_GROWTH] == 0);
	capture_file_mark(KMEM_STATE_CLEAN_EXIT, 0, 1);
	capture_file_close();
	CHECK(capture_read(path, &capture));
	CHECK(!capture.has_holes);
	CHECK(capture_is_sealed(&capture));
	CHECK(capture_sites(&capture) == (STRESS_THREADS - 2) * APPENDS);
	capture_drop(&capture);
	unlink(path);
	rmdir(folder);
	return 0;
}
