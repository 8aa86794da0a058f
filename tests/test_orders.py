"""stress/orders.py finds what has no row, and weakens what it names."""
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).with_name("stress")))
import orders  # noqa: E402

SOURCE = """/* atomic_load_explicit(&a, memory_order_acquire); */
static inline bool
take(struct lock *lock)
{
	atomic_signal_fence(memory_order_seq_cst);
	return atomic_exchange_explicit(&locks[place(1, 2)].is_taken[i],
	                                true, memory_order_acquire) || atomic_load_explicit(&lock->state, memory_order_relaxed);
}

void
give(void)
{
	__atomic_store_n(&lock, NULL, __ATOMIC_RELEASE);
	atomic_thread_fence(memory_order_release); // "memory_order_acquire"
}
"""
ROW = "| a lock | `a.h:take:is_taken`, `a.h:give:lock + a.h:give:fence` | `stress/one.c` | each reported |\n"
RAN = ["passed\tstress/one.c\n", "failed\tstress/two.c\n"]


def checked(row, ran=None):
    return orders.check([row], [("a.h", SOURCE)], ran)


def test_orders_are_named():
    assert [name for name, _, _ in orders.orders_of("a.h", SOURCE)] == ["a.h:take:is_taken", "a.h:give:lock", "a.h:give:fence"]


def test_all_is_in_the_table():
    assert checked(ROW) == checked(ROW, RAN) == []


@pytest.mark.parametrize("row", [
    ROW.replace("`a.h:take:is_taken`, ", ""), ROW.replace("take:", "took:"), ROW.replace(" each reported ", " "),
    ROW.replace("`stress/one.c`", "one.c"), ROW.replace("one.c", "two.c"), ROW.replace("one.c", "three.c")])
def test_what_is_wrong_is_told(row):
    assert checked(row, RAN)


def test_why_there_is_no_test_is_enough():
    assert checked(ROW.replace("`stress/one.c`", "none: of two loads"), RAN) == []


def test_a_second_one_of_a_name_is_weakened_alone():
    source = SOURCE.replace("__ATOMIC_RELEASE);", "__ATOMIC_RELEASE);\n\t__atomic_exchange_n(&lock, NULL, __ATOMIC_ACQ_REL);")
    text = orders.weakened("a.h", source, {"a.h:give:lock#2"})

    assert orders.check([ROW], [("a.h", source)]) == ["a.h:give:lock#2 is in no row"]
    assert orders.check([ROW.replace("give:fence", "give:fence`, `a.h:give:lock#2")], [("a.h", source)]) == []
    assert "__atomic_store_n(&lock, NULL, __ATOMIC_RELEASE)" in text and "__ATOMIC_RELAXED" in text and "ACQ_REL" not in text


def test_a_run_that_takes_too_long_reports_nothing(tmp_path, monkeypatch):
    def run(argv, **options):
        if argv[0] != "make":
            raise orders.subprocess.TimeoutExpired(argv, 100)
        return orders.subprocess.CompletedProcess(argv, 0)

    monkeypatch.setattr(orders.subprocess, "run", run)
    assert orders.build_and_run(tmp_path, "stress/one.c") == 0


def test_only_what_is_named_is_weakened():
    text = orders.weakened("a.h", SOURCE, {"a.h:give:lock", "a.h:give:fence"})

    assert [name for name, _, _ in orders.orders_of("a.h", text)] == ["a.h:take:is_taken"]
    assert "__ATOMIC_RELAXED" in text and "fence(memory_order_relaxed)" in text
