"""A Jupyter of its own for each test: home, kernel specifications, server, and a page in a browser."""
import contextlib
import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import nbformat

import harness

CHROMIUM = "/usr/bin/chromium"
SECONDS = 60  # for what happens in a browser on a busy machine
PICTURES = harness.BUILD / "jupyter"

GROW = "keep = []\ndef grow(mebibytes):\n    for i in range(mebibytes):\n        keep.append(bytearray(1 << 20))"


class Place:
    def __init__(self, folder, monkeypatch):
        self.folder = folder
        self.notebooks = folder / "notebooks"
        self.kernels = folder / "data" / "kernels"
        self.lives = folder / "state" / "kmemshim" / "kernels"
        self.notebooks.mkdir()
        for name in [name for name in os.environ if name.startswith(("KMEMSHIM_", "JUPYTER_", "LD_PRELOAD", "JPY_"))]:
            monkeypatch.delenv(name)
        for name, value in {"HOME": folder, "XDG_STATE_HOME": folder / "state", "JUPYTER_DATA_DIR": folder / "data",
                            "JUPYTER_RUNTIME_DIR": folder / "runtime", "JUPYTER_CONFIG_DIR": folder / "config",
                            "JUPYTERLAB_SETTINGS_DIR": folder / "lab", "JUPYTERLAB_WORKSPACES_DIR": folder / "workspaces",
                            "IPYTHONDIR": folder / "ipython", "LC_ALL": "C.UTF-8", "NO_COLOR": "1"}.items():
            monkeypatch.setenv(name, str(value))
        self.add_kernel()

    def add_kernel(self, group=None, name="recorded", python=sys.executable, options=()):
        """A kernel as `kmemshim jupyter install` writes it; it, and not its server, is put into a memory cgroup."""
        argv = [harness.KMEMSHIM, "run", "--kernel", *options, "--", python, "-m", "ipykernel_launcher", "-f", "{connection_file}",
                "--ext=kmemshim"]
        if group is not None:
            argv = ["/bin/sh", "-c", 'echo $$ >"$0/cgroup.procs" && exec "$@"', group, *argv]
        (self.kernels / name).mkdir(parents=True, exist_ok=True)
        spec = {"argv": [str(word) for word in argv], "display_name": "Python 3 (kmemshim)", "language": "python"}
        (self.kernels / name / "kernel.json").write_text(json.dumps(spec))

    def set(self, name, **settings):
        """Settings of the pages that are opened from now on."""
        folder = self.folder / "lab" / "@jupyterlab" / "apputils-extension"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.jupyterlab-settings").write_text(json.dumps(settings))

    def write(self, name, *cells, kernel="recorded"):
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in cells],
                                            metadata={"kernelspec": {"name": kernel, "display_name": "Python 3 (kmemshim)",
                                                                     "language": "python"}})
        nbformat.write(notebook, self.notebooks / name)
        return self.notebooks / name

    def life(self, number=-1):
        """The newest life of a kernel, and what its launcher wrote about it."""
        folder = sorted(self.lives.iterdir())[number]
        return folder, json.loads((folder / "life.json").read_text())


@contextlib.contextmanager
def server(place):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = open(place.folder / "server.log", "wb")
    argv = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--ServerApp.root_dir={place.notebooks}",
            f"--ServerApp.port={port}", "--ServerApp.port_retries=0", "--IdentityProvider.token=", "--ServerApp.disable_check_xsrf=True",
            "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]
    place.set("notification", fetchNews="false")  # no question in front of the page
    process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, cwd=place.folder)
    address = f"http://127.0.0.1:{port}"
    try:
        wait_for(lambda: process.poll() is not None or answers(address))
        assert process.poll() is None, (place.folder / "server.log").read_text()
        yield address
    finally:
        with contextlib.suppress(OSError):
            for kernel in json.loads(urllib.request.urlopen(address + "/api/kernels", timeout=10).read()):
                urllib.request.urlopen(urllib.request.Request(f"{address}/api/kernels/{kernel['id']}", method="DELETE"), timeout=30)
        process.terminate()
        process.wait(timeout=60)
        log.close()


def answers(address):
    try:
        return urllib.request.urlopen(address + "/api", timeout=5).status == 200
    except OSError:
        return False


def wait_for(what, seconds=SECONDS):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it does not happen"
        time.sleep(.2)


class Page:
    """A notebook in a browser: JupyterLab's page, or with interface="notebooks" that of Notebook 7."""

    def __init__(self, browser, address, name, interface="lab"):
        self.address, self.name = address, name
        self.context = browser.new_context(viewport={"width": 1300, "height": 1000})
        self.page = self.context.new_page()
        self.page.set_default_timeout(1000 * SECONDS)
        # a workspace of its own: the default one opens the notebooks of other pages as well
        folder = f"lab/workspaces/{Path(name).stem}/tree" if interface == "lab" else interface
        self.page.goto(f"{address}/{folder}/{name}")
        self.cells = self.page.locator(".jp-Notebook .jp-CodeCell")
        self.cells.first.wait_for()
        wait_for(self.is_connected)

    def is_connected(self):
        sessions = json.loads(urllib.request.urlopen(self.address + "/api/sessions", timeout=10).read())
        return any(each["path"] == self.name and each["kernel"]["connections"] > 0 and each["kernel"]["execution_state"] == "idle"
                   for each in sessions)

    def start(self, number):
        """Runs a cell, from 0, and does not wait for its end."""
        self.cells.nth(number).locator(".cm-content").click()
        self.page.keyboard.press("Shift+Enter")

    def run(self, number):
        """For a cell that was not run before: returns when it has a number, at its end. What is run while the page connects to its kernel is lost: then once more."""
        prompt = self.cells.nth(number).locator(".jp-InputPrompt").first
        self.start(number)
        for _ in range(2 * SECONDS):
            self.page.wait_for_timeout(500)
            now = prompt.inner_text()
            if re.search("[0-9]", now):
                return
            if "*" not in now:
                self.start(number)
        raise AssertionError(f"cell {number} is not run")

    def let_die(self, number):
        """Runs a cell that ends the kernel, and closes the server's message."""
        self.start(number)
        self.page.locator(".jp-Dialog", has_text="appears to have died").wait_for()
        self.page.locator(".jp-Dialog button.jp-mod-accept").click()

    def restart(self):
        """As a user does: 0 0, and the question is answered."""
        self.page.keyboard.press("Escape")
        self.page.keyboard.press("0")
        self.page.keyboard.press("0")
        self.page.locator(".jp-Dialog button.jp-mod-accept").click()

    def output(self, number):
        """What stands below a cell, on one line."""
        return re.sub(r"\s+", " ", " ".join(self.cells.nth(number).locator(".jp-OutputArea-output").all_inner_texts())).strip()

    def picture(self, name):
        """Kept below the build folder, to be looked at."""
        PICTURES.mkdir(parents=True, exist_ok=True)
        self.page.wait_for_timeout(500)
        self.page.screenshot(path=PICTURES / f"{name}.png")

    def close(self):
        self.context.close()
