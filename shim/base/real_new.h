/*
 * real_new.h - C++'s operator new and delete: the definition that a caller would have been bound to without us.
 *
 * What stands in the scope of the whole program after us decides for everybody, once. Where nothing does, which is so in a program in
 * C that opens C++ libraries for themselves alone (every extension of Python), each library has its own: the one that it
 * defines itself, else the first that it brings. That is looked for as the loader would, by what each object needs.
 *
 * Safe from   any thread, any hook, any signal handler, a forked child: it waits for nobody, shares nothing and leaves no message.
 * When failing  nothing is known of that caller; see real_new_find().
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

enum real_new_relation {
	REAL_NEW_EVERYBODYS, // in the scope of the whole program
	REAL_NEW_CALLERS,    // the caller's own, or of what it needs
	REAL_NEW_STRANGERS,  // neither: the only thing left
};

struct real_new {
	void *addr; // NULL: nobody defines it
	enum real_new_relation relation;
	bool has_own_malloc; // its library is an allocator: it need not call malloc for this
};

/*
 * Of all the functions at once: the list of what is loaded is read anew for it.
 *
 * caller   an address of the code that calls
 * found    by the index above. What stays (loader_list_start()) is the whole program's; what is loaded later is not
 * returns  false: there is no memory to search with, or the list could not be read to its end; `found` may lack something
 */
bool real_new_find(const void *caller, struct real_new found[REAL_NEW_COUNT]);

#endif
