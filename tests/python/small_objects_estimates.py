"""Are the estimates of small Python objects as near to the truth as the report says?

make small-objects ESTIMATES=20 stops each program of small_objects/ after the same number of turns of its culprit line: once recorded with
--python-objects, which is the truth, then 20 times by default settings. What the culprit line holds is compared: heap and python/object
together, for the truth has all of it in the heap. A run is right when the difference is within the error that the report gives
beside the estimate, for 95 %; z is the difference by the deviation (error / 1.96), so over many runs its mean is 0 and its deviation at most
1. "by sqrt": the same within the plain bound 1.96 * sqrt(SAMPLE_BYTES * estimate), which is narrower than the report's.
Programs run until they have grown by GROWTH_BYTES; a program that turns only once ends as in small_objects.py, and has the same
objects each time. All runs are judged together: RIGHT_LEAST of them.

    small_objects_estimates.py [--python PATH] [--times N] [--results] [NAME...]
"""
import argparse
import ast
import contextlib
import datetime
import json
import math
import os
import platform
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import small_objects

STOP = Path(__file__).resolve().parent / "small_objects_stop.py"
RESULTS = small_objects.PROGRAMS / "ESTIMATES.md"
GROWTH_BYTES = 16 << 20
RIGHT_LEAST = 0.93
SAMPLE_BYTES = 256 << 10
QUIET_SECONDS = 0.2
CALL = '__import__("small_objects_stop").due(); '


def with_stop(text, line):
    """The program with the call in front of the statement of this line, or of the next one where that opens a block."""
    for node in ast.walk(ast.parse(text)):
        for block in (getattr(node, name, []) for name in ("body", "orelse", "finalbody")):
            at = next((place for place, statement in enumerate(block) if statement.lineno == line), None) if isinstance(block, list) else None
            if at is not None:
                simple = next(statement for statement in block[at:] if not hasattr(statement, "body"))
                lines = text.splitlines(keepends=True)
                row, column = simple.lineno - 1, simple.col_offset
                lines[row] = lines[row][:column] + CALL + lines[row][column:]
                return "".join(lines)
    raise AssertionError(f"no statement begins in line {line}")


def clock_and_state(pid):
    """CPU time of a process and its state; nothing when it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return None
    return int(fields[11]) + int(fields[12]), fields[0]


def run_to_stop(command, environment, folder):
    """True when a process has stopped and no other works on, or when all have grown as small_objects.py wants. All are dead afterwards."""
    with open(folder / "errors", "w") as errors:
        process = subprocess.Popen(command, env=environment, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors)
        deadline = time.monotonic() + small_objects.TIMEOUT
        last, since, is_there = None, time.monotonic(), False
        while process.poll() is None and not is_there and time.monotonic() < deadline:
            time.sleep(small_objects.POLL_SECONDS)
            below = [process.pid, *small_objects.descendants(process.pid)]
            seen = {pid: clock_and_state(pid) for pid in below}
            if seen != last or any(state and state[1] in "RD" for state in seen.values()):  # it works, or waits for a processor
                last, since = seen, time.monotonic()
            is_stopped = any(state and state[1] in "Tt" for state in seen.values())
            is_there = is_stopped and time.monotonic() - since >= QUIET_SECONDS
            is_there = is_there or not is_stopped and sum(map(small_objects.own_bytes, below)) >= small_objects.KILL_BYTES
        below = small_objects.descendants(process.pid) if process.poll() is None else []
        for pid in sorted(below, key=small_objects.own_bytes, reverse=True):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.kill()
        process.wait(timeout=small_objects.TIMEOUT)
    return is_there


def plain_environment():
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("KMEMSHIM_", "LD_PRELOAD", "PYTHON", "STOP_"))}
    return environment | {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0"}


def turns_of(program, python, folder):
    """After how many turns it has grown; 0: it turns too seldom to say."""
    stop = {"STOP_BYTES": str(GROWTH_BYTES), "STOP_FILE": str(folder / "turns")}
    run_to_stop([python, program], plain_environment() | stop, folder)
    return int((folder / "turns").read_text()) if (folder / "turns").exists() else 0


def held(program, python, settings, turns, folder):
    """Bytes that the culprit line holds, the error that the report gives, whether the line is the first place of the report, and the estimated part."""
    capture = folder / "capture"
    shutil.rmtree(capture, ignore_errors=True)
    recorder = {"LD_PRELOAD": str(small_objects.BUILD / "libkmemshim.so"), "KMEMSHIM_OUT": str(capture)}
    if not run_to_stop([python, program], plain_environment() | recorder | settings | {"STOP_AFTER": str(turns)}, folder):
        raise RuntimeError(f"{program.name}: ended before it was stopped: {(folder / 'errors').read_text()[-300:]}")
    done = subprocess.run([small_objects.KMEMSHIM, "sites", capture, "--json", "--top", "1000"], capture_output=True, text=True, check=True)
    document = json.loads(done.stdout)
    rows = [row for row in document["lines"]
            if small_objects.place(row) == small_objects.culprit(program) and row["domain"] in ("heap", "python/object")]
    error = math.sqrt(sum((row["error_bytes"] or 0) ** 2 for row in rows))
    is_first = small_objects.first_row(document)[0] == small_objects.culprit(program)
    return sum(row["live_bytes"] for row in rows), error, is_first, sum(row["live_bytes"] for row in rows if row["domain"] != "heap")


def compare(program, python, times):
    """After how many turns, the truth, and what held() says of each run."""
    with tempfile.TemporaryDirectory(prefix="small-objects") as name:
        folder = Path(name)
        copy = folder / program.name
        line = int(small_objects.culprit(program).rsplit(":")[-1])
        copy.write_text(with_stop(program.read_text(), line))
        shutil.copy(STOP, folder)
        turns = turns_of(copy, python, folder)
        truth = held(copy, python, {"KMEMSHIM_PYTHON_OBJECTS": "1"}, turns, folder)[0]
        return turns, truth, [held(copy, python, {}, turns, folder) for _ in range(times)]


def deviations(truth, runs):
    return [(estimate - truth) / (error / 1.96) if error else math.inf for estimate, error, *_ in runs]


def table(chosen, python, times):
    """Yields the lines of the table, then those of the sums."""
    yield "| program | turns | truth, MiB | mean estimate | error told, ± | right | mean of z | first |"
    yield "|---" * 8 + "|"
    every, first, plain = [], 0, 0
    for program in chosen:
        if small_objects.lacks(program, python):
            continue
        try:
            turns, truth, runs = compare(program, python, times)
        except RuntimeError as error:
            yield f"| {program.stem} | {str(error)} |"
            continue
        z = deviations(truth, runs)
        every += z
        mib = [value / (1 << 20) for value in (truth, statistics.mean(run[0] for run in runs), statistics.mean(run[1] for run in runs))]
        right = sum(abs(one) <= 1.96 for one in z)
        plain += sum(abs(run[0] - truth) <= 1.96 * math.sqrt(SAMPLE_BYTES * run[3]) for run in runs)
        first += sum(run[2] for run in runs)
        yield (f"| {program.stem} | {turns} | {mib[0]:.2f} | {mib[1]:.2f} | {mib[2]:.2f} | {right} of {len(z)} | {statistics.mean(z):+.2f} | "
               f"{sum(run[2] for run in runs)} of {len(z)} |")
    if every:
        right = sum(abs(one) <= 1.96 for one in every)
        yield ""
        yield (f"Right: {right} of {len(every)} runs, {100 * right / len(every):.1f} % (wanted: {100 * RIGHT_LEAST:.0f} %). "
               f"z: mean {statistics.mean(every):+.2f}, deviation {statistics.pstdev(every):.2f}. By sqrt: {plain}. First: {first}.")


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--python", default="/usr/bin/python3")
    options.add_argument("--times", type=int, default=20)
    options.add_argument("--results", action="store_true", help="write small_objects/ESTIMATES.md")
    options.add_argument("names", nargs="*")
    chosen = options.parse_args()
    lines = []
    programs = [path for path in small_objects.programs() if not chosen.names or path.stem in chosen.names]
    for line in table(programs, chosen.python, chosen.times):
        print(line, flush=True)
        lines.append(line)
    if chosen.results:
        version = subprocess.run([chosen.python, "--version"], capture_output=True, text=True).stdout.strip()
        RESULTS.write_text(f"# Small objects: are the estimates right?\n\n`make small-objects ESTIMATES={chosen.times} RESULTS=1`, "
                           f"{datetime.date.today()}, {version}, {platform.machine()}.\n\n" + "\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
