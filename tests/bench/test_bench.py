"""The benchmark's statistics and verdicts on figures that are known beforehand, and one small run of the driver."""
import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import figures  # noqa: E402
import runner  # noqa: E402
import show  # noqa: E402
import variants  # noqa: E402
import workloads  # noqa: E402


def samples(values, figure="cpu_ns"):
    return [{"round": number, figure: value} for number, value in enumerate(values) if value is not None]


# --- statistics ---------------------------------------------------------------------------------

@pytest.mark.parametrize("values, expected", [
    ([3.0], None),
    ([1.0, 4.0, 2.0], 3.0),                   # few rounds: all of them
    ([1.0, 2.0, 3.0, 4.0, 5.0], 2.0),         # quartiles 2 and 4
    ([1.0, 2.0, 3.0, 4.0, 500.0], 2.0),       # one disturbed round does not widen it
])
def test_spread(values, expected):
    assert figures.spread(values) == expected


def test_ratios_are_of_the_same_round():
    # A machine that is 10 times slower in round 1 moves both.
    assert figures.ratios(samples([20, 300, 24]), samples([10, 100, 12]), "cpu_ns") == [2, 3, 2]


def test_rounds_that_failed_are_left_out_with_their_partner():
    plain = [{"round": 0, "cpu_ns": 10}, {"round": 1, "error": "crashed"}, {"round": 2, "cpu_ns": 10}]
    assert figures.ratios(samples([20, 50, 40]), plain, "cpu_ns") == [2, 4]
    assert figures.added(samples([20, 50, 40]), plain, "cpu_ns") == [10, 30]


def test_scaling_is_throughput():
    assert figures.scaling(samples([100, 100], "wall_ns"), samples([50, 80], "wall_ns")) == [2, 1.25]


@pytest.mark.parametrize("values, expected", [
    ([1.1], (1.1, 1.1)),
    ([3, 1, 2], (1, 3)),                                     # so few that all of them are the interval
    ([1, 2, 3, 4, 5, 6], (1, 6)),                            # 2 / 2^6: one in 32 is outside
    (list(range(1, 21)), (6, 15)),                           # of 20 the 6th and the 15th, as in tables of the sign test
    ([*range(1, 20), 10_000], (6, 15)),                      # one disturbed round does not move it
])
def test_the_interval_of_a_median(values, expected):
    assert figures.median_interval(values) == expected


# --- names and the driver -----------------------------------------------------------------------

def selected(text):
    return [one.name for one in workloads.select(workloads.WORKLOADS, text, "workload")]


def test_names_select_by_beginning_unless_exact():
    assert selected("pairs-2t") == ["pairs-2t-own", "pairs-2t-same", "pairs-2t-cross"]
    assert selected("pairs-d60") == ["pairs-d60"]  # and not pairs-d60-paths
    assert "pairs-d60" not in selected("pairs,-pairs-d60") and "pairs-d60-paths" in selected("pairs,-pairs-d60")
    with pytest.raises(ValueError):
        selected("paris")


def test_lib_takes_a_library_and_settings(tmp_path):
    made = variants.kmemshim_from_text(f"full={tmp_path}/a.so,KMEMSHIM_NATIVE=all")
    assert made.environment["LD_PRELOAD"] == f"{tmp_path}/a.so" and made.environment["KMEMSHIM_NATIVE"] == "all"
    assert "missing" in made.needs
    for wrong in ("a.so", "=a.so", "x=", "x=a.so,setting"):
        with pytest.raises(ValueError):
            variants.kmemshim_from_text(wrong)


def test_a_run_that_fails_or_hangs_is_an_error_and_no_figure(tmp_path):
    (tmp_path / "a").mkdir()
    assert runner.run_once(["/bin/false"], {}, tmp_path / "a")["error"].startswith("exit 1")
    assert runner.run_once(["/bin/true"], {}, tmp_path / "a")["error"] == "the workload printed no figures"
    assert "ended after" in runner.run_once(["/bin/sleep", "60"], {}, tmp_path / "a", timeout=0.3)["error"]


# Where the interrupt comes: while the program runs; in the moment in which it has been started; so that the call that waits
# does not see it, as one does that comes between Python's look for signals and that call.
INTERRUPTS = {
    "running": "",
    "starting": "subprocess.Popen.__init__ = then_interrupted(subprocess.Popen.__init__)",
    "unseen": "threading.Thread(target=then_interrupted(int), daemon=True).start()",
}
DRIVER = """
import pathlib, signal, subprocess, threading, time, runner

def then_interrupted(function):
    def call(*arguments, **names):
        function(*arguments, **names)
        while not pathlib.Path("pid").exists():
            time.sleep(0.01)
        signal.raise_signal(signal.SIGINT)
    return call
"""


@pytest.mark.parametrize("moment", INTERRUPTS)
def test_an_interrupted_driver_takes_the_measured_program_with_it(tmp_path, moment):
    note = tmp_path / "pid"
    code = f"{DRIVER}{INTERRUPTS[moment]}\nrunner.run_once(['/bin/sh', '-c', 'echo $$ > {note}.new; mv {note}.new {note}; " \
           "exec sleep 120'], {}, pathlib.Path('.'))"
    driver = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(HERE)},
                              stderr=subprocess.DEVNULL,
                              # A suite in the background of a shell ignores it, and so would its children.
                              preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
    while not note.exists():
        assert driver.poll() is None or note.exists(), "the driver ended before its program began"
    if moment == "running":
        driver.send_signal(signal.SIGINT)
    try:
        driver.wait(timeout=300)
        with pytest.raises(ProcessLookupError):
            os.kill(int(note.read_text()), 0)
    finally:
        driver.kill()
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(note.read_text()), signal.SIGKILL)


def test_pairs_counts_what_it_says(tmp_path):
    """The floor that counts sees one allocation for each pair that the program reports, in every mode."""
    built = runner.build(tmp_path)
    for mode, threads in (("own", 1), ("same", 2), ("cross", 1), ("cross", 3), ("window", 1)):
        argv = [built["pairs"], mode, threads, 5, 20000, 7]
        sample = runner.run_once(argv, {"LD_PRELOAD": built["floor-shadow.so"]}, tmp_path, timeout=60)
        assert sample.get("error") is None
        assert sample["units"] == threads * (24576 if mode == "window" else 20000)
        assert abs(sample["pairs_per_unit"] - 1) < 0.001, mode


def test_driver_measures_and_writes(tmp_path):
    target = tmp_path / "result.json"
    done = subprocess.run([sys.executable, HERE / "bench.py", "--quick", "--workloads", "pairs-d3,churn",
                           "--variants", "none,floor,memray,memray-native", "--no-instructions", "--json", target],
                          capture_output=True, text=True, timeout=300, env={**os.environ, "BUILD_DIR": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    result = json.loads(target.read_text())["workloads"]["pairs-d3"]
    assert list(result["samples"]) == ["none", "floor-forward", "floor-shadow"]
    assert all(len(one) == 2 and all(sample["cpu_ns"] > 0 for sample in one) for one in result["samples"].values())
    assert "floor-shadow" in done.stdout
    absent, = [line for line in done.stdout.splitlines() if line.startswith("skipped: ")]  # memray is beside an interpreter, or not
    assert absent.startswith("skipped: memray, memray-native: no ") and absent.endswith(": --install")
    assert "pairs-d3" in show.workload("pairs-d3", result)
    assert "KMEMSHIM" not in "".join(runner.environment({}))
    done = subprocess.run([sys.executable, HERE / "bench.py", "--workloads", "nothing-of-this-name"], capture_output=True,
                          text=True, timeout=60, env={**os.environ, "BUILD_DIR": str(tmp_path)})
    assert done.returncode == 2 and "no workload" in done.stderr
