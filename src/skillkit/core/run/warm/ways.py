"""A script and how it would start -> how its interpreter waits for it: by itself, or only its walls do."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from skillkit.core.run.sandbox.waiting import Hook
from skillkit.core.run.warm import bash, node, python, shell
from skillkit.core.run.warm.spare import Ordering
from skillkit.core.values.runs import ScriptCommand

__all__ = ["Way", "way_of"]

RENAMED_ON = ("x86_64",)  # whose registers the renamer knows
STARTING = re.compile(rb"(?m)^import[ \t]")
MOST_BYTES = 4_000_000  # of a skill's code that are looked through


class Way(NamedTuple):
    hook: Hook
    order: bytes
    """What it does while it waits."""
    request: Ordering


def way_of(
    kind: ScriptCommand,
    words: tuple[str, ...],
    environment: Mapping[str, str],
    snapshot: Path,
    most_imports: int,
    *,
    own_only: bool,
    has_attacher: bool,
) -> Way | None:
    """None where it has to start cold. `words` begin the command line, without what differs from call to call."""
    if kind.is_program:
        return None
    can_rename = has_attacher and os.uname().machine in RENAMED_ON
    if kind.interpreter == "python3":
        told = {"own_only": own_only, "is_renamed": can_rename}
        return _python(kind, words, environment, snapshot, most_imports, told)
    known = {"node": node.can_wait, "bash": bash.can_wait}.get(kind.interpreter)
    if known and can_rename and known(words, environment) and _is_usual(kind, snapshot):
        if kind.interpreter == "bash":
            return Way(bash.hook(words), b"", bash.request)
        ahead = node.modules_ahead(snapshot / kind.script_name)[:most_imports]
        return Way(node.hook(), node.framed(ahead), node.request)
    if shell.can_wait(kind.interpreter, words):
        return Way(shell.hook(), b"", shell.request)
    return None


def _python(
    kind: ScriptCommand,
    words: tuple[str, ...],
    environment: Mapping[str, str],
    snapshot: Path,
    most_imports: int,
    told: Mapping[str, bool],
) -> Way | None:
    if not python.can_wait(words, environment) or (told["own_only"] and _starts_packages(kind)):
        return None
    files = [name for name, _ in kind.manifest.entries] if kind.manifest else []
    beside = python.shadows(files, kind.script_name)
    imports = python.imports_ahead(snapshot / kind.script_name, beside)[:most_imports]
    order = python.framed({"imports": imports, "shadows": tuple(beside), **told})
    return Way(python.hook(is_renamed=told["is_renamed"]), order, python.request)


def _starts_packages(kind: ScriptCommand) -> bool:
    """Whether a prepared package has lines that Python runs by itself at its start: that is before any record."""
    lists = [each for tree in kind.prepared for each in tree.tree.glob("lib*/python3*/site-packages/*.pth")]
    return any(STARTING.search(each.read_bytes()) for each in lists)


def _is_usual(kind: ScriptCommand, snapshot: Path) -> bool:
    """Whether nothing of the skill's code asks for what is not as always in an interpreter that has waited."""
    of = bash if kind.interpreter == "bash" else node
    suffixes, unusual = of.SUFFIXES, of.UNUSUAL
    if kind.prepared or kind.manifest is None:
        return False
    files = [name for name, _ in kind.manifest.entries if name == kind.script_name or name.endswith(suffixes)]
    try:
        contents = [snapshot / name for name in files]
        if sum(each.stat().st_size for each in contents) > MOST_BYTES:
            return False
        return not any(unusual.search(each.read_bytes()) for each in contents if os.path.isfile(each))
    except OSError:
        return False
