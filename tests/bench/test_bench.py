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

import bench_check  # noqa: E402
import figures  # noqa: E402
import runner  # noqa: E402
import show  # noqa: E402
import variants  # noqa: E402
import workloads  # noqa: E402


def samples(values, figure="cpu_ns"):
    return [{"round": number, figure: value} for number, value in enumerate(values) if value is not None]


def document(path, plain, ours, figure="cpu_ns", variant="kmemshim", **more):
    content = {"format": 1, "workloads": {"pairs-d3": {
        "about": "", "unit": "pair", "threads": 1, **more,
        "samples": {"none": samples(plain, figure), variant: samples(ours, figure)}}}}
    path.write_text(json.dumps(content))
    return str(path)


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


@pytest.mark.parametrize("base, new, least, expected", [
    ([1.10, 1.11, 1.12], [1.10, 1.11, 1.12], 0.01, False),
    ([1.10, 1.11, 1.12], [1.16, 1.17, 1.18], 0.01, True),
    ([1.00, 1.11, 1.22], [1.06, 1.17, 1.28], 0.01, False),   # the same step within wide rounds is noise
    ([1.10, 1.11, 1.12], [0.90, 0.91, 0.92], 0.01, False),   # better is never worse
    ([1.110, 1.110, 1.110], [1.115, 1.115, 1.115], 0.01, False),  # no noise, but under what is allowed anyway
    ([1.110, 1.110, 1.110], [1.125, 1.125, 1.125], 0.01, True),
    ([1.0], [1.05], 0.01, True),
])
def test_worse_means_beyond_the_noise(base, new, least, expected):
    assert figures.is_worse(base, new, least)[0] is expected


# --- bench_check --------------------------------------------------------------------------------

PLAIN = [10.0, 10.2, 9.9, 10.1, 10.0]


def check(tmp_path, capsys, base, new, *words):
    status = bench_check.main([*words, base, new])
    return status, capsys.readouterr()


def test_check_passes_on_equal_files(tmp_path, capsys):
    base = document(tmp_path / "base.json", PLAIN, [15.0, 15.3, 14.9, 15.1, 15.0])
    status, said = check(tmp_path, capsys, base, base)
    assert status == 0
    assert "1 figures compared, 0 worse" in said.out


def test_check_fails_and_names_what_got_worse(tmp_path, capsys):
    base = document(tmp_path / "base.json", PLAIN, [15.0, 15.3, 14.9, 15.1, 15.0])
    new = document(tmp_path / "new.json", PLAIN, [18.0, 18.3, 17.9, 18.1, 18.0])
    status, said = check(tmp_path, capsys, base, new)
    assert status == 1
    assert "worse: pairs-d3, kmemshim, CPU: 1.5 -> 1.8" in said.out
    assert check(tmp_path, capsys, new, base)[0] == 0


def test_check_passes_when_the_whole_machine_is_slower(tmp_path, capsys):
    base = document(tmp_path / "base.json", PLAIN, [15.0, 15.3, 14.9, 15.1, 15.0])
    new = document(tmp_path / "new.json", [3 * one for one in PLAIN], [45.0, 45.9, 44.7, 45.3, 45.0])
    assert check(tmp_path, capsys, base, new)[0] == 0


def test_check_leaves_peers_alone_unless_asked(tmp_path, capsys):
    base = document(tmp_path / "base.json", PLAIN, [15.0] * 5, variant="heaptrack")
    new = document(tmp_path / "new.json", PLAIN, [30.0] * 5, variant="heaptrack")
    assert check(tmp_path, capsys, base, new)[0] == 2  # nothing left to compare is not a pass
    assert check(tmp_path, capsys, base, new, "--all")[0] == 1


def test_check_compares_instructions_and_bytes_as_they_are(tmp_path, capsys):
    def counted(name, count):
        return document(tmp_path / name, PLAIN, [15.0] * 5, instructions={"none": 100, "kmemshim": 100 + count})

    assert check(tmp_path, capsys, counted("a", 200), counted("b", 201))[0] == 0
    status, said = check(tmp_path, capsys, counted("a", 200), counted("b", 210))
    assert status == 1 and "instructions: 200 -> 210" in said.out
    small, large = (document(tmp_path / name, [0] * 5, [mib << 20] * 5, "file_bytes") for name, mib in (("s", 1), ("l", 2)))
    assert check(tmp_path, capsys, small, large)[0] == 1
    assert check(tmp_path, capsys, large, small)[0] == 0


def test_check_fails_when_a_run_failed_that_did_not(tmp_path, capsys):
    base = document(tmp_path / "base.json", PLAIN, [15.0] * 5)
    content = json.loads(Path(base).read_text())
    content["workloads"]["pairs-d3"]["samples"]["kmemshim"][2] = {"round": 2, "error": "exit -11"}
    (tmp_path / "new.json").write_text(json.dumps(content))
    assert check(tmp_path, capsys, base, str(tmp_path / "new.json"))[0] == 1


@pytest.mark.parametrize("text", ["", "[]", '{"format": 2, "workloads": {}}', '{"format": 1, "workloads": {}}'])
def test_check_refuses_what_it_cannot_read(tmp_path, capsys, text):
    (tmp_path / "bad.json").write_text(text)
    assert check(tmp_path, capsys, str(tmp_path / "bad.json"), str(tmp_path / "bad.json"))[0] == 2


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
        assert driver.poll() is None, "the driver ended before its program began"
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
