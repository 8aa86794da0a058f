/*
 * real_new.c - whose operator new is this caller's (see real_new.h)?
 *
 * The loader's list is read as it stands, without the loader's lock: a fork copies a lock as it is, and a child would wait for a thread
 * that it does not have. What was there from the start stays, and so does the caller with all that it needs, as long as it runs. All
 * else may be unloaded meanwhile: it is read through the kernel.
 *
 * Not chosen  dlsym(RTLD_NEXT): it finds nothing that came with RTLD_LOCAL, keeps a message about that, and waits for every dlopen
 *             that is going on, whose constructors may be waiting for this thread.
 *             dl_iterate_phdr(): it holds the loader's lock meanwhile.
 */
#include "base/real_new.h"

#include <limits.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/checked_memory.h"
#include "base/elf_symbols.h"
#include "base/loaded_object.h"
#include "base/raw_sys.h"

#define TRIES 3                // where another thread unloads something meanwhile
#define OBJECTS_MAX (1u << 16) // a list that is changed while it is read may have no end

struct object {
	const struct link_map *node; // compared, and read only where it stays
	struct elf_object elf;
	uint32_t name_hash; // of the file's name
	bool is_queued;
};

/* Memory of its own for each search: nothing is shared, so no thread, signal handler or forked child finds it half done. */
struct search {
	struct real_new *found;
	struct checked_window window;
	char path[PATH_MAX];
	unsigned count;
	unsigned startup_end;
	bool is_whole; // the list was read to its end
	unsigned queue[OBJECTS_MAX];
	struct object objects[OBJECTS_MAX]; // in the loader's order
};

#define NAME(index, name, record) [index] = #name,
static const char *const names[] = { REAL_NEW_FUNCTIONS(NAME) };
#undef NAME

static const struct link_map *startup_last; // set once, before main; NULL: all that is loaded is the program's

void
real_new_start(void)
{
	for (const struct link_map *at = _r_debug.r_map; at != NULL; at = at->l_next)
		startup_last = at;
}

/* ---- the list ---- */

/*
 * Sandboxes forbid to read through the kernel: then all is read as it stands, and an object that is unloaded in the very moment of its
 * first use by a library is the risk.
 */
static bool
may_ask(void)
{
	uint64_t word;

	return checked_memory_copy(&word, (uintptr_t)&startup_last, sizeof word);
}

static bool
read_words(struct search *search, const struct link_map *at, struct link_map *node)
{
	uint64_t *words = (uint64_t *)node;

	_Static_assert(sizeof *node % sizeof *words == 0, "of whole words");
	for (size_t i = 0; i < sizeof *node / sizeof *words; i++) {
		if (!checked_memory_word(&search->window, (uintptr_t)at + i * sizeof *words, &words[i]))
			return false;
	}
	return true;
}

static bool
read_path(struct search *search, uint64_t addr)
{
	for (size_t i = 0; i < sizeof search->path; i++, addr++) {
		uint64_t word;

		if (!checked_memory_word(&search->window, addr & ~UINT64_C(7), &word))
			return false;
		search->path[i] = (char)(word >> addr % 8 * 8);
		if (search->path[i] == '\0')
			return true;
	}
	return false;
}

static const char *
file_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

static uint32_t
hash_of(const char *text)
{
	uint32_t hash = 2166136261u; // FNV-1a

	while (*text != '\0')
		hash = (hash ^ (unsigned char)*text++) * 16777619u;
	return hash;
}

static void
collect(struct search *search)
{
	uint64_t kernels = getauxval(AT_SYSINFO_EHDR); // of its object nothing is called; 0 = there is none
	bool is_asked = may_ask();
	bool stays = true;

	search->count = search->startup_end = 0;
	search->is_whole = true;
	for (const struct link_map *at = _r_debug.r_map; at != NULL && search->count < OBJECTS_MAX;) {
		struct object *object = &search->objects[search->count];
		struct link_map node;

		search->window.addr = CHECKED_WINDOW_EMPTY; // of what was elsewhere a moment ago nothing is believed
		*object = (struct object){ .node = at };
		if (stays || !is_asked) {
			node = *at;
			object->name_hash = hash_of(file_of(node.l_name));
		} else if (read_words(search, at, &node)) {
			object->elf.window = &search->window;
			object->name_hash = read_path(search, (uintptr_t)node.l_name) ? hash_of(file_of(search->path)) : 0;
		} else {
			search->is_whole = false;
			break;
		}
		object->elf.load_bias = node.l_addr;
		object->elf.dynamic_addr = kernels == 0 || node.l_addr != kernels ? (uintptr_t)node.l_ld : 0;
		search->count++;
		if (stays)
			search->startup_end = search->count;
		stays = stays && at != startup_last;
		at = node.l_next;
	}
}

/* By the name that was asked for: the file's, or what the object calls itself. */
static unsigned
index_of_needed(struct search *search, const char *needed)
{
	uint32_t hash = hash_of(file_of(needed));
	bool is_path = strchr(needed, '/') != NULL;

	for (unsigned i = 0; i < search->count; i++) {
		const struct object *object = &search->objects[i];
		const char *path = search->path;
		struct link_map node;

		if (object->name_hash != hash)
			continue;
		if (object->elf.window == NULL)
			path = object->node->l_name;
		else if (!read_words(search, object->node, &node) || !read_path(search, (uintptr_t)node.l_name))
			continue;
		if (strcmp(is_path ? path : file_of(path), needed) == 0)
			return i;
	}
	for (unsigned i = 0; i < search->count; i++) {
		if (elf_symbols_is_called(&search->objects[i].elf, needed))
			return i;
	}
	return search->count;
}

/* ---- who defines what ---- */

/* Of what is chosen when it is loaded the symbol leads to who chooses, whom the loader asks for each that refers to it. */
static void *
function_of(const struct elf_object *object, const Elf64_Sym *symbol)
{
	typedef void *choose_function(void);
	uint64_t addr = symbol->st_value + object->load_bias;

	return ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC ? ((choose_function *)addr)() : (void *)addr;
}

/* True: it is known of all functions now. */
static bool
ask(struct search *search, const struct elf_object *object, enum real_new_relation relation)
{
	unsigned known = 0;

	for (unsigned i = 0; i < REAL_NEW_COUNT; i++) {
		struct real_new *found = &search->found[i];
		Elf64_Sym symbol;

		if (found->addr == NULL && elf_symbols_find(object, names[i], &symbol)) {
			found->addr = function_of(object, &symbol);
			found->relation = relation;
			found->has_own_malloc = elf_symbols_addr(object, "malloc") != 0;
		}
		known += found->addr != NULL;
	}
	return known == REAL_NEW_COUNT;
}

/* The caller, what it needs, what those need, and so on, breadth first. */
static bool
ask_callers(struct search *search, unsigned caller)
{
	unsigned begin = 0;
	unsigned end = 0;

	search->queue[end++] = caller;
	search->objects[caller].is_queued = true;
	while (begin < end) {
		struct elf_object stays = search->objects[search->queue[begin++]].elf;
		const char *needed;

		stays.window = NULL;
		if (ask(search, &stays, REAL_NEW_CALLERS))
			return true;
		for (unsigned i = 0; (needed = elf_symbols_text(&stays, DT_NEEDED, i)) != NULL; i++) {
			unsigned index = index_of_needed(search, needed);

			// what was there from the start was looked at
			if (index == search->count || index < search->startup_end || search->objects[index].is_queued)
				continue;
			search->queue[end++] = index;
			search->objects[index].is_queued = true;
		}
	}
	return false;
}

static unsigned
index_of(const struct search *search, const void *addr)
{
	struct loaded_object object;
	unsigned i = 0;

	if (!loaded_object_find((uintptr_t)addr, &object))
		return search->count;
	while (i < search->count && search->objects[i].node != object.link_map)
		i++;
	return i;
}

/* What stands before us would have been found before us, had it been right. False: the caller is on no list that could be read. */
static bool
ask_all(struct search *search, const void *caller)
{
	unsigned callers_index = index_of(search, caller);

	for (unsigned i = index_of(search, (const void *)(uintptr_t)real_new_find) + 1; i < search->startup_end; i++) {
		if (ask(search, &search->objects[i].elf, REAL_NEW_EVERYBODYS))
			return true;
	}
	if (callers_index >= search->startup_end && callers_index < search->count && ask_callers(search, callers_index))
		return true;
	for (unsigned i = search->startup_end; i < search->count; i++) {
		if (ask(search, &search->objects[i].elf, REAL_NEW_STRANGERS))
			return true;
	}
	return search->is_whole;
}

bool
real_new_find(const void *caller, struct real_new found[REAL_NEW_COUNT])
{
	struct search *search = raw_mmap(NULL, sizeof *search, PROT_READ | PROT_WRITE,
	                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	bool is_known = false;

	memset(found, 0, REAL_NEW_COUNT * sizeof *found);
	if (search == MAP_FAILED)
		return false;
	search->found = found;
	for (unsigned tries = 0; tries < TRIES && !is_known; tries++) {
		collect(search);
		is_known = ask_all(search, caller);
	}
	raw_munmap(search, sizeof *search);
	return is_known;
}
