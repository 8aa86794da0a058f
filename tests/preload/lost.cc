/*
 * Loses objects of C++ in known ways, then waits; "end" ends it, where a leak sanitizer sees the same.
 *
 * Lost directly: 7 vectors by lose_vector(), 3 arrays of objects by lose_array(). Lost indirectly: the storage of these vectors. Lost: 5 maps
 * by lose_map(), and their nodes; the root of the tree leads back to its map. Reachable: what a global map, an address of a second base class, and that of the first object of an array
 * lead to.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <vector>

extern "C" __attribute__((weak)) void __lsan_do_leak_check();

#define OWN __attribute__((noinline))

struct first {
	virtual ~first()
	{
	}
	long numbers[20];
};
struct second {
	virtual ~second()
	{
	}
	long numbers[30];
};
struct both : first, second {
};
struct counted {
	~counted()
	{
		std::puts("gone");
	}
	long numbers[10];
};

static std::map<int, std::vector<int> *> kept;
static second *volatile kept_base;
static counted *volatile kept_array;

template <typename T>
OWN static void
forget(T *object)
{
	__asm__ volatile("" ::"r"(object) : "memory");
}

OWN static void
lose_vector()
{
	forget(new std::vector<int>(1000, 1));
}

OWN static void
lose_map()
{
	auto *map = new std::map<int, long>;

	for (int i = 0; i < 50; i++)
		(*map)[i] = i;
	forget(map);
}

OWN static void
lose_array()
{
	forget(new counted[10]);
}

OWN static void
keep()
{
	for (int i = 0; i < 20; i++)
		kept[i] = new std::vector<int>(500, i);
	kept_base = new both;
	kept_array = new counted[20];
}

OWN static void
wipe()
{
	volatile char room[65536];

	std::memset((char *)room, 0, sizeof(room));
}

int
main(int count, char **)
{
	for (int i = 0; i < 7; i++)
		lose_vector();
	for (int i = 0; i < 5; i++)
		lose_map();
	for (int i = 0; i < 3; i++)
		lose_array();
	keep();
	wipe();
	if (count > 1) {
		if (__lsan_do_leak_check != nullptr)
			__lsan_do_leak_check(); // before the end destroys what is global
		return 0;
	}
	void *volatile room = std::malloc(2 << 20); // the capture is there
	std::memset(room, 0, 2 << 20);
	std::puts("ready");
	std::fflush(stdout);
	return std::getchar() == 'x' && room == nullptr;
}
