"""Lines of code in a report: how they are called, what they hold, and how two reports differ."""
import os

from .panel import shortened, size

ROWS_MAX = 200  # lines that are asked for; those beyond hold less than each of these, or were left by imports, which come last
REQUESTED = ("heap", "mmap", "shared")  # domains of what a process requests from the system
COUNTED = REQUESTED + ("library", "python/object")


PATH_CHARS = 44
_OWN = os.path.dirname(os.path.realpath(__file__)) + os.sep


def _short(path):
    """Of a library from its name on; of a long path its end."""
    for mark in ("/site-packages/", "/dist-packages/"):
        if mark in path:
            return path.split(mark)[-1]
    parts = path.split("/")
    while len("/".join(parts)) > PATH_CHARS and len(parts) > 2:
        del parts[0]
    short = "/".join(parts)
    return short if short == path else "\u2026/" + short


def where(line):
    """The place, as texts of the command write it; long paths are cut in front."""
    place = line["where"]
    if line.get("import"):
        return "import " + line["import"]
    if place is None:
        return line.get("library") or "unknown line"
    if place["file"].startswith("cell "):
        text = "%s line %d" % (place["file"], place["line"])
    elif place["file"]:
        text = _short(place["file"]) + (":%d" % place["line"] if place["line"] else "")
    elif place["module"]:
        text = place["module"] + ("+0x%x" % place["offset"] if "offset" in place else "")
    else:
        text = ""
    if place["function"] and not place["function"].startswith(("<module>", "<cell line:")):
        text = (text + " " + place["function"]).strip()
    if place.get("relation"):
        text = place["relation"] + " " + text
    return text or "unknown line"


def source(line):
    return shortened((line["where"] or {}).get("source") or "")


def is_worth(line):
    """It holds something: one sample of small objects proves nothing."""
    return line["live_bytes"] > ((line["error_bytes"] or 0) if line["is_estimated"] else 0)


def held(line):
    return ("\u2248" if line["is_estimated"] else "") + size(line["live_bytes"])


def key(line):
    place = line["where"] or {}
    return (line["domain"], line.get("import"), line.get("library"), place.get("file"), place.get("line"), place.get("function"),
            place.get("module"), place.get("offset"), place.get("relation"))


class Lines:
    """What each line held at one moment. The document is let go: its size would show in the next one."""

    def __init__(self, document):
        # what these commands themselves hold is not the user's
        self.lines = [line for line in document["lines"] if not ((line["where"] or {}).get("file") or "").startswith(_OWN)]
        self.by_key = {key(line): line["live_bytes"] for line in self.lines}
        self.is_whole = document["line_total"] <= len(document["lines"])
        self.floor = 0 if self.is_whole else min(line["live_bytes"] for line in document["lines"])
        self.counted = {name: (total["live_bytes"], total["error_bytes"] or 0) for name, total in document["totals"].items()
                        if name in COUNTED}
        self.import_bytes = sum(line["live_bytes"] for line in self.lines if line["import"]) + self._beyond_bytes(document)
        self.live_bytes = sum(process["live_bytes"] for process in document["processes"])
        self.live_by_domain = {name: total["live_bytes"] for name, total in document["totals"].items()}
        self.peak_by_domain = {name: total["peak_bytes"] for name, total in document["totals"].items()}
        self.absent_bytes = sum(total["nonresident_bytes"] for name, total in document["totals"].items() if name in REQUESTED)

    @staticmethod
    def _beyond_bytes(document):
        """Of the lines that are not in the document."""
        domains = COUNTED + ("python/arena",)
        shown = sum(line["live_bytes"] for line in document["lines"] if line["domain"] in domains)
        whole = sum(total["live_bytes"] for name, total in document["totals"].items() if name in domains)
        return max(whole - shown, 0) if document["line_total"] > len(document["lines"]) else 0

    def added(self, earlier):
        """Bytes more than then, in all. Free parts of arenas of small objects come and go: they do not count."""
        total = 0
        for name, (live, error) in self.counted.items():
            more = live - earlier.counted.get(name, (0, 0))[0]
            total += more if abs(more) > error else 0
        return total

    def forget_rows(self):
        """Only the sums stay."""
        self.lines = []
        return self

    def grown(self, line, earlier):
        """Bytes that this line holds more than then; of an estimate, 0 where it is within the error. Never too much."""
        then = earlier.by_key.get(key(line), min(earlier.floor, line["live_bytes"]))
        grown = line["live_bytes"] - then
        if line["is_estimated"] and abs(grown) <= (line["error_bytes"] or 0):
            return 0
        return grown
