"""A script that lacks a module or a program -> its name, where it is really missing or out of reach, and the remedy."""

from __future__ import annotations

import os
import posixpath
import re
import shlex
import sys

from skillkit.core.paths import is_inside
from skillkit.core.run.hints.failure import Failure, tail
from skillkit.core.values.runs import PREPARE

__all__ = ["missing_module", "missing_program", "name_of_missing"]

PYTHON = re.compile(
    r"(?:^(?P<program>/[^\s:]{1,200}): )?"
    r"\bNo module named (?:'(?P<name>[A-Za-z_][\w.]{0,99})'|(?P<bare>[A-Za-z_][\w.]{0,99})$)",
    re.ASCII,
)
RELATIVE = "ImportError: attempted relative import with no known parent package"
NODE = re.compile(
    r"Cannot find (?:module|package) '(?P<name>(?:@[\w.-]{1,60}/)?[A-Za-z0-9][\w.-]{0,80})[/\w.-]{0,80}'", re.ASCII
)
RUBY = re.compile(r"cannot load such file -- ([\w./-]{1,100})(?!\S)", re.ASCII)
PERL = re.compile(r"Can't locate ([\w/]{1,100})\.pm in @INC", re.ASCII)
ASKED_FOR = re.compile(
    r"\bpip3? install (?:-U |--upgrade |--user )?['\"]?(?P<name>[A-Za-z0-9][\w.-]{0,60})['\"]?(?![\w/:])", re.ASCII
)


def missing_module(failure: Failure, text: str) -> str:
    lines = tail(text)
    for line in reversed(lines):
        found = _python(failure, line) or _node(failure, line)
        if not found and (ruby := RUBY.search(line)):
            found = f"The Ruby library {ruby[1]!r} is missing; install its gem."
        if not found and (perl := PERL.search(line)):
            found = f"The Perl module {perl[1]!r} is missing; install it."
        if found:
            return found
    asked = next((each for line in reversed(lines) if (each := ASKED_FOR.search(line))), None)
    if asked is None or not _calls_python(failure):
        return ""
    return _with_remedy(f"The script asks for the Python package {asked['name']!r}", failure, "")


def _calls_python(failure: Failure) -> bool:
    return failure.command.interpreter.startswith("python") or "python" in failure.script


def _python(failure: Failure, line: str) -> str:
    if RELATIVE in line:
        return (
            "The script imports its neighbours as parts of a package ('from . import'), which works for 'python -m' "
            "alone; in a script that is run as a file, import them by their own names, without the dots."
        )
    found = PYTHON.search(line)
    if found is None:
        return ""
    name = found["name"] or found["bare"]
    top = name.partition(".")[0]
    if own := _own_module(failure, top):
        return _of_own_package(failure, top, own)
    if top in sys.stdlib_module_names:
        return f"The Python module {name!r} belongs to Python itself, but this Python has none."
    return _with_remedy(f"The Python module {name!r} is missing", failure, found["program"] or "")


def _own_module(failure: Failure, top: str) -> str:
    """The folder or file of the skill that is meant; what lies beside the script would have been found."""
    for path in failure.own_files:
        parts = path.split("/")
        for depth, part in enumerate(parts):
            is_last = depth == len(parts) - 1
            if (part == top and not is_last and path.endswith(".py")) or (is_last and part == f"{top}.py"):
                return "/".join(parts[: depth + 1])
    return ""


def _of_own_package(failure: Failure, top: str, own: str) -> str:
    if failure.command.is_program or not failure.command.interpreter.startswith("python"):
        return ""
    script = posixpath.dirname(failure.command.script_name)
    up = posixpath.relpath(posixpath.dirname(own) or ".", script or ".").split("/")
    if any(step not in ("..", ".") for step in up):
        return f"{own!r} is part of the skill, but Python looks for {top!r} beside the script only."
    parents = len([step for step in up if step == ".."])
    line = f"import sys, pathlib; sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[{parents}]))"
    return (
        f"{top!r} is the skill's own {own!r}, which Python finds only for 'python -m'; Python looks beside the script. "
        f"Put this before that import: {line}"
    )


def _with_remedy(said: str, failure: Failure, program: str) -> str:
    python = program or _python_of(failure)
    if python:
        said += f" for {python}"
    if skipped := _skipped_environment(failure):
        said += f"; the environment {skipped} is not used, because it lies where scripts may write"
    return f"{said}; install it there." if failure.command.is_program else f"{said}: {_preparing(failure)}"


def _python_of(failure: Failure) -> str:
    """The interpreter that ran, or the one that the script's `python3` means."""
    command = failure.command
    if command.interpreter.startswith("python"):
        return command.argv[0]
    own = [each.path for each in command.own_programs if each.name == "python3"]
    folders = command.environment.get("PATH", os.defpath).split(os.pathsep) if not own else []
    return next(iter(own), "") or next(
        (place for each in folders if os.access(place := os.path.join(each, "python3"), os.X_OK)), ""
    )


def _skipped_environment(failure: Failure) -> str:
    """The environment that the caller has activated, where it lies in the workspace or in the skill."""
    active = failure.caller.get("VIRTUAL_ENV", "")
    closed = [
        str(failure.command.base_directory),
        *([str(failure.command.workspace)] if failure.command.workspace else []),
    ]
    real = os.path.realpath(active) if active else ""
    return active if real and active.isprintable() and any(is_inside(real, each) for each in closed) else ""


def _node(failure: Failure, line: str) -> str:
    if failure.command.is_program:
        return ""
    found = NODE.search(line)
    if found is None or found["name"].startswith("node:"):
        return ""
    return f"The Node package {found['name']!r} is missing: {_preparing(failure)}"


def _preparing(failure: Failure) -> str:
    """As it is typed; a person looks at the list before anything is installed."""
    return f"{PREPARE}{shlex.quote(failure.command.skill_name)}"


_NAME = r"(?P<name>[A-Za-z0-9_][A-Za-z0-9_.+-]{0,63})"
# A folder that the walls hide may answer with either.
_ABSENT = r"(?:No such file or directory|Permission denied)"
# Python says the same of a file; only these functions look for programs.
_STARTING = re.compile(r"\bin (?:_execute_child|_execvpe|execvpe?)$")
_PYTHON = re.compile(
    rf"(?:^(?:FileNotFoundError|PermissionError): |: )?\[Errno (?:2|13)\] {_ABSENT}: '{_NAME}'$", re.ASCII
)
_STARTERS = "env|nice|nohup|setsid|stdbuf|time|timeout|xargs"
_SPOKEN = re.compile(
    "|".join(
        each.replace("<name>", f"<name{number}>")
        for number, each in enumerate(
            (
                rf"\bspawn(?:Sync)? {_NAME} (?:ENOENT|EACCES)\b",
                rf": {_ABSENT} - {_NAME} \(Errno::E(?:NOENT|ACCES)\)",
                rf"^Can't exec \"{_NAME}\": {_ABSENT} at ",
                rf": line \d+: {_NAME}: command not found$",
                rf"^\S+: \d+: {_NAME}: (?:not found|Permission denied)$",
                rf"^(?:\S*/)?(?:{_STARTERS}): (?:failed to run command )?['\u2018`\"]?{_NAME}['\u2019\"]?: {_ABSENT}",
            )
        )
    )
)
MISSING_PROGRAM = "The program {0!r} is missing; install it or put it on PATH."


def missing_program(failure: Failure, text: str) -> str:
    path = failure.command.environment.get("PATH", os.defpath)
    name = name_of_missing(text, failure.script)
    if not name:
        return ""
    folders = path.split(os.pathsep)
    if any(not os.path.isabs(each) for each in folders):  # looked for from wherever the script was
        return ""
    found = next((place for each in folders if os.path.lexists(place := os.path.join(each, name))), "")
    return "" if found else MISSING_PROGRAM.format(name)


def name_of_missing(text: str, script: str = "") -> str:
    """What was to be started, as the script's language says it; a file that was opened is none."""
    lines = tail(text)
    is_starting = any(_STARTING.search(line) for line in lines)
    for line in reversed(lines):
        spoken = _SPOKEN.search(line)
        name = next(filter(None, spoken.groupdict().values()), "") if spoken else ""
        if not name and (raised := _PYTHON.search(line)):
            name = raised["name"] if is_starting or _starts(script, raised["name"]) else ""
        if name:
            return name
    return ""


def _starts(script: str, name: str) -> bool:
    """Whether a script that told of the error itself starts a program of this name."""
    if not re.search(r"\bsubprocess\b|\bcreate_subprocess_exec\b", script):
        return False
    quoted = re.escape(name)
    return bool(re.search(rf"\[\s*['\"]{quoted}['\"]", script)) and shlex.quote(name) == name
