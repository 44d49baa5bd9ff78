"""How fast skills are found and read: detection, discovery, import, `skillkit list`, the start of the server."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

from bench.folders import make_scripts, make_skills
from bench.runner import Row, Work, measure
from skillkit import ScriptDetector, SkillManager

BARE = [sys.executable, "-c", "pass"]
SETTLE_SECONDS = 2.2
CLIENT = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
INITIALIZE = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": CLIENT}).encode() + b"\n"


def rows(work: Path) -> list[Row]:
    roots = {count: make_skills(work / str(count), count) for count in (100, 1_000, 10_000)}
    time.sleep(SETTLE_SECONDS)  # the cache keeps no file that changed within the last two seconds
    return [
        detection(work),
        *(row for count, root in roots.items() for row in discovery(root, count, work)),
        importing(),
        listing(roots[100], work),
        serving(roots[100], work),
    ]


def detection(work: Path) -> Row:
    base = make_scripts(work / "many-scripts", 50)
    detector = ScriptDetector()
    timings = measure({"detect": lambda: detector.detect_scripts(base)}, 200)
    detail = f"p50 {timings.p50('detect'):.2f} ms"
    why = "every file is opened, and its first lines are read for its language and description"
    return Row("detect 50 scripts, p95", timings.p95("detect"), 10, 1, "ms", detail, why=why)


def discovery(root: Path, count: int, work: Path) -> list[Row]:
    """Against `find` and a read of each file it names, as little as any program can do."""
    cached, empty = work / "state", work / "empty-state"

    def find_and_read() -> None:
        named = subprocess.run(["find", root, "-name", "SKILL.md", "-print0"], capture_output=True, check=True)
        for path in named.stdout.split(b"\0")[:-1]:
            descriptor = os.open(path, os.O_RDONLY)
            os.read(descriptor, 1 << 16)
            os.close(descriptor)

    def manager(state: Path) -> SkillManager:
        return SkillManager("", "", [], [root], state_dir=state)

    def first() -> None:
        shutil.rmtree(empty, ignore_errors=True)
        manager(empty).discover()

    candidates = {"find + read": find_and_read, "first": first, "again": lambda: manager(cached).discover()}
    timings = measure(candidates, max(3, min(30, 5_000 // count)))
    return [
        Row(
            f"discover {count:,} skills, {name} / find + read",
            timings.ratio(name, "find + read"),
            must,
            goal,
            detail=timings.detail(name, "find + read"),
        )
        for name, must, goal in (("first", 12, 8), ("again", 2, 1.2))
    ]


def importing() -> Row:
    timings = measure({"bare": run(BARE), "import": run([sys.executable, "-c", "import skillkit"])}, 20)
    return Row(
        "import skillkit / bare python",
        timings.ratio("import", "bare"),
        1.5,
        1.15,
        detail=timings.detail("import", "bare"),
    )


def listing(root: Path, work: Path) -> Row:
    command = [skillkit_program(), "list", "--skills", str(root), "--state-dir", str(work / "state")]
    timings = measure({"bare": run(BARE), "list": run(command)}, 15)
    return Row(
        "skillkit list, 100 skills / bare python",
        timings.ratio("list", "bare"),
        9,
        6,
        detail=timings.detail("list", "bare"),
        why="two thirds of it are imports: click, the settings, SQLite",
    )


def serving(root: Path, work: Path) -> Row:
    """Until the first line comes; a client waits for the server's before it shows any tool."""
    command = [skillkit_program(), "mcp", "--skills", str(root), "--state-dir", str(work / "state")]
    alone = [sys.executable, "-c", "import mcp.server.lowlevel, mcp.server.stdio; print(1, flush=True)"]
    with ExitStack() as running:
        timings = measure(
            {"answer": first_line(command, running), "SDK": first_line(alone, running)}, 7, prepare=running.close
        )
    return Row(
        "skillkit mcp answers initialize, 100 skills / importing the SDK's server",
        timings.ratio("answer", "SDK"),
        1.3,
        1.1,
        detail=timings.detail("answer", "SDK"),
        why="skillkit's own imports and the look at the skills; a busy machine moves it by a tenth or two",
    )


def first_line(command: list[str], running: ExitStack) -> Work:
    def work() -> None:
        process = running.enter_context(
            subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment()
            )
        )
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(INITIALIZE)
        process.stdin.flush()
        assert process.stdout.readline()

    return work


def skillkit_program() -> str:
    return shutil.which("skillkit", path=str(Path(sys.executable).parent)) or "skillkit"


def run(command: list[str]) -> Work:
    return lambda: subprocess.run(command, stdout=subprocess.DEVNULL, check=True, env=environment())


def environment() -> dict[str, str]:
    """As on a user's machine: compiled files are kept."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
