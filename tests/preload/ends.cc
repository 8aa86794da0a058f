/*
 * ends.cc - programs that hold much when they end, and release it on their way out, for test_ends.py.
 *
 *   ends SCENE
 */
#include <atomic>
#include <cassert>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <err.h>
#include <error.h>
#include <map>
#include <memory>
#include <pthread.h>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone))

namespace
{

std::map<int, std::unique_ptr<char[]>> cache; // its destructor was registered before main
const int entries = 4000;
char *volatile sink;

APART void
remember(int from, int to)
{
	for (int i = from; i < to; i++)
		cache[i].reset(new char[2000]); // cache
}

APART void
work(int count)
{
	for (int i = 0; i < count; i++) {
		sink = new char[3000];
		delete[] sink;
	}
}

APART void
fill()
{
	for (int i = 0; i < entries; i += 10) {
		remember(i, i + 10);
		work(10);
	}
}

/* What an exit handler keeps. */
char *late[4000];

APART void
keep_late()
{
	for (auto &block : late)
		block = new char[3000]; // late
}

void
release_late()
{
	for (auto &block : late)
		delete[] block;
}

void
exit_again()
{
	exit(3);
}

void
die()
{
	cache.clear();
	keep_late();
	raise(SIGKILL);
}

void
fork_and_wait()
{
	pid_t child = fork();

	if (child == 0) {
		work(10);
		return; // goes on with its parent's handlers
	}
	int status = -1;

	if (waitpid(child, &status, 0) != child || status != 0)
		_exit(1);
}

std::atomic<int> turns;

/* Allocates and releases while the handlers run. */
void *
run_on(void *)
{
	for (;; turns++)
		work(1);
	return nullptr;
}

void
see_it_run()
{
	int seen = turns;

	while (turns < seen + 1000)
		usleep(100);
}

void *
exit_from_here(void *)
{
	exit(4);
}

void
start(void *(*routine)(void *))
{
	pthread_t thread;

	if (pthread_create(&thread, nullptr, routine, nullptr) != 0)
		_exit(1);
}

struct Owner { // a static object of a function: registered after main began
	std::map<int, std::unique_ptr<char[]>> blocks;
};

APART Owner &
owner()
{
	static Owner one;

	return one;
}

APART void
fill_owner()
{
	for (int i = 0; i < entries; i++)
		owner().blocks[i].reset(new char[2000]); // owner
}

void
clear_all()
{
	cache.clear();
}

void
said(void (*say)(const char *, va_list), const char *text, ...)
{
	va_list rest;

	va_start(rest, text);
	say(text, rest);
}

void *
wait_and_return(void *)
{
	usleep(1000);
	return nullptr;
}

[[noreturn]] void
end_of_main_alone()
{
	start(wait_and_return);
	pthread_exit(nullptr);
}

int
load_and_return()
{
	return dlopen("libresolv.so.2", RTLD_NOW | RTLD_LOCAL) == nullptr;
}

/* Ways out of a program whose handler, registered while it ran, releases what was held */
const struct way {
	const char *name;
	void (*go)();
} ways[] = {
	{ "err", [] { err(8, "as asked"); } },
	{ "errx", [] { errx(8, "as asked"); } },
	{ "verr", [] { said([](const char *text, va_list rest) { verr(8, text, rest); }, "as asked"); } },
	{ "verrx", [] { said([](const char *text, va_list rest) { verrx(8, text, rest); }, "as asked"); } },
	{ "error", [] { error(8, 0, "as asked"); } },
	{ "error_at_line", [] { error_at_line(8, 0, "ends.cc", 1, "as asked"); } },
	{ "pthread_exit", end_of_main_alone },
	{ "return_after_dlopen", [] { exit(load_and_return()); } },
	{ "_exit", [] { _exit(8); } },
	{ "_Exit", [] { _Exit(8); } },
	{ "abort", [] { abort(); } },
	{ "assert", [] { assert(!"as asked"); } },
};

int
run(const char *scene)
{
	auto is = [&](const char *name) { return strcmp(scene, name) == 0; };

	errno = 7;
	if (is("work_in_a_handler")) {
		atexit(keep_late);
		return 0;
	}
	if (is("static_of_a_function")) {
		fill_owner();
		return 0;
	}
	fill();
	for (auto &way : ways) {
		if (is(way.name)) {
			atexit(clear_all);
			way.go();
		}
	}
	if (is("many_handlers")) {
		for (int i = 0; i < 200; i++)
			atexit([] {});
		on_exit([](int, void *) { clear_all(); }, nullptr);
		errx(8, "as asked");
	}
	if (is("exit"))
		exit(2);
	if (is("exit_in_a_thread")) {
		start(exit_from_here);
		pause();
	}
	if (is("exit_in_a_handler"))
		atexit(exit_again);
	if (is("quick_exit")) {
		at_quick_exit([] { cache.clear(); });
		quick_exit(5);
	}
	if (is("without_handlers"))
		_exit(6);
	if (is("exit_inside_libc"))
		errx(7, "as asked");
	if (is("orderly"))
		cache.clear();
	if (is("handler_that_works_and_releases")) {
		atexit(release_late);
		atexit(keep_late);
	}
	if (is("killed_in_a_handler"))
		atexit(die);
	if (is("fork_in_a_handler"))
		atexit(fork_and_wait);
	if (is("threads_that_run_on")) {
		start(run_on);
		atexit(see_it_run);
	}
	return 0;
}

} // namespace

int
main(int argc, char **argv)
{
	return argc == 2 ? run(argv[1]) : 64;
}
