/*
 * python_shapes.c - the rows of python_shapes.h.
 *
 * Source: each version's headers, tried on the running interpreters (tests/preload/test_holders.py).
 */
#include "holders/python_shapes.h"

#include <stddef.h>
#include <string.h>

#include "base/items.h"

#define SHAPES_TO_3_10                                                                                      \
	.frames = PYTHON_FRAMES_OBJECTS, .attributes = PYTHON_ATTRIBUTES_DICT, .runtime_interpreters = 32,      \
	.interpreter_threads = 8, .state_frame = 24, .frame_code = 32, .frame_names = 56, .frame_previous = 24, \
	.code_file = 104, .code_first_line = 40, .code_local_names = 72, .tuple_items = 24, .string_ascii = 48, \
	.string_data = 72
#define SHAPES_FROM_3_11 .has_shaped_keys = true, .pool_bytes = 0x4000, .code_file = 112, .code_local_names = 96
#define SHAPES_3_11_3_12                                                                               \
	.frames = PYTHON_FRAMES_CFRAME, .runtime_interpreters = 40, .state_frame = 56, .frame_inline = 48, \
	.frame_locals = 72, .tuple_items = 24, SHAPES_FROM_3_11
#define SHAPES_FROM_3_12                                                                                        \
	.has_tagged_int = true, .frame_code = 0, .frame_previous = 8, .frame_object = 48, .frame_function = 16,     \
	.frame_names = 40, .generator_frame = 72, .code_first_line = 68, .code_stack_size = 64, .string_ascii = 40, \
	.string_data = 56
#define SHAPES_FROM_3_13                                                                                        \
	.frames = PYTHON_FRAMES_STATE, .attributes = PYTHON_ATTRIBUTES_INLINE, .state_frame = 72, SHAPES_FROM_3_11, \
	SHAPES_FROM_3_12
#define SHAPES_FROM_3_14 \
	.frame_inline = 72, .frame_locals = 80, .tuple_items = 32 /* behind its hash */, SHAPES_FROM_3_13

static const struct python_shape shapes[] = {
	{ .version = 0x0308, .pool_bytes = 0x1000, .frame_locals = 360, SHAPES_TO_3_10 },
	{ .version = 0x0309, .pool_bytes = 0x1000, .frame_locals = 360, SHAPES_TO_3_10 },
	{ .version = 0x030a, .pool_bytes = 0x4000, .frame_locals = 352, SHAPES_TO_3_10 },
	{
		.version = 0x030b,
		.attributes = PYTHON_ATTRIBUTES_VALUES,
		.interpreter_threads = 16,
		.cframe_frame = 8,
		.frame_code = 32,
		.frame_previous = 48,
		.frame_object = 40,
		.frame_function = 0,
		.frame_names = 24,
		.generator_frame = 80,
		.code_first_line = 72,
		.code_stack_size = 68,
		.string_ascii = 48,
		.string_data = 72,
		SHAPES_3_11_3_12,
	},
	{ .version = 0x030c,
	  .attributes = PYTHON_ATTRIBUTES_TAGGED,
	  .cframe_frame = 0,
	  SHAPES_3_11_3_12,
	  SHAPES_FROM_3_12 },
	{ .version = 0x030d,
	  .runtime_interpreters = 632,
	  .frame_inline = 64,
	  .frame_locals = 72,
	  .tuple_items = 24,
	  SHAPES_FROM_3_13 },
	{ .version = 0x030e, .runtime_interpreters = 808, SHAPES_FROM_3_14 },
	{ .version = 0x030f, .runtime_interpreters = 936, SHAPES_FROM_3_14 },
};

const struct python_shape *
python_shape_find(uint32_t version_hex)
{
	return FIRST(shape, shapes, COUNT_OF(shapes), shape->version == version_hex >> 16);
}

#define EXCEPTION "*" // of any type of exceptions
#define BORROWED ""   // keeps nothing alive
enum { ALL_FROM = 0x0308, ALL_TO = 0xffff };

static const struct {
	const char *type;
	uint16_t from; // versions
	uint16_t to;
	uint16_t offset;
	const char *name;
} members[] = {
	{ EXCEPTION, ALL_FROM, ALL_TO, 16, "__dict__" },
	{ EXCEPTION, ALL_FROM, ALL_TO, 24, "args" },
	{ EXCEPTION, ALL_FROM, 0x030a, 32, "__traceback__" },
	{ EXCEPTION, ALL_FROM, 0x030a, 40, "__context__" },
	{ EXCEPTION, ALL_FROM, 0x030a, 48, "__cause__" },
	{ EXCEPTION, 0x030b, ALL_TO, 32, "__notes__" },
	{ EXCEPTION, 0x030b, ALL_TO, 40, "__traceback__" },
	{ EXCEPTION, 0x030b, ALL_TO, 48, "__context__" },
	{ EXCEPTION, 0x030b, ALL_TO, 56, "__cause__" },
	{ "traceback", ALL_FROM, ALL_TO, 16, "tb_next" },
	{ "traceback", ALL_FROM, ALL_TO, 24, "tb_frame" },
	{ "method", ALL_FROM, ALL_TO, 16, "__func__" },
	{ "method", ALL_FROM, ALL_TO, 24, "__self__" },
	{ "cell", ALL_FROM, ALL_TO, 16, "cell_contents" },
	{ "type", ALL_FROM, ALL_TO, 256, "__base__" },
	{ "type", ALL_FROM, ALL_TO, 264, "__dict__" },
	{ "type", ALL_FROM, ALL_TO, 336, "__bases__" },
	{ "type", ALL_FROM, ALL_TO, 344, "__mro__" },
	{ "type", ALL_FROM, ALL_TO, 352, "its cache" },
	{ "type", ALL_FROM, ALL_TO, 360, "its subclasses" },
	{ "module", ALL_FROM, ALL_TO, 16, "__dict__" },
	{ "classmethod", ALL_FROM, ALL_TO, 16, "__func__" },
	{ "staticmethod", ALL_FROM, ALL_TO, 16, "__func__" },
	{ "property", ALL_FROM, ALL_TO, 16, "fget" },
	{ "property", ALL_FROM, ALL_TO, 24, "fset" },
	{ "builtin_function_or_method", ALL_FROM, ALL_TO, 24, "__self__" },
	{ "function", ALL_FROM, 0x0309, 16, "__code__" },
	{ "function", ALL_FROM, 0x0309, 24, "__globals__" },
	{ "function", ALL_FROM, 0x0309, 32, "__defaults__" },
	{ "function", ALL_FROM, 0x0309, 40, "__kwdefaults__" },
	{ "function", ALL_FROM, 0x0309, 48, "__closure__" },
	{ "function", ALL_FROM, 0x0309, 72, "__dict__" },
	{ "function", 0x030a, ALL_TO, 16, "__globals__" },
	{ "function", 0x030a, ALL_TO, 48, "__code__" },
	{ "function", 0x030a, ALL_TO, 56, "__defaults__" },
	{ "function", 0x030a, ALL_TO, 64, "__kwdefaults__" },
	{ "function", 0x030a, ALL_TO, 72, "__closure__" },
	{ "function", 0x030a, ALL_TO, 80, "__doc__" },
	{ "function", 0x030a, ALL_TO, 88, "__dict__" },
	{ "function", 0x030a, ALL_TO, 104, "__module__" },
	{ "function", 0x030a, ALL_TO, 112, "__annotations__" },
	{ "frame", ALL_FROM, 0x030a, 24, "f_back" },
	{ "frame", 0x030b, ALL_TO, 16, "f_back" },
	{ "generator", ALL_FROM, 0x030a, 16, "gi_frame" },
	{ "coroutine", ALL_FROM, 0x030a, 16, "cr_frame" },
	{ "functools._lru_list_elem", ALL_FROM, ALL_TO, 40, "key" },
	{ "functools._lru_list_elem", ALL_FROM, ALL_TO, 48, "result" },
	{ "functools._lru_cache_wrapper", ALL_FROM, ALL_TO, 72, "cache" },
	{ "functools._lru_cache_wrapper", ALL_FROM, ALL_TO, 88, "func" },
	{ "collections.OrderedDict", ALL_FROM, ALL_TO, 64, "its storage" }, // of its nodes
	{ "functools.partial", ALL_FROM, ALL_TO, 16, "func" },
	{ "functools.partial", ALL_FROM, ALL_TO, 24, "args" },
	{ "functools.partial", ALL_FROM, ALL_TO, 32, "keywords" },
	{ "_asyncio.Task", 0x0308, 0x0308, 104, "_fut_waiter" },
	{ "_asyncio.Task", 0x0308, 0x0308, 112, "_coro" },
	{ "_asyncio.Task", 0x0309, 0x0309, 144, "_fut_waiter" },
	{ "_asyncio.Task", 0x0309, 0x0309, 152, "_coro" },
	{ "_asyncio.Task", 0x030a, 0x030a, 152, "_fut_waiter" },
	{ "_asyncio.Task", 0x030a, 0x030a, 160, "_coro" },
	{ "_asyncio.Task", 0x030b, 0x030c, 128, "_fut_waiter" },
	{ "_asyncio.Task", 0x030b, 0x030c, 136, "_coro" },
	{ "_asyncio.Task", 0x030d, 0x030d, 112, "_fut_waiter" },
	{ "_asyncio.Task", 0x030d, 0x030d, 120, "_coro" },
	{ "_asyncio.Task", 0x030e, ALL_TO, 120, "_fut_waiter" },
	{ "_asyncio.Task", 0x030e, ALL_TO, 128, "_coro" },
	{ "_asyncio.Task", ALL_FROM, ALL_TO, 16, "_loop" },
	{ "_asyncio.Task", ALL_FROM, ALL_TO, 24, "_callbacks" }, // the first one
	{ "_asyncio.Task", ALL_FROM, ALL_TO, 48, "_exception" },
	{ "_asyncio.Task", ALL_FROM, 0x0309, 56, "_result" },
	{ "_asyncio.Task", 0x030a, ALL_TO, 64, "_result" },
	{ "_asyncio.Future", ALL_FROM, ALL_TO, 16, "_loop" },
	{ "_asyncio.Future", ALL_FROM, ALL_TO, 24, "_callbacks" },
	{ "_asyncio.Future", ALL_FROM, ALL_TO, 48, "_exception" },
	{ "_asyncio.Future", ALL_FROM, 0x0309, 56, "_result" },
	{ "_asyncio.Future", 0x030a, ALL_TO, 64, "_result" },
	{ "_thread._local", ALL_FROM, 0x030c, 48, "dummies" }, // of each thread its dictionary
	{ "_thread._localdummy", ALL_FROM, 0x030c, 16, BORROWED },
	{ "_thread._local", 0x030d, ALL_TO, 40, "dummies" },
	{ "memoryview", ALL_FROM, ALL_TO, 64, "obj" },
	{ "mappingproxy", ALL_FROM, ALL_TO, 16, "mapping" },
	{ "Context", ALL_FROM, 0x0309, 16, "previous" },
	{ "Context", ALL_FROM, 0x0309, 24, "variables" },
	{ "_contextvars.Context", 0x030a, ALL_TO, 16, "previous" },
	{ "_contextvars.Context", 0x030a, ALL_TO, 24, "variables" },
	{ "hamt", ALL_FROM, ALL_TO, 16, "root" },
	{ "ContextVar", ALL_FROM, 0x0309, 24, "default" },
	{ "ContextVar", ALL_FROM, 0x0309, 32, BORROWED }, // the value in the context that asked last
	{ "_contextvars.ContextVar", 0x030a, ALL_TO, 24, "default" },
	{ "_contextvars.ContextVar", 0x030a, ALL_TO, 32, BORROWED },
	{ "list_iterator", ALL_FROM, ALL_TO, 24, "list" },
	{ "tuple_iterator", ALL_FROM, ALL_TO, 24, "tuple" },
	{ "map", ALL_FROM, ALL_TO, 16, "iterables" },
	{ "map", ALL_FROM, ALL_TO, 24, "func" },
	{ "filter", ALL_FROM, ALL_TO, 16, "func" },
	{ "filter", ALL_FROM, ALL_TO, 24, "iterable" },
	{ "zip", ALL_FROM, ALL_TO, 24, "iterables" },
	{ "enumerate", ALL_FROM, ALL_TO, 24, "iterable" },
	{ "_io.BufferedReader", ALL_FROM, ALL_TO, 16, "raw" },
	{ "_io.TextIOWrapper", ALL_FROM, ALL_TO, 32, "buffer" },
	{ "numpy.ndarray", ALL_FROM, ALL_TO, 16, "data" },
	{ "numpy.ndarray", ALL_FROM, ALL_TO, 32, "its storage" }, // of its shape
	{ "numpy.ndarray", ALL_FROM, ALL_TO, 48, "base" },
	{ "pandas._libs.internals.BlockManager", ALL_FROM, ALL_TO, 24, "blocks" }, // 2.0 to 3.1
	{ "pandas._libs.internals.BlockManager", ALL_FROM, ALL_TO, 32, "axes" },
	{ "pandas._libs.internals.NumpyBlock", ALL_FROM, ALL_TO, 48, "values" }, // 2
	{ "pandas._libs.internals.Block", ALL_FROM, ALL_TO, 48, "values" },      // 3
	{ "bytearray", ALL_FROM, ALL_TO, 32, "data" },
	{ "bytearray", ALL_FROM, ALL_TO, 40, "data" }, // where the first byte is
	{ "bytearray", 0x030f, ALL_TO, 56, "data" },   // an object of bytes
};

const char *
python_shape_member(const struct python_shape *shape, const char *type, bool is_exception, uint64_t offset)
{
	for (size_t i = 0; i < COUNT_OF(members); i++) {
		bool is_of = strcmp(members[i].type, EXCEPTION) == 0 ? is_exception : strcmp(members[i].type, type) == 0;

		if (is_of && members[i].offset == offset && shape->version >= members[i].from &&
		    shape->version <= members[i].to)
			return members[i].name;
	}
	return NULL;
}
