/*
 * service.cc - a service in C++: workers take requests from a queue, keep sessions, and answer.
 *
 * "ready", then for each line of the standard input so many requests, and a line. Requests are made by one thread and released by another.
 */
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace
{

constexpr unsigned WORKERS = 3, SESSIONS = 500, REQUESTS = 20000;
constexpr unsigned UNDER_WAY = 32; // at most: how many are live at a time is not up to the scheduler

struct request {
	unsigned number;
	std::string path;
	std::map<std::string, std::string> headers;
};

template <typename Item> class queue
{
	std::mutex mutex;
	std::condition_variable changed;
	std::deque<Item> items;

  public:
	void put(Item item)
	{
		std::lock_guard<std::mutex> lock(mutex);

		items.push_back(std::move(item));
		changed.notify_one();
	}

	Item take()
	{
		std::unique_lock<std::mutex> lock(mutex);

		changed.wait(lock, [this] { return !items.empty(); });
		Item first = std::move(items.front());
		items.pop_front();
		return first;
	}
};

queue<std::unique_ptr<request>> requests;
queue<std::string> answers;
std::mutex sessions_mutex;
std::map<std::string, std::vector<std::string>> sessions;

std::unique_ptr<request>
make_request(unsigned number)
{
	auto made = std::make_unique<request>();

	made->number = number;
	made->path = "/articles/of/the/newspaper/" + std::to_string(number % SESSIONS);
	made->headers["host"] = "a.server.of.ours.example";
	made->headers["accept"] = "text/html, application/json, and whatever else there is";
	made->headers["session"] = "a session with a long name, " + std::to_string(number % SESSIONS);
	return made;
}

std::string
answer(const request &asked)
{
	std::ostringstream page;
	std::vector<std::string> parts;

	for (unsigned i = 0; i < asked.number % 8; i++)
		parts.push_back("part " + std::to_string(i) + " of the page that was asked for at " + asked.path);
	for (const auto &part : parts)
		page << part << '\n';

	std::lock_guard<std::mutex> lock(sessions_mutex);
	auto &seen = sessions[asked.headers.at("session")];

	seen.push_back(asked.path);
	if (seen.size() > 4)
		seen.erase(seen.begin());
	return page.str();
}

void
work()
{
	while (auto asked = requests.take())
		answers.put(answer(*asked));
}

} // namespace

int
main()
{
	std::vector<std::thread> workers;
	size_t bytes = 0;
	char line[80];

	for (unsigned i = 0; i < WORKERS; i++)
		workers.emplace_back(work);
	std::puts("ready");
	std::fflush(stdout);
	while (std::fgets(line, sizeof(line), stdin) != nullptr) {
		for (unsigned i = 0; i < REQUESTS; i++) {
			requests.put(make_request(i));
			bytes += i < UNDER_WAY ? 0 : answers.take().size();
		}
		for (unsigned i = 0; i < UNDER_WAY; i++)
			bytes += answers.take().size();
		std::printf("%zu bytes\n", bytes);
		std::fflush(stdout);
	}
	for (unsigned i = 0; i < WORKERS; i++)
		requests.put(nullptr);
	for (auto &worker : workers)
		worker.join();
	return 0;
}
