/*
 * test_capture_file.c - is what was appended in the file, whole, also after the end, a fork and a kill?
 */
#include "unit.h"

#include <sys/resource.h>

#include "base/turn.h"
#include "capture_fixture.h"
#include "left_at.h"
#include "random.h"

#define KILLS 25

TEST(F1_F2_F3_growth_over_many_chunks_keeps_everything)
{
	enum { SITES = 30000, GENERATIONS = 3000 };
	static struct kmem_site *sites[SITES + 1];
	struct capture capture;
	uint32_t index;

	assert_true(capture_file_open(folder, "name"));
	for (uint64_t i = 1; i <= SITES; i++) {
		assert_int_equal(append_site(i), i);
		sites[i] = capture_file_at(KMEM_SECTION_SITES, (uint32_t)i - 1);
		if (i % (SITES / GENERATIONS) == 0) {
			struct kmem_generations *block = capture_file_append(KMEM_SECTION_GENERATIONS, sizeof(*block), &index);

			assert_int_equal(index, i / (SITES / GENERATIONS) - 1);
			block->site = (uint32_t)i;
		}
	}
	for (uint64_t i = 1; i <= SITES; i++) { // nothing moved
		assert_ptr_equal(sites[i], capture_file_at(KMEM_SECTION_SITES, (uint32_t)i - 1));
		assert_int_equal(sites[i]->allocated_bytes, i);
	}
	assert_int_equal(capture_file_header()->losses[KMEM_LOST_GROWTH], 0);

	/* What another process reads while this one runs. */
	assert_true(capture_read(path, &capture));
	assert_false(capture.has_holes); // F2
	assert_int_equal(capture.size % KMEM_CHUNK_BYTES, KMEM_HEAD_BYTES % KMEM_CHUNK_BYTES);
	assert_true(capture_header(&capture)->chunk_count > 60);
	assert_int_equal(capture_sites(&capture), SITES);
	for (uint64_t i = 1; i <= SITES; i++) {
		const struct kmem_site *site = (const struct kmem_site *)(void *)capture.section[KMEM_SECTION_SITES] + i - 1;
		const struct kmem_stack *stack = (const void *)capture_record(&capture, site->stack - 1, KMEM_RECORD_STACK);

		assert_non_null(stack);
		assert_int_equal(site->allocated_bytes, i);
		assert_int_equal(stack->frame_count, i % 19);
		for (uint32_t f = 0; f < stack->frame_count; f++)
			assert_int_equal(stack->frames[f], i);
	}
	for (uint32_t i = 0; i < GENERATIONS; i++)
		assert_int_equal(((struct kmem_generations *)(void *)capture.section[KMEM_SECTION_GENERATIONS])[i].site,
		                 (i + 1) * (SITES / GENERATIONS));
	capture_drop(&capture);
}

/* What a program with 200,000 sites held at its exit: more than a growth ahead, less than an eighth of what there is. */
TEST(what_is_appended_at_one_go_is_mapped_as_a_whole)
{
	uint32_t index;

	assert_true(capture_file_open(folder, "name"));
	for (uint64_t mapped = 0; mapped < ((uint64_t)36 << 20); mapped += 4000)
		assert_non_null(capture_file_append(KMEM_SECTION_RECORDS, 4000, &index));
	for (uint64_t bytes = 1 << 20; bytes < 5 << 20; bytes += 300000) {
		char *record = capture_file_append(KMEM_SECTION_RECORDS, bytes, &index);

		assert_non_null(record);
		memset(record, 1, bytes); // the program's own death, where it is not mapped
	}
}

/* D4: in a folder in memory what is filled in advance is the program's memory that it cannot have. An eighth, and a chunk for each section. */
TEST(D4_little_of_the_file_is_not_used_yet)
{
	struct stat file;

	assert_true(capture_file_open(folder, "name"));
	for (uint64_t i = 1; i <= 30000; i++) {
		uint64_t filled = 0;

		assert_int_equal(append_site(i), i);
		for (unsigned section = 0; section < KMEM_SECTION_COUNT; section++)
			filled += capture_file_header()->used_bytes[section];
		assert_int_equal(stat(path, &file), 0);
		assert_true((uint64_t)file.st_blocks * 512 <=
		            KMEM_HEAD_BYTES + filled + filled / 8 + 2 * (KMEM_CHUNK_BYTES + CAPTURE_FILE_SPARE_BYTES));
	}
}

/* Of this process: bytes of files, and of files in memory. */
static uint64_t
resident_of_files(void)
{
	FILE *status = fopen("/proc/self/status", "r");
	unsigned long kib, all_kib = 0;
	char line[128];

	assert_non_null(status);
	while (fgets(line, sizeof(line), status) != NULL) {
		if (sscanf(line, "RssFile: %lu", &kib) == 1 || sscanf(line, "RssShmem: %lu", &kib) == 1)
			all_kib += kib;
	}
	fclose(status);
	return (uint64_t)all_kib << 10;
}

/* The file has them: what is not looked at is not resident. */
TEST(F3_records_leave_the_resident_set_and_stay)
{
	enum { RECORDS = 8000, WORDS = 256 };
	uint32_t index[RECORDS];

	assert_true(capture_file_open(folder, "name"));
	uint64_t before = resident_of_files();
	for (uint64_t i = 0; i < RECORDS; i++) {
		uint64_t *record = capture_file_append(KMEM_SECTION_RECORDS, WORDS * 8, &index[i]);

		assert_non_null(record);
		for (unsigned word = 0; word < WORDS; word++)
			record[word] = i + 1;
	}
	assert_true(resident_of_files() < before + RECORDS * WORDS * 8 / 2);
	for (uint64_t i = 0; i < RECORDS; i++) {
		const uint64_t *record = capture_file_at(KMEM_SECTION_RECORDS, index[i]);

		assert_int_equal(record[0], i + 1);
		assert_int_equal(record[WORDS - 1], i + 1);
	}
}

TEST(records_are_aligned_zeroed_and_apart)
{
	uint64_t random = random_seed();
	size_t next = 0;

	assert_true(capture_file_open(folder, "name"));
	for (unsigned i = 0; i < 5000; i++) {
		size_t bytes = 1 + random_below(&random, 700);
		uint32_t index;
		char *record = capture_file_append(KMEM_SECTION_RECORDS, bytes, &index);

		assert_non_null(record);
		assert_int_equal((uintptr_t)record % 8, 0);
		assert_int_equal(index * UINT64_C(8), next);
		for (size_t b = 0; b < bytes; b++)
			assert_int_equal(record[b], 0);
		memset(record, 0xff, bytes);
		next += (bytes + 7) / 8 * 8;
	}
	assert_int_equal(capture_file_header()->used_bytes[KMEM_SECTION_RECORDS], next);
}

TEST(F3_notes_are_a_list_of_whole_records)
{
	static const char *const notes[] = { "first", "", "the third one is longer than the others" };
	struct capture capture;
	uint32_t at;
	size_t i = ARRAY_LEN(notes);

	assert_true(capture_file_open(folder, "name"));
	for (size_t n = 0; n < ARRAY_LEN(notes); n++)
		capture_file_note(notes[n]);
	assert_true(capture_read(path, &capture));
	for (at = capture_header(&capture)->notes; at != 0;) {
		const struct kmem_note *note = (const void *)capture_record(&capture, at - 1, KMEM_RECORD_NOTE);

		assert_non_null(note);
		assert_true(i > 0);
		i--;
		assert_int_equal(note->text_bytes, strlen(notes[i]));
		assert_memory_equal(note + 1, notes[i], note->text_bytes);
		at = note->record.previous;
	}
	assert_int_equal(i, 0);
	capture_drop(&capture);
}

TEST(F4_the_identity_has_its_checksum)
{
	struct capture capture;

	assert_true(capture_file_open(folder, "name"));
	assert_int_equal(capture_file_header()->identity_checksum, 0);
	capture_file_header()->identity.pid = 42;
	strcpy(capture_file_header()->identity.session, "a session");
	capture_file_identified();
	assert_true(capture_read(path, &capture));
	assert_memory_equal(capture.bytes, KMEM_MAGIC, 8);
	assert_int_equal(capture_header(&capture)->version, KMEM_VERSION);
	assert_int_equal(capture_header(&capture)->endian, KMEM_ENDIAN);
	assert_true(capture_has_identity(&capture));
	capture_header(&capture)->identity.pid ^= 1;
	assert_int_not_equal(capture_header(&capture)->identity_checksum, kmem_identity_checksum(capture.bytes));
	capture_drop(&capture);
}

TEST(F5_close_seals_everything)
{
	struct capture capture;

	assert_true(capture_file_open(folder, "name"));
	capture_file_identified();
	for (uint64_t i = 1; i <= 5000; i++)
		append_site(i);
	assert_true(capture_read(path, &capture));
	assert_int_equal(((struct kmem_chunk *)(void *)(capture.bytes + KMEM_DIRECTORY_OFFSET))->is_sealed, 0);
	capture_drop(&capture);
	capture_file_mark(KMEM_STATE_CLEAN_EXIT, 7, 123456789);
	capture_file_close();
	assert_true(capture_read(path, &capture));
	assert_true(capture_is_sealed(&capture));
	assert_true(capture_has_identity(&capture));
	assert_int_equal(capture_sites(&capture), 5000);
	assert_int_equal(capture_header(&capture)->state, KMEM_STATE_CLEAN_EXIT);
	assert_int_equal(capture_header(&capture)->exit_code, 7);
	assert_int_equal(capture_header(&capture)->ended_monotonic_ns, 123456789);
	capture_drop(&capture);
}

/* As of a program that was refused memory under `ulimit -v` and exits. */
TEST(F5_close_seals_without_address_space)
{
	struct capture capture;
	struct rlimit before;

	assert_true(capture_file_open(folder, "name"));
	capture_file_identified();
	for (uint64_t i = 1; i <= 5000; i++)
		append_site(i);
	capture_file_mark(KMEM_STATE_CLEAN_EXIT, 0, 1);
	assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
	struct rlimit spent = (struct rlimit){ .rlim_cur = address_space_bytes(), .rlim_max = before.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_AS, &spent), 0);
	capture_file_close();
	assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
	assert_true(capture_read(path, &capture));
	assert_true(capture_is_sealed(&capture));
	assert_int_equal(capture_sites(&capture), 5000);
	capture_drop(&capture);
	for (uint64_t i = 1; i <= 3000; i++) // of a late thread
		append_site(i);
	capture_file_forked();
	assert_true(capture_file_open(folder, "child"));
	assert_int_equal(append_site(1), 1);
}

TEST(F5_late_writers_do_not_reach_a_closed_file)
{
	struct capture before;
	struct capture after;

	assert_true(capture_file_open(folder, "name"));
	for (uint64_t i = 1; i <= 5000; i++)
		append_site(i);
	struct kmem_site *site = capture_file_at(KMEM_SECTION_SITES, 17);
	capture_file_mark(KMEM_STATE_CLEAN_EXIT, 0, 1);
	capture_file_close();
	assert_true(capture_read(path, &before));
	site->allocated_bytes = 999; // as a thread that is still on its way would
	capture_file_lost(KMEM_LOST_EVENTS, 5);
	capture_file_header()->state = KMEM_STATE_RUNNING;
	for (uint64_t i = 1; i <= 3000; i++)
		append_site(i);
	capture_file_note("late");
	assert_int_equal(site->allocated_bytes, 999); // and it does not crash
	assert_true(capture_read(path, &after));
	assert_int_equal(before.size, after.size);
	assert_memory_equal(before.bytes, after.bytes, before.size);
	assert_true(capture_is_sealed(&after));
	capture_drop(&before);
	capture_drop(&after);
}

TEST(a_taken_name_gets_a_number)
{
	char other[160];

	write_file(path, "not ours");
	for (unsigned i = 2; i < 5; i++) {
		assert_true(capture_file_open(folder, "name"));
		snprintf(other, sizeof(other), "%s/name-%u.kmem", folder, i);
		assert_int_equal(access(other, F_OK), 0);
		capture_file_forked();
	}
	assert_file_says(path, "not ours");
}

TEST(a_link_in_place_of_the_file_is_not_followed)
{
	char victim[128];
	char other[160];
	struct stat info;

	snprintf(victim, sizeof(victim), "%s/victim", folder);
	snprintf(other, sizeof(other), "%s/name-2.kmem", folder);
	write_file(victim, "precious");
	assert_int_equal(symlink(victim, path), 0);
	assert_true(capture_file_open(folder, "name"));
	assert_int_equal(lstat(other, &info), 0);
	assert_true(S_ISREG(info.st_mode));
	assert_int_equal(info.st_mode & 0777, 0600);
	assert_file_says(victim, "precious");
	capture_file_forked();

	/* Put there later, for growth to find. */
	unlink(path);
	unlink(other);
	assert_true(capture_file_open(folder, "name"));
	unlink(path);
	assert_int_equal(symlink(victim, path), 0);
	while (append_site(1) != 0)
		;
	capture_file_mark(KMEM_STATE_CLEAN_EXIT, 0, 1);
	capture_file_close();
	assert_file_says(victim, "precious");
}

TEST(missing_folders_are_made)
{
	char deep[128];
	char other[160];

	snprintf(deep, sizeof(deep), "%s/a/b", folder);
	snprintf(other, sizeof(other), "%s/name.kmem", deep);
	assert_true(capture_file_open(deep, "name"));
	assert_int_equal(unlink(other), 0);
	assert_int_equal(rmdir(deep), 0);
	*strrchr(deep, '/') = '\0';
	assert_int_equal(rmdir(deep), 0);
}

TEST(remove_deletes_the_file_and_keeps_the_memory)
{
	assert_true(capture_file_open(folder, "name"));
	append_site(1);
	capture_file_remove();
	assert_int_equal(access(path, F_OK), -1);
	((struct kmem_site *)capture_file_at(KMEM_SECTION_SITES, 0))->allocated_bytes = 5;
}

static int
forgets_its_parent(void *unused)
{
	capture_file_forked();
	CHECK_IN_CHILD(capture_file_header()->chunk_count == 0);
	CHECK_IN_CHILD(capture_file_header()->used_bytes[KMEM_SECTION_SITES] == 0);
	CHECK_IN_CHILD(capture_file_header()->magic[0] == 0);
	for (uint64_t i = 1; i < 2000; i++)
		CHECK_IN_CHILD(append_site(i + 500000) == i);
	capture_file_forked();
	CHECK_IN_CHILD(capture_file_open(folder, "child"));
	for (uint64_t i = 1; i < 2000; i++)
		CHECK_IN_CHILD(append_site(i + 700000) == i);
	capture_file_mark(KMEM_STATE_CLEAN_EXIT, 3, 1);
	capture_file_close();
	return 0;
}

TEST(a_forked_child_starts_empty_and_leaves_the_parents_file)
{
	char childs[160];
	struct capture before;
	struct capture after;

	assert_true(capture_file_open(folder, "name"));
	for (uint64_t i = 1; i <= 3000; i++)
		append_site(i);
	assert_true(capture_read(path, &before));
	capture_file_growth_lock();
	assert_int_equal(in_child(forgets_its_parent, NULL), 0); // although the lock was held at fork
	capture_file_growth_lock();                              // a signal handler forks meanwhile
	capture_file_growth_unlock();
	capture_file_growth_unlock();
	assert_true(capture_read(path, &after));
	assert_int_equal(before.size, after.size);
	assert_memory_equal(before.bytes, after.bytes, before.size);
	capture_drop(&before);
	capture_drop(&after);
	for (uint64_t i = 1; i <= 3000; i++)
		assert_int_equal(append_site(i), 3000 + i); // the parent goes on
	snprintf(childs, sizeof(childs), "%s/child.kmem", folder);
	assert_true(capture_read(childs, &after));
	assert_true(capture_is_sealed(&after));
	assert_int_equal(capture_sites(&after), 1999);
	capture_drop(&after);
}

/* The hook that a signal handler interrupted, which forked, goes on in the child. */
static int
goes_on_in_the_hook(void *context)
{
	uint64_t *record = context;
	uint32_t index;

	capture_file_privatize();
	*record = 2; // its own, from now on
	for (unsigned i = 0; i < 8000; i++) {
		if (capture_file_append(KMEM_SECTION_RECORDS, 1024, &index) == NULL)
			return 1;
	}
	return *record == 2 ? 0 : 2;
}

TEST(a_child_that_was_forked_out_of_a_hook_keeps_what_it_writes_and_the_parents_file)
{
	struct capture before;
	struct capture after;
	uint32_t index;

	assert_true(capture_file_open(folder, "name"));
	uint64_t *record = capture_file_append(KMEM_SECTION_RECORDS, 1024, &index);
	*record = 1;
	assert_true(capture_read(path, &before));
	assert_int_equal(in_child(goes_on_in_the_hook, record), 0);
	assert_true(capture_read(path, &after));
	assert_int_equal(before.size, after.size);
	assert_memory_equal(before.bytes, after.bytes, before.size);
	capture_drop(&before);
	capture_drop(&after);
}

/* Forks, and ends the program, while another thread's growth takes long. Says how much it could append. */
static void *
forks_and_ends_meanwhile(void *appended)
{
	uint32_t index;

	capture_file_growth_lock(); // gives up
	capture_file_growth_unlock();
	while (capture_file_append(KMEM_SECTION_SITES, sizeof(struct kmem_site), &index) != NULL)
		++*(unsigned *)appended;
	capture_file_mark(KMEM_STATE_CLEAN_EXIT, 0, 1);
	capture_file_close();
	return NULL;
}

TEST(E2_a_growth_lock_that_was_not_had_is_not_given_back_and_nothing_is_sealed)
{
	struct capture capture;
	pthread_t other;
	unsigned appended = 0;

	assert_true(capture_file_open(folder, "name"));
	assert_int_not_equal(append_site(1), 0);
	capture_file_growth_lock(); // as long as a growth on a slow disk
	assert_int_equal(pthread_create(&other, NULL, forks_and_ends_meanwhile, &appended), 0);
	assert_int_equal(pthread_join(other, NULL), 0);
	/* All the room there was, also what is spared; two growths at once would give both the same chunk. */
	assert_int_equal(appended, KMEM_CHUNK_BYTES / sizeof(struct kmem_site) - 1);
	capture_file_growth_unlock();
	assert_int_not_equal(append_site(1), 0);
	assert_true(capture_read(path, &capture));
	assert_int_equal(capture_header(&capture)->state, KMEM_STATE_CLEAN_EXIT);
	assert_int_equal(capture_header(&capture)->head_checksum, 0);
	assert_int_equal(capture_sites(&capture), 2); // an event that was under way, in the file
	capture_drop(&capture);
}

/* Tells when so many sites are there, and goes on. */
static _Noreturn void
appends_for_ever(int ready, uint64_t sites)
{
	capture_file_open(folder, "name");
	capture_file_identified();
	for (uint64_t i = 1;; i++) {
		append_site(i);
		if (i % 64 == 0)
			capture_file_note("still here");
		if (i == sites)
			(void)!write(ready, "x", 1);
	}
}

TEST(F1_F2_F3_F4_hold_after_sigkill_at_any_moment)
{
	uint64_t random = random_seed();

	for (unsigned i = 0; i < KILLS; i++) {
		struct capture capture;
		uint64_t sites = 1 + random_below(&random, 6000);
		int ends[2];
		char byte;

		assert_int_equal(pipe(ends), 0);
		pid_t pid = fork();
		if (pid == 0)
			appends_for_ever(ends[1], sites);
		close(ends[1]);
		assert_int_equal(read(ends[0], &byte, 1), 1);
		close(ends[0]);
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		assert_true(capture_read(path, &capture));
		assert_true(capture_has_identity(&capture));
		assert_true(capture_sites(&capture) >= (long)sites);
		for (uint32_t at = capture_header(&capture)->notes; at != 0;) {
			const struct kmem_record *note = capture_record(&capture, at - 1, KMEM_RECORD_NOTE);

			assert_non_null(note);
			at = note->previous;
		}
		capture_drop(&capture);
		unlink(path);
	}
}

static uint32_t grown_index;
static char *grown;

static void
grow_one(void)
{
	grown = capture_file_append(KMEM_SECTION_GENERATIONS, KMEM_CHUNK_BYTES, &grown_index);
}

static unsigned
open_descriptors(void)
{
	DIR *list = opendir("/proc/self/fd");
	unsigned count = 0;

	while (readdir(list) != NULL)
		count++;
	closedir(list);
	return count;
}

/* Wherever a growth was left, the next one goes on, and the file holds each chunk where the directory says. */
TEST(F1_F2_a_growth_that_was_left_is_completed)
{
	unsigned before = open_descriptors();
	unsigned instruction = 0;

	for (bool is_left = true; is_left; instruction = left_at_next_but(1, instruction)) {
		struct capture capture;

		assert_true(capture_file_open(folder, "name"));
		is_left = left_at(instruction, grow_one);
		turn_left();
		grow_one();
		assert_non_null(grown);
		strcpy(grown, "it stands in the file");
		assert_int_equal(capture_file_header()->losses[KMEM_LOST_GROWTH], 0);
		assert_true(capture_read(path, &capture));
		assert_string_equal(
			capture.section[KMEM_SECTION_GENERATIONS] + (size_t)grown_index * sizeof(struct kmem_generations), grown);
		capture_drop(&capture);
		capture_file_forked();
		remove(path);
	}
	assert_true(instruction > 200);
	assert_true(open_descriptors() <
	            before + instruction / 4); // of the few instructions between its opening and its being noted
}

RUN_TESTS(make_folder, remove_folder)
