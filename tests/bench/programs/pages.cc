/*
 * pages.cc - 4 call sites of operator new and delete, DISTANCE bytes of code apart, in one library.
 *
 * A large library is like that: libtorch has more pages of code that call operator new than a small table has rows.
 *
 * Called by   loops.c, tests/preload/far_news.cc.
 */
#include <new>

#define TEXT(word) TEXT_(word)
#define TEXT_(word) #word

#define SITE(number)                                                                  \
	extern "C" __attribute__((visibility("default"), noinline)) void pages_##number() \
	{                                                                                 \
		void *block = ::operator new(100);                                            \
                                                                                      \
		__asm__ volatile("" : "+r"(block)::"memory");                                 \
		::operator delete(block);                                                     \
	}                                                                                 \
	__asm__(".pushsection .text\n.skip " TEXT(DISTANCE) "\n.popsection\n");

SITE(0)
SITE(1)
SITE(2)
SITE(3)
