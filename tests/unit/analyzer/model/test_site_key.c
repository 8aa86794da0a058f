/*
 * test_site_key.c - does a site keep its key when only its surroundings change, and lose it when its code does?
 */
#include "test.h"

#include "model/site_key.h"

#define FRAMES_MAX 6

static const struct model_domain domains[] = { { .name = "heap" }, { .name = "cuda:0" } };

#define PY(file_, function_, line_, user_)                                                                   \
	{                                                                                                        \
		.kind = MODEL_FRAME_PYTHON, .file = (file_), .function = (function_), .line = (line_), .module = "", \
		.module_path = "", .is_user = (user_)                                                                \
	}
#define NATIVE(module_, function_, user_)                                                                        \
	{                                                                                                            \
		.kind = MODEL_FRAME_NATIVE, .file = "", .function = (function_), .module = (module_), .module_path = "", \
		.is_user = (user_)                                                                                       \
	}

struct stack {
	unsigned domain;
	struct model_frame frames[FRAMES_MAX];
};

static const struct model_frame *pointers[8][FRAMES_MAX];

static void
fill_site(struct model_site *site, const struct stack *stack, unsigned slot)
{
	uint32_t count = 0;

	*site = (struct model_site){ .domain = stack->domain, .frames = pointers[slot] };
	while (count < FRAMES_MAX && stack->frames[count].function != NULL) {
		pointers[slot][count] = &stack->frames[count];
		if (site->where == NULL && stack->frames[count].is_user)
			site->where = &stack->frames[count];
		count++;
	}
	site->frame_count = count;
}

static uint64_t
key_of(const struct stack *stack)
{
	struct model_site site;

	fill_site(&site, stack, 0);
	site_key_assign(&site, 1, domains);
	return site.key;
}

static const struct {
	const char *name;
	bool is_same;
	struct stack left, right;
} pairs[] = {
	{ "lines moved",
	  true,
	  { 0, { PY("/data/a/p/train.py", "fit", 10, true) } },
	  { 0, { PY("/data/a/p/train.py", "fit", 99, true) } } },
	{ "checked out elsewhere",
	  true,
	  { 0, { PY("/data/a/p/train.py", "fit", 10, true) } },
	  { 0, { PY("/builds/77/p/train.py", "fit", 10, true) } } },
	{ "a method, where Python has no qualified names",
	  true,
	  { 0,
	    { PY("/data/a/p/train.py", "Store.fill", 10, true),
	      PY("/data/a/p/train.py", "main.<locals>.<lambda>", 4, true) } },
	  { 0, { PY("/data/a/p/train.py", "fill", 10, true), PY("/data/a/p/train.py", "<lambda>", 4, true) } } },
	{ "a compiler that tells no namespace and no class",
	  true,
	  { 0, { NATIVE("app", "(anonymous namespace)::Store<int>::fill", true), NATIVE("app", "main", true) } },
	  { 0, { NATIVE("app", "fill", true), NATIVE("app", "main", true) } } },
	{ "a lambda, as gcc and clang name it",
	  true,
	  { 0, { NATIVE("app", "run(int)::$_1::operator()", true), NATIVE("app", "main", true) } },
	  { 0, { NATIVE("app", "operator()", true), NATIVE("app", "main", true) } } },
	{ "another operator",
	  false,
	  { 0, { NATIVE("app", "Store::operator<<", true), NATIVE("app", "main", true) } },
	  { 0, { NATIVE("app", "Store::operator<", true), NATIVE("app", "main", true) } } },
	{ "a closure of another function",
	  false,
	  { 0, { NATIVE("app", "app::read::{{closure}}", true), NATIVE("app", "main", true) } },
	  { 0, { NATIVE("app", "app::write::{{closure}}", true), NATIVE("app", "main", true) } } },
	{ "code of headers that was inlined in other ways",
	  true,
	  { 0,
	    { NATIVE("libc.so.6", "malloc", false), NATIVE("app", "std::vector<char>::resize", false),
	      NATIVE("app", "fill", true), NATIVE("app", "std::function<void ()>::operator()", false),
	      NATIVE("app", "run", true) } },
	  { 0, { NATIVE("libc.so.6", "malloc", false), NATIVE("app", "fill", true), NATIVE("app", "run", true) } } },
	{ "another library's function below the same line, native",
	  false,
	  { 0, { NATIVE("libfoo.so.1", "foo_copy", false), NATIVE("app", "fill", true) } },
	  { 0, { NATIVE("libfoo.so.1", "foo_make", false), NATIVE("app", "fill", true) } } },
	{ "another function",
	  false,
	  { 0, { PY("/data/a/p/train.py", "fit", 10, true) } },
	  { 0, { PY("/data/a/p/train.py", "predict", 10, true) } } },
	{ "another file",
	  false,
	  { 0, { PY("/data/a/p/train.py", "fit", 10, true) } },
	  { 0, { PY("/data/a/p/other.py", "fit", 10, true) } } },
	{ "another domain",
	  false,
	  { 0, { PY("/data/a/p/train.py", "fit", 10, true) } },
	  { 1, { PY("/data/a/p/train.py", "fit", 10, true) } } },
	{ "another environment and interpreter",
	  true,
	  { 0, { PY("/opt/v/lib/python3.10/site-packages/np/core.py", "zeros", 1, false), PY("t.py", "f", 1, true) } },
	  { 0, { PY("/usr/lib/python3/dist-packages/np/core.py", "zeros", 9, false), PY("t.py", "f", 1, true) } } },
	{ "another standard library",
	  true,
	  { 0, { PY("/usr/lib/python3.10/json/decoder.py", "decode", 1, false), PY("t.py", "f", 1, true) } },
	  { 0, { PY("/opt/py/lib/python3.12/json/decoder.py", "decode", 9, false), PY("t.py", "f", 1, true) } } },
	{ "a module of the standard library that is frozen",
	  true,
	  { 0, { PY("/usr/lib/python3.10/importlib/util.py", "_load", 1, false), PY("t.py", "f", 1, true) } },
	  { 0, { PY("<frozen importlib.util>", "_load", 9, false), PY("t.py", "f", 1, true) } } },
	{ "another library function below the same line",
	  false,
	  { 0, { PY("/v/lib/python3.10/site-packages/np/core.py", "zeros", 1, false), PY("t.py", "f", 1, true) } },
	  { 0, { PY("/v/lib/python3.10/site-packages/np/core.py", "ones", 1, false), PY("t.py", "f", 1, true) } } },
	{ "what a library of Python calls in C, at another address",
	  true,
	  { 0,
	    { NATIVE("libfast-0a1b2c3d.so.1.2", "alloc", false),
	      PY("/usr/lib/python3/dist-packages/fast/core.py", "full", 330, false), PY("t.py", "f", 1, true) } },
	  { 0,
	    { { .kind = MODEL_FRAME_NATIVE,
	        .file = "",
	        .function = "realloc_all",
	        .module = "libfast-99887766.so.3",
	        .module_path = "",
	        .module_offset = 4096 },
	      PY("/usr/lib/python3/dist-packages/fast/core.py", "full", 330, false),
	      PY("t.py", "f", 1, true) } } },
	{ "a kernel's pid",
	  true,
	  { 0, { PY("/tmp/ipykernel_811/3141592.py", "<module>", 1, true) } },
	  { 0, { PY("/tmp/ipykernel_94/3141592.py", "<module>", 1, true) } } },
	{ "another cell",
	  false,
	  { 0, { PY("/tmp/ipykernel_811/3141592.py", "<module>", 1, true) } },
	  { 0, { PY("/tmp/ipykernel_811/2718281.py", "<module>", 1, true) } } },
	{ "a cell that was run again",
	  true,
	  { 0, { PY("<ipython-input-3-0a1b2c>", "<module>", 1, true) } },
	  { 0, { PY("<ipython-input-17-0a1b2c>", "<module>", 1, true) } } },
	{ "another version of the library",
	  true,
	  { 0, { NATIVE("libfoo.so.1.2", "grow", true) } },
	  { 0, { NATIVE("libfoo.so.1.3", "grow", true) } } },
	{ "the program under another name",
	  true,
	  { 0, { NATIVE("app", "grow", true), NATIVE("app", "main", true) } },
	  { 0, { NATIVE("app-1a2b3c4", "grow", true), NATIVE("app-1a2b3c4", "main", true) } } },
	{ "a library is not the program",
	  false,
	  { 0, { NATIVE("app", "grow", true) } },
	  { 0, { NATIVE("libapp.so", "grow", true) } } },
	{ "copies that the compiler made",
	  true,
	  { 0, { NATIVE("app", "grow", true) } },
	  { 0, { NATIVE("app", "grow.part.0", true) } } },
	{ "another native function",
	  false,
	  { 0, { NATIVE("app", "grow", true) } },
	  { 0, { NATIVE("app", "shrink", true) } } },
	{ "deeper recursion",
	  true,
	  { 0, { NATIVE("app", "walk", true), NATIVE("app", "walk", true), NATIVE("app", "main", true) } },
	  { 0,
	    { NATIVE("app", "walk", true), NATIVE("app", "walk", true), NATIVE("app", "walk", true),
	      NATIVE("app", "main", true) } } },
	{ "callers far out",
	  true,
	  { 0, { PY("t.py", "f", 1, true), PY("t.py", "g", 1, true), PY("t.py", "h", 1, true), PY("t.py", "x", 1, true) } },
	  { 0,
	    { PY("t.py", "f", 1, true), PY("t.py", "g", 1, true), PY("t.py", "h", 1, true), PY("t.py", "y", 1, true) } } },
	{ "how the C library starts a program is named",
	  true,
	  { 0, { NATIVE("app", "main", true), NATIVE("libc.so.6", "__libc_start_call_main", false) } },
	  { 0, { NATIVE("app", "main", true), NATIVE("libc.so.6", "", false) } } },
	{ "without the user's code: another library function",
	  false,
	  { 0, { NATIVE("libfoo.so", "grow", false), NATIVE("libc.so.6", "start_thread", false) } },
	  { 0, { NATIVE("libfoo.so", "fill", false), NATIVE("libc.so.6", "start_thread", false) } } },
	{ "the caller's caller",
	  false,
	  { 0, { PY("t.py", "f", 1, true), PY("t.py", "g", 1, true), PY("t.py", "h", 1, true) } },
	  { 0, { PY("t.py", "f", 1, true), PY("t.py", "g", 1, true), PY("t.py", "i", 1, true) } } },
	{ "a comprehension that is a function of its own",
	  true,
	  { 0,
	    { PY("t.py", "T.load.<locals>.<listcomp>", 3, true), PY("t.py", "T.load", 2, true), PY("t.py", "g", 1, true),
	      PY("t.py", "h", 1, true) } },
	  { 0, { PY("t.py", "T.load", 3, true), PY("t.py", "g", 1, true), PY("t.py", "h", 1, true) } } },
	{ "a comprehension among the callers",
	  true,
	  { 0, { PY("t.py", "make", 9, true), PY("t.py", "<dictcomp>", 3, true), PY("t.py", "<module>", 3, true) } },
	  { 0, { PY("t.py", "make", 9, true), PY("t.py", "<module>", 3, true) } } },
	{ "a generator is a function of its own",
	  false,
	  { 0, { PY("t.py", "load.<locals>.<genexpr>", 3, true), PY("t.py", "load", 2, true) } },
	  { 0, { PY("t.py", "load", 3, true) } } },
	{ "operators are not templates",
	  false,
	  { 0, { NATIVE("app", "operator<", true) } },
	  { 0, { NATIVE("app", "operator>", true) } } },
};

TEST(keys_follow_the_code)
{
	for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
		uint64_t left = key_of(&pairs[i].left);
		uint64_t right = key_of(&pairs[i].right);

		assert_true(left != 0 && right != 0);
		if ((left == right) != pairs[i].is_same)
			fail_msg("%s: keys %s", pairs[i].name, pairs[i].is_same ? "differ" : "are the same");
	}
}

/* Two lines of one function: one family, numbered by line whatever the order in the capture. */
TEST(siblings_are_numbered_by_line)
{
	static const struct stack stacks[] = {
		{ 0, { PY("t.py", "f", 30, true) } },
		{ 0, { PY("t.py", "f", 10, true) } },
		{ 0, { PY("t.py", "f", 20, true) } },
		{ 0, { PY("t.py", "other", 20, true) } },
	};
	struct model_site sites[4];
	struct model_site turned[4];

	for (unsigned i = 0; i < 4; i++) {
		fill_site(&sites[i], &stacks[i], i);
		fill_site(&turned[i], &stacks[3 - i], 4 + i);
	}
	site_key_assign(sites, 4, domains);
	site_key_assign(turned, 4, domains);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(sites[i].key, turned[3 - i].key);
	assert_int_equal(sites[1].key, key_of(&stacks[1])); // alone it has the same key
	assert_int_equal(site_key_family(sites[0].key), site_key_family(sites[1].key));
	assert_true(sites[1].key < sites[2].key && sites[2].key < sites[0].key);
	assert_true(site_key_family(sites[3].key) != site_key_family(sites[0].key));
}

TEST(a_site_without_frames_has_a_key)
{
	static const struct stack none = { 0, { { 0 } } };
	static const struct stack other = { 1, { { 0 } } };

	assert_true(key_of(&none) != 0);
	assert_true(key_of(&none) != key_of(&other));
}

RUN_TESTS(NULL, NULL)
