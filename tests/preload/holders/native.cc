/*
 * Keeps and loses blocks by what C++ has for it, each by a function of its own, then waits: "containers", or "objects".
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#define OWN __attribute__((noinline))
#define COUNT 24

extern "C" void library_keep(void);

struct picture {
	long number;
	char *pixels;
};
struct shape {
	virtual ~shape()
	{
	}
	long corners[4];
};
struct drawn {
	virtual ~drawn()
	{
	}
	char *texture;
};
struct tile : shape, drawn {
};

static std::vector<char *> vector;                   // of_vector
static std::map<int, picture> map;                   // of_map
static std::unordered_map<std::string, char *> hash; // of_hash
static std::list<char *> list;                       // of_list
static std::deque<char *> deque;                     // of_deque
static std::shared_ptr<picture> *shared;             // of_shared
static std::function<void()> callback;               // of_function
static drawn *volatile second_base;                  // of_base
static std::string text;                             // of_string

OWN static char *
fill(char *block, size_t bytes)
{
	memset(block, 1, bytes);
	return block;
}

OWN static void
of_vector()
{
	for (int i = 0; i < COUNT; i++)
		vector.push_back(fill(new char[50000], 50000));
}

OWN static void
of_map()
{
	for (int i = 0; i < COUNT; i++)
		map[i].pixels = fill(new char[51000], 51000);
}

OWN static void
of_hash()
{
	for (int i = 0; i < COUNT; i++)
		hash["a key that is too long to be inside " + std::to_string(i)] = fill(new char[52000], 52000);
}

OWN static void
of_list()
{
	for (int i = 0; i < COUNT; i++)
		list.push_back(fill(new char[53000], 53000));
}

OWN static void
of_deque()
{
	for (int i = 0; i < COUNT; i++)
		deque.push_back(fill(new char[54000], 54000));
}

OWN static void
of_shared()
{
	shared = new std::shared_ptr<picture>(std::make_shared<picture>());
	(*shared)->pixels = fill(new char[1300000], 1300000);
}

OWN static void
of_function()
{
	char *block = fill(new char[1400000], 1400000);
	long numbers[4] = { 1, 2, 3, 4 };

	callback = [block, numbers] { std::puts(block + numbers[0]); };
}

OWN static void
of_base()
{
	auto *made = new tile;

	made->texture = fill(new char[1500000], 1500000);
	second_base = made;
}

OWN static void
of_string()
{
	text.assign(1600000, 'x');
}

OWN static void
lost_map()
{
	auto *made = new std::map<int, char *>;

	for (int i = 0; i < COUNT; i++)
		(*made)[i] = fill(new char[55000], 55000);
	__asm__ volatile("" ::"r"(made) : "memory");
}

OWN static void
overwrite_stack()
{
	volatile char space[20000];

	memset(const_cast<char *>(space), 0, sizeof(space));
}

static void
keep_in_containers()
{
	of_vector();
	of_map();
	of_hash();
	of_list();
	of_deque();
	lost_map();
}

static void
keep_in_objects()
{
	of_shared();
	of_function();
	of_base();
	of_string();
	library_keep();
}

int
main(int count, char **words)
{
	if (count == 2 && std::strcmp(words[1], "containers") == 0)
		keep_in_containers();
	else
		keep_in_objects();
	overwrite_stack();
	std::puts("ready");
	std::fflush(stdout);
	return std::getchar() == 'x' ? 0 : 3;
}
