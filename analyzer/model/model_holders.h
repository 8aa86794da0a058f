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
struct model_frame;

struct holders_way {
	const char *kind; // "held", "perhaps", "lost", "unseen", "unread", "unfinished"
	// held: from the root to the block; lost: what leads there; unseen: the object with too many references
	const char *text;
	uint64_t samples;      // how many of the line's samples are held in this way
	const char *container; // type of the outermost with many items on the way; "" = none
	uint64_t items;
	const char *grown_at; // where its storage was asked for; "" = not known
	const char *
		call; // "python", "native": its root is a local variable of a library's function, or of native code below Python; ""
	const char *module; // of Python: whose the container is, else whose the root is; "" = none, or the script itself
	const char *grown_file; // of grown_at; "" = not known
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
	uint64_t small_lines;  // they hold less than HOLDERS_SHARE_MIN says
	uint64_t import_lines; // they hold mostly what modules keep that were imported
	uint64_t more_lines;   // they were not asked for
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

extern const char *const model_holders_kinds[]; // the last is NULL
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

/*
 * A way leads through containers. How many bytes of `text` lead to the one that is named, such as "global `hot` of module __main__"? 0
 * = there is no container with many items.
 */
size_t model_holders_container(const struct holders_way *way);

#endif
