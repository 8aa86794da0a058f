/*
 * holder_search.h - who leads to some blocks, and who to those, up to roots?
 *
 * Words lead from node to node; whether one keeps alive what it leads to is judged in one place. They are found in two directions. Backwards: each
 * pass reads all memory that may hold pointers once, and finds the words that lead to the nodes that the pass before found; it climbs one link of a
 * chain. Where a sample has no way after some passes, forwards: from the names that the program has, or from its roots, each block is read once,
 * however long the chain. What only that has reached is idle, until a word leads from there to what was asked for. Large blocks of lines whose
 * blocks hold no pointers are left out (holder_skips.c). The search ends when every sample has a root that says something, when nothing new is
 * found, or when time is up.
 *
 * Memory  HOLDER_NODES_MAX nodes and HOLDER_EDGES_MAX edges, 28 MiB in all, beside what the parts need.
 */
#ifndef HOLDER_SEARCH_H
#define HOLDER_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holders/address_map.h"
#include "holders/graph.h"
#include "holders/holder_lists.h"
#include "holders/holder_skips.h"
#include "holders/process_look.h"
#include "holders/process_modules.h"
#include "holders/python_objects.h"
#include "holders/site_lines.h"
#include "holders/thread_areas.h"
#include "holders/torch_graph.h"

#define HOLDER_NODES_MAX 163840u
#define HOLDER_EDGES_MAX 327680u
#define HOLDER_MAP_MAX 131072u // of their map, which has room for twice as many
#define HOLDER_PASSES_MAX 48u
#define HOLDER_PAGES (UINT64_C(1) << 18)
#define HOLDER_NONE UINT32_MAX
#define HOLDER_GRAPHS 4u
#define HOLDER_HEAD_BYTES 32u // of a block: where a second base class may begin, or what an array has in front

enum holder_kind {
	HOLDER_BLOCK, // of the heap
	HOLDER_SMALL, // of Python's allocator of small objects
	HOLDER_FRAME, // of Python: a root, and so are all below
	HOLDER_STATE, // what Python keeps of a thread
	HOLDER_STATIC,
	HOLDER_THREAD_LOCAL,
	HOLDER_STACK,
	HOLDER_REGISTER,
	HOLDER_MAPPING,
	HOLDER_KINDS
};

/* Objects of Python that end a way. */
enum holder_end {
	HOLDER_END_NONE,
	HOLDER_END_MODULE, // its dictionary
	HOLDER_END_CLASS,
	HOLDER_END_FRAME, // the object of a frame that runs
};

struct holder_node {
	uint64_t start; // of roots the word alone
	uint64_t end;
	struct python_object object;
	uint64_t owner_at;    // the word of its owner that leads here
	uint64_t list_head;   // where the list begins that it is a node of; 0 = none is known
	uint32_t thread;      // of stacks, registers and thread-local memory: index in the process's
	uint32_t site;        // of a block; 0 = unknown
	uint32_t owner;       // whose items stand here; HOLDER_NONE = not known
	uint32_t reached;     // the edge by which the way forwards came; HOLDER_NONE = it did not
	uint32_t own;         // references to itself
	uint32_t seen;        // and words that lead here
	uint32_t first_edge;  // from here; HOLDER_NONE = none
	uint32_t cost;        // of the best way from here to a root; UINT32_MAX = none yet
	uint32_t way_root;    // where that way begins
	uint32_t best;        // the edge of that way; HOLDER_NONE = it is a root itself, or there is none
	uint8_t kind;         // enum holder_kind
	uint8_t root;         // enum holder_end
	bool is_library : 1;  // the names of a module of a library's
	bool is_reached : 1;  // forwards
	bool is_idle : 1;     // from here nothing leads to what was asked for, as far as is known
	bool is_expanded : 1; // who leads to it was looked for
	bool is_again : 1;    // and a word that does may be known already
	bool is_released : 1; // an object stood here that has no references any more
	bool is_wanted : 1;   // a way from here on may be the better one of a sample below
	bool is_guess : 1;    // a word on its way may be left over
	bool is_short : 1;    // that ends with a call, or an iterator
};

/* The word at `at`, in `from`, leads to `to`. */
struct holder_edge {
	uint32_t from;
	uint32_t to;
	uint64_t at;
	uint64_t value;
	uint32_t next; // of the same node
	uint8_t hold;  // enum python_hold
	bool is_gone;  // it turned out to be a place that is not in use
	bool is_short; // from an argument, a frame of a library, or an iterator: others have it, and for longer
	bool is_library;
};

/* Each reads or believes more than the one before, but for the way forwards, where what may be left over is not believed: it leads everywhere. */
enum holder_stage {
	HOLDER_STAGE_NEAR,
	HOLDER_STAGE_FORWARD,
	HOLDER_STAGE_FAR,
	HOLDER_STAGE_INSIDE,   // words that lead far into a block are believed
	HOLDER_STAGE_LEFT_OUT, // what was left out is read
};

struct holder_target {
	uint64_t start;
	uint64_t end;
	uint32_t node;
};

struct holder_search {
	struct process_look *look;
	struct python_objects *python;
	struct process_modules *modules;
	const struct thread_areas *areas;
	const struct site_lines *lines;
	size_t node_count;
	struct holder_node *nodes;
	struct address_map places; // of nodes by their starts
	size_t edge_count;
	struct holder_edge *edges;
	size_t sample_count;
	uint32_t *samples; // nodes that were asked for
	enum holder_stage stage;
	unsigned passes;
	bool is_late; // there was no time for more
	bool is_full; // or no room
	struct holder_lists lists;
	struct holder_skips skips;
	size_t frontier_count;
	struct holder_target *frontier;    // of a pass those to which words are looked for; forwards those from which
	uint32_t reader;                   // forwards, whose words are read; HOLDER_NONE = of a root: each word is a node
	uint64_t words;                    // that were looked at
	struct word_range wanted;          // of a pass: the addresses of its frontier
	uint64_t pages[HOLDER_PAGES / 64]; // and a bit for each page of it, by its last digits: most words lead elsewhere
	struct graph graph;                // of what was found, as it was judged last
	struct torch_graph graphs[HOLDER_GRAPHS]; // of blocks that ways go through, as they were asked for
	size_t graph_count;
};

/* NULL = more graphs were asked for than there is room for. The result stays until the search ends. */
const struct torch_graph *holder_search_graph(struct holder_search *search, uint64_t start);

/* Is there no time left, for the words of ways either? Then what was begun is left as it is. */
bool holder_search_is_over(const struct holder_search *search);
bool holder_is_root(const struct holder_node *node);
/* Of a list, a dictionary or a set: a loop has one for a while. */
bool holder_is_iterator(const struct holder_node *node);
/* The frame that the node is, or has; NULL: it is none. */
const struct python_frame *holder_search_frame(const struct holder_search *search, const struct holder_node *node);

/* After each pass: cost and best of each node, and whether who leads to it is wanted. */
void holder_search_judge(struct holder_search *search);

/* Was everything looked for that may be a better way there, among words that are believed and memory that was read? */
bool holder_search_is_done(const struct holder_search *search, uint32_t sample);

/* The sample and the nodes that lead to it, the nearest first; above: out, of each node the edge by which it was reached. Returns how many. */
size_t holder_search_above(const struct holder_search *search, uint32_t sample, uint32_t *nodes, uint32_t *above,
                           size_t max);

/* Is it an object that the garbage collector does not see, and ways from it lead back to it? */
bool holder_search_is_uncollected(const struct holder_search *search, uint32_t node);

/*
 * Does a node on the way to this sample, or the sample itself, have counted references that were not found? *node: the first such node.
 */
bool holder_search_unseen(struct holder_search *search, uint32_t sample, uint32_t *node, uint64_t *counted,
                          uint64_t *seen);

/* look, python, modules, areas, lines: must live as long. */
void holder_search_begin(struct process_look *look, struct python_objects *python, struct process_modules *modules,
                         const struct thread_areas *areas, const struct site_lines *lines,
                         struct holder_search *search);
/* Each live block, before the run. */
void holder_search_show(struct holder_search *search, const struct live_block *block);
/* Asks for a block, before the run. False: there is no room. */
bool holder_search_ask(struct holder_search *search, const struct live_block *block);
/* Afterwards cost and best of each node are known. */
void holder_search_run(struct holder_search *search);
void holder_search_end(struct holder_search *search);

#endif
