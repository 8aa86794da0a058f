"""What a line is called, and which one it is, where the innermost of the user's says little."""

import pytest

from harness import SHIM, kmemshim, ok, plain_env, record, report, run, shim_env
from test_symbols import build, line_of

CALLERS = 12


def calls(text, count=CALLERS):
    return "".join(text.format(i=i) for i in range(count))


WRAPPED_C = """#include <stdlib.h>
#include <string.h>
#include <unistd.h>
void *kept[100000];
int count;
__attribute__((noinline)) void *NAME(int bytes) {
    void *block = malloc(bytes);
    kept[count++] = memset(block, 1, bytes);
    return block;
}
""" + calls("""__attribute__((noinline)) void use{i}(int bytes) {{ NAME(bytes); asm(""); }} // use{i}
""") + """
int main(void) {
    for (int i = 0; i < 200; i++) {
""" + calls("        use{i}({i} == 7 ? 9000 : 1000);\n") + """    }
    _exit(0);
}
"""
WRAPPED_CPP = """#include <cstring>
#include <memory>
#include <vector>
#include <unistd.h>
namespace shop {
std::vector<std::unique_ptr<char[]>> kept;
struct Pool {
    __attribute__((noinline)) char *get(int bytes) {
        kept.emplace_back(new char[bytes]);
        return (char *)memset(kept.back().get(), 1, bytes);
    }
};
}
static shop::Pool pool;
""" + calls("""__attribute__((noinline)) void use{i}(int bytes) {{ pool.get(bytes); asm(""); }} // use{i}
""") + WRAPPED_C[WRAPPED_C.index("\nint main"):]
WRAPPED_PYTHON = """import os
kept = []
def NAME(size):
    kept.append(bytearray(size))
""" + calls("""def use{i}(size):
    NAME(size)  # use{i}
""") + """
for i in range(200):
""" + calls("    use{i}(9000 if {i} == 7 else 1000)\n") + "os._exit(0)\n"


def wrapped(language, folder, name="own_alloc", **more):
    """The program, and the line of it that holds most."""
    if language == "python":
        text = WRAPPED_PYTHON.replace("NAME", name)
        (folder / "program.py").write_text(text)
        return ["/usr/bin/python3", str(folder / "program.py")], next(n for n, line in enumerate(text.splitlines(), 1) if line.endswith("# use7"))
    text = (WRAPPED_CPP if language == "c++" else WRAPPED_C).replace("NAME", name)
    return [build(folder, text, "-O1", **more)], line_of(text, "use7")


def first(out, *options):
    return report("peak", out, "--domain", "heap", *options)["lines"][0]


@pytest.mark.parametrize("language, compiler", [("c", "gcc"), ("c", "clang"), ("c++", "gcc"), ("c++", "clang"), ("python", None)])
def test_a_function_that_many_lines_call_for_most_memory_is_looked_through(language, compiler, tmp_path, out):
    argv, line = wrapped(language, tmp_path, **({"compiler": compiler} if compiler else {}))
    assert record(argv, out).returncode == 0
    where = first(out)["where"]
    assert (where["function"].split("(")[0], where["line"]) == ("use7", line)
    text = kmemshim("peak", out).stdout
    assert f":{line} use7" in text and ("own_alloc" in text or "Pool::get" in text), text


@pytest.mark.parametrize("language", ["c", "python"])
def test_few_callers_are_no_wrapper(language, tmp_path, out):
    """The function itself is the line while no more than eight call it."""
    text = (WRAPPED_C if language == "c" else WRAPPED_PYTHON).replace("NAME", "own_alloc")
    kept = [line for line in text.splitlines(keepends=True)
            if not any(line.lstrip().startswith(f"use{i}(") for i in range(8, CALLERS))]
    if language == "c":
        argv = [build(tmp_path, "".join(kept), "-O1")]
    else:
        (tmp_path / "program.py").write_text("".join(kept))
        argv = ["/usr/bin/python3", tmp_path / "program.py"]
    assert record(argv, out).returncode == 0
    assert first(out)["where"]["function"] == "own_alloc"
    for option, environment in ((["--wrappers", "other,own_*"], {}), ([], {"KMEMSHIM_WRAPPERS": "own_alloc"})):
        done = kmemshim("peak", out, *option, env=plain_env(**environment))
        assert done.returncode == 0 and " use7\n" in done.stdout, done.stderr + done.stdout
    assert kmemshim("peak", out, "--wrappers", "").returncode == 2


def test_a_helper_whose_callers_have_little_each_is_the_line(tmp_path, out):
    """Twelve lines call it once each: what accumulates is the helper's."""
    lines = "def make(size):\n    kept.append(bytearray(size))\n" + calls("make(1000000 + {i})\n")
    (tmp_path / "program.py").write_text("import os\nkept = []\n" + lines + "os._exit(0)\n")
    assert record(["/usr/bin/python3", tmp_path / "program.py"], out).returncode == 0
    line = first(out)
    assert (line["where"]["function"], line["where"]["line"], line["leak"]["class"]) == ("make", 4, "leak")
    text = kmemshim("leaks", out).stdout
    assert " <module>  8 %\n" in text and "and 9 more" in text, text


@pytest.mark.parametrize("name", ["zmalloc", "ngx_palloc", "apr_palloc", "av_malloc", "CRYPTO_malloc"])
def test_allocators_of_known_projects_are_looked_through(name, tmp_path, out):
    text = WRAPPED_C.replace("NAME", name)
    text = "\n".join(line for line in text.splitlines() if not any(f"use{i}(" in line for i in range(CALLERS) if i not in (0, 7))) + "\n"
    assert record([build(tmp_path, text, "-O1")], out).returncode == 0
    assert first(out)["where"]["function"] == "use7"


def test_a_wrapper_in_one_run_only_is_no_change_for_the_gate(tmp_path):
    """Seven callers and twelve: the names of the lines differ, what is compared does not."""
    argv, _ = wrapped("c", tmp_path)
    few = tmp_path / "few"
    few.mkdir()
    text = WRAPPED_C.replace("NAME", "own_alloc").replace("i < 200", "i < (getenv(\"MORE\") ? 200 : 0)", 1)
    text = text.replace("    for (int i", "    for (int i = 0; i < 200; i++) use7(9000);\n    for (int i", 1)
    program = build(few, text, "-O1")
    for name, more in (("base", {}), ("now", {"MORE": "1"})):
        done = ok(run([SHIM.parent / "kmemshim", "run", "-o", tmp_path / name, "--", program], plain_env(**more)))
    assert kmemshim("baseline", tmp_path / "base", "-o", tmp_path / "base.json").returncode == 0
    done = kmemshim("check", tmp_path / "now", "--baseline", tmp_path / "base.json", "--abs", "4M")
    assert "use7" in kmemshim("peak", tmp_path / "now").stdout
    assert "own_alloc" in kmemshim("peak", tmp_path / "base").stdout.split("of domain")[1].splitlines()[1]
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_program_is_named_as_it_was_called(tmp_path, out):
    program = build(tmp_path, WRAPPED_C.replace("NAME", "own_alloc"), "-O1", name="one-program")
    link = tmp_path / "other-name"
    link.symlink_to(program)
    assert record([link], out / "link").returncode == 0
    assert kmemshim("why", out / "link").stdout.startswith("other-name (pid ")
    done = run(["/bin/sh", "-c", f"exec {link}"], shim_env(out / "shell"))
    assert done.returncode == 0 and "other-name (pid " in kmemshim("why", out / "shell").stdout
    script = tmp_path / "script"
    script.write_text("#!/usr/bin/python3\nimport os\nkept = bytearray(1000000)\nos._exit(0)\n")
    script.chmod(0o755)
    assert record([script], out / "script").returncode == 0
    assert kmemshim("why", out / "script").stdout.startswith("script (pid ")


FACTORY = "def make(size):\n    return bytearray(size)\n"


def test_files_of_one_name_have_their_folders(tmp_path, out):
    for name in ("app/models/__init__.py", "app/views/util.py", "app/models/util.py", "app/alone.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(FACTORY)
    (tmp_path / "run.py").write_text("""import os
import app.alone, app.models, app.models.util, app.views.util
kept = [app.alone.make(3000001), app.models.make(3000002), app.models.util.make(3000003), app.views.util.make(3000004)]
os._exit(0)
""")
    ok(run(["/usr/bin/python3", tmp_path / "run.py"], shim_env(out), cwd=tmp_path))
    text = kmemshim("peak", out).stdout
    places = [line.split()[-2] for line in text.splitlines() if line.endswith(" make")]
    assert sorted(places[:4]) == ["alone.py:2", "models/__init__.py:2", "models/util.py:2", "views/util.py:2"], text
    done = kmemshim("baseline", out, "-o", tmp_path / "base.json")
    assert '"models/__init__.py:2 make"' in (tmp_path / "base.json").read_text(), done.stderr
