/*
 * Keeps blocks by the values in nodes of containers, each by a function of its own, then waits: the member of the value has a name.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <forward_list>
#include <list>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#define OWN __attribute__((noinline))
#define COUNT 24

struct Tile {
	long number;
	std::vector<char> pixels;
	bool operator<(const Tile &other) const
	{
		return number < other.number;
	}
};
struct alignas(32) Wide {
	char *data;
};
struct Branch {
	Branch *left, *right;
	char *payload;
};
struct Entry {
	char *payload;
	int key;
};
struct Other {
	char *other_data;
	long number;
};
struct Session {
	char *session_data;
	std::map<int, Other>::iterator position;
	std::unordered_map<int, Entry>::iterator entry;
};
template <typename T> struct Allocator {
	using value_type = T;
	Allocator() = default;
	template <typename U> Allocator(const Allocator<U> &)
	{
	}
	T *allocate(size_t count)
	{
		return (T *)malloc(count * sizeof(T));
	}
	void deallocate(T *at, size_t)
	{
		free(at);
	}
	bool operator==(const Allocator &) const
	{
		return true;
	}
};

struct Store {
	std::map<int, Tile> map;
	std::multimap<std::string, std::unique_ptr<Tile>> multimap;
	std::set<Tile> set;
	std::unordered_map<std::string, Tile> hash;
	std::unordered_set<std::string> words;
	std::forward_list<Tile> forward;
	std::list<char *> list;
	std::map<int, std::map<int, Tile>> nested;
	std::map<int, Wide> wide;
	std::map<int, Tile, std::less<int>, Allocator<std::pair<const int, Tile>>> allocated;
	std::shared_ptr<Tile> shared[COUNT];
	Branch *tree;
	std::unordered_map<long, std::list<Entry>::iterator> index;
	std::unordered_map<long, std::__detail::_List_node_base *> links;
	std::map<int, Session> sessions;
};
static Store store;
/* They are forgotten: iterators alone lead to what they have. */
static auto *items = new std::list<Entry>;
static auto *linked = new std::list<Entry>;
static auto *others = new std::map<int, Other>;
static auto *entries = new std::unordered_map<int, Entry>;

static char *
page(size_t bytes)
{
	return (char *)memset(malloc(bytes), 1, bytes);
}

static OWN void
of_map(int i)
{
	store.map[i].pixels.resize(50000);
}

static OWN void
of_multimap(int i)
{
	auto tile = std::make_unique<Tile>();

	tile->pixels.resize(51000);
	store.multimap.emplace("x", std::move(tile));
	(void)i;
}

static OWN void
of_set(int i)
{
	store.set.insert(Tile{ i, std::vector<char>(52000) });
}

static OWN void
of_hash(int i)
{
	store.hash[std::to_string(i)].pixels.resize(53000);
}

static OWN void
of_words(int i)
{
	store.words.emplace(54000 + (size_t)i, 'a');
}

static OWN void
of_forward(int)
{
	store.forward.emplace_front();
	store.forward.front().pixels.resize(55000);
}

static OWN void
of_list(int)
{
	store.list.push_back(page(56000));
}

static OWN void
of_nested(int i)
{
	store.nested[i % 5][i].pixels.resize(57000);
}

static OWN void
of_wide(int i)
{
	store.wide[i].data = page(58000);
}

static OWN void
of_allocated(int i)
{
	store.allocated[i].pixels.resize(59000);
}

static OWN void
of_shared(int i)
{
	store.shared[i] = std::make_shared<Tile>();
	store.shared[i]->pixels.resize(60000);
}

static OWN void
of_tree(int i)
{
	Branch **at = &store.tree;

	for (int bits = i + 1; *at != nullptr; bits /= 2)
		at = bits % 2 ? &(*at)->left : &(*at)->right;
	*at = (Branch *)calloc(1, sizeof(Branch));
	(*at)->payload = page(61000);
}

static OWN char *
of_item(void)
{
	return (char *)memset(new char[72000], 1, 72000);
}

static OWN void
of_index(int i)
{
	items->push_front(Entry{ of_item(), i });
	store.index[i] = items->begin();
}

static OWN char *
of_linked(void)
{
	return (char *)memset(new char[75000], 1, 75000);
}

static OWN void
of_links(int i)
{
	linked->push_front(Entry{ of_linked(), i });
	store.links[i] = linked->begin()._M_node;
}

static OWN char *
of_other(void)
{
	return (char *)memset(new char[73000], 1, 73000);
}

static OWN char *
of_entry(void)
{
	return (char *)memset(new char[74000], 1, 74000);
}

static OWN void
of_sessions(int i)
{
	store.sessions[i] = Session{ nullptr, others->emplace(i, Other{ of_other(), 2 }).first,
		                         entries->emplace(i, Entry{ of_entry(), i }).first };
}

int
main(int argc, char **argv)
{
	static void (*const all[])(int) = { of_map,     of_multimap, of_set,    of_hash,  of_words,
		                                of_forward, of_list,     of_nested, of_wide,  of_allocated,
		                                of_shared,  of_tree,     of_index,  of_links, of_sessions };
	size_t first = argc > 1 ? (size_t)atoi(argv[1]) : 0;

	for (size_t i = first; i < first + 6 && i < sizeof(all) / sizeof(all[0]); i++)
		for (int k = 0; k < COUNT; k++)
			all[i](k * 7 % COUNT);
	items = nullptr;
	linked = nullptr;
	others = nullptr;
	entries = nullptr;
	puts("ready");
	fflush(stdout);
	return getchar() == 'x' ? 0 : 3;
}
