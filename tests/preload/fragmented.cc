/* fragmented.c in C++: lists that come and go. */
#include <array>
#include <csignal>
#include <cstdlib>
#include <list>
#include <malloc.h>
#include <string>
#include <unistd.h>
#include <vector>

#include "fragmented.h"

constexpr size_t count = 200000;
struct block : std::array<char, 884> { // with the list's two pointers 900
	block()
	{
		fill(1);
	}
};
static std::list<block> *worked;
static std::list<block> *kept;
static std::list<std::vector<char>> *more;

__attribute__((noinline)) static void
work()
{
	worked->emplace_back();
}

__attribute__((noinline)) static void
keep()
{
	kept->emplace_back();
}

__attribute__((noinline)) static void
refill()
{
	more->emplace_back(100000, 'x');
	usleep(1000); // see test_fragmentation.py
}

int
main(int argc, char **arguments)
{
	mallopt(M_MMAP_THRESHOLD, 1 << 30);
	if (argc != 3)
		return 2;
	worked = new std::list<block>;
	kept = new std::list<block>;
	more = new std::list<std::vector<char>>;
	for (size_t i = 0; i < count; i++)
		i % 50 == 0 ? keep() : work();
	for (size_t i = 0; !worked->empty(); i++) {
		worked->pop_front();
		give_time(i);
	}
	tell_truth(arguments[2]);
	if (std::string(arguments[1]) == "asleep")
		kill(getpid(), SIGKILL);
	for (size_t i = 0; i < count; i++)
		refill();
}
