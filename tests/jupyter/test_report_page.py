"""The report's page in a real browser: each control does what it says, and no error on the console."""
import sys

import pytest

import harness

PROGRAM = """
import threading

class Cache:
    def __init__(self): self.kept = []
    def fill(self, size):
        for _ in range(60):
            self.kept.append(bytearray(b"x") * size)

def load(cache):
    cache.fill(200_000)

cache = Cache()
load(cache)
words = {i: str(i) * 20 for i in range(30000)}
cache.fill(100_000)
"""
EVIL = "</script><b onclick=alert(1)>.py".replace("/", "")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("page")


@pytest.fixture(scope="module")
def page_path(folder):
    program = folder / "program.py"
    program.write_text(PROGRAM)
    harness.record([sys.executable, program], folder / "out")
    done = harness.kmemshim("report", "--html", folder / "page.html", folder / "out")
    assert done.returncode == 0, done.stderr
    return folder / "page.html"


@pytest.fixture(params=[(1280, "light"), (400, "dark")], ids=["wide", "narrow"])
def page(request, browser, page_path):
    width, scheme = request.param
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    problems = []
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", lambda wanted: problems.append(wanted.url) if not wanted.url.startswith(("file:", "data:")) else None)
    page.goto(f"file://{page_path}")
    yield page
    page.close()
    assert problems == []


def boxes(page):
    return [box.get_attribute("aria-label") for box in page.query_selector_all("#flame-graph svg g[aria-label]")]


def test_the_verdict_is_on_top(page):
    assert "exited normally" in page.text_content("#verdict")
    assert page.title().startswith("program.py")


def test_the_flame_graph_zooms_searches_and_turns_around(page):
    whole = boxes(page)
    assert any("program.py:8 Cache.fill" in box for box in whole) and any("program.py:14 <module>" in box for box in whole)
    page.query_selector("#flame-graph svg g[aria-label*='program.py:14 <module>']").click()
    zoomed = boxes(page)
    assert any("program.py:11 load" in box for box in zoomed) and not any("program.py:15 " in box for box in zoomed)
    page.click("#flame-graph button:has-text('Reset')")
    assert boxes(page) == whole
    page.fill("#flame-graph input[name=search]", "cache.fill")
    assert page.query_selector_all("#flame-graph g.found")
    page.fill("#flame-graph input[name=search]", "")
    page.check("#flame-graph input[name=inverted]")
    turned = page.query_selector_all("#flame-graph svg g[aria-label]")
    second = turned[1].get_attribute("aria-label")
    assert "Cache.fill" in second, second
    page.uncheck("#flame-graph input[name=inverted]")
    page.check("#flame-graph input[name=imports]")
    assert len(boxes(page)) >= len(whole)


def test_the_flame_graph_is_used_by_keys(page):
    whole = boxes(page)
    page.focus("#flame-graph svg g[aria-label*='program.py:14 <module>']")
    assert "program.py:14" in page.text_content("#flame-graph .status")
    page.keyboard.press("Enter")
    assert boxes(page) != whole
    page.focus("#flame-graph svg g[tabindex='0']")
    page.keyboard.press("Escape")
    assert boxes(page) == whole
    page.focus("#tab-flame-graph")
    page.keyboard.press("ArrowRight")
    assert page.get_attribute("#tab-lines", "aria-selected") == "true" and page.is_visible("#lines table")


@pytest.mark.parametrize("metric", ["peak", "live", "leaked", "allocated"])
@pytest.mark.parametrize("frames", ["python", "mixed", "native"])
def test_each_figure_and_kind_of_frame_is_drawn(metric, frames, page):
    page.select_option("#flame-graph select[name=metric]", metric)
    page.select_option("#flame-graph select[name=frames]", frames)
    assert page.text_content("#flame-graph .status") != ""
    page.select_option("#flame-graph select[name=memory]", "devices")
    assert page.text_content("#flame-graph .status") == "There is nothing of this kind."


def test_lines_are_sorted_filtered_and_lead_to_their_source(page):
    page.click("#tab-lines")
    rows = "#lines tbody tr"
    assert "program.py:8 Cache.fill" in page.query_selector(rows).text_content()
    page.click("#lines th button:has-text('Allocated at')")
    assert page.get_attribute("#lines th:has-text('Allocated at')", "aria-sort") == "ascending"
    page.fill("#lines input[name=filter]", "dictcomp")
    assert all("dictcomp" in row.text_content() for row in page.query_selector_all(rows)) and page.query_selector_all(rows)
    page.fill("#lines input[name=filter]", "no such line")
    assert page.text_content("#lines .status").startswith("0 lines")
    page.fill("#lines input[name=filter]", "Cache.fill")
    page.click(f"{rows} button.link")
    chosen = page.text_content("#source tr.chosen")
    assert "self.kept.append(" in chosen and "MiB" in chosen


def test_the_timeline_and_the_processes_are_drawn(page):
    page.click("#tab-timeline")
    assert page.query_selector("#timeline svg path") or "too short" in page.text_content("#timeline")
    page.click("#tab-processes")
    text = page.text_content("#processes")
    assert "heap" in text and "program.py" in text and "None: all was recorded." in text


def test_texts_of_the_program_stay_texts(browser, folder):
    program = folder / EVIL
    program.write_text("kept = [bytearray(100000) for _ in range(50)] # <i id=evil>\n")
    harness.record([sys.executable, program], folder / "evil")
    done = harness.kmemshim("report", "--html", folder / "evil.html", folder / "evil")
    assert done.returncode == 0, done.stderr
    page = browser.new_page()
    page.goto(f"file://{folder / 'evil.html'}")
    for tab in ("lines", "source", "processes"):
        page.click(f"#tab-{tab}")
    assert page.query_selector("#evil") is None and page.query_selector("b") is None
    assert "<b onclick" in page.text_content("h1")
    page.close()


def test_a_large_page_is_drawn(browser, folder):
    """3,000 lines of a program: below 2 MiB, and drawn in a moment."""
    program = folder / "many.py"
    program.write_text("kept = []\n" + "".join(f"kept.append(bytearray({1000 + i}))\n" for i in range(3000)))
    harness.record([sys.executable, program], folder / "many")
    assert harness.kmemshim("report", "--html", folder / "many.html", folder / "many").returncode == 0
    assert (folder / "many.html").stat().st_size < 2 << 20
    page = browser.new_page()
    page.goto(f"file://{folder / 'many.html'}")
    page.click("#tab-lines")
    assert len(page.query_selector_all("#lines tbody tr")) == 200
    page.click("#lines button:has-text('Show more')")
    assert len(page.query_selector_all("#lines tbody tr")) == 1200
    page.close()
