"""The command reads captures in the container of the program, where little memory is left."""
import resource
import signal
import subprocess
from pathlib import Path

import pytest

from harness import KMEMSHIM, memory_group, plain_env, record, run
from test_symbols import sh

HOLDING = """
import sys
keep = bytearray(b"x") * (66 << 20)
print("held", flush=True)
sys.stdin.readline()
"""
FUNCTIONS = 600_000
ROOM_BYTES = 28 << 20  # the library, 19 MiB, is mapped; the command itself takes some


def test_the_command_is_killed_and_not_the_program_that_it_reads_about(tmp_path, out):
    """Both lie in one full cgroup, and the program holds more."""
    large = tmp_path / "large.py"  # to read its capture takes more than is left
    large.write_text("keep = []\n" + "".join(f"def f{i}(): keep.append(bytearray(1000))\nf{i}()\n" for i in range(6000)))
    assert record(["/usr/bin/python3", large], out).returncode == 0
    with memory_group(80 << 20) as group:
        enter = ["sh", "-c", f'echo $$ >{group}/cgroup.procs; exec "$@"', "sh"]
        with subprocess.Popen([*enter, "/usr/bin/python3", "-c", HOLDING], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
            program.stdout.readline()
            reader = run([*enter, KMEMSHIM, "sites", "--json", out])
            assert (reader.returncode, program.poll()) == (-signal.SIGKILL, None)
            program.stdin.close()
            assert program.wait() == 0


@pytest.mark.parametrize("command", [["baseline", "-o", "base.json"], ["check", "--config", "budget.yml"], ["run", "-q"]], ids=lambda words: words[0])
def test_a_program_that_a_command_runs_is_killed_no_sooner_than_without_it(command, tmp_path):
    (tmp_path / "budget.yml").write_text("budgets: {total: {live: 1 GiB}}")
    own = Path("/proc/self/oom_score_adj").read_text().strip()
    run([KMEMSHIM, *command, "--", "sh", "-c", "cat /proc/self/oom_score_adj >>scores"], cwd=tmp_path)
    assert set((tmp_path / "scores").read_text().split()) == {own}


def test_names_of_a_library_with_many_functions_take_little_memory(tmp_path, out):
    """Those of libtensorflow_cc.so, 1.2 million, took 60 MB."""
    (tmp_path / "many.s").write_text(".text\n" + "".join(f".type f{i:x},@function\nf{i:x}: ret\n.size f{i:x},1\n" for i in range(FUNCTIONS)))
    (tmp_path / "keeps.c").write_text("#include <stdlib.h>\n__attribute__((noinline)) void *keeps(void) { void *p = malloc(1000000); __asm__ volatile(\"\" : : \"r\"(p)); return p; }\n")
    (tmp_path / "program.c").write_text("void *keeps(void); int main(void) { return keeps() == 0; }\n")
    sh("gcc", "-O2", "-fPIC", "-shared", "many.s", "keeps.c", "-o", "libmany.so", "-Wl,--build-id", cwd=tmp_path)
    sh("gcc", "program.c", "./libmany.so", "-o", "program", cwd=tmp_path)
    assert record([tmp_path / "program"], out, cwd=tmp_path).returncode == 0
    done = run([KMEMSHIM, "sites", out], env=plain_env(), preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (ROOM_BYTES, ROOM_BYTES)))
    assert done.returncode == 0 and "keeps" in done.stdout, done.stderr
