"""What prepared packages cost: a run that uses them, and a second preparation."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from bench.runner import Row, measure
from bench.walls import REQUIRED
from bench.warm import OF_HEAVY, WARM, ready
from skillkit import SkillManager
from skillkit.packages.values import PackagesError
from skillkit.testing import ScriptedApprover

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))
from support.package_index import serving_index

SCRIPT = '# /// script\n# dependencies = ["zebra"]\n# ///\nimport zebra\n'
ROUNDS = 40
HEAVY = ("openpyxl", "pandas")
HEAVY_ROUNDS = 7
COMMANDS = 9


def rows(work: Path) -> list[Row]:
    if os.uname().sysname != "Linux":
        return []
    for name in ("prepared", "plain"):
        folder = work / "skills" / name
        (folder / "scripts").mkdir(parents=True)
        (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: A script to measure.\n---\n")
        (folder / "scripts" / "run.py").write_text(SCRIPT)
    system = _system_with_packages(work)
    path = os.environ["PATH"]
    os.environ["PATH"] = f"{system / 'bin'}{os.pathsep}{path}"
    given = dict(os.environ)
    try:
        with SkillManager("", "", [], [work / "skills"], policy=REQUIRED, state_dir=work / "state") as manager:
            seconds, afresh = _prepare(manager, work)
            runs = {name: partial(_run, manager, name) for name in ("prepared", "plain")}
            timings = measure(runs, ROUNDS)
    finally:
        os.environ.clear()
        os.environ.update({**given, "PATH": path})
    ratio, detail = timings.ratio("prepared", "plain"), timings.detail("prepared", "plain")
    return [
        *_heavy(work / "heavy"),
        Row("run with prepared packages / with the same in the system", ratio, 1.05, 1.05, detail=detail),
        Row("second preparation of the same, in one process", seconds, 0.3, 0.3, "s"),
        Row("second preparation of the same, as a command", afresh, 0.3, 0.2, "s"),
    ]


def _heavy(work: Path) -> list[Row]:
    """Libraries that take long to import, prepared for a skill: warm against the bare interpreter that has them."""
    rows = []
    for name in HEAVY:
        folder = work / "skills" / name
        (folder / "scripts").mkdir(parents=True)
        (folder / "SKILL.md").write_text(f"---\nname: {name}\ndescription: A script to measure.\n---\n")
        (folder / "scripts" / "run.py").write_text(SCRIPT.replace("zebra", name))
        with SkillManager("", "", [], [work / "skills"], policy=WARM, state_dir=work / "state") as manager:
            try:
                manager.prepare_packages(name, approver=ScriptedApprover("yes_once"))
            except PackagesError:  # no index can be reached here
                continue
            _run(manager, name)
            command = manager.prepare_skill_script(name, "run").command
            bare = partial(subprocess.run, command.argv, env=dict(command.environment), check=True)
            timings = measure({"bare": bare, "warm": partial(_run, manager, name)}, HEAVY_ROUNDS, partial(ready, 0.5))
        what = f"python3 with {name} prepared, 0.5 s apart, warm / bare cold"
        rows.append(
            Row(what, timings.ratio("warm", "bare"), 0.2, 0.08, detail=timings.detail("warm", "bare"), why=OF_HEAVY)
        )
    return rows


def _system_with_packages(work: Path) -> Path:
    """A Python that has the same package installed for everybody."""
    folder = work / "system"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (site,) = folder.glob("lib/python3*/site-packages")
    (site / "zebra.py").write_text("VERSION = '1.0'\n")
    subprocess.run([folder / "bin" / "python", "-m", "compileall", "-q", str(site)], check=True)
    shutil.rmtree(folder / "include", ignore_errors=True)
    return folder


def _prepare(manager: SkillManager, work: Path) -> tuple[float, float]:
    """How long the second one takes, in the same process and as a command of its own; the index is gone by then."""
    with serving_index() as index:
        index.add("zebra", "1.0")
        os.environ["UV_DEFAULT_INDEX"] = index.address
        manager.prepare_packages("prepared", approver=ScriptedApprover("yes_once"))
    again, seconds = _timed(lambda: manager.prepare_packages("prepared"))
    if not again.was_ready:
        raise RuntimeError("it was prepared again")
    words = ("prepare", "prepared", "--skills", str(work / "skills"), "--state-dir", str(work / "state"))
    # Compiled modules are kept, as they are where skillkit is installed.
    given = {**os.environ, "PYTHONPYCACHEPREFIX": str(work / "compiled")}
    given.pop("PYTHONDONTWRITEBYTECODE", None)
    command = partial(
        subprocess.run, [sys.executable, "-m", "skillkit", *words], env=given, check=True, stdout=subprocess.DEVNULL
    )
    command()
    return seconds, sorted(_timed(command)[1] for _ in range(COMMANDS))[COMMANDS // 2]


def _timed(act: Callable[[], Any]) -> tuple[Any, float]:
    began = time.perf_counter()
    done = act()
    return done, time.perf_counter() - began


def _run(manager: SkillManager, name: str) -> None:
    result = manager.execute_skill_script(name, "run")
    if not result.success:
        raise RuntimeError(result.stderr)
