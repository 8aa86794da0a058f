/*
 * object_census.c - what kinds of Python objects are alive where most memory is held (see object_census.h)?
 *
 * The records that hold most are chosen. Where all objects are recorded, the pointer map is passed once, and of each chosen record some
 * of the blocks that the OBJ wrapper gave out are looked at. Where they are sampled, all samples are looked at. The capture gets an
 * estimate for each (record, type).
 *
 * Why what is looked at stays: the thread is inside a hook and holds the interpreter's lock, and a block of OBJ is given out and
 * given back under that lock only, through our wrapper, which takes it out of the map first. No Python code runs meanwhile. A block
 * that this thread has not filled yet, or whose object it is about to destroy, is told by its words (python_types.h). Blocks that
 * were given back behind the wrapper's back (hooks_python.c) may be unmapped: the words are copied by the kernel, which refuses
 * what is not there.
 *
 * Free-threaded interpreters have no such lock: a block may die, and be given out anew, at any moment. So it is asked once more,
 * after its words were copied, whether the map still says what it said. Then these were its words, or those of the one before, in
 * a block that another thread has not filled yet: a name that is wrong for as many samples as there are threads, at most.
 *
 * A look passes one word for each 32 bytes of heap, up to WORDS_MAX; the next one comes after 64 times as long as it took.
 */
#include "periodic/object_census.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>

#include "base/raw_sys.h"
#include "capture/capture_file.h"
#include "kmem_words.h"
#include "periodic/cached_names.h"
#include "periodic/rate_limit.h"
#include "python/python_frames.h"
#include "python/python_runtime.h"
#include "python/python_types.h"
#include "record/python_samples.h"
#include "sites/site_table.h"
#include "tables/pointer_map.h"

#define RECORDS_MAX 64
#define SAMPLES_MAX 1024 // blocks of one record
#define OBJECT_BYTES_MIN 16
#define TYPES_MAX 12                // of one record while it is looked at
#define TYPES_KEPT 3                // of these in the capture
#define WORDS_MAX ((size_t)1 << 24) // of the pointer map, 512 MiB of heap; then the next look goes on there
#define WORDS_MAX_LAST ((size_t)1 << 27)
#define PERIOD_NS UINT64_C(200000000)
#define PERIOD_PART 64
#define BATCH 64 // blocks copied by one system call
#define FIND_PLACES 256
#define NAMES_MAX 1024
static_assert(RECORDS_MAX * TYPES_KEPT <= KMEM_OBJECT_CENSUS_MAX, "");

struct held_type {
	const char *name;
	uint32_t count;
};

struct held {
	uint32_t site; // index + 1
	uint64_t bytes;
	uint64_t blocks;
	uint64_t seen;    // objects in the part of the map that was passed
	uint64_t stride;  // of so many one is looked at, any of them
	uint64_t next;    // the one of this stride
	uint32_t sampled; // of which the type was found out; here and in types[], a sample counts as what it stands for
	struct held_type types[TYPES_MAX];
};

/* One look at a time. */
static struct {
	struct held held[RECORDS_MAX];
	uint32_t held_count;
	uint8_t place[FIND_PLACES]; // by site: number + 1 of its entry in held[]
	uint32_t batch_count;
	struct {
		struct held *held;
		uint64_t addr;
		uint64_t bytes;
		uint32_t weight;
		uint64_t words[PYTHON_TYPES_WORDS];
	} batch[BATCH];
} look;

static _Atomic int objects; // enum object_census_source; relaxed: guards nothing
static struct rate_limit paced = { .period_ns = PERIOD_NS, .parts = { [PACED_USUAL] = PERIOD_PART } };

/* Names that are in the capture. */
static struct {
	uint64_t hash;
	uint32_t record; // index + 1; 0 = empty
} names[NAMES_MAX];
static uint32_t names_pid;

void
object_census_begin(enum object_census_source source)
{
	atomic_store_explicit(&objects, source, memory_order_relaxed);
}

static bool
is_sampled(void)
{
	return atomic_load_explicit(&objects, memory_order_relaxed) == OBJECT_CENSUS_SAMPLES;
}

/* ---- which records ---- */

static void
choose(uint32_t site_index, const struct kmem_site *site)
{
	uint64_t bytes = kmem_peak_now(site->peak);
	uint64_t allocated = atomic_load_explicit(&site->allocated_count, memory_order_relaxed);
	uint64_t freed = atomic_load_explicit(&site->freed_count, memory_order_relaxed);
	struct held *least = &look.held[look.held_count];

	if (site->domain != (is_sampled() ? KMEM_DOMAIN_PYTHON_OBJECT : KMEM_DOMAIN_HEAP) || allocated <= freed ||
	    kmem_peak_now_signed(site->peak) <= 0)
		return;
	if (look.held_count == RECORDS_MAX) {
		least = &look.held[0];
		for (uint32_t i = 1; i < RECORDS_MAX; i++)
			least = look.held[i].bytes < least->bytes ? &look.held[i] : least;
		if (bytes <= least->bytes)
			return;
	} else {
		look.held_count++;
	}
	*least = (struct held){ .site = site_index, .bytes = bytes, .blocks = allocated - freed };
	least->stride = least->blocks / SAMPLES_MAX + 1;
}

static void
choose_all(void)
{
	uint32_t count = capture_file_count(KMEM_SECTION_SITES);

	look.held_count = look.batch_count = 0;
	memset(look.place, 0, sizeof(look.place));
	for (uint32_t i = 1; i <= count; i++) {
		const struct kmem_site *site = site_table_at(i);

		if (site_table_is_complete(site))
			choose(i, site);
	}
	for (uint32_t i = 0; i < look.held_count; i++) {
		uint32_t place = look.held[i].site;

		while (look.place[place % FIND_PLACES] != 0)
			place++;
		look.place[place % FIND_PLACES] = (uint8_t)(i + 1);
	}
}

static struct held *
find_held(uint32_t site)
{
	for (uint32_t place = site;; place++) {
		uint8_t number = look.place[place % FIND_PLACES];

		if (number == 0)
			return NULL;
		if (look.held[number - 1].site == site)
			return &look.held[number - 1];
	}
}

/* ---- which types ---- */

static void
count_type(struct held *held, uint32_t weight, const char *name)
{
	for (unsigned i = 0; name != NULL && i < TYPES_MAX; i++) {
		struct held_type *type = &held->types[i];

		if (type->name != NULL && type->name != name && strcmp(type->name, name) != 0)
			continue;
		type->name = name;
		type->count += weight;
		break;
	}
	held->sampled += weight; // also what is none, and kinds without room
}

static bool
is_free_threaded(void)
{
	return python_runtime.interpreter.layout.is_free_threaded;
}

/* Is the block of the batch still the one that the map showed? */
static bool
is_still_there(uint64_t addr, uint32_t site)
{
	struct address_block block;

	if (!is_free_threaded())
		return true;
	atomic_thread_fence(memory_order_acquire); // the copy before
	return pointer_map_find(addr, &block) && block.site == site;
}

static void
look_at_batch(void)
{
	uint32_t done = 0;

	while (done < look.batch_count && raw_sys_may_call()) {
		static struct iovec here[BATCH]; // one thread at a time; the stack may be small
		static struct iovec there[BATCH];
		uint32_t count = 0;

		for (uint32_t i = done; i < look.batch_count; i++, count++) {
			uint64_t bytes = look.batch[i].bytes < sizeof(look.batch[i].words) ? look.batch[i].bytes & ~UINT64_C(7)
			                                                                   : sizeof(look.batch[i].words);

			here[count] = (struct iovec){ look.batch[i].words, bytes };
			there[count] = (struct iovec){ (void *)(uintptr_t)look.batch[i].addr, bytes };
		}
		long copied = raw_syscall(SYS_process_vm_readv, raw_syscall(SYS_getpid), here, (long)count, there, (long)count,
		                          0L);

		for (; copied > 0 && done < look.batch_count; done++) {
			uint64_t bytes = here[count - (look.batch_count - done)].iov_len;

			if ((uint64_t)copied < bytes)
				break;
			copied -= (long)bytes;
			if (is_still_there(look.batch[done].addr, look.batch[done].held->site))
				count_type(
					look.batch[done].held, look.batch[done].weight,
					python_types_name(&python_runtime.interpreter, look.batch[done].words, look.batch[done].bytes));
		}
		if (done < look.batch_count)
			done++; // this one is not there
	}
	look.batch_count = 0;
}

/* Blocks come in regular order: the same place in each stride could be of one kind. */
static uint64_t
random_below(uint64_t limit)
{
	static uint64_t state = 1;

	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (state >> 33) % limit;
}

static void
add_to_batch(struct held *held, uint64_t addr, uint64_t bytes, uint32_t weight)
{
	look.batch[look.batch_count].held = held;
	look.batch[look.batch_count].addr = addr;
	look.batch[look.batch_count].bytes = bytes;
	look.batch[look.batch_count].weight = weight;
	if (++look.batch_count == BATCH)
		look_at_batch();
}

/* All samples are looked at. */
static void
visit_sample(uint64_t object, uint64_t bytes, uint32_t site)
{
	struct held *held = find_held(site);

	if (held != NULL && bytes >= OBJECT_BYTES_MIN)
		add_to_batch(held, object, bytes, (uint32_t)python_samples_objects(bytes));
}

static bool
visit(void *unused, uint64_t addr, struct address_block block)
{
	struct held *held = find_held(block.site);

	(void)unused;
	if (held == NULL)
		return true;

	uint64_t number = held->seen++;

	if (number % held->stride == 0)
		held->next = number + random_below(held->stride);
	if (number != held->next)
		return true;
	if (block.bytes < OBJECT_BYTES_MIN)
		held->sampled++; // no object
	else
		add_to_batch(held, addr, block.bytes, 1);
	return true;
}

/* ---- what the capture says ---- */

static uint32_t
record_of(const char *name)
{
	size_t length = strlen(name);
	uint64_t hash = kmem_checksum(KMEM_CHECKSUM_START, name, length) | UINT64_C(1) << 32 | (uint64_t)length << 33;
	uint32_t index;

	for (uint64_t i = 0; i < NAMES_MAX; i++) {
		uint64_t place = (hash + i) % NAMES_MAX;
		struct kmem_type *record;

		if (names[place].record != 0 && names[place].hash != hash)
			continue;
		if (names[place].record != 0) {
			record = capture_file_item(KMEM_SECTION_RECORDS, names[place].record);
			if (record->name_bytes == length && memcmp(record + 1, name, length) == 0)
				return names[place].record;
			continue;
		}
		record = capture_file_append(KMEM_SECTION_RECORDS, sizeof(*record) + length, &index);
		if (record == NULL)
			return 0;
		record->record.type = KMEM_RECORD_TYPE;
		record->record.bytes = (uint32_t)(sizeof(*record) + length);
		record->name_bytes = (uint32_t)length;
		memcpy(record + 1, name, length);
		capture_file_seal_record(&record->record);
		names[place].hash = hash;
		names[place].record = index + 1;
		return index + 1;
	}
	return 0;
}

/* From the objects that were looked at to those of the part of the map that was passed, and from these to all objects of the record. */
static uint64_t
estimate(const struct held *held, uint32_t count, bool is_whole)
{
	uint64_t all = is_whole || held->blocks < held->seen ? held->seen : held->blocks;

	if (is_sampled()) // each sample that may be an object was looked at
		return count;
	return (uint64_t)((unsigned __int128)all * count / held->sampled);
}

/* The most frequent type of the record that was not taken out before. */
static struct held_type *
most_frequent(struct held *held)
{
	struct held_type *most = &held->types[0];

	for (unsigned i = 1; i < TYPES_MAX; i++)
		most = held->types[i].count > most->count ? &held->types[i] : most;
	return most->count != 0 ? most : NULL;
}

static void
store(bool is_whole)
{
	struct kmem_header *header = capture_file_header();
	static struct kmem_object_count found[KMEM_OBJECT_CENSUS_MAX]; // one thread at a time; the stack may be small
	uint32_t count = 0;

	for (uint32_t i = 0; i < look.held_count; i++) {
		struct held *held = &look.held[i];
		struct held_type *type;

		for (unsigned kept = 0; kept < TYPES_KEPT && (type = most_frequent(held)) != NULL; kept++) {
			uint32_t record = record_of(type->name);

			if (record != 0)
				found[count++] = (struct kmem_object_count){ held->site, record,
					                                         estimate(held, type->count, is_whole) };
			type->count = 0;
		}
	}
	/* relaxed, between two fences: a reader takes the table when its count is not 0 (F1: the records were there before). */
	atomic_store_explicit(&header->object_count_total, 0, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	memcpy(header->object_census, found, count * sizeof(found[0]));
	header->object_count_checksum = kmem_checksum(KMEM_CHECKSUM_START, found, count * sizeof(found[0]));
	atomic_store_explicit(&header->object_count_total, kmem_twice(count), memory_order_release);
}

void
object_census_take(bool is_last)
{
	int host_errno = errno;

	if (is_sampled())
		cached_names_look(is_last);
	if (atomic_load_explicit(&objects, memory_order_relaxed) == OBJECT_CENSUS_NONE || !python_frames_is_attached() ||
	    !rate_limit_begin(&paced, is_last ? PACED_DUE : PACED_USUAL))
		return;
	if (names_pid != capture_file_header()->identity.pid) { // another capture: a forked child's
		memset(names, 0, sizeof(names));
		names_pid = capture_file_header()->identity.pid;
	}
	python_types_forget();
	choose_all();
	bool is_whole = true;

	if (is_sampled())
		python_samples_visit(visit_sample);
	else
		is_whole = pointer_map_visit_objects(is_last ? WORDS_MAX_LAST : WORDS_MAX, visit, NULL);
	look_at_batch();
	store(is_whole);
	rate_limit_end(&paced);
	errno = host_errno;
}

/* A thread of the parent that looked held a lock of its own interpreter (3.12), which is not the lock of the thread that forked. */
void
object_census_forked(void)
{
	rate_limit_forked(&paced, 0, 0); // its map is empty
}
