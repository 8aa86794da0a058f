"""A cache that lives as long as the program, in C, C++ and Python: first row and verdict have it, though the end of the program frees it."""
import pytest

import harness

pytestmark = pytest.mark.usefixtures("as_users_run_it")

HELD = 20000 * 1000
PYTHON = """
import atexit
cache = {}
def remember(number):
    cache[number] = bytearray(1000)
def work():
    return bytearray(3000)
for i in range(20000):
    remember(i)
    work()
atexit.register(cache.clear)
"""


@pytest.mark.parametrize("form", ["C", "C++", "Python"])
def test_a_cache_of_the_whole_run_is_the_first_row(form, programs, out, tmp_path):
    if form == "C":
        command = [programs("static_cache.c")]
    elif form == "C++":
        command = [harness.compile_c(harness.HERE / "static_cache.cc", tmp_path / "static_cache", "-std=gnu++17", compiler="g++")]
    else:
        script = tmp_path / "static_cache.py"
        script.write_text(PYTHON)
        command = [harness.find_python(), script]
    assert harness.run([harness.KMEMSHIM, "run", "-o", out, "--", *command]).returncode == 0
    first = harness.report("leaks", out, "--top", "1")["lines"][0]
    assert first["where"]["function"].startswith("remember"), first
    assert first["live_bytes"] == pytest.approx(HELD, rel=.2) and first["leak"]["class"] == "leak", first
    assert first["released_at_exit_bytes"] > HELD / 2 or form == "Python", first
    verdict = harness.report("report", out)["verdict"]
    assert "remember" in verdict["text"] and "remember" in verdict["next"], verdict
