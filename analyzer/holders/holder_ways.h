/*
 * holder_ways.h - the way from a root to a block, step by step.
 *
 * A way is read while the process stands still. holder_words.h makes its steps known afterwards, with what symbols and debug information say.
 */
#ifndef HOLDER_WAYS_H
#define HOLDER_WAYS_H

#include <stdbool.h>
#include <stdint.h>

#include "holders/holder_search.h"
#include "model/model_holders.h"

#define HOLDER_WAY_STEPS 12u                        // that are shown, with the root; of more the middle is left out
#define HOLDER_WAY_BEGIN (HOLDER_WAY_STEPS / 2 - 1) // of them before it, without the root

#define HOLDER_PLACES_MAX 4u // of a tree: left, right, up
#define HOLDER_TABLES_MAX 3u // of C++ types that are told of blocks that follow each other

/* The word that leads on. */
struct holder_place {
	uint64_t offset; // in its block
	uint64_t into;   // how far into the next one it leads
};

/* One object, or one block, or several that follow each other, and the name by which it holds the next. */
struct holder_step {
	const struct holder_node *node;
	uint64_t items; // UINT64_MAX = no container
	uint32_t grown_site;
	size_t between_count;
	struct holder_place between[HOLDER_PLACES_MAX]; // of blocks that follow each other: of each but the last one
	struct holder_place last;
	const struct python_type *released; // what it was; NULL = not known
	size_t blocks;                      // that follow each other; 0 = in too many ways
	const struct torch_graph *graph;    // NULL = was not asked for
	bool is_alike;                      // all begin with the one table
	size_t table_count;
	uint64_t tables[HOLDER_TABLES_MAX]; // of virtual functions, perhaps: words at the begin of blocks
	struct python_edge edge;
	bool is_storage;   // the edge leads to where the items are, and that is the sample
	bool is_data;      // or to the bytes of an array, which may be an object, too
	bool is_repeated;  // and so do the next ones
	bool is_container; // which is named
};

enum holder_begin {
	HOLDER_BEGINS_AT_ROOT, // symbols tell it
	HOLDER_BEGINS_AS_TOLD, // by what Python knows about the root, or by why there is none
	HOLDER_BEGINS_NOWHERE, // it is lost
};

struct holder_way {
	struct holders_way told;             // but for what symbols say: its steps, and where its container has grown
	uint32_t root;                       // node; of one that is held
	const struct holder_edge *root_edge; // by which it leads on; NULL = it does not
	enum holder_begin begins;
	struct way_step begin; // as it is told
	uint64_t into;         // how far into the first block the root's word leads
	size_t step_count;     // behind the root
	struct holder_step *steps;
	size_t left_out;                // of the middle, behind HOLDER_WAY_BEGIN steps; 0 = none
	const struct python_type *leaf; // what the block is itself; NULL = not told
	uint32_t grown_site;            // of the container's storage; 0 = not known
};

/* The process stands still. texts: what the way says of the program lives there. */
void holder_way_read(struct holder_search *search, uint32_t sample, struct text_pool *texts, struct holder_way *way);
bool holder_step_has_many(const struct holder_step *step);

#endif
