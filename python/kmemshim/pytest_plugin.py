"""
pytest --kmemshim: what each test kept and held at most, with limits; see docs/pytest.md.

pytest imports this module in every run, wanted or not: it imports nothing of ours until it is.
"""
import os
import sys

MARKERS = (
    "limit_memory(size): the body of the test may hold less than this at its peak, such as \"24 MB\" (pytest --kmemshim)",
    "limit_leaks(size, filter_fn=None, warmups=0): each call stack may keep less than this after the body of the test (pytest --kmemshim)",
)
STARTED = "PYTEST_KMEMSHIM"  # in the environment of a run that was started again


def pytest_addoption(parser):
    group = parser.getgroup("kmemshim", "memory (kmemshim)")
    group.addoption("--kmemshim", action="store_true", default=False,
                    help="record memory: what each test kept and held at most; judge limit_memory and limit_leaks")
    group.addoption("--kmemshim-top", type=int, default=10, metavar="N",
                    help="list the N tests that held most at the end (default 10; 0 = all)")
    group.addoption("--kmemshim-objects", action="store_true", default=False,
                    help="record each small Python object, not a sample of them (slower)")
    parser.addini("kmemshim", type="bool", default=False, help="as --kmemshim")


def is_wanted(config):
    options = getattr(config, "known_args_namespace", None) or config.option
    return bool(getattr(options, "kmemshim", False) or getattr(options, "kmemshim_objects", False) or config.getini("kmemshim"))


def pytest_load_initial_conftests(early_config):
    """Before any test or conftest is imported: so nothing of theirs happens twice."""
    options = early_config.known_args_namespace
    if not is_wanted(early_config) or "PYTEST_XDIST_WORKER" in os.environ or getattr(options, "help", False) or \
            getattr(options, "version", 0):
        return
    from . import program
    if not program.is_recorded():
        _start_again(early_config)


def _start_again(config):
    """This process becomes the launcher, and the same command line runs below it. Comes back only by an error."""
    import pytest

    from . import recording
    if os.environ.get(STARTED):
        raise pytest.UsageError("kmemshim: this Python was started with the recorder, and it is not loaded: "
                                "`kmemshim doctor -- %s` says why" % sys.executable)
    if list(config.invocation_params.args) != sys.argv[1:]:
        raise pytest.UsageError("kmemshim: pytest was called by a program, which cannot be started again: "
                                "start the program with `kmemshim run`")
    try:
        command = recording.command()
    except recording.Unavailable as error:
        raise pytest.UsageError("kmemshim: %s: install it, or set KMEMSHIM_COMMAND to its path" % error)
    if not os.access(command, os.X_OK):
        raise pytest.UsageError("kmemshim: %s cannot be run" % command)
    words = getattr(sys, "orig_argv", [sys.executable, "-m", "pytest"] + sys.argv[1:])
    objects = ["--python-objects"] if config.known_args_namespace.kmemshim_objects else []
    folder = _folder(config)
    os.environ[STARTED] = "1"
    os.environ["KMEMSHIM_COMMAND"] = os.path.abspath(command)
    capture = config.pluginmanager.getplugin("capturemanager")
    if capture is not None:
        capture.stop_global_capturing()
    os.execv(command, [command, "run", "--quiet", "-o", folder] + objects + ["--", sys.executable] + list(words[1:]))


def _folder(config):
    """KMEMSHIM_OUT, or one of this run in pytest's cache; those of runs that are over are removed."""
    import shutil
    import tempfile

    if os.environ.get("KMEMSHIM_OUT"):
        return os.environ["KMEMSHIM_OUT"]
    try:
        top = os.path.join(str(config.rootdir), config.getini("cache_dir"), "d", "kmemshim")
        os.makedirs(top, exist_ok=True)
        for name in os.listdir(top):
            if name.isdigit() and not os.path.isdir("/proc/" + name):
                shutil.rmtree(os.path.join(top, name), ignore_errors=True)
        own = os.path.join(top, str(os.getpid()))
        os.makedirs(own, exist_ok=True)
        return own
    except (OSError, ValueError):
        return tempfile.mkdtemp(prefix="kmemshim-pytest-")


def pytest_configure(config):
    for marker in MARKERS:
        config.addinivalue_line("markers", marker)
    if is_wanted(config):
        from .pytest_run import Recorder
        config.pluginmanager.register(Recorder(config), "kmemshim-recorder")
    elif not config.pluginmanager.hasplugin("memray"):
        config.pluginmanager.register(Unjudged(), "kmemshim-unjudged")


class Unjudged:
    """Limits that nobody judges are told: else they would seem to be kept."""

    def __init__(self):
        self.count = 0

    def pytest_collection_finish(self, session):
        self.count = sum(1 for item in session.items if item.get_closest_marker("limit_memory") or item.get_closest_marker("limit_leaks"))

    def pytest_terminal_summary(self, terminalreporter):
        if self.count:
            terminalreporter.write_line("kmemshim: limits of memory were not judged in %d test%s: run pytest --kmemshim" %
                                        (self.count, "" if self.count == 1 else "s"))
