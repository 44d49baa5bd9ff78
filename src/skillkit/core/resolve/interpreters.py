"""A script's language -> the real program that runs it, found on PATH outside skill and workspace."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from skillkit.core.detect import LANGUAGE_INTERPRETERS
from skillkit.core.exceptions import InterpreterNotAllowedError, InterpreterNotFoundError
from skillkit.core.paths import is_inside, real_path

__all__ = ["Interpreter", "Runner", "forget_interpreters", "interpreter_for"]

Runner = Callable[[Sequence[str], str], str]
"""Runs a program briefly, with cwd `/` and the given PATH, and gives its output; empty when it failed."""

# `sh` counts as bash: it runs shell scripts where bash is missing.
PROGRAMS = {"bash": ("bash", "sh"), "python3": ("python3", "python"), "cmd": ("cmd.exe", "cmd")}
LISTED_AS = {"powershell": "pwsh"}
# What makes a program say where its real binary is.
SELF_QUESTIONS = {
    "python3": ("-c", "import sys; print(sys.executable)"),
    "node": ("-e", "console.log(process.execPath)"),
    "ruby": ("-e", "puts RbConfig.ruby"),
    "perl": ("-e", "print $^X"),
}
# Scripts by nature: that they start with `#!` does not make them shims.
SCRIPT_PROGRAMS = frozenset(("tsx", "ts-node"))
SHIM_PROGRAMS = frozenset(("volta-shim", "mise", "rtx", "asdf", "shim"))
TYPES_STRIPPED_SINCE = ((22, 18), (23, 6))
LEADING_ARGUMENTS = {"deno": ("run",), "pwsh": ("-NoProfile", "-File"), "cmd": ("/d", "/c")}

_found: dict[tuple[str, str], str] = {}
_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class Interpreter:
    """`name` is what policies list; `arguments` come before the script."""

    name: str
    path: str
    arguments: tuple[str, ...] = ()


def interpreter_for(
    language: str, path: str, allowed: Iterable[str], run: Runner, *, closed: Sequence[Path] = ()
) -> Interpreter:
    """The first that exists and is listed; one that exists but is not listed is named in the error.

    Nothing inside the folders in `closed` is ever used, not even where a link or a version manager leads there.
    """
    names = [LISTED_AS.get(name, name) for name in LANGUAGE_INTERPRETERS[language]]
    listed = tuple(allowed)
    unlisted = ""
    for name in dict.fromkeys(names):
        if name in listed:
            program = found_program(name, path, run, closed)
            if program and (language != "typescript" or name != "node" or strips_types(program, path, run)):
                return Interpreter(name, program, LEADING_ARGUMENTS.get(name, ()))
        elif not unlisted and any(candidates(name, path)):
            unlisted = name
    if unlisted:
        raise InterpreterNotAllowedError(
            f"{unlisted!r} may not run scripts here. Allowed: {', '.join(listed) or 'none'}. "
            "Add it to 'allowed_interpreters' if that is wanted.",
            interpreter=unlisted,
            allowed=listed,
        )
    raise InterpreterNotFoundError(
        f"{' or '.join(names)!r} is not on PATH; a {language} script needs it. Install it or remove the script.",
        interpreter=names[0],
    )


def found_program(name: str, path: str, run: Runner, closed: Sequence[Path]) -> str:
    """Looked up once for each PATH, because asking a version manager takes a tenth of a second."""
    known = _found.get((name, path))
    if known and os.access(known, os.X_OK) and not is_within(known, closed):
        return known
    for candidate in candidates(name, path):
        program = "" if is_within(candidate, closed) else real_program(name, candidate, path, run)
        if program and not is_within(program, closed):
            with _lock:
                _found[name, path] = program
            return program
    return ""


def forget_interpreters() -> None:
    """Look everything up again, as after an installation."""
    with _lock:
        _found.clear()


def candidates(name: str, path: str) -> Iterable[str]:
    for program in PROGRAMS.get(name, (name,)):
        for folder in path.split(os.pathsep):
            candidate = os.path.join(folder, program)
            if os.path.isfile(candidate) and os.access(candidate, os.X_OK):
                yield candidate


def is_within(program: str, folders: Sequence[Path]) -> bool:
    """By its own path or by where its links lead."""
    real = real_path(program)
    closed = [real_path(folder) for folder in folders]
    return any(is_inside(place, folder) for place in (program, real) for folder in closed)


def real_program(name: str, candidate: str, path: str, run: Runner) -> str:
    """The candidate itself, or the binary behind a version manager's shim; a venv's link is kept as it is."""
    if name in SCRIPT_PROGRAMS and not is_version_manager(candidate):
        return candidate
    if not is_shim(candidate):
        return candidate
    question = SELF_QUESTIONS.get(name)
    answer = run((candidate, *question), path).strip() if question else ""
    is_binary = os.path.isabs(answer) and os.access(answer, os.X_OK) and not is_shim(answer)
    return answer if is_binary else ""


def is_shim(candidate: str) -> bool:
    """A program that is itself a script, or a link to a version manager, only starts another one."""
    if is_version_manager(candidate):
        return True
    try:
        with open(candidate, "rb", buffering=0) as file:
            return file.read(2) == b"#!"
    except OSError:
        return False


def is_version_manager(candidate: str) -> bool:
    return os.path.basename(os.path.realpath(candidate)) in SHIM_PROGRAMS


def strips_types(node: str, path: str, run: Runner) -> bool:
    """Node runs TypeScript by itself since 22.18 and 23.6."""
    version = re.match(r"v(\d+)\.(\d+)", run((node, "--version"), path))
    if version is None:
        return False
    number = (int(version[1]), int(version[2]))
    (old_major, old_minor), newer = TYPES_STRIPPED_SINCE
    return number >= newer or (number[0] == old_major and number[1] >= old_minor)
