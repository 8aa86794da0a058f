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
#define AS(name) name, PYTHON_MEMBER_OBJECT
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
	TYPE(EXCEPTION, ALWAYS, { 16, NAMES }, { 24, AS("args") }),
	TYPE(EXCEPTION, ALL_FROM, 0x030a, { 32, AS("__traceback__") }, { 40, AS("__context__") }, { 48, AS("__cause__") }),
	TYPE(EXCEPTION, 0x030b, ALL_TO, { 32, AS("__notes__") }, { 40, AS("__traceback__") }, { 48, AS("__context__") },
	     { 56, AS("__cause__") }),
	TYPE("traceback", ALWAYS, { 16, AS("tb_next") }, { 24, AS("tb_frame") }),
	TYPE("method", ALWAYS, { 16, AS("__func__") }, { 24, AS("__self__") }),
	TYPE("cell", ALWAYS, { 16, AS("cell_contents") }),
	TYPE("type", ALWAYS, { 256, AS("__base__") }, { 264, NAMES }, { 336, AS("__bases__") }, { 344, AS("__mro__") },
	     { 352, AS("its cache") }, { 360, AS("its subclasses") }),
	TYPE("module", ALWAYS, { 16, NAMES }), TYPE("classmethod", ALWAYS, { 16, AS("__func__") }),
	TYPE("staticmethod", ALWAYS, { 16, AS("__func__") }),
	TYPE("property", ALWAYS, { 16, AS("fget") }, { 24, AS("fset") }),
	TYPE("builtin_function_or_method", ALWAYS, { 24, AS("__self__") }),
	TYPE("function", ALL_FROM, 0x0309, { 16, AS("__code__") }, { 24, AS("__globals__") }, { 32, AS("__defaults__") },
	     { 40, AS("__kwdefaults__") }, { 48, AS("__closure__") }, { 72, NAMES }),
	TYPE("function", 0x030a, ALL_TO, { 16, AS("__globals__") }, { 48, AS("__code__") }, { 56, AS("__defaults__") },
	     { 64, AS("__kwdefaults__") }, { 72, AS("__closure__") }, { 80, AS("__doc__") }, { 88, NAMES },
	     { 104, AS("__module__") }, { 112, AS("__annotations__") }),
	TYPE("frame", ALL_FROM, 0x030a, { 24, AS("f_back") }), TYPE("frame", 0x030b, ALL_TO, { 16, AS("f_back") }),
	TYPE("generator", ALL_FROM, 0x030a, { 16, "gi_frame", PYTHON_MEMBER_FRAME }),
	TYPE("coroutine", ALL_FROM, 0x030a, { 16, "cr_frame", PYTHON_MEMBER_FRAME }),
	TYPE("functools._lru_list_elem", ALWAYS, { 40, AS("key") }, { 48, AS("result") }),
	TYPE("functools._lru_cache_wrapper", ALWAYS, { 72, AS("cache") }, { 88, AS("func") }),
	TYPE("collections.OrderedDict", ALWAYS, { 64, STORAGE }), // of its nodes
	TYPE("functools.partial", ALWAYS, { 16, AS("func") }, { 24, AS("args") }, { 32, AS("keywords") }),
	TYPE("_asyncio.Task", 0x0308, 0x0308, { 104, AS("_fut_waiter") }, { 112, AS("_coro") }),
	TYPE("_asyncio.Task", 0x0309, 0x0309, { 144, AS("_fut_waiter") }, { 152, AS("_coro") }),
	TYPE("_asyncio.Task", 0x030a, 0x030a, { 152, AS("_fut_waiter") }, { 160, AS("_coro") }),
	TYPE("_asyncio.Task", 0x030b, 0x030c, { 128, AS("_fut_waiter") }, { 136, AS("_coro") }),
	TYPE("_asyncio.Task", 0x030d, 0x030d, { 112, AS("_fut_waiter") }, { 120, AS("_coro") }),
	TYPE("_asyncio.Task", 0x030e, ALL_TO, { 120, AS("_fut_waiter") }, { 128, AS("_coro") }),
	/* A task is a future. _callbacks: the first one. */
	TYPE("_asyncio.Future", ALWAYS, { 16, AS("_loop") }, { 24, AS("_callbacks") }, { 48, AS("_exception") }),
	TYPE("_asyncio.Future", ALL_FROM, 0x0309, { 56, AS("_result") }),
	TYPE("_asyncio.Future", 0x030a, ALL_TO, { 64, AS("_result") }),
	TYPE("_thread._local", ALL_FROM, 0x030c,
	     { 48, "dummies", PYTHON_MEMBER_THREAD_NAMES }), // of each thread its dictionary
	TYPE("_thread._local", 0x030d, ALL_TO, { 40, "dummies", PYTHON_MEMBER_THREAD_NAMES }),
	TYPE("_thread._localdummy", ALL_FROM, 0x030c, { 16, BORROWED }), TYPE("memoryview", ALWAYS, { 64, AS("obj") }),
	TYPE("mappingproxy", ALWAYS, { 16, AS("mapping") }),
	TYPE("Context", ALL_FROM, 0x0309, { 16, AS("previous") }, { 24, AS("variables") }),
	TYPE("_contextvars.Context", 0x030a, ALL_TO, { 16, AS("previous") }, { 24, AS("variables") }),
	TYPE("hamt", ALWAYS, { 16, AS("root") }),
	/* The value in the context that asked last is borrowed. */
	TYPE("ContextVar", ALL_FROM, 0x0309, { 24, AS("default") }, { 32, BORROWED }),
	TYPE("_contextvars.ContextVar", 0x030a, ALL_TO, { 24, AS("default") }, { 32, BORROWED }),
	TYPE("list_iterator", ALWAYS, { 24, AS("list") }), TYPE("tuple_iterator", ALWAYS, { 24, AS("tuple") }),
	TYPE("map", ALWAYS, { 16, AS("iterables") }, { 24, AS("func") }),
	TYPE("filter", ALWAYS, { 16, AS("func") }, { 24, AS("iterable") }), TYPE("zip", ALWAYS, { 24, AS("iterables") }),
	TYPE("enumerate", ALWAYS, { 24, AS("iterable") }), TYPE("_io.BufferedReader", ALWAYS, { 16, AS("raw") }),
	TYPE("_io.TextIOWrapper", ALWAYS, { 32, AS("buffer") }),
	TYPE("numpy.ndarray", ALWAYS, { 16, DATA }, { 32, STORAGE }, { 48, AS("base") }), // its storage: of its shape
	TYPE("pandas._libs.internals.BlockManager", ALWAYS, { 24, AS("blocks") }, { 32, AS("axes") }), // blocks: 2.0 to 3.1
	TYPE("pandas._libs.internals.NumpyBlock", ALWAYS, { 48, AS("values") }),                       // 2
	TYPE("pandas._libs.internals.Block", ALWAYS, { 48, AS("values") }),                            // 3
	TYPE("bytearray", ALWAYS, { 32, DATA }, { 40, DATA }), // data: where the first byte is
	TYPE("bytearray", 0x030f, ALL_TO, { 56, DATA }),       // an object of bytes
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
