"""check_cases.py finds what is not covered."""
import pytest

import check_cases

RAN = ["passed\tpreload/test_a.py::test_one[x y]\n", "skipped\tpreload/test_a.py::test_two\n", "passed\tstress/tracker.c\n",
       "left out\tpreload/test_a.py::test_three\n", "long\tpreload/test_a.py::test_five\n", "failed\tunit/test_b.c::four\n"]


def checked(cover, everything=False):
    return check_cases.check([f"| free in another thread | {cover} |\n"], RAN, everything)


@pytest.mark.parametrize("cover, kind", [
    ("`preload/test_a.py::test_one[x y]`", "passed"), ("`preload/test_a.py::test_one`", "passed"), ("`stress/tracker.c`", "passed"),
    ("`preload/test_a.py::test_two`", "skipped or left for later"), ("`preload/test_a.py::test_three`", "skipped or left for later"),
    ("`preload/test_a.py::test_five`", "skipped or left for later"),
    ("`jupyter/test_report_page.py::test_a_device_that_held_more_than_the_host_comes_first`", "skipped or left for later"),
    ("does not apply: no such format", "does not apply"), ("open: nobody did it", "open")])
def test_what_covers_a_case(cover, kind):
    assert checked(cover) == ([], {kind: 1})


@pytest.mark.parametrize("cover, everything", [
    ("`preload/test_a.py::test_ones`", False), ("`preload/test_a.py::test_one[x]`", False), ("`unit/test_b.c::four`", False),
    ("`jupyter/test_report_page.py::test_of_nobody`", False), ("`jupyter/test_gone.py::test_a`", False),
    ("`preload/test_a.py::test_three`", True), ("`stress/tracker.c`, `stress/gone.c`", False), ("somewhere", False), ("", False)])
def test_what_does_not(cover, everything):
    wrong, _ = checked(cover, everything)
    assert len(wrong) == 1


def test_what_takes_long_need_not_have_run():
    assert checked("`preload/test_a.py::test_five`", True) == ([], {"skipped or left for later": 1})


def test_headings_and_other_text_are_no_cases():
    assert check_cases.check(["| case | covered by |\n", "|---|---|\n", "text\n", "\n"], RAN, False) == ([], {})


@pytest.mark.parametrize("arguments", [[], ["CASES.md"]])
def test_without_its_files_it_says_which(arguments, capsys):
    assert check_cases.main(arguments) == 2
    assert capsys.readouterr().err == "check_cases.py CASES.md RAN [--all]\n"


def test_a_file_that_is_missing_is_named(tmp_path, capsys):
    assert check_cases.main([str(tmp_path / "CASES.md"), str(tmp_path / "ran")]) == 2
    assert "CASES.md: No such file" in capsys.readouterr().err
