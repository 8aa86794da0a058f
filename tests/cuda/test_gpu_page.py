"""Does the session of docs/gpu.md print what the page shows? Over the doubles, as the page says."""
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "preload"))
import harness  # noqa: E402
import test_doc_sessions as sessions  # noqa: E402


def test_the_session_prints_what_the_page_shows(tmp_path, monkeypatch):
    built = harness.BUILD / "tests" / "cuda"
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{built / 'torch2'}:{built / 'lib'}")
    monkeypatch.setenv("KMEMDOUBLE_CAPACITY", str(64 << 20))
    shutil.copy(HERE / "training.py", tmp_path)
    sessions.run_page(sessions.GPU_PAGE, tmp_path)
