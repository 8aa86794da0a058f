/* in_memory: a vector that reserves much and uses nothing of it, and a line that keeps small strings. Run by test_in_memory.py. */
#include <cstdlib>
#include <string>
#include <unistd.h>
#include <vector>

std::vector<char> *pool; // seen from outside: else the compiler leaves the request out
static std::vector<std::string> *kept;

__attribute__((noinline)) static void
reserve_much()
{
	pool = new std::vector<char>;
	pool->reserve(size_t(2) << 30);
}

__attribute__((noinline)) static void
keep_one()
{
	kept->push_back(std::string(1000, 'x'));
}

int
main(int, char **arguments)
{
	size_t count = (strtoul(arguments[1], nullptr, 10) << 20) / 1000;

	reserve_much();
	kept = new std::vector<std::string>;
	kept->reserve(count);
	for (size_t i = 0; i < count; i++) {
		keep_one();
		if (i % 1000 == 0)
			usleep(1000); // as in in_memory.c
	}
}
