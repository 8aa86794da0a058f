/*
 * python_shapes.c - the rows of python_shapes.h.
 *
 * Source: each version's headers, tried on the running interpreters (tests/preload/test_holders.py).
 */
#include "holders/python_shapes.h"

#include <stddef.h>
#include <string.h>

#include "base/items.h"

#define EXCEPTION "*" // of any type of exceptions
#define NAMED(name) name, PYTHON_MEMBER_OBJECT
#define BORROWED "", PYTHON_MEMBER_BORROWED
#define NAMES "__dict__", PYTHON_MEMBER_NAMES
#define STORAGE "its storage", PYTHON_MEMBER_STORAGE
#define DATA "data", PYTHON_MEMBER_DATA
enum { ALL_FROM = 0x0308, ALL_TO = 0xffff };
#define ALWAYS ALL_FROM, ALL_TO
#define TYPE(type_, ...) TYPE_IN(type_, __VA_ARGS__)
#define TYPE_IN(type_, from_, to_, ...)                                           \
	{                                                                             \
		.type = (type_), .from = (from_), .to = (to_), .members = { __VA_ARGS__ } \
	}
#define MEMBERS_MAX 9u // of a type, that are told

static const struct {
	const char *type;
	uint16_t from; // versions
	uint16_t to;
	struct python_member members[MEMBERS_MAX]; // as many as have a name
} types[] = {
	TYPE(EXCEPTION, ALWAYS, { 16, NAMES }, { 24, NAMED("args") }),
	TYPE(EXCEPTION, ALL_FROM, 0x030a, { 32, NAMED("__traceback__") }, { 40, NAMED("__context__") },
	     { 48, NAMED("__cause__") }),
	TYPE(EXCEPTION, 0x030b, ALL_TO, { 32, NAMED("__notes__") }, { 40, NAMED("__traceback__") },
	     { 48, NAMED("__context__") }, { 56, NAMED("__cause__") }),
	TYPE("traceback", ALWAYS, { 16, NAMED("tb_next") }, { 24, NAMED("tb_frame") }),
	TYPE("method", ALWAYS, { 16, NAMED("__func__") }, { 24, NAMED("__self__") }),
	TYPE("cell", ALWAYS, { 16, NAMED("cell_contents") }),
	TYPE("type", ALWAYS, { 256, NAMED("__base__") }, { 264, NAMES }, { 336, NAMED("__bases__") },
	     { 344, NAMED("__mro__") }, { 352, NAMED("its cache") }, { 360, NAMED("its subclasses") }),
	TYPE("module", ALWAYS, { 16, NAMES }), TYPE("classmethod", ALWAYS, { 16, NAMED("__func__") }),
	TYPE("staticmethod", ALWAYS, { 16, NAMED("__func__") }),
	TYPE("property", ALWAYS, { 16, NAMED("fget") }, { 24, NAMED("fset") }),
	TYPE("builtin_function_or_method", ALWAYS, { 24, NAMED("__self__") }),
	TYPE("function", ALL_FROM, 0x0309, { 16, NAMED("__code__") }, { 24, NAMED("__globals__") },
	     { 32, NAMED("__defaults__") }, { 40, NAMED("__kwdefaults__") }, { 48, NAMED("__closure__") }, { 72, NAMES }),
	TYPE("function", 0x030a, ALL_TO, { 16, NAMED("__globals__") }, { 48, NAMED("__code__") },
	     { 56, NAMED("__defaults__") }, { 64, NAMED("__kwdefaults__") }, { 72, NAMED("__closure__") },
	     { 80, NAMED("__doc__") }, { 88, NAMES }, { 104, NAMED("__module__") }, { 112, NAMED("__annotations__") }),
	TYPE("frame", ALL_FROM, 0x030a, { 24, NAMED("f_back") }), TYPE("frame", 0x030b, ALL_TO, { 16, NAMED("f_back") }),
	TYPE("generator", ALL_FROM, 0x030a, { 16, "gi_frame", PYTHON_MEMBER_FRAME }),
	TYPE("coroutine", ALL_FROM, 0x030a, { 16, "cr_frame", PYTHON_MEMBER_FRAME }),
	TYPE("functools._lru_list_elem", ALWAYS, { 40, NAMED("key") }, { 48, NAMED("result") }),
	TYPE("functools._lru_cache_wrapper", ALWAYS, { 72, NAMED("cache") }, { 88, NAMED("func") }),
	TYPE("collections.OrderedDict", ALWAYS, { 64, STORAGE }), // of its nodes
	TYPE("functools.partial", ALWAYS, { 16, NAMED("func") }, { 24, NAMED("args") }, { 32, NAMED("keywords") }),
	TYPE("_asyncio.Task", 0x0308, 0x0308, { 104, NAMED("_fut_waiter") }, { 112, NAMED("_coro") }),
	TYPE("_asyncio.Task", 0x0309, 0x0309, { 144, NAMED("_fut_waiter") }, { 152, NAMED("_coro") }),
	TYPE("_asyncio.Task", 0x030a, 0x030a, { 152, NAMED("_fut_waiter") }, { 160, NAMED("_coro") }),
	TYPE("_asyncio.Task", 0x030b, 0x030c, { 128, NAMED("_fut_waiter") }, { 136, NAMED("_coro") }),
	TYPE("_asyncio.Task", 0x030d, 0x030d, { 112, NAMED("_fut_waiter") }, { 120, NAMED("_coro") }),
	TYPE("_asyncio.Task", 0x030e, ALL_TO, { 120, NAMED("_fut_waiter") }, { 128, NAMED("_coro") }),
	/* A task is a future. _callbacks: the first one. */
	TYPE("_asyncio.Future", ALWAYS, { 16, NAMED("_loop") }, { 24, NAMED("_callbacks") }, { 48, NAMED("_exception") }),
	TYPE("_asyncio.Future", ALL_FROM, 0x0309, { 56, NAMED("_result") }),
	TYPE("_asyncio.Future", 0x030a, ALL_TO, { 64, NAMED("_result") }),
	TYPE("_thread._local", ALL_FROM, 0x030c,
	     { 48, "dummies", PYTHON_MEMBER_THREAD_NAMES }), // of each thread its dictionary
	TYPE("_thread._local", 0x030d, ALL_TO, { 40, "dummies", PYTHON_MEMBER_THREAD_NAMES }),
	TYPE("_thread._localdummy", ALL_FROM, 0x030c, { 16, BORROWED }), TYPE("memoryview", ALWAYS, { 64, NAMED("obj") }),
	TYPE("mappingproxy", ALWAYS, { 16, NAMED("mapping") }),
	TYPE("Context", ALL_FROM, 0x0309, { 16, NAMED("previous") }, { 24, NAMED("variables") }),
	TYPE("_contextvars.Context", 0x030a, ALL_TO, { 16, NAMED("previous") }, { 24, NAMED("variables") }),
	TYPE("hamt", ALWAYS, { 16, NAMED("root") }),
	/* The value in the context that asked last is borrowed. */
	TYPE("ContextVar", ALL_FROM, 0x0309, { 24, NAMED("default") }, { 32, BORROWED }),
	TYPE("_contextvars.ContextVar", 0x030a, ALL_TO, { 24, NAMED("default") }, { 32, BORROWED }),
	TYPE("list_iterator", ALWAYS, { 24, NAMED("list") }), TYPE("tuple_iterator", ALWAYS, { 24, NAMED("tuple") }),
	TYPE("map", ALWAYS, { 16, NAMED("iterables") }, { 24, NAMED("func") }),
	TYPE("filter", ALWAYS, { 16, NAMED("func") }, { 24, NAMED("iterable") }),
	TYPE("zip", ALWAYS, { 24, NAMED("iterables") }), TYPE("enumerate", ALWAYS, { 24, NAMED("iterable") }),
	TYPE("_io.BufferedReader", ALWAYS, { 16, NAMED("raw") }),
	TYPE("_io.TextIOWrapper", ALWAYS, { 32, NAMED("buffer") }),
	TYPE("numpy.ndarray", ALWAYS, { 16, DATA }, { 32, STORAGE }, { 48, NAMED("base") }), // its storage: of its shape
	TYPE("pandas._libs.internals.BlockManager", ALWAYS, { 24, NAMED("blocks") },
	     { 32, NAMED("axes") }),                                                // blocks: 2.0 to 3.1
	TYPE("pandas._libs.internals.NumpyBlock", ALWAYS, { 48, NAMED("values") }), // 2
	TYPE("pandas._libs.internals.Block", ALWAYS, { 48, NAMED("values") }),      // 3
	TYPE("bytearray", ALWAYS, { 32, DATA }, { 40, DATA }),                      // data: where the first byte is
	TYPE("bytearray", 0x030f, ALL_TO, { 56, DATA }),                            // an object of bytes
};

const struct python_member *
python_shape_member(const struct python_layout *shape, const char *type, bool is_exception, uint64_t offset)
{
	for (size_t i = 0; i < COUNT_OF(types); i++) {
		bool is_of = strcmp(types[i].type, EXCEPTION) == 0 ? is_exception : strcmp(types[i].type, type) == 0;

		if (!is_of || shape->version < types[i].from || shape->version > types[i].to)
			continue;
		for (size_t k = 0; k < MEMBERS_MAX && types[i].members[k].name != NULL; k++) {
			if (types[i].members[k].offset == offset)
				return &types[i].members[k];
		}
	}
	return NULL;
}
