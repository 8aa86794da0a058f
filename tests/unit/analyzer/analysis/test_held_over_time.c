/*
 * test_held_over_time.c - did a line accumulate until the peak, and was it released as the program ended, or has it grown to the end?
 */
#include "hand_model.h"

#include "kmem_format.h"
#include "threshold.h"

#define POINTS_MAX 64
#define POINT_SITES 3
#define STEP_BYTES MIB // what the program allocates between two points
#define HELD_BYTES (300 * KIB)
#define ROUNDS 16

static struct hand_model hand;
static struct model_point points[POINTS_MAX];
static struct model_point_site held[POINTS_MAX][KMEM_HISTORY_SITES];

/* One more point, in which the first site holds so much. */
static void
add_point(uint64_t volume_bytes, uint64_t bytes)
{
	size_t i = hand.process.point_count++;

	assert_true(i < POINTS_MAX);
	held[i][0] = (struct model_point_site){ 0, bytes };
	points[i] = (struct model_point){
		.monotonic_ns = volume_bytes, .volume_bytes = volume_bytes, .site_count = bytes != 0, .sites = held[i]
	};
}

static void
add_end(uint64_t volume_bytes, uint64_t bytes)
{
	add_point(volume_bytes, bytes);
	points[hand.process.point_count - 1].is_end = true;
	hand.sites[0].live_bytes = bytes;
}

/* One site, nothing of which is live, of a program that ended by itself. */
static void
make(void)
{
	hand_model_make(&hand);
	memset(points, 0, sizeof(points));
	memset(held, 0, sizeof(held));
	hand_model_site(&hand, HEAP, 41, 0)->leak = MODEL_LEAK_NONE;
	hand.process.state = KMEM_STATE_CLEAN_EXIT;
	hand.process.points = points;
}

static void
make_rounds(unsigned rounds, uint64_t bytes)
{
	make();
	for (unsigned i = 1; i <= rounds; i++)
		add_point(i * STEP_BYTES, i * bytes);
}

/* The class of the first site, of which generations said this. */
static enum model_leak_class
classified(enum model_leak_class leak)
{
	hand.sites[0].leak = leak;
	held_over_time_classify(&hand.model);
	return hand.sites[0].leak;
}

static bool
is_swept(void)
{
	held_over_time_classify(&hand.model);
	return hand.sites[0].leak == MODEL_LEAK_SWEPT;
}

TEST(what_grew_in_each_round_and_went_at_the_end_was_swept)
{
	make_rounds(ROUNDS, HELD_BYTES);
	add_end(ROUNDS * STEP_BYTES, 0);
	assert_true(is_swept());
	assert_int_equal(hand.sites[0].swept_bytes, ROUNDS * HELD_BYTES);
}

/* Each of two lines holds less than half of what was allocated meanwhile, and both hold more. */
TEST(what_two_lines_of_a_function_load_is_one_data_set)
{
	for (unsigned i = 0; i < 2; i++) {
		make_rounds(ROUNDS, HELD_BYTES);
		hand_model_site(&hand, HEAP, 42, 0)->leak = MODEL_LEAK_NONE;
		for (unsigned k = 0; k < ROUNDS; k++) {
			held[k][points[k].site_count] = (struct model_point_site){ 1, held[k][0].bytes };
			points[k].site_count++;
		}
		add_end(ROUNDS * STEP_BYTES, 0);
		if (i == 1)
			hand.frames[1][2].function = "validate";
		assert_int_equal(is_swept(), i == 1);
		assert_int_equal(hand.sites[0].swept_bytes, ROUNDS * HELD_BYTES); // told, whatever it is
		assert_int_equal(hand.sites[1].leak == MODEL_LEAK_SWEPT, i == 1);
	}
}

/* A thread of a pool fills a queue. Where another thread was seen meanwhile, the line, changes on the way, and it released many blocks. */
TEST(a_queue_that_goes_on_at_another_line_is_one)
{
	for (unsigned own = 0; own < 2; own++) {
		make_rounds(ROUNDS, 0);
		hand_model_site(&hand, HEAP, 42, ROUNDS * HELD_BYTES);
		for (unsigned i = 0; i < 2; i++) {
			hand.sites[i].leak = MODEL_LEAK_TOO_SHORT;
			hand.sites[i].stack_flags = own != 0 ? 0 : KMEM_STACK_WHILE;
			hand.sites[i].where_relation = own != 0 ? MODEL_RELATION_OWN : MODEL_RELATION_WHILE;
			hand.sites[i].frame_count = 3;
			hand.stacks[i][1] = &hand.frames[i][2];
			hand.stacks[i][0] = &hand.frames[0][0];
			hand.sites[i].generations_alive = 2;
			hand.sites[i].generations_total = 4;
			hand.sites[i].live_count = 100;
			hand.sites[i].allocated_count = 200;
		}
		for (unsigned k = 0; k < ROUNDS; k++) {
			held[k][0] = (struct model_point_site){ k % 4 < 2 ? 0 : 1, (k + 1) * HELD_BYTES };
			points[k].site_count = 1;
		}
		add_point(ROUNDS * STEP_BYTES, 0);
		points[ROUNDS].is_end = true;
		held[ROUNDS][0] = (struct model_point_site){ 1, ROUNDS * HELD_BYTES };
		points[ROUNDS].site_count = 1;
		held_over_time_classify(&hand.model);
		assert_int_equal(hand.sites[1].leak, own != 0 ? MODEL_LEAK_TOO_SHORT : MODEL_LEAK_BACKLOG);
	}
}

TEST(one_that_still_holds_it_is_judged_by_its_generations_alone)
{
	make_rounds(ROUNDS, HELD_BYTES);
	add_end(ROUNDS * STEP_BYTES, ROUNDS * HELD_BYTES);
	assert_false(is_swept());
	assert_int_equal(hand.sites[0].swept_bytes, 0);
}

/* The class of a line that holds `bytes` more in each of so many rounds, and is alive at the end, when generations said `leak`. */
static enum model_leak_class
class_of_growing(unsigned rounds, uint64_t bytes, enum model_leak_class leak)
{
	make_rounds(rounds, bytes);
	add_end(rounds * STEP_BYTES, rounds * bytes);
	return classified(leak);
}

/* Half of all that was allocated is held; so many blocks of it, of so many. `leaking_bytes` are of another stack of the line. */
static enum model_leak_class
class_of_queue(uint64_t live_count, uint64_t allocated_count, uint64_t leaking_bytes)
{
	make_rounds(ROUNDS, STEP_BYTES / 2);
	add_end(ROUNDS * STEP_BYTES, ROUNDS * STEP_BYTES / 2);
	struct model_site *site = hand_model_site(&hand, HEAP, 41, leaking_bytes);
	site->leak = MODEL_LEAK_LEAK;
	hand.sites[0].leak = MODEL_LEAK_STEADY;
	hand.sites[0].live_count = live_count;
	hand.sites[0].allocated_count = allocated_count;
	hand.sites[0].live_bytes = ROUNDS * STEP_BYTES / 2;
	held_over_time_classify(&hand.model);
	if (leaking_bytes >= ROUNDS * STEP_BYTES / 2 / 16 || hand.sites[0].leak != MODEL_LEAK_BACKLOG)
		assert_int_equal(site->leak, MODEL_LEAK_LEAK);
	else
		assert_int_equal(site->leak, MODEL_LEAK_BACKLOG);
	return hand.sites[0].leak;
}

/* A data set that is loaded releases next to nothing, or is few blocks, which grow. */
TEST(a_queue_may_hold_half_of_all_that_was_allocated)
{
	assert_int_equal(class_of_queue(1000, 1250, 1000), MODEL_LEAK_BACKLOG);
	assert_int_equal(class_of_queue(1000, 1250, ROUNDS * STEP_BYTES / 2 / 16), MODEL_LEAK_BACKLOG);
	assert_int_equal(class_of_queue(1000, 1250, ROUNDS * STEP_BYTES / 2 / 16 - 1), MODEL_LEAK_BACKLOG);
	assert_int_equal(class_of_queue(64, 80, 1000), MODEL_LEAK_BACKLOG);
}

TEST(what_grows_to_the_end_is_not_steady)
{
	assert_int_equal(class_of_growing(ROUNDS, HELD_BYTES, MODEL_LEAK_STEADY), MODEL_LEAK_BACKLOG);
	assert_int_equal(class_of_growing(ROUNDS, HELD_BYTES, MODEL_LEAK_TOO_SHORT), MODEL_LEAK_LEAK);
	assert_true(hand.sites[0].may_be_built_once); // one call may have made it
	assert_int_equal(class_of_growing(ROUNDS, HELD_BYTES, MODEL_LEAK_FILLING), MODEL_LEAK_FILLING);
	/* Half of all that was allocated, and nothing of it was released: loaded at one go. */
	assert_int_equal(class_of_growing(ROUNDS, STEP_BYTES / 2, MODEL_LEAK_STEADY), MODEL_LEAK_STEADY);
	/* Too few points. */
	assert_int_equal(class_of_growing(6, HELD_BYTES, MODEL_LEAK_STEADY), MODEL_LEAK_STEADY);
}

/* Much was allocated in little time, in which no point was taken; then `rounds` in which the line grew, from `first_bytes`. */
static enum model_leak_class
class_after_a_gap(unsigned rounds, uint64_t first_bytes, uint64_t bytes)
{
	make();
	for (unsigned i = 1; i <= 8; i++)
		add_point(i * STEP_BYTES, 0);
	for (unsigned i = 0; i < rounds; i++)
		add_point((200 + i) * STEP_BYTES, first_bytes + i * bytes);
	add_end((200 + rounds) * STEP_BYTES, first_bytes + rounds * bytes);
	return classified(MODEL_LEAK_TOO_SHORT);
}

TEST(a_line_that_began_in_a_wide_gap_began_where_it_was_seen)
{
	assert_int_equal(class_after_a_gap(ROUNDS, HELD_BYTES, HELD_BYTES), MODEL_LEAK_LEAK);
	/* Built at one go in the gap. */
	assert_int_equal(class_after_a_gap(ROUNDS, ROUNDS * HELD_BYTES, 0), MODEL_LEAK_TOO_SHORT);
	assert_int_equal(class_after_a_gap(ROUNDS, ROUNDS * HELD_BYTES, HELD_BYTES / 64), MODEL_LEAK_TOO_SHORT);
}

TEST(of_a_program_that_was_killed_too)
{
	make_rounds(ROUNDS, HELD_BYTES);
	add_end(ROUNDS * STEP_BYTES, ROUNDS * HELD_BYTES);
	hand.sites[0].leak = MODEL_LEAK_STEADY;
	hand.process.state = KMEM_STATE_RUNNING;
	held_over_time_classify(&hand.model);
	assert_int_equal(hand.sites[0].leak, MODEL_LEAK_BACKLOG);
}

TEST(what_grew_and_stopped_is_steady)
{
	make();
	for (unsigned i = 1; i <= 32; i++)
		add_point(i * STEP_BYTES, (i < 16 ? i : 16) * HELD_BYTES);
	add_end(32 * STEP_BYTES, 16 * HELD_BYTES);
	assert_int_equal(classified(MODEL_LEAK_STEADY), MODEL_LEAK_STEADY);
}

TEST(of_a_program_that_was_killed_nothing_was_swept)
{
	make_rounds(ROUNDS, HELD_BYTES);
	add_end(ROUNDS * STEP_BYTES, 0);
	hand.process.state = KMEM_STATE_RUNNING;
	assert_false(is_swept());
}

TEST(a_sawtooth_whose_last_tooth_ends_with_the_program_is_none)
{
	make();
	for (unsigned i = 1; i <= 32; i++)
		add_point(i * STEP_BYTES, (i - 1) % 16 * HELD_BYTES);
	add_end(32 * STEP_BYTES, 0);
	assert_false(is_swept());
}

TEST(what_was_loaded_first_is_none)
{
	make();
	for (unsigned i = 1; i <= 32; i++)
		add_point(i * STEP_BYTES, (i < 4 ? i : 4) * HELD_BYTES);
	add_end(32 * STEP_BYTES, 0);
	assert_false(is_swept());
}

TEST(a_cache_that_fills_is_none)
{
	static const unsigned filled[] = { 25, 43, 57, 67, 75, 81, 85, 89, 92, 94, 95, 96, 97, 98, 99, 100 };

	make();
	for (unsigned i = 0; i < ARRAY_LEN(filled); i++)
		add_point((i + 1) * STEP_BYTES, filled[i] * KIB * 40);
	add_end(ARRAY_LEN(filled) * STEP_BYTES, 0);
	assert_false(is_swept());
}

/* Who was the 33rd had no place in that point; it has not released what it held. */
TEST(a_point_whose_places_are_taken_by_larger_ones_is_no_release)
{
	make_rounds(ROUNDS, HELD_BYTES);
	add_end(ROUNDS * STEP_BYTES, 0);
	hand_model_site(&hand, HEAP, 50, GIB)->leak = MODEL_LEAK_LEAK;
	for (unsigned i = 0; i < KMEM_HISTORY_SITES; i++)
		held[7][i] = (struct model_point_site){ 1, 8 * HELD_BYTES };
	points[7].site_count = KMEM_HISTORY_SITES;
	assert_true(is_swept());
}

TEST(sites_of_one_line_are_one)
{
	make();
	for (unsigned i = 1; i <= ROUNDS; i++) { // they take turns: neither grows in each part
		add_point(i * STEP_BYTES, (i < 8 ? i : 8) * HELD_BYTES);
		held[i - 1][1] = (struct model_point_site){ 1, i > 8 ? (i - 8) * HELD_BYTES : 0 };
		points[i - 1].site_count = 2;
	}
	add_end(ROUNDS * STEP_BYTES, 0);
	hand_model_site(&hand, HEAP, 41, 0)->leak = MODEL_LEAK_NONE;
	assert_true(is_swept());
	assert_int_equal(hand.sites[1].leak, MODEL_LEAK_SWEPT);
	assert_int_equal(hand.sites[0].swept_bytes + hand.sites[1].swept_bytes, ROUNDS * HELD_BYTES);
}

TEST(what_has_a_class_that_says_more_keeps_it)
{
	static const enum model_leak_class kept[] = { MODEL_LEAK_LEAK, MODEL_LEAK_FILLING, MODEL_LEAK_IMPORT };
	static const enum model_leak_class taken[] = { MODEL_LEAK_STEADY, MODEL_LEAK_TOO_SHORT, MODEL_LEAK_BACKLOG };

	for (size_t i = 0; i < ARRAY_LEN(kept) + ARRAY_LEN(taken); i++) {
		bool is_kept = i < ARRAY_LEN(kept);

		make_rounds(ROUNDS, HELD_BYTES);
		add_end(ROUNDS * STEP_BYTES, 0);
		hand.sites[0].leak = is_kept ? kept[i] : taken[i - ARRAY_LEN(kept)];
		assert_int_equal(is_swept(), !is_kept);
	}
}

/*
 * A block that is replaced by one of `next_percent` of its size, `count` times: both are live meanwhile, unless realloc() lets it grow in
 * place. Other lines allocate `other_part` times as much. After the last time they allocate so many percent of what there was until then.
 */
static void
make_storage(unsigned count, uint64_t next_percent, bool is_in_place, uint64_t other_part, uint64_t after_percent)
{
	uint64_t bytes = 512 * KIB;
	uint64_t volume = bytes;

	make();
	hand.process.state = KMEM_STATE_RUNNING;
	add_point(volume * (1 + other_part), bytes);
	hand.sites[0].allocated_bytes = bytes;
	for (unsigned i = 0; i < count; i++) {
		uint64_t next_bytes = bytes * next_percent / 100;

		hand.sites[0].allocated_bytes += next_bytes;
		volume = hand.sites[0].allocated_bytes * (1 + other_part);
		if (!is_in_place)
			add_point(volume, bytes + next_bytes);
		add_point(volume, next_bytes);
		bytes = next_bytes;
	}
	add_end(volume + volume * after_percent / 100, bytes);
	hand.sites[0].allocated_count = count + 1;
	hand.sites[0].live_count = 1;
	hand.sites[0].leak = MODEL_LEAK_STEADY;
}

static enum model_leak_class
class_of_storage(unsigned count, uint64_t next_percent, bool is_in_place, uint64_t after_percent)
{
	make_storage(count, next_percent, is_in_place, 2, after_percent);
	held_over_time_classify(&hand.model);
	return hand.sites[0].leak;
}

/* As the tables of sets, dictionaries and vectors are, and what lists and arrays keep their items in. */
TEST(storage_that_is_replaced_by_larger_storage_grows)
{
	assert_int_equal(class_of_storage(7, 200, false, 0), MODEL_LEAK_LEAK);
	assert_int_equal(class_of_storage(7, 200, false, 60), MODEL_LEAK_LEAK);
	assert_int_equal(class_of_storage(5, 400, false, 0), MODEL_LEAK_LEAK);
	assert_int_equal(class_of_storage(24, 113, false, 5), MODEL_LEAK_LEAK);
	assert_int_equal(class_of_storage(24, 113, true, 5), MODEL_LEAK_LEAK);
	/* It has been large enough for a long time. */
	assert_int_equal(class_of_storage(7, 200, false, 250), MODEL_LEAK_STEADY);
	assert_int_equal(class_of_storage(24, 113, false, 50), MODEL_LEAK_STEADY);
	assert_int_equal(class_of_storage(24, 113, true, 50), MODEL_LEAK_STEADY);
	/* Buffers of one size. */
	assert_int_equal(class_of_storage(24, 100, false, 0), MODEL_LEAK_STEADY);
	/* Three times are too few. */
	assert_int_equal(class_of_storage(3, 200, false, 0), MODEL_LEAK_STEADY);
}

/* Inputs that become larger and larger look the same. */
TEST(storage_that_grows_may_be_a_data_set)
{
	make_storage(7, 200, false, 2, 0);
	held_over_time_classify(&hand.model);
	assert_int_equal(hand.sites[0].leak, MODEL_LEAK_LEAK);
	assert_true(hand.sites[0].may_be_built_once);
}

/* Files of all sizes are read one after the other, and the program is killed at the largest. */
TEST(a_large_block_after_small_ones_is_no_growth)
{
	static const unsigned kib[] = { 600, 90, 2500, 400, 1200, 70, 9000, 800, 300, 5000, 1000, 2000, 4000, 9000, 70000 };

	make();
	for (unsigned i = 0; i < ARRAY_LEN(kib); i++)
		add_point((i + 1) * 10 * STEP_BYTES, kib[i] * KIB);
	add_end(160 * STEP_BYTES, 70000 * KIB);
	hand.sites[0].allocated_count = ARRAY_LEN(kib);
	hand.sites[0].live_count = 1;
	assert_int_equal(classified(MODEL_LEAK_STEADY), MODEL_LEAK_STEADY);
}

/* Layers of a model: it is killed as it is built. */
TEST(few_blocks_of_which_none_is_replaced_are_not_judged_by_their_growth)
{
	make();
	for (unsigned i = 1; i <= 8; i++)
		add_point(i * 10 * STEP_BYTES, i * 10 * STEP_BYTES);
	add_end(80 * STEP_BYTES, 80 * STEP_BYTES);
	hand.sites[0].allocated_count = hand.sites[0].live_count = 8;
	assert_int_equal(classified(MODEL_LEAK_TOO_SHORT), MODEL_LEAK_TOO_SHORT);
}

/* ---- thresholds ---- */

/* Of 16 rounds the first 12 fill it, and each of the others holds `more`; of 100 blocks `latest` came in the last quarter. */
static enum model_leak_class
class_of_full(enum model_leak_class leak, uint64_t more, uint64_t latest)
{
	struct model_site *site = &hand.sites[0];
	uint64_t bytes = 0;

	make();
	for (unsigned i = 1; i <= ROUNDS; i++) {
		bytes = i <= 12 ? i * HELD_BYTES : bytes + more;
		add_point(i * STEP_BYTES, bytes);
	}
	add_end(ROUNDS * STEP_BYTES, bytes);
	site->leak = leak;
	site->live_count = 100;
	site->allocated_count = 200;
	for (unsigned i = 0; i < SURVIVAL_QUARTERS; i++)
		site->quarters[i] = i == 3 ? latest : (100 - latest) / 3;
	held_over_time_classify(&hand.model);
	return site->leak;
}

/* It holds no more than before, although blocks came that stayed: others went. */
TEST(a_full_cache_is_no_leak)
{
	/* What it held was released as the program ended. */
	(void)class_of_full(MODEL_LEAK_LEAK, 0, 40);
	hand.sites[0].released_bytes = MIB;
	assert_int_equal(classified(MODEL_LEAK_LEAK), MODEL_LEAK_LEAK);
	assert_int_equal(class_of_full(MODEL_LEAK_LEAK, 0, 40), MODEL_LEAK_STEADY);
	assert_int_equal(class_of_full(MODEL_LEAK_BACKLOG, 0, 40), MODEL_LEAK_STEADY);
	assert_int_equal(class_of_full(MODEL_LEAK_LEAK, HELD_BYTES / 2, 40), MODEL_LEAK_LEAK); // it grows
	assert_int_equal(class_of_full(MODEL_LEAK_LEAK, 0, 0), MODEL_LEAK_LEAK); // nothing came: what leaks may wait
}

/* Of 32 rounds the first 16 fill it; each of the others adds `more`, in a few blocks at another stack perhaps. */
static enum model_leak_class
class_of_flat(uint64_t more, uint64_t latest, bool goes_on_elsewhere)
{
	uint64_t bytes = 0;

	make();
	hand_model_site(&hand, HEAP, 41, 0)->leak = MODEL_LEAK_LEAK;
	for (unsigned i = 1; i <= 32; i++) {
		bytes += i <= 16 ? HELD_BYTES : more;
		add_point(i * STEP_BYTES, bytes);
		held[i - 1][1] = (struct model_point_site){ 1, goes_on_elsewhere && i > 16 ? (i - 16) * HELD_BYTES : 0 };
		points[i - 1].site_count = 2;
	}
	add_end(32 * STEP_BYTES, bytes);
	held[32][1] = held[31][1];
	points[32].site_count = 2;
	hand.sites[0].quarters[3] = latest;
	return classified(MODEL_LEAK_LEAK);
}

TEST(what_was_full_by_the_middle_and_is_at_work_is_no_leak)
{
	assert_int_equal(class_of_flat(0, 1, false), MODEL_LEAK_STEADY);
	assert_int_equal(class_of_flat(0, 0, false), MODEL_LEAK_LEAK); // nothing came: what leaks may wait
	assert_int_equal(class_of_flat(0, 1, true), MODEL_LEAK_LEAK);  // its line goes on as another stack
	assert_int_equal(class_of_flat(HELD_BYTES / 15, 1, false), MODEL_LEAK_STEADY);
	assert_int_equal(class_of_flat(HELD_BYTES / 14, 1, false), MODEL_LEAK_LEAK);
}

/* It leaks for 16 rounds. As much as in all of them is allocated then, in so many points. */
static bool
is_flat_for(uint64_t count)
{
	make();
	for (unsigned i = 1; i <= 16; i++)
		add_point(i * STEP_BYTES, i * HELD_BYTES);
	for (unsigned i = 1; i <= count; i++)
		add_point(16 * STEP_BYTES + 16 * STEP_BYTES * i / count, 16 * HELD_BYTES);
	add_end(32 * STEP_BYTES, 16 * HELD_BYTES);
	hand.sites[0].quarters[3] = 1; // of the tick in which the large block came
	return classified(MODEL_LEAK_LEAK) == MODEL_LEAK_STEADY;
}

static bool
do_so_many_come(uint64_t latest)
{
	return class_of_full(MODEL_LEAK_LEAK, 0, latest) == MODEL_LEAK_STEADY;
}

static bool
is_rise_small(uint64_t more)
{
	return class_of_full(MODEL_LEAK_LEAK, more, 40) == MODEL_LEAK_STEADY;
}

static bool
are_enough_points(uint64_t count)
{
	make_rounds((unsigned)count, HELD_BYTES);
	add_end(count * STEP_BYTES, 0);
	return is_swept();
}

static bool
is_large(uint64_t bytes)
{
	make();
	for (unsigned i = 1; i <= 8; i++)
		add_point(i * STEP_BYTES, bytes * i / 8);
	add_end(8 * STEP_BYTES, 0);
	return is_swept();
}

/* Of 1,024 KiB a round. */
static bool
is_less_than_half(uint64_t kib)
{
	make_rounds(ROUNDS, kib * KIB);
	add_end(ROUNDS * STEP_BYTES, 0);
	return is_swept();
}

static bool
are_blocks_a_queue(uint64_t live_count)
{
	return class_of_queue(live_count, live_count * 2, 1000) == MODEL_LEAK_BACKLOG;
}

static bool
are_enough_released(uint64_t count)
{
	return class_of_queue(1000, 1000 + count, 1000) == MODEL_LEAK_BACKLOG;
}

static bool
is_little_left(uint64_t bytes)
{
	make_rounds(16, 400 * KIB);
	add_end(16 * STEP_BYTES, bytes);
	return is_swept();
}

static bool
is_little_after(uint64_t bytes)
{
	make_rounds(16, HELD_BYTES);
	add_end(16 * STEP_BYTES + bytes, 0);
	return is_swept();
}

static bool
is_fall_small(uint64_t bytes)
{
	make_rounds(16, 400 * KIB);
	held[8][0].bytes = 9 * 400 * KIB;
	held[9][0].bytes = held[8][0].bytes - bytes;
	add_end(16 * STEP_BYTES, 0);
	return is_swept();
}

/* Eight parts of 8 units at most; in the last ones the rest. */
static bool
rises(const uint64_t units[8])
{
	uint64_t sum = 0;

	make();
	for (unsigned i = 0; i < 8; i++) {
		sum += units[i];
		add_point((i + 1) * 8 * STEP_BYTES, sum * KIB);
	}
	add_end(64 * STEP_BYTES, 0);
	return is_swept();
}

static bool
are_enough_parts_rising(uint64_t count)
{
	uint64_t units[8];

	for (unsigned i = 0; i < 8; i++)
		units[i] = i >= 8 - count ? 1000 : i == 0;
	return rises(units);
}

static bool
is_last_part_rising(uint64_t units)
{
	return rises((const uint64_t[]){ 1000, 1000, 1000, 1000, 1000, 1000, 1000, units });
}

static bool
is_part_before_last_rising(uint64_t units)
{
	return rises((const uint64_t[]){ 1000, 1000, 1000, 1000, 1000, 1000, units, 1000 });
}

/* Only the last two must rise. */
static bool
is_third_from_last_free(uint64_t units)
{
	return rises((const uint64_t[]){ 1000, 1000, 1000, 1000, 1000, 1, units, 1000 });
}

static bool
are_halves_not_apart(uint64_t units)
{
	return rises((const uint64_t[]){ units, 1000, 850, 850, 750, 750, 400, 400 });
}

static bool
is_last_quarter_not_slower(uint64_t units)
{
	return rises((const uint64_t[]){ 2000, 2000, 850, 850, 750, 750, 424, units });
}

static bool
are_enough_rises(uint64_t count)
{
	return class_of_storage((unsigned)count, 200, false, 0) == MODEL_LEAK_LEAK;
}

/* 512 KiB and twice as much each time, when the program has allocated four times as much: it would double again after 1,000 units. */
static bool
is_next_due(uint64_t units)
{
	uint64_t bytes = 512 * KIB;

	make();
	hand.process.state = KMEM_STATE_RUNNING;
	for (unsigned i = 0; i < 9; i++)
		add_point((bytes << i) * 4, bytes << i);
	add_end((bytes << 8) * 4 + (bytes << 8) * 4 / 1000 * units, bytes << 8);
	hand.sites[0].allocated_count = 9;
	hand.sites[0].live_count = 1;
	return classified(MODEL_LEAK_STEADY) == MODEL_LEAK_LEAK;
}

static bool
are_enough_rises_of_three_blocks(uint64_t count)
{
	make_storage((unsigned)count, 200, false, 2, 0);
	hand.sites[0].live_count = 3;
	hand.sites[0].allocated_count = 20;
	held_over_time_classify(&hand.model);
	return hand.sites[0].leak == MODEL_LEAK_LEAK;
}

static bool
are_enough_replaced(uint64_t count)
{
	make_storage(7, 200, false, 2, 0);
	hand.sites[0].allocated_count = hand.sites[0].live_count + count;
	held_over_time_classify(&hand.model);
	return hand.sites[0].leak == MODEL_LEAK_LEAK;
}

/* Of a hundred, of old and new storage together. */
static bool
is_enough_left(uint64_t units)
{
	make_storage(7, 200, false, 2, 0);
	held[1][0].bytes = held[2][0].bytes * 100 / units;
	held_over_time_classify(&hand.model);
	return hand.sites[0].leak == MODEL_LEAK_LEAK;
}

/* After three doublings of 1 MiB. */
static bool
is_rise(uint64_t kib)
{
	make();
	hand.process.state = KMEM_STATE_RUNNING;
	for (unsigned i = 0; i < 8; i++)
		add_point((i + 1) * 10 * STEP_BYTES, MIB << i / 2);
	add_end(90 * STEP_BYTES, 8 * MIB + kib * KIB);
	hand.sites[0].allocated_count = 5;
	hand.sites[0].live_count = 1;
	return classified(MODEL_LEAK_STEADY) == MODEL_LEAK_LEAK;
}

TEST(thresholds)
{
	static const struct threshold rows[] = {
		{ "points", are_enough_points, 8, 7 },
		{ "bytes at the peak", is_large, 65536, 65535 },
		{ "half of what was allocated", is_less_than_half, 511, 512 },
		{ "blocks that are alive of a queue", are_blocks_a_queue, 64, 63 },
		{ "blocks that it released, of a thousand", are_enough_released, 250, 249 },
		{ "left at the end", is_little_left, 16 * 400 * KIB / 4, 16 * 400 * KIB / 4 + 1 },
		{ "allocated since", is_little_after, 2 * STEP_BYTES, 2 * STEP_BYTES + 1 },
		{ "released before", is_fall_small, 16 * 400 * KIB / 8, 16 * 400 * KIB / 8 + 1 },
		{ "rising parts", are_enough_parts_rising, 6, 5 },
		{ "the last part", is_last_part_rising, 226, 225 },
		{ "the one before", is_part_before_last_rising, 226, 225 },
		{ "the third from the end may stand still", is_third_from_last_free, 1000, 1 },
		{ "halves", are_halves_not_apart, 749, 750 },
		{ "the last quarter", is_last_quarter_not_slower, 427, 426 },
		{ "rises of storage", are_enough_rises, 4, 3 },
		{ "allocated since storage grew", is_next_due, 2000, 2001 },
		{ "rises of three blocks", are_enough_rises_of_three_blocks, 6, 5 },
		{ "replaced blocks", are_enough_replaced, 4, 3 },
		{ "left of old and new storage", is_enough_left, 44, 43 },
		{ "KiB of a rise, of 8 MiB", is_rise, 512, 511 },
		{ "blocks that came into a full cache", do_so_many_come, 16, 15 },
		{ "points after the middle that tell that it is flat", is_flat_for, 4, 3 },
		{ "what a full cache grows in a round", is_rise_small, 48505, 48506 },
	};

	thresholds_check(rows, ARRAY_LEN(rows));
}

RUN_TESTS(NULL, NULL)
