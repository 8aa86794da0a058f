// Programs that die, one function each: programs KIND. The line that holds the memory, or asks for too much, ends with "// KIND".
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static const size_t MIB = 1 << 20;
static std::vector<void *> kept;

static void
slowly()
{
	usleep(8000);
}

static void
small_blocks()
{
	for (size_t i = 0;; i++) {
		void *block = malloc(120); // small_blocks
		memset(block, 1, 120);
		kept.push_back(block);
		if (i % 8000 == 0)
			slowly();
	}
}

static void
growing_vector()
{
	std::vector<double> values;
	for (size_t i = 0;; i++) {
		values.push_back(1.5); // growing_vector
		if (i % 130000 == 0)
			slowly();
	}
}

static void
map_without_end()
{
	std::map<size_t, std::string> seen;
	for (size_t i = 0;; i++) {
		seen[i] = std::string(300, 'x'); // map_without_end
		if (i % 3000 == 0)
			slowly();
	}
}

static void
mappings()
{
	for (;;) {
		void *addr = mmap(nullptr, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); // mappings
		memset(addr, 1, MIB);
		slowly();
	}
}

// Every page keeps a block; then larger ones find no room in the holes.
static void
holes()
{
	std::vector<void *> blocks;
	for (size_t i = 0; i < 90 * MIB / 1024; i++) {
		blocks.push_back(malloc(1000)); // holes
		memset(blocks.back(), 1, 1000);
	}
	for (size_t i = 0; i < blocks.size(); i++) {
		if (i % 8 != 0)
			free(blocks[i]);
	}
	sleep(2);
	for (;;) {
		kept.push_back(malloc(100000));
		memset(kept.back(), 1, 100000);
		slowly();
	}
}

static void
limit_addresses(size_t bytes)
{
	struct rlimit limit = { bytes, RLIM_INFINITY };
	size_t pages = 0;
	FILE *statm = fopen("/proc/self/statm", "r");

	if (fscanf(statm, "%zu", &pages) != 1)
		exit(9);
	fclose(statm);
	limit.rlim_cur += pages * 4096;
	setrlimit(RLIMIT_AS, &limit);
}

static void
bad_alloc()
{
	limit_addresses(200 * MIB);
	for (;;)
		kept.push_back(new char[MIB]); // bad_alloc
}

static void
null_not_checked()
{
	limit_addresses(200 * MIB);
	for (;;) {
		volatile char *block = static_cast<char *>(malloc(MIB)); // null_not_checked
		block[0] = 1;
	}
}

static void
assertion()
{
	kept.push_back(memset(malloc(60 * MIB), 1, 60 * MIB));
	fprintf(stderr, "what must be true is not\n");
	abort();
}

static void
freed_twice()
{
	kept.push_back(memset(malloc(60 * MIB), 1, 60 * MIB));
	void *volatile block = malloc(100);
	void *volatile again = block;
	free(block);
	free(again);
}

static void
divided_by_zero()
{
	volatile int zero = 0;
	kept.push_back(memset(malloc(60 * MIB), 1, 60 * MIB));
	exit(static_cast<int>(kept.size()) * 100 / zero);
}

static void
illegal_instruction()
{
	kept.push_back(memset(malloc(60 * MIB), 1, 60 * MIB));
	__builtin_trap();
}

static __attribute__((noinline)) int
deeper(int depth)
{
	volatile char room[2000];
	room[depth % 2000] = 1;
	return depth < 0 ? 0 : deeper(depth + 1) + room[7];
}

static void
stack_overflow()
{
	kept.push_back(memset(malloc(60 * MIB), 1, 60 * MIB));
	exit(deeper(0));
}

/* One large block that is filled when nobody looks any more: what is allocated between makes the last look. */
static void
filled_later()
{
	void *block = malloc(200 * MIB);
	usleep(1200000);
	kept.push_back(memset(malloc(3 * MIB), 1, 3 * MIB));
	usleep(1200000);
	kept.push_back(memset(block, 1, 200 * MIB)); // filled_later
	printf("%d\n", getpid());
	fflush(stdout);
	sleep(60);
}

int
main(int, char **argv)
{
	static const std::map<std::string, void (*)()> kinds = {
		{ "small_blocks", small_blocks },
		{ "growing_vector", growing_vector },
		{ "map_without_end", map_without_end },
		{ "mappings", mappings },
		{ "holes", holes },
		{ "bad_alloc", bad_alloc },
		{ "null_not_checked", null_not_checked },
		{ "assertion", assertion },
		{ "freed_twice", freed_twice },
		{ "divided_by_zero", divided_by_zero },
		{ "illegal_instruction", illegal_instruction },
		{ "stack_overflow", stack_overflow },
		{ "filled_later", filled_later },
	};
	kinds.at(argv[1])();
}
