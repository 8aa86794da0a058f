// static_cache.c in C++: a map whose destructor runs after main.
#include <map>
#include <string>

static std::map<int, std::string> cache;
static char *volatile sink;

__attribute__((noinline)) static void
remember(int number)
{
	cache[number] = std::string(1000, 'x');
}

__attribute__((noinline)) static void
work()
{
	sink = new char[3000];
	delete[] sink;
}

int
main()
{
	for (int i = 0; i < 20000; i++) {
		remember(i);
		work();
	}
}
