/*
 * real_new.h - C++'s operator new and delete: the definition that a caller would have been bound to without us.
 *
 * What stands in the scope of the whole program after us decides for everybody, once. Where nothing does, which is so in a program in
 * C that opens C++ libraries for themselves alone (every extension of Python), each library has its own: the one that it
 * defines itself, else the first that it brings. That is looked for as the loader would, by what each object needs.
 *
 * Safe from   any thread, any hook: it waits for no more than a change of the list of loaded objects, not for a dlopen whose
 *             constructors run, as dlsym would. It allocates nothing and leaves no message.
 * When failing  addr is NULL: nobody defines that function.
 */
#ifndef REAL_NEW_H
#define REAL_NEW_H

#include <stdbool.h>

/* Index, name as the compiler writes it, the C function in hooks_malloc.c that records it where nobody else does. */
#define REAL_NEW_FUNCTIONS(ROW)                                  \
	ROW(0, _Znwm, hooks_new_ask)                                 \
	ROW(1, _Znam, hooks_new_ask)                                 \
	ROW(2, _ZnwmRKSt9nothrow_t, hooks_new_ask)                   \
	ROW(3, _ZnamRKSt9nothrow_t, hooks_new_ask)                   \
	ROW(4, _ZnwmSt11align_val_t, hooks_new_ask)                  \
	ROW(5, _ZnamSt11align_val_t, hooks_new_ask)                  \
	ROW(6, _ZnwmSt11align_val_tRKSt9nothrow_t, hooks_new_ask)    \
	ROW(7, _ZnamSt11align_val_tRKSt9nothrow_t, hooks_new_ask)    \
	ROW(8, _ZdlPv, hooks_new_drop)                               \
	ROW(9, _ZdaPv, hooks_new_drop)                               \
	ROW(10, _ZdlPvm, hooks_new_drop)                             \
	ROW(11, _ZdaPvm, hooks_new_drop)                             \
	ROW(12, _ZdlPvRKSt9nothrow_t, hooks_new_drop)                \
	ROW(13, _ZdaPvRKSt9nothrow_t, hooks_new_drop)                \
	ROW(14, _ZdlPvSt11align_val_t, hooks_new_drop)               \
	ROW(15, _ZdaPvSt11align_val_t, hooks_new_drop)               \
	ROW(16, _ZdlPvmSt11align_val_t, hooks_new_drop)              \
	ROW(17, _ZdaPvmSt11align_val_t, hooks_new_drop)              \
	ROW(18, _ZdlPvSt11align_val_tRKSt9nothrow_t, hooks_new_drop) \
	ROW(19, _ZdaPvSt11align_val_tRKSt9nothrow_t, hooks_new_drop)
#define REAL_NEW_COUNT 20

struct real_new {
	void *addr;
	bool is_everybodys;     // in the scope of the whole program
	bool is_of_no_relation; // neither that nor the caller's: the only thing left
	bool has_own_malloc;    // its library is an allocator: it need not call malloc for this
};

/* `caller` is an address of the code that calls. */
struct real_new real_new_find(const char *name, const void *caller);

/* All that is loaded now is the whole program's; what is loaded after this is not. Once, before main. */
void real_new_start(void);

#endif
