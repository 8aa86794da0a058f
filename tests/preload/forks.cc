// Forks beside threads that use the containers of C++, as test_forks.py asks: forks COUNT prints how many of COUNT children ended by
// themselves. An alarm ends a child that hangs. It comes after so long that no busy machine takes it for one.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

static const unsigned ALARM_S = 120;
static const int HANGS_MAX = 3; // more say nothing new

static std::atomic<bool> stop;
static std::atomic<unsigned> rounds[2];

static size_t
use_containers(unsigned seed)
{
	std::map<std::string, std::vector<std::shared_ptr<std::string>>> rows;
	for (unsigned i = 0; i < 300; i++) {
		std::string name = "a name that is longer than a string keeps in itself " + std::to_string((seed + i) % 40);
		rows[name].push_back(std::make_shared<std::string>(i, 'x'));
		if (i % 7 == 0)
			rows.erase(rows.begin());
	}
	return rows.size();
}

static void
busy(unsigned number)
{
	while (!stop.load()) {
		use_containers(rounds[number].load());
		rounds[number]++;
	}
}

int
main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 0;
	std::thread first(busy, 0), second(busy, 1);
	int ended = 0, asked = 0;
	while (asked < count && asked - ended < HANGS_MAX) {
		for (auto &round : rounds) { // each has worked since the last fork
			unsigned seen = round.load();
			while (round.load() == seen)
				std::this_thread::yield();
		}
		pid_t pid = fork();
		if (pid == 0) {
			alarm(ALARM_S);
			use_containers(unsigned(asked));
			_exit(0);
		}
		int status = 1;
		waitpid(pid, &status, 0);
		ended += status == 0;
		asked++;
	}
	stop = true;
	first.join();
	second.join();
	printf("%d of %d\n", ended, asked);
}
