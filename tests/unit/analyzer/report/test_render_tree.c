/*
 * test_render_tree.c - which callers does the tree show, and which are one row?
 */

#include "hand_model.h"
#include "written.h"

static struct hand_model hand;
static bool has_all;

static uint64_t
live_of(const struct model_site *site)
{
	return site->live_bytes;
}

static void
add_tree(const struct report *report, struct document *document)
{
	const struct tree_options wanted = { .heading = "Live", .bytes_of = live_of, .has_all = has_all };

	render_tree(report, &wanted, document);
}

#define C_LIBRARY "libc.so.6"
#define INTERPRETER "python3.11"
static struct model_frame
native(const char *module, const char *function, uint64_t offset)
{
	bool is_user = module[0] == 'p' && module[1] == 'r';

	return (struct model_frame){ .kind = MODEL_FRAME_NATIVE,
		                         .function = function,
		                         .file = is_user ? "/data/someone/project/program.c" : "",
		                         .line = is_user ? 9 : 0,
		                         .module = module,
		                         .module_path = "",
		                         .module_offset = offset,
		                         .is_user = is_user };
}

static struct model_frame
python(const char *file, uint32_t line, const char *function)
{
	return (struct model_frame){ .kind = MODEL_FRAME_PYTHON,
		                         .function = function,
		                         .file = file,
		                         .line = line,
		                         .module = "",
		                         .module_path = "",
		                         .is_user = file[0] == '/',
		                         .is_importlib = file[0] == '<' };
}

static void
add_site(uint64_t bytes, const struct model_frame *frames, uint32_t count)
{
	struct model_site *site = hand_model_site(&hand, HEAP, 41, bytes);
	struct model_frame *made = hand.frames[hand.model.site_count - 1];

	memcpy(made, frames, count * sizeof(*frames));
	for (uint32_t i = 0; i < count; i++)
		hand.stacks[hand.model.site_count - 1][i] = &made[i];
	site->frame_count = count;
	site->where = &made[0];
}
#define ADD_SITE(bytes, ...)                                     \
	add_site(bytes, (const struct model_frame[]){ __VA_ARGS__ }, \
	         sizeof((const struct model_frame[]){ __VA_ARGS__ }) / sizeof(struct model_frame))

static void
check_tree(const char *wanted)
{
	char *text = written_part(&hand.model, &rank_sites, &(struct report_options){ .top = UINT64_MAX }, add_tree);

	assert_string_equal(text, wanted);
	free(text);
}

/* Two addresses of one line, below start-up that branches: libc calls constructors and main(). */
TEST(a_native_tree_begins_with_the_programs_own_code)
{
	hand_model_make(&hand);
	has_all = false;
	ADD_SITE(20 * MIB, native("libstdc++.so.6", "operator new", 8), native("program", "main", 0x100),
	         native(C_LIBRARY, "__libc_start_call_main", 1), native("program", "_start", 2));
	ADD_SITE(10 * MIB, native("libstdc++.so.6", "operator new", 8), native("program", "fill", 0x300),
	         native("program", "main", 0x200), native(C_LIBRARY, "__libc_start_call_main", 1),
	         native("program", "_start", 2));
	ADD_SITE(10 * MIB, native("libstdc++.so.6", "operator new", 8), native("program", "table", 0x400),
	         native(C_LIBRARY, "call_init", 5), native("program", "_start", 2));
	check_tree("Live: 40.0 MiB of the host's memory\n"
	           " 30.0 MiB   75 %  program.c:9 main\n"
	           " 10.0 MiB   25 %  └─ program.c:9 fill\n"
	           " 10.0 MiB   25 %  program.c:9 table\n");
	has_all = true;
	check_tree("Live: 40.0 MiB of the host's memory\n"
	           " 40.0 MiB  100 %  program.c:9 _start\n"
	           " 30.0 MiB   75 %  ├─ libc.so.6 __libc_start_call_main\n"
	           " 30.0 MiB   75 %  │  └─ program.c:9 main\n"
	           " 20.0 MiB   50 %  │     ├─ libstdc++.so.6 operator new\n"
	           " 10.0 MiB   25 %  │     └─ program.c:9 fill\n"
	           " 10.0 MiB   25 %  │        └─ libstdc++.so.6 operator new\n"
	           " 10.0 MiB   25 %  └─ libc.so.6 call_init\n"
	           " 10.0 MiB   25 %     └─ program.c:9 table\n"
	           " 10.0 MiB   25 %        └─ libstdc++.so.6 operator new\n");
}

/* The import of a user's own module takes several ways through the import system. */
TEST(the_import_system_is_left_out)
{
	hand_model_make(&hand);
	has_all = false;
	for (uint32_t i = 0; i < 2; i++)
		ADD_SITE(10 * MIB, python("/data/someone/project/tables.py", 7 + i, "<module>"),
		         python("<frozen importlib._bootstrap>", 241 + i, "_call_with_frames_removed"),
		         python("<frozen importlib._bootstrap>", 1176, "_find_and_load"),
		         python("/data/someone/project/train.py", 2, "<module>"), native(INTERPRETER, "Py_RunMain", 1));
	check_tree("Live: 20.0 MiB of the host's memory\n"
	           " 20.0 MiB  100 %  train.py:2 <module>\n"
	           " 10.0 MiB   50 %  ├─ tables.py:7 <module>\n"
	           " 10.0 MiB   50 %  └─ tables.py:8 <module>\n");
}

/* A program's own main() is its own; the interpreter's is not. */
TEST(what_only_start_up_held_is_the_interpreters)
{
	hand_model_make(&hand);
	has_all = false;
	ADD_SITE(30 * MIB, native(INTERPRETER, "Py_BytesMain", 3), native(INTERPRETER, "main", 2),
	         native(C_LIBRARY, "__libc_start_call_main", 1));
	ADD_SITE(10 * MIB, native(C_LIBRARY, "setlocale", 3), native("program", "main", 2),
	         native(C_LIBRARY, "__libc_start_call_main", 1));
	check_tree("Live: 40.0 MiB of the host's memory\n"
	           " 10.0 MiB   25 %  program.c:9 main\n"
	           " 10.0 MiB   25 %  └─ libc.so.6 setlocale\n"
	           " 30.0 MiB   75 %  left by imports and the interpreter\n");
}

RUN_TESTS(NULL, NULL)
