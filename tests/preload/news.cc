/*
 * news.cc - every form of operator new and delete, served by whichever allocator the caller put in line.
 *
 *   news               each form keeps BLOCKS blocks of its own size and releases twice as many by every delete; prints what it holds
 *   news throws        first requests that cannot be served, by each form, and new handlers that throw, make room, or end the thread
 *
 * Built with -DPLUGIN this is a library with news_run(); with -DOWN it brings a new of its own, which calls malloc; with -DALONE no
 * block of its goes through the C++ library.
 */
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>
#include <vector>
#include <pthread.h>

#define BLOCKS 500
#define HUGE (SIZE_MAX / 4)
#define KEEP __attribute__((noinline)) static void

static unsigned failures;
static std::size_t held_bytes, held_blocks;
static void *volatile kept[8][BLOCKS];
static std::nothrow_t const &quiet = std::nothrow;

#define CHECK(condition)                                        \
	do {                                                        \
		if (!(condition)) {                                     \
			printf("failed at %d: %s\n", __LINE__, #condition); \
			failures++;                                         \
		}                                                       \
	} while (0)

#ifdef OWN
static unsigned own_calls;
void *
operator new(std::size_t bytes)
{
	own_calls++;
	return std::malloc(bytes);
}
void
operator delete(void *addr) noexcept
{
	std::free(addr);
}
#endif

static void *
used(void *block, std::size_t bytes, std::size_t alignment)
{
	CHECK(block != nullptr && (std::uintptr_t)block % alignment == 0);
	std::memset(block, 0x5a, bytes);
	return block;
}

static constexpr std::align_val_t wide{ 128 };

/* Name, bytes, the call, and the deletes that fit. libstdc++ asks malloc for a multiple of the alignment: the sizes are some. */
#define FORMS(ROW)                                                                                                     \
	ROW(plain, 1001, operator new(bytes), operator delete(at), operator delete(at, bytes), operator delete(at, quiet)) \
	ROW(array, 1002, operator new[](bytes), operator delete[](at), operator delete[](at, bytes),                       \
	                                                               operator delete[](at, quiet))                       \
	ROW(quiet,                                                                                                         \
	    1003, operator new(bytes, quiet), operator delete(at), operator delete(at, bytes), operator delete(at, quiet)) \
	ROW(quiet_array, 1004, operator new[](bytes, quiet), operator delete[](at), operator delete[](at, bytes),          \
	                                                                            operator delete[](at, quiet))          \
	ROW(wide, 1024, operator new(bytes, wide), operator delete(at, wide), operator delete(at, bytes, wide),            \
	                                                                      operator delete(at, wide, quiet))            \
	ROW(wide_array,                                                                                                    \
	    1152, operator new[](bytes, wide), operator delete[](at, wide), operator delete[](at, bytes, wide),            \
	                                                                    operator delete[](at, wide, quiet))            \
	ROW(wide_quiet,                                                                                                    \
	    1280, operator new(bytes, wide, quiet), operator delete(at, wide), operator delete(at, bytes, wide),           \
	                                                                       operator delete(at, wide, quiet))           \
	ROW(wide_quiet_array,                                                                                              \
	    1408, operator new[](bytes, wide, quiet), operator delete[](at, wide), operator delete[](at, bytes, wide),     \
	                                                                           operator delete[](at, wide, quiet))

enum form {
#define ROW(name, size, ask, ...) form_##name,
	FORMS(ROW)
#undef ROW
};

#define ROW(name, size, ask, drop_one, drop_two, drop_three)                            \
	KEEP keep_##name(void)                                                              \
	{                                                                                   \
		const std::size_t bytes = size, alignment = size < 1024 ? 16 : 128;             \
		for (unsigned i = 0; i < BLOCKS; i++) {                                         \
			void *at = kept[form_##name][i];                                            \
			if (at != nullptr) {                                                        \
				drop_one;                                                               \
			} else {                                                                    \
				held_bytes += bytes;                                                    \
				held_blocks++;                                                          \
			}                                                                           \
			kept[form_##name][i] = used(ask, bytes, alignment);                         \
			at = used(ask, bytes, alignment);                                           \
			drop_two;                                                                   \
			at = used(ask, bytes, alignment);                                           \
			drop_three;                                                                 \
		}                                                                               \
	}                                                                                   \
	KEEP refused_##name(void)                                                           \
	{                                                                                   \
		volatile std::size_t asked = HUGE;                                              \
		std::size_t bytes = asked;                                                      \
		void *at = nullptr;                                                             \
		bool was_thrown = false;                                                        \
		try {                                                                           \
			at = ask;                                                                   \
		} catch (const std::bad_alloc &) {                                              \
			was_thrown = true;                                                          \
		}                                                                               \
		CHECK(at == nullptr && was_thrown == (std::strstr(#name, "quiet") == nullptr)); \
	}
FORMS(ROW)
#undef ROW

KEEP
keep_all()
{
#define ROW(name, ...) keep_##name();
	FORMS(ROW)
#undef ROW
}

struct own_error {
};
static void *volatile reserve;
static unsigned handler_calls;

[[noreturn]] static void
throws_own_error()
{
	throw own_error();
}

KEEP
makes_room()
{
	handler_calls++;
	operator delete(reserve);
	reserve = nullptr;
	std::set_new_handler(nullptr);
}

KEEP
keep_reserve()
{
	reserve = used(operator new(5000), 5000, 16);
}

[[noreturn]] static void
ends_its_thread()
{
	pthread_exit((void *)&reserve);
}

static void *
asks_too_much(void *)
{
	volatile std::size_t asked = HUGE;

	return operator new(asked);
}

KEEP
throws()
{
	pthread_t thread;
	void *ended = nullptr;

	handler_calls = 0;
	for (unsigned i = 0; i < 10; i++) {
#define ROW(name, ...) refused_##name();
		FORMS(ROW)
#undef ROW
	}
	volatile std::size_t asked = HUGE;
	std::set_new_handler(throws_own_error);
	try {
		kept[0][0] = operator new(asked);
		CHECK(false);
	} catch (const own_error &) {
	}
	keep_reserve();
	std::set_new_handler(makes_room);
	refused_array();
	CHECK(handler_calls == 1 && reserve == nullptr);
	std::set_new_handler(ends_its_thread);
	CHECK(pthread_create(&thread, nullptr, asks_too_much, nullptr) == 0 && pthread_join(thread, &ended) == 0);
	CHECK(ended == &reserve);
	std::set_new_handler(nullptr);
}

extern "C" __attribute__((visibility("default"))) unsigned
news_run(bool is_throwing)
{
	if (is_throwing)
		throws();
	keep_all();
#ifdef ALONE
	keep_all();
#else
	std::thread(keep_all).join(); // another thread releases them and keeps as many
#endif
	printf("%zu bytes in %zu blocks, %u failures\n", held_bytes, held_blocks, failures);
	return failures;
}

#ifndef PLUGIN
int
main(int argc, char **argv)
{
#ifdef OWN
	CHECK((delete new int, own_calls == 1));
#endif
	bool is_throwing = argc > 1 && std::strcmp(argv[1], "throws") == 0;
	return news_run(is_throwing) != 0;
}
#endif
