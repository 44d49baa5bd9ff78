"""Whole runs that find everything ready, against the bare interpreter started cold on the same script."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from bench.runner import Row, Work, measure, only_walls
from bench.walls import REQUIRED, manager_of
from skillkit import SkillManager
from skillkit.core.run.tiers import machine_tiers
from skillkit.core.run.warm.spares import spares

WARM = replace(REQUIRED, home="kept", warm="auto")
COLD = replace(WARM, warm="off")
HEAVY = ("openpyxl", "pandas", "pypdf")
# Where none of them is installed: about as much of the standard library.
LARGE = (
    "asyncio, unittest.mock, xml.dom.minidom, email.message, http.server, sqlite3, decimal, ctypes, concurrent.futures"
)
READY_SECONDS = 20.0
IN_A_ROW = 20
WALLS_ONLY = "only its walls stand ahead, the interpreter starts with the run"
WHY = "two records, the mounts of skill, home and workspace, and the end of the namespaces"


def rows(work: Path) -> list[Row]:
    if not any(each.tier == "bubblewrap" and each.sandbox for each in machine_tiers()):
        return []
    heavy = heavy_import()
    scripts = {
        "noop.py": ("python3 no-op", "pass\n", 0.7, 0.5, 0.0),
        "usual.py": ("python3 with json, argparse, re", "import json, argparse, re\n", 0.5, 0.3, 0.0),
        "noop.js": ("node no-op", "\n", 0.6, 0.35, 0.0),
        "noop.sh": ("bash no-op", ":\n", 2.0, 1.5, 0.0),
        "heavy.py": (f"python3 with {heavy}, 0.5 s apart", f"import {heavy}\n", 0.2, 0.08, 0.5),
    }
    folder = work / "skills" / "runs"
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: runs\ndescription: Scripts to measure.\n---\n")
    for name, (_, text, *_) in scripts.items():
        (folder / "scripts" / name).write_text(text)
    with only_walls("bubblewrap"):
        there = [name for name in scripts if not name.endswith(".js") or shutil.which("node")]
        found = [against_bare(work, name, *scripts[name]) for name in there]
        return [*found, in_a_row(work)]


def heavy_import() -> str:
    for name in HEAVY:
        if subprocess.run(["python3", "-c", f"import {name}"], capture_output=True, check=False).returncode == 0:
            return name
    return LARGE


def against_bare(work: Path, script: str, what: str, text: str, must: float, goal: float, pause: float) -> Row:
    del text
    with manager_of(work, WARM) as manager:
        run = runner(manager, script)
        run()
        command = manager.prepare_skill_script("runs", script).command
        ready(pause)
        rounds = 7 if pause else 25

        def bare() -> object:
            return subprocess.run(command.argv, env=dict(command.environment), capture_output=True, check=True)

        timings = measure({"bare": bare, "warm": run}, rounds, lambda: ready(pause))
        starts = {manager.execute_skill_script("runs", script).isolation.start for _ in range(3) if ready(0)}
    detail = f"{timings.detail('warm', 'bare')}; started {', '.join(starts)}"
    why = WHY if script.endswith(".py") else f"{WALLS_ONLY}; {WHY}"
    return Row(f"{what}, warm / bare cold", timings.ratio("warm", "bare"), must, goal, "x", detail, why=why)


def in_a_row(work: Path) -> Row:
    """Calls one after the other without a pause, so that spares cannot keep up."""
    with manager_of(work, WARM) as warm, manager_of(work, COLD) as cold:

        def run(manager: SkillManager) -> Work:
            return lambda: [manager.execute_skill_script("runs", "usual.py") for _ in range(IN_A_ROW)]

        timings = measure({"cold": run(cold), "warm": run(warm)}, 3)
    why = "a spare costs what it saves; what is left is what the second core does meanwhile"
    detail = f"{IN_A_ROW} runs: {timings.detail('warm', 'cold')}"
    return Row("without a pause, warm / walled cold", timings.ratio("warm", "cold"), 1.1, 0.8, "x", detail, why=why)


def runner(manager: SkillManager, script: str) -> Callable[[], object]:
    return lambda: manager.execute_skill_script("runs", script)


def ready(pause: float) -> bool:
    time.sleep(pause)
    until = time.monotonic() + READY_SECONDS
    while not spares.count() and time.monotonic() < until:
        time.sleep(0.002)
    return True
