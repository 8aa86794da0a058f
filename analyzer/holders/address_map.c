/*
 * address_map.c - a hash with open addressing (see address_map.h).
 */
#include "holders/address_map.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/memory.h"

struct address_place {
	uint64_t addr;
	uint32_t number;
	bool is_used;
};

void
address_map_make(struct address_map *map, uint32_t max)
{
	map->mask = 2 * max - 1;
	map->places = memory_zeroed(2 * (size_t)max, sizeof(*map->places));
}

void
address_map_free(struct address_map *map)
{
	free(map->places);
}

/* Where it is, or would be. */
static struct address_place *
place_of(const struct address_map *map, uint64_t addr)
{
	uint32_t i = (uint32_t)(addr * UINT64_C(0x9e3779b97f4a7c15) >> 32);

	while (map->places[i & map->mask].is_used && map->places[i & map->mask].addr != addr)
		i++;
	return &map->places[i & map->mask];
}

uint32_t
address_map_find(const struct address_map *map, uint64_t addr)
{
	const struct address_place *place = place_of(map, addr);

	return place->is_used ? place->number : ADDRESS_NONE;
}

void
address_map_put(struct address_map *map, uint64_t addr, uint32_t number)
{
	*place_of(map, addr) = (struct address_place){ addr, number, true };
}
