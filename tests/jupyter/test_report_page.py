"""The report's page in a real browser: each control does what it says, and no error on the console."""
import gzip
import json
import re
import sys

import pytest

import harness
import test_holders_kept as kept

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
    harness.ok(harness.kmemshim("report", "--html", folder / "page.html", folder / "out"))
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


def test_each_text_of_the_flame_graph_can_be_read(page):
    """Also that of the root, whose box has the colour of a panel."""
    def luminance(colour):
        parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
        return sum(weight * (part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4) for weight, part in zip((0.2126, 0.7152, 0.0722), parts))
    pairs = page.evaluate("""() => Array.from(document.querySelectorAll("#flame-graph svg g")).filter(box => box.querySelector("text"))
        .map(box => [box.querySelector("text"), box.querySelector("rect")].map(part => getComputedStyle(part).fill))""")
    assert len(pairs) > 3
    for text, ground in pairs:
        bright, dark = sorted((luminance(text), luminance(ground)), reverse=True)
        assert (bright + 0.05) / (dark + 0.05) >= 4.5, (text, ground)  # WCAG 2, contrast of text


def test_the_address_keeps_the_view(page):
    page.select_option("#flame-graph select[name=frames]", "mixed")
    page.check("#flame-graph input[name=imports]")
    page.fill("#flame-graph input[name=search]", "cache.fill & more")
    address = page.evaluate("location.href")
    page.reload()
    assert page.input_value("#flame-graph select[name=frames]") == "mixed" and page.is_checked("#flame-graph input[name=imports]")
    assert page.input_value("#flame-graph input[name=search]") == "cache.fill & more" and page.evaluate("location.href") == address
    page.click("#tab-lines")
    page.fill("#lines input[name=filter]", "dictcomp")
    page.reload()
    assert page.is_visible("#lines table") and all("dictcomp" in row.text_content() for row in page.query_selector_all("#lines tbody tr"))
    page.goto(address.split("#")[0] + "#50%&x=%00&frames=none")
    page.reload()
    assert page.is_visible("#flame-graph svg")


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
    rows = lambda: [box.bounding_box()["y"] for box in page.query_selector_all("#flame-graph svg g[aria-label]")[:3]]
    assert rows() == sorted(rows())  # an icicle
    page.check("#flame-graph input[name=upwards]")
    assert rows() == sorted(rows(), reverse=True) and sorted(boxes(page)) == sorted(whole)
    page.uncheck("#flame-graph input[name=upwards]")
    page.check("#flame-graph input[name=imports]")
    assert len(boxes(page)) >= len(whole)


def test_the_way_of_a_holder_unfolds_step_by_step(browser, tmp_path):
    program = tmp_path / "cache.py"
    program.write_text(kept.CACHE)
    kept.guarded([kept.PYTHON, program], tmp_path / "out")
    harness.ok(harness.kmemshim("report", "--html", tmp_path / "page.html", tmp_path / "out"))
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    problems = []
    page.on("console", lambda message: problems.append(message.text))
    page.goto(f"file://{tmp_path / 'page.html'}")
    page.click("#tab-lines")
    way = page.query_selector("#lines td.place > details")
    words = way.query_selector("summary").text_content()
    assert words.startswith("held by local `service` of main() (cache.py:") and words.count(" -> ") == 3, words
    steps, at = [], way
    while (inner := at.query_selector(":scope > details")) is not None:
        assert not inner.is_visible()  # before the one around it is opened
        at.query_selector("summary").focus()
        page.keyboard.press("Enter")
        assert inner.is_visible()
        steps.append(inner.query_selector("summary").text_content())
        at = inner
    at.query_selector("summary").click()
    steps.append(at.query_selector(":scope > p").text_content())
    assert "held by " + " ".join(steps) == words and at.query_selector(":scope > p").is_visible()
    page.close()
    assert problems == []


def test_a_deep_narrow_stack_is_cut_until_one_zooms(browser, folder):
    program = folder / "deep.py"
    program.write_text("""
kept = [bytearray(100_000) for _ in range(300)]
def down(level):
    if level: down(level - 1)
    else: kept.extend(bytearray(100_000) for _ in range(5))
def most(): kept.extend(bytearray(100_000) for _ in range(300))
most()
down(100)
""")
    harness.record([sys.executable, program], folder / "deep")
    assert harness.kmemshim("report", "--html", folder / "deep.html", folder / "deep").returncode == 0
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(f"file://{folder / 'deep.html'}")
    status = "#flame-graph .status"
    assert "narrow stacks are cut" in page.text_content(status) and len([box for box in boxes(page) if " down," in box]) < 20
    page.query_selector("#flame-graph svg g[aria-label*='deep.py:4 down']").click()
    assert "cut" not in page.text_content(status) and len([box for box in boxes(page) if " down," in box]) > 50, page.text_content(status)
    page.close()


def test_what_is_narrower_than_a_name_is_one_box(browser, folder):
    program = folder / "narrow.py"
    program.write_text("kept = [bytearray(100_000) for _ in range(500)]\ndef down(level, size):\n    if level: down(level - 1, size)\n    else: kept.append(bytearray(size))\n"
                       + "".join(f"down({20 + i}, 30_000)\n" for i in range(30)))
    harness.record([sys.executable, program], folder / "narrow")
    assert harness.kmemshim("report", "--html", folder / "narrow.html", folder / "narrow").returncode == 0
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(f"file://{folder / 'narrow.html'}")
    together, = re.findall(r"^(\d+) narrow stacks, (\d+) KiB, ", "\n".join(boxes(page)), re.MULTILINE)[-1:]
    assert 30 <= int(together[0]) < 40 and 30 * 30_000 / 1024 <= int(together[1]) < 1000  # with a few of the interpreter's
    assert not any(" down," in box for box in boxes(page)), boxes(page)
    all_of_it, *_, last = [box.bounding_box() for box in page.query_selector_all("#flame-graph svg g rect")]
    assert last["width"] == pytest.approx(all_of_it["width"] * 900_000 / 52_500_000, rel=0.15)
    page.query_selector_all("#flame-graph svg g")[-1].click()  # there is no more of it to see
    assert any("narrow stacks" in box for box in boxes(page))
    page.close()


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


def test_a_device_that_held_more_than_the_host_comes_first(browser, page_path, folder):
    """Its tensors, which lie in what the driver gave: in the sum of devices they are not counted again."""
    head, text, tail = re.split(r'(?<=<script id="data" type="application/json">)(.*?)(?=</script>)', page_path.read_text(), flags=re.DOTALL)
    data = json.loads(text)
    site = next(site for site in data["sites"] if site[6] >= 0)
    for name, size in ("cuda:0", 64 << 30), ("cuda:0/tensors", 60 << 30):
        data["sites"].append([len(data["domains"]), size, size, size, *site[4:]])
        parts = [] if "/" in name else ["tensors", 60 << 30, "cached by PyTorch", 4 << 30]
        data["domains"].append([name, True, False, size, size, size, parts, 6 << 30 if parts else 0, 80 << 30 if parts else 0])
    (folder / "device.html").write_text(head + json.dumps(data).replace("<", "\\u003c") + tail)
    page = browser.new_page()
    page.goto(f"file://{folder / 'device.html'}")
    status = "#flame-graph .status"
    assert page.text_content(status).startswith("all: 60.0 GiB, 100 % of all")
    page.select_option("#flame-graph select[name=memory]", "devices")
    assert page.text_content(status).startswith("all: 64.0 GiB, 100 % of all")
    page.click("#tab-timeline")
    assert page.input_value("#timeline select[name=timeline-memory]") == "devices"
    page.click("#tab-processes")
    bar = page.get_attribute("#processes svg", "aria-label")
    assert bar == "tensors 60.0 GiB, cached by PyTorch 4.00 GiB, of other programs and the driver 10.0 GiB, free 6.00 GiB"
    assert "cuda:0: 64.0 GiB live of 80.0 GiB when a request was refused" in page.text_content("#processes")
    page.close()


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


def test_a_row_of_a_line_begins_with_its_place(page):
    """What is on a screen of 400 pixels, too, without scrolling to the side; bars begin at one place."""
    page.click("#tab-lines")
    place, peak = page.query_selector_all("#lines tbody tr:first-child td")[:2]
    assert "program.py:8 Cache.fill" in place.text_content() and "MiB" in peak.text_content()
    assert all(cell.bounding_box()["x"] + cell.bounding_box()["width"] <= page.viewport_size["width"] for cell in (place, peak))
    tracks = page.query_selector_all("#lines .track")
    assert len(tracks) > 3 and len({round(track.bounding_box()["x"]) for track in tracks}) == 1


def test_the_processes_are_drawn(page):
    page.click("#tab-processes")
    text = page.text_content("#processes")
    assert "heap" in text and "program.py" in text and "None: all was recorded." in text


def test_the_tree_of_processes(browser, folder):
    program = folder / "family.py"
    program.write_text("""
import os, signal
kept = bytearray(5_000_000)
if os.fork() == 0:
    more = bytearray(20_000_000)
    if os.fork() == 0:
        last = [bytearray(100_000) for _ in range(100)]
        os._exit(0)
    os.wait()
    os.kill(os.getpid(), signal.SIGKILL)
os.wait()
""")
    harness.record([sys.executable, program], folder / "family")
    assert harness.kmemshim("report", "--html", folder / "family.html", folder / "family").returncode == 0
    page = browser.new_page()
    page.goto(f"file://{folder / 'family.html'}")
    page.click("#tab-processes")
    rows = page.query_selector_all("#processes table.processes tbody tr")
    steps = [row.query_selector("td").evaluate("cell => parseFloat(getComputedStyle(cell).paddingLeft)") for row in rows]
    assert len(rows) == 3 and steps[0] < steps[1] < steps[2]
    assert [bool(row.query_selector("td.alarm")) for row in rows] == [False, True, False], [row.text_content() for row in rows]
    page.close()


def test_it_prints_all_views_each_with_its_name(page):
    page.emulate_media(media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert [head.text_content() for head in page.query_selector_all("h2.printed") if head.is_visible()] == ["Flame graph", "Lines", "Timeline", "Source", "Processes"]
    for drawn in ("#flame-graph svg.flame", "#lines table", "#timeline svg.timeline", "#source table"):
        assert page.is_visible(drawn)
    wide = page.viewport_size["width"]
    assert page.evaluate("document.querySelector('#timeline svg').viewBox.baseVal.width") > wide - 60  # not that of a hidden view
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_texts_of_the_program_stay_texts(browser, folder):
    program = folder / EVIL
    program.write_text("kept = [bytearray(100000) for _ in range(50)] # <i id=evil>\n")
    harness.record([sys.executable, program], folder / "evil")
    harness.ok(harness.kmemshim("report", "--html", folder / "evil.html", folder / "evil"))
    page = browser.new_page()
    page.goto(f"file://{folder / 'evil.html'}")
    for tab in ("lines", "source", "processes"):
        page.click(f"#tab-{tab}")
    assert page.query_selector("#evil") is None and page.query_selector("b") is None
    assert "<b onclick" in page.text_content("h1")
    page.close()


def test_a_large_page_is_drawn(browser, folder):
    """10,000 lines of a program: below 2 MiB, and drawn in a moment."""
    program = folder / "many.py"
    program.write_text("kept = []\n" + "".join(f"kept.append(bytearray({1000 + i % 700}))\n" for i in range(10000)))
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


GROWS_AND_DIES = """
import os, signal, sys, time
sys.path.insert(0, %r)
import kmemshim
kept, tables = [], []
def load(size): kept.append(bytearray(size))
def remember(size): tables.append(bytearray(size))
for i in range(40):
    load(1_000_000)
kmemshim.snapshot("loaded <b>")
for i in range(60):
    kmemshim.step()
    remember(500_000)
    time.sleep(0.004)
kmemshim.mark("half")
del kept[:]
kmemshim.mark("rest")
for i in range(40):
    kmemshim.step()
    remember(500_000)
    time.sleep(0.02)
try:
    bytearray(1 << 46)
except MemoryError:
    pass
os.kill(os.getpid(), signal.SIGKILL)
""" % str(harness.ROOT / "python")


@pytest.fixture(scope="module")
def timeline_path(folder):
    program = folder / "grows.py"
    program.write_text(GROWS_AND_DIES)
    harness.run([harness.BUILD / "kmemshim", "run", "--quiet", "-o", folder / "grows", "--", sys.executable, program])
    assert harness.kmemshim("report", "--html", folder / "grows.html", folder / "grows").returncode == 0
    return folder / "grows.html"


@pytest.fixture(params=[(1280, "light"), (400, "dark")], ids=["wide", "narrow"])
def timeline(request, browser, timeline_path):
    width, scheme = request.param
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    problems = []
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(f"file://{timeline_path}")
    page.click("#tab-timeline")
    yield page
    page.close()
    assert problems == []


def layers(page):
    return [path.text_content() for path in page.query_selector_all("#timeline path.layer")]


def place_of(page, moment):
    """Where the line of a moment stands in the picture: how much time passes between two is the machine's."""
    return page.evaluate("""moment => {
        const group = Array.from(document.querySelectorAll("#timeline g.moment")).find(one => one.textContent.startsWith(moment));
        return Number(group.querySelector("line").getAttribute("x1"));
    }""", moment)


def height_at(page, name, moment):
    """How much of the picture a layer takes at the last point until that moment, in pixels."""
    return page.evaluate("""([name, place]) => {
        const paths = Array.from(document.querySelectorAll("#timeline path.layer"));
        const path = paths.find(one => one.textContent.includes(name));
        const corners = path.getAttribute("d").replace(/[MZ]/g, "").split("L").map(one => one.split(",").map(Number));
        const upper = corners.slice(0, corners.length / 2);
        const number = Math.max(0, upper.filter(corner => corner[0] <= place + 0.01).length - 1);
        return corners[corners.length - 1 - number][1] - upper[number][1];
    }""", [name, place_of(page, moment)])


def test_what_grew_when_is_a_stack_of_lines(timeline):
    shown = layers(timeline)
    assert any("grows.py:6 load" in name for name in shown) and any("grows.py:7 remember" in name for name in shown), shown
    assert shown[-1] == "imports and all other lines"
    # load's memory is there at half and gone at the end; remember's has grown
    assert height_at(timeline, "load", "half") > 30 and height_at(timeline, "load", "ended by") < 2
    heights = [height_at(timeline, "remember", moment) for moment in ("loaded", "half", "ended by")]
    assert heights == sorted(set(heights))
    assert timeline.query_selector("#timeline path.resident")


def test_generations_are_a_small_picture(timeline):
    timeline.click("#tab-lines")
    row = next(row for row in timeline.query_selector_all("#lines tbody tr") if "grows.py:7 remember" in row.text_content())
    picture = row.query_selector("svg.survivors")
    alive, total = map(int, re.fullmatch(r"blocks of (\d+) of (\d+) generations \(stretches of the run\) are alive", picture.get_attribute("aria-label")).groups())
    cells = picture.query_selector_all("rect")
    assert 6 <= total and alive >= 0.75 * total and len(cells) == min(32, total)
    assert sum("none" in (cell.get_attribute("class") or "") for cell in cells) <= total - alive
    gone = next(row for row in timeline.query_selector_all("#lines tbody tr") if "grows.py:6 load" in row.text_content())
    assert gone.query_selector("svg.survivors") is None  # nothing of it is alive


def test_the_timeline_by_domain(timeline):
    timeline.select_option("#timeline select[name=by]", "domains")
    assert "heap" in layers(timeline) and not any("grows.py" in name for name in layers(timeline))
    assert "by domain" in timeline.query_selector("#timeline svg").get_attribute("aria-label")


def test_marks_refusals_and_the_end_stand_in_the_timeline(timeline):
    kinds = [group.get_attribute("class") for group in timeline.query_selector_all("#timeline g.moment")]
    assert kinds.count("moment death") == 1 and "moment refused" in kinds and "moment mark" in kinds and "moment snapshot" in kinds
    told = timeline.text_content("#timeline .layers")
    assert "loaded <b>" in told and "half" in told and "ended by SIGKILL" in told and "request refused: heap" in told
    assert timeline.query_selector("#timeline line.step")
    assert "ended by SIGKILL" in timeline.query_selector("#timeline svg").get_attribute("aria-label")


def test_the_timeline_is_read_by_keys_and_by_the_mouse(timeline):
    timeline.focus("#timeline svg")
    timeline.keyboard.press("End")
    assert "(the end)" in timeline.text_content("#timeline .status") and "grows.py:7 remember" in timeline.text_content("#timeline .status")
    end = timeline.text_content("#timeline .status")
    timeline.keyboard.press("ArrowLeft")
    assert timeline.text_content("#timeline .status") != end
    box = timeline.query_selector("#timeline rect.ground").bounding_box()
    timeline.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert "live" in timeline.text_content("#timeline .status")
    assert timeline.query_selector("#timeline line.cursor").evaluate("line => line.style.display") == ""


def test_a_stretch_of_time_is_picked(timeline):
    """While only `remember` grew."""
    whole = timeline.query_selector("#timeline svg").get_attribute("aria-label")
    box = timeline.query_selector("#timeline rect.ground").bounding_box()
    middle = box["y"] + box["height"] / 2
    left = float(timeline.get_attribute("#timeline rect.ground", "x"))
    start, end = (box["x"] + place_of(timeline, moment) - left for moment in ("rest", "ended by"))
    timeline.mouse.move(start + 1, middle)
    timeline.mouse.down()
    timeline.mouse.move((start + end) / 2, middle)
    assert timeline.is_visible("#timeline rect.picked")
    timeline.mouse.move(end - 1, middle)
    timeline.mouse.up()
    told = timeline.text_content("#timeline .status")
    assert re.match(r"From [\d.]+ m?s to [\d.]+ m?s: \+[\d.]+ MiB live; .*grows\.py:7 remember \+[\d.]+ MiB", told), told
    assert timeline.query_selector("#timeline svg").get_attribute("aria-label") != whole
    timeline.mouse.click(box["x"] + 0.5 * box["width"], middle)  # no drag
    assert timeline.is_visible("#timeline button:has-text('The whole time')")
    timeline.click("#timeline button:has-text('The whole time')")
    assert timeline.query_selector("#timeline svg").get_attribute("aria-label") == whole
    assert not timeline.is_visible("#timeline button:has-text('The whole time')")


def test_a_killed_program_is_seen_over_time_first(browser, timeline_path):
    page = browser.new_page()
    page.goto(f"file://{timeline_path}")
    assert page.is_visible("#timeline svg") and not page.is_visible("#flame-graph")
    assert page.query_selector("#verdict p:nth-child(2)").text_content().startswith("Next: ")
    page.close()


def test_a_layer_is_brought_out(timeline):
    timeline.click("#timeline .layers button:has-text('grows.py:6 load')")
    faded = timeline.query_selector_all("#timeline path.layer.faded")
    assert len(faded) == len(layers(timeline)) - 1
    timeline.click("#timeline .layers button:has-text('grows.py:6 load')")
    assert not timeline.query_selector_all("#timeline path.layer.faded")


def test_the_limit_is_a_line(browser, folder, timeline_path):
    """The same page, as if the limit were near: none can be set here for certain."""
    limit = 200 << 20
    page_text = timeline_path.read_text()
    data = re.search(r'<script id="data" type="application/json">(.*?)</script>', page_text, re.DOTALL)[1]
    document = json.loads(data)
    for process in document["processes"]:
        for point in process["timeline"]["points"]:
            point[2] = limit
    (folder / "limit.html").write_text(page_text.replace(data, json.dumps(document).replace("<", "\\u003c")))
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(f"file://{folder / 'limit.html'}")
    page.click("#tab-timeline")
    assert page.query_selector("#timeline line.limit") and "limit 200 MiB" in page.text_content("#timeline svg")
    note = "does not count against it"
    assert note not in page.text_content("#timeline")
    (folder / "limit.html").write_text((folder / "limit.html").read_text().replace(f"{limit}", f"{20 << 20}"))
    page.reload()
    assert note in page.text_content("#timeline")
    page.close()


def test_a_capture_without_points_shows_its_heartbeats(browser, folder):
    (folder / "old.kmem").write_bytes(gzip.decompress((harness.ROOT / "tests/golden/format9.kmem.gz").read_bytes()))
    assert harness.kmemshim("report", "--html", folder / "old.html", folder / "old.kmem").returncode == 0
    page = browser.new_page()
    page.goto(f"file://{folder / 'old.html'}")
    page.click("#tab-timeline")
    assert page.query_selector("#timeline path.layer") and "128 samples" in page.text_content("#timeline")
    page.close()
