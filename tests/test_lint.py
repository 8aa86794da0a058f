"""tools/lint finds a planted breach of each kind, and nothing in a tree without one."""
import importlib.machinery
import importlib.util
from pathlib import Path

import pytest

LOADER = importlib.machinery.SourceFileLoader("lint", str(Path(__file__).parents[1] / "tools" / "lint"))
lint = importlib.util.module_from_spec(importlib.util.spec_from_loader("lint", LOADER))
LOADER.exec_module(lint)

CLEAN = {
    "include/format.h": "#define FORMAT 1\n",
    "shim/base/clock.h": '#include "format.h"\n',
    "shim/capture/file.h": '#include "base/clock.h"\n',
    "shim/capture/file.c": '#include "capture/file.h"\n#include "capture/file_parts.h"\n',
    "shim/capture/file_parts.h": '#include "capture/file.h"\n',
    "analyzer/model/model.h": "int x;\n",
    "analyzer/report/render_text.c": '#include "format.h"\n',
    "examples/small.c": "int main;\n",
}


def breaches(root, capsys, files, known=()):
    for name, text in {**CLEAN, **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    count = lint.lint(root, set(known))
    said = [line for line in capsys.readouterr().out.splitlines() if line.startswith("lint: ")]
    assert count == len([line for line in said if "warning" not in line])
    return said


def test_a_clean_tree(tmp_path, capsys):
    assert breaches(tmp_path, capsys, {}) == []


@pytest.mark.parametrize("files, said", [
    ({"shim/base/wide.c": "int  wide;\n"}, "shim/base/wide.c: not formatted; run make format"),
    ({"shim/base/ways.c": "void\nways(int x)\n{\n" + "\tif (x)\n\t\tx--;\n" * 25 + "}\n"},
     "shim/base/ways.c ways: 26 ways through it, more than 25: take parts out, or give COMPLEX a reason"),
    ({"shim/base/up.c": '#include "capture/file.h"\n'}, "shim/base/up.c: includes capture/file.h; shim/base may include nothing"),
    ({"analyzer/report/said.c": 'bool\nx(void)\n{\n\treturn strcmp(to->headline, "a") == 0;\n}\n'}, "said.c:4: compares a text that we made"),
    ({"analyzer/report/why.c": 'const char *\nx(void)\n{\n\treturn strstr(fail.text, "--stop");\n}\n'}, "why.c:4: compares a text that we made"),
    ({"analyzer/report/note.c": 'bool\nx(void)\n{\n\treturn text_starts(*note, "recorded with");\n}\n'}, "note.c:4: compares a text that we made"),
    ({"shim/base/bare.c": '#include "clock.h"\n'}, 'shim/base/bare.c: includes "clock.h": write "folder/clock.h"'),
    ({"shim/base/gone.c": '#include "base/gone.h"\n'}, "shim/base/gone.c: includes base/gone.h, which is not in shim/"),
    ({"shim/base/whole.c": '#include "base/clock.c"\n'}, "shim/base/whole.c: includes base/clock.c"),
    ({"shim/attic/new.c": "\n"}, "shim/attic/new.c: shim/ has the folders"),
    ({"shim/loose.c": "\n"}, "shim/loose.c: shim/ has the folders"),
    ({"shim/base/weak.h": "void up(void) __attribute__((weak));\n"}, "shim/base/weak.h: has a weak symbol"),
    ({"analyzer/report/render_page.c": '#include "model/model.h"\n'}, "renderers see report/report.h"),
    ({"shim/base/a.h": "\n", "shim/base/a.c": '#include "base/b.h"\n', "shim/base/b.h": "\n", "shim/base/b.c": '#include "base/a.h"\n'},
     "include each other in a circle: shim/base/a, shim/base/b"),
    ({"shim/base/broken.h": "unknown_type x;\n"}, "shim/base/broken.h: does not compile alone"),
    ({"examples/long.c": "int x;\n" * 60}, "examples/long.c: 60 lines"),
])
def test_a_planted_breach(files, said, tmp_path, capsys):
    lines = breaches(tmp_path, capsys, files)
    assert len(lines) == 1 and said in lines[0], lines


SMALL = "1 analyzer/model\n1 include\n0 tests\n"  # what CLEAN has


@pytest.mark.parametrize("table, said", [
    (SMALL, None),
    (SMALL.replace("1 include", "0 include"), "include: 1 code lines more than tools/code_lines.txt allows"),
    (SMALL.replace("1 analyzer/model\n", ""), "analyzer/model: 1 code lines more than"),
    (SMALL.replace("1 include", "150 include"), "allows 149 code lines of the product that are gone"),
])
def test_code_lines_have_bounds(table, said, tmp_path, capsys):
    files = {"tools/code_lines.txt": table, "shim/base/clock.h": "/* a comment\n */\n", "shim/capture/file.h": "\n", "shim/capture/file.c": "// none\n",
             "shim/capture/file_parts.h": "\n", "analyzer/report/render_text.c": "\n"}
    lines = breaches(tmp_path, capsys, files)
    assert not lines if said is None else len(lines) == 1 and said in lines[0], lines


def test_bounds_are_not_raised_unsaid(tmp_path):
    (tmp_path / "tools").mkdir()
    (tmp_path / "shim/base").mkdir(parents=True)
    (tmp_path / "shim/base/one.c").write_text("int one;\n")
    lint.code_lines.write(tmp_path, may_rise=False)
    (tmp_path / "shim/base/two.c").write_text("int two;\n")
    with pytest.raises(SystemExit, match="product: 2 lines, 1 more than before"):
        lint.code_lines.write(tmp_path, may_rise=False)
    lint.code_lines.write(tmp_path, may_rise=True)
    assert lint.code_lines.bounds(tmp_path) == {"shim/base": 2}


def test_a_long_file_is_a_warning(tmp_path, capsys):
    assert "more than 900" in breaches(tmp_path, capsys, {"shim/base/long.c": "int x;\n" * 901})[0]


def test_a_known_breach_is_let_through_and_one_that_is_gone_is_not(tmp_path, capsys):
    known = ["shim/base/up.c: includes capture/file.h"]
    assert breaches(tmp_path, capsys, {"shim/base/up.c": '#include "capture/file.h"\n'}, known) == []
    assert breaches(tmp_path, capsys, {"shim/base/up.c": "\n"}, known) == ["lint: no longer so, take it from KNOWN; " + known[0]]
