"""A script that could not start a program -> the program's name, where it is really missing or out of reach."""

from __future__ import annotations

import os
import re
import shlex

from skillkit.core.run.hints.failure import Failure, tail

__all__ = ["missing_program", "name_of_missing"]

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
