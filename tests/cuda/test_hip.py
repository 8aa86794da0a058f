"""AMD's HIP over a double of its library, which prints what it gave out: the same, byte for byte, in domains of their own name."""
import signal
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "preload"))
import harness  # noqa: E402

BUILT = harness.BUILD / "tests" / "cuda"
DOMAINS = ["hip:0", "hip:1", "hip/pinned", "hip/managed", "hip/registered", "hip/imported"]
MIB = 1 << 20


def run(tmp_path, route="linked", **more):
    """
    Linked, by names that are looked up, or in a library that Python opened for itself (RTLD_LOCAL). Returns the process and what the
    double holds.
    """
    program = [BUILT / {"linked": "hip", "looked_up": "hip_looked_up"}[route]] if route != "plugin" else [
        "/usr/bin/python3", "-c", f"import ctypes; ctypes.CDLL({str(BUILT / 'hip_user.so')!r}).hip_workload()"]
    env = harness.shim_env(tmp_path / "out", LD_LIBRARY_PATH=BUILT / "hip6", **more)
    done = harness.run(program, env)
    assert done.stderr == ""
    return done, dict(zip(DOMAINS, map(int, done.stdout.split())))


@pytest.mark.parametrize("more, status", [({}, 0), ({"HIPDOUBLE_KILL": 1}, -signal.SIGKILL), ({"HIPDOUBLE_RESET": 1}, 0)], ids=["exit", "kill", "reset"])
@pytest.mark.parametrize("route", ["linked", "looked_up", "plugin"])
def test_books_are_the_doubles(route, more, status, tmp_path):
    done, live = run(tmp_path, route, **more)
    assert done.returncode == status and live["hip:0"] > MIB and (live["hip:1"] > MIB) == ("HIPDOUBLE_RESET" not in more)

    document = harness.report("sites", tmp_path / "out", "--domain", "hip")
    if "HIPDOUBLE_RESET" in more:
        live["hip:1"] += 6000 + 9000 + 70000  # of pools, and physical memory: whether a reset gives it back is not known
    assert {name: document["totals"][name]["live_bytes"] for name in DOMAINS} == live
    assert not [name for name in document["totals"] if name.startswith("cuda")]
    assert {line["domain"] for line in document["lines"]} == set(DOMAINS)
    assert document["losses"]["lost_missed_frees"] == document["losses"]["lost_unknown_frees"] == document["losses"]["lost_reentrant"] == 0
    names = {line["where"]["function"] for line in document["lines"] if line["domain"] == "hip:0"}
    assert names == {"work"}  # the call that the program made, not one that the library made of it


def test_a_device_that_is_full(tmp_path):
    done, live = run(tmp_path, HIPDOUBLE_CAPACITY=32 * MIB)
    assert done.returncode == 1

    document = harness.report("peak", tmp_path / "out", "--domain", "hip:1")
    assert {line["domain"] for line in document["lines"]} == {"hip:1"}
    assert document["verdict"]["cause"] == "device-memory"
    assert "a request for 1.0 MiB in hip:1 at route_hip.c" in document["verdict"]["text"]
    request, = document["refused_requests"]
    assert (request["device"], request["total_bytes"]) == ("hip:1", 32 * MIB)
    assert request["free_bytes"] == 32 * MIB - request["held"]["live_bytes"] < MIB
    assert request["held"]["pinned_bytes"] == live["hip/pinned"] and request["held"]["managed_bytes"] == live["hip/managed"]
    verdict = harness.report("why", tmp_path / "out", "--domain", "hip:0")["verdict"]
    assert " of hip:0 " in verdict["text"]
    page = harness.run([harness.KMEMSHIM, "report", tmp_path / "out"]).stdout
    assert "Devices " in page and "Held on devices at the peak" in page


def test_without_hip_nothing_is_found(tmp_path):
    """A program that tests for the function finds ours, and is told that there is no device."""
    program = harness.compile_c(Path(__file__).with_name("hip_absent.c"), tmp_path / "absent")
    done = harness.run([program], harness.shim_env(tmp_path / "out"))
    assert (done.returncode, done.stdout, done.stderr) == (0, "100\n", "")
