"""Of what a worker copied by reading it: which line made it? Estimated from the samples that lie in pages of the worker's own."""
import ast
import json
import os
import sys

import pytest

import estimates
from test_objects import VERSIONS, interpreter_of, out  # noqa: F401

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "preload"))
import harness  # noqa: E402

pytestmark = pytest.mark.usefixtures("as_users_run_it")

MIB = 1 << 20
PROGRAM = os.path.join(HERE, "copied_program.py")


def of_function(document, process, name):
    """Of one worker, what the function made: bytes that were copied, and their error."""
    keys = {site["key"] for site in document["sites"] if any((frame["function"] or "").startswith(name) for frame in site["frames"])}
    rows = [row for row in process["inherited_sites"] if row["key"] in keys]
    assert all(row["is_estimated"] == (row["copied_bytes"] != 0) for row in rows)
    return sum(row["copied_bytes"] for row in rows), sum(row["error_bytes"] or 0 for row in rows)


@pytest.mark.parametrize("kind", ["dicts", "tuples", "strings", "interned"])
@pytest.mark.parametrize("version", VERSIONS)
def test_what_workers_copy_by_reading_has_its_line(out, version, kind):
    if not os.access("/proc/self/pagemap", os.R_OK):
        pytest.skip("the kernel has no page map")
    done = harness.silent(harness.run([interpreter_of(version), PROGRAM, kind], harness.shim_env(out)))
    document = json.loads(harness.kmemshim("sites", out, "--json").stdout)
    workers = [process for process in document["processes"] if process["inherited_bytes"] != 0]
    # In 3.12 these have no count of references: nothing is copied, and a worker that does little else has no capture.
    assert len(workers) == 2 or (version == "3.12" and kind == "interned" and workers == [])
    for worker, (read_bytes, unread_bytes) in zip(sorted(workers, key=lambda process: process["pid"]), ast.literal_eval(done.stdout)):
        copied, error = of_function(document, worker, "read_by_workers")
        others, _ = of_function(document, worker, "read_by_nobody")
        # Pages are counted, in which a tenth may be what the interpreter rounds up; and the worker copies some MiB that lie beside samples as well.
        assert estimates.is_right(copied, max(0.9 * read_bytes - 2 * MIB, 0), 0.2 * read_bytes + 4 * MIB), (kind, read_bytes, copied)
        assert error != 0 or copied == 0
        assert estimates.is_right(others, 0, unread_bytes + 4 * MIB), (kind, unread_bytes, others)
        assert copied + others <= worker["copied_bytes"]
    if version == "3.12" and kind == "interned":  # these have no count of references there
        assert all(of_function(document, worker, "read_by_workers")[0] <= 4 * MIB for worker in workers)
    if kind == "tuples":
        text = document["verdict"]["text"]
        assert " allocated at copied_program.py:18 " in text and ", of which one copied about " in text
