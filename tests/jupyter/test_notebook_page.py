"""docs/notebook.md: does a kernel in a container of 300 MiB print what the page shows, from the first cell to the verdict after its death?"""
import re

import harness
from test_doc_sessions import pattern, usual
from test_notebook_extension import start  # noqa: F401

PAGE = (harness.ROOT / "docs/notebook.md").read_text()
CELL = re.compile(r"^In \[\d+\]: (.*\n(?: {8}.*\n)*)((?:(?!In \[).*\n)*)", re.MULTILINE)


def cells(first):
    """[(text, what it shows)] of the block that begins so. Lines of a text begin below its first one."""
    block = re.search(rf"^```\n({re.escape(first)}.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[1]
    return [(text.replace("\n        ", "\n").rstrip("\n"), shown.strip("\n")) for text, shown in CELL.findall(block)]


def comparable(text):
    """Without the kernel's log, which may not be read everywhere, and the names of folders; figures and line ends are usual()'s."""
    text = re.sub(r'The\s+log\s+of\s+the\s+kernel\s+says:\s+"[^"]*"\.\s*', "", text)
    return re.sub(r"`[^`]*kmemshim report\s[^`]*`", "`kmemshim report FOLDER`", text)


def test_a_notebook_prints_what_the_page_shows(start, place, small_group):  # noqa: F811
    place.add_kernel(small_group)
    kernel = start()
    *before, (last, nothing) = cells("In [1]: rows = []")
    assert len(before) == 2 and nothing == ""
    for text, shown in before:
        printed = kernel.run(text)
        assert re.fullmatch(pattern(comparable(shown)), usual(comparable(printed))), printed
    kernel.die(last)
    (text, shown), = cells("In [1]: 1 + 1")
    printed = kernel.run(text)
    assert re.fullmatch(pattern(comparable(shown)), usual(comparable(printed))), printed
