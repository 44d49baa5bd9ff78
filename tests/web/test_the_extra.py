"""The page is an extra: importing its package costs nothing, and without its libraries one sentence says so."""

from __future__ import annotations

import subprocess
import sys

WITHOUT = """
import sys
sys.modules["starlette"] = None
from skillkit import World
from skillkit.web import create_app
try:
    create_app(World("unused"))
except Exception as error:
    print(type(error).__name__, error)
"""
LIGHT = """
import sys
import skillkit.web
print(sorted(name for name in ("starlette", "uvicorn", "jinja2", "pygments") if name in sys.modules))
"""


def said(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    ).stdout.strip()


def test_without_its_libraries_one_sentence_says_how_to_get_them() -> None:
    wanted = "The approval page needs starlette. Install it: pip install 'skillkit-runtime[web]'."
    assert said(WITHOUT) == f"ConfigurationError {wanted}"


def test_its_package_alone_loads_no_heavy_library() -> None:
    assert said(LIGHT) == "[]"
