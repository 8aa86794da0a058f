/*
 * A hash table of tiles in an object that is local to main, and blocks that it loses; then waits. All nodes of the table are one list.
 */
#include <cstdio>
#include <cstring>
#include <memory>
#include <unordered_map>
#include <vector>

class Tile
{
  public:
	explicit Tile(int n) : pixels_(8192, n & 0xff)
	{
	}
	virtual ~Tile() = default;

  private:
	std::vector<unsigned char> pixels_;
};

class MapView
{
  public:
	void show(int n)
	{
		char *volatile scratch = new char[3000];

		tiles_[n] = std::make_unique<Tile>(n);
		memset(scratch, 1, 3000);
		if (n % 2)
			delete[] scratch;
	}

  private:
	std::unordered_map<int, std::unique_ptr<Tile>> tiles_;
};

class Application
{
  public:
	Application() : view_(new MapView)
	{
	}
	int run()
	{
		for (int n = 0; n < 6000; n++)
			view_->show(n);
		overwrite_stack();
		puts("ready");
		fflush(stdout);
		return getchar() == 'x' ? 0 : 3;
	}

  private:
	static void overwrite_stack()
	{
		volatile char space[20000];

		memset((void *)space, 0, sizeof(space));
	}
	std::unique_ptr<MapView> view_;
};

int
main()
{
	Application app;

	return app.run();
}
