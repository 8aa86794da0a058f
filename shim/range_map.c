/*
 * range_map.c - the live mappings as a treap of disjoint ranges (see range_map.h).
 *
 * Nodes come from one reserved array, lazily touched; a node's number is its name. The priority of a node is a hash of its
 * number, so the tree's shape is random and nothing has to be rebalanced.
 *
 * Invariants, tested by number in tests/unit/test_range_map.c:
 *   G1  ranges in the tree are disjoint, not empty, and ordered by start.
 *   G2  pieces[m] is the number of ranges of mapping m in the tree; m is free when it is 0.
 *   G3  all of this is read and written under the lock only.
 */
#include "range_map.h"

#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <time.h>

#include "raw_sys.h"

#define NODES_MAX (1u << 20) // fewer where the address space is limited
#define SPINS_BEFORE_YIELD 64
#define WAIT_NS_MAX UINT64_C(1000000000) // a thread that has the lock may not get a CPU for long

struct node {
	uint64_t start;
	uint64_t end;
	uint32_t site;
	uint32_t mapping;
	uint32_t left;
	uint32_t right;      // also the free list's link
	uint8_t generation;
};

static _Atomic uint32_t lock;  // odd: held. It goes up by one at each step, so that a hold has a number.
static _Atomic uint32_t stuck; // a hold that was waited for in vain: nobody waits for it again
static __thread bool is_locked_here __attribute__((tls_model("initial-exec"))); // by this thread
static __thread bool is_locked_for_fork __attribute__((tls_model("initial-exec")));
static struct node *nodes; // number 0 is no node
static uint32_t *pieces;   // by mapping; a mapping's number is that of the node it began with, and stays taken with it
static uint32_t nodes_max;
static bool is_stuck;      // no address space for the map: do not ask again
static uint32_t root;
static uint32_t free_list;
static uint32_t used_nodes;

static uint64_t
now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now); // vdso: no system call
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Whoever had the lock may have left by longjmp, out of a signal handler: that costs one wait, and the events after it. */
static bool
acquire_lock(void)
{
	uint64_t give_up_ns = 0;

	if (is_locked_here)
		return false;
	for (unsigned tries = 0;; tries++) {
		uint32_t seen = atomic_load_explicit(&lock, memory_order_relaxed);

		/* acquire and release: the map's contents travel with the lock (G3). relaxed, else: it guards nothing. */
		if ((seen & 1) == 0 && atomic_compare_exchange_strong_explicit(&lock, &seen, seen + 1, memory_order_acquire,
		                                                               memory_order_relaxed)) {
			is_locked_here = true;
			return true;
		}
		if ((seen & 1) != 0 && seen == atomic_load_explicit(&stuck, memory_order_relaxed))
			return false;
		if (tries < SPINS_BEFORE_YIELD)
			continue;
		if (give_up_ns == 0) {
			give_up_ns = now_ns() + WAIT_NS_MAX;
		} else if (now_ns() > give_up_ns) {
			if ((seen & 1) != 0)
				atomic_store_explicit(&stuck, seen, memory_order_relaxed);
			return false;
		}
		sched_yield();
	}
}

static void
release_lock(void)
{
	if (!is_locked_here) // forked by a signal handler that interrupted us, and made new meanwhile
		return;
	is_locked_here = false;
	/* Only who holds it changes it. */
	atomic_store_explicit(&lock, atomic_load_explicit(&lock, memory_order_relaxed) + 1, memory_order_release);
}

/* Around fork. A lock that could not be had is not given back; in the child range_map_clear() frees it anyway. */
void
range_map_lock(void)
{
	is_locked_for_fork = acquire_lock();
}

void
range_map_unlock(void)
{
	if (is_locked_for_fork)
		release_lock();
	is_locked_for_fork = false;
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
	nodes = nodes_max > 1 ? raw_reserve(nodes_max * each_bytes, PROT_READ | PROT_WRITE) : NULL;
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
	if (node != 0)
		free_list = nodes[node].right;
	else if (used_nodes + 1 < nodes_max)
		node = ++used_nodes;
	return node;
}

static void
node_free(uint32_t node)
{
	nodes[node].right = free_list;
	free_list = node;
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

/* The range that contains the byte before `addr` and reaches past it, or 0. */
static uint32_t
find_across(uint64_t addr)
{
	uint32_t tree = root;
	uint32_t best = 0;

	while (tree != 0) {
		if (nodes[tree].start < addr) {
			best = tree;
			tree = nodes[tree].right;
		} else {
			tree = nodes[tree].left;
		}
	}
	return best != 0 && nodes[best].end > addr ? best : 0;
}

/* Makes `addr` a boundary. False: no node for the second half. */
static bool
cut_at(uint64_t addr)
{
	uint32_t node = find_across(addr);
	uint32_t half;

	if (node == 0)
		return true;
	half = node_new();
	if (half == 0)
		return false;
	nodes[half] = nodes[node];
	nodes[half].start = addr;
	nodes[half].left = nodes[half].right = 0;
	nodes[node].end = addr;
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
	nodes[node] = (struct node){ .start = start, .end = end, .site = site, .generation = generation };
	if (mapping == 0)
		mapping = mapping_new(node);
	nodes[node].mapping = mapping;
	pieces[mapping]++;
	insert(node);
	return mapping;
}

bool
range_map_put(uint64_t start, uint64_t end, uint32_t site, uint8_t generation)
{
	bool is_stored;

	if (start >= end)
		return true;
	if (!acquire_lock())
		return false;
	is_stored = put_locked(start, end, site, generation, 0) != 0;
	release_lock();
	return is_stored;
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
	if (!acquire_lock())
		return false;
	if (root == 0 || !cut_at(start) || !cut_at(end)) {
		bool is_empty = root == 0;

		release_lock();
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
	release_lock();
	return true;
}

bool
range_map_next(uint64_t addr, struct range *found)
{
	uint32_t tree;
	uint32_t best = 0;

	if (!acquire_lock())
		return false;
	for (tree = root; tree != 0;) {
		if (nodes[tree].end > addr) {
			best = tree;
			tree = nodes[tree].left;
		} else {
			tree = nodes[tree].right;
		}
	}
	if (best != 0)
		*found = range_of(best);
	release_lock();
	return best != 0;
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
	bool is_stored = true;

	if (taken->count == 0)
		return true;
	if (!acquire_lock())
		return false;
	for (uint32_t i = 0; i < taken->count; i++) {
		const struct range *piece = &taken->piece[i];

		names[i] = name_again(taken, names, i);
		names[i] = put_locked(piece->start, piece->end, piece->site, piece->generation, names[i]);
		is_stored &= names[i] != 0;
	}
	release_lock();
	return is_stored;
}

void
range_map_clear(void)
{
	root = free_list = used_nodes = 0;
	is_stuck = false;
	if (nodes != NULL)
		raw_madvise(nodes, nodes_max * (sizeof(*nodes) + sizeof(*pieces)), MADV_DONTNEED);
	is_locked_here = false;
	atomic_store_explicit(&lock, 0, memory_order_relaxed); // whoever held it in the parent
	atomic_store_explicit(&stuck, 0, memory_order_relaxed);
}
