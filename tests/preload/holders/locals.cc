/*
 * Keeps blocks by local variables of functions that run, then waits: a look says which variable, of which function, and where it stands.
 */
#include <cstdio>
#include <cstring>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <thread>
#include <unistd.h>
#include <unordered_map>
#include <vector>

#define OWN __attribute__((noinline))
#define COUNT 24

struct Tile {
	std::vector<char> pixels_;
};
struct MapView {
	std::vector<char *> tiles_;
	std::map<int, Tile> cache_;
	std::unordered_map<long, Tile> hash_;
	std::list<Tile> recent_;
};
struct Application {
	long version_ = 1;
	MapView view_;
	std::unique_ptr<MapView> other_ = std::make_unique<MapView>();
};

static OWN void
of_vector(MapView &view)
{
	for (int i = 0; i < COUNT; i++)
		view.tiles_.push_back((char *)memset(new char[50000], 1, 50000));
}

static OWN void
of_map(MapView &view)
{
	for (int i = 0; i < COUNT; i++)
		view.cache_[i * 7919 % 101].pixels_.resize(51000);
}

static OWN void
of_hash(MapView &view)
{
	for (int i = 0; i < COUNT; i++)
		view.hash_[i * 7919].pixels_.resize(52000);
}

static OWN void
of_list(MapView &view)
{
	for (int i = 0; i < COUNT; i++)
		view.recent_.emplace_back().pixels_.resize(53000);
}

static OWN void
of_pointer(MapView &view)
{
	for (int i = 0; i < COUNT; i++)
		view.cache_[i * 7919 % 101].pixels_.resize(54000);
}

static OWN char *
of_buffer(void)
{
	return (char *)memset(new char[800000], 1, 800000);
}

static OWN std::function<int()>
of_function(void)
{
	char *page = (char *)memset(new char[810000], 1, 810000);
	long number = 0;

	return [number, page] { return (int)number + page[0] - 1; }; // in two words of the function itself
}

static OWN void
of_copy(std::vector<char *> mine, int *pipes)
{
	char word;

	for (int i = 0; i < COUNT; i++)
		mine.push_back((char *)memset(new char[55000], 1, 55000));
	(void)!write(pipes[1], "1", 1);
	(void)!read(pipes[2], &word, 1);
	for (char *block : mine)
		delete[] block;
}

static OWN void
of_thread(int *pipes)
{
	std::vector<char *> mine;
	char word;

	for (int i = 0; i < COUNT; i++)
		mine.push_back((char *)memset(new char[56000], 1, 56000));
	(void)!write(pipes[1], "1", 1);
	(void)!read(pipes[2], &word, 1);
	for (char *block : mine)
		delete[] block;
}

static OWN int
wait_for_word(const char *page)
{
	puts("ready");
	fflush(stdout);
	return getchar() == 'x' && page[0] == 1 ? 0 : 3;
}

static OWN int
run(int rounds)
{
	char *page = of_buffer();
	int result = 0;

	for (int i = 0; i < rounds; i++)
		result += wait_for_word(page);
	delete[] page;
	return result;
}

int
main(int argc, char **)
{
	Application app;
	int pipes[5] = {}; // to main, to the threads, and how many have said something
	char word;

	of_vector(app.view_);
	of_map(app.view_);
	of_hash(app.view_);
	of_list(app.view_);
	of_pointer(*app.other_);
	if (pipe(pipes) != 0 || pipe(pipes + 2) != 0)
		return 4;
	std::thread first(of_thread, pipes);
	std::thread second([&] { of_copy({}, pipes); });
	while (read(pipes[0], &word, 1) == 1 && ++pipes[4] < 2)
		;
	std::function<int()> callback = of_function();
	int result = run(argc) + callback();
	close(pipes[3]);
	first.join();
	second.join();
	return result;
}
