"""`skillkit approvals --window` with a real Chromium as its window."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import httpx
import pytest
from support.running import anybody_runs, needs, wait_for

pytestmark = [pytest.mark.browser, pytest.mark.slow]

PROGRAM = [sys.executable, "-c", "from skillkit.cli.main import main; main()"]
# The real one, as it has to be started without a screen, as root, and so that it can be asked what it shows.
BROWSER = """#!/bin/sh
exec {program} --headless=new --no-sandbox --disable-gpu --disable-quic --remote-debugging-port=0 "$@"
"""


def test_the_window_opens_logged_in_and_leaves_nothing_when_it_is_ended(tmp_path: Path) -> None:
    needs("chromium")
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "chromium").write_text(BROWSER.format(program=shutil.which("chromium")))
    (programs / "chromium").chmod(0o755)
    # A path short enough for the socket that Chromium makes in it.
    with tempfile.TemporaryDirectory(prefix="skillkit-") as folder:
        places = Path(folder)
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(sys.path),
            "DISPLAY": os.environ.get("DISPLAY", ":99"),
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
            "TMPDIR": folder,
        }
        with subprocess.Popen(
            [*PROGRAM, "approvals", "--window", "--state-dir", str(tmp_path / "state")],
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        ) as process:
            try:
                assert wait_for(lambda: shown_title(places).startswith("Pending"), 60), shown_title(places)
                assert "token" not in shown_title(places)
                process.send_signal(signal.SIGINT)
                assert process.wait(30) == 0
            finally:
                if process.poll() is None:
                    process.kill()
                process.communicate()
        assert not anybody_runs(folder)
        assert list(places.iterdir()) == []


def shown_title(places: Path) -> str:
    """What the window shows, by its own word; "" while it is not there yet."""
    for path in places.glob("skillkit-window-*/DevToolsActivePort"):
        try:
            port = path.read_text().split()[0]
            windows = httpx.get(f"http://127.0.0.1:{port}/json", timeout=5).json()
        except (OSError, IndexError, ValueError, httpx.HTTPError):
            return ""
        return next((f"{each['title']} {each['url']}" for each in windows if each["type"] == "page"), "")
    return ""
