/*
 * test_verdict_next.c - is a person whose program died sent to the right thing first?
 */
#include "verdict_case.h"
#include "made_ways.h"
#include "model/model_holders.h"

#include <signal.h>

/* What ended it was not memory; what accumulates is the second thing to look at. */
TEST(far_from_the_limits_the_cause_comes_before_what_accumulates)
{
	static const struct {
		int signal;
		uint64_t available_bytes;
		const char *advised;
		bool is_native;
	} cases[] = {
		{ 1 << 8, 8 * GIB, "read-error, release-blocks", false },
		{ SIGSEGV, 8 * GIB, "show-python-crash, release-blocks", false },
		{ SIGSEGV, 8 * GIB, "debug-crash, release-blocks", true },
		{ SIGKILL, 8 * GIB, "find-sender, release-blocks", false },
		{ SIGINT, 8 * GIB, "find-interrupter, release-blocks", false },
		{ SIGKILL, 100 * MIB, "release-blocks", false },
	};

	EACH_CASE(i, cases)
	{
		leaking(HEAP, 41, 300 * MIB);
		hand.heartbeat.available_bytes = cases[i].available_bytes;
		hand.process.python_version = cases[i].is_native ? 0 : hand.process.python_version;
		verdict_waited(cases[i].signal);
		assert_advised(&verdict, cases[i].advised);
		assert_non_null(strstr(verdict.next, "the blocks of train.py:41 epoch alive"));
		assert_found(&verdict, "accumulates 300 MiB of 300 MiB at train.py:41 epoch, likely");
	}
}

/* No look follows mappings. */
TEST(what_keeps_mappings_is_looked_for_by_the_user)
{
	leaking(MMAP, 41, 300 * MIB);
	hand.heartbeat.available_bytes = 100 * MIB;
	verdict_waited(SIGKILL);
	assert_advised(&verdict, "release-blocks");
	assert_non_null(strstr(
		verdict.next, "look for what keeps the mappings of train.py:41 epoch, or makes them larger: often objects in a "
					  "list or a cache"));
}

/* A model with one line of code, of which a look knows what holds it. */
static struct model_site *
make_held(struct holders_line *line, struct holders *holders, uint64_t bytes)
{
	struct model_site *site;

	hand_model_make(&hand);
	site = hand_model_site(&hand, HEAP, 41, bytes);
	*holders = (struct holders){ .line_count = 1, .lines = line, .monotonic_ns = 1 };
	line->file = site->where->file;
	line->function = site->where->function;
	hand.process.holders = holders;
	return site;
}

/* What a look has found when the guard was passed is said, and what to do about it instead of what it often is. */
TEST(what_held_the_line_is_said_and_becomes_the_advice)
{
#define TABLE "global `hot` of module __main__"
	const struct {
		struct holders_way way;
		const char *text, *next;
	} cases[] = {
		{ { HEAD(HELD, 32, "list", 30, "a.py:9 g"),
		    STEPS(ROOT(GLOBAL, "hot", "__main__"), MANY("list", 30), OBJECT("tuple")) },
		  "When the guard was passed, they were held by " TABLE " -> list of 30, grown at a.py:9 g, [*] -> tuple.",
		  "bound the list at " TABLE
		  " (30 items at the look, grown at a.py:9 g), or drop what is not needed from it: it keeps the blocks of "
		  "train.py:41 epoch alive" },
		{ { HEAD(HELD, 20, "list", 30, "train.py:41 epoch"), STEPS(ROOT(GLOBAL, "hot", "__main__"), MANY("list", 30)) },
		  "When the guard was passed, 20 of 32 samples of them were held by " TABLE " -> list of 30",
		  "bound the list at " TABLE " (30 items at the look), or drop" },
		{ { HEAD(HELD, 32, "dict", 9, ""),
		    STEPS(ROOT(ATTRIBUTE, "stats", "D"),
		          OBJECT("functools._lru_cache_wrapper", .by = WAY_BY_ATTRIBUTE, .member = "cache"),
		          CONTAINER("dict", 9, .by = WAY_BY_ANY_KEY), OBJECT("D")) },
		  "held by attribute `stats` of class D -> functools",
		  "bound the cache that is attribute `stats` of class D (maxsize of lru_cache): it keeps the blocks of train.py:41 epoch "
		  "alive" },
		{ { HEAD(HELD, 32, "", 0, ""),
		    STEPS(ROOT(LOCAL, "loss", "main() (a.py:3)"), OBJECT("Node", .by = WAY_BY_ATTRIBUTE, .member = "next")) },
		  "held by local `loss` of main() (a.py:3) -> Node .next.",
		  "let go of the blocks of train.py:41 epoch: they are held by local `loss` of main() (a.py:3) -> Node .next" },
		{ { HEAD(HELD, 32, "", 0, ""),
		    STEPS(ROOT(LOCAL, "running", "fit() (a.py:20)"), OBJECT("torch.Tensor", .by = WAY_BY_PLACE, .member = "16"),
		          { .kind = WAY_BLOCK,
		            .name = "AddBackward0",
		            .of = "a.py:28 fit",
		            .repeat = WAY_EACH,
		            .nodes = 3187,
		            .is_graph_cut = true },
		          { .kind = WAY_BLOCK, .name = "TensorImpl", .of = "a.py:11 f" }) },
		  "held by local `running` of fit() (a.py:20) through at least 3,187 linked graph nodes.",
		  "take .item() or .detach() of what local `running` of fit() (a.py:20) gets at a.py:28 fit: it keeps the graph of "
		  "PyTorch (grad_fn chain of at least 3,187 nodes when kmemshim looked), and so the blocks of train.py:41 epoch" },
		{ { HEAD(HELD, 32, "", 0, ""),
		    STEPS(ROOT(GLOBAL, "loss", "__main__"), OBJECT("torch.Tensor", .by = WAY_BY_PLACE, .member = "16"),
		          { .kind = WAY_BLOCK, .name = "MulBackward0", .count = 80, .nodes = 9 }) },
		  "held by global `loss` of module __main__ through 9 linked graph nodes.",
		  "take .item() or .detach() of what global `loss` of module __main__ gets: it keeps the graph of PyTorch (grad_fn chain of 9 "
		  "nodes when kmemshim looked), and so the blocks of train.py:41 epoch" },
		{ { HEAD(LOST, 32, "", 0, "") },
		  "no pointer led to them any more.",
		  "free the blocks of train.py:41 epoch: nothing leads to them any more" },
		{ { HEAD(LOST, 31, "", 0, "") }, "no pointer led to 31 of 32 samples of them any more.", "free the blocks of" },
		{ { HEAD(LOST, 32, "", 0, ""), STEPS({ .kind = WAY_BLOCK, .of = "a.c:9 make" }) },
		  "only lost blocks led to them any more: block of a.c:9 make.",
		  "free the blocks of train.py:41 epoch and what leads to them: it is lost too (block of a.c:9 make). If they count references "
		  "to each other in a circle, make one of these weak" },
		{ { HEAD(HELD, 32, "dict", 312, "a.py:9 g"),
		    STEPS(ROOT(GLOBAL, "_active", "threading"), MANY("dict", 312), OBJECT("threading.Timer")),
		    .module = "threading", .grown_file = "/w/a.py" },
		  "they were held by global `_active` of module threading",
		  "let a.py:9 g add less to the dict at global `_active` of module threading (312 items at the look), give that a bound, or undo what it added (cancel, close, "
		  "unregister): it keeps the blocks of train.py:41 epoch alive" },
		{ { HEAD(HELD, 32, "dict", 30, "a.py:9 g"),
		    STEPS(ROOT(ATTRIBUTE, "manager", "logging.Logger"),
		          OBJECT("Manager", .by = WAY_BY_ATTRIBUTE, .member = "all"), MANY("dict", 30)),
		    .module = "logging", .grown_file = "/w/a.py" },
		  "they were held by attribute `manager` of class logging.Logger",
		  "let a.py:9 g add less to the dict at attribute `manager` of class logging.Logger -> Manager .all (30 items at the look), give that a bound, or undo" },
		{ { HEAD(HELD, 32, "dict", 30, "train.py:9 g"), STEPS(ROOT(ATTRIBUTE, "all", "train.Store"), MANY("dict", 30)),
		    .module = "train", .grown_file = "/w/train.py" },
		  "they were held by attribute `all` of class train.Store",
		  "bound the dict at attribute `all` of class train.Store (30 items at the look, grown at train.py:9 g), or drop" },
		{ { HEAD(HELD, 32, "dict", 30, "__init__.py:9 g"), STEPS(ROOT(GLOBAL, "x", "b.train"), MANY("dict", 30)),
		    .module = "b.train", .grown_file = "/w/b/train/__init__.py" },
		  "they were held by global `x` of module b.train",
		  "bound the dict at global `x` of module b.train (30 items at the look" },
		{ { HEAD(HELD, 32, "dict", 30, "abc.py:9 g"), STEPS(ROOT(GLOBAL, "x", "a"), MANY("dict", 30)), .module = "a",
		    .grown_file = "/w/abc.py" },
		  "they were held by global `x` of module a",
		  "let abc.py:9 g add less to the dict at global `x` of module a (30 items at the look)" },
		{ { HEAD(HELD, 32, "dict", 30, "a.py:9 g"), STEPS(ROOT(GLOBAL, "x", "b.a"), MANY("dict", 30)), .module = "b.a",
		    .grown_file = "/w/c/a.py" },
		  "they were held by global `x` of module b.a",
		  "let a.py:9 g add less to the dict at global `x` of module b.a (30 items at the look)" },
		{ { HEAD(HELD, 32, "dict", 30, "a.py:9 g"),
		    STEPS(ROOT(LOCAL, "all", "f()"), CONTAINER("dict", 30, .by = WAY_BY_ITEM, .member = "\"` of module z\"")),
		    .grown_file = "/w/a.py" }, // a key of the program's
		  "they were held by local `all` of f()",
		  "bound the dict at local `all` of f() (30 items at the look, grown at a.py:9 g), or drop" },
		{ { HEAD(LOST, 32, "", 0, ""),
		    STEPS(OBJECT("Node", .by = WAY_BY_ATTRIBUTE, .member = "payload"), OBJECT("bytearray")) },
		  "they were in circles of objects, which the garbage collector (gc) frees.",
		  "nothing but themselves holds the objects of train.py:41 epoch: such circles wait for the garbage collector." },
		{ { HEAD(PERHAPS, 32, "", 0, ""), STEPS(STACK) },
		  "they were held, perhaps, by the stack of thread 7.",
		  "look for what keeps the blocks of train.py:41 epoch alive" },
		{ { HEAD(PERHAPS, 32, "list", 285600, ""), STEPS(STACK, MANY("list", 285600), OBJECT("str")) },
		  "It grows in a call that has not returned, as a load does.",
		  "load less of it at once at train.py:41 epoch, piece by piece: the call that makes them has not returned" },
		{ { HEAD(HELD, 32, "list", 285600, ""),
		    STEPS(ROOT(LOCAL, "rows", "f_impl() (f.c:69)"), MANY("list", 285600), OBJECT("str")),
		    .call = WAY_CALL_NATIVE },
		  "It grows in a call that has not returned, as a load does.",
		  "load less of it at once at train.py:41 epoch, piece by piece: the call that makes them has not returned" },
		{ { HEAD(HELD, 32, "list", 900, ""),
		    STEPS(ROOT(LOCAL, "queue", "wait_impl() (f.c:69)"), MANY("list", 900), OBJECT("str")),
		    .call = WAY_CALL_NATIVE },
		  "they were held by local `queue` of wait_impl()",
		  "look for what keeps the blocks of train.py:41 epoch alive: often a list" },
		{ { HEAD(HELD, 32, "list", 2000, "a.py:9 g"),
		    STEPS(ROOT(LOCAL, "queue", "_worker() (thread.py:69)"),
		          OBJECT("Items", .by = WAY_BY_ATTRIBUTE, .member = "all"), MANY("list", 2000), OBJECT("str")),
		    .call = WAY_CALL_PYTHON },
		  "they were held by local `queue` of _worker()",
		  "bound the list (2,000 items at the look, grown at a.py:9 g), or drop what is not needed from it: it keeps the blocks of train.py:41 "
		  "epoch alive" },
		{ { HEAD(HELD, 32, "", 0, ""),
		    STEPS(ROOT(LOCAL, "self", "_bootstrap() (threading.py:876)"),
		          OBJECT("threading.Timer", .by = WAY_BY_ATTRIBUTE, .member = "args"),
		          OBJECT("tuple", .by = WAY_BY_ITEM, .member = "1"), OBJECT("bytes")),
		    .call = WAY_CALL_PYTHON },
		  "they were held by local `self` of _bootstrap()",
		  "let go of the blocks of train.py:41 epoch: they are held by threading.Timer .args -> tuple [1] -> bytes" },
		{ { HEAD(HELD, 5, "list", 30, ""), STEPS(ROOT(GLOBAL, "hot", "__main__"), MANY("list", 30), OBJECT("tuple")) },
		  "5 of 32 samples of them were held by " TABLE,
		  "look for what keeps the blocks of train.py:41 epoch alive: often a list" },
		{ { HEAD(PERHAPS, 31, "list", 30, "a.py:9 g"), STEPS(ROOT(GLOBAL, "hot", "__main__"), MANY("list", 30),
		                                                     OBJECT("x.View", .by = WAY_BY_PLACE, .member = "16")) },
		  "31 of 32 samples of them were held, perhaps, by " TABLE,
		  "look at the list at " TABLE
		  " (30 items at the look, grown at a.py:9 g): perhaps it keeps the blocks of train.py:41 epoch alive" },
		{ { HEAD(PERHAPS, 32, "list", 30, ""),
		    STEPS(ROOT(LOCAL, "log", "main() (a.py:3)"), OBJECT("Log", .by = WAY_BY_ATTRIBUTE, .member = "to"),
		          OBJECT("_pickle.Pickler", .by = WAY_BY_PLACE, .member = "16"), { .kind = WAY_BLOCK, .count = 32 },
		          MANY("list", 30)) },
		  "they were held, perhaps, by local `log` of main()",
		  "look at local `log` of main() (a.py:3) -> Log .to -> _pickle.Pickler: perhaps it keeps the blocks of train.py:41 epoch "
		  "alive" },
		{ { HEAD(PERHAPS, 32, "", 0, ""),
		    STEPS(ROOT(LOCAL, "log", "main() (a.py:3)"), { .kind = WAY_BLOCK, .count = 32 }, OBJECT("bytes")) },
		  "they were held, perhaps, by local `log` of main()",
		  "look at local `log` of main() (a.py:3): perhaps it keeps the blocks of train.py:41 epoch alive" },
		{ { HEAD(PERHAPS, 32, "", 0, ""), STEPS(ROOT(DATA, "", "libm.so+0x30"), OBJECT("bytes")) },
		  "they were held, perhaps, by data of libm.so+0x30",
		  "look for what keeps the blocks of train.py:41 epoch alive: often a list" },
		{ { HEAD(UNSEEN, 32, "", 0, ""), STEPS(ROOT(REASON, "tuple", "")) },
		  "they were held by something that was not found: tuple.",
		  "look for what keeps the blocks" },
		{ { HEAD(UNFINISHED, 32, "", 0, ""), STEPS(ROOT(REASON, "no time", "")) },
		  "When the guard was passed, there was no time to find what holds them.",
		  "look for what keeps the blocks of train.py:41 epoch alive: often a list that is appended to, or a cache; "
		  "`kmemshim run --holders-stop 5s` gives the search for what holds it more time" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct holders_way way = made_way(cases[i].way);
		struct holders_line line = { .samples = 32, .way_count = 1, .ways = &way, .line = 41 };
		struct holders holders;
		struct model_site *site;

		site = make_held(&line, &holders, 300 * MIB);
		hand_model_generations(site, 12, 12, 3, 3);
		hand.heartbeat.available_bytes = 100 * MIB;
		verdict_waited(SIGKILL);
		assert_advised(&verdict, "release-blocks");
		site->volume_bytes = 310 * MIB; // of a load, unless nothing leads to it
		hand_model_decide(&hand, &verdict);
		assert_int_equal(strstr(verdict.text, "one-time load") != NULL ||
		                     strstr(verdict.text, "as a load does") != NULL,
		                 way.kind != HOLDERS_LOST);
		site->volume_bytes = 0;
		hand_model_decide(&hand, &verdict);
		if (strstr(verdict.text, cases[i].text) == NULL || strstr(verdict.next, cases[i].next) == NULL)
			fail_msg("case %zu: %s\n%s", i, verdict.text, verdict.next);
		line.line = 42; // another one
		hand_model_decide(&hand, &verdict);
		assert_null(strstr(verdict.text, "When the guard was passed"));
		assert_non_null(strstr(verdict.next, "look for what keeps the blocks"));
	}
}

/* Whatever the line's class is: to act on what was found is more than to hold less. */
TEST(what_held_the_line_is_the_advice_of_a_line_that_does_not_grow_too)
{
	const struct {
		struct holders_way ways[2];
		const char *advised, *next, *text;
	} cases[] = {
		{ { { HEAD(HELD, 32, "set", 30, ""),
		      STEPS(ROOT(GLOBAL, "seen", "__main__"), CONTAINER("set", 30, .by = WAY_BY_STORAGE)) } },
		  "release-blocks-or-hold-less",
		  "bound the set at global `seen` of module __main__ (30 items at the look), or drop what is not needed from it: it keeps the "
		  "blocks of train.py:41 epoch alive; if all of it is needed at once, hold less (smaller pieces, a smaller type)",
		  "they were held by global `seen`" },
		{ { { HEAD(HELD, 10, "set", 30, ""), STEPS(ROOT(GLOBAL, "seen", "__main__"), CONTAINER("set", 30)) },
		    { HEAD(UNFINISHED, 22, "", 0, ""), STEPS(ROOT(REASON, "no time", "")) } },
		  "release-blocks-or-hold-less",
		  "bound the set at global `seen` of module __main__ (30 items at the look)",
		  "all 10 samples (of 32) that could be followed in time were held by global `seen`" },
		{ { { HEAD(HELD, 10, "set", 30, ""), STEPS(ROOT(GLOBAL, "seen", "__main__"), CONTAINER("set", 30)) },
		    { HEAD(UNFINISHED, 20, "", 0, ""), STEPS(ROOT(REASON, "no time", "")) } },
		  "release-blocks-or-hold-less",
		  "bound the set at global `seen` of module __main__ (30 items at the look)",
		  "10 of the 12 samples (of 32) that could be followed in time were held by global `seen`" },
		{ { { HEAD(HELD, 32, "", 0, ""), STEPS(STACK) } },
		  "hold-less",
		  "hold less at once at train.py:41 epoch",
		  "they were held by the stack of thread 7" },
		{ { { HEAD(PERHAPS, 32, "", 0, ""), STEPS(ROOT(GLOBAL, "seen", "__main__")) } },
		  "release-blocks-or-hold-less",
		  "look at global `seen` of module __main__: perhaps it keeps the blocks of train.py:41 epoch alive; if all of it is needed "
		  "at once, hold less",
		  "they were held, perhaps, by global `seen`" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct holders_way ways[] = { made_way(cases[i].ways[0]), made_way(cases[i].ways[1]) };
		struct holders_line line = {
			.samples = 32, .way_count = ways[1].samples != 0 ? 2 : 1, .ways = ways, .line = 41
		};
		struct holders holders;

		(void)make_held(&line, &holders, 300 * MIB);
		hand.heartbeat.available_bytes = 100 * MIB;
		verdict_waited(SIGKILL);
		assert_advised(&verdict, cases[i].advised);
		if (strstr(verdict.text, cases[i].text) == NULL ||
		    strncmp(verdict.next, cases[i].next, strlen(cases[i].next)) != 0)
			fail_msg("case %zu: %s\n%s", i, verdict.text, verdict.next);
	}
}

/* The verdict has just named the list: "hold less before that" is not what to do. */
TEST(what_held_the_line_is_the_advice_where_a_request_was_refused_too)
{
	const struct {
		struct holders_way way;
		const char *advised, *next;
	} cases[] = {
		{ { HEAD(HELD, 32, "list", 30, ""), STEPS(ROOT(LOCAL, "rows", "main() (a.py:3)"), MANY("list", 30)) },
		  "release-blocks",
		  "bound the list at local `rows` of main() (a.py:3) (30 items at the look), or drop what is not needed from it: it keeps the "
		  "blocks of train.py:41 epoch alive; or raise the limit (ulimit -v)" },
		{ { HEAD(LOST, 32, "", 0, "") },
		  "release-blocks",
		  "free the blocks of train.py:41 epoch: nothing leads to them any more; or raise the limit (ulimit -v)" },
		{ { HEAD(PERHAPS, 32, "", 0, ""), STEPS(STACK) },
		  "hold-less-before",
		  "hold less before that (most at train.py:41 epoch), or raise the limit (ulimit -v)" },
		{ { HEAD(UNFINISHED, 32, "", 0, ""), STEPS(ROOT(REASON, "no time", "")) },
		  "hold-less-before",
		  "hold less before that (most at train.py:41 epoch), or raise the limit (ulimit -v); `kmemshim run --holders-stop 5s` "
		  "gives the search for what holds it more time" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct holders_way way = made_way(cases[i].way);
		struct holders_line line = { .samples = 32, .way_count = 1, .ways = &way, .line = 41 };
		struct holders holders;

		(void)make_held(&line, &holders, 400 * MIB);
		hand_model_exited(&hand, 1);
		hand_model_refuse(&hand, 10 * MIB);
		hand.identity.limits[0] = (struct kmem_limit){ .kind = KMEM_LIMIT_ADDRESS_SPACE, .bytes = GIB };
		hand_model_decide(&hand, &verdict);
		assert_advised(&verdict, cases[i].advised);
		assert_string_equal(verdict.next, cases[i].next);
	}
}

/* "Smaller pieces" do not mend a queue that is drained too slowly. */
TEST(a_queue_that_is_drained_too_slowly_is_told)
{
	static const struct {
		uint64_t count, other_bytes;
		const char *advised;
	} cases[] = {
		{ 64, 0, "bound-backlog" },
		{ 63, 0, "hold-less" }, // few blocks that grow
		{ 64, 450 * MIB, "hold-less" },
	};

	EACH_CASE(i, cases)
	{
		struct model_site *site;
		site = hand_model_site(&hand, HEAP, 41, 400 * MIB);
		site->live_count = cases[i].count;
		site->allocated_count = 2 * cases[i].count;
		site->allocated_bytes = 2 * site->live_bytes;
		hand_model_generations(site, 4, 12, 3, 3);
		if (cases[i].other_bytes != 0)
			for (unsigned line = 50; line < 53; line++)
				(void)hand_model_site(&hand, HEAP, line, cases[i].other_bytes / 3);
		hand_model_waited(&hand, SIGKILL);
		hand.heartbeat.available_bytes = 100 * MIB;
		hand_model_decide(&hand, &verdict);
		assert_advised(&verdict, cases[i].advised);
		assert_true((strstr(verdict.text, " a backlog, such as a queue") != NULL) ==
		            (strcmp(cases[i].advised, "bound-backlog") == 0));
	}
}

#define FIRST "line 300 MiB of 590 MiB at train.py:41 epoch"

/* frames.append(read_csv()), then concat(frames): the half of it is half of the truth. */
TEST(a_line_that_holds_nearly_as_much_is_named_too)
{
	static const struct {
		uint64_t bytes;
		bool is_first_leak, is_leak;
		const char *found, *says; // and how the next line is told
		bool is_same_line;
	} cases[] = {
		{ 290, false, true, // which grows comes first
		  "line 290 MiB of 590 MiB at train.py:50 epoch; accumulates 290 MiB of 290 MiB at train.py:50 epoch, likely; next-line 300 MiB of",
		  "Another 300 MiB (51 %) was allocated at train.py:41 epoch.", false },
		{ 262, false, true,
		  "line 300 MiB of 562 MiB at train.py:41 epoch; next-line 262 MiB of 562 MiB at train.py:50 epoch; usage",
		  "train.py:50 epoch, which looks like a leak.", false },
		{ 290, true, false, FIRST "; accumulates 300 MiB of 300 MiB at train.py:41 epoch, likely; next-line",
		  "train.py:50 epoch.", false },
		{ 290, true, true, "likely; next-line 290 MiB of 590 MiB at train.py:50 epoch; usage",
		  "train.py:50 epoch, which looks like a leak too.", false },
		{ 290, false, false, FIRST "; next-line 290 MiB of 590 MiB at train.py:50 epoch; usage", "train.py:50 epoch.",
		  false },
		{ 149, true, true,
		  "at train.py:41 epoch; accumulates 300 MiB of 300 MiB at train.py:41 epoch, likely; accumulates-beside",
		  "Blocks of train.py:50 epoch (149 MiB) look like a leak too.", false },
		{ 149, true, false, "accumulates 300 MiB of 300 MiB at train.py:41 epoch, likely; usage", "", false },
		{ 290, true, false, "likely; next-line 290 MiB of 590 MiB at train.py:41 epoch; usage",
		  "at the same line in mmap.", true },
	};

	EACH_CASE(i, cases)
	{
		hand_model_generations(hand_model_site(&hand, HEAP, 41, 300 * MIB), cases[i].is_first_leak ? 12 : 1, 12, 3, 3);
		hand_model_generations(hand_model_site(&hand, cases[i].is_same_line ? MMAP : HEAP,
		                                       cases[i].is_same_line ? 41 : 50, cases[i].bytes * MIB),
		                       cases[i].is_leak ? 12 : 1, 12, 3, 3);
		verdict_waited(SIGKILL);
		assert_found(&verdict, cases[i].found);
		if (strstr(verdict.text, cases[i].says) == NULL)
			fail_msg("%zu: %s", i, verdict.text);
	}
}

/* A worker that grows beside a larger table: named with its process, where it is worth a person's time. */
TEST(a_growing_line_that_the_verdict_does_not_name_is_told_beside_it)
{
	static const struct {
		uint64_t bytes, most_bytes; // of these, of one process
		unsigned line;
		bool is_top_leak, is_of_child, is_built_once;
		const char *says; // NULL: nothing is told beside it
	} cases[] = {
		{ 28, 28, 8, true, true, false,
		  " In worker.py (pid 4243), blocks of train.py:8 epoch (28.0 MiB) look like a leak too." },
		{ 28, 28, 8, false, true, false,
		  " In worker.py (pid 4243), blocks of train.py:8 epoch (28.0 MiB) look like a leak." },
		{ 28, 28, 8, true, true, true,
		  " In worker.py (pid 4243), blocks of train.py:8 epoch (28.0 MiB) may be a leak too." },
		{ 28, 25, 8, true, true, false,
		  " In several processes, blocks of train.py:8 epoch (28.0 MiB) look like a leak too." },
		{ 28, 28, 8, true, false, false, " Blocks of train.py:8 epoch (28.0 MiB) look like a leak too." },
		{ 28, 28, 41, true, false, false, NULL }, // the same line, in another kind of memory
		{ 10, 10, 8, true, true, false, NULL },
	};

	EACH_CASE(i, cases)
	{
		struct kmem_identity child;
		struct model_process processes[2];
		struct model_site *site;
		child = hand_model_child(&hand);
		processes[0] = processes[1] = hand.process;
		processes[1].identity = &child;
		processes[1].name = "worker.py";
		processes[1].parent = 0;
		processes[0].live_bytes = 300 * MIB;
		processes[1].live_bytes = cases[i].bytes * MIB;
		processes[0].is_alive = processes[1].is_alive = true;
		hand_model_generations(hand_model_site(&hand, HEAP, 41, 300 * MIB), cases[i].is_top_leak ? 12 : 1, 12, 3, 3);
		site = leaking(cases[i].line == 41 ? MMAP : HEAP, cases[i].line, cases[i].bytes * MIB);
		site->where = cases[i].line == 41 ? hand.sites[0].where : site->where;
		site->process = cases[i].is_of_child;
		site->most_live_bytes = cases[i].most_bytes * MIB;
		site->volume_bytes = cases[i].is_built_once ? site->allocated_bytes : 100 * site->allocated_bytes;
		if (cases[i].is_of_child) {
			hand.model.processes = processes;
			hand.model.process_count = 2;
		}
		verdict_waited(SIGKILL);
		if ((strstr(found_text(&verdict), "; accumulates-beside ") != NULL) != (cases[i].says != NULL))
			fail_msg("%zu: %s", i, found_text(&verdict));
		if (cases[i].says != NULL && strstr(verdict.text, cases[i].says) == NULL)
			fail_msg("%zu: %s", i, verdict.text);
	}
}

/* timeout 3600 python train.py: it ends itself by SIGKILL when its child was ended by that, whoever sent it. */
TEST(a_time_limit_is_named)
{
	static const char plain[] = "timeout\0"
								"60\0"
								"python";
	static const char kills[] = "timeout\0-s\0KILL\0"
								"60\0"
								"python";
	static const char number[] = "timeout\0-s\0"
								 "9\0"
								 "0.9m\0"
								 "python";
	static const char later[] = "timeout\0-k\0"
								"5\0"
								"60s\0"
								"python";
	static const char early[] = "timeout\0-k\0"
								"5\0"
								"2h\0"
								"python"; // it ran for a minute
	static const char never[] = "timeout\0--signal=KILL\0"
								"0\0"
								"python";
	static const struct {
		const char *parent, *command;
		size_t command_bytes;
		int status; // -1: nobody waited for it, and it wrote down that it ended with 124
		uint64_t kills;
		const char *cause, *advised;
	} cases[] = {
		{ "timeout", plain, sizeof(plain), 124 << 8, 0, "time-up", "give-more-time" },
		{ "timeout", plain, sizeof(plain), -1, 0, "time-up", "give-more-time" },
		{ "timeout", kills, sizeof(kills), SIGKILL, 0, "time-up", "give-more-time" },
		{ "timeout", number, sizeof(number), SIGKILL, 0, "time-up", "give-more-time" },
		{ "timeout", later, sizeof(later), SIGKILL, 0, "time-up", "give-more-time" },
		{ "timeout", early, sizeof(early), SIGKILL, 0, "gone", "ask-parent" },
		{ "timeout", never, sizeof(never), SIGKILL, 0, "gone", "ask-parent" },
		{ "timeout", plain, sizeof(plain), SIGKILL, 0, "gone", "ask-parent" },
		{ "timeout", plain, sizeof(plain), 1 << 8, 0, "gone", "ask-parent" },
		{ "sh", plain, sizeof(plain), 124 << 8, 0, "gone", "ask-parent" },
		{ "timeout", kills, sizeof(kills), SIGKILL, 1, "machine-memory", "hold-less" },
	};
	struct model_process processes[2];

	EACH_CASE(i, cases)
	{
		struct kmem_identity child;
		memcpy(hand.identity.command, cases[i].command, cases[i].command_bytes);
		hand.identity.command_bytes = (uint32_t)cases[i].command_bytes;
		child = hand_model_child(&hand);
		hand_model_site(&hand, HEAP, 41, 400 * MIB)->process = 1;
		hand_model_waited(&hand, cases[i].status);
		hand.launcher.after.cgroup_oom_kill = cases[i].kills;
		processes[0] = processes[1] = hand.process;
		processes[0].name = cases[i].parent;
		processes[0].live_bytes = 0;
		if (cases[i].status == -1) {
			processes[0].launcher = NULL;
			processes[0].state = KMEM_STATE_CLEAN_EXIT;
			processes[0].exit_code = 124;
		}
		processes[1].identity = &child;
		processes[1].launcher = NULL;
		processes[1].parent = 0;
		processes[1].live_bytes = 400 * MIB;
		hand.model.processes = processes;
		hand.model.process_count = 2;
		hand_model_decide(&hand, &verdict);
		assert_cause(&verdict, cases[i].cause);
		assert_advised(&verdict, cases[i].advised);
		assert_int_equal(verdict.process->identity->pid, 4243);
		assert_int_equal(strstr(verdict.text, "was ended by timeout") != NULL,
		                 strcmp(cases[i].advised, "give-more-time") == 0);
	}
}

TEST(nobody_is_told_to_raise_a_limit_that_is_the_machine)
{
	for (int is_growing = 0; is_growing < 2; is_growing++) { // that is no matter
		hand_model_make(&hand);
		hand_model_generations(hand_model_site(&hand, HEAP, 41, 40 * MIB), is_growing ? 12 : 1, 12, 3, 3);
		hand_model_exited(&hand, 1);
		hand_model_refuse(&hand, 58 * GIB * 1024);
		hand_model_decide(&hand, &verdict);
		assert_advised(&verdict, "ask-for-less");
		assert_found(&verdict, "; address-limit; little-held 40.0 MiB");
		assert_non_null(strstr(verdict.text, "more than the machine has (16.0 GiB)"));
	}
	hand.failed.bytes = 12 * GIB; // a limit was in the way
	hand_model_decide(&hand, &verdict);
	assert_advised(&verdict, "ask-for-less-or-raise-limit");
	assert_not_found(&verdict, "address-limit");
}

/* A device is full of what was given back to the driver's pools: that is nobody else's, and no line's. */
TEST(what_pools_keep_is_told)
{
	static const struct {
		uint64_t live_bytes, pool_kept_bytes, asked_bytes;
		bool is_leak, is_told, is_enough;
		const char *advised;
	} cases[] = {
		{ 8 * MIB, 40 * MIB, 50 * MIB, false, true, true, "trim-driver-pools" },
		{ 0, 40 * MIB, 50 * MIB, false, true, true, "trim-driver-pools" },
		{ 8 * MIB, 40 * MIB, 70 * MIB, false, true, false, "see-device-peak" },
		{ 30 * MIB, 4 * MIB, 70 * MIB, false, false, false, "see-device-peak" },
		{ 30 * MIB, 0, 10 * MIB, false, false, false, "see-device-peak" },
		{ 40 * MIB, 12 * MIB, 20 * MIB, true, true, true, "release-device-blocks" },
	};

	EACH_CASE(i, cases)
	{
		if (cases[i].live_bytes != 0)
			hand_model_generations(hand_model_site(&hand, CUDA0, 41, cases[i].live_bytes), cases[i].is_leak ? 12 : 1,
			                       12, 3, 3);
		hand_model_exited(&hand, 1);
		hand_model_refuse(&hand, cases[i].asked_bytes);
		hand.failed.domain = CUDA0;
		hand.failed.free_bytes = 12 * MIB;
		hand.failed.total_bytes = 64 * MIB;
		hand.failed.pool_kept_bytes = cases[i].pool_kept_bytes;
		hand_model_decide(&hand, &verdict);
		if ((strstr(found_text(&verdict), "; device-pools ") != NULL) != cases[i].is_told ||
		    (strstr(verdict.text, "enough for the request, with what was free.") != NULL) != cases[i].is_enough)
			fail_msg("%zu: %s", i, verdict.text);
		assert_advised(&verdict, cases[i].advised);
		assert_not_found(&verdict, "unknown place");
	}
}

/* As in a notebook: what the device holds is the story, not what little the host has. */
TEST(of_a_program_that_runs_a_refusing_device_comes_first)
{
	for (int is_leak = 0; is_leak < 2; is_leak++) {
		hand_model_make(&hand);
		hand_model_site(&hand, HEAP, 12, 180 * MIB);
		hand.model.domain_count = HAND_DOMAINS + 1;
		hand_model_site(&hand, CUDA0, 44, 11 * GIB);
		hand_model_generations(hand_model_site(&hand, TENSORS0, 44, 11 * GIB), is_leak ? 12 : 1, 12, 3, 3);
		hand.process.is_alive = true;
		hand_model_refuse(&hand, 8 * GIB);
		hand.failed.domain = TENSORS0;
		hand.failed.site = &hand.sites[2];
		hand.failed.free_bytes = 4 * GIB;
		hand.failed.total_bytes = 16 * GIB;
		hand_model_decide(&hand, &verdict);
		assert_cause(&verdict, "running");
		assert_found(&verdict, "ending; device-refused 8.00 GiB; domain [cuda:0] 11.0 GiB; ");
		assert_found(&verdict, "; live 180 MiB; line 180 MiB of 180 MiB at train.py:12 epoch; usage");
		assert_null(strstr(strstr(found_text(&verdict), "[cuda:0]"), "; domain "));
		assert_advised(&verdict, is_leak ? "release-tensors" : "see-device-peak");
	}
}

/* Nobody but its author knows whether it is a data set: the text and what to do next may not contradict each other. */
TEST(what_may_be_a_data_set_of_a_program_that_ended_well_is_left_to_its_author)
{
	static const struct {
		uint64_t volume_bytes;
		bool is_arena, has_device;
		bool is_left_to_author;
		const char *confidence, *advised;
	} cases[] = {
		{ 400 * MIB, false, false, true, "possible", "release-blocks" },
		{ 16 * GIB, false, false, false, "likely", "release-blocks" }, // sure: nothing takes it back
		{ 0, false, false, false, "likely", "release-blocks" },
		{ 400 * MIB, true, false, true, "possible", "record-python-objects" },
		{ 400 * MIB, false, true, false, "possible", "release-device-growth" },
	};

	EACH_CASE(i, cases)
	{
		struct model_site *site;
		char found[100];
		if (cases[i].is_arena)
			hand_model_domain(&hand.domains[HEAP], "python/arena");
		site = leaking(HEAP, 41, 300 * MIB);
		site->volume_bytes = cases[i].volume_bytes;
		if (cases[i].has_device)
			leaking(CUDA0, 50, 20 * MIB);
		verdict_exited(0);
		(void)snprintf(found, sizeof(found), "accumulates 300 MiB of 300 MiB at train.py:41 epoch, %s",
		               cases[i].confidence);
		assert_found(&verdict, found);
		assert_advised(&verdict, cases[i].advised);
		if (cases[i].has_device)
			assert_non_null(strstr(verdict.next, "the blocks of train.py:50 epoch alive"));
		assert_int_equal(strstr(verdict.next, "; if it is a data set, no action is needed") != NULL,
		                 cases[i].is_left_to_author);
	}
}

/* It ended well, and with some more data it would not have. */
TEST(who_nearly_filled_the_limit_is_told_at_which_line)
{
	static const struct {
		uint64_t limit_bytes, live_bytes, resident_bytes;
		const char *found, *advised;
	} cases[] = {
		{ 400 * MIB, 370 * MIB, 396 * MIB, "; little-room 396 MiB of 400 MiB", "little-room" },
		{ 16 * GIB, 14 * GIB, 15 * GIB, "; little-room 15.0 GiB of 16.0 GiB", "little-room" },
		{ 400 * MIB, 300 * MIB, 399 * MIB, "", "nothing" }, // files that it read
		{ 400 * MIB, 900 * MIB, 300 * MIB, "", "nothing" }, // not touched
		{ UINT64_MAX, 900 * MIB, 900 * MIB, "", "nothing" },
	};

	EACH_CASE(i, cases)
	{
		struct kmem_heartbeat beats[2];
		char found[160];
		hand_model_site(&hand, HEAP, 41, 370 * MIB)->live_bytes = MIB;
		beats[0] = beats[1] = hand.heartbeat; // the last one is long after the peak
		beats[0].limit_bytes = beats[1].limit_bytes = cases[i].limit_bytes;
		beats[0].live_bytes = cases[i].live_bytes;
		beats[0].resident_bytes = cases[i].resident_bytes + 9 * MIB; // a file's pages are charged to who read it first
		beats[0].cgroup_bytes = cases[i].resident_bytes;
		beats[1].resident_bytes = 20 * MIB;
		hand.process.heartbeats = beats;
		hand.process.heartbeat_count = 2;
		verdict_exited(0);
		(void)snprintf(found, sizeof(found),
		               "ending; peak 370 MiB; peak-line 370 MiB of 370 MiB at train.py:41 epoch%s", cases[i].found);
		assert_string_equal(found_text(&verdict), found);
		assert_advised(&verdict, cases[i].advised);
		assert_int_equal(strstr(verdict.text, "of the machine's 16.0 GiB") != NULL, i == 1);
	}
}

/* After "It held at most 300 MiB in its heap" more than that can only be live elsewhere, too. */
TEST(more_than_the_peak_of_a_domain_is_live_in_all)
{
	for (unsigned i = 0; i < 4; i++) {
		hand_model_make(&hand);
		leaking(HEAP, 41, 300 * MIB);
		if (i != 0)
			hand_model_site(&hand, MMAP, 42, 8 * MIB);
		if (i == 2)
			hand_model_site(&hand, CUDA0, 43, 100 * MIB);
		hand_model_exited(&hand, i == 3); // by itself, too
		hand_model_decide(&hand, &verdict);
		assert_found(&verdict,
		             i != 0 ? "ending; peak 300 MiB; live 308 MiB; line 300 MiB of 308 MiB at train.py:41 epoch"
		                    : "ending; peak 300 MiB; live 300 MiB; line 300 MiB of 300 MiB at train.py:41 epoch");
		assert_non_null(strstr(verdict.text, i == 2   ? " was live in all on the host. "
		                                     : i != 0 ? " was live in all. "
		                                              : " was live. "));
	}
}

/* What grows is the cause; what holds as much beside it may be its copy of the moment. */
TEST(of_two_that_hold_about_as_much_the_one_that_grows_comes_first)
{
	static const struct {
		uint64_t copy_mib;
		const char *found;
	} cases[] = {
		{ 114, "line 100 MiB of 214 MiB at train.py:41 epoch; accumulates" },
		{ 115, "line 115 MiB of 215 MiB at train.py:12 epoch; next-line 100 MiB" },
	};

	EACH_CASE(i, cases)
	{
		hand_model_site(&hand, HEAP, 12, cases[i].copy_mib * MIB);
		leaking(HEAP, 41, 100 * MIB);
		hand_model_waited(&hand, SIGKILL);
		hand.launcher.after.cgroup_oom_kill = 1;
		hand_model_decide(&hand, &verdict);
		assert_found(&verdict, cases[i].found);
	}
}

/* Small objects of a short run are too few to judge; the blocks of the same line are not. */
TEST(a_line_grows_where_one_kind_of_its_memory_does)
{
	static const struct {
		uint64_t leaking_mib;
		uint32_t line;
		bool is_growing;
	} cases[] = { { 10, 41, true }, { 9, 41, false }, { 10, 42, false } };

	EACH_CASE(i, cases)
	{
		struct model_site *objects;
		struct model_site *blocks;
		objects = hand_model_site(&hand, HEAP, 41, 40 * MIB);
		hand_model_generations(objects, 2, 2, 1, 1);
		hand_model_domain(&hand.domains[MMAP], "python/object");
		blocks = hand_model_site(&hand, MMAP, cases[i].line, cases[i].leaking_mib * MIB);
		hand_model_generations(blocks, 12, 12, 3, 3);
		if (cases[i].line == 41)
			blocks->where = objects->where;
		verdict_exited(0);
		assert_int_equal(strstr(found_text(&verdict), "accumulates") != NULL, cases[i].is_growing);
	}
}

/* A library takes few large regions, and many small blocks beside them: what cannot be judged is not steady. */
TEST(growth_is_no_trifle_where_the_rest_cannot_be_judged)
{
	static const struct {
		uint32_t generations;
		const char *advised;
	} cases[] = { { 3, "release-blocks" }, { 2, "hold-less" } };

	EACH_CASE(i, cases)
	{
		struct model_site *regions;
		struct model_site *small;
		regions = hand_model_site(&hand, HEAP, 41, 800 * MIB);
		hand_model_generations(regions, cases[i].generations, cases[i].generations, 1, 1);
		small = hand_model_site(&hand, HEAP, 41, 8 * MIB);
		hand_model_generations(small, 12, 12, 3, 3);
		small->where = regions->where;
		hand_model_waited(&hand, SIGKILL);
		hand.launcher.after.cgroup_oom_kill = 1;
		hand_model_decide(&hand, &verdict);
		assert_advised(&verdict, cases[i].advised);
	}
}

/* Each of many running calls of one function keeps a copy: to bound one of them mends nothing. */
TEST(a_line_that_grows_with_the_depth_of_a_recursion_is_told_so)
{
	static const struct {
		unsigned depth;
		bool was_looked_at;
		struct way_step held_by;
		bool is_told;
	} cases[] = {
		{ 63, false, { .kind = WAY_MODULE }, false },
		{ 64, false, { .kind = WAY_MODULE }, true },
		{ 64, true, ROOT(LOCAL, "memo", "epoch() (train.py:40)"), true },
		{ 64, true, STACK, true },
		{ 64, true, ROOT(LOCAL, "memo", "main() (train.py:90)"), false },
		{ 64, true, ROOT(GLOBAL, "memo", "train"), false }, // it remembers what it has worked out
	};

	EACH_CASE(c, cases)
	{
		const unsigned depth = cases[c].depth;
		const struct model_frame *frames[64];
		struct way_step root = cases[c].held_by;
		struct holders_way way = made_way(
			(struct holders_way){ HEAD(HELD, 32, "", 0, ""), .steps = &root, .step_count = 1 });
		struct holders_line line = { .samples = 32, .way_count = 1, .ways = &way, .line = 41 };
		struct holders holders;
		struct model_site *site;
		bool is_deep = cases[c].is_told;

		site = make_held(&line, &holders, 300 * MIB);
		hand_model_generations(site, 12, 12, 3, 3);
		hand.process.holders = cases[c].was_looked_at ? &holders : NULL;
		for (unsigned i = 0; i < depth; i++)
			frames[i] = site->where;
		site->frames = frames;
		site->frame_count = depth;
		hand.heartbeat.available_bytes = 100 * MIB;
		verdict_waited(SIGKILL);
		assert_int_equal(strstr(verdict.text, "It grows with the depth of epoch, which calls itself.") != NULL,
		                 is_deep);
		assert_int_equal(strstr(verdict.next,
		                        "let epoch call itself less deep, or hold less in each call: what train.py:41 epoch "
		                        "allocates stays until the call returns") != NULL,
		                 is_deep);
	}
}

/* A model of some size that is loaded once hides no leak beside it. */
TEST(what_accumulates_beside_the_largest_line_is_what_there_is_to_do)
{
	for (unsigned i = 0; i < 4; i++) {
		struct model_site *site;

		hand_model_make(&hand);
		hand_model_site(&hand, HEAP, 12, 300 * MIB);
		site = hand_model_site(&hand, HEAP, 41, 200 * MIB);
		hand_model_generations(site, i == 1 ? 1 : 12, 12, i == 1 ? 0 : 3, 3);
		site->volume_bytes = i == 2 ? 300 * MIB : 2 * GIB; // perhaps a second data set
		if (i == 3)
			hand_model_waited(&hand, SIGKILL);
		else
			hand_model_exited(&hand, 0);
		hand.launcher.after.cgroup_oom_kill = i == 3;
		hand_model_decide(&hand, &verdict);
		if (i == 1 || i == 2) {
			assert_not_found(&verdict, "train.py:41");
			assert_advised(&verdict, "nothing");
			continue;
		}
		assert_found(&verdict,
		             "line 300 MiB of 500 MiB at train.py:12 epoch; next-line 200 MiB of 500 MiB at train.py:41 epoch");
		assert_advised(&verdict, "release-next-blocks");
		assert_non_null(strstr(verdict.next, "the blocks of train.py:41 epoch"));
	}
}

/* "A running sum of tensors" is no help to who writes C++, nor to who has no tensors. */
TEST(what_often_keeps_blocks_depends_on_the_language)
{
	for (unsigned i = 0; i < 5; i++) {
		struct model_site *site;

		hand_model_make(&hand);
		leaking(HEAP, 41, 300 * MIB);
		site = hand_model_site(&hand, i == 3 ? CUDA0 : HEAP, 90, MIB);
		if (i == 2)
			site->import = "torch";
		if (i == 4)
			hand.frames[1][0].module = "libtensorflow_cc.so.2";
		if (i == 1)
			hand.frames[0][2].kind = MODEL_FRAME_NATIVE; // of a library in C that Python calls
		hand.process.python_version = 0x030b07f0;
		verdict_exited(0);
		assert_int_equal(strstr(verdict.next, "a list that is appended to, or a cache") != NULL, i == 0);
		assert_int_equal(strstr(verdict.next, "a running sum of tensors") != NULL, i >= 2);
		assert_int_equal(strstr(verdict.next, "a release that is missing") != NULL, i == 1);
	}
}

/* "Hold less at arenas": nobody can do that before the lines are known. */
TEST(arenas_that_fill_a_limit_are_to_be_recorded_object_by_object)
{
	hand_model_domain(&hand.domains[MMAP], "python/arena");
	leaking(MMAP, 41, 900 * MIB);
	hand_model_exited(&hand, 1);
	hand_model_refuse(&hand, MIB);
	hand.failed.domain = MMAP;
	hand.identity.limits[0] = (struct kmem_limit){ .kind = KMEM_LIMIT_ADDRESS_SPACE, .bytes = GIB };
	hand_model_decide(&hand, &verdict);
	assert_advised(&verdict, "record-python-objects");
	assert_non_null(strstr(verdict.next, "; or raise the limit (ulimit -v)"));
}

/* A higher limit is reached as well. */
TEST(a_line_that_accumulates_up_to_a_limit_is_what_to_look_at)
{
	hand_model_generations(hand_model_site(&hand, HEAP, 41, 900 * MIB), 46, 46, 3, 3);
	hand.sites[0].allocated_bytes = 5000 * MIB;
	hand_model_exited(&hand, 1);
	hand_model_refuse(&hand, MIB);
	hand.identity.limits[0] = (struct kmem_limit){ .kind = KMEM_LIMIT_ADDRESS_SPACE, .bytes = GIB };
	hand_model_decide(&hand, &verdict);
	assert_advised(&verdict, "release-blocks");
}

/* Lists and dictionaries of the small objects are larger blocks: they show the line without a second run. */
TEST(what_accumulates_beside_arenas_is_the_better_clue)
{
	static const struct {
		uint64_t bytes;
		bool is_leak, is_user, is_said;
	} cases[] = {
		{ 3 * MIB, true, true, true },
		{ 3 * MIB, true, false, false },
		{ 3 * MIB, false, true, false },
		{ MIB / 2, true, true, false },
	};

	EACH_CASE(i, cases)
	{
		hand_model_domain(&hand.domains[MMAP], "python/arena");
		leaking(MMAP, 60, 106 * MIB);
		hand_model_generations(hand_model_site(&hand, HEAP, 41, cases[i].bytes), cases[i].is_leak ? 12 : 1, 12, 3, 3);
		hand.frames[1][2].is_user = cases[i].is_user;
		hand_model_waited(&hand, SIGKILL);
		hand.heartbeat.available_bytes = 100 * MIB;
		hand_model_decide(&hand, &verdict);
		assert_int_equal(strstr(found_text(&verdict), "accumulates-beside-arenas 3.0 MiB at train.py:41 epoch") != NULL,
		                 cases[i].is_said);
		assert_int_equal(strstr(verdict.next, "the blocks of train.py:41 epoch alive; or ") != NULL, cases[i].is_said);
		assert_advised(&verdict, "record-python-objects");
	}
}

/* PyTorch under a small limit: no line is to blame, and no recording of small objects would find one. */
TEST(what_imports_left_is_said_where_it_is_most)
{
	static const struct {
		uint64_t of_imports;
		unsigned alive;
		const char *found, *advised;
	} cases[] = {
		{ 200, 1, "; imports 200 MiB of 309 MiB; line 109 MiB of 309 MiB at train.py:60 epoch", "import-less" },
		{ 100, 1, "; live 209 MiB; line 109 MiB of 209 MiB at train.py:60 epoch", "record-python-objects" },
		{ 200, 12,
		  "; live 309 MiB; line 109 MiB of 309 MiB at train.py:60 epoch; accumulates 109 MiB of 109 MiB at train.py:60 epoch, "
		  "likely; imports 200 MiB",
		  "record-python-objects" },
	};

	EACH_CASE(i, cases)
	{
		hand_model_domain(&hand.domains[MMAP], "python/arena");
		hand_model_generations(hand_model_site(&hand, MMAP, 60, 109 * MIB), cases[i].alive, 12, cases[i].alive / 4, 3);
		hand_model_site(&hand, HEAP, 1, cases[i].of_imports * MIB)->stack_flags = KMEM_STACK_IMPORT_CUT;
		hand.heartbeat.available_bytes = 100 * MIB;
		verdict_waited(SIGKILL);
		assert_found(&verdict, cases[i].found);
		assert_advised(&verdict, cases[i].advised);
	}
}

/* The total of several threads is behind its parts by as much as they keep for themselves. */
TEST(a_line_is_told_once_and_never_of_more_than_all)
{
	for (unsigned i = 0; i < 2; i++) {
		hand_model_make(&hand);
		hand_model_generations(hand_model_site(&hand, HEAP, 41, 300 * MIB), i == 0 ? 12 : 1, 12, 3, 3);
		hand.domains[HEAP].peak_bytes = 299 * MIB;
		verdict_exited(0);
		assert_int_equal(strstr(found_text(&verdict), "; peak 299 MiB; live ") != NULL, i == 0);
		assert_int_equal(
			strstr(found_text(&verdict), "; peak 299 MiB; peak-line 299 MiB of 299 MiB at train.py:41 epoch") != NULL,
			i == 1);
	}
}

/* Who reads of 40 MiB that accumulate would not know who made the 900. */
TEST(a_line_that_held_much_more_at_the_peak_is_told_of_both)
{
	leaking(HEAP, 41, 40 * MIB);
	hand.sites[0].peak_bytes = hand.domains[HEAP].peak_bytes = 900 * MIB;
	verdict_exited(0);
	assert_found(
		&verdict,
		"peak 900 MiB; peak-line 900 MiB of 900 MiB at train.py:41 epoch; parts-in-memory 208 MiB of 300 MiB; live "
		"40.0 MiB; line 40.0 MiB of 40.0 MiB at train.py:41 epoch; accumulates");
}

TEST(what_imports_held_at_the_peak_is_said_where_it_is_most)
{
	static const struct {
		uint64_t own;
		const char *found;
	} cases[] = {
		{ 4,
		  "ending; peak 204 MiB; peak-line 4.0 MiB of 204 MiB at train.py:41 epoch; peak-imports 200 MiB of 204 MiB" },
		{ 300, "ending; peak 500 MiB; peak-line 300 MiB of 500 MiB at train.py:41 epoch" },
		{ 0, "ending; peak 200 MiB; peak-imports 200 MiB of 200 MiB" },
	};

	EACH_CASE(i, cases)
	{
		if (cases[i].own != 0)
			hand_model_site(&hand, HEAP, 41, cases[i].own * MIB);
		hand_model_site(&hand, HEAP, 1, 200 * MIB)->stack_flags = KMEM_STACK_IMPORT_CUT;
		verdict_exited(0);
		assert_string_equal(found_text(&verdict), cases[i].found);
	}
}

/* 300 MiB of PyTorch beside 136 MiB of kept losses: "nothing here points at memory" was said of them. */
TEST(imports_do_not_hide_what_accumulates)
{
	leaking(HEAP, 41, 136 * MIB);
	hand_model_site(&hand, HEAP, 1, 300 * MIB)->stack_flags = KMEM_STACK_IMPORT_CUT;
	verdict_waited(SIGKILL);
	assert_non_null(strstr(verdict.text, "Memory was far from the limits."));
	assert_found(
		&verdict,
		"line 136 MiB of 436 MiB at train.py:41 epoch; accumulates 136 MiB of 136 MiB at train.py:41 epoch, likely; "
		"imports 300 MiB of 436 MiB");
	assert_advised(&verdict, "find-sender, release-blocks");
}

/* A parent of 4242 that is well, and a child without a mark of its end. */
TEST(a_child_that_a_signal_ended_is_to_be_looked_at)
{
	static const struct {
		bool is_growing;
		uint64_t kills;
		const char *advised;
		uint64_t held_bytes; // by the child; 0 = not known
	} cases[] = {
		{ false, 0, "see-child", 0 },
		{ true, 0, "release-blocks, see-child", 0 },
		{ true, 1, "release-blocks, see-child", 0 },
		{ true, 0, "release-blocks, see-child", MIB },
		{ true, 0, "release-blocks", MIB - 1 }, // a worker that a pool ended
	};
	static struct model_process processes[2];
	static struct kmem_identity child;

	EACH_CASE(i, cases)
	{
		struct model_site *site;
		site = hand_model_site(&hand, HEAP, 41, 400 * MIB);
		if (cases[i].is_growing)
			hand_model_generations(site, 12, 12, 3, 3);
		site->volume_bytes = 400 * MIB;
		processes[1] = hand.process;
		hand_model_exited(&hand, 0);
		hand_model_waited(&hand, 0);
		hand.launcher.after.cgroup_oom_kill = hand.identity.before.cgroup_oom_kill + cases[i].kills;
		processes[0] = hand.process;
		child = hand_model_child(&hand);
		processes[1].identity = &child;
		processes[1].path = "kmemshim.out/child.kmem";
		processes[1].live_bytes = cases[i].held_bytes;
		hand.model.processes = processes;
		hand.model.process_count = 2;
		hand_model_decide(&hand, &verdict);
		assert_string_equal(verdict_cause_name(verdict.cause), cases[i].kills != 0 ? "child-killed" : "exited");
		assert_advised(&verdict, cases[i].advised);
		assert_int_equal(strstr(verdict.next, "`kmemshim report kmemshim.out/child.kmem`") != NULL,
		                 cases[i].held_bytes != MIB - 1);
		assert_int_equal(strstr(verdict.next, "; if it is a data set, load less of it at once, or give") != NULL,
		                 cases[i].kills != 0);
		assert_int_equal(strstr(found_text(&verdict), "; lost-children") != NULL, cases[i].kills == 0);
	}
}

TEST(a_program_that_allocates_nothing_has_no_peak_to_look_at)
{
	hand.model.domain_count = 0;
	verdict_exited(0);
	assert_string_equal(found_text(&verdict), "ending; no-allocation");
	assert_string_equal(verdict.next, "no action is needed");
}

/* A table was read, then a copy of it did not fit: the copy is what there is to do something about. */
TEST(who_took_much_last_of_a_killed_program_is_named)
{
	static const struct {
		uint64_t bytes;
		uint32_t generations;
		bool is_first_leak, is_filling;
		int signal;
		const char *found, *next;
	} cases[] = {
		{ 110, 1, false, false, SIGKILL,
		  "next-line 110 MiB of 224 MiB at train.py:50 epoch; came-last 110 MiB of 224 MiB at train.py:50 epoch",
		  "hold less at once at train.py:50 epoch, which took much last, or at train.py:41 epoch (smaller pieces, a smaller "
		  "type, release earlier), or give the program more memory" },
		{ 110, 1, false, true, SIGKILL, "line 114 MiB of 224 MiB at train.py:41 epoch; next-line", NULL },
		{ 40, 1, false, false, SIGKILL, "line 114 MiB of 154 MiB at train.py:41 epoch; came-last 40.0 MiB of 154 MiB",
		  NULL },
		{ 40, 1, true, false, SIGKILL, "likely; came-last 40.0 MiB of 154 MiB at train.py:50 epoch",
		  "; or hold less at once at train.py:50 epoch, which took much last" },
		{ 110, 2, false, false, SIGKILL, NULL, NULL },
		{ 110, 1, false, false, SIGSEGV, NULL, NULL },
	};

	EACH_CASE(i, cases)
	{
		struct model_site *first;
		first = hand_model_site(&hand, HEAP, 41, 114 * MIB);
		hand_model_generations(first, cases[i].is_first_leak ? 12 : 1, 12, 3, 3);
		hand_model_generations(hand_model_site(&hand, HEAP, 50, cases[i].bytes * MIB), 1, cases[i].generations, 1, 1);
		hand_model_generations(hand_model_site(&hand, HEAP, 50, 256), 1, 12, 0, 3); // what an import made of it
		hand.heartbeat.available_bytes = 100 * MIB;
		hand_model_waited(&hand, cases[i].signal);
		if (cases[i].is_filling) {
			hand_model_generations(first, 12, 12, 3, 3);
			first->live_count = 1000;
			first->born_generations = 12;
			memcpy(first->quarters, (const uint64_t[]){ 600, 300, 80, 20 }, sizeof(first->quarters));
			first->volume_bytes = first->live_bytes * 8;
		}
		hand_model_decide(&hand, &verdict);
		if (cases[i].is_filling)
			assert_int_equal(first->leak, MODEL_LEAK_FILLING);
		assert_null(strstr(verdict.text, "as a cache that fills"));
		if (cases[i].found != NULL)
			assert_found(&verdict, cases[i].found);
		else
			assert_null(strstr(found_text(&verdict), "came-last"));
		if (cases[i].next != NULL)
			assert_non_null(strstr(verdict.next, cases[i].next));
	}
}

RUN_TESTS(verdict_case_begin, NULL)
