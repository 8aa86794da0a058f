/*
 * real_new.c - whose operator new is this caller's (see real_new.h)?
 *
 * The loader's list is read without its lock (loader_list.h). What was there from the start stays, and so does the caller with all that it
 * needs, as long as it runs. All else may be unloaded meanwhile: it is read through the kernel.
 *
 * Not chosen  dlsym(RTLD_NEXT): it finds nothing that came with RTLD_LOCAL, keeps a message about that, and waits for every dlopen
 *             that is going on, whose constructors may be waiting for this thread.
 */
#include "base/real_new.h"

#include <limits.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/elf_symbols.h"
#include "base/loaded_object.h"
#include "base/raw_sys.h"

#define TRIES 3                // where another thread unloads something meanwhile
#define OBJECTS_MAX (1u << 16) // a list that is changed while it is read may have no end

struct object {
	const struct link_map *node; // compared, and read only where it stays
	struct elf_object elf;
	uint64_t path_addr;
	uint32_t name_hash; // of the file's name
	bool is_queued;
};

/* Memory of its own for each search: nothing is shared, so no thread, signal handler or forked child finds it half done. */
struct search {
	struct real_new *found;
	struct loader_walk walk;
	char path[PATH_MAX];
	unsigned count;
	unsigned startup_end;
	unsigned queue[OBJECTS_MAX];
	struct object objects[OBJECTS_MAX]; // in the loader's order
};

#define NAME(index, name, record) [index] = #name,
static const char *const names[] = { REAL_NEW_FUNCTIONS(NAME) };
#undef NAME

/* ---- the list ---- */

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

static bool
read_path(struct search *search, const struct object *object)
{
	return elf_symbols_copy_text(&object->elf, object->path_addr, search->path, sizeof search->path);
}

static void
collect(struct search *search)
{
	struct loader_walk *walk = &search->walk;

	search->count = search->startup_end = 0;
	for (loader_walk_begin(walk); search->count < OBJECTS_MAX && loader_walk_next(walk);) {
		struct object *object = &search->objects[search->count++];

		*object = (struct object){ .node = walk->node, .elf = walk->elf, .path_addr = walk->path_addr };
		if (read_path(search, object))
			object->name_hash = hash_of(file_of(search->path));
		if (walk->stays)
			search->startup_end = search->count;
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

		if (object->name_hash == hash && read_path(search, object) &&
		    strcmp(is_path ? search->path : file_of(search->path), needed) == 0)
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
	return search->walk.is_whole;
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
