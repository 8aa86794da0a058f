"""
Why did the kernel before this one die? Shown once, above the output of the first cell.

All words and figures are the command's. If it does not answer, the verdict that the launcher wrote at the death is shown.
"""
import os

from . import recording
from .lines import held, is_worth, source, where
from .panel import FILLS, Panel

LINES = 5
LEAST_SHARE = 100  # a line that holds less than this part of the first tells nothing
TOLD = "told"
VERDICT = "verdict.txt"

# In the title: what a person asks first.
TITLES = {
    "container-limit": "it reached the memory limit and was killed",
    "machine-memory": "the machine ran out of memory",
    "low-memory-daemon": "another program killed it while memory was low",
    "shm-full": "/dev/shm was full",
    "device-memory": "a device ran out of memory",
    "request-refused": "a request for memory was refused",
    "time-up": "its time was up; memory is not the suspect",
    "file-size-limit": "a file reached the size limit; memory is not the suspect",
    "stack-overflow": "its stack overflowed: calls were nested too deep",
    "aborted": "it aborted; memory is not the suspect",
    "hardware": "the hardware failed; its memory use is not the suspect",
    "machine-restarted": "the machine was restarted",
    "crashed": "it crashed; memory is not the suspect",
    "signal": "it was stopped from outside",
    "failed": "it ended by itself; memory is not the suspect",
    "exited": "it ended by itself; memory is not the suspect",
}


def title_of(verdict):
    """Of a kernel that a program or a person ended while its limit was near, nobody knows why they did."""
    title = TITLES.get(verdict["cause"])
    is_far = any(finding["kind"] == "far-from-limits" for finding in verdict["findings"])
    return title + "; memory is not the suspect" if verdict["cause"] == "signal" and is_far else title


class Death:
    def __init__(self, life):
        self.life = life

    def before_cell(self, shell, info):
        if not info.store_history:  # an editor that looks at variables: nobody would see it
            return True
        if not os.path.isdir(self.life) or os.path.exists(os.path.join(self.life, TOLD)):
            return False
        self.panel().display()
        os.close(os.open(os.path.join(self.life, TOLD), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
        return False

    def panel(self):
        try:
            document = recording.ask("sites", "--top", str(LINES), self.life)
        except recording.Unavailable as error:
            return self.panel_of_launcher(error)
        verdict = document["verdict"]
        title = title_of(verdict)
        panel = Panel("the kernel died%s. Variables from before are gone." % (": " + title if title else ""), "death")
        is_said = "(%s" % verdict["confidence"] in verdict["headline"]
        panel.say(verdict["headline"], "Why" if is_said else "Why (%s)" % verdict["confidence"])
        if verdict["next"]:
            panel.say(verdict["next"], "Next")
        panel.bar([(part["name"], part["bytes"]) for part in verdict["bar"]])
        if verdict["evidence"]:
            panel.say(verdict["evidence"], "Evidence")
        least = max([line["live_bytes"] for line in document["lines"]] or [0]) // LEAST_SHARE
        panel.table(("held", "where", "line of code"),
                    [(held(line), where(line), source(line)) for line in document["lines"] if is_worth(line) and line["live_bytes"] > least],
                    "Lines that held most at the end")
        self.name_report(panel)
        return panel

    def panel_of_launcher(self, error):
        panel = Panel("the kernel died. Variables from before are gone.", "death")
        try:
            with open(os.path.join(self.life, VERDICT), encoding="utf-8", errors="replace") as file:
                lines = file.read(1 << 16).split("\n\n")[0].split("\n")  # what follows are tables
            panel.say(" ".join(" ".join(line for line in lines if line.strip("".join(FILLS.values()) + " -")).split()))
        except OSError:
            panel.say("Its capture cannot be read: %s" % error)
        self.name_report(panel)
        return panel

    def name_report(self, panel):
        command = os.environ.get("KMEMSHIM_COMMAND", "kmemshim")
        panel.say("`%s report %s`" % (command, self.life), "Whole report")

    def failed(self, error):
        return "the kernel before this one died, but why cannot be shown: %s: see %s" % (error, self.life)
