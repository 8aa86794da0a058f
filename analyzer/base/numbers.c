/* numbers.c - see numbers.h. */
#include "base/numbers.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"

const struct number *
numbers_of(struct number **numbers, const void *key, size_t bytes, bool *is_new)
{
	struct number *found;

	HASH_FIND(hh, *numbers, key, bytes, found);
	if (is_new != NULL)
		*is_new = found == NULL;
	if (found != NULL)
		return found;
	found = memory_zeroed(1, sizeof(*found) + bytes);
	memcpy(found->key, key, bytes);
	found->number = HASH_COUNT(*numbers);
	HASH_ADD_KEYPTR(hh, *numbers, found->key, bytes, found);
	return found;
}

uint32_t
numbers_of_text(struct number **numbers, const char *text)
{
	return numbers_of(numbers, text, strlen(text) + 1, NULL)->number;
}

void
numbers_free(struct number **numbers)
{
	HASH_FREE(*numbers, free);
}
