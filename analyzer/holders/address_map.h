/*
 * address_map.h - from an address to a number, such as the one of a node.
 *
 * When full  address_map_put() is not called: whoever has the numbers counts them.
 */
#ifndef ADDRESS_MAP_H
#define ADDRESS_MAP_H

#include <stdint.h>

#define ADDRESS_NONE UINT32_MAX

struct address_map {
	uint32_t mask;
	struct address_place *places;
};

/* max: addresses, a power of 2; memory: 32 bytes for each. */
void address_map_make(struct address_map *map, uint32_t max);
void address_map_free(struct address_map *map);
/* ADDRESS_NONE: it is not there. */
uint32_t address_map_find(const struct address_map *map, uint64_t addr);
/* Of an address that is not there. */
void address_map_put(struct address_map *map, uint64_t addr, uint32_t number);

#endif
