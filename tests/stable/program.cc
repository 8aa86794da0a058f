// Keeps one block of a size of its own at each of its places: a pair of lines in `kmemshim diff` is right when the sizes are equal.
// tests/stable/measure.py builds it in many ways. EDITED: the same program after an afternoon's work.
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#ifdef EDITED
// Lines that were not there,
// so that all that follows
// have other numbers.
#include <algorithm>
static int unused_before = 1;
#endif

static std::vector<void *> kept;
#define SIZE(number) (100000 + 4096 * (number))

static void *
keep(void *block)
{
	kept.push_back(block);
	return block;
}

namespace
{

struct Store {
	std::vector<char> bytes;
	std::string name;
	char *raw = nullptr;

	explicit Store(int number) : bytes(SIZE(number))
	{
	}
	virtual ~Store() = default;
	virtual void fill(int number)
	{
		raw = static_cast<char *>(std::malloc(SIZE(number)));
	}

#ifdef EDITED
	int added() const
	{
		return static_cast<int>(bytes.size());
	}

#endif
	void title(int number)
	{
		name.assign(SIZE(number), 'x');
		keep(std::calloc(1, SIZE(number + 1)));
	}
};

struct Deep : Store {
	using Store::Store;
	void fill(int number) override
	{
		raw = new char[SIZE(number)];
		keep(std::malloc(SIZE(number + 1)));
		keep(std::malloc(SIZE(number + 2)));
	}
};

template <typename T> struct Table {
	std::vector<T> rows;
	void grow(int number)
	{
		rows.resize(SIZE(number) / sizeof(T));
	}
};

template <typename T>
T *
make(int number)
{
	return static_cast<T *>(keep(new T[SIZE(number) / sizeof(T)]));
}

} // namespace

static inline void *
small_helper(int number)
{
	return keep(std::malloc(SIZE(number)));
}

static void *
two_of_them(int number)
{
	void *first = small_helper(number);
#ifdef EDITED
	if (first == nullptr)
		return nullptr;
#endif
	void *second = small_helper(number + 1);
	return std::memcpy(second, first, 16);
}

static void *
down(int depth, int number)
{
	return depth == 0 ? keep(std::malloc(SIZE(number))) : down(depth - 1, number);
}

static void
branches(int number)
{
	void *a = std::malloc(SIZE(number));
#ifdef EDITED
	keep(std::malloc(16));
#endif
	void *b = std::malloc(SIZE(number + 1));
	void *c = std::calloc(SIZE(number + 2), 1);
	keep(a), keep(b), keep(c);
}

__attribute__((noinline)) static void
with_a_lambda(int number)
{
	auto one = [number] { return keep(std::malloc(SIZE(number))); };
	std::function<void *()> two = [number] { return keep(std::malloc(SIZE(number + 1))); };
	one();
	two();
}

static std::map<int, std::unique_ptr<Store>> stores;

static Store *
store_for(int number)
{
	auto &slot = stores[number];
	slot = std::make_unique<Deep>(number);
	return slot.get();
}

static Store *plain;
static Table<int> ints;
static Table<double> doubles;
static std::string text;

static void
run(int argument)
{
	plain = new Store(argument);
	plain->fill(argument + 1);
	plain->title(argument + 2);
	store_for(argument + 4)->fill(argument + 5);
	ints.grow(argument + 8);
	doubles.grow(argument + 9);
	make<int>(argument + 10);
	make<Store *>(argument + 11);
	two_of_them(argument + 12);
	down(5, argument + 14);
	branches(argument + 15);
	with_a_lambda(argument + 18);
	text = std::string(SIZE(argument + 20), 'y');
	keep(strdup(text.c_str() + 2048));
}

int
main(int count, char **)
{
	run(count - 1);
	keep(std::malloc(SIZE(21 + count)));
	return 0;
}
