"""Names with newlines, escapes, surrogates, a megabyte; damaged line tables: whatever is written is UTF-8, JSON, and one line."""
import json
import signal
import subprocess
import unicodedata

import pytest

from harness import HERE, KMEMSHIM, plain_env, record, seeded_random, validate
from test_cells import VERSIONS, interpreter_of


def output(command, out, *options):
    done = subprocess.run([KMEMSHIM, command, out, *options], env=plain_env(), capture_output=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode("utf-8", "strict")


@pytest.mark.parametrize("version", VERSIONS)
def test_every_output_is_text_of_one_line_a_row(version, out):
    done = record([interpreter_of(version), HERE / "strange_names.py", seeded_random().randrange(1 << 30)], out)
    assert done.returncode == -signal.SIGKILL, done.stderr
    count = int(done.stdout)

    for command in ("report", "peak", "leaks", "sites", "why"):
        for options in ((), ("--native",)) if command != "why" else ((),):
            text = output(command, out, *options, *(("--top", "1000") if command != "why" else ()))
            strange = {char for char in text if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp")} - {"\n"}
            assert not strange, strange
            assert len(text.splitlines()) == text.count("\n")

    document = json.loads(output("sites", out, "--json"))
    validate(document)
    held = {}
    for site in document["sites"]:
        assert json.dumps(site, ensure_ascii=False).isprintable()
        if site["domain"] == "heap" and site["live_bytes"] >= 100000:
            held.setdefault(site["live_bytes"] // 100000, []).append(site)
    assert sum(site["live_count"] for site in held[1] + held[2]) >= 2 * count, [place["where"] for place in held[1]]
    files = {site["where"]["file"] for site in held[1]}
    assert {"/tmp/two\\nlines", "/tmp/\\x1b[31mred\\x1b[0m\\x07", "/tmp/%s%n%d", "/tmp/nul\\x00nul", '/tmp/"}], "'} <= files, files
    assert max(len(file.encode()) for file in files) <= 4096
