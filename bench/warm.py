"""Whole runs that find everything ready, against the bare interpreter started cold on the same script."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from bench.runner import Row, Work, measure, only_walls
from bench.walls import REQUIRED, manager_of
from skillkit import SkillManager
from skillkit.core.run.tiers import machine_tiers
from skillkit.core.run.warm.spares import spares

WARM = replace(REQUIRED, home="kept", warm="auto")
COLD = replace(WARM, warm="off")
HEAVY = "openpyxl"
# Where it cannot be installed: about as much of the standard library.
LARGE = (
    "asyncio, unittest.mock, xml.dom.minidom, email.message, http.server, sqlite3, decimal, ctypes, concurrent.futures"
)
READY_SECONDS = 20.0
LEAST_PAUSE = 0.03  # between two calls: nobody's agent is sooner, and a spare comes to rest
IN_A_ROW = 20
WHY = "two records, the mounts of skill, home and workspace, and the end of the namespaces"
OF_BASH = (
    "about 2 ms are Python's before the hand-over (resolve, decide, reach, walls compared, first record) and 1 after "
    "it; the script has 0.4 to 0.7. Called as soon as a spare is ready it takes 2.8 ms against 1.4 (2.0 x), after a "
    "pause of 30 ms 4.0 against 1.6, of 300 ms 4.9 against 2.2: what rested runs from cold caches, and we have more "
    "of it"
)
OF_HEAVY = (
    "Python's own end with all that loaded, which takes a bare one as long: 22 of 146 ms (openpyxl), on a busy machine "
    "126 of 550 (pandas). Not to look through it then (`gc.freeze`) takes 22, but loses what a script left unflushed "
    "in a circle: three of the six lines of `AT_THE_END` in the tests of semantics"
)
OF_MODULES = "node's own loader of modules starts with the script, in its event loop: it cannot be had ahead"


def rows(work: Path) -> list[Row]:
    if not any(each.tier == "bubblewrap" and each.sandbox for each in machine_tiers()):
        return []
    heavy, path = with_heavy_import(work)
    scripts = {
        "noop.py": ("python3 no-op", "pass\n", 0.7, 0.5, 0.0),
        "usual.py": ("python3 with json, argparse, re", "import json, argparse, re\n", 0.5, 0.3, 0.0),
        "noop.js": ("node no-op", "\n", 0.6, 0.35, 0.0),
        "noop.mjs": ("node no-op, a module", "\n", 0.6, 0.35, 0.0),
        "noop.sh": ("bash no-op", ":\n", 2.0, 1.5, 0.0),
        "heavy.py": (f"python3 with {heavy}, 0.5 s apart", f"import {heavy}\n", 0.2, 0.08, 0.5),
    }
    folder = work / "skills" / "runs"
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: runs\ndescription: Scripts to measure.\n---\n")
    for name, (_, text, *_) in scripts.items():
        (folder / "scripts" / name).write_text(text)
    with only_walls("bubblewrap"):
        there = [name for name in scripts if not name.endswith("js") or shutil.which("node")]
        found = [against_bare(work, name, *scripts[name]) for name in there if name != "heavy.py"]
        with searched_first(path):
            found.append(against_bare(work, "heavy.py", *scripts["heavy.py"]))
        found.append(in_a_row(work))
    return [*found, *without_mounts(work)]


def without_mounts(work: Path) -> list[Row]:
    if not any(each.tier == "landlock" and each.sandbox for each in machine_tiers()):
        return []
    with only_walls("landlock"):
        return [against_bare(work, "noop.py", "python3 no-op, Landlock", "", 0.9, 0.5, 0.0)]


def with_heavy_import(work: Path) -> tuple[str, str]:
    """What is imported, and where the interpreter that has it is: in an environment of its own."""
    place = work / "environment"
    install = (str(place / "bin" / "python3"), "-m", "pip", "install", "--quiet", HEAVY)
    made = subprocess.run([sys.executable, "-m", "venv", str(place)], capture_output=True, check=False).returncode == 0
    if made and subprocess.run(install, capture_output=True, check=False).returncode == 0:
        return HEAVY, str(place / "bin")
    return LARGE, ""


@contextmanager
def searched_first(folder: str) -> Iterator[None]:
    usual = os.environ["PATH"]
    os.environ["PATH"] = os.pathsep.join((*([folder] if folder else []), usual))
    try:
        yield
    finally:
        os.environ["PATH"] = usual


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
    why = {"noop.sh": OF_BASH, "noop.mjs": OF_MODULES, "heavy.py": OF_HEAVY}.get(script, WHY)
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
    time.sleep(max(pause, LEAST_PAUSE))
    until = time.monotonic() + READY_SECONDS
    while not spares.count() and time.monotonic() < until:
        time.sleep(0.002)
    time.sleep(LEAST_PAUSE)
    return True
