/*
 * thread_attribution.c - on whose behalf does a thread without Python frames allocate (see thread_attribution.h)?
 *
 * A Python thread publishes nothing but the number of its last site, which it has at hand. What that means is
 * looked up by the thread that wants to know, in the capture, where a site never changes.
 *
 * Invariants, tested by number in tests/unit/shim/sites/test_thread_attribution.c:
 *   Q1  what a stack is given is what the find before it returned: a stack with another parent has another key in the event cache.
 *       Of a stack whose Python frames are all of libraries the key is another one only when it was given something: so the next
 *       thread of a slot that is given something forgets those that were given nothing.
 *   Q2  a line in the capture comes from a stack with Python frames of its own, never from one that was given them.
 *
 * Not chosen  one published word for all Python threads, written at each event: threads that hold no lock would fight over it.
 */
#include "sites/thread_attribution.h"

#include "base/settings.h"
#include "capture/capture_file.h"
#include "python/python_frames.h"
#include "sites/site_table.h"

/* Where the thread that has walked frames of the user last writes its last site; NULL = none. It is memory of a slot, which stays. */
static const _Atomic uint32_t *_Atomic python_site;

_Atomic bool thread_attribution_is_any;
__thread struct thread_attribution *thread_attribution_current
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

// those that were given to a stack; relaxed: words that mean themselves
static _Atomic uint64_t lines[THREAD_ATTRIBUTION_LINES_MAX];

/* ---- while ---- */

/* The first THREAD_ATTRIBUTION_LINES_MAX may be used: the number is that of the place and 1. */
uint32_t
thread_attribution_admit(uint64_t line)
{
	uint64_t home = line * UINT64_C(0x9e3779b97f4a7c15) >> 32;

	for (uint32_t i = 0; i < THREAD_ATTRIBUTION_LINES_MAX; i++) {
		uint32_t number = (uint32_t)(home + i) & (THREAD_ATTRIBUTION_LINES_MAX - 1);
		_Atomic uint64_t *place = &lines[number];
		uint64_t seen = atomic_load_explicit(place, memory_order_relaxed);

		if (seen == line || (seen == 0 && (atomic_compare_exchange_strong_explicit(
											   place, &seen, line, memory_order_relaxed, memory_order_relaxed) ||
		                                   seen == line)))
			return number + 1;
	}
	return 0;
}

/* enum kmem_code_flags; a native frame is no user's line. */
static uint16_t
code_flags(uint64_t frame)
{
	if ((frame & KMEM_FRAME_PYTHON) == 0)
		return KMEM_CODE_LIBRARY;

	const struct kmem_code *code = capture_file_at(KMEM_SECTION_RECORDS, (uint32_t)(frame & KMEM_FRAME_CODE_MASK));

	return code->record.flags;
}

/* The innermost frame of the user's own in the site's stack, marked when it imports something; 0 = none. */
static uint64_t
find_line(uint32_t site)
{
	uint32_t stack_index = atomic_load_explicit(&site_table_at(site)->stack, memory_order_relaxed); // S2
	const struct kmem_stack *stack = capture_file_item(KMEM_SECTION_RECORDS, stack_index);
	uint32_t missing = stack->frame_count;
	uint64_t import = (stack->record.flags & KMEM_STACK_IMPORT_CUT) != 0 ? THREAD_ATTRIBUTION_IMPORT : 0;

	if ((stack->record.flags & (KMEM_STACK_WHILE | KMEM_STACK_STARTED_BY)) != 0) // Q2
		return 0;
	/* The outermost `missing` words of each record in the chain. */
	for (unsigned links = 0; links <= KMEM_STACK_CHAIN_MAX; links++) {
		for (uint32_t i = stack->frame_count - missing; i < stack->own_count; i++) {
			uint16_t flags = code_flags(stack->frames[i]);

			if ((flags & KMEM_CODE_IMPORTLIB) != 0)
				import = THREAD_ATTRIBUTION_IMPORT;
			if ((flags & (KMEM_CODE_LIBRARY | KMEM_CODE_IMPORTLIB)) == 0)
				return thread_attribution_admit(stack->frames[i]) != 0 ? stack->frames[i] | import : 0;
		}
		missing = stack->frame_count - stack->own_count < missing ? stack->frame_count - stack->own_count : missing;
		if (missing == 0)
			return 0;
		stack = capture_file_item(KMEM_SECTION_RECORDS, stack->record.previous);
	}
	return 0; // no such chain is in a whole file
}

/* Half of the sites are kept for what is called, without what it is called for. */
static bool
has_budget(void)
{
	const _Atomic uint64_t *used = &capture_file_header()->used_bytes[KMEM_SECTION_SITES];

	return atomic_load_explicit(used, memory_order_relaxed) < settings.sites_max / 2 * sizeof(struct kmem_site);
}

static uint64_t
line_of_python(struct thread_attribution *parent)
{
	/* acquire: pairs with thread_attribution_claim(): the slot's memory. */
	const _Atomic uint32_t *last_site = atomic_load_explicit(&python_site, memory_order_acquire);
	uint32_t site;

	if (last_site == NULL || last_site == parent->last_site || !has_budget())
		return 0;
	/* acquire: pairs with thread_slot_publish(): what the site leads to. */
	site = atomic_load_explicit(last_site, memory_order_acquire);
	if (site == 0)
		return 0;

	uint32_t place = site & (THREAD_ATTRIBUTION_KNOWN - 1);

	if (parent->known[place].site != site) {
		parent->known[place].site = site;
		parent->known[place].line = find_line(site);
	}
	return parent->known[place].line;
}

void
thread_attribution_claim(const struct thread_attribution *own, const struct python_stack *python)
{
	if (atomic_load_explicit(&python_site, memory_order_relaxed) == own->last_site)
		return;
	for (uint32_t i = 0; i < python->count; i++) {
		if ((python->frames[i].code_flags & (KMEM_CODE_LIBRARY | KMEM_CODE_IMPORTLIB)) != 0)
			continue;
		atomic_store_explicit(&thread_attribution_is_any, true, memory_order_relaxed);
		/* release: pairs with line_of_python(). */
		atomic_store_explicit(&python_site, own->last_site, memory_order_release);
		return;
	}
}

void
thread_attribution_ended(const struct thread_attribution *own)
{
	const _Atomic uint32_t *seen = own->last_site;

	(void)atomic_compare_exchange_strong_explicit(&python_site, &seen, NULL, memory_order_relaxed,
	                                              memory_order_relaxed);
}

void
thread_attribution_over(void)
{
	atomic_store_explicit(&python_site, NULL, memory_order_relaxed);
}

/* ---- what a stack is given ---- */

uint64_t
thread_attribution_find_closely(void)
{
	struct thread_attribution *own = thread_attribution_current;

	if (own == NULL)
		return 0;
	own->while_line = line_of_python(own);
	return own->while_line ^ own->started_hash;
}

static bool
append(struct call_stack *stack, uint64_t frame)
{
	if (stack->frame_count == CALL_STACK_FRAMES_MAX) {
		stack->omitted++;
		return false;
	}
	stack->frames[stack->frame_count++] = frame;
	return true;
}

void
thread_attribution_append(struct call_stack *stack)
{
	const struct thread_attribution *own = thread_attribution_current;

	if (own == NULL)
		return;

	uint64_t line = own->while_line;

	if (line != 0 && append(stack, line & ~THREAD_ATTRIBUTION_IMPORT))
		stack->flags |= (line & THREAD_ATTRIBUTION_IMPORT) != 0 ? KMEM_STACK_WHILE | KMEM_STACK_IMPORT_CUT
		                                                        : KMEM_STACK_WHILE;
	for (uint32_t i = 0; i < own->started_count; i++) {
		if (append(stack, own->started[i]))
			stack->flags |= KMEM_STACK_STARTED_BY;
	}
}

/* The user's code called Thread.start(): no library stands between. Else it is a library's thread, which may serve one line after another. */
static bool
is_own_thread(const struct thread_attribution *parent)
{
	return parent->started_user <= 1 && parent->started_user < parent->started_count;
}

uint64_t
thread_attribution_find_library(struct thread_attribution *parent)
{
	if (parent->started_count == 0)
		return 0;
	parent->is_work = parent->work_line != 0;
	if (parent->is_work) {
		parent->library_line = atomic_load_explicit(&lines[parent->work_line - 1], memory_order_relaxed);
		return parent->library_line * UINT64_C(0x9e3779b97f4a7c15) ^ parent->started_hash;
	}
	parent->library_line = is_own_thread(parent) ? 0 : line_of_python(parent);
	return parent->library_line ^ parent->started_hash;
}

void
thread_attribution_append_library(struct call_stack *stack)
{
	const struct thread_attribution *own = thread_attribution_current;
	uint32_t before = stack->frame_count;

	if (own == NULL || own->started_count == 0)
		return;

	uint64_t line = own->library_line;

	if (own->is_work) {
		if (append(stack, line))
			stack->flags |= KMEM_STACK_STARTED_BY | KMEM_STACK_LIBRARY_ONLY;
		return;
	}
	if (line != 0 && append(stack, line & ~THREAD_ATTRIBUTION_IMPORT))
		stack->flags |= (line & THREAD_ATTRIBUTION_IMPORT) != 0 ? KMEM_STACK_WHILE | KMEM_STACK_IMPORT_CUT
		                                                        : KMEM_STACK_WHILE;
	for (uint32_t i = own->started_user; i < own->started_count; i++) {
		if (append(stack, own->started[i]))
			stack->flags |= KMEM_STACK_STARTED_BY;
	}
	if (stack->frame_count != before)
		stack->flags |= KMEM_STACK_LIBRARY_ONLY;
}

void
thread_attribution_forked(void)
{
	thread_attribution_over();
	for (uint32_t i = 0; i < THREAD_ATTRIBUTION_LINES_MAX; i++)
		atomic_store_explicit(&lines[i], 0, memory_order_relaxed);
}
