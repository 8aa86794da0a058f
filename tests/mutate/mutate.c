/*
 * mutate.c - does one damaged byte of a capture give the right answer, or a message that names the section?
 *
 *   mutate CAPTURE [--every N] [--allow-counters]
 *
 * Changes every Nth byte of the file (the start is taken from SEED), one bit of it and then all of them, and reads it as a command would,
 * up to the JSON document. What comes out is the document of the undamaged file, or one with a new line in `damages`, or a refusal, which
 * --salvage then must survive. Anything else is wrong in silence. --allow-counters: the capture was not closed, and what cannot be
 * sealed while a program runs is counted by field instead; only what `uncovered` says may be among them. Prints a
 * table; exit 1 for silence, for a message without a section, for more memory than 4 times the file's size; a crash or 10 seconds
 * for one file end it, after a line that says where.
 */
#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "analysis/rank.h"
#include "kmem_words.h"
#include "model/model_load.h"
#include "random.h"
#include "report/render.h"
#include "report/report.h"

#define FIELDS_MAX 128

static int file_fd;
static char file_path[64];
static size_t file_bytes;
static unsigned char *file;
static volatile size_t at_byte; // for the handler

/* ---- what a byte is ---- */

struct field {
	const char *name;
	size_t start;
	size_t bytes;
	size_t uncovered; // of a capture that was not closed: so many of its first bytes are said by nothing else
};

#define ALL 4096
#define OF(type, section, member, uncovered)                                                                 \
	{                                                                                                        \
		section "." #member, offsetof(struct type, member), sizeof(((struct type *)NULL)->member), uncovered \
	}
/* A number that follows from others, but for a request under way in each thread: CAPTURE_CROSS_CHECK_BYTES. */
#define NEARLY 3

static const struct field header_fields[] = {
	OF(kmem_header, "head", exit_code, 0),
	OF(kmem_header, "head", head_checksum, 0),
	OF(kmem_header, "head", ended_monotonic_ns, 0),
	OF(kmem_header, "head", chunk_count, 0),
	OF(kmem_header, "head", module_version, 0),
	OF(kmem_header, "head", peak_error_bytes, ALL),
	OF(kmem_header, "head", used_bytes, 0),
	OF(kmem_header, "head", generation_clock_bytes, 0),
	OF(kmem_header, "head", generation_clock, 0),
	OF(kmem_header, "head", verify_checked, ALL),
	OF(kmem_header, "head", verify_mismatched, ALL),
	OF(kmem_header, "head", attempt_bytes, ALL),
	OF(kmem_header, "head", attempt_domain, ALL),
	OF(kmem_header, "head", losses, ALL),
	OF(kmem_header, "head", efforts, ALL),
	OF(kmem_header, "head", failed_count, ALL),
	OF(kmem_header, "head", volume_bytes, ALL),
	OF(kmem_header, "head", tick_bytes, ALL),
	OF(kmem_header, "head", tick_blocks, ALL),
	OF(kmem_header, "head", volume_at, ALL),
	OF(kmem_header, "head", at_exit, 0),
	/* Which of the two looks is the newer one. */
	OF(kmem_header, "head", resident[0].sequence, ALL),
	OF(kmem_header, "head", resident[0].monotonic_ns, ALL),
	OF(kmem_header, "head", resident[1].sequence, ALL),
	OF(kmem_header, "head", resident[1].monotonic_ns, ALL),
};
/* The upper 16 bits of a peak word: which maximum its mark belongs to. */
#define EPOCH_OF(type, section)                                            \
	{                                                                      \
		section ".peak epoch", offsetof(struct type, peak.now) + 6, 2, ALL \
	}

static const struct field domain_fields[] = {
	EPOCH_OF(kmem_domain_row, "domains"),
	OF(kmem_domain_row, "domains", peak.now, NEARLY),
	OF(kmem_domain_row, "domains", peak.high, NEARLY),
	OF(kmem_domain_row, "domains", peak_resident_bytes, ALL),
	OF(kmem_domain_row, "domains", returned_bytes, ALL),
	OF(kmem_domain_row, "domains", kept_peak_bytes, NEARLY),
};
static const struct field site_fields[] = {
	EPOCH_OF(kmem_site, "sites"),
	OF(kmem_site, "sites", peak.now, NEARLY),
	OF(kmem_site, "sites", peak.high, ALL),
	OF(kmem_site, "sites", allocated_bytes, 2),
	OF(kmem_site, "sites", freed_bytes, 2),
	OF(kmem_site, "sites", allocated_count, ALL),
	OF(kmem_site, "sites", freed_count, ALL),
	OF(kmem_site, "sites", stack, 0),
	OF(kmem_site, "sites", generations, 0),
	OF(kmem_site, "sites", next_same_stack, 0),
	OF(kmem_site, "sites", slot, 0),
	OF(kmem_site, "sites", domain, 0),
	OF(kmem_site, "sites", first_generation, 0),
};
static const struct field generation_fields[] = {
	OF(kmem_generations, "generations", site, 0),
	OF(kmem_generations, "generations", births, ALL),
	OF(kmem_generations, "generations", born, ALL),
	OF(kmem_generations, "generations", live_count, ALL),
};
static const struct field timeline_fields[] = {
	OF(kmem_timeline, "head", steps.depth, ALL),      OF(kmem_timeline, "head", steps.count, ALL),
	OF(kmem_timeline, "head", steps.began_ns, ALL),   OF(kmem_timeline, "head", steps.reserved, ALL),
	OF(kmem_timeline, "head", steps.tick_steps, ALL), OF(kmem_timeline, "head", steps.measure, ALL),
	OF(kmem_timeline, "head", steps.count_at, ALL),   OF(kmem_timeline, "head", steps.ms_at, ALL),
	OF(kmem_timeline, "head", mark_sequence, ALL),    OF(kmem_timeline, "head", request_done, ALL),
	OF(kmem_timeline, "head", kept_spare, ALL),
};
static const struct field others[] = {
	{ "head", 0, 0, 0 },
	{ "domains", 0, 0, 0 },
	{ "heartbeats", 0, 0, 0 },
	{ "directory", 0, 0, 0 },
	{ "sites", 0, 0, 0 },
	{ "generations", 0, 0, 0 },
	{ "records", 0, 0, 0 },
	{ "head.lines in memory", 0, 0, 0 },
	{ "head.steps and marks", 0, 0, 0 },
	{ "holders", 0, 0, 0 },
};

static const struct field *
find(const struct field *fields, size_t count, size_t offset, const struct field *other, bool *is_uncovered)
{
	for (size_t i = 0; i < count; i++) {
		if (offset >= fields[i].start && offset < fields[i].start + fields[i].bytes) {
			*is_uncovered = offset - fields[i].start < fields[i].uncovered;
			return &fields[i];
		}
	}
	*is_uncovered = false;
	return other;
}

#define FIND(fields, offset, other) find(fields, sizeof(fields) / sizeof((fields)[0]), offset, other, is_uncovered)

static const struct field *
field_of(size_t at, bool *is_uncovered)
{
	const struct kmem_chunk *directory = (const struct kmem_chunk *)(const void *)(file + KMEM_DIRECTORY_OFFSET);

	*is_uncovered = false;
	if (at >= KMEM_TIMELINE_OFFSET && at < KMEM_DOMAINS_OFFSET)
		return FIND(timeline_fields, at - KMEM_TIMELINE_OFFSET, &others[8]);
	if (at >= KMEM_RESIDENT_LINES_OFFSET && at < KMEM_TIMELINE_OFFSET)
		return &others[7];
	if (at < KMEM_DOMAINS_OFFSET)
		return FIND(header_fields, at, &others[0]);
	if (at < KMEM_HEARTBEATS_OFFSET)
		return FIND(domain_fields, (at - KMEM_DOMAINS_OFFSET) % sizeof(struct kmem_domain_row), &others[1]);
	if (at < KMEM_HEAD_BYTES)
		return &others[at < KMEM_DIRECTORY_OFFSET ? 2 : 3];

	size_t chunk = (at - KMEM_HEAD_BYTES) / KMEM_CHUNK_BYTES;
	size_t place = (at - KMEM_HEAD_BYTES) % KMEM_CHUNK_BYTES;

	if (directory[chunk].section == KMEM_SECTION_SITES)
		return FIND(site_fields, place % sizeof(struct kmem_site), &others[4]);
	if (directory[chunk].section == KMEM_SECTION_GENERATIONS)
		return FIND(generation_fields, place % sizeof(struct kmem_generations), &others[5]);
	return &others[directory[chunk].section == KMEM_SECTION_HOLDERS ? 9 : 6];
}

/* ---- one file ---- */

/* The reader looks again a few milliseconds later at what may be being closed. Nobody writes here: that would be hours. */
int
nanosleep(const struct timespec *wanted, struct timespec *left)
{
	return 0;
}

struct answer {
	size_t bytes;      // of the JSON document without its damages
	uint32_t checksum; // of the same: a document may be many times the file, and a command prints it as it comes
	char *said;        // damages, one line each, or the refusal
	bool is_refused;
};

static void
free_answer(struct answer *answer)
{
	free(answer->said);
}

static ssize_t
take_text(void *cookie, const char *text, size_t bytes)
{
	struct answer *answer = cookie;

	answer->bytes += bytes;
	answer->checksum = kmem_checksum(answer->checksum, text, bytes);
	return (ssize_t)bytes;
}

/* Damages are taken apart: a document is the same with and without them. */
static void
read_file(bool is_salvage, struct answer *answer)
{
	struct model_options options = { .capture = file_path, .is_salvage = is_salvage };
	struct report_options rows = { .top = UINT64_MAX, .frames_bytes = UINT64_MAX };
	struct fail fail = { .text = "" };
	struct model *model = model_load(&options, &fail);
	struct report *report = model != NULL ? report_build(model, &rank_leaks, &rows, &fail) : NULL;
	size_t said_bytes;

	*answer = (struct answer){ .is_refused = report == NULL };
	FILE *stream = open_memstream(&answer->said, &said_bytes);
	(void)fputs(report == NULL ? fail.text : "", stream);
	for (size_t i = 0; report != NULL && i < report->damage_count; i++)
		(void)fprintf(stream, "%s\n", report->damages[i]);
	(void)fclose(stream);
	if (report != NULL) {
		report->damage_count = 0;
		stream = fopencookie(answer, "w", (cookie_io_functions_t){ .write = take_text });
		render_json(report, stream);
		(void)fclose(stream);
	}
	report_free(report);
	model_free(model);
}

static void
put_byte(size_t at, unsigned char byte)
{
	if (pwrite(file_fd, &byte, 1, (off_t)at) != 1)
		abort();
}

static void
last_words(int signal)
{
	char line[96];
	int length = snprintf(line, sizeof(line), "mutate: %s with byte %zu damaged\n",
	                      signal == SIGALRM ? "hangs" : "crashes", at_byte);

	(void)!write(STDERR_FILENO, line, (size_t)length);
	_exit(2);
}

/* ---- all of them ---- */

struct tally {
	const struct field *field;
	uint64_t tried;
	uint64_t right;
	uint64_t told;
	uint64_t silent;
};

static struct tally tallies[FIELDS_MAX];
static unsigned tally_count;
static uint64_t wrong;

static struct tally *
tally_of(const struct field *field)
{
	for (unsigned i = 0; i < tally_count; i++) {
		if (tallies[i].field == field)
			return &tallies[i];
	}
	if (tally_count == FIELDS_MAX)
		abort();
	tallies[tally_count].field = field;
	return &tallies[tally_count++];
}

static bool
names_a_section(const char *text)
{
	return strstr(text, "section \"") != NULL || strstr(text, "is not a kmemshim capture") != NULL ||
	       strstr(text, "recorded on a machine with the other byte order") != NULL ||
	       strstr(text, "kmemshim (format") != NULL ||
	       strstr(text, "at its very start, or is still there: nothing was recorded") != NULL;
}

static void
judge(size_t at, unsigned char change, const struct answer *sound, bool allows_counters)
{
	bool is_uncovered;
	const struct field *field = field_of(at, &is_uncovered);
	struct tally *tally = tally_of(field);
	struct answer damaged;
	struct answer salvaged;

	at_byte = at;
	(void)alarm(10);
	put_byte(at, file[at] ^ change);
	read_file(false, &damaged);
	bool is_same = damaged.bytes == sound->bytes && damaged.checksum == sound->checksum;
	bool is_told = strcmp(damaged.said, sound->said) != 0;
	tally->tried++;
	if (is_told && !names_a_section(damaged.said)) {
		(void)printf("byte %zu (%s) ^ 0x%02x: no section is named: %s\n", at, field->name, change, damaged.said);
		wrong++;
	}
	if (is_told) {
		tally->told++;
	} else if (is_same) {
		tally->right++;
	} else {
		tally->silent++;
		if (!allows_counters || !is_uncovered) {
			if (wrong++ < 20)
				(void)printf("byte %zu (%s) ^ 0x%02x: another answer, and nobody says so\n", at, field->name, change);
		}
	}
	if (damaged.is_refused) {
		read_file(true, &salvaged);
		free_answer(&salvaged);
	}
	free_answer(&damaged);
	put_byte(at, file[at]);
}

/* Not ru_maxrss, which begins with what the parent held. */
static long
most_resident_bytes(void)
{
	FILE *stream = fopen("/proc/self/status", "r");
	char line[256];
	long kilobytes = 0;

	while (stream != NULL && kilobytes == 0 && fgets(line, sizeof(line), stream) != NULL)
		(void)sscanf(line, "VmHWM: %ld", &kilobytes);
	if (stream != NULL)
		(void)fclose(stream);
	return kilobytes * 1024;
}

static void
take_file(const char *path)
{
	FILE *stream = fopen(path, "rb");
	long bytes;

	if (stream == NULL || fseek(stream, 0, SEEK_END) != 0 || (bytes = ftell(stream)) < (long)KMEM_HEAD_BYTES) {
		(void)fprintf(stderr, "mutate: %s: cannot be read\n", path);
		exit(2);
	}
	rewind(stream);
	file_bytes = (size_t)bytes;
	file = malloc(file_bytes);
	file_fd = memfd_create("capture", MFD_CLOEXEC);
	if (file == NULL || file_fd < 0 || fread(file, 1, file_bytes, stream) != file_bytes ||
	    write(file_fd, file, file_bytes) != (ssize_t)file_bytes)
		abort();
	(void)fclose(stream);
	(void)snprintf(file_path, sizeof(file_path), "/proc/self/fd/%d", file_fd);
}

static void
print_tallies(uint64_t tried)
{
	(void)printf("%-32s %10s %10s %10s %10s\n", "field", "tried", "right", "told", "silent");
	for (unsigned i = 0; i < tally_count; i++)
		(void)printf("%-32s %10" PRIu64 " %10" PRIu64 " %10" PRIu64 " %10" PRIu64 "\n", tallies[i].field->name,
		             tallies[i].tried, tallies[i].right, tallies[i].told, tallies[i].silent);
	(void)printf("%" PRIu64 " damaged files of %zu bytes\n", tried, file_bytes);
}

int
main(int count, char **arguments)
{
	size_t every = 1;
	bool allows_counters = false;
	uint64_t random = random_seed();
	uint64_t tried = 0;
	struct answer sound;

	if (count < 2)
		return 2;
	for (int i = 2; i < count; i++) {
		if (strcmp(arguments[i], "--allow-counters") == 0)
			allows_counters = true;
		else if (strcmp(arguments[i], "--every") == 0 && i + 1 < count)
			every = strtoul(arguments[++i], NULL, 10);
	}
	(void)mallopt(M_MMAP_THRESHOLD, 1 << 30); // every file anew: memory that is kept costs no page faults
	(void)mallopt(M_TRIM_THRESHOLD, 1 << 30);
	take_file(arguments[1]);
	(void)signal(SIGSEGV, last_words);
	(void)signal(SIGBUS, last_words);
	(void)signal(SIGABRT, last_words);
	(void)signal(SIGFPE, last_words);
	(void)signal(SIGALRM, last_words);
	long resident = most_resident_bytes();
	read_file(false, &sound);
	if (sound.said[0] != '\0') {
		(void)printf("the capture is not sound: %s\n", sound.said);
		return 1;
	}
	for (size_t at = every > 1 ? random_below(&random, every) : 0; at < file_bytes; at += every) {
		judge(at, (unsigned char)(1u << random_below(&random, 8)), &sound, allows_counters);
		judge(at, 0xff, &sound, allows_counters);
		tried += 2;
	}
	print_tallies(tried);
	resident = most_resident_bytes() - resident;
	(void)printf("memory: %.2f times the file\n", (double)resident / (double)file_bytes);
	if ((size_t)resident > 4 * file_bytes + (4u << 20)) {
		(void)printf("that is more than 4 times the file and 4 MiB\n");
		wrong++;
	}
	free_answer(&sound);
	return wrong != 0;
}
