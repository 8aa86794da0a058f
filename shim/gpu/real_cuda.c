/*
 * real_cuda.c - where are the CUDA functions that our exports stand in front of?
 *
 * The driver exists once per process: one pointer per function. It comes from the lookup that the program
 * itself made, else from the loaded object named libcuda.so.*. The runtime may exist several times (two
 * frameworks, two versions), each with its own state and its own last error, so its functions are
 * remembered per call site: what the caller's own dependencies say.
 *
 * dlsym(RTLD_NEXT) is the last resort: it finds nothing in libraries that came with RTLD_LOCAL (every
 * Python extension), and with libraries that export trampolines under the driver's names it finds those.
 * Such an answer is used, but never remembered.
 *
 * Context     What is remembered was pinned first (opened once more and never closed), so no pointer
 *             here can outlive its library.
 * Safe from   any thread; two threads that race find the same pointer.
 * When failing  NULL, and no error is left behind for the program's dlerror().
 */
#include "gpu/real_cuda.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "base/arch.h"
#include "base/elf_symbols.h"
#include "base/loaded_object.h"

#define CALLERS_MAX 1024u // call sites of runtime functions, and their objects, that are remembered
#define CALLERS_PROBE_MAX 8u
#define CALLER_BUSY UINT64_C(1) // no return address: being filled in
#define CALLER_FUNCTION_SHIFT 47
#define CALLER_VERSION_SHIFT 54
#define PATH_BYTES_MAX 4096u
#define NESTED_MAX 16u // real calls inside real calls, before we take it for a circle

#define ROW(name, ...) #name,
static const char *const driver_names[] = { CUDA_ABI_DRIVER_FUNCTIONS(ROW) };
static const char *const runtime_names[] = { CUDA_ABI_RUNTIME_FUNCTIONS(ROW) HIP_ABI_FUNCTIONS(ROW) };
#undef ROW
#define ROW(name, exported) exported,
static const char *const torch_names[] = { TORCH_ABI_FUNCTIONS(ROW) };
#undef ROW

/*
 * One call site of a function of the runtime or of libc10. The key is the return address (47 bits), the function (7) and the
 * version of loaded objects (10): after an unload another library's call may stand at the same address.
 * Invariants, tested by tests/cuda (two_runtimes):
 *   C1  a key is replaced only after the version in it is over, and by way of CALLER_BUSY
 *   C2  a reader that finds its key before and after reading `real` has the function of that key
 */
struct caller {
	_Atomic uint64_t key;
	_Atomic(void *) real;
};

_Static_assert(REAL_CUDA_RUNTIME_COUNT + REAL_TORCH_COUNT <= 1 << (CALLER_VERSION_SHIFT - CALLER_FUNCTION_SHIFT),
               "fits the key");

__thread unsigned real_cuda_depth __attribute__((tls_model("initial-exec")));
real_cuda_dlsym_fn *real_cuda_dlsym;

/*
 * relaxed everywhere but in struct caller: the words are addresses of code that was mapped before anyone
 * could learn its address; nothing else is published with them.
 */
static _Atomic(void *) driver_seen[REAL_CUDA_DRIVER_COUNT]; // newest answer to a lookup
static _Atomic(void *) driver_pinned[REAL_CUDA_DRIVER_COUNT];
static _Atomic(void *) driver_handle;
static struct caller callers[CALLERS_MAX];
static _Atomic uint64_t version; // how often something was unloaded

static void *
load(_Atomic(void *) *word)
{
	return atomic_load_explicit(word, memory_order_relaxed);
}

static void
store(_Atomic(void *) *word, void *value)
{
	atomic_store_explicit(word, value, memory_order_relaxed);
}

static void *
dlsym_without_libc(void *handle, const char *name)
{
	(void)handle;
	(void)name;
	return NULL;
}

/* Without dlsym, which is ours: glibc keeps the node of its first release, and since 2.34 has a second. */
real_cuda_dlsym_fn *
real_cuda_find_dlsym(void)
{
	void *next = dlvsym(RTLD_NEXT, "dlsym", ARCH_GLIBC_FIRST);

	if (next == NULL)
		next = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
	real_cuda_dlsym = next == NULL ? dlsym_without_libc : (real_cuda_dlsym_fn *)next;
	return real_cuda_dlsym;
}

static void *
look_up(void *handle, const char *name)
{
	return (real_cuda_dlsym != NULL ? real_cuda_dlsym : real_cuda_find_dlsym())(handle, name);
}

/* The text of an error that we caused is freed by the second call. */
static void
forget_error(void)
{
	(void)dlerror();
	(void)dlerror();
}

static bool
file_name_begins(const char *path, const char *prefix)
{
	const char *slash = strrchr(path, '/');

	return strncmp(slash == NULL ? path : slash + 1, prefix, strlen(prefix)) == 0;
}

/* The object that `addr` is code of, which stays while its code runs. NULL: none. */
static const struct link_map *
object_of(const void *addr)
{
	struct loaded_object object;

	return loaded_object_find((uintptr_t)addr, &object) ? object.link_map : NULL;
}

static bool
is_in(const void *addr, const char *file_prefix)
{
	const struct link_map *object = object_of(addr);

	return object != NULL && file_name_begins(object->l_name, file_prefix);
}

bool
real_cuda_is_driver(const void *addr)
{
	return is_in(addr, "libcuda.so");
}

static bool
is_ours(const void *addr)
{
	return object_of(addr) == object_of(callers);
}

struct search {
	struct loader_walk walk;
	char path[PATH_BYTES_MAX]; // of the object that is visited
};

/* Goes on to the next object whose file's name begins so. */
static bool
find_file(struct search *search, const char *prefix)
{
	while (loader_walk_next(&search->walk)) {
		if (elf_symbols_copy_text(&search->walk.elf, search->walk.path_addr, search->path, sizeof search->path) &&
		    file_name_begins(search->path, prefix))
			return true;
	}
	return false;
}

static bool
find_first_file(struct search *search, const char *prefix)
{
	loader_walk_begin(&search->walk);
	return find_file(search, prefix);
}

bool
real_cuda_is_hip(const void *addr)
{
	struct search search;

	return find_first_file(&search, "libamdhip64") && search.walk.node == object_of(addr);
}

/* A handle of the first loaded object whose file name begins so; the caller owns it. NULL: none. */
static void *
open_loaded(const char *prefix)
{
	struct search search;

	return find_first_file(&search, prefix) ? dlopen(search.path, RTLD_LAZY | RTLD_NOLOAD) : NULL;
}

/* Keeps the library that `addr` is code of loaded for good. False: there is no such library any more. */
static bool
pin(const void *addr)
{
	const struct link_map *object = object_of(addr);

	return object != NULL && dlopen(object->l_name, RTLD_LAZY | RTLD_NOLOAD) != NULL;
}

static void *
open_driver(void)
{
	void *handle = load(&driver_handle);
	void *expected = NULL;

	if (handle != NULL)
		return handle;
	handle = open_loaded("libcuda.so");
	if (handle == NULL)
		return NULL;
	if (!atomic_compare_exchange_strong_explicit(&driver_handle, &expected, handle, memory_order_relaxed,
	                                             memory_order_relaxed))
		dlclose(handle); // the same object, counted twice
	return handle;
}

/* Of runtimes there may be several in a process. */
static const char *
runtime_of(const char *function)
{
	return function[0] == 'h' ? "libamdhip64" : "libcudart"; // hipMalloc, cudaMalloc
}

/*
 * What `caller`'s object would have been bound to without us: a definition in everybody's scope, such as that of another library of
 * LD_PRELOAD; but of runtimes there may be several, and the caller's own dependencies say which.
 */
static void *
find_for_caller(const char *name, const void *caller)
{
	const struct link_map *object = object_of(caller);
	void *real = look_up(RTLD_NEXT, name);

	if (real != NULL && !is_in(real, runtime_of(name)))
		return real;
	real = NULL;
	if (object != NULL && object->l_name[0] != '\0') { // the program itself has no name, and looks in the global scope
		void *handle = dlopen(object->l_name, RTLD_LAZY | RTLD_NOLOAD);

		if (handle != NULL) {
			real = look_up(handle, name);
			dlclose(handle);
		}
	}
	/* Who defines the name in front of everybody, and reaches us all the same, has asked for the next one after itself. */
	if (real == NULL || is_ours(real) || real == look_up(RTLD_DEFAULT, name))
		real = look_up(RTLD_NEXT, name);
	return real;
}

void
real_cuda_found(enum real_cuda_driver function, void *real)
{
	store(&driver_seen[function], real);
}

static void *
find_driver(enum real_cuda_driver function, const void *caller)
{
	void *real = load(&driver_seen[function]);

	if (real != NULL && pin(real)) {
		store(&driver_pinned[function], real);
		return real;
	}
	void *handle = open_driver();
	if (handle != NULL)
		real = look_up(handle, driver_names[function]);
	else
		real = NULL;
	if (real != NULL && !is_ours(real))
		store(&driver_pinned[function], real);
	else
		real = find_for_caller(driver_names[function], caller);
	if (real == NULL)
		forget_error();
	return real;
}

void *
real_cuda_driver(enum real_cuda_driver function, const void *caller)
{
	void *real = load(&driver_pinned[function]);

	if (real_cuda_depth >= NESTED_MAX)
		return NULL;
	return real != NULL ? real : find_driver(function, caller);
}

static void *
find_runtime(enum real_cuda_runtime function, const void *caller, bool *is_pinned)
{
	const char *library = runtime_of(runtime_names[function]);
	void *real = find_for_caller(runtime_names[function], caller);

	*is_pinned = false;
	if (real == NULL) {
		void *handle = open_loaded(library); // also libcudart-0123abcd.so.12 of a wheel

		real = handle == NULL ? NULL : look_up(handle, runtime_names[function]);
		*is_pinned = real != NULL;
		forget_error();
	} else if (is_in(real, library)) {
		*is_pinned = pin(real);
	}
	return real;
}

static void *
remembered(const struct caller *entry, uint64_t key)
{
	/* acquire: pairs with the release in remember(); the second look must come after the load of `real`. */
	if (atomic_load_explicit(&entry->key, memory_order_acquire) != key)
		return NULL;
	void *real = atomic_load_explicit(&entry->real, memory_order_acquire);
	return atomic_load_explicit(&entry->key, memory_order_relaxed) == key ? real : NULL;
}

/* Takes the first place in the probe sequence that is empty or of an older version. */
static void
remember(uint64_t first_index, uint64_t key, void *real)
{
	for (uint64_t step = 0; step < CALLERS_PROBE_MAX; step++) {
		struct caller *entry = &callers[(first_index + step) % CALLERS_MAX];
		uint64_t owner = atomic_load_explicit(&entry->key, memory_order_relaxed);

		if (owner == CALLER_BUSY || (owner != 0 && owner >> CALLER_VERSION_SHIFT == key >> CALLER_VERSION_SHIFT))
			continue;
		/* acquire: `real` is written after the place is ours, so that readers of the old key notice (C2). */
		if (!atomic_compare_exchange_strong_explicit(&entry->key, &owner, CALLER_BUSY, memory_order_acquire,
		                                             memory_order_relaxed))
			continue;
		/* release: whoever sees this value sees BUSY or the new key as well. */
		atomic_store_explicit(&entry->real, real, memory_order_release);
		atomic_store_explicit(&entry->key, key, memory_order_release); // pairs with remembered()
		return;
	}
}

static uint64_t
key_of(unsigned function, const void *caller)
{
	return (uint64_t)(uintptr_t)caller | (uint64_t)function << CALLER_FUNCTION_SHIFT |
	       atomic_load_explicit(&version, memory_order_relaxed) << CALLER_VERSION_SHIFT;
}

static uint64_t
first_index_of(uint64_t key)
{
	return (key * UINT64_C(0x9e3779b97f4a7c15)) >> 32; // 2^64 / golden ratio
}

static void *
find_remembered(uint64_t key)
{
	uint64_t first_index = first_index_of(key);

	for (uint64_t step = 0; step < CALLERS_PROBE_MAX; step++) {
		void *known = remembered(&callers[(first_index + step) % CALLERS_MAX], key);

		if (known != NULL)
			return known;
	}
	return NULL;
}

void *
real_cuda_runtime(enum real_cuda_runtime function, const void *caller)
{
	uint64_t key = key_of(function, caller);

	if (real_cuda_depth >= NESTED_MAX)
		return NULL;

	void *real = find_remembered(key);

	if (real != NULL)
		return real;
	/* It is the same for all callers in an object. Where these have no place any more, the object's first one has made it one. */
	uint64_t object_key = key_of(function, object_of(caller));

	real = find_remembered(object_key);

	bool is_pinned = real != NULL;

	if (!is_pinned) {
		real = find_runtime(function, caller, &is_pinned);
		if (is_pinned)
			remember(first_index_of(object_key), object_key, real);
	}
	if (is_pinned)
		remember(first_index_of(key), key, real);
	return real;
}

/* In libc10.so, or libc10-0123abcd.so of a wheel; not libc10_cuda.so. 0: there is none. */
static uint64_t
find_in_torch(const char *name)
{
	struct search search;
	uint64_t addr = 0;

	loader_walk_begin(&search.walk);
	while (addr == 0 && find_file(&search, "libc10")) {
		if (file_name_begins(search.path, "libc10.so") || file_name_begins(search.path, "libc10-"))
			addr = elf_symbols_addr(&search.walk.elf, name);
	}
	return addr;
}

/* Not pinned: while its caller runs, the library that the caller needs stays; and an unload makes all keys new. */
void *
real_cuda_torch(enum real_torch function, const void *caller)
{
	uint64_t key = key_of(REAL_CUDA_RUNTIME_COUNT + function, caller);
	void *real = find_remembered(key);

	if (real != NULL)
		return real;

	real = (void *)(uintptr_t)find_in_torch(torch_names[function]);
	if (real == NULL)
		real = find_for_caller(torch_names[function], caller);
	if (real == NULL)
		forget_error();
	else
		remember(first_index_of(key), key, real);
	return real;
}

static bool
is_hooked(const char *name)
{
	for (unsigned i = 0; i < REAL_CUDA_DRIVER_COUNT; i++) {
		if (strcmp(driver_names[i], name) == 0)
			return true;
	}
	for (unsigned i = 0; i < REAL_CUDA_RUNTIME_COUNT; i++) {
		if (strcmp(runtime_names[i], name) == 0)
			return true;
	}
	return false;
}

/* Does an object other than this one define the name? That of the handle is asked first: it stays, and needs no look at the others. */
static bool
is_defined(void *handle, const char *name)
{
	const struct link_map *own = object_of(callers);
	struct loaded_object object;
	struct loader_walk walk;

	if (loaded_object_of_handle(handle, &object) && object.link_map != own) {
		const struct elf_object elf = { .load_bias = object.link_map->l_addr,
			                            .dynamic_addr = (uintptr_t)object.link_map->l_ld };

		if (elf_symbols_addr(&elf, name) != 0)
			return true;
	}
	for (loader_walk_begin(&walk); loader_walk_next(&walk);) {
		if (walk.node != own && elf_symbols_addr(&walk.elf, name) != 0)
			return true;
	}
	return !walk.is_whole; // something was unloaded meanwhile: the loader says it
}

/* Of what dlmopen() loaded: there we are not, and from here it is not seen. */
static bool
is_apart(void *handle)
{
	Lmid_t name_space = LM_ID_BASE;

	return handle != RTLD_DEFAULT && handle != RTLD_NEXT && dlinfo(handle, RTLD_DI_LMID, &name_space) == 0 &&
	       name_space != LM_ID_BASE;
}

bool
real_cuda_is_absent(void *handle, const char *name)
{
	return is_hooked(name) && !is_defined(handle, name) && !is_apart(handle);
}

/*
 * relaxed: a thread that runs code of a new library has learned of it from the thread that loaded it, after the
 * unload that made room for it.
 */
void
real_cuda_unloaded(void)
{
	atomic_fetch_add_explicit(&version, 1, memory_order_relaxed);
}

bool
real_cuda_was_seen(void)
{
	bool was_seen = false;

	for (unsigned i = 0; i < REAL_CUDA_DRIVER_COUNT; i++)
		was_seen = was_seen || load(&driver_seen[i]) != NULL || load(&driver_pinned[i]) != NULL;
	for (unsigned i = 0; i < CALLERS_MAX; i++)
		was_seen = was_seen || atomic_load_explicit(&callers[i].key, memory_order_relaxed) != 0;
	return was_seen;
}

void *
real_cuda_unhooked(const char *name)
{
	void *handle = open_driver();
	void *found = handle == NULL ? NULL : look_up(handle, name);

	if (handle != NULL && found == NULL)
		forget_error();
	return found;
}

void *
real_cuda_query(_Atomic(void *) *known, const char *library, const char *name)
{
	void *ask = load(known);
	void *handle = ask == NULL ? open_loaded(library) : NULL;

	if (handle == NULL)
		return ask;
	ask = look_up(handle, name);
	if (ask == NULL) {
		dlclose(handle);
		forget_error();
	}
	store(known, ask);
	return ask;
}
