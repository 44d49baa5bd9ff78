"""What walls add to a run, for each kind of walls and interpreter."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench.runner import Row, measure, only_walls
from skillkit import TRUSTED, ScriptPolicy, SkillManager
from skillkit.core.run.tiers import machine_tiers

# Cold: what is made ready ahead has rows of its own.
REQUIRED = ScriptPolicy(allow_scripts=True, approval="never", sandbox="required", warm="off")
SCRIPTS = {"noop.sh": ":\n", "noop.py": "pass\n", "noop.js": "\n", "noop.rb": "\n", "noop.pl": "1;\n"}
# Milliseconds over a bare run: must and goal at p50, must and goal at p95.
MODULES = 10
FUNCTION = """
def function{0}(words, limit=10, *others, **settings):
    found = [word for word in words if len(word) < limit and word not in others]
    try:
        return {{"found": found, "text": f"{{found}} of {{limit}}", **settings}}
    except ValueError as error:
        raise RuntimeError(str(error)) from error
"""
WHY = "bubblewrap's own start and its mounts; an interpreter outside the system's folders needs more of them"
WHY_LANDLOCK = "a Python without the library that puts up the walls: its start is most of it"
WHY_LARGE = "200 places are judged, guarded and compared each time: bubblewrap mounts each, Landlock reads each twice"
BOUNDS = {"bubblewrap": (25, 11, 50, 20), "landlock": (40, 40, 80, 80)}


def rows(work: Path) -> list[Row]:
    folder = work / "skills" / "runs"
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: runs\ndescription: Scripts to measure.\n---\n")
    for name, text in SCRIPTS.items():
        (folder / "scripts" / name).write_text(text)
    found = []
    for attempt in machine_tiers():
        if attempt.sandbox is not None:
            with only_walls(attempt.tier):
                found += [row for script in SCRIPTS for row in added(work, attempt.tier, script)]
                found += [in_large_workspace(work, attempt.tier), own_modules(work, attempt.tier)]
    return found


def added(work: Path, tier: str, script: str) -> list[Row]:
    with manager_of(work, TRUSTED) as bare, manager_of(work, REQUIRED) as confined:

        def run(manager: SkillManager) -> Callable[[], object]:
            return lambda: manager.execute_skill_script("runs", script)

        timings = measure({"bare": run(bare), "walls": run(confined)}, 25)
    must_p50, goal_p50, must_p95, goal_p95 = BOUNDS[tier]
    return [
        row(f"added by {tier}, {script}, p50", timings.p50, must_p50, goal_p50),
        row(f"added by {tier}, {script}, p95", timings.p95, must_p95, goal_p95),
    ]


def in_large_workspace(work: Path, tier: str) -> Row:
    """100,000 files in 10,000 folders, 200 of which hold something that must stay as it is."""
    workspace = large_workspace(work / "workspace")
    with manager_of(work, TRUSTED, workspace) as bare, manager_of(work, REQUIRED, workspace) as confined:
        run = {"bare": bare, "walls": confined}
        timings = measure(
            {name: partial(each.execute_skill_script, "runs", "noop.sh") for name, each in run.items()}, 25
        )
    return row(f"added by {tier} in a large workspace, noop.sh, p50", timings.p50, 60, 60)


def own_modules(work: Path, tier: str) -> Row:
    """A script that imports ten modules of its skill, of 60 functions each: compiled once, and at each run."""
    folder = work / "skills" / "modules"
    (folder / "scripts").mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_text("---\nname: modules\ndescription: A script with modules.\n---\n")
    for number in range(MODULES):
        (folder / "scripts" / f"module{number}.py").write_text("".join(FUNCTION.format(each) for each in range(60)))
    names = ", ".join(f"module{number}" for number in range(MODULES))
    (folder / "scripts" / "run.py").write_text(f"import {names}\n")
    with manager_of(work, REQUIRED) as kept, manager_of(work, REQUIRED) as anew:
        kept.execute_skill_script("modules", "run")
        kept.flow.here.compiled.close()  # it is made in the background
        vars(anew.flow.here)["compiled"] = NothingKept()
        run = {"kept": kept, "anew": anew}
        timings = measure(
            {name: partial(each.execute_skill_script, "modules", "run") for name, each in run.items()}, 25
        )
    what = f"{tier}: a script with {MODULES} modules of its skill, compiled before / at each run"
    return Row(what, timings.ratio("kept", "anew"), 1.0, 0.75, detail=timings.detail("kept", "anew"))


class NothingKept:
    """As if nobody compiled anything."""

    def preface(self, *_: object) -> None:
        return None

    def close(self) -> None:
        return None


def large_workspace(top: Path) -> Path:
    for number in range(0 if top.is_dir() else 10_000):
        folder = top / f"part{number // 100}" / f"folder{number % 100}"
        folder.mkdir(parents=True)
        for name in range(10):
            (folder / f"file{name}.txt").touch()
        if number % 50 == 0:
            (folder / "AGENTS.md").touch()
    return top


def row(what: str, at: Callable[[str], float], must: float, goal: float) -> Row:
    detail = f"{at('walls'):.1f} ms against {at('bare'):.1f} ms"
    why = WHY_LARGE if "large" in what else WHY_LANDLOCK if "landlock" in what else WHY
    return Row(what, at("walls") - at("bare"), must, goal, "ms", detail, why=why)


def manager_of(work: Path, policy: ScriptPolicy, workspace: Path | None = None) -> SkillManager:
    return SkillManager("", "", [], [work / "skills"], policy=policy, state_dir=work / "state", workspace=workspace)
