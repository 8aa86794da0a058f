/*
 * range_map.c - the live mappings as a treap of disjoint ranges (see range_map.h).
 *
 * Pieces of one mapping that come to stand next to each other again are one node: what is cut and put back, or made writable page by page,
 * takes no more room than before.
 *
 * Nodes come from one reserved array, lazily touched; a node's number is its name. The priority of a node is a hash of its
 * number, so the tree's shape is random and nothing has to be rebalanced.
 *
 * Invariants, tested by number in tests/unit/shim/tables/test_range_map.c:
 *   G1  ranges in the tree are disjoint, not empty, and ordered by start.
 *   G2  pieces[m] is the number of ranges of mapping m in the tree; m is free when it is 0.
 *   G3  all of this is read and written under the lock only.
 *   G4  the end of a node is 0 unless the rest of it is a range of the map, so the nodes alone say what the map holds.
 */
#include "tables/range_map.h"

#include <stddef.h>

#include "base/raw_sys.h"
#include "base/wait_lock.h"
#include "kmem_tables.h"

#define NODES_MAX (1u << 20) // fewer where the address space is limited

struct node {
	uint64_t start;
	uint64_t end;
	uint32_t site;
	uint32_t mapping;
	uint32_t left;
	uint32_t right; // also the free list's link
	uint8_t generation;
};

static void complete(void);
static struct wait_lock lock = WAIT_LOCK_COMPLETED_BY(complete);
static __thread bool is_locked_here __attribute__((tls_model("initial-exec"))); // by this thread, around fork
static struct node *nodes;                                                      // number 0 is no node
static uint32_t *pieces; // by mapping; a mapping's number is that of the node it began with, and stays taken with it
static uint32_t nodes_max;
static bool is_stuck; // no address space for the map: do not ask again
static uint32_t root;
static uint32_t free_list;
static uint32_t used_nodes;
static uint32_t free_count; // of the list

/* Who looks from outside reads what this says. */
KMEM_TABLE_SIGN(sign, KMEM_TABLE_RANGES, &nodes, &root);
#define IS_AS_SIGNED(field) (offsetof(struct node, field) == offsetof(struct kmem_range_node, field))
static_assert(IS_AS_SIGNED(start) && IS_AS_SIGNED(end) && IS_AS_SIGNED(left) && IS_AS_SIGNED(right), "");
static_assert(sizeof(struct node) == sizeof(struct kmem_range_node), "");

/*
 * Around fork. A lock that could not be had is not given back; in the child range_map_clear() frees it anyway. A signal handler may fork
 * in the middle: then its own end gives the lock back, for both.
 */
void
range_map_lock(void)
{
	is_locked_here = is_locked_here || wait_lock_take(&lock);
}

void
range_map_unlock(void)
{
	if (!is_locked_here)
		return;
	is_locked_here = false; // first: a signal handler that forks now is not to give back another thread's
	wait_lock_give(&lock);
}

/* Other handlers of fork run in this thread while it holds the lock for fork, and may map. */
static bool
take(void)
{
	return is_locked_here || wait_lock_take(&lock);
}

static void
give(void)
{
	if (!is_locked_here)
		wait_lock_give(&lock);
}

static uint32_t
priority(uint32_t node)
{
	return node * UINT32_C(0x9e3779b1) ^ node >> 7;
}

static bool
reserve(void)
{
	const size_t each_bytes = sizeof(*nodes) + sizeof(*pieces);
	size_t most = raw_reserve_max() / each_bytes;

	nodes_max = most < NODES_MAX ? (uint32_t)most : NODES_MAX;
	nodes = nodes_max > 1 ? raw_reserve(KMEM_OWN_ADDRESSES, nodes_max * each_bytes, PROT_READ | PROT_WRITE) : NULL;
	is_stuck = nodes == NULL;
	if (!is_stuck)
		pieces = (uint32_t *)(void *)(nodes + nodes_max);
	return !is_stuck;
}

static uint32_t
node_new(void)
{
	uint32_t node = free_list;

	if (nodes == NULL && (is_stuck || !reserve()))
		return 0;
	if (node != 0) {
		free_list = nodes[node].right;
		free_count--;
	} else if (used_nodes + 1 < nodes_max) {
		node = ++used_nodes;
	}
	return node;
}

static void
node_free(uint32_t node)
{
	nodes[node].end = 0; // G4
	nodes[node].right = free_list;
	free_list = node;
	free_count++;
}

/* A range that is not in the tree yet. */
static void
node_set(uint32_t node, struct node range)
{
	uint64_t end = range.end;

	range.end = range.left = range.right = 0;
	nodes[node] = range;
	atomic_signal_fence(memory_order_seq_cst); // a handler may leave us at each instruction
	nodes[node].end = end;                     // G4
}

/* Parts a tree: starts below `start` to *left, the others to *right. */
static void
split(uint32_t tree, uint64_t start, uint32_t *left, uint32_t *right)
{
	if (tree == 0) {
		*left = *right = 0;
	} else if (nodes[tree].start < start) {
		split(nodes[tree].right, start, &nodes[tree].right, right);
		*left = tree;
	} else {
		split(nodes[tree].left, start, left, &nodes[tree].left);
		*right = tree;
	}
}

/* Joins two trees; every start in `left` is below every start in `right`. */
static uint32_t
merge(uint32_t left, uint32_t right)
{
	if (left == 0 || right == 0)
		return left != 0 ? left : right;
	if (priority(left) > priority(right)) {
		nodes[left].right = merge(nodes[left].right, right);
		return left;
	}
	nodes[right].left = merge(left, nodes[right].left);
	return right;
}

static void
insert(uint32_t node)
{
	uint32_t left;
	uint32_t right;

	split(root, nodes[node].start, &left, &right);
	root = merge(merge(left, node), right);
}

/* The last range that starts before `addr`, or 0. */
static uint32_t
find_before(uint64_t addr)
{
	uint32_t best = 0;

	for (uint32_t tree = root; tree != 0;) {
		if (nodes[tree].start < addr) {
			best = tree;
			tree = nodes[tree].right;
		} else {
			tree = nodes[tree].left;
		}
	}
	return best;
}

/* The first range that ends after `addr`, or 0. */
static uint32_t
find_next(uint64_t addr)
{
	uint32_t best = 0;

	for (uint32_t tree = root; tree != 0;) {
		if (nodes[tree].end > addr) {
			best = tree;
			tree = nodes[tree].left;
		} else {
			tree = nodes[tree].right;
		}
	}
	return best;
}

/* Makes `addr` a boundary. False: no node for the second half. */
static bool
cut_at(uint64_t addr)
{
	uint32_t node = find_before(addr);

	if (node == 0 || nodes[node].end <= addr)
		return true;

	uint32_t half = node_new();

	if (half == 0)
		return false;
	struct node range = nodes[node];

	range.start = addr;
	nodes[node].end = addr; // first (G1)
	atomic_signal_fence(memory_order_seq_cst);
	node_set(half, range);
	pieces[nodes[half].mapping]++;
	insert(half);
	return true;
}

static uint32_t
leftmost(uint32_t tree)
{
	while (nodes[tree].left != 0)
		tree = nodes[tree].left;
	return tree;
}

/* A number that no living mapping has; `node` is one that was just taken. */
static uint32_t
mapping_new(uint32_t node)
{
	uint32_t mapping = node;

	while (pieces[mapping] != 0)
		mapping = mapping % (nodes_max - 1) + 1;
	return mapping;
}

/* The number of the mapping, a new one for 0; 0 when there is no node. */
static uint32_t
put_locked(uint64_t start, uint64_t end, uint32_t site, uint8_t generation, uint32_t mapping)
{
	uint32_t node = node_new();

	if (node == 0)
		return 0;
	if (mapping == 0)
		mapping = mapping_new(node);
	node_set(node,
	         (struct node){ .start = start, .end = end, .site = site, .generation = generation, .mapping = mapping });
	pieces[mapping]++;
	insert(node);
	return mapping;
}

/* Takes a node whose range another one has taken over out of the tree. */
static void
remove_node(uint32_t node)
{
	uint32_t left;
	uint32_t right;

	split(root, nodes[node].start, &left, &right);
	split(right, nodes[node].start + 1, &node, &right);
	root = merge(left, right);
	pieces[nodes[node].mapping]--;
	node_free(node);
}

/* mapping 0: any. */
static bool
is_of(uint32_t node, uint32_t site, uint8_t generation, uint32_t mapping)
{
	return node != 0 && nodes[node].site == site && nodes[node].generation == generation &&
	       (mapping == 0 || nodes[node].mapping == mapping);
}

static bool
is_free(uint64_t start, uint64_t end)
{
	uint32_t node = find_next(start);

	return node == 0 || nodes[node].start >= end;
}

/* [start, end), which is not in the map, becomes a part of what stands next to it; of both sides where they are one mapping. */
static bool
join_locked(uint64_t start, uint64_t end, uint32_t site, uint8_t generation, uint32_t mapping)
{
	uint32_t before = find_before(start);
	uint32_t behind = find_next(end);

	if (before != 0 && nodes[before].end != start)
		before = 0;
	if (behind != 0 && nodes[behind].start != end)
		behind = 0;
	if (!is_of(before, site, generation, mapping)) {
		if (!is_of(behind, site, generation, mapping))
			return false;
		nodes[behind].start = start; // G1: there is nothing in between
		return true;
	}
	nodes[before].end = end;
	if (is_of(behind, site, generation, nodes[before].mapping)) {
		nodes[before].end = nodes[behind].end;
		remove_node(behind);
	}
	return true;
}

/* A hook was left while it changed the map: the tree, the free list and the counts are made anew from the nodes (G4). */
static void
complete(void)
{
	uint32_t count = used_nodes;

	root = free_list = free_count = 0;
	for (uint32_t node = 1; node <= count; node++)
		pieces[nodes[node].mapping] = 0;
	for (uint32_t node = 1; node <= count; node++) {
		struct node range = nodes[node];

		if (range.start < range.end &&
		    is_free(range.start, range.end)) { // not free: joined with what stands there (G1)
			nodes[node].left = nodes[node].right = 0;
			pieces[range.mapping]++;
			insert(node);
		} else {
			node_free(node);
		}
	}
}

bool
range_map_put(uint64_t start, uint64_t end, uint32_t site, uint8_t generation)
{
	if (start >= end)
		return true;
	if (!take())
		return false;

	bool is_stored = is_free(start, end) && put_locked(start, end, site, generation, 0) != 0; // G1

	give();
	return is_stored;
}

bool
range_map_extend(uint64_t start, uint64_t end, uint32_t site, uint8_t generation)
{
	if (start >= end || !take())
		return false;

	bool is_joined = is_free(start, end) && join_locked(start, end, site, generation, 0);

	give();
	return is_joined;
}

static struct range
range_of(uint32_t node)
{
	return (struct range){
		.start = nodes[node].start,
		.end = nodes[node].end,
		.site = nodes[node].site,
		.mapping = nodes[node].mapping,
		.generation = nodes[node].generation,
	};
}

bool
range_map_take(uint64_t start, uint64_t end, struct range_pieces *taken)
{
	uint32_t left;
	uint32_t middle;
	uint32_t right;

	taken->count = 0;
	taken->is_more = false;
	if (start >= end)
		return true;
	if (!take())
		return false;
	if (root == 0 || !cut_at(start) || !cut_at(end)) {
		bool is_empty = root == 0;

		give();
		return is_empty;
	}
	split(root, start, &left, &right);
	split(right, end, &middle, &right);
	while (middle != 0 && taken->count < RANGE_PIECES_MAX) {
		uint32_t node = leftmost(middle);
		uint32_t first;

		split(middle, nodes[node].start + 1, &first, &middle); // first is that node alone
		taken->piece[taken->count] = range_of(node);
		taken->piece[taken->count++].is_last_piece = --pieces[nodes[node].mapping] == 0;
		node_free(node);
	}
	taken->is_more = middle != 0;
	root = merge(merge(left, middle), right);
	give();
	return true;
}

/* The pieces of this one's mapping that end after `addr`. */
static void
take_pieces_of(struct range one, uint64_t addr, struct range_pieces *taken)
{
	uint32_t node = find_next(addr);

	taken->count = 0;
	for (; node != 0 && pieces[one.mapping] != 0 && taken->count < RANGE_PIECES_MAX; node = find_next(addr)) {
		addr = nodes[node].end;
		if (!is_of(node, one.site, one.generation, one.mapping)) // the number may be another mapping's by now
			continue;
		taken->piece[taken->count] = range_of(node);
		remove_node(node);
		taken->piece[taken->count++].is_last_piece = pieces[one.mapping] == 0;
	}
	taken->is_more = node != 0 && pieces[one.mapping] != 0;
}

bool
range_map_take_mapping(uint64_t start, struct range_pieces *taken)
{
	taken->count = 0;
	taken->is_more = false;
	if (!take())
		return false;

	uint32_t node = find_next(start);

	if (node != 0 && nodes[node].start == start)
		take_pieces_of(range_of(node), start, taken);
	give();
	return true;
}

bool
range_map_take_slow(struct range_pieces *taken)
{
	struct range last = taken->piece[taken->count - 1];

	if (!take())
		return false;
	take_pieces_of(last, last.end, taken);
	give();
	return true;
}

bool
range_map_next(uint64_t addr, struct range *found)
{
	if (!take())
		return false;

	uint32_t best = find_next(addr);

	*found = best != 0 ? range_of(best) : (struct range){ 0 };
	give();
	return true;
}

/*
 * The mapping that piece i goes back to: its own, or 0 for a new one, when nothing of its own was left and another thread's
 * mapping has got the number since.
 */
static uint32_t
name_again(const struct range_pieces *taken, const uint32_t *names, uint32_t i)
{
	uint32_t mapping = taken->piece[i].mapping;
	bool was_whole = false;

	for (uint32_t k = 0; k < i; k++) {
		if (taken->piece[k].mapping == mapping)
			return names[k];
	}
	for (uint32_t k = i; k < taken->count; k++)
		was_whole |= taken->piece[k].mapping == mapping && taken->piece[k].is_last_piece;
	return was_whole && pieces[mapping] != 0 ? 0 : mapping;
}

bool
range_map_put_back(const struct range_pieces *taken)
{
	uint32_t names[RANGE_PIECES_MAX];

	if (taken->count == 0)
		return true;
	if (!take())
		return false;

	bool has_room = taken->count <= free_count + (nodes_max - 1 - used_nodes);

	for (uint32_t i = 0; i < taken->count; i++)
		has_room &= is_free(taken->piece[i].start, taken->piece[i].end);
	for (uint32_t i = 0; has_room && i < taken->count; i++) {
		const struct range *piece = &taken->piece[i];

		names[i] = name_again(taken, names, i);
		if (names[i] != 0 && join_locked(piece->start, piece->end, piece->site, piece->generation, names[i]))
			continue;
		names[i] = put_locked(piece->start, piece->end, piece->site, piece->generation, names[i]);
	}
	give();
	return has_room;
}

void
range_map_clear(void)
{
	root = free_list = free_count = used_nodes = 0;
	is_stuck = false;
	if (nodes != NULL)
		raw_madvise(nodes, nodes_max * (sizeof(*nodes) + sizeof(*pieces)), MADV_DONTNEED);
	wait_lock_give(&lock); // whoever held it in the parent
}
