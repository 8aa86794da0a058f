/*
 * unwind_libunwind.c - see unwind_libunwind.h. The only file that sees libunwind.
 *
 * Not chosen  its interface for the own process (unw_init_local): that opens a pipe to test addresses with,
 *             keeps writing to that number after the program closed it, and takes the loader's lock to find
 *             tables.
 * Not chosen  linking it: libunwind.so.8 also defines the _Unwind_ functions, and from a preloaded library
 *             it would throw the program's C++ exceptions in place of libgcc_s. dlopen() keeps its names to us.
 */
#include "unwind/unwind_libunwind.h"

#include <dlfcn.h>
#include <errno.h>
#include <libunwind.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>

#include "base/arch.h"
#include "base/checked_memory.h"
#include "base/diag.h"
#include "base/loaded_object.h"
#include "base/raw_sys.h"
#include "base/reentry_guard.h"
#include "base/settings.h"
#include "base/thread_stack.h"
#include "capture/capture_file.h"
#include "kmem_format.h"
#include "unwind/unwind_tables.h"

#define OWN_FRAMES_MAX 64 // between this file and the hook's caller
#define NOTES_MAX 4u

#define TABLE_ENCODING 0x3b // signed 32-bit offsets from .eh_frame_hdr: what every linker writes
#define TABLE_ENTRY_BYTES 8

/* In no header, but exported for those who bring their own find_proc_info, as debuggers do. */
extern int UNW_OBJ(dwarf_search_unwind_table)(unw_addr_space_t space, unw_word_t pc, unw_dyn_info_t *table,
                                              unw_proc_info_t *found, int need_unwind_info, void *context);

/* The functions of the library. */
static struct {
	__typeof__(unw_create_addr_space) *create_addr_space;
	__typeof__(unw_set_caching_policy) *set_caching_policy;
	__typeof__(unw_init_remote) *init_remote;
	__typeof__(unw_step) *step;
	__typeof__(unw_get_reg) *get_reg;
	__typeof__(unw_is_signal_frame) *is_signal_frame;
	__typeof__(UNW_OBJ(dwarf_search_unwind_table)) *search_unwind_table;
} library;

#define QUOTE(name) #name
#define NAME(symbol) QUOTE(symbol) // the symbol behind libunwind's macro

static const struct {
	const char *name;
	void *slot;
} symbols[] = {
	{ NAME(unw_create_addr_space), &library.create_addr_space },
	{ NAME(unw_set_caching_policy), &library.set_caching_policy },
	{ NAME(unw_init_remote), &library.init_remote },
	{ NAME(unw_step), &library.step },
	{ NAME(unw_get_reg), &library.get_reg },
	{ NAME(unw_is_signal_frame), &library.is_signal_frame },
	{ NAME(UNW_OBJ(dwarf_search_unwind_table)), &library.search_unwind_table },
};

static unw_addr_space_t space; // NULL: libunwind is not there, or not yet
static bool was_looked_for;

/*
 * Is a thread in libunwind? Then its pools are locked perhaps. A child forked at that moment finds this set
 * for ever and stays without libunwind: whoever held the lock is not there to release it.
 */
static _Atomic bool is_busy;

/* What one walk reads from. */
struct view {
	uint64_t registers[ARCH_UNWIND_REGISTERS];
	uint64_t stack_low; // [low, end) of the thread's own stack, from here outwards; empty on another one
	uint64_t stack_end;
	uint64_t tables_low; // around the tables of the code asked for last: it is on the stack, hence loaded
	uint64_t tables_end;
	struct checked_window window;
};

/* ---- what libunwind asks of us ---- */

static inline bool
is_within(uint64_t addr, uint64_t low, uint64_t end)
{
	return addr >= low && addr < end && end - addr >= 8;
}

/* Stack memory beside variables is read on purpose: the address sanitizer must not object. */
__attribute__((no_sanitize_address)) static int
access_memory(unw_addr_space_t unused, unw_word_t addr, unw_word_t *value, int is_write, void *context)
{
	struct view *view = context;

	(void)unused;
	if (ARCH_LINK_REGISTER && !is_write &&
	    addr % 8 == 4) // instructions: is it the code that a signal handler returns to?
		return checked_memory_copy(value, addr, sizeof(*value)) ? 0 : -UNW_EINVAL;
	if (is_write || addr % 8 != 0)
		return -UNW_EINVAL;
	if (is_within(addr, view->stack_low, view->stack_end) || is_within(addr, view->tables_low, view->tables_end)) {
		*value = *(const uint64_t *)(uintptr_t)addr;
		return 0;
	}
	return checked_memory_word(&view->window, addr, value) ? 0 : -UNW_EINVAL;
}

static int
access_register(unw_addr_space_t unused, unw_regnum_t number, unw_word_t *value, int is_write, void *context)
{
	struct view *view = context;

	(void)unused;
	if (is_write || number < 0 || number >= ARCH_UNWIND_REGISTERS)
		return -UNW_EBADREG;
	*value = view->registers[number];
	return 0;
}

/* Code that the program registered with libunwind: that is another copy of it. */
static int
find_registered_code(unw_addr_space_t unused, unw_word_t *list, void *context)
{
	(void)unused;
	(void)list;
	(void)context;
	return -UNW_ENOINFO;
}

/* The search is libunwind's own; we say where the sorted table is. */
static int
find_proc_info(unw_addr_space_t asking, unw_word_t pc, unw_proc_info_t *found, int need_unwind_info, void *context)
{
	struct view *view = context;
	struct loaded_object object;
	unw_dyn_info_t table = { .format = UNW_INFO_FORMAT_REMOTE_TABLE };

	if (!loaded_object_find(pc, &object) || object.eh_frame_header_addr == 0)
		return -UNW_ENOINFO;

	uint64_t header_addr = object.eh_frame_header_addr;

	if (!loaded_object_readable(&object, header_addr, &view->tables_low, &view->tables_end))
		return -UNW_ENOINFO;

	struct unwind_bytes header = { (const uint8_t *)(uintptr_t)header_addr,
		                           (const uint8_t *)(uintptr_t)view->tables_end, false };
	uint8_t version = unwind_bytes_u8(&header);
	uint8_t frames_encoding = unwind_bytes_u8(&header);
	uint8_t count_encoding = unwind_bytes_u8(&header);
	uint8_t table_encoding = unwind_bytes_u8(&header);

	/* Not "no information": libunwind would start guessing. */
	if (version != 1 || table_encoding != TABLE_ENCODING)
		return -UNW_EBADVERSION;
	(void)unwind_bytes_pointer(&header, frames_encoding, header_addr);

	uint64_t count = unwind_bytes_pointer(&header, count_encoding, header_addr);

	if (header.is_damaged || count > (uint64_t)(header.end - header.at) / TABLE_ENTRY_BYTES)
		return -UNW_EBADVERSION;
	table.start_ip = object.start_addr;
	table.end_ip = object.end_addr;
	table.u.rti.segbase = header_addr;
	table.u.rti.table_data = (uintptr_t)header.at;
	table.u.rti.table_len = count * TABLE_ENTRY_BYTES / sizeof(unw_word_t);
	return library.search_unwind_table(asking, pc, &table, found, need_unwind_info, context);
}

static void
put_unwind_info(unw_addr_space_t unused, unw_proc_info_t *found, void *context)
{
	(void)unused;
	(void)found;
	(void)context;
}

__thread bool unwind_libunwind_needs_no_pipe __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* ---- starting ---- */

static bool
open_library(void)
{
	void *handle = dlopen(ARCH_LIBUNWIND, RTLD_NOW | RTLD_LOCAL);

	for (size_t i = 0; i < sizeof symbols / sizeof symbols[0] && handle != NULL; i++) {
		void *found = dlsym(handle, symbols[i].name);

		if (found == NULL)
			handle = NULL;
		memcpy(symbols[i].slot, &found, sizeof found);
	}
	if (handle == NULL)
		(void)dlerror(); // not the program's
	return handle != NULL;
}

void
unwind_libunwind_open(void)
{
	static unw_accessors_t accessors = {
		.find_proc_info = find_proc_info,
		.put_unwind_info = put_unwind_info,
		.get_dyn_info_list_addr = find_registered_code,
		.access_mem = access_memory,
		.access_reg = access_register,
	};
	int host_errno = errno;
	unw_addr_space_t fresh = NULL;

	if (was_looked_for || !raw_sys_may_call())
		return;

	if (getauxval(AT_SECURE) != 0) // nothing is recorded there: see lifecycle.c
		return;

	bool is_guarded = reentry_guard_enter_as(REENTRY_GUARD_OWN_WORK);

	if (open_library()) {
		unwind_libunwind_needs_no_pipe = true;
		fresh = library.create_addr_space(&accessors, 0);
		if (fresh != NULL) {
			unw_cursor_t cursor;
			struct view view = { .window.addr = CHECKED_WINDOW_EMPTY };

			(void)library.set_caching_policy(fresh, UNW_CACHE_NONE);
			(void)library.init_remote(&cursor, fresh, &view);
		}
		unwind_libunwind_needs_no_pipe = false;
	}
	space = fresh;
	was_looked_for = true;
	if (is_guarded)
		reentry_guard_leave();
	errno = host_errno;
}

/*
 * A constructor, since dlopen() must not be called from a hook: an event can come from within the loader. No other thread can be there
 * yet. It is the dearest part of a start (0.4 ms, three libraries): a descendant, most of which are small, does it when its first
 * thread begins, or when it is to verify.
 */
__attribute__((constructor)) static void
construct(void)
{
	const char *verify = getenv("KMEMSHIM_VERIFY");

	if (!settings_is_descendant() || (verify != NULL && strcmp(verify, "0") != 0))
		unwind_libunwind_open();
}

/* ---- walking ---- */

static bool
position(unw_cursor_t *cursor, uint64_t *pc, uint64_t *sp)
{
	unw_word_t word_pc = 0;
	unw_word_t word_sp = 0;

	if (library.get_reg(cursor, UNW_REG_IP, &word_pc) != 0 || library.get_reg(cursor, UNW_REG_SP, &word_sp) != 0)
		return false;
	*pc = word_pc;
	*sp = word_sp;
	return true;
}

/* The next frame was interrupted by a signal: is_return says it of the frame before where there is a link register, is_signal of this one. */
static inline bool
is_interrupted(bool is_return, bool is_signal)
{
	return ARCH_LINK_REGISTER ? is_return : is_signal;
}

static enum unwind_end
walk(struct view *view, uint64_t first_sp, unwind_visitor *visit, void *context)
{
	unw_cursor_t cursor;
	uint64_t pc = 0;
	uint64_t sp = 0;
	unsigned own_frames = 0;

	if (library.init_remote(&cursor, space, view) != 0)
		return UNWIND_END_LOST;
	do {
		if (++own_frames > OWN_FRAMES_MAX || library.step(&cursor) <= 0 || !position(&cursor, &pc, &sp))
			return UNWIND_END_LOST;
	} while (sp != first_sp);

	/* KMEM_FRAME_EXACT when a signal interrupted the frame: its address is the instruction's own. */
	uint64_t exact = 0;
	bool
		is_return = false; // the frame is the code that a handler returns to; where libunwind tells of that one, and not of the next

	for (unsigned visits = 0; visits < NATIVE_STACK_VISITS_MAX; visits++) {
		uint64_t this_pc = pc | exact;
		uint64_t this_sp = sp;
		int step = library.step(&cursor);

		if (step > 0 && !position(&cursor, &pc, &sp))
			return UNWIND_END_LOST;
		if (!visit(context, this_pc, this_sp, step > 0 ? sp : 0))
			return UNWIND_END_ASKED;
		if (step <= 0 || pc == 0)
			return step < 0 ? UNWIND_END_LOST : UNWIND_END_OUTERMOST;
		if (pc >> KMEM_ADDRESS_BITS != 0)
			return UNWIND_END_LOST;
		bool is_signal = library.is_signal_frame(&cursor) > 0;

		exact = is_interrupted(is_return, is_signal) ? KMEM_FRAME_EXACT : 0;
		is_return = is_signal;
	}
	return UNWIND_END_LOST;
}

enum unwind_end
unwind_libunwind_walk(uint64_t first_sp, unwind_visitor *visit, void *context)
{
	struct view view = { .window.addr = CHECKED_WINDOW_EMPTY };
	int host_errno = errno;

	/* The library changes the signal mask. acquire: pairs with the release below; what the last walk did to its pools is done. */
	if (space == NULL || !raw_sys_may_call() || atomic_exchange_explicit(&is_busy, true, memory_order_acquire))
		return UNWIND_END_LOST;
	ARCH_UNWIND_STORE(view.registers);
	if (thread_stack_contains(view.registers[ARCH_UNWIND_SP])) {
		view.stack_low = view.registers[ARCH_UNWIND_SP];
		view.stack_end = thread_stack_end(view.stack_low);
	}

	enum unwind_end end = walk(&view, first_sp, visit, context);

	atomic_store_explicit(&is_busy, false, memory_order_release);
	errno = host_errno;
	return end;
}

struct comparison {
	const struct native_stack *stack;
	bool is_to_the_end;
	uint64_t at;        // the next of ours
	uint64_t skipped;   // frames before it that we left out
	uint64_t first_bad; // at + 1 of the first difference, 0 = none
	uint64_t pc;        // what libunwind has there
	uint64_t sp;
};

/* How many frames are left out before the next one of ours? 0: none; UINT64_MAX: any number. */
static uint64_t
left_out(const struct comparison *comparison)
{
	const struct native_stack *stack = comparison->stack;

	if (comparison->at == 0 || comparison->at >= stack->count)
		return 0;
	if ((stack->pc[comparison->at - 1] & KMEM_FRAME_REPEATED) != 0)
		return UINT64_MAX;
	return comparison->at == NATIVE_STACK_INNER ? stack->omitted : 0;
}

static bool
compare_frame(void *context, uint64_t pc, uint64_t sp, uint64_t cfa)
{
	struct comparison *comparison = context;
	const struct native_stack *stack = comparison->stack;
	uint64_t at = comparison->at;

	(void)cfa;
	if (at >= stack->count && !comparison->is_to_the_end)
		return false; // ours ended here, at stop_sp
	if (comparison->skipped < left_out(comparison) &&
	    (left_out(comparison) != UINT64_MAX || native_stack_sp(stack, (uint32_t)at) != sp)) {
		comparison->skipped++;
		return true;
	}
	comparison->skipped = 0;
	comparison->at++;
	if (at < stack->count && (stack->pc[at] & ~KMEM_FRAME_REPEATED) == pc && native_stack_sp(stack, (uint32_t)at) == sp)
		return true;
	comparison->first_bad = comparison->at;
	comparison->pc = pc;
	comparison->sp = sp;
	return false;
}

void
unwind_libunwind_verify(uint64_t first_sp, const struct native_stack *stack, bool is_to_the_end)
{
	static _Atomic uint32_t notes; // relaxed: a count
	static _Atomic bool is_told;   // relaxed: likewise
	struct kmem_header *header = capture_file_header();
	struct comparison comparison = { .stack = stack, .is_to_the_end = is_to_the_end };

	if (space == NULL && was_looked_for && !atomic_exchange_explicit(&is_told, true, memory_order_relaxed))
		capture_file_note("KMEMSHIM_VERIFY checks nothing: " ARCH_LIBUNWIND " is not there");

	enum unwind_end end = unwind_libunwind_walk(first_sp, compare_frame, &comparison);

	if (end == UNWIND_END_LOST && comparison.first_bad == 0)
		return; // libunwind could not do it: nothing to compare with
	/* relaxed: statistics */
	atomic_fetch_add_explicit(&header->verify_checked, 1, memory_order_relaxed);
	if (comparison.first_bad == 0 && comparison.at < stack->count)
		comparison.first_bad = comparison.at + 1; // libunwind says that it ends earlier
	if (comparison.first_bad == 0)
		return;
	atomic_fetch_add_explicit(&header->verify_mismatched, 1, memory_order_relaxed);
	if (atomic_fetch_add_explicit(&notes, 1, memory_order_relaxed) >= NOTES_MAX)
		return;

	char text[200];
	uint64_t at = comparison.first_bad - 1;

	(void)diag_format(text, sizeof text,
	                  "unwinding differs from libunwind at frame %lu: 0x%lx (stack 0x%lx), libunwind "
	                  "0x%lx (stack 0x%lx)",
	                  comparison.first_bad - 1, at < stack->count ? stack->pc[at] : 0,
	                  at < stack->count ? native_stack_sp(stack, (uint32_t)at) : 0, comparison.pc, comparison.sp);
	capture_file_note(text);
}
