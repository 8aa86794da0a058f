"""The whole shim, hooks too, under the sanitizers: nothing is reported, and the analyzer's sums are the program's own."""
import json
import shutil

import pytest

import harness
import test_conservation

SANITIZERS = {"asan": {"ASAN_OPTIONS": "allocator_may_return_null=1"}, "tsan": {"TSAN_OPTIONS": "allocator_may_return_null=1:die_after_fork=0"}}


def run(sanitizer, name, out, *words):
    program = harness.BUILD / sanitizer / "tests" / "sanitized" / name
    if not program.exists():
        pytest.skip(f"{program} is missing: make test-sanitize")
    # The thread sanitizer of older compilers needs an address space that is not randomised.
    plain = ["setarch", "-R"] if sanitizer == "tsan" and shutil.which("setarch") and harness.run(["setarch", "-R", "true"]).returncode == 0 else []
    done = harness.run([*plain, program, *words], harness.plain_env(KMEMSHIM_OUT=out, KMEMSHIM_VERIFY=64, **SANITIZERS[sanitizer]))
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stderr == ""
    return program, done.stdout


@pytest.mark.parametrize("sanitizer", SANITIZERS)
def test_every_kind_of_call(sanitizer, out):
    _, printed = run(sanitizer, "whole", out, 600)
    document = test_conservation.report_of(out)
    kept = [site for site in document["sites"] if site["where"]["function"] == "keep" and site["domain"] == "heap"]

    for figure, wanted in json.loads(printed).items():
        assert sum(site[figure] for site in kept) == wanted, figure
    losses = {name: count for name, count in document["losses"].items() if count and name.startswith("lost_")}
    assert losses.keys() <= {"lost_unknown_frees", "lost_unwinds", "lost_reentrant"}, losses


@pytest.mark.parametrize("sanitizer", SANITIZERS)
def test_threads_that_free_each_others_blocks(sanitizer, out, tmp_path):
    file = tmp_path / "ledger"
    program, _ = run(sanitizer, "ledger", out, file, harness.seeded_random().randrange(1 << 31), 4, 500)
    wanted = test_conservation.read_ledger(program, file)

    assert wanted["is_done"]
    test_conservation.check_ledger_site_by_site(wanted, test_conservation.report_of(out), test_conservation.FIGURES)
