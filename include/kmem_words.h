/*
 * kmem_words.h - the few computations that recorder and reader must do alike.
 */
#ifndef KMEM_WORDS_H
#define KMEM_WORDS_H

#ifdef __x86_64__
#include <cpuid.h>
#endif
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "kmem_format.h"

#define KMEM_PEAK_BYTES_MASK ((UINT64_C(1) << 48) - 1)

static inline uint64_t
kmem_peak_now(struct kmem_peak_word word)
{
	return word.now & KMEM_PEAK_BYTES_MASK;
}

/* A domain's `now` may be below 0 for a moment: one thread's release is added before another's allocation. */
static inline int64_t
kmem_peak_now_signed(struct kmem_peak_word word)
{
	return (int64_t)(word.now << 16) >> 16;
}

static inline uint64_t
kmem_peak_high(struct kmem_peak_word word)
{
	return word.high & KMEM_PEAK_BYTES_MASK;
}

static inline uint32_t
kmem_peak_epoch(struct kmem_peak_word word)
{
	return (uint32_t)(word.now >> 48) | (uint32_t)(word.high >> 48) << 16;
}

static inline struct kmem_peak_word
kmem_peak_pack(uint64_t now, uint64_t high, uint32_t epoch)
{
	return (struct kmem_peak_word){
		.now = (now & KMEM_PEAK_BYTES_MASK) | (uint64_t)(epoch & 0xffff) << 48,
		.high = (high & KMEM_PEAK_BYTES_MASK) | (uint64_t)(epoch >> 16) << 48,
	};
}

/* Of a setting that protects: only what says so turns it off. NULL, as "": it is not set. */
static inline bool
kmem_is_wanted(const char *value)
{
	static const char *const off[] = { "", "0", "no", "off", "false" };

	for (size_t i = 0; value != NULL && i < sizeof(off) / sizeof(off[0]); i++) {
		if (strcasecmp(value, off[i]) == 0)
			return false;
	}
	return value != NULL;
}

/*
 * "64k", "1 MiB", "2G", "100": powers of two, case and a following "iB" or "B" do not matter. *bytes untouched when it is none, or does
 * not fit.
 */
static inline bool
kmem_parse_size(const char *text, uint64_t *bytes)
{
	static const char units[] = "kmgt";
	const char *unit;
	uint64_t number = 0;
	unsigned shift = 0;

	if (*text < '0' || *text > '9')
		return false;
	for (; *text >= '0' && *text <= '9'; text++) {
		if (__builtin_mul_overflow(number, 10, &number) ||
		    __builtin_add_overflow(number, (uint64_t)(*text - '0'), &number))
			return false;
	}
	text += strspn(text, " ");
	unit = *text != '\0' ? strchr(units, *text | 0x20) : NULL;
	if (unit != NULL) {
		shift = 10 * (unsigned)(unit - units + 1);
		text += text[1] == 'i' ? 2 : 1;
	}
	if (*text == 'B' || *text == 'b')
		text++;
	if (*text != '\0' || number > UINT64_MAX >> shift)
		return false;
	*bytes = number << shift;
	return true;
}

/* How much may be in use: a share of the limit in force, or bytes. One of them is 0; both: there is no guard. */
struct kmem_guard_setting {
	uint32_t percent;
	uint64_t bytes;
};
#define KMEM_GUARD_LEAST_BYTES (UINT64_C(1) << 20)
#define KMEM_GUARD_WANTED "a share such as 90% (1% to 99%), or a size with its unit such as 12G (at least 1M)"
#define KMEM_GUARD_ACTION_WANTED "note, interrupt, raise, or exec:CMD"

/* "90%" or "12G". *setting untouched when it is neither. */
static inline bool
kmem_parse_guard(const char *text, struct kmem_guard_setting *setting)
{
	size_t digits = strspn(text, "0123456789");
	uint64_t bytes = 0;

	if (strcmp(text + digits, "%") == 0) {
		unsigned percent = 0;

		for (size_t i = 0; i < digits && percent < 100; i++)
			percent = percent * 10 + (unsigned)(text[i] - '0');
		if (percent == 0 || percent >= 100)
			return false;
		*setting = (struct kmem_guard_setting){ .percent = percent };
		return true;
	}
	if (text[digits] == '\0' || !kmem_parse_size(text, &bytes) || bytes < KMEM_GUARD_LEAST_BYTES)
		return false;
	*setting = (struct kmem_guard_setting){ .bytes = bytes };
	return true;
}

#define KMEM_SAMPLE_WANTED "a size from 16K to 64M, such as 512K; 0 turns it off"

/* "512K". *bytes untouched when it is none. */
static inline bool
kmem_parse_sample(const char *text, uint64_t *bytes)
{
	uint64_t number;

	if (!kmem_parse_size(text, &number) ||
	    (number != 0 && (number < UINT64_C(16) << 10 || number > UINT64_C(64) << 20)))
		return false;
	*bytes = number;
	return true;
}

/* *command: of exec, inside `text`; else NULL. Both untouched when it is no action. */
static inline bool
kmem_parse_guard_action(const char *text, enum kmem_guard_action *action, const char **command)
{
	static const char *const names[] = { "note", "interrupt", "raise" }; // in the order of enum kmem_guard_action

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcmp(text, names[i]) == 0) {
			*action = (enum kmem_guard_action)i;
			*command = NULL;
			return true;
		}
	}
	if (strncmp(text, KMEM_GUARD_EXEC_PREFIX, strlen(KMEM_GUARD_EXEC_PREFIX)) != 0 ||
	    text[strlen(KMEM_GUARD_EXEC_PREFIX)] == '\0')
		return false;
	*action = KMEM_GUARD_EXEC;
	*command = text + strlen(KMEM_GUARD_EXEC_PREFIX);
	return true;
}

/* Telling an error asks for less: its text, a traceback. */
#define KMEM_ERROR_PATH_BYTES (UINT64_C(256) << 10)

/* Its figures are estimates from a sample, and its records belong to no thread. */
static inline bool
kmem_domain_is_sampled(unsigned domain)
{
	return domain == KMEM_DOMAIN_PYTHON_OBJECT || domain == KMEM_DOMAIN_HEAP_SAMPLE;
}

/* Memory of one process alone, which a child copies when it writes to it; of shared memory nobody makes a copy. */
static inline bool
kmem_domain_is_private(unsigned domain)
{
	return domain == KMEM_DOMAIN_HEAP || domain == KMEM_DOMAIN_MMAP || domain == KMEM_DOMAIN_PYTHON_ARENA ||
	       domain == KMEM_DOMAIN_LIBRARY || kmem_domain_is_sampled(domain);
}

/* Memory of the host that adds up: small objects lie in arenas. */
#define KMEM_HOST_DOMAINS(SUM)                                                                                \
	(SUM(KMEM_DOMAIN_HEAP) + SUM(KMEM_DOMAIN_HEAP_SAMPLE) + SUM(KMEM_DOMAIN_MMAP) + SUM(KMEM_DOMAIN_SHARED) + \
	 SUM(KMEM_DOMAIN_PYTHON_ARENA) + SUM(KMEM_DOMAIN_LIBRARY))

/* Of address space and of files nothing need be in memory; what was imported and registered is counted where it lies. */
static inline bool
kmem_domain_is_memory(unsigned domain)
{
	return (domain != KMEM_DOMAIN_RESERVED && domain != KMEM_DOMAIN_FILE && domain < KMEM_DOMAIN_TENSORS_FIRST) ||
	       kmem_domain_is_sampled(domain);
}

/* Highest live bytes of a domain. */
static inline uint64_t
kmem_domain_peak_bytes(struct kmem_peak_word domain)
{
	int64_t now = kmem_peak_now_signed(domain);
	int64_t high = (int64_t)kmem_peak_high(domain);

	return (uint64_t)(now > high ? now : high);
}

/* What a site held at the latest maximum that was booked for its domain. See shim/tables/peak.c. */
static inline uint64_t
kmem_site_high_bytes(struct kmem_peak_word domain, struct kmem_peak_word site)
{
	return kmem_peak_epoch(site) == kmem_peak_epoch(domain) ? kmem_peak_high(site) : kmem_peak_now(site);
}

/* What a site held when its domain was at its highest; see shim/tables/peak.c for why. */
static inline uint64_t
kmem_site_peak_bytes(struct kmem_peak_word domain, struct kmem_peak_word site)
{
	if (kmem_peak_now_signed(domain) > (int64_t)kmem_peak_high(domain))
		return kmem_peak_now(site);
	return kmem_site_high_bytes(domain, site);
}

/*
 * CRC-32C (Castagnoli): the checksum of ext4, Btrfs, iSCSI and SCTP, since processors have an instruction for it (x86-64 from 2008
 * on). No change within 32 consecutive bits goes unseen. Start with KMEM_CHECKSUM_START; the result of one call may be the start
 * of the next.
 *
 * Not chosen  a 64-bit hash, which is as fast, but proves nothing about small damages.
 */
#define KMEM_CHECKSUM_START UINT32_C(0)

/* Four bits at a step: for processors without the instruction. */
static inline uint32_t
kmem_checksum_by_table(uint32_t state, const void *bytes, size_t count)
{
	static const uint32_t table[16] = {
		0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
		0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
	};
	const unsigned char *at = bytes;

	for (state = ~state; count > 0; count--) {
		state ^= *at++;
		state = state >> 4 ^ table[state & 15];
		state = state >> 4 ^ table[state & 15];
	}
	return ~state;
}

#ifdef __x86_64__
/*
 * Asked once. Not chosen: __builtin_cpu_supports(), whose constructor asks dozens of questions in every process, and in a virtual machine
 * each of them goes to the host: a tenth of the start of a small program.
 */
static inline bool
kmem_checksum_has_instruction(void)
{
	static _Atomic int answer; // 0 = not asked yet. relaxed: everybody finds the same
	int known = atomic_load_explicit(&answer, memory_order_relaxed);
	unsigned a, b, c, d;

	if (known == 0) {
		__cpuid(1, a, b, c, d);
		known = (c & bit_SSE4_2) != 0 ? 1 : -1;
		atomic_store_explicit(&answer, known, memory_order_relaxed);
	}
	return known > 0;
}

__attribute__((target("sse4.2"))) static inline uint32_t
kmem_checksum_by_processor(uint32_t state, const void *bytes, size_t count)
{
	const unsigned char *at = bytes;
	uint64_t wide = ~state;
	uint64_t words[4];

	for (; count >= sizeof(words); at += sizeof(words), count -= sizeof(words)) {
		memcpy(words, at, sizeof(words));
		for (unsigned i = 0; i < 4; i++)
			wide = __builtin_ia32_crc32di(wide, words[i]);
	}
	for (; count >= sizeof(words[0]); at += sizeof(words[0]), count -= sizeof(words[0])) {
		memcpy(words, at, sizeof(words[0]));
		wide = __builtin_ia32_crc32di(wide, words[0]);
	}
	state = (uint32_t)wide;
	for (; count > 0; count--)
		state = __builtin_ia32_crc32qi(state, *at++);
	return ~state;
}
#endif

static inline uint32_t
kmem_checksum(uint32_t state, const void *bytes, size_t count)
{
#ifdef __x86_64__
	if (kmem_checksum_has_instruction())
		return kmem_checksum_by_processor(state, bytes, count);
#endif
	return kmem_checksum_by_table(state, bytes, count);
}

/* F4. `head` is the whole head of a capture. */
static inline uint32_t
kmem_identity_checksum(const void *head)
{
	const size_t own = offsetof(struct kmem_header, identity_checksum);
	const struct kmem_header *header = head;
	const struct kmem_domain_row *rows = (const struct kmem_domain_row *)((const char *)head + KMEM_DOMAINS_OFFSET);
	uint32_t sum = kmem_checksum(KMEM_CHECKSUM_START, head, own);

	sum = kmem_checksum(sum, &header->identity, sizeof(header->identity));
	for (unsigned i = 0; i < KMEM_DOMAINS_MAX; i++) {
		sum = kmem_checksum(sum, &rows[i].inherited_bytes,
		                    sizeof(rows[i].inherited_bytes) + sizeof(rows[i].inherited_count));
		sum = kmem_checksum(sum, rows[i].name, sizeof(rows[i].name));
	}
	return sum;
}

/* Where in the head a command's request stands. */
#define KMEM_REQUEST_OFFSET (KMEM_TIMELINE_OFFSET + offsetof(struct kmem_timeline, request))

/* F5. Its own field, what the launcher adds later, and what commands ask are taken as 0. */
static inline uint32_t
kmem_head_checksum(const void *head)
{
	static const unsigned char zeros[128];
	const struct {
		size_t at;
		size_t bytes;
	} skipped[] = { { offsetof(struct kmem_header, head_checksum), sizeof(uint32_t) },
		            { offsetof(struct kmem_header, launcher), sizeof(struct kmem_launcher) },
		            { KMEM_REQUEST_OFFSET, sizeof(struct kmem_request) },
		            { KMEM_HEAD_BYTES, 0 } };
	const unsigned char *bytes = head;
	uint32_t sum = KMEM_CHECKSUM_START;
	size_t at = 0;

	static_assert(sizeof(struct kmem_launcher) <= sizeof(zeros) && sizeof(struct kmem_request) <= sizeof(zeros), "");
	for (unsigned i = 0; i < sizeof(skipped) / sizeof(skipped[0]); i++) {
		sum = kmem_checksum(sum, bytes + at, skipped[i].at - at);
		sum = kmem_checksum(sum, zeros, skipped[i].bytes);
		at = skipped[i].at + skipped[i].bytes;
	}
	return sum;
}

/* F3. `skipped_at` is the offset of a mutable field of 8 bytes, taken as 0; 0 = none. */
static inline uint32_t
kmem_record_checksum(const struct kmem_record *record, size_t skipped_at)
{
	static const uint64_t zeros;
	const unsigned char *bytes = (const unsigned char *)record;
	const size_t start = sizeof(record->checksum);
	uint32_t sum;

	if (skipped_at == 0)
		return kmem_checksum(KMEM_CHECKSUM_START, bytes + start, record->bytes - start);
	sum = kmem_checksum(KMEM_CHECKSUM_START, bytes + start, skipped_at - start);
	sum = kmem_checksum(sum, &zeros, sizeof(zeros));
	skipped_at += sizeof(zeros);
	return kmem_checksum(sum, bytes + skipped_at, record->bytes - skipped_at);
}

/* F7; never 0, which says that it is being written. */
static inline uint32_t
kmem_failed_checksum(const struct kmem_failed *failed, uint64_t sequence)
{
	uint32_t sum = kmem_checksum(KMEM_CHECKSUM_START, &sequence, sizeof(sequence));

	sum = kmem_checksum(sum, &failed->bytes,
	                    offsetof(struct kmem_failed, checksum) - offsetof(struct kmem_failed, bytes));
	return sum != 0 ? sum : 1;
}

static inline uint32_t
kmem_heartbeat_checksum(const struct kmem_heartbeat *beat, uint64_t sequence)
{
	uint32_t sum = kmem_checksum(KMEM_CHECKSUM_START, &sequence, sizeof(sequence));

	sum = kmem_checksum(sum, &beat->monotonic_ns, sizeof(*beat) - sizeof(beat->sequence));
	return sum != 0 ? sum : 1;
}

/* The same of all that stands in a struct from a member on, behind its checksum. */
#define KMEM_CHECKSUM_FROM(name, type, member)                                                                       \
	static inline uint32_t name(const struct type *of)                                                               \
	{                                                                                                                \
		uint32_t sum = kmem_checksum(KMEM_CHECKSUM_START, &of->member, sizeof(*of) - offsetof(struct type, member)); \
                                                                                                                     \
		return sum != 0 ? sum : 1;                                                                                   \
	}

KMEM_CHECKSUM_FROM(kmem_resident_lines_checksum, kmem_resident_lines, sampled_pages)
KMEM_CHECKSUM_FROM(kmem_mark_checksum, kmem_mark, kind)
KMEM_CHECKSUM_FROM(kmem_history_checksum, kmem_history_point, domain_count)
KMEM_CHECKSUM_FROM(kmem_release_checksum, kmem_release, site)
KMEM_CHECKSUM_FROM(kmem_request_checksum, kmem_request, wants)

/* Of a part: its points come and go. */
static inline uint32_t
kmem_history_head_checksum(const struct kmem_record *record)
{
	return kmem_checksum(KMEM_CHECKSUM_START, &record->type, sizeof(*record) - offsetof(struct kmem_record, type));
}

/* Can a reader take it? */
static inline bool
kmem_version_is_read(uint32_t version)
{
	return version >= KMEM_VERSION_OLDEST && version <= KMEM_VERSION;
}

/* S2: in which bits of `twin` it stands. One changed byte of what it covers always changes it. */
#define KMEM_TWIN_MASK UINT32_C(0x00ffffff)

static inline uint32_t
kmem_site_check(uint32_t stack, uint16_t slot, uint8_t domain, uint8_t first_generation)
{
	uint64_t all = stack | (uint64_t)slot << 32 | (uint64_t)domain << 48 | (uint64_t)first_generation << 56;

	all ^= all >> 32;
	all ^= all >> 16;
	all ^= all >> 8;
	return (uint32_t)(all & 0xff) << 24;
}

/*
 * The clock of generations, 1 to KMEM_CLOCK_MAX, at this value of its measure: a tick each 64 KiB until 512 KiB, then eight per
 * doubling. A block counts as so many bytes where blocks are counted: of programs that allocate least the mean is not smaller.
 */
#define KMEM_TICK_BYTES_LOG2 16
#define KMEM_TICK_BLOCK_BYTES 64u
#define KMEM_TICK_STEP_BYTES \
	(UINT64_C(1) << KMEM_TICK_BYTES_LOG2) // a tick for each of the first eight, then eight per doubling

/* How often a tick's width has doubled at this value. */
static inline unsigned
kmem_clock_octave(uint64_t bytes)
{
	uint64_t ticks = bytes >> KMEM_TICK_BYTES_LOG2;

	return ticks < 16 ? 0 : 60 - (unsigned)__builtin_clzll(ticks); // 8 to 15 ticks: octave 0
}

static inline uint8_t
kmem_clock_at(uint64_t bytes)
{
	uint64_t ticks = bytes >> KMEM_TICK_BYTES_LOG2;
	unsigned octave = kmem_clock_octave(bytes);
	uint64_t clock = ticks < 8 ? 1 + ticks : 9 + octave * 8 + ((ticks >> octave) - 8);

	return clock < KMEM_CLOCK_MAX ? (uint8_t)clock : KMEM_CLOCK_MAX;
}

/* 1 to KMEM_GENERATION_BUCKETS; clock: 1 at least. */
static inline uint8_t
kmem_generation_bucket(uint8_t clock)
{
	return (uint8_t)((clock - 1u) % KMEM_GENERATION_BUCKETS + 1);
}

/* A number of bytes in 16 bits: its highest 11 bits, and where they stand. Less than 1 KiB is 0. */
static inline uint16_t
kmem_rough(uint64_t bytes)
{
	unsigned place = bytes < 1024 ? 0 : 63 - (unsigned)__builtin_clzll(bytes);

	if (place == 0)
		return 0;
	return (uint16_t)(place << 10 | (unsigned)(bytes >> (place - 10) & 1023));
}

static inline uint64_t
kmem_rough_bytes(uint16_t rough)
{
	return rough < 10u << 10 ? 0 : (uint64_t)(1024 | (rough & 1023)) << ((rough >> 10) - 10);
}

/* The same for a count: exact below 2,048. */
static inline uint16_t
kmem_rough_count(uint64_t count)
{
	return kmem_rough(count < UINT64_MAX >> 10 ? count << 10 : UINT64_MAX);
}

static inline uint64_t
kmem_rough_count_of(uint16_t rough)
{
	return kmem_rough_bytes(rough) >> 10;
}

/* F6: a number and its complement; 0 stays 0. */
static inline uint64_t
kmem_twice(uint32_t number)
{
	return number == 0 ? 0 : number | (uint64_t)~number << 32;
}

static inline bool
kmem_twice_agrees(uint64_t twice)
{
	return kmem_twice((uint32_t)twice) == twice;
}

/* The same in half of the room: a number that does not fit is the largest that does. */
static inline uint32_t
kmem_twice_16(uint32_t number)
{
	uint32_t low = number < UINT16_MAX ? number : UINT16_MAX;

	return number == 0 ? 0 : low | (~low & UINT16_MAX) << 16;
}

static inline bool
kmem_twice_16_agrees(uint32_t twice)
{
	return kmem_twice_16(twice & UINT16_MAX) == twice;
}

/* Checksums of struct kmem_inherited: of its figures, and of its sites. */
static inline uint32_t
kmem_inherited_figures(const struct kmem_inherited *inherited)
{
	const char *first = (const char *)&inherited->copied_bytes;

	return kmem_checksum(KMEM_CHECKSUM_START, first, (size_t)((const char *)&inherited->site_count - first));
}

static inline uint32_t
kmem_inherited_sites(const struct kmem_inherited *inherited)
{
	uint32_t sum = kmem_checksum(KMEM_CHECKSUM_START, &inherited->site_count,
	                             sizeof(inherited->site_count) + sizeof(inherited->reserved));

	for (uint32_t i = 0; i < KMEM_INHERITED_SITES_MAX; i++) { // without what is counted later
		const uint32_t constant[2] = { inherited->sites[i].site, 0 };

		sum = kmem_checksum(sum, constant, sizeof(constant));
		sum = kmem_checksum(sum, &inherited->sites[i].live_bytes, sizeof(inherited->sites[i].live_bytes));
	}
	return sum;
}

#endif
