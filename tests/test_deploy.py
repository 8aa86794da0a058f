"""The recipes of examples/deploy: each can be parsed, is in the list, and gives only options and settings that there are."""
import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DEPLOY = ROOT / "examples" / "deploy"
RECIPES = sorted(path for path in DEPLOY.rglob("*") if path.is_file() and path.name != "README.md")


def test_every_recipe_is_in_the_list():
    listed = set(re.findall(r"\]\(([\w/.]+)\)", (DEPLOY / "README.md").read_text()))
    assert {str(path.relative_to(DEPLOY)) for path in RECIPES} <= listed


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.name)
def test_a_recipe_can_be_parsed(path):
    text = path.read_text()
    if path.suffix == ".py":
        ast.parse(text)
    elif path.suffix in (".sh", ".sbatch"):
        subprocess.run(["sh", "-n", path], check=True)
    elif path.suffix in (".yaml", ".yml"):
        yaml = pytest.importorskip("yaml", reason="python3-yaml is not installed")
        assert yaml.safe_load(text)
    elif path.suffix == ".service":
        sections = re.findall(r"^\[(\w+)\]$", text, re.M)
        assert sections == ["Unit", "Service", "Install"]
        assert all(re.match(r"(#|\[|\w+=|$)", line) for line in text.splitlines())
    else:
        assert path.name == "Dockerfile"
        joined = text.replace("\\\n", " ")
        assert all(re.match(r"(#|FROM |RUN |COPY |$)", line) for line in joined.splitlines())


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.name)
def test_a_recipe_names_what_there_is(path):
    text = path.read_text()
    options = set(re.findall(r'(?:FLAG|WITH)\(\w+, "([a-z-]+)"', (ROOT / "analyzer" / "cli" / "option_rows.h").read_text()))
    settings = set(re.findall(r'\{ "([A-Z_]+)"', (ROOT / "shim" / "base" / "settings.c").read_text()))
    for command in re.findall(r"kmemshim(?:\"\])?,? (?:run|why|check|baseline|jupyter \w+) ([^\n]*)", text):
        assert {word for word in re.findall(r"--([a-z-]+)", command.split(" -- ")[0])} <= options, command
    assert set(re.findall(r"KMEMSHIM_([A-Z_]+)", text)) - {"REPOSITORY"} <= settings
