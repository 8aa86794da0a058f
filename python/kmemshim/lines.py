"""Lines of code in a report: how they are called, what they hold, and how two reports differ."""
from .panel import shortened, size

ROWS_MAX = 200  # lines that are asked for; those beyond hold less than each of these


def where(line):
    """Place as texts of the command write it."""
    place = line["where"]
    if line.get("import"):
        return "import " + line["import"]
    if place is None:
        return line["library"] or "unknown line" if line.get("library") else "unknown line"
    if place["file"].startswith("cell "):
        text = "%s line %d" % (place["file"], place["line"])
    elif place["file"]:
        text = "%s:%d" % (place["file"], place["line"]) if place["line"] else place["file"]
    elif place["module"]:
        text = place["module"] + ("+0x%x" % place["offset"] if "offset" in place else "")
    else:
        text = "unknown line"
    if place["function"] and place["function"] != "<module>":
        text += " " + place["function"]
    if place.get("relation"):
        text = place["relation"] + " " + text
    return text


def source(line):
    return shortened((line["where"] or {}).get("source") or "")


def held(line):
    return ("\u2248" if line["is_estimated"] else "") + size(line["live_bytes"])


def key(line):
    place = line["where"] or {}
    return (line["domain"], line.get("import"), line.get("library"), place.get("file"), place.get("line"), place.get("function"),
            place.get("module"), place.get("offset"), place.get("relation"))


class Lines:
    """What each line held at one moment."""

    def __init__(self, document):
        self.document = document
        self.lines = document["lines"]
        self.by_key = {key(line): line for line in self.lines}
        is_whole = document["line_total"] <= len(self.lines)
        self.floor = 0 if is_whole else min(line["live_bytes"] for line in self.lines)

    def live_bytes(self):
        """Of all processes of the kernel."""
        return sum(process["live_bytes"] for process in self.document["processes"])

    def grown(self, line, earlier):
        """Bytes that this line holds more than then; of an estimate, 0 where it is within the error. Never too much."""
        then = earlier.by_key.get(key(line))
        grown = line["live_bytes"] - (then["live_bytes"] if then else min(earlier.floor, line["live_bytes"]))
        if line["is_estimated"] and abs(grown) <= (line["error_bytes"] or 0):
            return 0
        return grown
