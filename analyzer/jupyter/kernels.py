"""
Which kernels does Jupyter know here, and how is one made that is recorded?

kernels.c hands this text to `python3 -I -c` with a request, and carries out the answer: both are a JSON object. Nothing is written here, and
nothing imported that Python does not bring. The order of folders is that of jupyter_core.

A kernel specification is a folder NAME with a kernel.json: the command that starts the kernel, and what menus show. Ours starts the command
of another one through `kmemshim run --kernel`, and has a mark in its metadata.
"""
import glob
import json
import os
import re
import shutil
import stat
import subprocess
import sys

INSIDE = "/share/jupyter/kernels"
NATIVE = "python3"
SPEC_MAX = 1 << 20
PICTURE_MAX_BYTES = 1 << 20  # a logo, a style sheet

# A kernel must start even if this program was moved, removed, or has lost a library. $0 is our path, and the words up to "--" are ours.
# The shell is replaced, so that no process is between the server and us.
START = ('"$0" --version >/dev/null 2>&1 && exec "$0" "$@"; '
         'echo "kmemshim: $0: is gone or does not run: the kernel is not recorded (jupyter kernelspec remove %s removes it)" >&2; '
         'while [ "$1" != -- ]; do shift; done; shift; exec "$@"')
LAUNCHER_AT = 3  # among these words
OK, NOTE, PROBLEM = range(3)  # levels of the doctor, see doctor.h


class Refusal(Exception):
    """One line for the user."""


def environments():
    """Of Python, those that may be meant, the likeliest first. Links are not followed: a venv is made of them."""
    place = os.path.dirname(shutil.which("jupyter") or "")
    named = [os.environ.get("VIRTUAL_ENV"), os.environ.get("CONDA_PREFIX"), place[:-4] if place.endswith("/bin") else None, sys.prefix, "/usr"]
    return [each for each in dict.fromkeys(named) if each and each.startswith("/")]


def of_environments():
    return [each + INSIDE for each in environments() if each != "/usr"]  # which comes last


def of_home(folder):
    return [os.environ["HOME"] + folder] if os.environ.get("HOME") else []


def of_user():
    data = os.environ.get("JUPYTER_DATA_DIR")
    xdg = os.environ.get("XDG_DATA_HOME")
    return [data + "/kernels"] if data else [xdg + "/jupyter/kernels"] if xdg else of_home("/.local" + INSIDE)


def folders():
    """Where kernels lie, in Jupyter's order."""
    wish = os.environ.get("JUPYTER_PREFER_ENV_PATH", "1" if {"VIRTUAL_ENV", "CONDA_PREFIX"} & set(os.environ) else "0")
    asked = [each + "/kernels" for each in os.environ.get("JUPYTER_PATH", "").split(":")]
    preferred = of_environments() if wish and wish[0] not in "0nNfF" else []
    user = of_user() + of_home("/.local" + INSIDE)
    found = [*asked, *preferred, *user, *of_environments(), "/usr/local" + INSIDE, "/usr" + INSIDE, *of_home("/.ipython/kernels")]
    return [each for each in dict.fromkeys(found) if each.startswith("/")]


def names_in(folder):
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


class Kernel:
    def __init__(self, folder, spec):
        self.folder, self.spec = folder, spec  # folder: "" = made by us, and nowhere on disk
        self.name = os.path.basename(folder) or NATIVE
        self.key = self.name.lower()  # for Jupyter, capitals make no other name
        self.title = self.of(spec, "display_name", str) or self.name
        self.metadata = self.of(spec, "metadata", dict)
        self.wraps = self.of(self.of(self.metadata, "kmemshim", dict), "wraps", str)  # "" = it is not ours

    @staticmethod
    def of(spec, name, kind):
        """Files are written by many hands: what is something else counts as empty."""
        return spec[name] if isinstance(spec.get(name), kind) else kind()


def read(folder):
    """None where there is no kernel; Refusal where its file cannot be understood."""
    path = folder + "/kernel.json"
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY), encoding="utf-8") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise Refusal("%s: is not a regular file" % path)
            spec = json.loads(file.read(SPEC_MAX))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise Refusal("%s: %s" % (path, error.strerror))
    except (ValueError, RecursionError) as error:
        raise Refusal("%s: is not JSON: %s" % (path, error))
    words = spec.get("argv") if isinstance(spec, dict) else None
    if not (isinstance(words, list) and words and all(isinstance(word, str) for word in words)):
        raise Refusal('%s: "argv" is missing or is not a list of texts: it says how the kernel is started' % path)
    if any("\0" in word or not is_text(word) for word in words):
        raise Refusal('%s: "argv" has a text that no program can be given' % path)
    return Kernel(folder, spec)


def is_text(word):
    """Half a surrogate, or a byte of a name that is no UTF-8, is none."""
    return not re.search("[\ud800-\udfff]", word)


def native():
    """The kernel that Jupyter has without a file: ipykernel of its own environment."""
    for each in environments():
        if glob.glob(glob.escape(each) + "/lib/python3*/*-packages/ipykernel/__init__.py"):
            return Kernel("", {"argv": [each + "/bin/python3", "-m", "ipykernel_launcher", "-f", "{connection_file}"],
                               "display_name": "Python 3 (ipykernel)", "language": "python", "metadata": {"debugger": True}})
    return None


def listed():
    """In Jupyter's order: of two with one name it takes the first. What cannot be read is left out."""
    for folder in folders():
        for name in names_in(folder):
            try:
                kernel = read(folder + "/" + name)
            except Refusal:
                continue
            if kernel is not None and not name.startswith("."):
                yield kernel


def ours():
    return [kernel for kernel in listed() if kernel.wraps]


def find(wanted):
    """One that cannot be read hides others, for Jupyter too."""
    paths = [folder + "/" + name for folder in folders() for name in names_in(folder) if name.lower() == wanted.lower()]
    kernel = next(filter(None, map(read, paths)), None) or (native() if wanted.lower() == NATIVE else None)
    if kernel is None:
        raise Refusal("%s: no such kernel: jupyter kernelspec list shows all; activate the environment that has it" % wanted)
    return kernel


def name_interpreter(kernel):
    """Jupyter puts its own interpreter for the bare word "python". It would not see that word behind the launcher's."""
    words = kernel.spec["argv"]
    if re.fullmatch("python[0-9.]*", words[0]):
        beside, inside, _ = kernel.folder.rpartition(INSIDE + "/")
        programs = [beside + "/bin/python", beside + "/bin/python3"] if inside else []
        programs += [each + "/bin/" + words[0] for each in environments()]
        words[0] = next((each for each in programs if os.access(each, os.X_OK)), words[0])


def wrap(kernel, name, request):
    guard = [] if request["no_guard"] else ["--guard", request["guard"] or "92%", "--guard-action", request["guard_action"] or "interrupt"]
    keep = ["--keep", str(request["keep"])] if request["keep"] is not None else []
    kernel.spec["argv"][:0] = ["/bin/sh", "-c", START % name, request["self"], "run", "--kernel", *keep, *guard, "--"]
    title = re.sub(r" \(ipykernel\)$", "", kernel.title) + " (kmemshim)"
    if any(other.key != name and other.title == title for other in ours()):
        title = "%s, %s)" % (title[:-1], name)
    kernel.title = kernel.spec["display_name"] = title
    kernel.spec["metadata"] = {**kernel.metadata, "kmemshim": {"wraps": kernel.name, "version": request["version"]}}


def place_of(request):
    """The folder of kernels to install into."""
    if request["prefix"]:
        places, missing = [request["prefix"] + INSIDE], "--prefix: the folder must be absolute"
    elif request["sys_prefix"]:
        places, missing = of_environments(), "--sys-prefix: no Python environment is active: activate one, or give --prefix DIR"
    else:
        places, missing = of_user(), "there is no home folder: set HOME, or give --prefix DIR"
    if not places or not places[0].startswith("/"):
        raise Refusal("jupyter: " + missing)
    return places[0]


def may_replace(folder):
    try:
        present = read(folder)
    except Refusal:
        return False
    return present is None or present.wraps


def is_picture(path):
    return os.path.isfile(path) and os.path.getsize(path) <= PICTURE_MAX_BYTES


def install(request):
    wanted = request["wrap"] or "python3"
    name = (request["name"] or wanted[:80] + "-kmemshim").lower()  # Jupyter's are
    if not re.fullmatch("[a-z0-9._-]{1,99}", name):
        raise Refusal("jupyter: --name %s: a kernel's name has only letters, digits, dots, - and _" % name)
    folder = place_of(request) + "/" + name
    kernel = find(wanted)
    if kernel.wraps:
        raise Refusal("jupyter: --wrap %s: this kernel is recorded already: wrap %s" % (wanted, kernel.wraps))
    if not request["force"] and not may_replace(folder):
        raise Refusal("%s: there is a kernel that kmemshim did not write: give another --name, or --force" % folder)
    name_interpreter(kernel)
    is_ipython = any(word.startswith("ipykernel") for word in kernel.spec["argv"])
    wrap(kernel, name, request)
    say = ['Installed the kernel "%s" in %s.' % (kernel.title, folder), "Choose it in the notebook. " + (
        "When it dies, the next cell that you run says why." if is_ipython else
        "It is not an IPython kernel: when it dies, the server's log says why; so does kmemshim why --kernel.")]
    if request["prefix"]:
        say.append("If Jupyter does not list it, set JUPYTER_PATH=%s/share/jupyter." % request["prefix"])
    pictures = [each for each in names_in(kernel.folder) if not each.startswith(".") and each != "kernel.json"] if kernel.folder else []
    return {"folder": folder, "text": json.dumps(kernel.spec, indent=1) + "\n", "say": say,
            "pictures": [kernel.folder + "/" + each for each in pictures if is_picture(kernel.folder + "/" + each)]}


def show(request):
    return {"say": ["%-24s wraps %-16s %s" % (kernel.name, kernel.wraps, kernel.folder) for kernel in ours()] or
            ["No kernel that Jupyter finds is recorded. Install one: kmemshim jupyter install"]}


def uninstall(request):
    name, kernels = request["name"], ours()
    chosen = [kernel for kernel in kernels if name is None or kernel.key == name.lower()]
    if not chosen:
        raise Refusal("jupyter uninstall: %s: no such kernel of kmemshim's: kmemshim jupyter list shows them" % (name or "no name given"))
    if len(chosen) > 1 and name is None and not request["all"]:
        raise Refusal("jupyter uninstall: there are %d kernels: give --name or --all, kmemshim jupyter list shows them" % len(chosen))
    return {"remove": [kernel.folder for kernel in (chosen if request["all"] else chosen[:1])]}


def does_run(launcher):
    """As the kernel's start asks it."""
    try:
        return subprocess.call([launcher, "--version"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) == 0
    except OSError:
        return False


def judge_ours(kernel):
    words = kernel.spec["argv"]
    again = "kmemshim jupyter install --wrap %s --name %s" % (kernel.wraps, kernel.name)
    if "--" not in words[LAUNCHER_AT:-1]:
        return {"level": NOTE, "what": "%s/kernel.json was changed by hand: whether it is recorded is unknown" % kernel.folder, "next": again}
    launcher, program = words[LAUNCHER_AT], words[words.index("--", LAUNCHER_AT) + 1]
    if not does_run(launcher):
        return {"level": PROBLEM, "what": "is not recorded: %s is gone or does not run" % launcher, "next": again}
    if program.startswith("/") and not os.access(program, os.X_OK):
        return {"level": PROBLEM, "what": "does not start: its interpreter %s is gone" % program, "next": again}
    return {"launcher": launcher, "next": again}  # whose library is looked for by the doctor


def judge_other(kernel, has_recorded):
    preload = kernel.of(kernel.of(kernel.spec, "env", dict), "LD_PRELOAD", str)
    library = next((each for each in re.split("[ :]", preload) if "libkmemshim.so" in each), None)
    if library and os.access(library, os.R_OK):
        return {"level": OK, "what": 'is recorded, by LD_PRELOAD in its "env"', "next": ""}
    if library:
        return {"level": PROBLEM, "what": 'is not recorded: %s in its "env" is gone' % library,
                "next": "correct LD_PRELOAD in %s/kernel.json" % kernel.folder}
    return None if has_recorded else {"level": NOTE, "what": "is not recorded", "next": "kmemshim jupyter install --wrap %s" % kernel.name}


def judge(request):
    """The rows of the doctor."""
    kernels = {}
    for kernel in filter(None, [*listed(), native()]):
        kernels.setdefault(kernel.key, kernel)
    wrapped = {kernel.wraps.lower() for kernel in kernels.values()}
    rows = [(kernel.name, judge_ours(kernel) if kernel.wraps else judge_other(kernel, key in wrapped))
            for key, kernel in kernels.items() if re.fullmatch("[a-z0-9._-]+", key)]  # Jupyter does not see others
    return {"rows": [{"name": name, **row} for name, row in rows if row]}


def main():
    request = json.loads(sys.argv[1])
    try:
        answer = {"install": install, "list": show, "uninstall": uninstall, "judge": judge}[request["what"]](request)
    except Refusal as refusal:
        answer = {"refusal": str(refusal)}
    text = json.dumps(answer, ensure_ascii=False)
    if not is_text(text):
        text = json.dumps({"refusal": "jupyter: a folder's name here is not UTF-8: give --prefix DIR, or set JUPYTER_DATA_DIR"})
    sys.stdout.buffer.write(text.encode() + b"\n")


main()
