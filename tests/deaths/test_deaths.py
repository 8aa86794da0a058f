"""Of the staged deaths (deaths.py) those that differ most, each once: the right cause, the right line, and no false claim of memory."""
import re

import pytest

import deaths

CHOICE = ("leak_in_a_loop", "whole_data_set", "child_is_killed", "files_in_memory", "sibling_eats", "bad_alloc", "shared_memory_full",
          "device_leak", "segfault", "open_files", "stack_overflow", "exit_137", "threads", "processes",
          "cpu_limit", "timeout_kills", "killed_by_a_parent")


@pytest.mark.parametrize("way", deaths.WAYS)
@pytest.mark.parametrize("name", CHOICE)
def test_the_right_cause_and_line(name, way, tmp_path):
    kind = deaths.ALL[name]
    if deaths.lacks(kind):
        pytest.skip(deaths.lacks(kind))
    folder = tmp_path / "death"
    folder.mkdir()
    document = deaths.stage(kind, way, folder)
    fault, is_false = deaths.wrong(kind, way, document)
    assert fault == "" and not is_false, f"{fault}\n{document['verdict']['text']}"


@pytest.mark.parametrize("way", deaths.WAYS)
def test_what_was_filled_after_the_last_look(way, tmp_path):
    """
    The launcher saw how much was in memory at most. Without one nobody knows: it counts where one look alone saw the block, and where two found
    it untouched it is said of when the figure is.
    """
    folder = tmp_path / "death"
    folder.mkdir()
    text = deaths.stage(deaths.ALL["filled_later"], way, folder)["verdict"]["text"]
    counts = "MiB was live. 20" in text and "in memory" not in text.split("was live.")[1].split("At the last sample")[0]
    says_when = re.search(r" [\d.]+ [KM]iB of it in memory at the last sample\.", text) and "KiB was in memory then." in text
    assert counts or (way != "run" and says_when), text


def test_files_in_memory_are_told_from_other_processes(tmp_path):
    """They are nobody's pages; that imports hold most of what the program has is beside the point."""
    kind = deaths.ALL["files_in_memory"]
    if deaths.lacks(kind):
        pytest.skip(deaths.lacks(kind))
    folder = tmp_path / "death"
    folder.mkdir()
    verdict = deaths.stage(kind, "run", folder)["verdict"]
    assert "files that lie in memory (/dev/shm, other tmpfs folders)" in verdict["text"]
    assert verdict["advice"] == ["remove-files-in-memory"]
