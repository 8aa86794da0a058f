/*
 * loader_list.c - see loader_list.h.
 *
 * Glibc adds a node at the end of the list when its object is mapped completely, and frees it after the object was unmapped. Those that
 * are there at the first look-up are never unloaded. A later one is remembered when an address of its code is asked for, so that it
 * runs: its dlopen() cannot fail any more.
 *
 * Invariants of the objects that are known:
 *   L1  node == NULL means that nothing else of the entry may be read. It is set once; from then on the other fields never change.
 *   L2  node == GONE means that the object was unloaded. The same object at the same addresses gets its entry back.
 *   L3  The node of an object that may be unloaded is compared with the entry before it is given out: dlclose() is not always ours
 *       (libc unloads its own converters of characters).
 */
#include "base/loader_list.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/auxv.h>

#define PAGE_BYTES UINT64_C(4096)
#define NODES_MAX (1u << 16) // a list that is changed while it is read may have no end
#define BARE_ROOM 1024u      // a power of two

struct known {
	struct loaded_object object; // without link_map: that is `node`
	uint64_t load_bias;
	uint64_t dynamic_addr;
	bool is_for_good;
	_Atomic(const struct link_map *) node;
};

static struct known known[LOADER_LIST_ROOM];
static _Atomic uint32_t claimed_count; // relaxed: an entry is handed on by its node
static const struct link_map gone;
#define GONE (&gone)

/* Both relaxed: each is the whole message. */
static _Atomic(const struct link_map *) last_for_good; // NULL: all that is loaded is
static _Atomic(const struct link_map *) last_seen;

/* Addresses that were in no object when `last_seen` was the last node: code that was made at run time. Relaxed: each is the whole message. */
static _Atomic uint64_t bare[BARE_ROOM];

uint32_t loader_list_room = LOADER_LIST_ROOM;

/* The part of the node that <link.h> shows. It may have been freed since: what is there then is compared. */
__attribute__((no_sanitize_address)) bool
loader_list_read(const struct link_map *at, struct link_map *node)
{
	uint64_t addr = (uintptr_t)at;

	if (addr % _Alignof(struct link_map) != 0 || checked_memory_readable_from(addr, addr + sizeof *node) > addr)
		return false;
	*node = *at;
	return true;
}

/* ---- the list ---- */

void
loader_list_start(void)
{
	const struct link_map *last = NULL;

	if (atomic_load_explicit(&last_for_good, memory_order_relaxed) != NULL)
		return;
	for (const struct link_map *at = _r_debug.r_map; at != NULL; at = at->l_next)
		last = at;
	atomic_store_explicit(&last_for_good, last, memory_order_relaxed);
}

/* Sandboxes forbid to read through the kernel. */
static bool
may_copy(void)
{
	uint64_t word;

	return checked_memory_copy(&word, (uintptr_t)&last_for_good, sizeof word);
}

static bool
read_words(struct checked_window *window, const struct link_map *at, struct link_map *node)
{
	uint64_t *words = (uint64_t *)node;

	_Static_assert(sizeof *node % sizeof *words == 0, "of whole words");
	window->addr = CHECKED_WINDOW_EMPTY; // of what was elsewhere a moment ago nothing is believed
	for (size_t i = 0; i < sizeof *node / sizeof *words; i++) {
		if (!checked_memory_word(window, (uintptr_t)at + i * sizeof *words, &words[i]))
			return false;
	}
	return true;
}

void
loader_walk_begin(struct loader_walk *walk)
{
	int host_errno = errno;

	walk->node = NULL;
	walk->next = _r_debug.r_map;
	walk->stays = true;
	walk->window.needs_pipe = false;
	walk->count = 0;
	walk->kernels_addr = getauxval(AT_SYSINFO_EHDR); // of its object nothing is called; 0 = there is none
	errno = host_errno;
}

bool
loader_walk_next(struct loader_walk *walk)
{
	const struct link_map *at = walk->next;
	struct link_map node;

	if (walk->stays && walk->node != NULL && walk->node == atomic_load_explicit(&last_for_good, memory_order_relaxed)) {
		walk->stays = false;
		walk->window.needs_pipe = !may_copy();
	}
	walk->is_whole = at == NULL;
	if (at == NULL || walk->count++ == NODES_MAX)
		return false;
	if (walk->stays)
		node = *at;
	else if (!read_words(&walk->window, at, &node))
		return false;
	walk->node = at;
	walk->next = node.l_next;
	walk->path_addr = (uintptr_t)node.l_name;
	walk->elf = (struct elf_object){
		.load_bias = node.l_addr,
		.dynamic_addr = walk->kernels_addr == 0 || node.l_addr != walk->kernels_addr ? (uintptr_t)node.l_ld : 0,
		.window = walk->stays ? NULL : &walk->window,
	};
	return true;
}

/* ---- at an address ---- */

static bool
is_still_there(const struct link_map *at, const struct known *entry)
{
	struct link_map node;

	return loader_list_read(at, &node) && node.l_addr == entry->load_bias &&
	       (uintptr_t)node.l_ld == entry->dynamic_addr;
}

static const Elf64_Phdr *
headers_of(const struct elf_object *elf, unsigned *count)
{
	int host_errno = errno;

	if (elf->load_bias == 0) { // a program at fixed addresses
		*count = (unsigned)getauxval(AT_PHNUM);
		errno = host_errno;
		return (const Elf64_Phdr *)getauxval(AT_PHDR);
	}
	if (checked_memory_readable_from(elf->load_bias, elf->load_bias + PAGE_BYTES) > elf->load_bias)
		return NULL;
	return elf_symbols_headers(elf->load_bias, PAGE_BYTES, count);
}

/* As its own program headers say. False: `pc` is not in it. */
static bool
describe(const struct elf_object *elf, uint64_t pc, struct known *entry)
{
	unsigned count = 0;
	const Elf64_Phdr *headers = headers_of(elf, &count);

	*entry = (struct known){ .load_bias = elf->load_bias, .dynamic_addr = elf->dynamic_addr };
	entry->object.start_addr = UINT64_MAX;
	for (unsigned i = 0; headers != NULL && i < count; i++) {
		uint64_t start = headers[i].p_vaddr + elf->load_bias;

		if (headers[i].p_type == PT_GNU_EH_FRAME)
			entry->object.eh_frame_header_addr = start;
		if (headers[i].p_type != PT_LOAD)
			continue;
		if ((start & ~(PAGE_BYTES - 1)) < entry->object.start_addr)
			entry->object.start_addr = start & ~(PAGE_BYTES - 1);
		if (start + headers[i].p_memsz > entry->object.end_addr)
			entry->object.end_addr = start + headers[i].p_memsz;
	}
	return pc >= entry->object.start_addr && pc < entry->object.end_addr;
}

static bool
is_same(const struct known *one, const struct known *other)
{
	return one->object.start_addr == other->object.start_addr && one->object.end_addr == other->object.end_addr &&
	       one->object.eh_frame_header_addr == other->object.eh_frame_header_addr &&
	       one->load_bias == other->load_bias && one->dynamic_addr == other->dynamic_addr;
}

static uint32_t
known_count(void)
{
	uint32_t count = atomic_load_explicit(&claimed_count, memory_order_relaxed);

	return count < loader_list_room ? count : loader_list_room;
}

static void
remember(const struct known *fresh, const struct link_map *at)
{
	uint32_t count = known_count();
	uint32_t i;

	for (i = 0; i < count; i++) {
		// acquire: the entry. Pairs with the release below
		if (atomic_load_explicit(&known[i].node, memory_order_acquire) == GONE && is_same(&known[i], fresh))
			break; // L2
	}
	if (i == count) {
		if (count == loader_list_room)
			return;
		i = atomic_fetch_add_explicit(&claimed_count, 1, memory_order_relaxed);
		if (i >= loader_list_room)
			return;
		known[i].object = fresh->object;
		known[i].load_bias = fresh->load_bias;
		known[i].dynamic_addr = fresh->dynamic_addr;
		known[i].is_for_good = fresh->is_for_good;
	}
	atomic_store_explicit(&known[i].node, at,
	                      memory_order_release); // L1: the entry first. Pairs with find_known() and above
}

static bool
find_known(uint64_t pc, struct loaded_object *object)
{
	uint32_t count = known_count();

	for (uint32_t i = 0; i < count; i++) {
		// acquire: the entry. Pairs with remember()
		const struct link_map *at = atomic_load_explicit(&known[i].node, memory_order_acquire);

		if (at == NULL || at == GONE || pc < known[i].object.start_addr || pc >= known[i].object.end_addr)
			continue;
		if (!known[i].is_for_good && !is_still_there(at, &known[i])) { // L3
			// an exchange, which keeps what was released before it
			(void)atomic_exchange_explicit(&known[i].node, GONE, memory_order_relaxed);
			continue;
		}
		*object = known[i].object;
		object->link_map = at;
		return true;
	}
	return false;
}

static _Atomic uint64_t *
bare_word(uint64_t pc, const struct link_map *last, uint64_t *word)
{
	*word = pc ^ (uintptr_t)last * UINT64_C(0x9e3779b97f4a7c15);
	return &bare[(pc ^ pc >> 12) % BARE_ROOM];
}

/* Was it in no object before, and is the list as it was? */
static bool
is_bare(uint64_t pc)
{
	const struct link_map *last = atomic_load_explicit(&last_seen, memory_order_relaxed);
	struct link_map node;
	uint64_t word;
	_Atomic uint64_t *place = bare_word(pc, last, &word);

	return last != NULL && atomic_load_explicit(place, memory_order_relaxed) == word && loader_list_read(last, &node) &&
	       node.l_next == NULL;
}

/* The object whose load bias is the highest below `pc`, and the program at fixed addresses, which has none. */
static bool
find_on_list(uint64_t pc, struct loaded_object *object)
{
	const struct link_map *last = NULL, *best = NULL, *first = _r_debug.r_map;
	struct elf_object best_elf = { 0 };
	struct loader_walk walk;
	struct known entry;
	bool is_best_for_good = false;

	loader_list_start(); // nothing was loaded by anybody yet
	for (loader_walk_begin(&walk); loader_walk_next(&walk); last = walk.node) {
		if (walk.elf.load_bias <= pc && (best == NULL || walk.elf.load_bias > best_elf.load_bias)) {
			best = walk.node;
			best_elf = walk.elf;
			is_best_for_good = walk.stays;
		}
	}
	if (best != NULL && !describe(&best_elf, pc, &entry)) {
		best = first;
		best_elf = (struct elf_object){ .load_bias = first->l_addr, .dynamic_addr = (uintptr_t)first->l_ld };
		is_best_for_good = true;
		if (best_elf.load_bias != 0 || !describe(&best_elf, pc, &entry))
			best = NULL;
	}
	if (best == NULL) {
		uint64_t word;
		_Atomic uint64_t *place = bare_word(pc, last, &word);

		atomic_store_explicit(&last_seen, last, memory_order_relaxed);
		atomic_store_explicit(place, word, memory_order_relaxed);
		return false;
	}
	entry.is_for_good = is_best_for_good;
	remember(&entry, best);
	*object = entry.object;
	object->link_map = best;
	return true;
}

bool
loader_list_find(uint64_t pc, struct loaded_object *object)
{
	return find_known(pc, object) || (!is_bare(pc) && find_on_list(pc, object));
}

void
loader_list_closed(const struct link_map *at)
{
	uint32_t count = known_count();

	for (uint32_t i = 0; i < count; i++) {
		const struct link_map *node = at;

		if (!known[i].is_for_good) // as in find_known()
			(void)atomic_compare_exchange_strong_explicit(&known[i].node, &node, GONE, memory_order_relaxed,
			                                              memory_order_relaxed);
	}
}

void
loader_list_unloaded(void)
{
	uint32_t count = known_count();

	for (uint32_t i = 0; i < count; i++) {
		if (atomic_load_explicit(&known[i].node, memory_order_acquire) != NULL &&
		    !known[i].is_for_good)                                                      // pairs with remember()
			(void)atomic_exchange_explicit(&known[i].node, GONE, memory_order_relaxed); // as in find_known()
	}
	atomic_store_explicit(&last_seen, NULL, memory_order_relaxed);
}

void *
loader_list_symbol(const struct link_map *at, const char *name)
{
	int host_errno = errno;
	uint64_t kernels = getauxval(AT_SYSINFO_EHDR); // its object is not asked; 0 = there is none

	errno = host_errno;
	for (; at != NULL; at = at->l_next) {
		const struct elf_object object = { .load_bias = at->l_addr, .dynamic_addr = (uintptr_t)at->l_ld };
		uint64_t addr = kernels == 0 || at->l_addr != kernels ? elf_symbols_addr(&object, name) : 0;

		if (addr != 0)
			return (void *)addr;
	}
	return NULL;
}
