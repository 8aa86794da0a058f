/*
 * real_new.c - whose operator new is this caller's (see real_new.h)?
 *
 * Not chosen  dlsym(RTLD_NEXT): it finds nothing that came with RTLD_LOCAL, keeps a message about that, and waits for every dlopen
 *             that is going on, whose constructors may be waiting for this thread.
 */
#include "base/real_new.h"

#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/elf_symbols.h"
#include "base/loaded_object.h"

#define OBJECTS_MAX 2048u // those after them are not looked at

struct object {
	struct elf_object elf;
	const char *name; // the loader's own
	bool is_queued;
};

/*
 * All that is loaded, in the loader's order. The lock of dl_iterate_phdr() keeps other threads out: this is written and read
 * within its callback only.
 */
static struct {
	bool is_busy; // a signal handler that interrupted a search
	unsigned count;
	struct object objects[OBJECTS_MAX];
	uint16_t queue[OBJECTS_MAX];
} all;

static unsigned startup_count; // set once, before main

struct search {
	const char *name;
	const Elf64_Dyn *own; // dynamic sections
	const Elf64_Dyn *caller;
	struct real_new found;
};

static int
count_one(struct dl_phdr_info *info, size_t bytes, void *count)
{
	(void)info;
	(void)bytes;
	++*(unsigned *)count;
	return 0;
}

void
real_new_start(void)
{
	unsigned count = 0;

	(void)dl_iterate_phdr(count_one, &count);
	startup_count = count;
}

static int
collect(struct dl_phdr_info *info, size_t bytes, void *unused)
{
	struct object *object = &all.objects[all.count];

	(void)bytes;
	(void)unused;
	*object = (struct object){ .elf = elf_symbols_loaded(info), .name = info->dlpi_name };
	if (strstr(object->name, "vdso") != NULL)
		object->elf.dynamic_addr = 0; // the kernel's
	return ++all.count == OBJECTS_MAX;
}

/* Of what is chosen when it is loaded the symbol leads to who chooses, whom the loader asks for each that refers to it. */
static void *
function_of(const struct object *object, const Elf64_Sym *symbol)
{
	typedef void *choose_function(void);
	uint64_t addr = symbol->st_value + object->elf.load_bias;

	return ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC ? ((choose_function *)addr)() : (void *)addr;
}

static bool
defines(const struct object *object, struct search *search)
{
	const Elf64_Sym *symbol = object->elf.dynamic_addr != 0 ? elf_symbols_find(&object->elf, search->name) : NULL;

	if (symbol == NULL)
		return false;
	search->found.addr = function_of(object, symbol);
	search->found.has_own_malloc = elf_symbols_addr(&object->elf, "malloc") != 0;
	return true;
}

static unsigned
index_of(const Elf64_Dyn *dynamic)
{
	unsigned i = 0;

	while (i < all.count && (dynamic == NULL || all.objects[i].elf.dynamic_addr != (uintptr_t)dynamic))
		i++;
	return i;
}

static const char *
file_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash != NULL ? slash + 1 : path;
}

/* By the name that was asked for: the file's, or what the object calls itself. */
static unsigned
index_of_needed(const char *needed, unsigned first)
{
	for (unsigned i = first; i < all.count; i++) {
		const struct object *object = &all.objects[i];
		const char *own_name;

		if (strcmp(strchr(needed, '/') != NULL ? object->name : file_of(object->name), needed) == 0)
			return i;
		own_name = object->elf.dynamic_addr != 0 ? elf_symbols_text(&object->elf, DT_SONAME, 0) : NULL;
		if (own_name != NULL && strcmp(own_name, needed) == 0)
			return i;
	}
	return all.count;
}

/* The caller, what it needs, what those need, and so on, breadth first. What was there from the start was looked at. */
static bool
caller_has(struct search *search, unsigned first)
{
	unsigned begin = 0;
	unsigned end = 0;
	unsigned caller = index_of(search->caller);

	if (caller < first || caller == all.count)
		return false;
	all.queue[end++] = (uint16_t)caller;
	all.objects[caller].is_queued = true;
	while (begin < end) {
		const struct object *object = &all.objects[all.queue[begin++]];
		const char *needed;

		if (defines(object, search))
			return true;
		for (unsigned i = 0; (needed = elf_symbols_text(&object->elf, DT_NEEDED, i)) != NULL; i++) {
			unsigned index = index_of_needed(needed, first);

			if (index == all.count || all.objects[index].is_queued)
				continue;
			all.queue[end++] = (uint16_t)index;
			all.objects[index].is_queued = true;
		}
	}
	return false;
}

/* What stands before us would have been found before us, had it been right. */
static void
choose(struct search *search)
{
	unsigned own = index_of(search->own);
	unsigned startup_end = startup_count != 0 && startup_count < all.count ? startup_count : all.count;
	unsigned i;

	for (i = own + 1; i < startup_end; i++) {
		if (defines(&all.objects[i], search)) {
			search->found.is_everybodys = true;
			return;
		}
	}
	if (caller_has(search, startup_end))
		return;
	for (i = startup_end; i < all.count && !defines(&all.objects[i], search); i++)
		;
	search->found.is_of_no_relation = true;
}

static int
search_all(struct dl_phdr_info *info, size_t bytes, void *argument)
{
	(void)info;
	(void)bytes;
	if (all.is_busy)
		return 1;
	all.is_busy = true;
	all.count = 0;
	(void)dl_iterate_phdr(collect, NULL);
	choose(argument);
	all.is_busy = false;
	return 1; // the lock is held until here
}

struct real_new
real_new_find(const char *name, const void *caller)
{
	struct search search = { .name = name };
	struct loaded_object object;

	if (loaded_object_find((uintptr_t)real_new_find, &object))
		search.own = object.link_map->l_ld;
	if (loaded_object_find((uintptr_t)caller, &object))
		search.caller = object.link_map->l_ld;
	(void)dl_iterate_phdr(search_all, &search);
	return search.found;
}
