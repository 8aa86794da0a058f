/*
 * A cache, as its word says a local object, one of the heap, or a tail queue of C: its entries are in a list, and a table has iterators into it; then waits.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <list>
#include <sys/queue.h>
#include <unordered_map>
#include <vector>

#define COUNT 900
#define OWN __attribute__((noinline))

struct Entry {
	int key;
	std::vector<char> data;
};

class Lru
{
  public:
	OWN void get(int key)
	{
		auto at = map_.find(key);

		if (at != map_.end()) {
			list_.splice(list_.begin(), list_, at->second);
			return;
		}
		list_.push_front(Entry{ key, std::vector<char>(20000) });
		map_[key] = list_.begin();
	}

  private:
	std::unordered_map<int, std::list<Entry>::iterator> map_;
	std::list<Entry> list_;
};

struct Job {
	TAILQ_ENTRY(Job) entry;
	char *data;
};
static TAILQ_HEAD(, Job) queue = TAILQ_HEAD_INITIALIZER(queue);
static Job **jobs;
static Lru *volatile kept;

static OWN void
queue_job(int key)
{
	Job *job = (Job *)malloc(sizeof(*job));

	job->data = (char *)memset(malloc(20000), 1, 20000);
	TAILQ_INSERT_HEAD(&queue, job, entry);
	jobs[(unsigned)key % (2 * COUNT)] = job;
}

int
main(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : "local";
	Lru lru;

	jobs = (Job **)calloc(2 * COUNT, sizeof(*jobs));
	kept = strcmp(word, "heap") == 0 ? new Lru : nullptr;
	for (int i = 0; i < 3 * COUNT; i++) {
		int key = (int)(i * 2654435761u % COUNT);

		if (strcmp(word, "queue") == 0)
			queue_job(i);
		else
			(kept != nullptr ? *kept : lru).get(key);
	}
	puts("ready");
	fflush(stdout);
	return getchar() == 'x' ? 0 : 3;
}
