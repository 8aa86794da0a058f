"""Which interpreters are there to be tested with? Each has a name; one that is not there is skipped by it, with the reason.

pyenv's in the home folder, the system's, and what lies in build/interpreters/NAME/python (see tools/interpreters).
INTERPRETERS="3.8 3.13t" limits them.
"""
import functools
import glob
import json
import os
import subprocess

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("BUILD_DIR", os.path.join(ROOT, "build"))
FOLDER = os.path.join(BUILD, "interpreters")
PYENV = ["3.8", "3.9", "3.10", "3.11", "3.12", "3.13"]
OTHERS = ["3.13-debian", "3.14-debian", "3.15-debian", "3.11-debug", "3.13-debug", "3.14-debug", "3.15-debug",
          "3.13t", "3.13t-debug", "3.14t", "3.15t", "3.14-tail-call"]  # and 3.11-trace-refs, which is refused
WITH_JIT = {"3.14-jit": "3.14-debian", "3.15-jit": "3.15-debian"}  # the same, its compiler switched on
NAMES = [name for name in PYENV + ["system"] + OTHERS + list(WITH_JIT)
         if name in os.environ.get("INTERPRETERS", name).split()]
TELL = """import json, sys, sysconfig; print(json.dumps({
"version": sys.version.split()[0], "is_debug": hasattr(sys, "gettotalrefcount"),
"is_free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
"has_jit": hasattr(sys, "_jit") and sys._jit.is_enabled()}))"""

rows = []  # of the table that ends the run


class Interpreter:
    def __init__(self, name, path, environment):
        told = json.loads(subprocess.run([path, "-c", TELL], check=True, stdout=subprocess.PIPE, env=environment).stdout)
        self.name, self.path, self.environment = name, path, environment
        self.version, self.is_debug, self.is_free_threaded = told["version"], told["is_debug"], told["is_free_threaded"]
        self.has_jit = told["has_jit"]
        self.minor = tuple(int(part) for part in self.version.split(".")[:2])
        self.prefix = os.path.dirname(os.path.dirname(os.path.realpath(path)))
        packages = os.path.join(FOLDER, "packages-%d.%d%s" % (*self.minor, "t" if self.is_free_threaded else ""))
        if os.path.exists(packages) and not self.is_debug:
            environment["PYTHONPATH"] = packages
        if self.is_free_threaded:
            environment["PYTHON_GIL"] = "0"  # also with modules that would switch it on

    @property
    def has_symbols(self):
        """Distributions strip; from 3.13 on their compilers also split the evaluator."""
        return "debian" not in self.name and "jit" not in self.name and self.name != "system"

    def run(self, *arguments, timeout=240, **environment):
        return subprocess.run([self.path, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                              universal_newlines=True, encoding="utf-8", errors="surrogateescape", timeout=timeout,
                              env={**self.environment, **environment})


def environment_of(name):
    environment = {"PATH": os.environ["PATH"], "PYTHONIOENCODING": "utf-8", "LC_ALL": "C.UTF-8", "PYTHONHASHSEED": "0",
                   "PYTHONPYCACHEPREFIX": os.path.join(BUILD, "pycache")}
    if name in WITH_JIT:
        environment["PYTHON_JIT"] = "1"
    return environment


def at(name, path):
    """The one at this path, or a skip."""
    if not os.access(path, os.X_OK):
        pytest.skip("no Python with %s on this machine: tools/venv %s" % (name, name))
    return Interpreter(name, path, environment_of(name))


def path_of(name):
    if name == "system":
        paths = ["/usr/bin/python3"]
    elif name in PYENV:
        paths = sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/%s.*/bin/python3" % name)))
    else:
        paths = [os.path.join(FOLDER, WITH_JIT.get(name, name), "python")]
    paths = [path for path in paths if os.access(path, os.X_OK)]
    return paths[-1] if paths else None


@functools.lru_cache(maxsize=None)
def find(name):
    path = path_of(name)
    return None if path is None else Interpreter(name, path, environment_of(name))


def get(name):
    """An interpreter, or a skip that names what is missing."""
    found = find(name)
    if found is None:
        pytest.skip("no Python %s on this machine%s" % (name, "" if name in PYENV else ": tools/interpreters " + name))
    if name in WITH_JIT and not found.has_jit:
        pytest.skip("this Python %s has no just-in-time compiler" % found.version)
    return found
