"""In JupyterLab, with a browser: the kernel died, and the output of the next cell says why, once."""
import re

import pytest

from notebooks import GROW, Page, wait_for


@pytest.fixture
def open_page(browser, server):
    pages = []

    def open_(name, **more):
        pages.append(Page(browser, server, name, **more))
        return pages[-1]

    yield open_
    for number, page in enumerate(pages):
        page.picture(f"last-{number}")
        page.close()


@pytest.mark.parametrize("interface, theme", [("lab", "JupyterLab Light"), ("notebooks", "JupyterLab Dark")], ids=["jupyterlab", "notebook7"])
def test_after_an_oom_kill_the_next_cell_shows_cell_and_line(place, small_group, open_page, interface, theme):
    place.set("themes", theme=theme)
    place.add_kernel(small_group)
    place.write("eats.ipynb", GROW, "grow(1000)", "print('alive')", "print('again')")
    page = open_page("eats.ipynb", interface=interface)
    page.run(0)
    page.let_die(1)
    page.run(2)
    shown = page.output(2)
    assert "The kernel died: it reached the memory limit and was killed" in shown
    assert re.search(r"MiB cell In\[1\] line 4 grow keep\.append\(bytearray\(1 << 20\)\)", shown), shown
    assert "Certain: the cgroup's oom_kill counter" in shown and "Next:" in shown and "kmemshim report" in shown
    assert shown.endswith("alive")
    page.picture("oom-" + interface)
    page.run(3)
    assert page.output(3) == "again"
    folder, life = place.life(0)
    assert life["is_death"] and life["cause"] == "container-limit" and (folder / "told").exists()


DEATHS = {
    "a segfault": ("import ctypes; ctypes.string_at(0)", "it crashed; memory is not the suspect", "SIGSEGV"),
    "os._exit": ("import os; os._exit(1)", "it ended by itself; memory is not the suspect", "status 1"),
}


@pytest.mark.parametrize("death", DEATHS)
def test_another_death_is_not_blamed_on_memory(place, open_page, death):
    text, title, evidence = DEATHS[death]
    place.write("dies.ipynb", GROW + "\ngrow(40)", text, "print('alive')")
    page = open_page("dies.ipynb")
    page.run(0)
    page.let_die(1)
    page.run(2)
    shown = page.output(2)
    assert title in shown and evidence in shown and "memory limit" not in shown, shown
    assert "40.0 MiB cell In[1] line 4 grow" in shown
    page.picture(death.replace(" ", "-"))


def test_an_ordinary_restart_shows_nothing(place, open_page):
    place.write("restarts.ipynb", GROW + "\ngrow(40)", "print('alive')")
    page = open_page("restarts.ipynb")
    page.run(0)
    page.restart()
    wait_for(lambda: len(list(place.lives.iterdir())) == 2)
    page.run(1)
    assert page.output(1) == "alive"


def test_two_kernels_are_told_apart_and_each_death_is_told(place, small_group, open_page):
    """One notebook's kernel is killed twice, the other's crashes meanwhile."""
    place.add_kernel(small_group, "small")
    place.write("small.ipynb", GROW, "grow(1000)", "big = bytearray(900 << 20)\nfor i in range(0, len(big), 4096): big[i] = 1",
                "print('alive')", "print('back')", kernel="small")
    place.write("other.ipynb", "other = bytearray(30 << 20)", "import os; os._exit(3)", "print('alive')")
    small, other = open_page("small.ipynb"), open_page("other.ipynb")
    small.run(0)
    other.run(0)
    other.let_die(1)
    small.let_die(1)
    other.run(2)
    assert "it ended by itself" in other.output(2) and "30.0 MiB cell In[1] line 1" in other.output(2)
    small.run(3)
    assert "cell In[1] line 4 grow" in small.output(3) and "memory limit" in small.output(3)
    small.let_die(2)
    small.run(4)
    shown = small.output(4)
    assert re.search(r"MiB cell In\[2\] line 1 big = bytearray\(900 << 20\)", shown) and "grow" not in shown, shown
