"""Fixtures: those of tests/preload."""
import importlib.util
import sys
from pathlib import Path

PRELOAD = Path(__file__).resolve().parents[1] / "preload"
sys.path.insert(0, str(PRELOAD))
spec = importlib.util.spec_from_file_location("preload_fixtures", PRELOAD / "conftest.py")
fixtures = importlib.util.module_from_spec(spec)
spec.loader.exec_module(fixtures)
out, programs, pytest_configure = fixtures.out, fixtures.programs, fixtures.pytest_configure
as_users_run_it = fixtures.as_users_run_it
