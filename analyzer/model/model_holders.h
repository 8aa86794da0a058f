/*
 * model_holders.h - who keeps the blocks of the largest lines alive, as a look found it.
 *
 * analyzer/holders/ looks; a capture has the result as JSON, which is read here.
 */
#ifndef MODEL_HOLDERS_H
#define MODEL_HOLDERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/domain.h"

struct json_object;
struct text_pool;
struct model;
struct model_site;
struct model_frame;

enum holders_kind {
	HOLDERS_HELD,
	HOLDERS_PERHAPS,    // by a word that may be left over
	HOLDERS_LOST,       // nothing leads there, or lost blocks alone; of Python all counted references were found
	HOLDERS_UNSEEN,     // an object of Python has references that were found nowhere
	HOLDERS_UNREAD,     // nothing leads there in what was read, and there is memory that was not
	HOLDERS_UNFINISHED, // there was no time or room to find it, or the way is very long
	HOLDERS_KINDS
};

/* Roots, those before TEMPORARY such as a person finds in the source, then what may follow them: name in JSON, words. %n: name, %o: of, %c: count. */
#define WAY_STEPS(ROW)                                                                 \
	ROW(LOCAL, "local", "local `%n` of %o")                                            \
	ROW(GLOBAL, "global", "global `%n` of module %o")                                  \
	ROW(ATTRIBUTE, "attribute", "attribute `%n` of class %o")                          \
	ROW(STATIC, "static", "static variable `%n` of %o")                                \
	ROW(THREAD_LOCAL, "thread-local", "thread-local variable `%n` of %o in thread %c") \
	ROW(TEMPORARY, "temporary", "a temporary value of %o?")                            \
	ROW(MODULE, "module", "the names of module %o")                                    \
	ROW(CLASS, "class", "class %o")                                                    \
	ROW(FRAME, "frame", "a frame that runs")                                           \
	ROW(STATE, "state", "Python's state of a thread")                                  \
	ROW(DATA, "data", "data of %o")                                                    \
	ROW(THREAD_DATA, "thread-data", "thread-local data of %o in thread %c")            \
	ROW(THREAD_MEMORY, "thread-memory", "thread-local memory of thread %c")            \
	ROW(STACK, "stack", "the stack of thread %c")                                      \
	ROW(REGISTER, "register", "a register of thread %c")                               \
	ROW(MAPPING, "mapping", "a mapping at %o")                                         \
	ROW(REASON, "reason", "%n") /* why there is no root */                             \
	ROW(OBJECT, "object", "%n") /* of Python */                                        \
	ROW(BLOCK, "block", "block")                                                       \
	ROW(RELEASED, "released", "%n that is being released")                             \
	ROW(MORE, "more", "... %c more ...") /* of the middle, which is left out */        \
	ROW(OTHERS, "others", "...")         /* here ways part */

/* By what an object, or a block, holds the next, from PLACE on by a guess. %m: member, %f: function. */
#define WAY_MEMBERS(ROW)                                                           \
	ROW(BY_NOTHING, "", "")                                                        \
	ROW(BY_ATTRIBUTE, "attribute", " .%m")                                         \
	ROW(BY_ITEM, "item", " [%m]") /* with a key, or an index */                    \
	ROW(BY_KEY, "key", " key %m") /* which it is itself */                         \
	ROW(BY_ANY_KEY, "any-key", " a key")                                           \
	ROW(BY_ELEMENT, "element", " {*}")                                             \
	ROW(BY_LOCAL, "local", ", local `%m` of %f")                                   \
	ROW(BY_MEMBER, "member", " %m") /* of C++ */                                   \
	ROW(BY_OFFSET, "offset", " +%m")                                               \
	ROW(BY_STORAGE, "storage", ": its storage")                                    \
	ROW(BY_ITSELF, "itself", ", which is this block")                              \
	ROW(BY_PLACE, "place", " +%m?") /* of an object whose members are not known */ \
	ROW(BY_TEMPORARY, "temporary", ", a temporary value of %f?")

#define WAY_NUMBER(number, name, words) WAY_##number,
enum way_step_kind { WAY_STEPS(WAY_NUMBER) WAY_STEP_COUNT };
enum way_member { WAY_MEMBERS(WAY_NUMBER) WAY_MEMBER_COUNT };

enum way_repeat { WAY_ONCE, WAY_UNTIL_LAST, WAY_EACH, WAY_REPEATS }; // which of several alike the member is of

struct way_step {
	enum way_step_kind kind;
	const char *name; // of a variable; the type of an object, the types of C++ of a block
	const char *
		of; // where a variable is: its function, module, class or library; the line that asked for a block, "" = not known
	uint64_t
		count; // of an object its items where they are many; bytes of a block; the thread of a root; steps that are left out; of a reason references
	enum way_member by;
	const char *member;
	const char *function; // of WAY_BY_LOCAL and WAY_BY_TEMPORARY
	enum way_repeat repeat;
	uint64_t nodes;    // of a graph of PyTorch that begins here
	bool is_graph_cut; // there are more
	bool is_container; // which is named
};

enum way_call { WAY_CALL_NONE, WAY_CALL_PYTHON, WAY_CALL_NATIVE, WAY_CALLS };

struct holders_way {
	enum holders_kind kind;
	const char *text;      // all of it, in words; of a look before there were steps all that is known
	uint64_t samples;      // how many of the line's samples are held in this way
	const char *container; // type of the outermost with many items on the way; "" = none
	uint64_t items;
	const char *grown_at; // where its storage was asked for; "" = not known
	enum way_call call;   // its root is a local variable of a library's function, or of native code below Python
	const char *module;   // of Python: whose the container is, else whose the root is; "" = none, or the script itself
	const char *grown_file;  // of grown_at; "" = not known
	const char *uncollected; // of a circle, a type that the garbage collector does not see; "" = none
	size_t step_count; // held: from the root to the block; lost: what leads there; unseen: the object; unfinished: why
	struct way_step *steps;
};

struct holders_line {
	const char *place;
	const char *file;
	const char *function;
	uint32_t line; // 0 = unknown
	uint64_t bytes;
	uint64_t blocks;
	bool is_estimated; // both: they are small Python objects (before version 12: some are)
	uint64_t samples;
	size_t way_count;
	struct holders_way *ways; // those of most samples first
};

struct holders {
	struct text_pool *texts; // of its lines, and they
	uint32_t pid;
	uint64_t stopped_us;
	uint64_t read_bytes;
	uint64_t left_out_bytes; // of blocks that hold no pointers
	uint64_t shared_bytes;   // with other processes: not read
	uint32_t passes;
	/* Lines with live blocks that are not below. */
	uint64_t small_lines;    // they hold less than HOLDERS_SHARE_MIN says
	uint64_t released_lines; // most of them was released when the program stood still
	uint64_t import_lines;   // they hold mostly what modules keep that were imported
	uint64_t more_lines;     // they were not asked for
	bool is_unfinished;
	const char *python; // why its objects are not known by name; "" = they are, or there is none
	const char *why;    // nobody looked; "" = somebody did
	size_t line_count;
	struct holders_line *lines; // the largest first
	/* The look that a capture has. */
	uint64_t sequence; // 1, 2, ...
	uint64_t monotonic_ns;
	uint64_t volume_bytes; // allocated in all, then
	uint64_t leak_bytes;   // live in all then, where a line was a leak; 0 = the guard was passed
};

#define MODEL_HOLDERS_SCHEMA 1
#define HOLDERS_SHARE_MIN 64 // of all that is live: lines with less say nothing

extern const struct json_object model_holders_object;
extern const struct json_object model_way_object; // of struct holders_way

/* All that it points to is to live in the pool. */
struct holders model_holders_made(uint32_t pid);
/* text: JSON as `kmemshim schema holders` says, from a capture. NULL: it is something else. Owned by the caller. */
struct holders *model_holders_read(const char *text, size_t bytes);
void model_holders_free(struct holders *holders); // what it holds, not itself; NULL is legal

/*
 * What is known of this line of code from the last look at a process; NULL: it was not one of the largest lines, or nobody looked. A
 * look examines blocks of the heap and small Python objects: of other memory, such as what a library maps, nothing is known.
 */
const struct holders_line *model_holders_of(const struct model *model, const struct model_frame *where,
                                            enum domain_kind kind);
/* Are they objects of Python's to which nothing leads but themselves, which their counters keep alive? A lost block of C is none. */
bool model_holders_are_circles(const struct holders_way *way);
/* Does it go through what a transport of asyncio has still to write, as of a writer that nobody drains? */
bool model_holders_is_unsent(const struct holders_way *way);
/* Was the program letting go of what the first line holds? */
bool model_holders_came_late(const struct holders *holders);
/* Did another line than the site's ask for the container's storage? False where that is not known. */
bool model_holders_is_grown_elsewhere(const struct holders_way *way, const struct model_site *site);
/* Does no name of the program lead there, but a stack, a register or native code below Python: of a call that goes on? */
bool model_holders_is_of_call(const struct holders_way *way);
/* Is its root a local variable of this function? */
bool model_holders_is_local_of(const struct holders_way *way, const char *function);
/* The look that a line is of. */
const struct holders *model_holders_look(const struct model *model, const struct holders_line *line);

/* Of ways in the order of their samples: puts first what is told of the line. That is one that was found, where it holds a quarter. */
void model_holders_put_found_first(struct holders_line *line);

/* The way in which most of its samples are held; NULL = nothing is known: of no way there are many. */
const struct holders_way *model_holders_way(const struct holders_line *line);

/* Which of its steps is the container; 0 = there is none with many items. */
size_t model_holders_container(const struct holders_way *way);
/* The first step that is not known for sure; their number: all are. */
size_t model_holders_sure(const struct holders_way *way);

/* Without members. name, of: must live as long. */
struct way_step model_way_step(enum way_step_kind kind, const char *name, const char *of);

/* `count` steps from `first` on, in words; is_cut: without by what the last one holds the next. The caller frees them. */
char *model_way_words(const struct holders_way *way, size_t first, size_t count, bool is_cut);
/* Do both say the same but for how many there are? */
bool model_way_steps_are_alike(const struct way_step *a, const struct way_step *b);
/* "grad_fn chain of at least 3,187 nodes"; the caller frees it. */
char *model_way_graph(const struct way_step *step);

/* What holds it: "by global `x` of module m -> list of 30 [*]  (3 of 32 samples)". NULL = it was not found. The caller frees it. */
char *model_way_sentence(const struct holders_way *way, uint64_t samples);

const char *model_holders_kind(unsigned number);
const char *model_way_step_kind(unsigned number);
const char *model_way_member(unsigned number);
const char *model_way_repeat(unsigned number);
const char *model_way_call(unsigned number);

#endif
