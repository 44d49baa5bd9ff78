"""Output without end: memory stays bounded, the script is drained, the caller gets the beginning."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from support.running import made_manager, runnable

# Runs in a program of its own, so that its memory is nobody else's; prints what it measured.
MEASURE = """
import json, os, sys, threading, time
from skillkit import TRUSTED, SkillManager

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

manager = SkillManager(sys.argv[1], "", [], [], policy=TRUSTED, state_dir=sys.argv[2])
manager.execute_skill_script("demo", "idle")
idle = peak = resident()
over = threading.Event()
def watch():
    global peak
    while not over.is_set():
        peak = max(peak, resident())
        time.sleep(0.002)
watcher = threading.Thread(target=watch)
watcher.start()
result = manager.execute_skill_script("demo", "flood", timeout=int(sys.argv[3]))
over.set()
watcher.join()
print(json.dumps([peak - idle, len(result.stdout), len(result.stderr), result.exit_code, result.stdout_truncated]))
"""

FLOOD = 'import os\nblock = b"x" * 65536\nfor _ in range(4000):\n    os.write(1, block)\n    os.write(2, block)\n'
ENDLESS = 'import os\nblock = b"x" * 65536\nwhile True:\n    os.write(1, block)\n    os.write(2, block)\n'
MARK = len("\n[... output truncated ...]")


def measured(tmp_path: Path, flood: str, timeout: int) -> list[int]:
    manager = made_manager(tmp_path, {"scripts/idle.sh": "", "scripts/flood.py": flood})
    manager.close()
    ended = subprocess.run(
        [sys.executable, "-c", MEASURE, str(tmp_path / "skills"), str(tmp_path / "state"), str(timeout)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    answer: list[int] = json.loads(ended.stdout)
    return answer


def test_control_a_plain_capture_grows_with_the_output() -> None:
    code = textwrap.dedent(
        """
        import re, subprocess, sys
        def highest():
            with open("/proc/self/status") as file:
                return int(re.search(r"VmHWM:\\s+(\\d+) kB", file.read())[1])
        before = highest()
        subprocess.run([sys.executable, "-c", sys.argv[1]], capture_output=True)
        print(highest() - before)
        """
    )
    flood = 'import os\nfor _ in range(1600): os.write(1, b"x" * 65536)\n'
    said = subprocess.run([sys.executable, "-c", code, flood], capture_output=True, text=True, check=True).stdout
    assert int(said) * 1024 > 64_000_000


def test_half_a_gigabyte_is_drained_in_little_memory(tmp_path: Path) -> None:
    grown, stdout, stderr, exit_code, truncated = measured(tmp_path, FLOOD, 60)
    assert grown < 64_000_000
    assert (stdout, stderr, exit_code, truncated) == (10_000_000 + MARK, 10_000_000 + MARK, 0, True)


@pytest.mark.slow
def test_endless_output_ends_at_the_timeout_in_little_memory(tmp_path: Path) -> None:
    grown, stdout, stderr, exit_code, truncated = measured(tmp_path, ENDLESS, 2)
    assert grown < 64_000_000
    assert (stdout, stderr, exit_code, truncated) == (
        10_000_000 + MARK,
        10_000_000 + MARK + len("\nTimeout"),
        124,
        True,
    )


def test_a_listener_gets_no_more_than_is_kept(tmp_path: Path) -> None:
    heard = {"stdout": 0, "stderr": 0}

    def listen(stream: str, data: bytes) -> None:
        heard[stream] += len(data)

    text = 'import os\nblock = b"x" * 65536\nfor _ in range(200):\n    os.write(1, block)\n    os.write(2, block)\n'
    with runnable(tmp_path, text, name="scripts/flood.py") as manager:
        result = manager.execute_skill_script("demo", "flood", on_output=listen)
    assert heard == {"stdout": 10_000_000, "stderr": 10_000_000}
    assert result.exit_code == 0


def test_a_flood_of_files_is_listed_up_to_a_limit_and_removed(tmp_path: Path) -> None:
    text = "import os\nos.chdir(os.environ['SKILL_WORK_DIR'])\nfor n in range(3000): open(f'{n:04}', 'w').close()\n"
    with runnable(tmp_path, text, name="scripts/files.py") as manager:
        result = manager.execute_skill_script("demo", "files")
        assert [str(item.relative_path) for item in result.artifacts] == [f"{n:04}" for n in range(1000)]
        folder = result.artifacts[0].path.parent
    assert not folder.exists()
