/*
 * site_key.h - which site of another run, build or machine is this one?
 *
 * A key is 64 bits. The high 48 are a hash of names: the domain, and the frames from the allocation up to the first frame of the user's
 * own code and two more. It contains no line, no address, no folder of the user's, no version and no name of the program. Of a function
 * it has no class and no namespace, because Python before 3.11 and some compilers do not tell them. So the same code keeps its key when
 * lines above it move, and when it is rebuilt or checked out elsewhere. docs/diff.md has measurements. The low 16 bits tell sites apart
 * that share those names (two lines of one function, other callers further out), in the order of their lines; they change when a sibling
 * comes or goes. So comparisons between runs add up all sites with the same high part: site_key_family().
 */
#ifndef SITE_KEY_H
#define SITE_KEY_H

#include <stddef.h>
#include <stdint.h>

#include "model/model.h"

#define SITE_KEY_ORDINAL_BITS 16

/* Sets `key` of every site from its frames, where, domain; needs nothing else of them. Never 0. */
void site_key_assign(struct model_site *sites, size_t count, const struct model_domain *domains);

/* The frame that `where` is in. For a comprehension it is the one around it, of which it is a part since Python 3.12. */
const struct model_frame *site_key_function_of(const struct model_site *site);

/* Sets `place_key` and `qualified_key` of every site from `where` and its frames; 0 where that is not known. */
void site_key_assign_places(struct model_site *sites, size_t count);

/*
 * A hash that families of one domain share when they differ in one frame alone: the user's own, its caller, or the caller of that. By it
 * a function is known that was renamed, or moved to another file. 0: the site has no such frame.
 */
#define SITE_KEY_LIKENESSES 3
void site_key_likeness(const struct model_site *site, const char *domain, uint64_t likeness[SITE_KEY_LIKENESSES]);

/* The part of a key that survives changes elsewhere in the program; never 0. */
static inline uint64_t
site_key_family(uint64_t key)
{
	return key >> SITE_KEY_ORDINAL_BITS;
}

#endif
