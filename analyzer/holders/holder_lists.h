/*
 * holder_lists.h - where does the doubly linked list begin that a block is a node of?
 *
 * Nodes of such a list begin with two addresses (std::list, TAILQ): of the next one, whose second word leads back here, and of the one before, whose
 * first word does. So is what is no node, where the list begins. Each node is passed once, however many are asked for, and none of a site whose blocks
 * may be too many.
 *
 * When full  HOLDER_LIST_NODES_MAX nodes in all; of others it is not known.
 */
#ifndef HOLDER_LISTS_H
#define HOLDER_LISTS_H

#include <stdint.h>

#include "holders/address_map.h"
#include "holders/process_look.h"

#define HOLDER_LIST_NODES_MAX 16384u // each may cost reading a page

struct holder_lists {
	struct process_look *look;
	uint32_t count;
	uint64_t *heads; // of nodes that were passed; 0 = not known yet
	struct address_map places;
	size_t site_count;
	uint32_t *site_blocks; // of each site, those that were not passed yet
};

/* look: must live as long. */
void holder_lists_begin(struct process_look *look, struct holder_lists *lists);
/* Each live block, before the first question. */
void holder_lists_show(struct holder_lists *lists, const struct live_block *block);
/* The address of the word that leads to the first node, or to the last one; 0 = not known, or it is in no list. */
uint64_t holder_lists_head(struct holder_lists *lists, const struct live_block *block);
void holder_lists_end(struct holder_lists *lists);

#endif
