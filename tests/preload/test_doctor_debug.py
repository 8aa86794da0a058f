"""What kmemshim doctor says of debug symbols that are missing, and who has them. Nothing is fetched."""
import os
import re

import pytest

import harness
from test_doctor import OK, compiled, findings
from test_doctor_machine import mounted

LARGE = "volatile char large[300000] = { 1 };\nint main(void) { return large[1]; }\n"
KEPT = "char large[300000] = { 1 };\nint used(void) { return large[1]; }\n"


def missing(words, env=None):
    return [row for row in findings(*words, status=OK, env=env) if "no debug symbols" in row["what"]]


def stripped(tmp_path, *flags, folder="", text=LARGE, name="program"):
    place = tmp_path / folder
    place.mkdir(parents=True, exist_ok=True)
    program = compiled(place, text, *flags, name=name)
    assert harness.run(["strip", program]).returncode == 0
    return program


def test_a_program_of_ones_own(tmp_path):
    rows = missing(["-o", tmp_path / "out", stripped(tmp_path)])
    assert [(row["level"], row["next"]) for row in rows] == [("note", "build it with -g, and do not strip it")]
    assert not missing(["-o", tmp_path / "out", compiled(tmp_path, LARGE)])


def test_symbols_in_a_file_beside_it(tmp_path):
    program = compiled(tmp_path, LARGE)
    for words in (["objcopy", "--only-keep-debug", program, tmp_path / "program.debug"], ["strip", program],
                  ["objcopy", f"--add-gnu-debuglink={tmp_path}/program.debug", program]):
        assert harness.run(words).returncode == 0
    assert not missing(["-o", tmp_path / "out", program])
    (tmp_path / "program.debug").rename(tmp_path / "gone.debug")
    assert missing(["-o", tmp_path / "out", program])


def test_symbols_in_the_folder_of_all(tmp_path):
    program = stripped(tmp_path)
    build_id = re.search(r"Build ID: (\w+)", harness.run(["readelf", "-n", program]).stdout)[1]
    place = f"/usr/lib/debug/.build-id/{build_id[:2]}"
    found = mounted(f"mkdir -p /usr/lib/debug; mount -t tmpfs none /usr/lib/debug; mkdir -p {place}; touch {place}/{build_id[2:]}.debug",
                    "-o", tmp_path / "out", program)
    assert not [row for row in found if "no debug symbols" in row["what"]]
    row, = missing(["-o", tmp_path / "out", program], harness.plain_env(DEBUGINFOD_URLS="https://127.0.0.1:9/"))
    assert row["next"] == (f"kmemshim asks no server: `debuginfod-find debuginfo {program}` does; put the file there as "
                           f"{place}/{build_id[2:]}.debug")


@pytest.mark.parametrize("package, mend", [
    ("libown1:amd64", "apt install libown1-dbgsym"), ("libown1, libother", "apt install libown1-dbgsym"), ("libc6:amd64", "apt install libc6-dbg"),
    ("python3.11-minimal", "apt install python3.11-dbg"), ("libpython3.13:amd64", "apt install python3.13-dbg"), (None, "build it with -g"),
])
def test_the_package_that_has_them(package, mend, tmp_path):
    """dpkg's own answer, played: which packages a machine has is its own matter."""
    program = stripped(tmp_path)
    answer = f"echo '{package}: {program}'" if package else "echo dpkg-query: no path found >&2; exit 1"
    (tmp_path / "dpkg-query").write_text(f"#!/bin/sh\n{answer}\n")
    (tmp_path / "dpkg-query").chmod(0o755)
    row, = missing(["-o", tmp_path / "out", program], harness.plain_env(PATH=f"{tmp_path}:{os.environ['PATH']}"))
    assert re.fullmatch(re.escape(mend) + r"(, (of `deb .*`|and do not strip it))?", row["next"]), row


def test_the_package_of_a_library_of_debian(tmp_path):
    owner = harness.run(["dpkg-query", "-S", "/usr/bin/git"]).stdout if os.path.exists("/usr/bin/dpkg-query") else ""
    if not owner:
        pytest.skip("git is of no package here")
    row = next(iter(row for row in missing(["-o", tmp_path / "out", "/usr/bin/git"]) if row["where"] == "/usr/bin/git"), None)
    if row is None:
        pytest.skip("its debug symbols are here")
    assert row["next"].startswith("apt install git-dbgsym")


def test_an_archive_that_apt_knows_is_not_told(tmp_path):
    (tmp_path / "here").mkdir()
    found = mounted(f"cd {tmp_path}/here; cp -a /etc etc; mkdir -p etc/apt/sources.list.d; "
                    "echo deb http://deb.debian.org/debian-debug bookworm-debug main >etc/apt/sources.list.d/debug.list; mount --bind etc /etc",
                    "-o", tmp_path / "out", "/usr/bin/git")
    rows = [row for row in found if row["where"] == "/usr/bin/git"]
    if len(rows) < 2:
        pytest.skip("git is of no package here, or its debug symbols are")
    assert rows[1]["next"] == "apt install git-dbgsym"


def test_the_largest_libraries_and_one_of_a_wheel(tmp_path):
    names = [f"lib{name}.so" for name in "abcd"]
    for number, name in enumerate(names):
        text = KEPT.replace("300000", str(300000 + 100000 * number)).replace("used", f"used_{number}").replace("large", f"large_{number}")
        stripped(tmp_path, "-shared", "-fPIC", folder="venv/lib/python3.11/site-packages/own", text=text, name=name)
    folder = tmp_path / "venv/lib/python3.11/site-packages/own"
    calls = "".join(f"int used_{number}(void);\n" for number in range(4))
    program = compiled(tmp_path, calls + "int main(void) { return used_0() + used_1() + used_2() + used_3(); }\n",
                       *[folder / name for name in names])
    rows = missing(["-o", tmp_path / "out", program])
    assert [os.path.basename(row["where"]) for row in rows] == ["libd.so", "libc.so", "libb.so"]
    assert rows[0]["next"] == "build it from source with -g, if its lines matter: wheels come without"
