"""`python -m bench.real_skills FOLDER...`: what the scripts of real skills need, and how many work where.

Writes bench/real-skills.md. Each script is run twice, with `--help` and with nothing: plainly, that is by its
interpreter alone; inside the default walls, after a yes; and with what it needs granted. Plain runs too have no
network and no home but one that is thrown away, and can change nothing of this machine: nobody here has read them.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from skillkit import GUARDED, Skill, SkillKitError, SkillManager
from skillkit.approvers.callback import FlagApprover
from skillkit.core.find.needs import SkillNeeds
from skillkit.core.models.detect.languages import LANGUAGE_INTERPRETERS
from skillkit.core.values.needs import Need
from skillkit.core.values.skills import ScriptMetadata

SECONDS = 20
CALLS = (("--help",), ())
GRANTED = {
    "secret": "secrets",
    "variable": "variables",
    "read": "read",
    "write": "write",
    "interpreter": "interpreters",
    "working_directory": "working_directory",
}
"""Kinds that can be given without a network, and what `SkillManager.grant` calls them."""
KINDS: dict[str, Callable[[Need], bool]] = {
    "network": lambda need: need.kind == "host",
    "- by hosts that it names": lambda need: need.kind == "host" and need.name != "*",
    "packages": lambda need: need.kind == "package",
    "a secret variable": lambda need: need.kind == "secret",
    "another variable": lambda need: need.kind == "variable",
    "files in the home folder": lambda need: need.name.startswith("~"),
    "- its own state": lambda need: need.kind == "home",
    "other places to read or write": lambda need: need.kind in ("read", "write") and not need.name.startswith("~"),
    "the workspace as working directory": lambda need: need.kind == "working_directory",
    "loopback": lambda need: need.kind == "loopback",
    "an interpreter of its own (TypeScript, PowerShell)": lambda need: need.kind == "interpreter",
    "a program that not every system has": lambda need: need.kind == "program",
    "- Python, from a shell script": lambda need: need.kind == "program" and need.name in ("python", "python3"),
}


@dataclass(slots=True)
class Script:
    """One script of a skill, and what it needs."""

    skill: Skill
    script: ScriptMetadata
    needs: tuple[Need, ...]
    own_needs: tuple[Need, ...]
    """Told by its code, not by what the skill says for all its scripts."""
    exits: dict[tuple[str, tuple[str, ...]], int | None] = field(default_factory=dict)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--runs", type=int, default=100, help="how many scripts are run, evenly drawn; 0 for none")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="skillkit-real-") as work:
        managers = [manager_of(folder, Path(work), number) for number, folder in enumerate(chosen.folders)]
        scripts = {manager: scripts_of(manager) for manager in managers}
        everything = [script for found in scripts.values() for script in found]
        report = ["# Real skills", "", *counted(managers, everything)]
        if chosen.runs and everything:
            report += ran(scripts, max(1, len(everything) // chosen.runs), Path(work))
    text = "\n".join(report) + "\n"
    print(text)
    Path(__file__).with_name("real-skills.md").write_text(text)
    return 0


def manager_of(folder: Path, work: Path, number: int) -> SkillManager:
    state = work / f"state-{number}"
    return SkillManager("", "", [], [folder], policy=GUARDED, approver=FlagApprover(), state_dir=state)


def scripts_of(manager: SkillManager) -> list[Script]:
    found = []
    for metadata in manager.list_skills():
        skill = manager.load_skill(metadata.name)
        needs = SkillNeeds(skill)
        found += [
            Script(skill, script, needs.of(script), needs.of(script, is_code_only=True))
            for script in skill.scripts
            if not script.name.startswith("test_")
        ]
    return found


def counted(managers: Sequence[SkillManager], scripts: Sequence[Script]) -> list[str]:
    skills = sum(len(manager.list_skills()) for manager in managers)
    languages = Counter(each.script.script_type for each in scripts)
    named = ", ".join(f"{count:,} {language}" for language, count in languages.most_common())
    free = sum(not relevant(each.own_needs) for each in scripts)
    rows = [
        (kind, *(share(sum(any(map(fits, needs(each))) for each in scripts), len(scripts)) for needs in COLUMNS))
        for kind, fits in KINDS.items()
    ]
    today = f"{datetime.now(UTC):%Y-%m-%d}, Python {platform.python_version()}"
    return [
        f"{today}: {skills:,} skills with {len(scripts):,} scripts ({named or 'none'}).",
        "",
        *markdown(("need", "scripts, by their code", "with what the skill says for all"), rows),
        "",
        f"None of these but programs: {share(free, len(scripts))} of the scripts.",
        "",
    ]


def relevant(needs: Iterable[Need]) -> list[Need]:
    return [need for need in needs if need.kind not in ("program", "variable")]


COLUMNS: tuple[Callable[[Script], tuple[Need, ...]], ...] = (lambda each: each.own_needs, lambda each: each.needs)


def share(count: int, whole: int) -> str:
    return f"{100 * count / whole:.1f} % ({count:,})" if whole else "-"


def ran(scripts: dict[SkillManager, list[Script]], every: int, work: Path) -> list[str]:
    ways: dict[str, Callable[[SkillManager, Script, tuple[str, ...], Path], int | None]] = {"plain": plain}
    ways["walls"] = walled
    if hasattr(SkillManager, "grant"):
        ways["walls and grants"] = granted
    number, drawn = 0, []
    for manager, found in scripts.items():
        for each in found:
            number += 1
            if number % every:
                continue
            drawn.append(each)
            for name, way in ways.items():
                for call in CALLS:
                    place = Path(tempfile.mkdtemp(dir=work))
                    each.exits[name, call] = way(manager, each, call, place)
                    shutil.rmtree(place, ignore_errors=True)
    rows = [(name, *(outcome(drawn, name, call) for call in CALLS)) for name in ways]
    return [
        f"{len(drawn):,} were run without network, {SECONDS} seconds at most. How many ended with 0, and as plainly:",
        "",
        *markdown(("way", "`--help`: 0; as plainly", "no arguments: 0; as plainly"), rows),
    ]


def outcome(drawn: Sequence[Script], name: str, call: tuple[str, ...]) -> str:
    zero = sum(each.exits[name, call] == 0 for each in drawn)
    same = sum(each.exits[name, call] == each.exits["plain", call] for each in drawn)
    return f"{zero:,}; {same:,}"


def plain(_: SkillManager, each: Script, call: tuple[str, ...], place: Path) -> int | None:
    """By the interpreter alone, where nothing can be harmed; None where there is no interpreter or no end."""
    names = LANGUAGE_INTERPRETERS[each.script.script_type]
    interpreter = next(filter(None, map(shutil.which, names)), None)
    if interpreter is None:
        return None
    folder = each.skill.base_directory
    walls = "bwrap --ro-bind / / --dev /dev --proc /proc --tmpfs /run --tmpfs /tmp --unshare-all --die-with-parent"
    seen = ("--ro-bind", folder, folder, "--bind", place, place, "--chdir", place)
    command = list(map(str, (*walls.split(), *seen, interpreter, folder / each.script.path, *call)))
    own = {"PATH": os.environ["PATH"], "HOME": str(place), "TMPDIR": str(place), "LANG": "C.UTF-8"}
    with suppress(subprocess.TimeoutExpired):
        return subprocess.run(
            command, timeout=SECONDS, stdin=subprocess.DEVNULL, capture_output=True, check=False, env=own
        ).returncode
    return None


def walled(manager: SkillManager, each: Script, call: tuple[str, ...], place: Path) -> int | None:
    try:
        result = manager.execute_skill_script(
            each.skill.name, each.script.path.as_posix(), argv=call, timeout=SECONDS, workspace=place
        )
    except SkillKitError:
        return None
    return None if result.timed_out else result.exit_code


def granted(manager: SkillManager, each: Script, call: tuple[str, ...], place: Path) -> int | None:
    """With everything that a person could tick; the network stays closed, as plainly."""
    give: Callable[..., object] = getattr(manager, "grant")  # noqa: B009 - not every version has it
    named: dict[str, list[str]] = {}
    for need in each.needs:
        if need.kind in GRANTED:
            named.setdefault(GRANTED[need.kind], []).append(os.path.expanduser(need.name))
    for kind, names in named.items():
        with suppress(SkillKitError):
            give(each.skill.name, **{kind: names[0] if kind == "working_directory" else names})
    return walled(manager, each, call, place)


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return [f"| {' | '.join(cells)} |" for cells in (header, ["---"] * len(header), *rows)]


if __name__ == "__main__":
    sys.exit(main())
