"""Which function and line of a compiled program it was: ways to compile, to link and to keep debug information."""
import re
import shutil

import pytest

from harness import kmemshim, ok, record, report, run, shim_env, unwrapped

COMPILERS = ["gcc", "clang"]


def sh(*words, cwd=None):
    done = ok(run(words, cwd=cwd))
    return done


def build(folder, source, *flags, compiler="gcc", name="program"):
    """Compiles a text; .cc where it is C++."""
    is_cpp = "#include <vector>" in source or "template" in source or "auto " in source
    file = folder / (f"{name}.cc" if is_cpp else f"{name}.c")
    file.write_text(source)
    driver = {"gcc": "g++", "clang": "clang++"}[compiler] if is_cpp else compiler
    sh(driver, "-g", "-pthread", *flags, file, "-o", folder / name, cwd=folder)
    return folder / name


def line_of(source, mark):
    return next(number for number, line in enumerate(source.splitlines(), 1) if f"// {mark}" in line)


def top_line(out, *options):
    return report("leaks", out, "--domain", "heap", *options)["lines"][0]


def frames_of(out, *options):
    """function:line of the stack of what holds most"""
    document = report("leaks", out, "--domain", "heap", *options)
    site = max(document["sites"], key=lambda site: site["live_bytes"])
    return [f"{frame['function'].split('::')[-1]}:{frame['line']}" for frame in site["frames"] if frame["kind"] == "native"]


# --- functions inside blocks ------------------------------------------------------------------------------------

LAMBDAS = """#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>
void *kept[100000];
static inline __attribute__((always_inline)) void handle(int i) {
    kept[i] = malloc(200); // handle
    memset(kept[i], 1, 200);
}
int main() {
    std::vector<std::thread> pool;
    for (int t = 0; t < 2; t++) {
        int from = t * 5000;
        try {
            pool.emplace_back([=] {
                for (int i = 0; i < 5000; i++)
                    handle(from + i); // calls
            });
        } catch (...) {
            abort();
        }
    }
    for (auto &thread : pool)
        thread.join();
    _exit(0);
}
"""


@pytest.mark.parametrize("level", ["-O0", "-O2"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_a_function_inlined_into_a_lambda_of_a_pool_is_named(compiler, level, tmp_path, out):
    source = "#include <unistd.h>\n" + LAMBDAS
    program = build(tmp_path, source, level, compiler=compiler)
    assert record([program], out).returncode == 0
    where = top_line(out)["where"]
    assert (where["function"], where["line"]) == ("handle", line_of(source, "handle"))
    calls = [frame for frame in frames_of(out) if frame.endswith(f":{line_of(source, 'calls')}")]
    assert len(calls) == 1, frames_of(out)


# --- libraries without a path from the root -----------------------------------------------------------------------

HOST = """#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int count, char **words) {
    void *library = dlopen(words[1], RTLD_NOW);
    if (library == NULL || (count > 2 && chdir(words[2]) != 0)) {
        puts(dlerror());
        return 1;
    }
    ((void (*)(int))dlsym(library, "plugin_work"))(1000);
    _exit(0);
}
"""
PLUGIN = """#include <stdlib.h>
#include <string.h>
void *kept[10000];
void plugin_work(int count) {
    for (int i = 0; i < count; i++)
        memset(kept[i] = malloc(2000), 1, 2000); // plugin
}
"""
USER = """void plugin_work(int count);
int main(void) { plugin_work(1000); __builtin_trap(); }
"""


@pytest.mark.parametrize("way", ["dlopen", "dlopen and chdir", "LD_LIBRARY_PATH=.", "LD_LIBRARY_PATH=lib"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_a_library_of_a_relative_path_has_names(compiler, way, tmp_path, out):
    (tmp_path / "lib").mkdir()
    plugin = build(tmp_path, PLUGIN, "-O1", "-fPIC", "-shared", compiler=compiler, name="libplugin.so")
    if way.startswith("dlopen"):
        host = build(tmp_path, HOST, "-O1", compiler=compiler, name="host")
        words = [host, "./libplugin.so"] + (["/"] if "chdir" in way else [])
        ok(run(words, shim_env(out), cwd=tmp_path))
    else:
        user = build(tmp_path, USER, "-O1", "-L.", "-Wl,--no-as-needed,-lplugin", compiler=compiler, name="user")
        if way.endswith("lib"):
            plugin = plugin.rename(tmp_path / "lib" / plugin.name)
        done = run([user], shim_env(out, LD_LIBRARY_PATH=way.split("=")[1]), cwd=tmp_path)
        assert done.returncode < 0, done.stderr + done.stdout
    where = top_line(out)["where"]
    assert (where["function"], where["line"]) == ("plugin_work", line_of(PLUGIN, "plugin")), where
    assert any(str(plugin).encode() in file.read_bytes() for file in out.iterdir()), "the path from the root is recorded"


# --- sources relative to the folder of compilation ------------------------------------------------------------------

SOURCE = """#include <stdlib.h>
#include <string.h>
#include <unistd.h>
void *kept[10000];
static __attribute__((noinline)) void keep(int i) {
    kept[i] = malloc(1000); // keeps
    memset(kept[i], 1, 1000);
}
int main(void) {
    for (int i = 0; i < 3000; i++)
        keep(i);
    _exit(0);
}
"""


@pytest.mark.parametrize("compiler, flags", [("gcc", ["-gdwarf-4"]), ("gcc", ["-gdwarf-5"]), ("clang", ["-gdwarf-4"]), ("clang", [])])
def test_sources_are_named_from_the_root(compiler, flags, tmp_path, out):
    """As make and cmake call the compiler: relative to the folder of the build."""
    for name in ("src", "build"):
        (tmp_path / name).mkdir()
    (tmp_path / "src" / "app.c").write_text(SOURCE)
    sh(compiler, "-O1", "-g", *flags, "../src/./app.c", "-o", "app", cwd=tmp_path / "build")
    assert run([tmp_path / "build" / "app"], shim_env(out), cwd="/").returncode == 0
    where = top_line(out)["where"]
    assert (where["file"], where["line"]) == (str(tmp_path / "src" / "app.c"), line_of(SOURCE, "keeps"))
    assert top_line(out, "--project", str(tmp_path / "src"))["where"]["line"] == line_of(SOURCE, "keeps")
    assert f" app.c:{line_of(SOURCE, 'keeps')} keep\n" in kmemshim("leaks", out).stdout


# --- split debug information ------------------------------------------------------------------------------------

INLINES = SOURCE.replace("noinline", "always_inline") + "// inlined\n"


@pytest.mark.parametrize("keep", ["dwo", "dwp", "nothing"])
@pytest.mark.parametrize("version", ["4", "5"])
@pytest.mark.parametrize("compiler", COMPILERS)
def test_split_debug_information_has_inlined_functions(compiler, version, keep, tmp_path, out):
    other = "void *other(void) { return (void *)&other; }\n"
    (tmp_path / "other.c").write_text(other)
    (tmp_path / "main.c").write_text(INLINES)
    sh(compiler, "-O2", "-g", f"-gdwarf-{version}", "-gsplit-dwarf", "-c", "other.c", "main.c", cwd=tmp_path)
    sh(compiler, "-Wl,--build-id", "main.o", "other.o", "-o", "program", cwd=tmp_path)
    if keep == "dwp":
        packer = "dwp" if (compiler, version) == ("gcc", "4") else "llvm-dwp"  # binutils' reads no other
        if shutil.which(packer) is None:
            pytest.skip(f"no {packer}: apt-get install binutils llvm")
        sh(packer, "-e", "program", "-o", "program.dwp", cwd=tmp_path)
    for file in tmp_path.glob("*.dwo") if keep != "dwo" else ():
        file.unlink()
    assert record([tmp_path / "program"], out).returncode == 0
    frames, text = frames_of(out)[:2], unwrapped(kmemshim("report", out).stdout)
    inlined = [f"keep:{line_of(INLINES, 'keeps')}", f"main:{INLINES.splitlines().index('        keep(i);') + 1}"]
    lacks = "built with -gsplit-dwarf, and a .dwo file of it was not found"
    if keep == "dwo" or (keep == "dwp" and lacks not in text):  # elfutils reads packages since 0.191
        assert frames == inlined and lacks not in text
    else:
        assert frames[0] == f"main:{line_of(INLINES, 'keeps')}" and text.count(lacks) == 1


# --- the C library ----------------------------------------------------------------------------------------------

ASKS_A_LIBRARY = """#include <unistd.h>
void keep(void);
int main() {
    keep(); // calls
    _exit(0);
}
"""


def test_functions_of_the_c_library_have_names_alone(tmp_path, out):
    """To unpack its debug information, where that is installed, takes longer than a small report."""
    (tmp_path / "keep.c").write_text("#include <stdlib.h>\nvoid *kept;\nvoid keep(void) { kept = malloc(100000); }\n")
    for library in ("libkeep.so.7", "libc.so.7"):
        sh("gcc", "-g", "-O0", "-shared", "-fPIC", f"-Wl,-soname,{library}", "keep.c", "-o", library, cwd=tmp_path)
        program = build(tmp_path, ASKS_A_LIBRARY, "-Wl,--no-as-needed", f"-L{tmp_path}", f"-l:{library}", f"-Wl,-rpath,{tmp_path}")
        assert record([program], out / library).returncode == 0
        assert frames_of(out / library)[:2] == [f"keep:{0 if library == 'libc.so.7' else 3}", f"main:{line_of(ASKS_A_LIBRARY, 'calls')}"]


# --- a program that is no more what was recorded -------------------------------------------------------------------

def build_id(program):
    return re.search(r"Build ID: (\w+)", sh("readelf", "-n", program).stdout)[1]


@pytest.mark.parametrize("change", ["rebuilt", "removed"])
def test_a_program_that_changed_since_is_told_as_such(change, tmp_path, out):
    """The build ids are those of both files; nobody is sent for debug packages of the user's own program."""
    program = build(tmp_path, SOURCE, "-O0", "-Wl,--build-id")
    assert record([program], out).returncode == 0
    expected = "is not on this machine"
    was = build_id(program)
    program.unlink()
    if change == "rebuilt":
        build(tmp_path, SOURCE + "int more;\n", "-O1", "-Wl,--build-id")
        expected = f"is not the build that was recorded (build id {was[:12]}, now {build_id(program)[:12]})"
    text = unwrapped(kmemshim("report", out).stdout)
    assert f"program+0x...: program {expected}" in text
    assert "debug package" not in text
    done = kmemshim("annotate", "program.c", out)
    assert done.returncode == 2
    assert done.stderr == (f"kmemshim: annotate: program.c: no stack names it, and {program} {expected}: report where it was recorded, "
                           "or give the old files with --sysroot\n")
    notes = [note for note in report("report", out)["damages"] if note.startswith(f"{program}: ")]
    assert len(notes) == 1 and (expected if change == "rebuilt" else "not on this machine") in notes[0]
