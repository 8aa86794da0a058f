"""
What does the recorder say about this process, or about a kernel that died? Everything is asked of the kmemshim command.

When failing  Unavailable, with one line for the person in front of the notebook.
"""
import json
import os
import signal
import subprocess
import time

from .command import Missing, find

TIMEOUT_SECONDS = 60
ROOM_BYTES = 32 << 20  # what the command takes, and this process to start it,
ROOM_FOR_EACH = 4  # and for each byte of the capture: a capture of TensorFlow, 12 MiB, takes 64 MiB
ROOM_SECONDS = 3  # a look at who holds the memory takes some, in the same container
SCHEMA = 2  # of the command's JSON

HOW_TO = ("this kernel is not recorded. In a terminal: `kmemshim jupyter install`; "
          "then choose the kernel \"Python 3 (kmemshim)\" for this notebook")


class Unavailable(Exception):
    pass


def command():
    """KMEMSHIM_COMMAND is the one that records, where it is set by `kmemshim run --kernel` or `pytest --kmemshim`."""
    try:
        return os.environ.get("KMEMSHIM_COMMAND") or find()
    except Missing as error:
        raise Unavailable(str(error))


def _plain_environment():
    """The command itself is not recorded."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KMEMSHIM_")}
    preloads = [name for name in environment.get("LD_PRELOAD", "").replace(" ", ":").split(":")
                if name and "kmemshim" not in os.path.basename(name)]
    environment.pop("LD_PRELOAD", None)
    if preloads:
        environment["LD_PRELOAD"] = ":".join(preloads)
    return environment


def _number(path):
    try:
        with open(path) as file:
            return int(file.read())
    except (OSError, ValueError):  # "max"
        return None


def room_bytes():
    """What the memory cgroup of this process, and those around it, still allow; None where there is no limit, or it cannot be read."""
    rooms = []
    try:
        with open("/proc/self/cgroup") as file:
            rows = [line.rstrip("\n").split(":", 2) for line in file]
    except OSError:
        return None
    for _, controllers, path in rows:
        if controllers == "":
            root, limit, used, cache = "/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file "
        elif "memory" in controllers.split(","):
            root, limit, used, cache = ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                                        "total_inactive_file ")
        else:
            continue
        while True:
            folder = root + path.rstrip("/")
            most, now = _number(os.path.join(folder, limit)), _number(os.path.join(folder, used))
            if most is not None and now is not None:
                try:
                    with open(os.path.join(folder, "memory.stat")) as file:
                        now -= sum(int(line[len(cache):]) for line in file if line.startswith(cache))
                except (OSError, ValueError):
                    pass
                rooms.append(most - now)
            if path in ("/", ""):
                break
            path = os.path.dirname(path)
    return min(rooms) if rooms else None


def _size(path):
    try:
        return os.stat(path).st_size
    except OSError:  # its launcher takes it home just now
        return 0


def needed_bytes(capture):
    """To read this file, or this folder of files: the largest needs most, and what its reader frees serves the others."""
    names = [os.path.join(capture, name) for name in os.listdir(capture)] if os.path.isdir(capture) else [capture]
    return ROOM_BYTES + ROOM_FOR_EACH * max((_size(name) for name in names if name.endswith(".kmem")), default=0)


def has_room(capture):
    room = room_bytes()
    return room is None or room >= needed_bytes(capture)


def _check_room(capture):
    """The kernel would kill the largest process of the cgroup for what another one takes: this notebook. A look that is under way ends soon."""
    until = time.monotonic() + ROOM_SECONDS
    while not has_room(capture):
        if time.monotonic() > until:
            raise Unavailable("only %d MiB are left below the limit, and reading the capture may take %d: delete something first, "
                              "or outside of this container: kmemshim peak --kernel" % (max(room_bytes() or 0, 0) >> 20, needed_bytes(capture) >> 20))
        time.sleep(0.1)


def ask(*words):
    """The JSON document that this command line prints. The last word is the capture."""
    _check_room(words[-1])
    document = _said([command(), words[0], "--json"] + list(words[1:]), _plain_environment())
    if document.get("schema") != SCHEMA:
        raise Unavailable("%s is of another version than this extension: install both anew" % command())
    return document


def _said(argv, environment):
    """What this program prints as JSON."""
    try:
        done = subprocess.run(argv, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        raise Unavailable("%s did not answer within %d s" % (" ".join(argv), TIMEOUT_SECONDS))
    except OSError as error:
        raise Unavailable("%s cannot be run: %s" % (argv[0], error.strerror))
    errors = done.stderr.decode("utf-8", "replace").strip()
    if done.returncode != 0:
        if done.returncode == -signal.SIGKILL:
            raise Unavailable("%s was killed, mostly because memory is short: delete something first" % argv[0])
        said = errors.split("\n")[-1] or "exit status %d" % done.returncode
        raise Unavailable(said[len("kmemshim: "):] if said.startswith("kmemshim: ") else said)
    try:
        return json.loads(done.stdout.decode("utf-8", "replace"))
    except ValueError as error:
        raise Unavailable("%s did not print JSON: %s" % (" ".join(argv), error))


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
