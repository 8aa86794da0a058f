/*
 * test_frame_rules.c - whose code is a frame, which frame does a person see first, which module was imported?
 */
#include "test.h"

#include "model/frame_rules.h"
#include "model/model.h"

static struct model_frame
python_frame(const char *file, const char *function)
{
	return (struct model_frame){
		.kind = MODEL_FRAME_PYTHON, .file = file, .function = function, .line = 3, .module = "", .module_path = ""
	};
}

TEST(users_code_is_told_from_installed_and_generated_code)
{
	static const struct {
		const char *file;
		bool is_user;
	} cases[] = {
		{ "/srv/me/train.py", true },
		{ "train.py", true }, // python train.py before 3.9
		{ "./src/net.py", true },
		{ "/srv/me/.venv/lib/python3.11/site-packages/torch/x.py", false },
		{ "/usr/lib/python3/dist-packages/numpy/x.py", false },
		{ "/usr/lib/python3.11/json/decoder.py", false },
		{ "/opt/py/lib64/python3.13t/json/decoder.py", false },
		{ "/opt/py/lib/python311.zip/json/decoder.py", false },
		{ "/srv/me/python3.11/train.py", true },
		{ "/srv/me/src/editable/package/x.py", true }, // pip install -e
		{ "/srv/me/app.pyz/__main__.py", true },       // zipapp, zipimport
		{ "/srv/eggs/six-1.0-py3.8.egg/six.py", false },
		{ "site-packages/six.py", false },
		{ "<string>", true }, // python -c, exec
		{ "<stdin>", true },
		{ "<python-input-4>", true },
		{ "<ipython-input-3-0123456789ab>", true },
		{ "/tmp/ipykernel_12/345.py", true },
		{ "<doctest mymodule.f[0]>", true },
		{ "<my own exec>", true },
		{ "<frozen importlib._bootstrap>", false },
		{ "<frozen os>", false },
		{ "<__array_function__ internals>", false },
		{ "<attrs generated init x.Y>", false },
		{ "<eval_with_key>.12", false },
		{ "<decorator-gen-7>", false },
		{ "/tmp/torchinductor_me/ab/cabc.py", false },
		{ "/tmp/__autograph_generated_file1.py", false },
		{ "C:\\project\\train.py", true },
		{ "", false },
	};
	const struct frame_rules rules = { .directory = "/srv/me" };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct model_frame frame = python_frame(cases[i].file, "f");

		frame_rules_judge(&rules, &frame, false);
		if (frame.is_user != cases[i].is_user)
			fail_msg("%s: is_user %d", cases[i].file, frame.is_user);
	}
}

TEST(a_project_is_what_lies_below_it_without_its_environments)
{
	static const struct {
		const char *project;
		const char *file;
		bool is_user;
	} cases[] = {
		{ "/data/p", "/data/p/train.py", true },
		{ "/data/p", "/data/p2/train.py", false },
		{ "/data/p/", "/data/p/src/net.py", true },
		{ "/data/p", "/data/p/.venv/lib/python3.11/site-packages/torch/x.py", false },
		{ "/data/p", "/data/p/python/lib/python3.11/json/decoder.py", false },
		{ "/opt/lib/python3.11/site-packages/mine", "/opt/lib/python3.11/site-packages/mine/x.py", true },
		{ "/srv/me", "train.py", true }, // the program started in /srv/me
		{ "/srv", "./train.py", true },
		{ "/srv/me/src", "src/net.py", true },
		{ "/srv/me/src", "train.py", false },
		{ "/srv/me/src", "src2/net.py", false },
		{ "/srv/me/src", "../src/net.py", false },
		{ "/srv/me", "venv/lib/python3.8/site-packages/six.py", false },
		{ "/", "/data/p/train.py", true },
		{ "/srv/me", "<string>", false },
		{ "/srv/me", "<cell 1234>", true },
		{ "/link/p", "/data/real/p/train.py", true }, // also as it was before its links were followed
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct frame_rules rules = { .project = cases[i].project,
			                               .project_as_given = "/data/real/p",
			                               .directory = "/srv/me" };
		struct model_frame frame = python_frame(cases[i].file, "f");

		frame_rules_judge(&rules, &frame, false);
		if (frame.is_user != cases[i].is_user)
			fail_msg("%s in %s: is_user %d", cases[i].file, cases[i].project, frame.is_user);
	}
}

TEST(native_frames_of_a_project_are_those_of_its_modules_and_sources)
{
	static const struct {
		const char *function;
		const char *file;
		const char *module_path;
		bool is_user;
	} cases[] = {
		{ "handle", "srv.cpp", "/srv/me/srv", true },
		{ "handle", "/srv/me/srv.cpp", "/usr/local/bin/srv", true },
		{ "__pthread_once_slow", "./nptl/pthread_once.c", "/usr/lib/x86_64-linux-gnu/libc.so.6", false },
		{ "std::vector<char>::vector", "/usr/include/c++/12/bits/stl_vector.h", "/srv/me/srv", false },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct frame_rules rules = { .project = "/srv/me", .directory = "/srv/me" };
		struct model_frame frame = { .kind = MODEL_FRAME_NATIVE,
			                         .function = cases[i].function,
			                         .file = cases[i].file,
			                         .line = 1,
			                         .module = "m",
			                         .module_path = cases[i].module_path };

		frame_rules_judge(&rules, &frame, false);
		if (frame.is_user != cases[i].is_user)
			fail_msg("%s in %s: is_user %d", cases[i].function, cases[i].module_path, frame.is_user);
	}
}

struct stack {
	struct model_frame frames[8];
	const struct model_frame *pointers[8];
	uint32_t count;
};

/* Innermost first; "=" before a file: of the import system. */
static void
make_stack(struct stack *stack, const char *const (*frames)[2])
{
	const struct frame_rules rules = { .directory = "" };

	memset(stack, 0, sizeof(*stack));
	for (; frames[stack->count][0] != NULL; stack->count++) {
		struct model_frame *frame = &stack->frames[stack->count];
		const char *file = frames[stack->count][0];

		*frame = python_frame(file[0] == '=' ? file + 1 : file, frames[stack->count][1]);
		frame->is_importlib = file[0] == '=';
		if (strstr(file, ".so") != NULL) {
			frame->kind = MODEL_FRAME_NATIVE;
			frame->module_path = file;
			frame->file = "";
		}
		frame_rules_judge(&rules, frame, false);
		stack->pointers[stack->count] = frame;
	}
}

#define IMPORTLIB "=<frozen importlib._bootstrap>", "_find_and_load"
#define TORCH "/v/lib/python3.11/site-packages/torch/"

TEST(the_innermost_frame_of_the_users_is_where)
{
	static const struct {
		const char *const frames[8][2];
		const char *where;
	} cases[] = {
		{ { { "/v/lib/python3.11/site-packages/numpy/x.py", "zeros" },
		    { "/p/train.py", "load" },
		    { "/p/train.py", "<module>" } },
		  "load" },
		/* a framework calls back; a decorator of the user's wraps */
		{ { { "/p/train.py", "on_epoch_end" },
		    { "/v/lib/python3.11/site-packages/keras/x.py", "fit" },
		    { "/p/train.py", "main" } },
		  "on_epoch_end" },
		{ { { "/p/train.py", "decorated" }, { "/p/tools.py", "wrapper" }, { "/p/train.py", "main" } }, "decorated" },
		{ { { "/usr/lib/python3.11/functools.py", "wrapper" }, { "/p/train.py", "main" } }, "main" },
		/* a dataclass's generated text says nothing */
		{ { { "<string>", "__init__" }, { "/p/train.py", "main" } }, "main" },
		{ { { "<string>", "<module>" } }, "<module>" },
		/* nor does what a library, or the user, gave a name of its own */
		{ { { "<genlib generated __init__ for Event>", "__init__" }, { "/p/train.py", "main" } }, "main" },
		{ { { "<exec 17>", "made" }, { "<exec 17>", "<module>" } }, "made" },
		{ { { "<string>", "__init__" }, { "<exec 17>", "<module>" }, { "<string>", "<module>" } }, "<module>" },
		{ { { "<stdin>", "made" }, { "/p/train.py", "main" } }, "made" },
		{ { { "<cell 1a2b>", "made" }, { "/p/train.py", "main" } }, "made" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct stack stack;

		make_stack(&stack, cases[i].frames);
		assert_string_equal(frame_rules_where(stack.pointers, stack.count, false)->function, cases[i].where);
	}
}

/* multiprocessing starts `python -c "from multiprocessing.spawn import spawn_main; ..."`: nobody can open that text. */
TEST(what_a_program_gave_another_one_to_run_is_nobodys_line)
{
	static const char *const unpickled[][2] = {
		{ "/usr/lib/python3.11/multiprocessing/spawn.py", "_main" },
		{ "/usr/lib/python3.11/multiprocessing/spawn.py", "spawn_main" },
		{ "<string>", "<module>" },
		{ NULL, NULL },
	};
	static const char *const alone[][2] = { { "<string>", "<module>" }, { NULL, NULL } };
	struct stack stack;

	make_stack(&stack, unpickled);
	assert_string_equal(frame_rules_where(stack.pointers, stack.count, true)->function, "_main");
	assert_string_equal(frame_rules_where(stack.pointers, stack.count, false)->function, "<module>");
	make_stack(&stack, alone);
	assert_string_equal(frame_rules_where(stack.pointers, stack.count, true)->function, "<module>");
}

/* A loop of events, or a pool, says nothing of what it runs. */
TEST(what_the_standard_library_called_of_a_package_is_known)
{
#define TORNADO "/v/lib/python3.11/site-packages/tornado/x.py"
#define STANDARD "/usr/lib/python3.11/asyncio/events.py"
	static const struct {
		const char *const frames[8][2];
		const char *entered;
	} cases[] = {
		{ { { TORNADO, "read" }, { TORNADO, "finish" }, { STANDARD, "run" }, { "/p/train.py", "main" } }, "finish" },
		{ { { STANDARD, "decode" }, { TORNADO, "finish" }, { "/p/train.py", "main" } },
		  "" }, // the line itself called it
		{ { { STANDARD, "decode" }, { "/p/train.py", "main" } }, "" },
		{ { { "/p/train.py", "main" }, { TORNADO, "finish" }, { STANDARD, "run" } }, "" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct stack stack;

		make_stack(&stack, cases[i].frames);
		const struct model_site site = { .frames = stack.pointers,
			                             .frame_count = stack.count,
			                             .where = frame_rules_where(stack.pointers, stack.count, false) };
		const struct model_frame *entered = model_entered_package(&site);

		assert_string_equal(entered != NULL ? entered->function : "", cases[i].entered);
	}
}

TEST(imports_are_named_by_their_top_level_module)
{
	static const struct {
		const char *const frames[8][2];
		const char *module;
	} cases[] = {
		{ { { TORCH "nn/functional.py", "<module>" },
		    { IMPORTLIB },
		    { TORCH "__init__.py", "<module>" },
		    { IMPORTLIB },
		    { "/p/train.py", "<module>" } },
		  "torch" },
		// cut
		{ { { TORCH "nn/functional.py", "<module>" },
		    { TORCH "__init__.py", "<module>" },
		    { "/p/train.py", "<module>" } },
		  "torch" },
		{ { { "/usr/lib/python3.11/json/decoder.py", "<module>" }, { IMPORTLIB }, { "/p/train.py", "f" } }, "json" },
		{ { { "/usr/lib/python3.11/socket.py", "<module>" }, { IMPORTLIB }, { "/p/train.py", "f" } }, "socket" },
		{ { { "<frozen stat>", "<module>" },
		    { "=<frozen importlib._bootstrap>", "f" },
		    { "<frozen os>", "<module>" },
		    { IMPORTLIB },
		    { "<frozen site>", "<module>" },
		    { IMPORTLIB } },
		  "site" },
		{ { { "/v/lib/python3.11/site-packages/six.py", "<module>" }, { IMPORTLIB }, { "/p/train.py", "f" } }, "six" },
		{ { { "/v/lib/python3.11/site-packages/google/protobuf/x.py", "<module>" },
		    { IMPORTLIB },
		    { "/p/train.py", "f" } },
		  "google" },
		{ { { "/usr/lib/python3.11/lib-dynload/_ssl.cpython-311-x86_64-linux-gnu.so", "PyInit__ssl" },
		    { IMPORTLIB },
		    { "/p/train.py", "f" } },
		  "_ssl" },
		/* the user's own code inside an import is the user's; what it called is no import */
		{ { { "/p/data.py", "<module>" }, { IMPORTLIB }, { "/p/train.py", "<module>" } }, "" },
		{ { { TORCH "__init__.py", "zeros" }, { "/p/train.py", "<module>" } }, "" },
		{ { { IMPORTLIB }, { "/p/train.py", "<module>" } }, "" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char name[FRAME_RULES_NAME_BYTES] = "unset";
		struct stack stack;

		make_stack(&stack, cases[i].frames);
		assert_int_equal(frame_rules_import(stack.pointers, stack.count, name), cases[i].module[0] != '\0');
		assert_string_equal(name, cases[i].module);
	}
}

TEST(code_is_of_the_user_of_a_package_or_of_what_carries_it_out)
{
	static const struct {
		enum model_frame_kind kind;
		const char *path; // of the file, or of the module
		const char *function;
		enum frame_origin origin;
		const char *name;
	} cases[] = {
		{ MODEL_FRAME_PYTHON, "/srv/me/train.py", "f", FRAME_ORIGIN_USER, "" },
		{ MODEL_FRAME_PYTHON, "/v/lib/python3.11/site-packages/pandas/core/merge.py", "merge", FRAME_ORIGIN_PACKAGE,
		  "pandas" },
		{ MODEL_FRAME_PYTHON, "/v/lib/python3.11/site-packages/six.py", "u", FRAME_ORIGIN_PACKAGE, "six" },
		{ MODEL_FRAME_PYTHON, "/usr/lib/python3.11/json/decoder.py", "decode", FRAME_ORIGIN_STANDARD_LIBRARY, "json" },
		{ MODEL_FRAME_PYTHON, "<frozen os>", "walk", FRAME_ORIGIN_STANDARD_LIBRARY, "os" },
		{ MODEL_FRAME_PYTHON, "<__array_function__ internals>", "g", FRAME_ORIGIN_RUNTIME, "" },
		{ MODEL_FRAME_NATIVE, "/v/lib/python3.11/site-packages/numpy/core/_umath.cpython-311-x86_64-linux-gnu.so", "",
		  FRAME_ORIGIN_PACKAGE, "numpy" },
		{ MODEL_FRAME_NATIVE, "/v/lib/python3.11/site-packages/numpy.libs/libopenblas.so", "", FRAME_ORIGIN_PACKAGE,
		  "numpy" },
		{ MODEL_FRAME_NATIVE, "/usr/lib/python3.11/lib-dynload/_json.cpython-311-x86_64-linux-gnu.so", "",
		  FRAME_ORIGIN_STANDARD_LIBRARY, "_json" },
		{ MODEL_FRAME_NATIVE, "/usr/lib/x86_64-linux-gnu/libxml2.so.2.9", "xmlNewNode", FRAME_ORIGIN_LIBRARY,
		  "libxml2.so.2.9" },
		{ MODEL_FRAME_NATIVE, "/usr/lib/x86_64-linux-gnu/libxml2.so.2.9", "xmalloc", FRAME_ORIGIN_RUNTIME, "" },
		{ MODEL_FRAME_NATIVE, "/usr/lib/x86_64-linux-gnu/libc.so.6", "getline", FRAME_ORIGIN_RUNTIME, "" },
		{ MODEL_FRAME_NATIVE, "/usr/bin/python3.11", "_PyEval_EvalFrameDefault", FRAME_ORIGIN_RUNTIME, "" },
		{ MODEL_FRAME_NATIVE, "/usr/lib/libpython3.11.so.1.0", "PyList_New", FRAME_ORIGIN_RUNTIME, "" },
		{ MODEL_FRAME_NATIVE, "", "", FRAME_ORIGIN_RUNTIME, "" },
	};
	const struct frame_rules rules = { .directory = "/srv/me" };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		bool is_python = cases[i].kind == MODEL_FRAME_PYTHON;
		struct model_frame frame = python_frame(is_python ? cases[i].path : "", cases[i].function);
		char name[FRAME_RULES_NAME_BYTES];

		frame.kind = cases[i].kind;
		frame.module_path = is_python ? "" : cases[i].path;
		frame.module = strrchr(cases[i].path, '/') != NULL ? strrchr(cases[i].path, '/') + 1 : cases[i].path;
		frame_rules_judge(&rules, &frame, false);
		if (frame_rules_origin(&frame, name) != cases[i].origin || strcmp(name, cases[i].name) != 0)
			fail_msg("%s %s: %d \"%s\"", cases[i].path, cases[i].function, (int)frame_rules_origin(&frame, name), name);
	}
}

/* Names alone do not make it: a program's own main() and call_init() are its own. */
TEST(machinery_is_what_only_does_what_other_code_asks)
{
	static const struct {
		const char *module, *function;
		bool is_user, is_start_up, is_machinery;
	} cases[] = {
		{ "program", "_start", false, true, true },
		{ "libc.so.6", "__libc_start_main@@GLIBC_2.34", false, true, true },
		{ "libc.so.6", "clone3", false, true, true },
		{ "libc.so.6", "call_init", false, false, true },
		{ "ld-linux-x86-64.so.2", "_dl_init", false, false, true },
		{ "python3.11", "main", false, false, true },
		{ "libpython3.12.so.1.0", "pymain_run_python.constprop.0", false, false, true },
		{ "libpython3.12.so.1.0", "Py_RunMain", false, false, true },
		{ "libstdc++.so.6", "operator new", false, false, true },
		{ "program", "std::vector<int>::resize", false, false, true },
		{ "libfast.so", "", false, false, false },
		{ "libpython3.12.so.1.0", "PyList_New", false, false, false },
		{ "libc.so.6", "setlocale", false, false, false },
		{ "libengine.so", "call_init", false, false, false },
		{ "program", "main", true, false, false },
		{ "program", "call_init", true, false, false },
		{ "program", "", true, false, false },
	};
	const struct model_frame start = { .kind = MODEL_FRAME_NATIVE, .function = "_start", .file = "", .module = "" };
	struct model_frame frame = python_frame("<frozen importlib._bootstrap>", "_find_and_load");

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct model_frame native = python_frame("", cases[i].function);

		native.kind = MODEL_FRAME_NATIVE;
		native.module = cases[i].module;
		native.is_user = cases[i].is_user;
		if (frame_rules_is_start_up(&native, NULL) != cases[i].is_start_up ||
		    frame_rules_is_machinery(&native, NULL) != cases[i].is_machinery)
			fail_msg("%s %s", cases[i].module, cases[i].function);
		assert_int_equal(frame_rules_is_start_up(&native, &start), // stripped: the program's own _start
		                 cases[i].is_start_up || cases[i].function[0] == '\0');
	}
	frame.is_importlib = true;
	assert_true(frame_rules_is_machinery(&frame, NULL));
	frame = python_frame("/usr/lib/python3.10/runpy.py", "_run_code");
	assert_true(frame_rules_is_machinery(&frame, NULL));
	frame.is_user = true;
	assert_false(frame_rules_is_machinery(&frame, NULL));
	frame = (struct model_frame){ .kind = MODEL_FRAME_NATIVE, .function = "", .file = "", .module = "libstdc++.so.6" };
	assert_true(frame_rules_is_machinery(&frame, NULL));
}

RUN_TESTS(NULL, NULL)
