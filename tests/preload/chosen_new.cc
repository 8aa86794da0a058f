/*
 * chosen_new.cc - a library whose operator new and delete are chosen when it is loaded (ifunc), as allocators do that look at the processor.
 */
#include <cstdlib>
#include <new>

extern "C" {
static void *
ask(std::size_t bytes)
{
	return std::malloc(bytes);
}
static void
drop(void *addr)
{
	std::free(addr);
}

typedef void *ask_function(std::size_t bytes);
typedef void drop_function(void *addr);
ask_function *
choose_ask()
{
	return ask;
}
drop_function *
choose_drop()
{
	return drop;
}
}

void *operator new(std::size_t bytes) __attribute__((ifunc("choose_ask")));
void operator delete(void *addr) noexcept __attribute__((ifunc("choose_drop")));
