/*
 * capture_file.c - the growing, preallocated, mapped .kmem file of this process (see capture_file.h).
 *
 * The head is mapped once. Each section has an address range of its own, reserved at the start; chunks of the file are
 * mapped into it side by side, so a section is contiguous in memory and scattered in the file.
 *
 * Not chosen  one big sparse file: on a full disk a touch of a hole is SIGBUS in the program. Every chunk is allocated
 *             on disk before it is mapped (F2).
 */
#include "capture/capture_file.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "base/capture_life.h"
#include "base/diag.h"
#include "base/effort.h"
#include "base/raw_sys.h"
#include "base/settings.h"
#include "base/wait_lock.h"
#include "capture/capture_disk.h"
#include "capture/capture_seal.h"
#include "kmem_words.h"

#define GROWTH_CHUNKS_MAX 16
#define FRONT_BYTES ((size_t)4096)

struct section {
	char *base; // reserved addresses; NULL until first use; set under the growth lock
	size_t reserved_bytes;
	_Atomic size_t held_bytes;   // what may be of the file, growth that is under way included
	_Atomic size_t mapped_bytes; // usable from base; stored with release after the memory is there
	_Atomic bool is_stuck;       // cannot grow any more
};

/*
 * Before the start, after a failure, and in unit tests the structures are these: the same code runs, nothing is kept.
 */
static _Alignas(4096) char stand_in[KMEM_HEAD_BYTES];

static char *head = stand_in;
static struct section sections[KMEM_SECTION_COUNT];
static void complete_growth(void);
static struct wait_lock growth_lock = WAIT_LOCK_COMPLETED_BY(complete_growth);
static __thread bool is_locked_here __attribute__((tls_model("initial-exec"))); // by this thread, around fork
static bool has_file;
static bool is_put_off;               // it is made when it matters; until then all is in memory
static _Atomic bool is_failure_noted; // to grow; relaxed: guards nothing
static char *volatile sealed; // the whole file, while it is sealed; volatile: for this thread's own signal handler
static volatile size_t sealed_bytes;
static int growth_fd = -1; // that is open while the capture grows; under the lock

static const size_t item_bytes[KMEM_SECTION_COUNT] = {
	[KMEM_SECTION_SITES] = sizeof(struct kmem_site),
	[KMEM_SECTION_GENERATIONS] = sizeof(struct kmem_generations),
	[KMEM_SECTION_RECORDS] = 8,
	[KMEM_SECTION_HOLDERS] = KMEM_HOLDERS_BYTES,
};

struct kmem_header *
capture_file_header(void)
{
	return (struct kmem_header *)(void *)head;
}

struct kmem_domain_row *
capture_file_domain(unsigned domain)
{
	return (struct kmem_domain_row *)(void *)(head + KMEM_DOMAINS_OFFSET) + domain;
}

struct kmem_heartbeat *
capture_file_heartbeats(void)
{
	return (struct kmem_heartbeat *)(void *)(head + KMEM_HEARTBEATS_OFFSET);
}

static struct kmem_chunk *
directory(void)
{
	return (struct kmem_chunk *)(void *)(head + KMEM_DIRECTORY_OFFSET);
}

void
capture_file_lost(enum kmem_loss loss, uint64_t count)
{
	/* relaxed: a statistic; nobody concludes anything about other memory from it */
	atomic_fetch_add_explicit(&capture_file_header()->losses[loss], count, memory_order_relaxed);
}

/* Was the file cut just before it was extended? Then all that it had is zeros, and no signal tells it. */
static bool
is_whole(void)
{
	if (capture_file_header()->version == KMEM_VERSION)
		return true;
	(void)capture_file_abandon();
	errno = ESTALE;
	return false;
}

static bool
map_chunks(struct section *section, size_t mapped, size_t bytes, uint64_t offset)
{
	int protection = PROT_READ | PROT_WRITE;

	if (!has_file)
		return raw_syscall(SYS_mprotect, section->base + mapped, bytes, protection) == 0;

	int fd = growth_fd = capture_disk_open(offset);

	if (fd < 0)
		return false;
	bool is_mapped = capture_disk_extend(fd, offset, bytes) && is_whole() &&
	                 raw_mmap(section->base + mapped, bytes, protection, MAP_SHARED | MAP_FIXED, fd, (int64_t)offset) !=
	                     MAP_FAILED;
	int error = errno;
	growth_fd = -1; // first: the number may be another file's as soon as it is closed
	atomic_signal_fence(memory_order_seq_cst);
	raw_close(fd);
	errno = error;
	return is_mapped;
}

/* Address space that a section may fill; less of it where the program's address space is limited. */
static size_t
room_bytes(enum kmem_section kind)
{
	static const size_t wanted[KMEM_SECTION_COUNT] = {
		[KMEM_SECTION_SITES] = (size_t)128 << 20,
		[KMEM_SECTION_GENERATIONS] = (size_t)128 << 20,
		[KMEM_SECTION_RECORDS] = (size_t)256 << 20,
		[KMEM_SECTION_HOLDERS] = 2 * KMEM_HOLDERS_BYTES,
	};
	size_t most = raw_reserve_max();
	size_t bytes = wanted[kind] < most ? wanted[kind] : most - most % KMEM_CHUNK_BYTES;

	return bytes < KMEM_CHUNK_BYTES ? KMEM_CHUNK_BYTES : bytes;
}

/* With a page in front of the first item, see capture_file_item(). NULL: there are no addresses left. */
static char *
reserve_room(size_t bytes)
{
	char *front = raw_reserve(KMEM_OWN_CAPTURE, FRONT_BYTES + bytes, PROT_NONE);

	if (front == NULL)
		return NULL;
	if (raw_syscall(SYS_mprotect, front, FRONT_BYTES, PROT_READ | PROT_WRITE) == 0)
		return front + FRONT_BYTES;
	raw_unreserve(front, FRONT_BYTES + bytes);
	return NULL;
}

static bool
grow_locked(enum kmem_section kind, size_t end)
{
	struct section *section = &sections[kind];
	struct kmem_header *header = capture_file_header();
	size_t mapped = atomic_load_explicit(&section->mapped_bytes, memory_order_relaxed); // ours: the lock is held
	uint32_t count = atomic_load_explicit(&header->chunk_count, memory_order_relaxed);

	if (mapped >= end)
		return true;
	if (section->base == NULL) {
		section->reserved_bytes = room_bytes(kind);
		section->base = reserve_room(section->reserved_bytes);
		if (section->base == NULL)
			return false;
	}

	/* An eighth more than there is: few growths, little unused room. */
	size_t needed = (end - mapped + KMEM_CHUNK_BYTES - 1) / KMEM_CHUNK_BYTES;
	size_t chunks = needed;
	size_t ahead = mapped / KMEM_CHUNK_BYTES / 8;

	if (ahead > GROWTH_CHUNKS_MAX)
		ahead = GROWTH_CHUNKS_MAX;
	if (chunks < ahead) // never less than what is asked for
		chunks = ahead;
	size_t bytes = chunks * KMEM_CHUNK_BYTES;

	errno = EFBIG;
	if (chunks > KMEM_CHUNKS_MAX - count || bytes > section->reserved_bytes - mapped)
		return false;
	// for this thread's own signal handler
	atomic_store_explicit(&section->held_bytes, mapped + bytes, memory_order_relaxed);
	uint64_t offset = capture_disk_bytes(count);

	if (!map_chunks(section, mapped, bytes, offset)) {
		/* The last room there is, then. */
		chunks = needed;
		if (chunks * KMEM_CHUNK_BYTES == bytes || !capture_disk_is_final(errno) ||
		    !map_chunks(section, mapped, chunks * KMEM_CHUNK_BYTES, offset))
			return false;
		bytes = chunks * KMEM_CHUNK_BYTES;
	}
	if (kind == KMEM_SECTION_RECORDS && has_file && mapped != 0)
		raw_madvise(section->base, mapped, MADV_DONTNEED); // seldom read again, and in the file
	for (size_t i = 0; i < chunks; i++)
		directory()[count + i] = (struct kmem_chunk){ .section = (uint8_t)kind, .inverted = (uint8_t)~kind };

	effort_count(KMEM_EFFORT_GROWTHS);
	/* release: the entries before the count that leads to them (F1, F2). Pairs with the reader's acquire. */
	atomic_store_explicit(&header->chunk_count, count + (uint32_t)chunks, memory_order_release);
	/* The mapping before its size. Pairs with capture_file_append(). seq_cst: as in capture_file_abandon(), one of both sees the other. */
	atomic_exchange_explicit(&section->mapped_bytes, mapped + bytes, memory_order_seq_cst);
	if (atomic_load_explicit(&section->is_stuck, memory_order_seq_cst)) {
		atomic_store_explicit(&section->mapped_bytes, 0, memory_order_relaxed);
		errno = ESTALE;
		return false;
	}
	return true;
}

/*
 * Whoever grew may have been left between any two steps. All of them are taken again by the next growth, but for one: chunks that the
 * directory has are mapped, and stand in no size yet.
 */
static void
complete_growth(void)
{
	uint32_t count = atomic_load_explicit(&capture_file_header()->chunk_count,
	                                      memory_order_relaxed); // the lock is held
	int fd = growth_fd;

	growth_fd = -1;
	if (fd >= 0)
		raw_close(fd);
	for (enum kmem_section kind = KMEM_SECTION_SITES; kind < KMEM_SECTION_COUNT; kind++) {
		struct section *section = &sections[kind];
		size_t bytes = 0;

		for (uint32_t i = 0; i < count; i++)
			bytes += directory()[i].section == kind ? KMEM_CHUNK_BYTES : 0;
		/* As in grow_locked(). Of a section that was given up nothing is mapped. */
		if (section->base != NULL && !atomic_load_explicit(&section->is_stuck, memory_order_relaxed) &&
		    bytes > atomic_load_explicit(&section->mapped_bytes, memory_order_relaxed))
			atomic_exchange_explicit(&section->mapped_bytes, bytes, memory_order_seq_cst);
	}
}

/* Once for each capture, and once on stderr. Not under the lock: for the note RECORDS may grow. */
static void
tell_of_failure(int error)
{
	static _Atomic bool was_told;
	const char *name = strerrorname_np(error);
	char text[160];

	if (atomic_exchange_explicit(&is_failure_noted, true, memory_order_relaxed))
		return;
	if (!atomic_exchange_explicit(&was_told, true, memory_order_relaxed))
		diag_warn("%s: the capture cannot grow (%s); recording continues with the room that is left",
		          has_file ? capture_disk_path() : "private capture", name);
	diag_format(text, sizeof(text),
	            "the capture could not grow (%s%s): what came later may lack its names, lines or stacks", name,
	            error == ENOSPC || error == EDQUOT ? ", its disk was full" : "");
	capture_file_note(text);
}

static bool
grow(enum kmem_section kind, size_t end)
{
	struct section *section = &sections[kind];
	int host_errno = errno;
	int error = 0; // that is to be told

	if (atomic_load_explicit(&section->is_stuck, memory_order_relaxed))
		return false;
	if (!is_locked_here && !wait_lock_take(&growth_lock)) { // other handlers of fork may run while we hold it
		capture_file_lost(KMEM_LOST_GROWTH, 1);
		return false;
	}

	uint64_t begun = effort_begin();

	/* What was given up while we waited stays so. */

	bool has_grown = !atomic_load_explicit(&section->is_stuck, memory_order_relaxed) && grow_locked(kind, end);

	if (!has_grown)
		capture_file_lost(KMEM_LOST_GROWTH, 1);
	if (!has_grown && !atomic_load_explicit(&section->is_stuck, memory_order_relaxed)) { // else it was told
		error = errno;
		if (capture_disk_is_final(error))
			atomic_store_explicit(&section->is_stuck, true, memory_order_relaxed);
	}
	if (!is_locked_here)
		wait_lock_give(&growth_lock);
	effort_end(begun, KMEM_EFFORT_GROWTHS);
	if (error != 0)
		tell_of_failure(error);
	errno = host_errno;
	return has_grown;
}

void
capture_file_make_room(void)
{
	static const size_t room[KMEM_SECTION_COUNT] = {
		[KMEM_SECTION_SITES] = 16 * KMEM_CHUNK_BYTES,
		[KMEM_SECTION_GENERATIONS] = 4 * KMEM_CHUNK_BYTES,
		[KMEM_SECTION_RECORDS] = 32 * KMEM_CHUNK_BYTES,
	};

	for (enum kmem_section i = KMEM_SECTION_SITES; i < KMEM_SECTION_COUNT; i++) // relaxed: how much, not what
		(void)grow(i, atomic_load_explicit(&sections[i].mapped_bytes, memory_order_relaxed) + room[i]);
}

/* Growing, if need be. */
static bool
has_room(enum kmem_section kind, uint64_t end)
{
	/* acquire: pairs with grow_locked(): a size seen here means mapped memory. */
	return end <= atomic_load_explicit(&sections[kind].mapped_bytes, memory_order_acquire) || grow(kind, end);
}

void *
capture_file_append_sparing(enum kmem_section kind, size_t bytes, size_t spare_bytes, uint32_t *index)
{
	_Atomic uint64_t *used = &capture_file_header()->used_bytes[kind];
	size_t step = item_bytes[kind];

	bytes = (bytes + step - 1) / step * step;
	/* relaxed: it hands out room and publishes nothing; records are published by their index (F1). */

	uint64_t offset = atomic_load_explicit(used, memory_order_relaxed);

	/* What is spared is for a section that cannot grow any more, not for one that another thread takes long to grow. */
	if (!has_room(kind, offset + bytes + spare_bytes) &&
	    !(atomic_load_explicit(&growth_lock.is_given_up, memory_order_relaxed) && has_room(kind, offset + bytes)))
		return NULL;
	offset = atomic_fetch_add_explicit(used, bytes, memory_order_relaxed);
	if (!has_room(kind, offset + bytes)) // others came in between
		return NULL;
	*index = (uint32_t)(offset / step);
	return sections[kind].base + offset;
}

void *
capture_file_at(enum kmem_section section, uint32_t index)
{
	/* As a number: without a record, which there may not be yet, the address is fetched ahead at most. */
	return (void *)((uintptr_t)sections[section].base + (size_t)index * item_bytes[section]);
}

void *
capture_file_item(enum kmem_section section, uint32_t index_plus_one)
{
	return (void *)((uintptr_t)sections[section].base + ((size_t)index_plus_one - 1) * item_bytes[section]);
}

uint32_t
capture_file_count(enum kmem_section kind)
{
	/* acquire: pairs with grow_locked(): a size seen here means mapped memory. */
	uint64_t bytes = atomic_load_explicit(&sections[kind].mapped_bytes, memory_order_acquire);
	uint64_t used = atomic_load_explicit(&capture_file_header()->used_bytes[kind], memory_order_relaxed);

	return (uint32_t)((used < bytes ? used : bytes) / item_bytes[kind]);
}

bool
capture_file_is_large(unsigned eighths)
{
	uint64_t chunks = atomic_load_explicit(&capture_file_header()->chunk_count, memory_order_relaxed);

	return settings.capture_max != 0 &&
	       chunks * KMEM_CHUNK_BYTES >= settings.capture_max + settings.capture_max / 8 * eighths;
}

/* ---- life of the file: capture_life.h ---- */

static bool
open_file(const char *folder, const char *name)
{
	int fd = capture_disk_create(folder, name, KMEM_HEAD_BYTES);

	if (fd < 0)
		return false;
	char *mapped = raw_mmap(NULL, KMEM_HEAD_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	int error = errno;

	raw_close(fd);
	if (mapped == MAP_FAILED) {
		capture_disk_remove();
		errno = error;
		return false;
	}
	head = mapped;
	has_file = true;
	return true;
}

static void
begin_header(void)
{
	struct kmem_header *header = capture_file_header();

	memcpy(header->magic, KMEM_MAGIC, sizeof(header->magic));
	header->version = KMEM_VERSION;
	header->endian = KMEM_ENDIAN;
	header->head_bytes = KMEM_HEAD_BYTES;
	header->chunk_bytes = KMEM_CHUNK_BYTES;
	header->identity_bytes = sizeof(struct kmem_identity);
	effort_keep_in(&header->efforts);
}

bool
capture_file_open(const char *folder, const char *name)
{
	bool is_open = open_file(folder, name);

	if (!is_open)
		capture_disk_tell_of_folder(folder);
	begin_header();
	return is_open;
}

bool
capture_file_put_off(void)
{
	char *fresh = raw_mmap(NULL, KMEM_HEAD_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
	                       -1, 0);

	if (fresh == MAP_FAILED)
		return false;
	head = fresh;
	is_put_off = true;
	begin_header();
	return true;
}

bool
capture_file_is_put_off(void)
{
	return is_put_off;
}

void
capture_file_identified(void)
{
	struct kmem_header *header = capture_file_header();
	/* release: what it covers before the checksum (F4). */
	atomic_store_explicit(&header->identity_checksum, kmem_identity_checksum(header), memory_order_release);
}

typedef void visit_part(char *part, size_t bytes, int fd, uint64_t offset);

/* Each part of the file, where it is mapped; the head last. */
static void
visit_parts(visit_part *visit, int fd, uint32_t chunk_count)
{
	size_t mapped[KMEM_SECTION_COUNT] = { 0 };

	for (uint32_t i = 0; i < chunk_count; i++) {
		unsigned kind = directory()[i].section;

		visit(sections[kind].base + mapped[kind], KMEM_CHUNK_BYTES, fd, capture_disk_bytes(i));
		mapped[kind] += KMEM_CHUNK_BYTES;
	}
	visit(head, KMEM_HEAD_BYTES, fd, 0);
}

/* From here nothing that a late thread writes reaches the file: the mappings become private copies of it. */
static void
detach_part(char *part, size_t bytes, int fd, uint64_t offset)
{
	raw_mmap(part, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd, (int64_t)offset);
}

/* What another thread writes meanwhile is lost. */
static void
move_part(char *part, size_t bytes, int fd, uint64_t offset)
{
	if (raw_syscall(SYS_pwrite64, fd, part, bytes, offset) == (long)bytes)
		raw_mmap(part, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, (int64_t)offset);
}

/* Where the program has spent its address space, in what a section had reserved: nothing grows into that any more. */
static char *
map_whole(int fd, size_t bytes, bool *is_reserved)
{
	char *whole = raw_mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	*is_reserved = whole == MAP_FAILED;
	for (unsigned i = 0; i < KMEM_SECTION_COUNT && whole == MAP_FAILED; i++) {
		size_t held = atomic_load_explicit(&sections[i].held_bytes, memory_order_relaxed); // ours, with the lock

		if (sections[i].base != NULL && sections[i].reserved_bytes - held >= bytes)
			whole = raw_mmap(sections[i].base + held, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
	}
	return whole;
}

void
capture_file_seal_record(struct kmem_record *record)
{
	if (record->bytes < sizeof(*record))
		return; // zeros: somebody has cut the file meanwhile
	record->checksum = kmem_record_checksum(record, 0);
}

void
capture_file_mark(enum kmem_state state, int exit_code, uint64_t now_ns)
{
	struct kmem_header *header = capture_file_header();

	/* relaxed: the state publishes them. */
	atomic_store_explicit(&header->exit_code, exit_code, memory_order_relaxed);
	atomic_store_explicit(&header->ended_monotonic_ns, now_ns, memory_order_relaxed);
	atomic_store_explicit(&header->state, (uint32_t)state, memory_order_release);
}

void
capture_file_close(void)
{
	effort_thread_ends();
	if (!has_file)
		return;
	capture_file_growth_lock(); // given back on failure only: nothing grows after this
	// ours, with the lock
	uint32_t chunk_count = atomic_load_explicit(&capture_file_header()->chunk_count, memory_order_relaxed);
	int fd = is_locked_here ? capture_disk_open(capture_disk_bytes(chunk_count)) : -1;
	if (fd < 0) { // it stays as a kill would leave it
		capture_file_lost(KMEM_LOST_GROWTH, !is_locked_here);
		capture_file_growth_unlock();
		return;
	}
	for (unsigned i = 0; i < KMEM_SECTION_COUNT; i++) // relaxed: late threads need not wait for the lock to learn it
		atomic_store_explicit(&sections[i].is_stuck, true, memory_order_relaxed);
	visit_parts(detach_part, fd, chunk_count);
	has_file = false;

	size_t bytes = capture_disk_bytes(chunk_count);
	bool is_reserved;
	char *whole = map_whole(fd, bytes, &is_reserved);

	raw_close(fd);
	if (whole == MAP_FAILED)
		return;
	sealed = whole;
	sealed_bytes = bytes;
	capture_seal(whole, chunk_count);
	sealed_bytes = 0;
	if (is_reserved) // again: a forked child takes the whole reservation to be ours
		raw_mmap(whole, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	else
		raw_munmap(whole, bytes);
}

bool
capture_file_make(const char *folder, const char *name)
{
	// one thread
	uint32_t chunk_count = atomic_load_explicit(&capture_file_header()->chunk_count, memory_order_relaxed);
	int fd = capture_disk_create(folder, name, (size_t)capture_disk_bytes(chunk_count));

	is_put_off = false;
	has_file = fd >= 0;
	if (!has_file) {
		capture_disk_tell_of_folder(folder);
		return false;
	}
	visit_parts(move_part, fd, chunk_count);
	raw_close(fd);
	return true;
}

bool
capture_file_remove(void)
{
	return is_put_off || (has_file && capture_disk_remove());
}

void
capture_file_restore(void)
{
	// nothing grows: it is gone
	uint32_t chunk_count = atomic_load_explicit(&capture_file_header()->chunk_count, memory_order_relaxed);
	int fd = has_file ? capture_disk_create_again((size_t)capture_disk_bytes(chunk_count)) : -1;

	if (fd < 0)
		return;
	visit_parts(move_part, fd, chunk_count);
	raw_close(fd);
}

static bool
is_within(const void *addr, const void *start, size_t bytes)
{
	return (uintptr_t)addr - (uintptr_t)start < bytes;
}

bool
capture_file_holds(const void *addr)
{
	bool is_held = (head != stand_in && is_within(addr, head, KMEM_HEAD_BYTES)) ||
	               is_within(addr, sealed, sealed_bytes);

	for (unsigned i = 0; i < KMEM_SECTION_COUNT; i++) // relaxed: who touches a place was told of it by its mapped_bytes
		is_held = is_held || is_within(addr, sections[i].base,
		                               atomic_load_explicit(&sections[i].held_bytes, memory_order_relaxed));
	return is_held;
}

static bool
make_private(void *addr, size_t bytes)
{
	return bytes == 0 || raw_mmap(addr, bytes, PROT_READ | PROT_WRITE,
	                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED;
}

/* Everything becomes private zeros. */
static bool
give_up(void)
{
	bool is_safe = make_private(sealed, sealed_bytes);

	has_file = false;
	for (unsigned i = 0; i < KMEM_SECTION_COUNT; i++) {
		struct section *section = &sections[i];

		/* seq_cst: a growth that is under way does not undo this. An append that is finds memory all the same. */
		atomic_store_explicit(&section->is_stuck, true, memory_order_seq_cst);
		atomic_store_explicit(&section->mapped_bytes, 0, memory_order_seq_cst);
		if (!make_private(section->base, atomic_load_explicit(&section->held_bytes, memory_order_relaxed)))
			is_safe = false;
	}
	return (head == stand_in || make_private(head, KMEM_HEAD_BYTES)) && is_safe;
}

bool
capture_file_abandon(void)
{
	static _Atomic bool was_told;
	bool is_safe = give_up();

	if (is_safe && !atomic_exchange_explicit(&was_told, true, memory_order_relaxed))
		diag_warn("%s: the capture was cut short, or its disk fails; recording stops, the program continues",
		          capture_disk_path());
	return is_safe;
}

void
capture_file_privatize(void)
{
	// one thread
	uint32_t chunk_count = atomic_load_explicit(&capture_file_header()->chunk_count, memory_order_relaxed);
	int fd = has_file ? capture_disk_open(capture_disk_bytes(chunk_count)) : -1;

	if (fd >= 0) {
		visit_parts(detach_part, fd, chunk_count);
		raw_close(fd);
	} else if (has_file) {
		(void)give_up(); // the rest of one event finds nothing
	}
	has_file = false; // what it has now is in memory alone, and so is what it grows
}

void
capture_file_growth_lock(void)
{
	// a signal handler may fork in the middle of a fork
	is_locked_here = is_locked_here || wait_lock_take(&growth_lock);
}

/* A slow growth may have outlasted our patience: then the lock is still the grower's. */
void
capture_file_growth_unlock(void)
{
	if (!is_locked_here)
		return;
	is_locked_here = false; // first, as in range_map_unlock()
	wait_lock_give(&growth_lock);
}

void
capture_file_forked(void)
{
	for (unsigned i = 0; i < KMEM_SECTION_COUNT; i++) {
		struct section *section = &sections[i];

		if (section->base != NULL)
			raw_mmap(section->base, section->reserved_bytes, PROT_NONE,
			         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
		atomic_store_explicit(&section->mapped_bytes, 0, memory_order_relaxed); // one thread
		atomic_store_explicit(&section->held_bytes, 0, memory_order_relaxed);
		atomic_store_explicit(&section->is_stuck, false, memory_order_relaxed);
	}
	sealed_bytes = 0;
	growth_fd = -1;  // of a growth in the parent: here the number may be the program's by now
	effort_forked(); // before the head goes
	atomic_store_explicit(&is_failure_noted, false, memory_order_relaxed);
	if (head != stand_in)
		raw_munmap(head, KMEM_HEAD_BYTES);
	head = stand_in;
	has_file = false;
	is_put_off = false;
	// zeroed where it is used next: writing to all of it takes memory
	if (raw_madvise(stand_in, sizeof(stand_in), MADV_DONTNEED) != 0)
		memset(stand_in, 0, sizeof(stand_in));
	wait_lock_give(&growth_lock);
}
