"""
What does the recorder say about this process, or about a kernel that died? Everything is asked of the kmemshim command.

When failing  Unavailable, with one line for the person in front of the notebook.
"""
import json
import os
import shutil
import subprocess

TIMEOUT_SECONDS = 60
SCHEMA = 2  # of the command's JSON

HOW_TO = ("this kernel is not recorded. In a terminal: `kmemshim jupyter install`; "
          "then choose the kernel \"Python 3 (kmemshim)\" for this notebook")


class Unavailable(Exception):
    pass


def command():
    found = os.environ.get("KMEMSHIM_COMMAND") or shutil.which("kmemshim")
    if not found:
        raise Unavailable("the command kmemshim is not in PATH")
    return found


def _plain_environment():
    """The command itself is not recorded."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KMEMSHIM_")}
    preloads = [name for name in environment.get("LD_PRELOAD", "").replace(" ", ":").split(":")
                if name and "kmemshim" not in os.path.basename(name)]
    environment.pop("LD_PRELOAD", None)
    if preloads:
        environment["LD_PRELOAD"] = ":".join(preloads)
    return environment


def ask(*words):
    """The JSON document that this command line prints."""
    argv = [command(), words[0], "--json"] + list(words[1:])
    try:
        done = subprocess.run(argv, env=_plain_environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        raise Unavailable("%s did not answer within %d s" % (" ".join(argv), TIMEOUT_SECONDS))
    except OSError as error:
        raise Unavailable("%s cannot be run: %s" % (argv[0], error.strerror))
    errors = done.stderr.decode("utf-8", "replace").strip()
    if done.returncode != 0:
        said = errors.split("\n")[-1] or "exit status %d" % done.returncode
        raise Unavailable(said[len("kmemshim: "):] if said.startswith("kmemshim: ") else said)
    try:
        document = json.loads(done.stdout.decode("utf-8", "replace"))
    except ValueError as error:
        raise Unavailable("%s did not print JSON: %s" % (" ".join(argv), error))
    if document.get("schema") != SCHEMA:
        raise Unavailable("%s is of another version than this extension: install both anew" % argv[0])
    return document


def own_capture():
    """The folder of this kernel's life, or, of a process that is recorded otherwise, its own file."""
    life = os.environ.get("KMEMSHIM_KERNEL")
    if "libkmemshim" not in os.environ.get("LD_PRELOAD", ""):
        raise Unavailable(HOW_TO)
    if life:
        return life
    folder = os.environ.get("KMEMSHIM_OUT") or "kmemshim.out"
    mark = ".%d." % os.getpid()
    try:
        files = [name for name in os.listdir(folder) if mark in name and name.endswith(".kmem")]
    except OSError:
        files = []
    if not files:
        raise Unavailable("%s has no capture of this process (%d) yet" % (folder, os.getpid()))
    files.sort(key=lambda name: os.stat(os.path.join(folder, name)).st_mtime)
    return os.path.join(folder, files[-1])
