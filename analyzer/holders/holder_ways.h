/*
 * holder_ways.h - the way from a root to a block, in words.
 *
 *     global `bus` of module __main__ -> Bus ._handlers -> dict ['message'] -> list of 9,000 [*] -> function .__closure__ -> ...
 *
 * Python's names are read while the process stands still. What symbols say about the root is put in front afterwards (holder_roots.h).
 */
#ifndef HOLDER_WAYS_H
#define HOLDER_WAYS_H

#include <stdbool.h>
#include <stdint.h>

#include "holders/holder_search.h"
#include "holders/site_lines.h"

#define HOLDER_WAY_STEPS 12u // that are shown; of more the middle is left out

/* Marks in texts, to be replaced when the process goes on again, by what debug information and symbols say: see holder_words_told(). */
#define HOLDER_TYPE_MARK '\x01'   // 16 hexadecimal digits follow, of what may be a table of virtual functions
#define HOLDER_MEMBER_MARK '\x02' // of a block, or of blocks that follow each other: HOLDER_MEMBER_FORMAT
#define HOLDER_GRAPH_MARK \
	'\x04' // "%x" follows: was not all counted? Then ",%x:%x" of each table and how many objects have it, and ";"
#define HOLDER_ROOT_MARK '\x03' // "%x;" follows: how far into the first block its word leads

/*
 * How many blocks there are (0: they lead to each other in too many ways). Whether all have the type that the mark above names. Of the
 * word in the last block that leads on: its offset, and how far into the next block it leads. Then the same two, as HOLDER_PLACE_FORMAT,
 * for each way in which the blocks lead to each other.
 */
#define HOLDER_MEMBER_FORMAT "%zx,%x,%" PRIx64 ",%" PRIx64
#define HOLDER_PLACE_FORMAT ",%" PRIx64 ",%" PRIx64
#define HOLDER_PLACES_MAX 4u // of a tree: left, right, up

enum holder_way_kind {
	HOLDER_WAY_HELD,
	HOLDER_WAY_PERHAPS,    // by a word that may be left over
	HOLDER_WAY_LOST,       // nothing leads there, or lost blocks alone; of Python all counted references were found
	HOLDER_WAY_UNSEEN,     // an object of Python has references that were found nowhere
	HOLDER_WAY_UNREAD,     // nothing leads there in what was read, and there is memory that was not
	HOLDER_WAY_UNFINISHED, // there was no time or room to find it, or the way is very long
	HOLDER_WAY_KINDS
};

struct holder_way {
	enum holder_way_kind kind;
	uint32_t root;      // node; of one that is held
	uint32_t root_edge; // by which it leads on; HOLDER_NONE = it does not
	const char *call;   // as struct holders_way has it
	bool has_root_text; // it stands in the texts already
	char *text;         // behind the root; "" = the root leads to the block. With marks: see holder_words_told()
	char *key;          // the same without what differs from sample to sample: ways with one key are one
	char container[2 * PYTHON_NAME_BYTES]; // type of the outermost with many items on the way; "" = none
	uint64_t items;
	uint32_t grown_site; // of its storage; 0 = not known
};

/* What the words need beside the search. */
struct holder_words {
	const struct site_lines *lines;
	bool is_private; // keys of dictionaries are left out
};

/* The process stands still. */
void holder_way_read(struct holder_search *search, uint32_t sample, const struct holder_words *with,
                     struct holder_way *way);
void holder_way_free(struct holder_way *way);

#endif
