/*
 * test_capture_holders.c - is a look at who holds what found in a capture, and written where the older one was?
 */
#include "test.h"

#include <fcntl.h>
#include <unistd.h>

#include "capture/capture_holders.h"
#include "capture_builder.h"
#include "kmem_words.h"
#include "scratch.h"
#include "owned.h"

static void
write_built(struct capture_builder *builder, enum kmem_state state)
{
	size_t bytes;
	OWNED unsigned char *file = capture_builder_finish(builder, state, &bytes);

	capture_builder_write(scratch_file, file, bytes);
	capture_builder_free(builder);
}

static struct capture *
opened(void)
{
	struct capture *capture;
	struct fail fail;

	assert_true(capture_open(scratch_file, false, &capture, &fail));
	return capture;
}

/* The text of the newest look; damages: how many lines say that something is wrong. */
static void
expect_newest(const char *text, size_t damages)
{
	OWNED_BY(capture) struct capture *capture = opened();
	const struct kmem_holders *newest = capture_holders_newest(capture);

	if (text == NULL)
		assert_null(newest);
	else
		assert_string_equal(newest->text, text);
	assert_int_equal(capture->damage_count, damages);
}

TEST(the_newer_of_two_counts)
{
	static const struct {
		uint64_t sequences[2]; // 0 = none
		const char *newest;
	} cases[] = { { { 0, 0 }, NULL }, { { 0, 1 }, "second" }, { { 2, 1 }, "first" }, { { 2, 3 }, "second" } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct capture_builder *builder = capture_builder_new();

		for (unsigned place = 0; place < 2; place++) {
			if (cases[i].sequences[place] != 0)
				capture_builder_holders(builder, place, cases[i].sequences[place], place == 0 ? "first" : "second");
		}
		write_built(builder, i % 2 == 0 ? KMEM_STATE_RUNNING : KMEM_STATE_CLEAN_EXIT);
		expect_newest(cases[i].newest, 0);
	}
}

static void
flip(off_t at)
{
	int fd = open(scratch_file, O_RDWR);
	unsigned char byte;

	assert_int_equal(pread(fd, &byte, 1, at), 1);
	byte ^= 4;
	assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	(void)close(fd);
}

TEST(a_damaged_byte_is_told_and_the_other_look_counts)
{
	const size_t whole = sizeof(struct kmem_holders);
	const size_t at[] = { 0, 4, 8, 16, 24, 32, 40, 44, 46, 1000, KMEM_CHUNK_BYTES, whole - 1 };

	for (size_t i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		struct capture_builder *builder = capture_builder_new();

		capture_builder_holders(builder, 0, 2, "newer");
		capture_builder_holders(builder, 1, 1, "older");
		write_built(builder, KMEM_STATE_CLEAN_EXIT);
		flip((off_t)(KMEM_HEAD_BYTES + at[i])); // it is all that there is
		expect_newest("older", 1);
		flip((off_t)(KMEM_HEAD_BYTES + whole + at[i]));
		expect_newest(NULL, 2);
	}
}

TEST(a_damaged_byte_where_nothing_was_written_is_told)
{
	struct capture_builder *builder = capture_builder_new();

	capture_builder_holders(builder, 1, 1, "only");
	write_built(builder, KMEM_STATE_RUNNING);
	flip(KMEM_HEAD_BYTES + 77777);
	expect_newest("only", 1);
}

static struct kmem_holders *
new_look(uint64_t sequence, const char *text)
{
	struct kmem_holders *look = calloc(1, sizeof(*look));

	assert_non_null(look);
	look->sequence = sequence;
	look->text_bytes = (uint32_t)strlen(text);
	memcpy(look->text, text, strlen(text));
	return look;
}

static void
write_look(uint64_t sequence, const char *text, bool has_place)
{
	OWNED struct kmem_holders *look = new_look(sequence, text);
	int fd = open(scratch_file, O_RDWR);

	assert_int_equal(capture_holders_write(fd, look), has_place);
	(void)close(fd);
}

TEST(looks_are_written_in_turn)
{
	static const char *const texts[] = { "one", "two", "three" };
	struct capture_builder *builder = capture_builder_new();

	(void)capture_builder_site(builder, KMEM_DOMAIN_HEAP,
	                           capture_builder_stack(builder, (uint64_t[]){ 0x400100 }, 1, 0), 10, 1, 0,
	                           0); // two chunks before it
	capture_builder_holders(builder, 0, 4, "four");
	write_built(builder, KMEM_STATE_CLEAN_EXIT);
	for (uint64_t i = 0; i < 3; i++) {
		write_look(5 + i, texts[i], true);
		expect_newest(texts[i], 0);
	}
	flip((off_t)(KMEM_HEAD_BYTES + 2 * KMEM_CHUNK_BYTES + sizeof(struct kmem_holders) +
	             50)); // the one with an odd sequence
	expect_newest("two", 1);
}

TEST(without_room_nothing_is_written)
{
	write_built(capture_builder_new(), KMEM_STATE_RUNNING);
	write_look(1, "none", false);
	expect_newest(NULL, 0);
}

RUN_TESTS_IN(scratch_make, scratch_remove)
