"""A Python script -> what its interpreter does while it waits: what makes it wait, and what it imports ahead."""

from __future__ import annotations

import ast
import io
import marshal
import os
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from skillkit.core.models.detect.languages import parse_python
from skillkit.core.run.sandbox.waiting import Hook
from skillkit.core.run.warm.spare import Told

__all__ = ["LEFT_OPEN", "can_wait", "framed", "hook", "imports_ahead", "request", "shadows"]

WAIT = (
    'echo w >"/proc/self/fd/$3"; read -r go <"/proc/self/fd/$2" && [ "$go" = go ] || exit 125; '
    'export PYTHONPATH="/proc/self/fd/$1" WARM_DESCRIPTORS="$1,$2,$3,$4"; shift 4; exec "$@"'
)
LEFT_OPEN = "import os; at = os.open('/', 0); os.close(at); import _ctypes; print(os.open('/', 0) - at)"
"""For a Python that says how many descriptors stay open once it has called C functions by name."""
# What the runner sets itself, and what means the same however long before a run Python starts.
HARMLESS = {"PYTHONUTF8", "PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED", "PYTHONIOENCODING", "PYTHONHASHSEED"}
WORDS = 2  # the interpreter and its script: options may keep it from reading what makes it wait
LONGEST_SCRIPT = 1_000_000
LENGTH_BYTES = 8
Import = tuple[str, tuple[str, ...]]


def can_wait(words: tuple[str, ...], environment: Mapping[str, str]) -> bool:
    """Whether this Python starts as any other does."""
    steering = [name for name in environment if name.startswith("PYTHON") and name not in HARMLESS]
    of_its_own = ("PYTHONUSERBASE", f"{environment.get('TMPDIR')}/.python")  # nothing is there when it starts
    return len(words) == WORDS and all((name, environment[name]) == of_its_own for name in steering)


@cache
def hook(*, is_renamed: bool) -> Hook:
    """Python takes modules from an archive, too; this one it gets as a descriptor."""
    import zipfile

    text = Path(__file__).with_name("python_hook.py").read_text(encoding="utf-8")
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr(zipfile.ZipInfo("sitecustomize.py"), text)
    return Hook(archive.getvalue(), WAIT, is_renamed=is_renamed)


def framed(order: Mapping[str, object]) -> bytes:
    """As the hook reads it."""
    content = marshal.dumps(dict(order), 2)
    return len(content).to_bytes(LENGTH_BYTES, "big") + content


def request(told: Told, _: Mapping[str, str]) -> bytes:
    """What one run brings along."""
    order = {"words": told.arguments, "environment": dict(told.environment), "folder": told.folder}
    # What puts up the walls says in a variable where a run begins; only those with mounts do.
    variables = {"PWD": told.folder} if told.has_mounts else {}
    seconds = (told.cpu_seconds, told.cpu_seconds + (not told.has_mounts))
    return framed({**order, "variables": variables, "cpu_seconds": seconds, "compiled": told.compiled})


def shadows(files: Iterable[str], script: str) -> frozenset[str]:
    """Names that Python would import from the script's own folder, by the skill's relative paths."""
    folder = os.path.dirname(script)
    beside = (os.path.relpath(each, folder or ".") for each in files)
    return frozenset(each.partition("/")[0].partition(".")[0] for each in beside if not each.startswith(".."))


def imports_ahead(script: Path, beside: frozenset[str]) -> tuple[Import, ...]:
    """Modules that it imports before it does anything else, in their order.

    The first that may be the skill's own ends the list, and so does the first statement that could change what an
    import means.
    """
    try:
        if script.stat().st_size > LONGEST_SCRIPT:
            return ()
        tree = parse_python(script.read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    return tuple(_leading(tree.body, beside))


def _leading(statements: Iterable[ast.stmt], beside: frozenset[str]) -> Iterator[Import]:
    for statement in statements:
        if isinstance(statement, ast.Import):
            found: list[Import] = [(each.name, ()) for each in statement.names]
        elif isinstance(statement, ast.ImportFrom):
            names = tuple(each.name for each in statement.names)
            found = [(statement.module or "", names)]
            if statement.level or "*" in names:
                return
        elif _does_nothing(statement):
            continue
        else:
            return
        for name, names in found:
            if name.partition(".")[0] in beside:
                return
            if name != "__future__":
                yield name, names


def _does_nothing(statement: ast.stmt) -> bool:
    """A text, a constant's name, or a function that is only told."""
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    if isinstance(statement, ast.Assign):
        return isinstance(statement.value, ast.Constant) and all(isinstance(x, ast.Name) for x in statement.targets)
    if isinstance(statement, ast.FunctionDef):
        given = statement.args
        annotated = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
        told = [each.annotation for each in annotated if each is not None]
        return not (
            statement.decorator_list or given.defaults or any(given.kw_defaults) or any(told) or statement.returns
        )
    return False
