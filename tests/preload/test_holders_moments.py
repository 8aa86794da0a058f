"""
Looks at random moments, from a program's first instruction to its last, into threads, forks, execs and dlopen: the program ends as without, and
whoever looked is told what is true. LOOKS= of the environment says how many of each program.
"""
import os
import re
import subprocess
import time
from collections import Counter

import pytest

import harness
from harness import KMEMSHIM, compile_c, plain_env, run, shim_env

pytestmark = pytest.mark.usefixtures("as_users_run_it")

LOOKS = int(os.environ.get("LOOKS") or 8)
PYTHON = "/usr/bin/python3"

THREADS = """
import threading
kept = {}
def work(number):
    kept[number] = [bytearray(2000) for _ in range(60)]
for turn in range(40):
    threads = [threading.Thread(target=work, args=(10 * turn + i,)) for i in range(6)]
    for one in threads: one.start()
    for one in threads: one.join()
print(len(kept), sum(map(len, kept.values())))
"""
FORKS = """
import os
kept = [bytearray(50000) for _ in range(100)]
total = 0
for turn in range(60):
    child = os.fork()
    if child == 0:
        mine = [bytearray(30000) for _ in range(40)]
        os._exit(len(mine))
    total += os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
print(total)
"""
EXECS = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static char *kept[200];
int main(int count, char **words)
{
    char text[16];
    int left = count > 1 ? atoi(words[1]) : 60;

    for (int i = 0; i < 200; i++)
        memset(kept[i] = malloc(5000), 1, 5000);
    if (left == 0)
        return puts("done") < 0;
    snprintf(text, sizeof(text), "%d", left - 1);
    execl(words[0], words[0], text, (char *)NULL);
    return 1;
}
"""
DLOPENS = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
int main(int count, char **words)
{
    long total = 0;

    for (int turn = 0; turn < 3000; turn++) {
        void *library = dlopen(words[count - 1], RTLD_NOW);
        void *(*make)(void) = library != NULL ? (void *(*)(void))dlsym(library, "make") : NULL;
        void *block = make != NULL ? make() : NULL;

        total += block != NULL;
        if (turn % 2)
            free(block);
        if (library == NULL || dlclose(library) != 0)
            return 2;
    }
    printf("%ld\n", total);
    return 0;
}
"""
LIBRARY = "#include <stdlib.h>\nstatic void *last;\nvoid *make(void) { return last = malloc(3000); }\n"
TORCH = """
import torch
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(200, 200), torch.nn.ReLU(), torch.nn.Linear(200, 1))
losses = []
for step in range(60):
    loss = model(torch.ones(64, 200)).pow(2).mean()
    losses.append(loss)
    loss.backward()
print(len(losses), losses[-1].shape)
"""

# What a look may say, the first that fits. Nothing else.
OUTCOMES = (
    ("it was looked at", 0, r""),
    ("it is gone", 2, r"process \d+ is gone"),
    ("it was killed meanwhile", 2, r"process \d+ was killed while it stood still"),
    ("it has no capture yet", 2, r"process \d+ has no capture yet: "),
    ("it became another program", 2, r"process \d+ became another program at this moment"),
    ("it was about to end", 2, r"process \d+ ends, or becomes another program, at this moment"),
    ("it did not stop in time", 2, r"process \d+ did not stop in time"),
    ("there was no time", 2, r"(process \d+|the program) stood still for .* not read yet: allow more with --stop"),
)


def program(name, folder):
    """Its words, or skips."""
    if name in ("threads", "forks", "torch"):
        python = harness.venv("torch") if name == "torch" else PYTHON
        (folder / f"{name}_program.py").write_text({"threads": THREADS, "forks": FORKS, "torch": TORCH}[name])
        return [python, folder / f"{name}_program.py"]
    (folder / "library.c").write_text(LIBRARY)
    (folder / f"{name}.c").write_text({"execs": EXECS, "dlopens": DLOPENS}[name])
    library = compile_c(folder / "library.c", folder / "library.so", "-shared", "-fPIC")
    return [compile_c(folder / f"{name}.c", folder / name, "-ldl"), *([library] if name == "dlopens" else [])]


def family(pid):
    """The process and its children."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as children:
            return [pid, *map(int, children.read().split())]
    except OSError:
        return [pid]


def outcome(done):
    for name, status, said in OUTCOMES:
        if done.returncode == status and re.match("kmemshim: holders: " + said if said else "", done.stderr):
            return name
    return f"{done.returncode}: {done.stderr.strip()}"


@pytest.mark.parametrize("name", ["threads", "forks", "execs", "dlopens", pytest.param("torch", marks=pytest.mark.long)])
def test_a_look_at_any_moment(name, tmp_path):
    rng = harness.seeded_random()
    words = [str(word) for word in program(name, tmp_path)]
    began = time.monotonic()
    plain = run(words)
    assert plain.returncode == 0 and plain.stderr == "", plain
    environment = shim_env(tmp_path / "out")
    assert run(words, environment).stdout == plain.stdout
    length = (time.monotonic() - began) / 2
    outcomes = Counter()
    for _ in range(LOOKS):
        with subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            try:
                time.sleep(length * rng.random() ** 2)  # most of them early: there it begins
                looked = run([KMEMSHIM, "holders", rng.choice(family(process.pid))], plain_env())
                said, complained = process.communicate(timeout=harness.TIMEOUT)
            finally:
                process.kill()
        assert (process.returncode, said, complained) == (0, plain.stdout, ""), (process.returncode, said, complained)
        outcomes[outcome(looked)] += 1
    print(f"\n{name}: " + ", ".join(f"{count} times {text}" for text, count in outcomes.most_common()))
    assert set(outcomes) <= {text for text, *_ in OUTCOMES}, outcomes
