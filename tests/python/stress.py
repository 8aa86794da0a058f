"""CPython's own tests with a walk at every malloc, against the same tests without the shim: make stress-python.

PYTHONMALLOC=malloc sends every object through the hook, KMEMSHIM_VERIFY walks each event and compares with what was
remembered. One line for each interpreter; exit 1 when a test came out otherwise, twice, or a frame or a stack was lost. Modules that do
not run through without the shim either are named. RESULTS.md keeps what came out.
MODULES="gc threading" limits the tests, INTERPRETERS the interpreters; TIMEOUT= on a busy machine.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile

import interpreters
from test_matrix import KMEMSHIM, SHIM

MODULES = os.environ.get("MODULES", "generators coroutines gc threading weakref frame code exceptions").split()
OUTCOMES = os.path.join(interpreters.ROOT, "tests", "preload", "cpython_outcomes.py")
TIMEOUT = int(os.environ.get("TIMEOUT", "300"))  # seconds, of a module
VERIFY = os.environ.get("VERIFY", "101")  # each 101st native walk is repeated by libunwind as well


def outcomes(interpreter, module, capture=None):
    """{test: outcome}, or a text when the run did not come to its end."""
    environment = {} if interpreter.is_free_threaded else {"PYTHONMALLOC": "malloc"}
    if capture:
        environment.update(LD_PRELOAD=SHIM, KMEMSHIM_OUT=capture, KMEMSHIM_VERIFY=VERIFY)
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run([interpreter.path, OUTCOMES, "test.test_" + module], timeout=TIMEOUT, cwd=folder,
                                  env={**interpreter.environment, **environment}, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            return json.loads(done.stdout.decode("utf-8", "replace").splitlines()[-1])
        except subprocess.TimeoutExpired:
            return "did not end"
        except (IndexError, ValueError):
            last = done.stderr.decode("utf-8", "replace").splitlines()[-1:]
            return "ended with %d: %s" % (done.returncode, "".join(last))


def differences(plain, watched):
    if isinstance(plain, str) or isinstance(watched, str):
        return [] if plain == watched else [plain if isinstance(plain, str) else watched]
    return [test for test in sorted(plain.keys() | watched.keys())
            if plain.get(test, "absent").split()[0] != watched.get(test, "absent").split()[0]]


def stress(interpreter):
    """What to print, and whether all was well."""
    sums = dict(tests=0, ok=0, events=0, checked=0, mismatched=0, lost=0)
    different, not_compared = [], []
    for module in MODULES:
        capture = tempfile.mkdtemp(prefix="stress")
        plain = outcomes(interpreter, module)
        watched = outcomes(interpreter, module, capture)
        here = differences(plain, watched)
        if here:  # some of them race: what differs must differ again, from each of two runs without
            again = outcomes(interpreter, module, capture)
            here = [test for test in differences(plain, again) if test in here]
            other = outcomes(interpreter, module)
            here = [test for test in here if test in differences(other, again)]
        different += ["%s: %s" % (module, test) for test in here]
        if isinstance(plain, str) and isinstance(watched, str) and not here:
            not_compared.append("%s: not compared, with and without the shim it %s" % (module, plain))
        if isinstance(watched, dict):
            sums["tests"] += len(watched)
            sums["ok"] += sum(outcome == "ok" for outcome in watched.values())
        done = subprocess.run([KMEMSHIM, "sites", capture, "--json", "--top", "1"], stdout=subprocess.PIPE)
        if done.returncode == 0:
            document = json.loads(done.stdout.decode("utf-8"))
            sums["events"] += sum(total["allocated_count"] for total in document["totals"].values())
            sums["checked"] += document["verify"]["checked"]
            sums["mismatched"] += document["verify"]["mismatched"]
            sums["lost"] += document["losses"]["lost_python_frames"] + document["losses"]["lost_python_text"]
        shutil.rmtree(capture)
    text = "%-15s %-9s %5d tests, %5d ok, %2d otherwise; %9d allocations, %8d compared, %d mismatched, %d frames lost" % (
        interpreter.name, interpreter.version, sums["tests"], sums["ok"], len(different), sums["events"], sums["checked"],
        sums["mismatched"], sums["lost"])
    return "\n    ".join([text] + different + not_compared), not different and sums["mismatched"] == sums["lost"] == 0


def main():
    is_well = True
    for name in interpreters.NAMES:
        interpreter = interpreters.find(name)
        if interpreter is None or name in interpreters.WITH_JIT and not interpreter.has_jit:
            print("%-15s not on this machine" % name, flush=True)
        elif subprocess.run([interpreter.path, "-c", "import test.test_gc"], env=interpreter.environment,
                            stderr=subprocess.DEVNULL).returncode != 0:
            print("%-15s has no tests of its own" % name, flush=True)
        else:
            text, was_well = stress(interpreter)
            print(text, flush=True)
            is_well &= was_well
    return 0 if is_well else 1


if __name__ == "__main__":
    sys.exit(main())
