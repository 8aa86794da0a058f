"""
How is an answer written, as text and as HTML?

The HTML has its style in it, and takes its colours from the page: it is read on a light and on a dark one. All that comes from
outside is escaped.
"""
import html
import itertools
import textwrap

WIDTH = 100
SOURCE_CHARS = 60
BAR = 72
FILLS = {"lines": "\u2588", "freed but kept": "\u2593", "libraries": "\u2592", "files": "=", "from before the fork": "~",  # as the command has them
         "other processes and files": "+", "newer than the sample": "^", "unknown": "?", "recorder": "\u2591"}
COLOURS = dict(zip(FILLS, ("#4c78a8", "#f58518", "#72b7b2", "#54a24b", "#b279a2", "#9d755d", "#bab0ac", "#eeca3b", "#ff9da6")))

ACCENT = {"death": "#d9480f", "plain": "#868e96"}
_BOX = ("border-left:4px solid %s;background:rgba(134,142,150,.10);padding:.7em 1em;margin:.3em 0;"
        "line-height:1.45;color:inherit;font-family:inherit;max-width:72em")
_CELL = "padding:.15em .9em .15em 0;text-align:%s;vertical-align:top;white-space:nowrap;border:0;background:transparent"
_CODE = "font-family:monospace;color:inherit;background:transparent;padding:0"


def size(count):
    """As the command writes it: 12.3 MiB."""
    sign, value = ("-", -count) if count < 0 else ("", count)
    units = ("B", "KiB", "MiB", "GiB", "TiB")
    at = 0
    while value >= 1023.5 and at < len(units) - 1:
        value, at = value / 1024.0, at + 1
    digits = 0 if at == 0 or value >= 99.95 else 2 if at >= 3 and value < 9.995 else 1
    return "%s%.*f %s" % (sign, digits, value, units[at])


def _with_code(text):
    """`words` of a text are code."""
    parts = html.escape(text).split("`")
    if len(parts) % 2 == 0:
        return "`".join(parts)
    return "".join(part if at % 2 == 0 else '<code style="%s">%s</code>' % (_CODE, part) for at, part in enumerate(parts))


class Panel:
    def __init__(self, title, tone="plain"):
        self.title = title
        self.tone = tone
        self.parts = []

    def say(self, text, label=None):
        self.parts.append(("text", label, text))

    def table(self, heads, rows, caption=None):
        """rows: texts, as many as heads; the first columns are figures. A row's last text is a line of code."""
        if rows:
            self.parts.append(("table", caption, (heads, rows)))

    def bar(self, parts):
        """What a whole is made of: (name, bytes) of each part."""
        if parts:
            self.parts.append(("bar", sum(count for _, count in parts), parts))

    def display(self):
        from IPython.display import display
        display({"text/plain": self.text(), "text/html": self.html()}, raw=True)

    # --- text ---

    def text(self):
        out = ["kmemshim: " + self.title]
        for kind, label, content in self.parts:
            if kind == "text":
                lead = "  " + (label + ": " if label else "")
                out.append(textwrap.fill(content, WIDTH, initial_indent=lead, subsequent_indent="  ",
                                         break_long_words=False, break_on_hyphens=False))
                continue
            if kind == "bar":
                ends = [round(BAR * end / label) for end in itertools.accumulate(count for _, count in content)]
                cells = "".join(FILLS.get(name, "?") * (end - start) for (name, _), start, end in zip(content, [0] + ends, ends))
                names = ", ".join(("%s %s %s" % (FILLS.get(name, "?"), name, size(count))).replace(" ", "\0") for name, count in content)
                names = textwrap.fill("%s: %s" % (size(label).replace(" ", "\0"), names), WIDTH, initial_indent="  ", subsequent_indent="  ",
                                      break_long_words=False, break_on_hyphens=False)
                out += ["  " + cells, names.replace("\0", " ")]
                continue
            heads, rows = content
            lines = [heads] + [tuple(row) for row in rows]
            widths = [max(len(line[at]) for line in lines) for at in range(len(heads))]
            out.append("")
            if label:
                out.append("  " + label)
            for line in lines:
                cells = [cell.rjust(width) if _is_figure(at, heads) else cell.ljust(width)
                         for at, (cell, width) in enumerate(zip(line, widths))]
                out.append(("    " + "  ".join(cells)).rstrip())
            out.append("")
        return "\n".join(out).rstrip("\n")

    # --- HTML ---

    def html(self):
        out = ['<div style="%s">' % (_BOX % ACCENT[self.tone]),
               '<div style="font-weight:600;margin-bottom:.35em">%s</div>' % _with_code(self.title[:1].upper() + self.title[1:])]
        for kind, label, content in self.parts:
            if kind == "text":
                lead = '<span style="font-weight:600">%s</span> ' % html.escape(label + ":") if label else ""
                out.append('<div style="margin:.35em 0">%s%s</div>' % (lead, _with_code(content)))
                continue
            if kind == "bar":
                out.append('<div style="display:flex;height:1em">%s</div>' % "".join(
                    '<span style="background:%s;width:%.1f%%" title="%s"></span>' % (COLOURS.get(name, "gray"), 100 * count / label, html.escape(name))
                    for name, count in content))
                out.append('<div>%s: %s</div>' % (size(label), ", ".join(
                    '<span style="color:%s">\u25a0</span> %s %s' % (COLOURS.get(name, "gray"), html.escape(name), size(count))
                    for name, count in content)))
                continue
            heads, rows = content
            if label:
                out.append('<div style="margin:.6em 0 0 0;opacity:.75">%s</div>' % html.escape(label))
            out.append('<div style="overflow-x:auto"><table style="border-collapse:collapse;border:0;margin:.3em 0 .6em 0;font-size:inherit;color:inherit;'
                       'background:transparent">')
            out.append(self._row("th", heads, heads))
            out += [self._row("td", heads, row) for row in rows]
            out.append("</table></div>")
        out.append("</div>")
        return "".join(out)

    @staticmethod
    def _row(tag, heads, row):
        cells = []
        for at, cell in enumerate(row):
            style = _CELL % ("right" if _is_figure(at, heads) else "left")
            if tag == "th":
                style += ";font-weight:normal;opacity:.75"
            elif at == len(heads) - 1:
                style += ";font-family:monospace"
            cells.append('<%s style="%s">%s</%s>' % (tag, style, html.escape(cell), tag))
        return '<tr style="background:transparent;border:0">%s</tr>' % "".join(cells)


def _is_figure(at, heads):
    return heads[at] not in TEXT_HEADS


TEXT_HEADS = ("where", "line of code", "what", "kept by")


def shortened(text):
    text = " ".join(text.split())
    return text if len(text) <= SOURCE_CHARS else text[:SOURCE_CHARS - 1] + "\u2026"
