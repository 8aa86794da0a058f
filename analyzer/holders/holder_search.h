/*
 * holder_search.h - from some blocks backwards: who leads to them, and who to those, up to roots?
 *
 * Each pass reads all memory that may hold pointers once, and finds the words that lead to the nodes that the pass before found. A word
 * in an object of Python counts only where that object keeps something alive; any other word in a live block, or in a root, counts as it
 * is. Large blocks of lines whose blocks hold no pointers are left out (holder_skips.c). Each pass climbs one link of a chain: where a sample has
 * no way after some passes, the search goes forwards from the names that the program has (holder_forward.c). The search ends when every
 * sample has a root that says something, when nothing new is found, or when time is up.
 *
 * Memory  HOLDER_NODES_MAX nodes and HOLDER_EDGES_MAX edges, 15 MiB in all, beside what the parts need; 9 MiB while it goes forwards.
 */
#ifndef HOLDER_SEARCH_H
#define HOLDER_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holders/address_map.h"
#include "holders/holder_lists.h"
#include "holders/holder_skips.h"
#include "holders/process_look.h"
#include "holders/process_modules.h"
#include "holders/python_objects.h"
#include "holders/site_lines.h"
#include "holders/thread_areas.h"
#include "holders/torch_graph.h"

#define HOLDER_NODES_MAX 65536u
#define HOLDER_EDGES_MAX 262144u
#define HOLDER_PASSES_MAX 48u
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
	enum holder_kind kind;
	enum holder_end root;
	uint32_t thread; // of stacks, registers and thread-local memory: index in the process's
	uint32_t site;   // of a block; 0 = unknown
	struct python_object object;
	bool is_library; // the names of a module of a library's
	bool is_led;     // holder_search_lead() told of a word that leads here
	bool is_sample;
	bool is_expanded;    // who leads to it was looked for
	bool is_released;    // an object stood here that has no references any more
	uint32_t owner;      // whose items stand here; HOLDER_NONE = not known
	uint64_t owner_at;   // its word that leads here
	uint32_t own;        // references to itself
	uint64_t list_head;  // where the list begins that it is a node of; 0 = none is known
	uint32_t first_edge; // from here; HOLDER_NONE = none
	bool is_wanted;      // a way from here on may be the better one of a sample below
	uint32_t cost;       // of the best way from here to a root; UINT32_MAX = none yet
	uint32_t way_root;   // where that way begins
	bool is_guess;       // a word on it may be left over
	bool is_short;       // it ends with a call, or an iterator
	uint32_t best;       // the edge of that way; HOLDER_NONE = it is a root itself, or there is none
};

/* The word at `at`, in `from`, leads to `to`. */
struct holder_edge {
	uint32_t from;
	uint32_t to;
	uint64_t at;
	uint64_t value;
	bool is_gone;  // it turned out to be a place that is not in use
	uint8_t hold;  // enum python_hold
	bool is_short; // from an argument, a frame of a library, or an iterator: others have it, and for longer
	bool is_library;
	uint32_t next; // of the same node
};

/* Each reads or believes more than the one before. */
enum holder_stage {
	HOLDER_STAGE_NEAR,
	HOLDER_STAGE_NAMES,    // from names forwards, too
	HOLDER_STAGE_INSIDE,   // words that lead far into a block are believed
	HOLDER_STAGE_LEFT_OUT, // what was left out is read
};

struct holder_search {
	struct process_look *look;
	struct python_objects *python;
	struct process_modules *modules;
	const struct thread_areas *areas;
	const struct site_lines *lines;
	uint64_t deadline_ns;       // of passes
	uint64_t words_deadline_ns; // of what is read for the ways' words
	size_t node_count;
	struct holder_node *nodes;
	struct address_map places; // of nodes by their starts
	size_t edge_count;
	struct holder_edge *edges;
	size_t sample_count;
	const uint32_t *samples; // nodes
	enum holder_stage stage;
	unsigned passes;
	bool is_late; // there was no time for more
	bool is_full; // or no room
	struct holder_lists lists;
	struct holder_skips skips;
	struct holder_pass *pass;
	struct torch_graph graphs[HOLDER_GRAPHS]; // of blocks that ways go through, as they were asked for
	size_t graph_count;
};

/* From names forwards, to nodes of which no way is known: for chains that are longer than passes go. */
void holder_search_go_forward(struct holder_search *search);

/* For parts of the search. The node in which this word stands; HOLDER_NONE: in nothing that is alive. */
uint32_t holder_search_node_at(struct holder_search *search, uint64_t at);
/* The node there, to which a way is wanted; NULL: there is none. */
const struct holder_node *holder_search_wanted(const struct holder_search *search, uint64_t start);
/* Does a way end at this object? */
bool holder_search_ends_at(struct holder_search *search, const struct python_object *object);
/* The word at `at`, in `from`, is seen to lead to `to`. */
void holder_search_lead(struct holder_search *search, uint32_t from, uint32_t to, uint64_t at, uint64_t value);
/* NULL = more graphs were asked for than there is room for. The result stays until the search ends. */
const struct torch_graph *holder_search_graph(struct holder_search *search, uint64_t start);

bool holder_search_is_late(struct holder_search *search);
/* And for the words of ways? Then what was begun is left as it is. */
bool holder_search_is_over(const struct holder_search *search);
bool holder_is_root(const struct holder_node *node);
/* Of a list, a dictionary or a set: a loop has one for a while. */
bool holder_is_iterator(const struct holder_node *node);
/* The frame that the node is, or has; NULL: it is none. */
const struct python_frame *holder_search_frame(const struct holder_search *search, const struct holder_node *node);

/* After each pass: cost and best of each node, and whether who leads to it is wanted. */
void holder_search_judge(struct holder_search *search);

/* By which its best way leads here; NULL = it is a root itself, or there is none. */
const struct holder_edge *holder_search_best(const struct holder_search *search, uint32_t node);

/* Was everything looked for that may be a better way there, among words that are believed and memory that was read? */
bool holder_search_is_done(const struct holder_search *search, uint32_t sample);

/* The sample and the nodes that lead to it, the nearest first; above: out, of each node the edge by which it was reached. Returns how many. */
size_t holder_search_above(const struct holder_search *search, uint32_t sample, uint32_t *nodes, uint32_t *above,
                           size_t max);

/*
 * Does a node on the way to this sample, or the sample itself, have counted references that were not found? *node: the first such node.
 */
bool holder_search_unseen(struct holder_search *search, uint32_t sample, uint32_t *node, uint64_t *counted,
                          uint64_t *seen);

/* look, python, modules, areas, lines: must live as long. */
void holder_search_begin(struct process_look *look, struct python_objects *python, struct process_modules *modules,
                         const struct thread_areas *areas, const struct site_lines *lines, uint64_t deadline_ns,
                         struct holder_search *search);
/* Each live block, before the run. */
void holder_search_show(struct holder_search *search, const struct live_block *block);
/* The node of a block; HOLDER_NONE = there is no room. */
uint32_t holder_search_add(struct holder_search *search, const struct live_block *block);
/* samples: of the caller; afterwards cost and best of each node are known. */
void holder_search_run(struct holder_search *search, const uint32_t *samples, size_t count);
void holder_search_end(struct holder_search *search);

#endif
