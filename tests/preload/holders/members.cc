/*
 * Keeps blocks by members of objects, each by a function of its own, then waits: what debug information says of them has names.
 */
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#define OWN __attribute__((noinline))
#define COUNT 24

namespace store
{
struct entry {
	long number;
	char *data;
};
struct empty {
};
struct counts {
	long hits;
	long misses;
};
struct cache : empty, counts {
	std::vector<char *> entries;
	std::unique_ptr<entry> newest;
	struct {
		char *page;
	} inner;
	union {
		char *text;
		long value;
	} either;
	std::vector<entry> all;
	entry fixed[4];
	std::byte room[32]; // for objects of any class
};
struct node {
	node *next;
	char *payload;
};
struct queue {
	long length;
	node *head;
};
struct shape {
	virtual ~shape()
	{
	}
	long corners[4];
};
struct tile : shape {
	entry picture;
};
struct header {
	header *following;
};
struct hidden : header {
	char *behind;
};
} // namespace store

namespace
{
struct secret : store::shape {
	char *word;
};
} // namespace

static store::cache cache;                     // of_entries, of_newest, of_inner, of_union, of_all, of_fixed, of_room
static store::cache *volatile allocated;       // of_allocated
static volatile store::queue queue;            // of_queue
static store::shape *volatile shape;           // of_shape
static store::shape *volatile other;           // of_secret
static store::header *volatile hidden;         // of_hidden
static std::deque<store::entry> rows;          // of_rows
static thread_local volatile store::entry own; // of_own

OWN static char *
fill(char *block, size_t bytes)
{
	memset(block, 1, bytes);
	return block;
}

OWN static void
of_entries()
{
	for (int i = 0; i < COUNT; i++)
		cache.entries.push_back(fill(new char[50000], 50000));
}

OWN static void
of_newest()
{
	cache.newest.reset(new store::entry());
	cache.newest->data = fill(new char[1200000], 1200000);
}

OWN static void
of_inner()
{
	cache.inner.page = fill(new char[1210000], 1210000);
}

OWN static void
of_union()
{
	cache.either.text = fill(new char[1220000], 1220000);
}

OWN static void
of_all()
{
	for (int i = 0; i < COUNT; i++)
		cache.all.push_back({ i, fill(new char[51000], 51000) });
}

OWN static void
of_fixed()
{
	cache.fixed[2].data = fill(new char[1230000], 1230000);
}

OWN static void
of_room()
{
	char *page = fill(new char[1290000], 1290000);

	memcpy(&cache.room[8], &page, sizeof(page));
}

OWN static void
of_allocated()
{
	allocated = new store::cache();
	allocated->inner.page = fill(new char[1240000], 1240000);
}

OWN static void
of_queue()
{
	for (int i = 0; i < COUNT; i++)
		queue.head = new store::node{ queue.head, fill(new char[52000], 52000) };
}

OWN static void
of_shape()
{
	auto *made = new store::tile();

	made->picture.data = fill(new char[1250000], 1250000);
	shape = made;
}

OWN static void
of_secret()
{
	auto *made = new secret();

	made->word = fill(new char[1260000], 1260000);
	other = made;
}

OWN static void
of_hidden()
{
	auto *made = new store::hidden();

	made->behind = fill(new char[1270000], 1270000);
	hidden = made;
}

OWN static void
of_rows()
{
	for (int i = 0; i < COUNT; i++)
		rows.push_back({ i, fill(new char[53000], 53000) });
}

OWN static void
of_own()
{
	own.data = fill(new char[1280000], 1280000);
}

OWN static void
overwrite_stack()
{
	volatile char space[20000];

	memset(const_cast<char *>(space), 0, sizeof(space));
}

int
main(int count, char **)
{
	if (count == 1) {
		of_entries();
		of_newest();
		of_inner();
		of_union();
		of_all();
		of_fixed();
		of_room();
		of_allocated();
	} else {
		of_queue();
		of_shape();
		of_secret();
		of_hidden();
		of_rows();
		of_own();
	}
	overwrite_stack();
	std::puts("ready");
	std::fflush(stdout);
	return std::getchar() == 'x' ? 0 : 3;
}
