/*
 * python_objects.h - what does an object of CPython hold, seen from outside, and by which name?
 *
 * Everything is read from the memory of a process that stands still, and nothing is believed: a type is taken for one only if its own
 * type is one, up to `type`; counts have limits. Memory that does not look like an object is plain memory to the caller.
 *
 * When failing  not attached, and `why` says so in one clause: then nothing is an object.
 */
#ifndef PYTHON_OBJECTS_H
#define PYTHON_OBJECTS_H

#include <stdbool.h>
#include <stdint.h>

#include "holders/live_blocks.h"
#include "holders/process_memory.h"
#include "holders/process_modules.h"
#include "holders/python_shapes.h"

#define PYTHON_NAME_BYTES 64
#define PYTHON_OBJECT_TYPE 8                    // in each object
#define PYTHON_STATE_SEARCHED UINT64_C(0x20000) // bytes of the interpreter's state

enum python_type_kind {
	PYTHON_OTHER,
	PYTHON_LIST,
	PYTHON_TUPLE,
	PYTHON_DICT,
	PYTHON_SET,
	PYTHON_DEQUE,
	PYTHON_TYPE,
	PYTHON_MODULE,
	PYTHON_FRAME,
	PYTHON_GENERATOR, // coroutines, too
	PYTHON_WEAK,      // a weak reference
	PYTHON_LRU_ELEMENT,
	PYTHON_LRU_CACHE,
	PYTHON_CODE,
	PYTHON_ARRAY, // of NumPy
	PYTHON_PLAIN, // holds no other object: numbers, texts, bytes
};

struct python_type {
	uint64_t addr;
	enum python_type_kind kind;
	bool is_exception;
	bool is_collected; // the garbage collector sees its objects
	bool is_of_python; // a class statement made it, or type()
	bool has_managed_dict;
	bool has_inline_values;
	uint64_t prefix_bytes; // in front of an object
	uint64_t basic_bytes;
	uint64_t kind_bytes; // of the type of C that says what kind it is: what lies behind is of classes below it
	uint64_t item_bytes;
	uint64_t flags;
	uint64_t base;
	uint64_t dict;
	int64_t dict_offset;
	int64_t weak_offset;  // of its list of weak references
	uint64_t cached_keys; // that instances share; 0 = none
	bool has_looked_for_keys;
	bool has_looked_for_name;
	bool is_named;                  // by a module: see python_objects_is_named()
	char name[PYTHON_NAME_BYTES];   // as the type has it, without its module
	char module[PYTHON_NAME_BYTES]; // "" = built in, or __main__
};

struct python_object {
	uint64_t addr; // 0 = none
	struct python_type *type;
};

/* In sys.modules. */
struct python_module {
	char name[PYTHON_NAME_BYTES];
	uint64_t names; // its dictionary
};

/* A frame that runs, or stands on a thread's stack of frames. */
struct python_frame {
	uint64_t start;
	uint64_t end;
	uint64_t code;
	uint64_t object; // 0 = it has none
	uint32_t thread; // 0, 1, ... in the interpreter's order
	uint32_t depth;  // of the innermost one 0
};

struct python_objects {
	const struct python_layout *shape; // NULL = not attached
	const char *why;
	struct process_memory *memory;
	/*
	 * In a free-threaded build every object is taken to begin so many bytes behind its address: then all members stand where they stand
	 * in other builds, and the words in front of them are where other builds have the collector's.
	 */
	uint64_t shift;
	uint64_t type_type;       // address of `type`, as of every object: with the shift
	struct address_range own; // of the interpreter's library, or program
	uint64_t interpreter;     // the state of the first one: up to 3.10 a block, then a variable
	size_t state_count;       // of threads
	uint64_t *states;
	size_t frame_count;
	struct python_frame *frames; // by address
	struct known_type *known;    // every address that was asked for as a type
	struct python_pool *pools;   // the last ones that were looked at
	bool has_modules;            // they were looked for
	size_t module_count;
	struct python_module *modules; // those in sys.modules
};

/* version_hex: 0 = the program has no Python. */
/* The object that the word there leads to; 0 = none. */
uint64_t python_objects_at(struct python_objects *python, uint64_t addr);

void python_objects_attach(struct process_memory *memory, struct process_modules *modules, uint32_t version_hex,
                           struct python_objects *python);
void python_objects_detach(struct python_objects *python);

/* Small objects lie in pools of their allocator. */
enum python_small { PYTHON_NOT_SMALL, PYTHON_SMALL_FREE, PYTHON_SMALL_LIVE };
enum python_small python_objects_small(struct python_objects *python, uint64_t addr, struct address_range *block);

/* The object whose block this is. False: there is none. */
bool python_objects_in(struct python_objects *python, uint64_t start, uint64_t bytes, struct python_object *object);

/* The type of an object that stood here, without references: it is being released, or is kept for reuse. NULL: there was none. */
const struct python_type *python_objects_released(struct python_objects *python, uint64_t start, uint64_t bytes);

/* Does a word keep what it leads to alive? */
enum python_hold {
	PYTHON_HOLD_NOT,
	PYTHON_HOLD_PERHAPS, // it may be left over, or borrowed
	PYTHON_HOLD_LIKELY,  // in a type whose members are not known
	PYTHON_HOLD_SURE,    // it is counted as a reference, or is where items stand
};
enum python_hold python_objects_hold(struct python_objects *python, const struct python_object *object, uint64_t at);
enum python_hold python_objects_frame_hold(struct python_objects *python, const struct python_frame *frame,
                                           uint64_t at);

/* How many references to it are counted; UINT64_MAX = it lives for ever. */
uint64_t python_objects_references(struct python_objects *python, const struct python_object *object);

/* Is the word at `at` where the object keeps its items? What it leads to belongs to it alone, and is a block without an object. */
bool python_objects_is_buffer(struct python_objects *python, const struct python_object *object, uint64_t at);

/* Does the buffer to which the word at `at` leads hold something for its owner at `item_at`? value: that word; of a deque the block. */
bool python_objects_buffer_holds(struct python_objects *python, const struct python_object *object, uint64_t at,
                                 uint64_t value, uint64_t item_at);

/* The next block of a deque; the first after 0. False: there is none. */
bool python_objects_next_block(struct python_objects *python, const struct python_object *object, uint64_t *block);

/* The code object of a frame, wherever that is. */
uint64_t python_objects_frame_code(struct python_objects *python, uint64_t frame);

/* The frame in a generator, or in a frame object, or the frame object itself: its start and code; start: 0 = none. */
struct python_frame python_objects_inner_frame(struct python_objects *python, const struct python_object *object);

/* NULL = no frame is there. */
const struct python_frame *python_objects_frame(const struct python_objects *python, uint64_t addr);

/* Is it a variable of the interpreter itself? */
bool python_objects_is_own(const struct python_objects *python, uint64_t addr);

/* Does it lie in the state of a thread, with its exception and its context variables? */
bool python_objects_is_state(const struct python_objects *python, uint64_t addr);

struct python_namespace {
	char name[PYTHON_NAME_BYTES];
	bool is_library;  // its file is
	bool has_results; // of cells, by number, as IPython keeps them
};

/* The module whose dictionary this is. False: it is no module's. */
bool python_objects_module(struct python_objects *python, const struct python_object *object,
                           struct python_namespace *module);

/*
 * Does the module that the class says it is of have it by a name? One that was made while the program runs, and that is kept elsewhere, is an
 * object as others are. True also where modules are not found, and of classes of C.
 */
bool python_objects_is_named(struct python_objects *python, struct python_type *type);
/* Does a way go from the object to its class? One that has a name has it elsewhere. */
bool python_objects_holds_class(struct python_objects *python, const struct python_object *object);

/* How many items a container has; UINT64_MAX = it is none. */
uint64_t python_objects_items(struct python_objects *python, const struct python_object *object);

/* "Dataset", "collections.deque". */
void python_objects_type_name(const struct python_type *type, char name[2 * PYTHON_NAME_BYTES]);

/* The type at this address; NULL: there is none. */
struct python_type *python_objects_type(struct python_objects *python, uint64_t addr);

/* The entries of a dictionary's keys. */
struct python_keys {
	uint64_t first; // address of the first entry
	uint64_t step;
	uint64_t count;
	uint64_t key_offset; // in an entry; the value follows
	bool is_split;       // the values stand elsewhere
};
bool python_objects_keys(struct python_objects *python, uint64_t addr, struct python_keys *keys);
bool python_objects_keys_of(struct python_objects *python, const struct python_object *dictionary,
                            struct python_keys *keys);

/* The keys that instances of a class share; 0 = none. */
uint64_t python_objects_cached_keys(struct python_objects *python, struct python_type *type);

/* The text of a string, in UTF-8 and cut. False: it is no string. */
bool python_objects_string(struct python_objects *python, uint64_t addr, char *text, size_t room);

/* The name by which an object holds the word at `at`. item_at: in its buffer; 0 = in itself. */
enum python_edge_kind {
	PYTHON_EDGE_UNKNOWN, // number: offset
	PYTHON_EDGE_KEY,     // name: of the dictionary, as one would write it
	PYTHON_EDGE_KEY_ITSELF,
	PYTHON_EDGE_INDEX,   // number
	PYTHON_EDGE_ELEMENT, // of a set, or a deque
	PYTHON_EDGE_ATTRIBUTE,
	PYTHON_EDGE_LOCAL,     // of the frame in a generator, or of a frame object; function: which
	PYTHON_EDGE_TEMPORARY, // of such a frame: a value on its stack
};
struct python_edge {
	enum python_edge_kind kind;
	enum python_member_role role; // of an attribute
	uint64_t number;
	char name[PYTHON_NAME_BYTES];
	char function[2 * PYTHON_NAME_BYTES]; // "main() (service.py:10)"
};
void python_objects_edge(struct python_objects *python, const struct python_object *object, uint64_t at,
                         uint64_t item_at, struct python_edge *edge);
void python_objects_local(struct python_objects *python, const struct python_frame *frame, uint64_t at,
                          struct python_edge *edge);
/* Is what stands there an argument of its function? Who called that goes on to hold it. */
bool python_objects_is_argument(struct python_objects *python, const struct python_frame *frame, uint64_t at);
/* Is the frame of a library's function? */
bool python_objects_is_of_library(struct python_objects *python, const struct python_frame *frame);

#endif
