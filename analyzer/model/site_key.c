/*
 * site_key.c - which site of another run, build or machine is this one?
 *
 * The same stacks give the same keys in any order of sites.
 *
 * Context     once per load.
 * When failing  it cannot; sites without frames share one family per domain.
 */
#include "model/site_key.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/order.h"
#include "base/text_start.h"
#include "base/items.h"

#define FRAMES_BEYOND_USER 2 // callers of the first user frame that belong to a site's identity
#define FRAMES_WITHOUT_USER 12
#define FROZEN "<frozen "
#define LEFT_OUT_NONE UINT32_MAX
#define HASH_START UINT64_C(14695981039346656037) // FNV-1a, 64 bits
#define HASH_PRIME UINT64_C(1099511628211)

static uint64_t
hash_bytes(uint64_t hash, const char *text, size_t count)
{
	for (size_t i = 0; i < count; i++)
		hash = (hash ^ (unsigned char)text[i]) * HASH_PRIME;
	return hash;
}

/* The separator keeps ("ab", "c") and ("a", "bc") apart. */
static uint64_t
hash_text(uint64_t hash, const char *text, size_t count)
{
	return hash_bytes(hash_bytes(hash, text, count), "", 1);
}

/* "<frozen importlib.util>" as "/importlib/util.py", which it is in versions that do not freeze it. */
static uint64_t
hash_frozen(uint64_t hash, const char *name)
{
	hash = hash_bytes(hash, "/", 1);
	for (; *name != '\0' && *name != '>'; name++)
		hash = hash_bytes(hash, *name == '.' ? "/" : name, 1);
	return hash_text(hash, ".py", 3);
}

/*
 * A Python file without what differs between checkouts, users and interpreters: below site-packages or the
 * standard library the path from there; else the last component, two when it says nothing ("__init__.py").
 * "<ipython-input-N-HASH>" loses N: running a cell again is the same code.
 */
static uint64_t
hash_python_file(uint64_t hash, const char *file)
{
	static const char *const roots[] = { "/site-packages/", "/dist-packages/", "/lib/python3" };
	const char *name = strrchr(file, '/');

	for (size_t i = 0; i < sizeof(roots) / sizeof(roots[0]); i++) {
		const char *found = strstr(file, roots[i]);

		if (found == NULL)
			continue;
		found = strchr(found + strlen(roots[i]) - 1, '/');
		if (found != NULL)
			return hash_text(hash, found, strlen(found));
	}
	if (text_starts(file, FROZEN))
		return hash_frozen(hash, file + strlen(FROZEN));
	if (strncmp(file, "<ipython-input-", 15) == 0) {
		const char *text_hash = strchr(file + 15, '-');

		if (text_hash != NULL)
			return hash_text(hash, text_hash, strlen(text_hash));
	}
	if (name == NULL)
		return hash_text(hash, file, strlen(file));
	if (strncmp(name, "/__", 3) == 0) {
		while (name > file && name[-1] != '/')
			name--;
	} else {
		name++;
	}
	return hash_text(hash, name, strlen(name));
}

/*
 * "libfoo-1a2b3c4d.so.1.2" is "libfoo.so": without the version, and without the hash that wheel builders put in. What is no library is
 * the program: its name does not count, since it may carry a commit or a version, and which programs are compared is decided elsewhere.
 */
static uint64_t
hash_module(uint64_t hash, const char *module)
{
	const char *suffix = strstr(module, ".so");
	size_t length = suffix != NULL ? (size_t)(suffix - module) : 0;
	size_t digits = 0;

	while (digits < length && isxdigit((unsigned char)module[length - 1 - digits]))
		digits++;
	if (digits == 8 && length > 9 && module[length - 9] == '-')
		length -= 9;
	return hash_text(hash, module, length);
}

/*
 * The name without its namespaces and classes, which some compilers leave out where nothing else can call it. "{{closure}}" keeps the
 * name of the function that it is in.
 */
static const char *
unqualified_native(const char *function)
{
	const char *start = function;
	const char *before = function;
	unsigned depth = 0;

	for (const char *at = function; *at != '\0' && strncmp(start, "operator", 8) != 0; at++) {
		if (*at == '<' || *at == '(') {
			depth++;
		} else if ((*at == '>' || *at == ')') && depth > 0) {
			depth--;
		} else if (depth == 0 && at[0] == ':' && at[1] == ':' && at[2] != '\0') {
			if (*start != '{')
				before = start;
			start = at + 2;
			at++;
		}
	}
	return *start == '{' ? before : start;
}

/* A native function without namespaces, classes, template arguments and what compilers append to copies (".part.0", ".isra.1"). */
static uint64_t
hash_native_function(uint64_t hash, const char *function)
{
	unsigned depth = 0;

	function = unqualified_native(function);
	if (strncmp(function, "operator", 8) == 0)
		return hash_text(hash, function, strlen(function));
	for (const char *at = function; *at != '\0'; at++) {
		if (*at == '<') {
			depth++;
		} else if (*at == '>' && depth > 0) {
			depth--;
		} else if (depth == 0) {
			if (*at == '.' && at > function)
				break;
			hash = hash_bytes(hash, at, 1);
		}
	}
	return hash_bytes(hash, "", 1);
}

/* "Store.fill" is "fill", "make.<locals>.<lambda>" is "<lambda>": before 3.11 Python has no qualified names. */
static const char *
unqualified(const char *function)
{
	const char *dot = strrchr(function, '.');

	return dot != NULL && dot[1] != '\0' ? dot + 1 : function;
}

static uint64_t
hash_frame(const struct model_frame *frame)
{
	uint64_t hash = HASH_START;

	if (frame->kind == MODEL_FRAME_PYTHON) {
		const char *name = unqualified(frame->function);

		hash = hash_bytes(hash, "P", 1);
		hash = hash_python_file(hash, frame->file);
		return hash_text(hash, name, strlen(name));
	}
	hash = hash_bytes(hash, "N", 1);
	hash = hash_module(hash, frame->module);
	return hash_native_function(hash, frame->function);
}

/* Stacks share most frames, and equal frames are one object: so nearly every name is hashed only once. */
#define CACHE_SLOTS 8192
struct frame_cache {
	const struct model_frame *frame;
	uint64_t hash;
};

static uint64_t
cached_hash(struct frame_cache *cache, const struct model_frame *frame)
{
	if (cache == NULL)
		return hash_frame(frame);

	struct frame_cache *slot = &cache[(uintptr_t)frame / sizeof(*frame) % CACHE_SLOTS];

	if (slot->frame != frame)
		*slot = (struct frame_cache){ frame, hash_frame(frame) };
	return slot->hash;
}

/*
 * A comprehension has a frame of its own up to Python 3.11 and is a part of its function since: here it never counts as a frame, and the
 * function around it follows.
 */
static bool
is_comprehension(const struct model_site *site, uint32_t index)
{
	static const char *const names[] = { "<listcomp>", "<dictcomp>", "<setcomp>" };
	const struct model_frame *frame = site->frames[index];

	if (frame->kind != MODEL_FRAME_PYTHON || index + 1 >= site->frame_count ||
	    site->frames[index + 1]->kind != MODEL_FRAME_PYTHON)
		return false;
	return ANY(name, names, COUNT_OF(names), text_ends(frame->function, *name));
}

/*
 * A library's native frames above Python ones do not count: whether they were recorded depends on how much the site held
 * (KMEM_STACK_PYTHON_ONLY).
 */
static uint32_t
first_that_counts(const struct model_site *site, uint32_t first_user)
{
	for (uint32_t i = 0; i < site->frame_count && i <= first_user; i++) {
		if (site->frames[i]->kind == MODEL_FRAME_PYTHON)
			return i;
	}
	return 0;
}

/*
 * Is it code of a header that was compiled into the same object as the user's? How much of that is inlined, and how it calls itself,
 * differs between compilers.
 */
static bool
is_of_header(const struct model_site *site, uint32_t index, uint32_t first_user)
{
	const struct model_frame *frame = site->frames[index];

	return first_user < site->frame_count && frame->kind == MODEL_FRAME_NATIVE && !frame->is_user &&
	       site->frames[first_user]->kind == MODEL_FRAME_NATIVE &&
	       order_texts(frame->module, site->frames[first_user]->module) == 0;
}

/*
 * Frames count after folding: recursion has no depth of its own. Nothing beyond main() tells sites apart, and how the
 * C library's start-up is named depends on the debug packages of the machine.
 *
 * left_out  a frame that does not count, from the user's own (0) outwards; LEFT_OUT_NONE. 0 when there is no such one
 */
static uint64_t
names_hash(const struct model_site *site, const char *domain, struct frame_cache *cache, uint32_t left_out)
{
	bool is_left_out = left_out == LEFT_OUT_NONE;
	uint32_t position = 0;
	uint64_t hash = hash_text(HASH_START, domain, strlen(domain));
	uint64_t previous = 0;
	uint32_t left = FRAMES_WITHOUT_USER;
	uint32_t first_user = 0;

	while (first_user < site->frame_count && (!site->frames[first_user]->is_user || is_comprehension(site, first_user)))
		first_user++;
	for (uint32_t i = first_that_counts(site, first_user); i < site->frame_count && left > 0; i++) {
		const struct model_frame *frame = site->frames[i];
		uint64_t name = cached_hash(cache, frame);

		if (is_comprehension(site, i) || is_of_header(site, i, first_user))
			continue;

		if (name != previous) {
			position += i > first_user;
			if (i >= first_user && position == left_out) {
				is_left_out = true;
				hash = hash_bytes(hash, (const char *)&left_out, sizeof(left_out));
			} else {
				hash = hash_bytes(hash, (const char *)&name, sizeof(name));
			}
			previous = name;
			left -= i > first_user || first_user == site->frame_count;
		}
		if (i == first_user)
			left = FRAMES_BEYOND_USER;
		if (frame->kind == MODEL_FRAME_NATIVE && frame->is_user && strcmp(frame->function, "main") == 0)
			break;
	}
	return is_left_out ? hash : 0;
}

static uint64_t
family_hash(const struct model_site *site, const char *domain, struct frame_cache *cache)
{
	uint64_t hash = names_hash(site, domain, cache, LEFT_OUT_NONE);

	hash = (hash ^ hash >> 16) << SITE_KEY_ORDINAL_BITS;
	return hash != 0 ? hash : UINT64_C(1) << SITE_KEY_ORDINAL_BITS;
}

void
site_key_likeness(const struct model_site *site, const char *domain, uint64_t likeness[SITE_KEY_LIKENESSES])
{
	for (uint32_t i = 0; i < SITE_KEY_LIKENESSES; i++)
		likeness[i] = names_hash(site, domain, NULL, i);
}

const struct model_frame *
site_key_function_of(const struct model_site *site)
{
	for (uint32_t i = 0; i < site->frame_count; i++) {
		if (site->frames[i] != site->where)
			continue;
		while (is_comprehension(site, i))
			i++;
		return site->frames[i];
	}
	return site->where;
}

void
site_key_assign_places(struct model_site *sites, size_t count)
{
	OWNED struct frame_cache *cache = memory_zeroed(CACHE_SLOTS, sizeof(*cache));

	for (size_t i = 0; i < count; i++) {
		const struct model_frame *function = sites[i].where != NULL ? site_key_function_of(&sites[i]) : NULL;

		if (function == NULL)
			continue;
		sites[i].place_key = cached_hash(cache, function);
		sites[i].qualified_key = hash_text(sites[i].place_key, function->function, strlen(function->function));
	}
}

static int
compare_frames(const struct model_frame *left, const struct model_frame *right)
{
	if (left == right) // equal frames are one object
		return 0;
	int order = order_numbers(left->line, right->line);

	order = order ?: order_texts(left->file, right->file);
	order = order ?: order_texts(left->function, right->function);
	return order ?: order_numbers(left->module_offset, right->module_offset);
}

/* Siblings by the line of the user's own frame, then by all frames: the same in every run of the same build. */
static int
compare_siblings(const void *a, const void *b)
{
	const struct model_site *left = *(struct model_site *const *)a;
	const struct model_site *right = *(struct model_site *const *)b;
	uint32_t common = left->frame_count < right->frame_count ? left->frame_count : right->frame_count;
	int order = order_numbers(left->key, right->key);

	if (order == 0 && left->where != NULL && right->where != NULL)
		order = order_numbers(left->where->line, right->where->line);
	for (uint32_t i = 0; order == 0 && i < common; i++)
		order = compare_frames(left->frames[i], right->frames[i]);
	order = order ?: order_numbers(left->frame_count, right->frame_count);
	return order ?: order_numbers(left->stack_flags, right->stack_flags);
}

void
site_key_assign(struct model_site *sites, size_t count, const struct model_domain *domains)
{
	OWNED struct model_site **order = memory_zeroed(count, sizeof(struct model_site *));
	OWNED struct frame_cache *cache = memory_zeroed(CACHE_SLOTS, sizeof(*cache));
	uint64_t ordinal = 0;

	for (size_t i = 0; i < count; i++) {
		sites[i].key = family_hash(&sites[i], domains[sites[i].domain].name, cache);
		order[i] = &sites[i];
	}
	SORT(order, count, compare_siblings);
	for (size_t i = 1; i < count; i++) {
		bool is_sibling = site_key_family(order[i]->key) == site_key_family(order[i - 1]->key);

		ordinal = is_sibling ? ordinal + 1 : 0;
		if (ordinal < UINT64_C(1) << SITE_KEY_ORDINAL_BITS)
			order[i]->key |= ordinal;
		else // more siblings than numbers: the last number is shared
			order[i]->key |= (UINT64_C(1) << SITE_KEY_ORDINAL_BITS) - 1;
	}
}
