/*
 * test_verdict_next.c - is a person whose program died sent to the right thing first?
 */
#include "verdict_case.h"
#include "made_ways.h"

#define LEAK "heap:41 300M leak; "
#define LOW "heartbeat available_bytes=100M; killed"

/* What ended it was not memory; what accumulates is the second thing to look at. */
TEST(far_from_the_limits_the_cause_comes_before_what_accumulates)
{
	static const char *const cases[][2] = {
		{ "status 1", "read-error, release-blocks" },
		{ "signal 11", "show-python-crash, release-blocks" },
		{ "process python_version=0; signal 11", "debug-crash, release-blocks" },
		{ "killed", "find-sender, release-blocks" },
		{ "signal 2", "find-interrupter, release-blocks" },
		{ LOW, "release-blocks" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		told("accumulates 300 MiB of 300 MiB at train.py:41 epoch, likely", cases[i][1], LEAK "%s", cases[i][0]);
		next("the blocks of train.py:41 epoch alive");
	}
}

/* Some of its blocks are released where none are made: a consumer's line. */
TEST(a_queue_is_named_where_another_line_releases_some)
{
	static const struct model_frame consumer = { .function = "take", .file = "q.py", .line = 29, .is_user = true };
	const struct {
		unsigned live, watched, elsewhere;
		bool is_told;
	} cases[] = { { 50, 11, 3, true },  { 50, 24, 3, true },  { 50, 11, 2, false },
		          { 50, 32, 3, false }, { 49, 11, 3, false }, { 50, 11, 0, false } };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		hand_model_make(&hand);
		scene_add(&hand, LEAK "last live_count=%u allocated_count=100; " LOW, cases[i].live);
		struct model_tally releases[] = { { { .where = hand.sites[0].where }, 9 },
			                              { { .where = &consumer }, cases[i].elsewhere } };

		hand.sites[0].releases = releases;
		hand.sites[0].release_count = 1 + (cases[i].elsewhere != 0);
		hand.sites[0].watched_releases = cases[i].watched;
		hand_model_decide(&hand, &verdict);
		assert_int_equal(strstr(verdict.next, "a cache, or a queue that q.py:29 take drains too slowly") != NULL,
		                 cases[i].is_told);
	}
}

/* Each of four workers builds the same index. */
TEST(what_each_process_makes_for_itself_is_shared_or_made_less_often)
{
	static const struct {
		const char *line, *advised;
		bool is_told;
	} cases[] = {
		{ "heap:41 400M process_count=4 most_live_bytes=125M", "share-among-processes", true },
		{ "heap:41 400M process_count=4 most_live_bytes=126M", "hold-less", false }, // one of them has more
		{ "heap:41 400M process_count=1 most_live_bytes=400M", "hold-less", false },
		{ "heap:41 400M leak process_count=4 most_live_bytes=100M volume_bytes=420M", "share-among-processes", true },
		{ "heap:41 400M leak process_count=4 most_live_bytes=100M volume_bytes=4G", "release-blocks", true },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		told(NULL, cases[i].advised, "%s; process live_bytes=100M; oom; child name=a; child name=b; child name=c",
		     cases[i].line);
		said(cases[i].is_told ? "about as much in each of 4" : "!about as much");
	}
	told(NULL, NULL, "%s; exit 0; child name=a", cases[0].line);
	next("!run fewer");
}

TEST(that_nobody_looked_is_said_where_the_launcher_was_there)
{
	scene(LEAK "oom");
	decided(NULL, "release-blocks");
	said("What holds the blocks of train.py:41 epoch was not looked at before the end.");
	said("oom_kill counter rose from 0 to 1.");
	hand.launcher.flags = KMEM_LAUNCHER_LOOK_KILLED;
	decided(NULL, NULL);
	said("What holds the blocks of train.py:41 epoch was not looked at before the end: the look was killed, too.");
	said("rose from 0 to 1, without a look of kmemshim's that was killed.");
	told(NULL, NULL, "mmap:41 300M leak; oom");
	said("!not looked at");
	told(NULL, NULL, LEAK "oom; process launcher=0");
	said("!not looked at");
}

TEST(small_objects_may_be_in_circles)
{
	told(NULL, NULL, "name mmap python/object; mmap:41 300M leak samples=900; model sample_bytes=256K; " LOW);
	next("a cache, or objects in circles while the garbage collector is off (gc.disable)");
}

/* No look follows mappings. */
TEST(what_keeps_mappings_is_looked_for_by_the_user)
{
	told(NULL, "release-blocks", "mmap:41 300M leak; " LOW);
	next(
		"look for what keeps the mappings of train.py:41 epoch, or makes them larger: often objects in a list or a cache");
}

/* A model with one line of code, of which a look knows what holds it. */
static struct model_site *
make_held(struct holders_line *line, struct holders *holders, uint64_t bytes)
{
	hand_model_make(&hand);
	struct model_site *site = hand_model_site(&hand, HEAP, 41, bytes);
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
		{ { HEAD(LOST, 32, "", 0, ""),
		    STEPS(OBJECT("Session", .by = WAY_BY_ATTRIBUTE, .member = "reader"), OBJECT("fastread.Reader")),
		    .uncollected = "fastread.Reader" },
		  "they were in circles of objects, which the garbage collector (gc) cannot free: it does not see fastread.Reader.",
		  "break the circle that holds the objects of train.py:41 epoch (weakref), or give fastread.Reader tp_traverse and tp_clear" },
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
		{ { HEAD(HELD, 32, "list", 285600, "a.py:9 g"), // which fills it: the call is a loop of events
		    STEPS(ROOT(LOCAL, "rows", "f_impl() (f.c:69)"), MANY("list", 285600), OBJECT("str")),
		    .call = WAY_CALL_NATIVE },
		  "they were held by local `rows` of f_impl()",
		  "look for what keeps the blocks of train.py:41 epoch alive" },
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
		  "bound the list at Items .all (2,000 items at the look, grown at a.py:9 g), or drop what is not needed from it: it keeps the blocks of "
		  "train.py:41 epoch alive" },
		{ { HEAD(HELD, 32, "list", 2000, "a.py:9 g"),
		    STEPS(ROOT(LOCAL, "queue", "_worker() (thread.py:69)"), OBJECT("tuple", .by = WAY_BY_ITEM, .member = "1"),
		          MANY("list", 2000), OBJECT("str")),
		    .call = WAY_CALL_PYTHON },
		  "they were held by local `queue` of _worker()",
		  "bound the list (2,000 items at the look, grown at a.py:9 g), or drop" },
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
		{ { HEAD(UNSEEN, 30, "", 0, ""),
		    STEPS({ .kind = WAY_REASON, .name = "str with 1 reference, of which 0 were found", .count = 1 }) },
		  "30 of 32 samples of them were held by something that was not found: str with 1 reference, of which 0 were found.",
		  "look in the native extension that train.py:41 epoch calls for a Py_DECREF that is missing: nothing holds the references that "
		  "keep the blocks of train.py:41 epoch alive" },
		{ { HEAD(UNFINISHED, 32, "", 0, ""), STEPS(ROOT(REASON, "no time", "")) },
		  "When the guard was passed, there was no time to find what holds them.",
		  "look for what keeps the blocks of train.py:41 epoch alive: often a list that is appended to, or a cache; "
		  "`kmemshim run --holders-stop 5s` gives the search for what holds it more time" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct holders_way way = made_way(cases[i].way);
		struct holders_line line = { .samples = 32, .way_count = 1, .ways = &way, .line = 41 };
		struct holders holders;

		struct model_site *site = make_held(&line, &holders, 300 * MIB);
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

TEST(what_waits_in_a_transport_is_a_backlog)
{
	struct holders_way way = made_way((struct holders_way){
		HEAD(HELD, 32, "", 0, ""),
		STEPS(ROOT(LOCAL, "archive", "main() (a.py:3)"), OBJECT("Archive", .by = WAY_BY_ATTRIBUTE, .member = "process"),
	          OBJECT("asyncio.unix_events._UnixWritePipeTransport", .by = WAY_BY_ATTRIBUTE, .member = "_buffer"),
	          OBJECT("bytearray")) });
	struct holders_line line = { .samples = 32, .way_count = 1, .ways = &way, .line = 41 };
	struct holders holders;
	struct model_site *site = make_held(&line, &holders, 300 * MIB);

	hand_model_generations(site, 12, 12, 3, 3);
	site->volume_bytes = 310 * MIB;
	hand.heartbeat.available_bytes = 100 * MIB;
	verdict_waited(SIGKILL);
	assert_advised(&verdict, "bound-backlog");
	assert_int_equal(site->leak, MODEL_LEAK_BACKLOG);
	assert_non_null(strstr(verdict.text, "It is a backlog: what was written waits in a transport of asyncio"));
	assert_string_equal(
		verdict.next,
		"wait for the other side after each write at train.py:41 epoch (await drain()): it reads more slowly than "
		"that, and the blocks of train.py:41 epoch wait in local `archive` of main() (a.py:3) -> Archive .process -> "
		"asyncio.unix_events._UnixWritePipeTransport ._buffer -> bytearray");
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
		{ { { HEAD(HELD, 10, "", 0, ""), STEPS(ROOT(STATIC, "book", "libx.so"), OBJECT("Entry")) },
		    { HEAD(HELD, 22, "", 0, ""), STEPS(ROOT(GLOBAL, "seen", "__main__")) } },
		  "release-blocks-or-hold-less",
		  "let go of a part of the blocks of train.py:41 epoch: they are held by static variable `book` of libx.so",
		  "10 of 32 samples of them were held by static variable `book`" },
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
		{ { HEAD(HELD, 32, "list", 30, "train.py:8 main"), // of a call that the error ended
		    STEPS(ROOT(GLOBAL, "last_traceback", "sys"),
		          OBJECT("traceback", .by = WAY_BY_ATTRIBUTE, .member = "tb_frame"),
		          OBJECT("frame", .by = WAY_BY_LOCAL, .member = "rows", .function = "main() (train.py:8)"),
		          MANY("list", 30)),
		    .module = "sys", .grown_file = "/w/train.py" },
		  "release-blocks",
		  "bound the list at local `rows` of main() (train.py:8) (30 items at the look, grown at train.py:8 main), or drop what is not "
		  "needed from it: it keeps the blocks of train.py:41 epoch alive; or raise the limit (ulimit -v)" },
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
#define QUEUE "heap:41 400M live_count=%u allocated_count=%u allocated_bytes=800M gens=4/12/3/3; " LOW
	told(NULL, "bound-backlog", QUEUE, 64, 128);
	said(" a backlog, such as a queue");
	told(NULL, "hold-less", QUEUE, 63, 126); // few blocks that grow
	said("! a backlog");
	told(NULL, "hold-less", QUEUE "; heap:50 150M; heap:51 150M; heap:52 150M", 64, 128);
	said("! a backlog");
}

/* frames.append(read_csv()), then concat(frames): the half of it is half of the truth. */
TEST(a_line_that_holds_nearly_as_much_is_named_too)
{
#define FIRST "line 300 MiB of 590 MiB at train.py:41 epoch"
#define LEAKS "accumulates 300 MiB of 300 MiB at train.py:41 epoch, likely"
	static const char *const cases[][3] = {
		// which grows comes first
		{ "heap:41 300M gens=1/12/3/3; heap:50 290M leak",
		  "line 290 MiB of 590 MiB at train.py:50 epoch; accumulates 290 MiB of 290 MiB at train.py:50 epoch, likely; next-line 300 MiB of",
		  "Another 300 MiB (51 %) was allocated at train.py:41 epoch." },
		{ "heap:41 300M gens=1/12/3/3; heap:50 262M leak",
		  "line 262 MiB of 562 MiB at train.py:50 epoch; accumulates 262 MiB of 262 MiB at train.py:50 epoch, likely; next-line 300 MiB "
		  "of 562 MiB at train.py:41 epoch; usage",
		  "Another 300 MiB (53 %) was allocated at train.py:41 epoch." },
		{ LEAK "heap:50 290M gens=1/12/3/3", FIRST "; " LEAKS "; next-line", "train.py:50 epoch." },
		{ LEAK "heap:50 290M leak", "likely; next-line 290 MiB of 590 MiB at train.py:50 epoch; usage",
		  "train.py:50 epoch, which looks like a leak too." },
		{ "heap:41 300M gens=1/12/3/3; heap:50 290M gens=1/12/3/3",
		  FIRST "; next-line 290 MiB of 590 MiB at train.py:50 epoch; usage", "train.py:50 epoch." },
		{ LEAK "heap:50 149M leak", "at train.py:41 epoch; " LEAKS "; accumulates-beside",
		  "Blocks of train.py:50 epoch (149 MiB) look like a leak too." },
		{ LEAK "heap:50 149M gens=1/12/3/3", LEAKS "; usage", "" },
		{ LEAK "mmap:41 290M gens=1/12/3/3", "likely; next-line 290 MiB of 590 MiB at train.py:41 epoch; usage",
		  "at the same line in mmap." },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		told(cases[i][1], NULL, "%s; killed", cases[i][0]);
		said(cases[i][2]);
	}
}

/* A worker that grows beside a larger table: named with its process, where it is worth a person's time. */
TEST(a_growing_line_that_the_verdict_does_not_name_is_told_beside_it)
{
#define OF_CHILD "; process live_bytes=300M; child name=worker.py live_bytes=28M"
	static const struct {
		const char *scene, *says; // NULL: nothing is told beside it
	} cases[] = {
		{ LEAK "heap:8 28M leak process=1 most_live_bytes=28M volume_bytes=3G" OF_CHILD,
		  " In worker.py (pid 4243), blocks of train.py:8 epoch (28.0 MiB) look like a leak too." },
		{ "heap:41 300M gens=1/12/3/3; heap:8 28M leak process=1 most_live_bytes=28M volume_bytes=3G" OF_CHILD,
		  " In worker.py (pid 4243), blocks of train.py:8 epoch (28.0 MiB) look like a leak." },
		{ LEAK "heap:8 28M leak process=1 most_live_bytes=28M volume_bytes=28M" OF_CHILD,
		  " In worker.py (pid 4243), blocks of train.py:8 epoch (28.0 MiB) may be a leak too." },
		{ LEAK "heap:8 28M leak process=1 most_live_bytes=25M volume_bytes=3G" OF_CHILD,
		  " In several processes, blocks of train.py:8 epoch (28.0 MiB) look like a leak too." },
		{ LEAK "heap:8 28M leak volume_bytes=3G", " Blocks of train.py:8 epoch (28.0 MiB) look like a leak too." },
		{ LEAK "mmap:41 28M leak same volume_bytes=3G", NULL }, // the same line, in another kind of memory
		{ LEAK "heap:8 10M leak process=1 most_live_bytes=10M volume_bytes=1G" OF_CHILD, NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		told(cases[i].says != NULL ? "; accumulates-beside " : "!; accumulates-beside ", NULL, "alive; killed; %s",
		     cases[i].scene);
		said(cases[i].says != NULL ? cases[i].says : "");
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
		memcpy(hand.identity.command, cases[i].command, cases[i].command_bytes);
		hand.identity.command_bytes = (uint32_t)cases[i].command_bytes;
		struct kmem_identity child = hand_model_child(&hand);
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
	for (unsigned alive = 1; alive <= 12; alive += 11) { // whether it grows is no matter
		told("; address-limit; little-held 40.0 MiB", "ask-for-less",
		     "heap:41 40M gens=%u/12/3/3; exit 1; refuse 59392G", alive);
		said("more than the machine has (16.0 GiB)");
	}
	hand.failed.bytes = 12 * GIB; // a limit was in the way
	decided("!address-limit", "ask-for-less-or-raise-limit");
}

/* A device is full of what was given back to the driver's pools: that is nobody else's, and no line's. */
TEST(what_pools_keep_is_told)
{
	static const struct {
		const char *scene, *found, *advised;
		bool is_enough;
	} cases[] = {
		{ "cuda0:41 8M; exit 1; refuse 50M pool_kept_bytes=40M", "; device-pools ", "trim-driver-pools", true },
		{ "exit 1; refuse 50M pool_kept_bytes=40M", "; device-pools ", "trim-driver-pools", true },
		{ "cuda0:41 8M; exit 1; refuse 70M pool_kept_bytes=40M", "; device-pools ", "see-device-peak", false },
		{ "cuda0:41 30M; exit 1; refuse 70M pool_kept_bytes=4M", "!; device-pools ", "see-device-peak", false },
		{ "cuda0:41 30M; exit 1; refuse 10M", "!; device-pools ", "see-device-peak", false },
		{ "cuda0:41 40M leak; exit 1; refuse 20M pool_kept_bytes=12M", "; device-pools ", "release-device-blocks",
		  true },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		told(cases[i].found, cases[i].advised, "%s of=cuda0 free_bytes=12M total_bytes=64M", cases[i].scene);
		said(cases[i].is_enough ? "enough for the request, with what was free." : "!enough for the request");
		assert_not_found(&verdict, "unknown place");
	}
}

/* As in a notebook: what the device holds is the story, not what little the host has. */
TEST(of_a_program_that_runs_a_refusing_device_comes_first)
{
	for (int is_leak = 0; is_leak < 2; is_leak++) {
		told("ending; device-refused 8.00 GiB; domain [cuda:0] 11.0 GiB; ",
		     is_leak ? "release-tensors" : "see-device-peak",
		     "heap:12 180M; cuda0:44 11G; tensors:44 11G gens=%u/12/3/3; alive; "
		     "refuse 8G of=tensors at=2 free_bytes=4G total_bytes=16G",
		     is_leak ? 12 : 1);
		assert_cause(&verdict, "running");
		assert_found(&verdict, "; live 180 MiB; line 180 MiB of 180 MiB at train.py:12 epoch; usage");
		assert_null(strstr(strstr(found_text(&verdict), "[cuda:0]"), "; domain "));
	}
}

/* Nobody but its author knows whether it is a data set: the text and what to do next may not contradict each other. */
TEST(what_may_be_a_data_set_of_a_program_that_ended_well_is_left_to_its_author)
{
#define GROWS "accumulates 300 MiB of 300 MiB at train.py:41 epoch, "
	told(GROWS "possible", "release-blocks", LEAK "last volume_bytes=400M; exit 0");
	next("; if it is a data set, no action is needed");
	told(GROWS "likely", "release-blocks", LEAK "last volume_bytes=16G; exit 0"); // sure: nothing takes it back
	next("!; if it is a data set");
	told(GROWS "likely", "release-blocks", LEAK "exit 0");
	next("!; if it is a data set");
	told(GROWS "possible", "record-python-objects", "name heap python/arena; " LEAK "last volume_bytes=400M; exit 0");
	next("; if it is a data set, no action is needed");
	told(GROWS "possible", "release-device-growth", LEAK "last volume_bytes=400M; cuda0:50 20M leak; exit 0");
	next("the blocks of train.py:50 epoch alive");
	next("!; if it is a data set");
}

/* It ended well, and with some more data it would not have. */
TEST(who_nearly_filled_the_limit_is_told_at_which_line)
{
#define PEAK "=ending; peak 370 MiB; peak-line 370 MiB of 370 MiB at train.py:41 epoch"
/* The last beat is long after the peak; a file's pages are charged to who read it first. */
#define BEATS(limit, live, resident)                                                                                 \
	"heap:41 370M live_bytes=1M; heartbeat limit_bytes=" limit "; beat live_bytes=" live " resident_bytes=" resident \
	"+9M cgroup_bytes=" resident "; beat resident_bytes=20M; exit 0"
	told(PEAK "; little-room 396 MiB of 400 MiB", "little-room", BEATS("400M", "370M", "396M"));
	said("!of the machine's 16.0 GiB");
	told(PEAK "; little-room 15.0 GiB of 16.0 GiB", "little-room", BEATS("16G", "14G", "15G"));
	said("of the machine's 16.0 GiB");
	told(PEAK, "nothing", BEATS("400M", "300M", "399M")); // files that it read
	told(PEAK, "nothing", BEATS("400M", "900M", "300M")); // not touched
	told(PEAK, "nothing", BEATS("max", "900M", "900M"));
}

/* After "It held at most 300 MiB in its heap" more than that can only be live elsewhere, too. */
TEST(more_than_the_peak_of_a_domain_is_live_in_all)
{
#define IN_ALL "ending; peak 300 MiB; live 308 MiB; line 300 MiB of 308 MiB at train.py:41 epoch"
	told("ending; peak 300 MiB; live 300 MiB; line 300 MiB of 300 MiB at train.py:41 epoch", NULL, LEAK "exit 0");
	said(" was live. ");
	told(IN_ALL, NULL, LEAK "mmap:42 8M; exit 0");
	said(" was live in all. ");
	told(IN_ALL, NULL, LEAK "mmap:42 8M; cuda0:43 100M; exit 0");
	said(" was live in all on the host. ");
	told(IN_ALL, NULL, LEAK "mmap:42 8M; exit 1"); // by itself, too
	said(" was live in all. ");
}

/* What grows is the cause; what holds more beside it may be its copy of the moment. */
TEST(of_two_the_one_that_grows_comes_first)
{
#define COPY "heap:12 %uM; heap:41 100M leak; killed; after cgroup_oom_kill=1"
	told("line 100 MiB of 300 MiB at train.py:41 epoch; accumulates", NULL, COPY, 200);
	told("line 201 MiB of 301 MiB at train.py:12 epoch; accumulates-beside", NULL, COPY, 201);
}

/* Small objects of a short run are too few to judge; the blocks of the same line are not. */
TEST(a_line_grows_where_one_kind_of_its_memory_does)
{
#define OBJECTS "name mmap python/object; heap:41 40M gens=2/2/1/1; exit 0; "
	told("accumulates", NULL, OBJECTS "mmap:41 10M leak same");
	told("!accumulates", NULL, OBJECTS "mmap:41 9M leak same");
	told("!accumulates", NULL, OBJECTS "mmap:42 10M leak");
}

/* A library takes few large regions, and many small blocks beside them: what cannot be judged is not steady. */
TEST(growth_is_no_trifle_where_the_rest_cannot_be_judged)
{
#define REGIONS "heap:41 800M gens=%u/%u/1/1; heap:41 8M leak same; killed; after cgroup_oom_kill=1"
	told(NULL, "release-blocks", REGIONS, 3, 3);
	told(NULL, "hold-less", REGIONS, 2, 2);
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
		bool is_deep = cases[c].is_told;

		struct model_site *site = make_held(&line, &holders, 300 * MIB);
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
	static const char *const ends[] = { "exit 0", "killed; after cgroup_oom_kill=1" };

	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		told(
			"line 200 MiB of 500 MiB at train.py:41 epoch; accumulates 200 MiB of 200 MiB at train.py:41 epoch, likely; next-line "
			"300 MiB of 500 MiB at train.py:12 epoch",
			"release-blocks", "heap:12 300M; heap:41 200M leak volume_bytes=2G; %s", ends[i]);
		next("the blocks of train.py:41 epoch");
	}
	told("!train.py:41", "nothing", "heap:12 300M; heap:41 200M gens=1/12/0/3 volume_bytes=2G; exit 0");
	told("!train.py:41", "nothing",
	     "heap:12 300M; heap:41 200M leak volume_bytes=300M; exit 0"); // perhaps a second data set
}

/* A model was there when the line began, and has not grown since: `share` percent of what the process gained then is the line's. */
TEST(a_leak_that_has_most_of_the_growth_comes_before_what_was_there)
{
	static const struct {
		const char *scene;
		unsigned before; // MiB live when it began
		bool is_first;
	} cases[] = {
		{ "oom", 300, true },
		{ "oom", 240, true },
		{ "oom", 239, false },
		{ "exit 0", 300, false },
		{ "last samples=0 volume_bytes=61M; oom", 300, false }, // perhaps a second data set
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct model_point points[] = { { .monotonic_ns = 0, .live_bytes = cases[i].before * MIB } };

		scene("heap:12 300M; heap:41 60M leak volume_bytes=2G first_ms=1000; process live_bytes=360M; %s",
		      cases[i].scene);
		hand.process.points = points;
		hand.process.point_count = 1;
		decided(cases[i].is_first
		            ? "; line 60.0 MiB of 360 MiB at train.py:41 epoch; accumulates 60.0 MiB of 60.0 MiB at "
		              "train.py:41 epoch, likely; next-line 300 MiB of 360 MiB at train.py:12 epoch"
		            : "!; line 60.0 MiB",
		        cases[i].is_first ? "release-blocks" : NULL);
		if (cases[i].is_first)
			said("Another 300 MiB (83 %) was allocated at train.py:12 epoch.");
	}
}

/* "A running sum of tensors" is no help to who writes C++, nor to who has no tensors. */
TEST(what_often_keeps_blocks_depends_on_the_language)
{
	static const char *const cases[][2] = {
		{ LEAK "heap:90 1M", "a list that is appended to, or a cache" },
		{ LEAK "heap:90 1M import=torch", "a running sum of tensors" },
		{ LEAK "cuda0:90 1M", "a running sum of tensors" },
		{ LEAK "heap:90 1M module=libtensorflow_cc.so.2", "a running sum of tensors" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		told(NULL, NULL, "%s; exit 0", cases[i][0]);
		next(cases[i][1]);
		next(i == 0 ? "!a running sum of tensors" : "!a list that is appended to, or a cache");
		next("!a release that is missing");
	}
	scene(LEAK "exit 0");
	hand.frames[0][2].kind = MODEL_FRAME_NATIVE; // of a library in C that Python calls
	decided(NULL, NULL);
	next("a release that is missing");
}

/* "Hold less at arenas": nobody can do that before the lines are known. */
TEST(arenas_that_fill_a_limit_are_to_be_recorded_object_by_object)
{
	told(NULL, "record-python-objects",
	     "name mmap python/arena; mmap:41 900M leak; exit 1; refuse 1M of=mmap; limit as 1G");
	next("; or raise the limit (ulimit -v)");
}

/* A higher limit is reached as well. */
TEST(a_line_that_accumulates_up_to_a_limit_is_what_to_look_at)
{
	told(NULL, "release-blocks", "heap:41 900M gens=46/46/3/3 allocated_bytes=5000M; exit 1; refuse 1M; limit as 1G");
}

/* Lists and dictionaries of the small objects are larger blocks: they show the line without a second run. */
TEST(what_accumulates_beside_arenas_is_the_better_clue)
{
	static const struct {
		const char *site;
		bool is_user, is_said;
	} cases[] = {
		{ "heap:41 3M leak", true, true },
		{ "heap:41 3M leak", false, false },
		{ "heap:41 3M gens=1/12/3/3", true, false },
		{ "heap:41 512K leak", true, false },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		scene("name mmap python/arena; mmap:60 106M leak; %s; " LOW, cases[i].site);
		hand.frames[1][2].is_user = cases[i].is_user;
		decided(cases[i].is_said ? "accumulates-beside-arenas 3.0 MiB at train.py:41 epoch"
		                         : "!accumulates-beside-arenas",
		        "record-python-objects");
		next(cases[i].is_said ? "the blocks of train.py:41 epoch alive; or "
		                      : "!the blocks of train.py:41 epoch alive; or ");
	}
}

/* PyTorch under a small limit: no line is to blame, and no recording of small objects would find one. */
TEST(what_imports_left_is_said_where_it_is_most)
{
#define OF_IMPORTS "name mmap python/arena; mmap:60 109M gens=%u/12/%u/3; heap:1 %uM import; " LOW
	told("; imports 200 MiB of 309 MiB; line 109 MiB of 309 MiB at train.py:60 epoch", "import-less", OF_IMPORTS, 1, 0,
	     200);
	told("; live 209 MiB; line 109 MiB of 209 MiB at train.py:60 epoch", "record-python-objects", OF_IMPORTS, 1, 0,
	     100);
	told(
		"; live 309 MiB; line 109 MiB of 309 MiB at train.py:60 epoch; accumulates 109 MiB of 109 MiB at train.py:60 epoch, "
		"likely; imports 200 MiB",
		"record-python-objects", OF_IMPORTS, 12, 3, 200);
}

/* The total of several threads is behind its parts by as much as they keep for themselves. */
TEST(a_line_is_told_once_and_never_of_more_than_all)
{
#define BEHIND "heap:41 300M gens=%u/12/3/3; domain heap peak_bytes=299M; exit 0"
	told("; peak 299 MiB; live ", NULL, BEHIND, 12);
	told("; peak 299 MiB; peak-line 299 MiB of 299 MiB at train.py:41 epoch", NULL, BEHIND, 1);
}

/* Who reads of 40 MiB that accumulate would not know who made the 900. */
TEST(a_line_that_held_much_more_at_the_peak_is_told_of_both)
{
	told("peak 900 MiB; peak-line 900 MiB of 900 MiB at train.py:41 epoch; parts-in-memory 208 MiB of 300 MiB; live "
	     "40.0 MiB; line 40.0 MiB of 40.0 MiB at train.py:41 epoch; accumulates",
	     NULL, "heap:41 40M leak peak_bytes=900M; domain heap peak_bytes=900M; exit 0");
}

TEST(what_imports_held_at_the_peak_is_said_where_it_is_most)
{
	told("=ending; peak 204 MiB; peak-line 4.0 MiB of 204 MiB at train.py:41 epoch; peak-imports 200 MiB of 204 MiB",
	     NULL, "heap:41 4M; heap:1 200M import; exit 0");
	told("=ending; peak 500 MiB; peak-line 300 MiB of 500 MiB at train.py:41 epoch", NULL,
	     "heap:41 300M; heap:1 200M import; exit 0");
	told("=ending; peak 200 MiB; peak-imports 200 MiB of 200 MiB", NULL, "heap:1 200M import; exit 0");
}

/* 300 MiB of PyTorch beside 136 MiB of kept losses: "nothing here points at memory" was said of them. */
TEST(imports_do_not_hide_what_accumulates)
{
	told("line 136 MiB of 436 MiB at train.py:41 epoch; accumulates 136 MiB of 136 MiB at train.py:41 epoch, likely; "
	     "imports 300 MiB of 436 MiB",
	     "find-sender, release-blocks", "heap:41 136M leak; heap:1 300M import; killed");
	said("Memory was far from the limits.");
}

/* A parent of 4242 that is well, and a child without a mark of its end. */
TEST(a_child_that_a_signal_ended_is_to_be_looked_at)
{
	static const struct {
		unsigned alive, kills;
		const char *advised, *held; // by the child; 0 = not known
		bool is_child_named;
	} cases[] = {
		{ 1, 0, "see-child", "0", true },
		{ 12, 0, "release-blocks, see-child", "0", true },
		{ 12, 1, "release-blocks, see-child", "0", true },
		{ 12, 0, "release-blocks, see-child", "1M", true },
		{ 12, 0, "release-blocks", "1M-1", false }, // a worker that a pool ended
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		told(cases[i].kills == 0 ? "; lost-children" : "!; lost-children", cases[i].advised,
		     "heap:41 400M gens=%u/12/3/3 volume_bytes=400M; exit 0; status 0; after cgroup_oom_kill=%u; "
		     "child path=kmemshim.out/child.kmem state=0 live_bytes=%s",
		     cases[i].alive, cases[i].kills, cases[i].held);
		assert_cause(&verdict, cases[i].kills != 0 ? "child-killed" : "exited");
		next(cases[i].is_child_named ? "`kmemshim report kmemshim.out/child.kmem`" : "!`kmemshim report");
		next(cases[i].kills != 0 ? "; if it is a data set, load less of it at once, or give"
		                         : "!; if it is a data set, load");
	}
}

TEST(a_program_that_allocates_nothing_has_no_peak_to_look_at)
{
	told("=ending; no-allocation", NULL, "model domain_count=0; exit 0");
	next("=no action is needed");
}

/* A table was read, then a copy of it did not fit: the copy is what there is to do something about. */
TEST(who_took_much_last_of_a_killed_program_is_named)
{
/* The line of the latter is also one of an import. */
#define LAST "; heap:50 256 gens=1/12/0/3; heartbeat available_bytes=100M; "
#define TOOK(bytes, generations) "heap:50 " bytes " gens=1/" generations "/1/1" LAST
	told("next-line 110 MiB of 224 MiB at train.py:50 epoch; came-last 110 MiB of 224 MiB at train.py:50 epoch", NULL,
	     "heap:41 114M gens=1/12/3/3; " TOOK("110M", "1") "killed");
	next(
		"hold less at once at train.py:50 epoch, which took much last, or at train.py:41 epoch (smaller pieces, a smaller "
		"type, release earlier), or give the program more memory");
	told("line 114 MiB of 154 MiB at train.py:41 epoch; came-last 40.0 MiB of 154 MiB", NULL,
	     "heap:41 114M gens=1/12/3/3; " TOOK("40M", "1") "killed");
	told("likely; came-last 40.0 MiB of 154 MiB at train.py:50 epoch", NULL,
	     "heap:41 114M leak; " TOOK("40M", "1") "killed");
	next("; or hold less at once at train.py:50 epoch, which took much last");
	told("!came-last", NULL, "heap:41 114M gens=1/12/3/3; " TOOK("110M", "2") "killed");
	told("!came-last", NULL, "heap:41 114M gens=1/12/3/3; " TOOK("110M", "1") "signal 11");

	scene("heap:41 114M leak live_count=1000 born_generations=12 volume_bytes=912M; " TOOK("110M", "1") "killed");
	memcpy(hand.sites[0].quarters, (const uint64_t[]){ 600, 300, 80, 20 }, sizeof(hand.sites[0].quarters));
	decided("line 114 MiB of 224 MiB at train.py:41 epoch; next-line", NULL);
	assert_int_equal(hand.sites[0].leak, MODEL_LEAK_FILLING);
	said("!as a cache that fills");
}

RUN_TESTS(verdict_case_begin, NULL)
