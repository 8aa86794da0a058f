"""
Which call stacks hold more than at a snapshot? A program of its own, since the answers of the command are large: what a recorded process
frees of them stays in its arenas, and the test that runs next holds its objects there for nothing.

    python -m kmemshim.grown '{"now": [words of the command], "before": [words], "figure": "live_bytes", "least": 1, "capture": PATH}'

Prints [[bytes more, site], ...], the most first: those with at least `least`.

When failing  one line on stderr, and status 2.
"""
import json
import sys

from . import program, recording

_OF_HOST = program.HOST + ("python/object",)


def _key(site):
    return (site["domain"],) + tuple((frame["kind"], frame["function"], frame["file"], frame["line"], frame["module"], frame.get("offset"))
                                     for frame in site["frames"])


def _sites(words, capture):
    """All of the host's but those of these questions themselves."""
    return [site for site in recording.ask(*words, capture)["sites"]
            if site["domain"] in _OF_HOST and not any(frame["file"] == recording.__file__ for frame in site["frames"])]


def grown(now, before, figure, least, capture):
    """What was counted as held before is taken off once."""
    more, sites = {}, {}
    for site in _sites(now, capture):
        key = _key(site)
        sites[key] = site
        more[key] = more.get(key, 0) + site[figure]
    for site in _sites(before, capture):
        key = _key(site)
        if key in more:
            more[key] -= site["live_bytes"]
    rows = sorted(((bytes_, key) for key, bytes_ in more.items() if bytes_ >= least), key=lambda row: -row[0])
    return [[bytes_, sites[key]] for bytes_, key in rows]


if __name__ == "__main__":
    try:
        print(json.dumps(grown(**json.loads(sys.argv[1]))))
    except recording.Unavailable as error:
        sys.exit("kmemshim: %s" % error)
