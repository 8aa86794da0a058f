"""Of the set of leaks and controls (leakset.py) those that differ most: each leak on its right line within 40 steps, no control a leak."""
import pytest

import leakset

ALL = leakset.programs()
CHOICE = ("c/leak_tiny", "c/leak_in_four_threads", "c/leak_of_mappings", "c/control_queue", "c/control_mapping_that_fills", "py/leak_list",
          "py/leak_small_objects", "py/leak_in_bursts", "py/leak_in_extension_threads", "py/leak_same_cell", "py/leak_swept_by_atexit",
          "c/leak_swept_by_main", "c/leak_swept_array", "py/leak_queue_without_consumer", "c/control_stages_then_end", "c/control_loaded_then_swept",
          "py/leak_late", "py/leak_late_buffer", "py/control_read_then_process", "py/control_table_then_end", "py/control_table_by_comprehension", "py/control_lru_cache", "py/control_different_cells")


@pytest.fixture(scope="module")
def tools(tmp_path_factory):
    return leakset.Tools(tmp_path_factory.mktemp("leaks"))


def test_the_set_is_as_large_as_it_says():
    assert sum(program.is_leak for program in ALL.values()) >= 40 and sum(not program.is_leak for program in ALL.values()) >= 25
    assert all(program.wanted for program in ALL.values() if program.is_leak)


@pytest.mark.parametrize("name", CHOICE)
def test_leaks_are_found_and_controls_are_not(name, tools, tmp_path):
    row, wrong = leakset.judge(tools, ALL[name], tmp_path, None, is_whole=False)
    assert wrong is None, row
