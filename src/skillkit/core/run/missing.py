"""What a failing script wrote, and the PATH it had -> the program it could not start, if that is proven."""

from __future__ import annotations

import os
import re

__all__ = ["missing_program"]

LINES = 40
NAME = r"(?P<name>[A-Za-z0-9_][A-Za-z0-9_.+-]{0,63})"
# A folder that the walls hide may answer with either.
ABSENT = r"(?:No such file or directory|Permission denied)"
# Python says the same of a file; only these functions look for programs.
STARTING = re.compile(r"\bin (?:_execute_child|_execvpe|execvpe?)$")
PYTHON = re.compile(rf"^(?:FileNotFoundError: \[Errno 2\]|PermissionError: \[Errno 13\]) {ABSENT}: '{NAME}'$")
STARTERS = "env|nice|nohup|setsid|stdbuf|time|timeout|xargs"
SPOKEN = re.compile(
    "|".join(
        each.replace("<name>", f"<name{number}>")
        for number, each in enumerate(
            (
                rf"\bspawn(?:Sync)? {NAME} (?:ENOENT|EACCES)\b",
                rf": {ABSENT} - {NAME} \(Errno::E(?:NOENT|ACCES)\)",
                rf"^Can't exec \"{NAME}\": {ABSENT} at ",
                rf": line \d+: {NAME}: command not found$",
                rf"^\S+: \d+: {NAME}: (?:not found|Permission denied)$",
                rf"^(?:\S*/)?(?:{STARTERS}): (?:failed to run command )?['\u2018`\"]?{NAME}['\u2019\"]?: {ABSENT}",
            )
        )
    )
)


def missing_program(stderr: str, path: str) -> str:
    """Its name where no folder of PATH has it, else nothing: what a script wrote proves nothing by itself."""
    lines = stderr.splitlines()[-LINES:]
    is_starting = any(STARTING.search(line) for line in lines)
    for line in reversed(lines):
        spoken = SPOKEN.search(line)
        name = next(filter(None, spoken.groupdict().values()), "") if spoken else ""
        if not name and is_starting and (raised := PYTHON.match(line)):
            name = raised["name"]
        if name:
            return "" if _may_be_on(path, name) else name
    return ""


def _may_be_on(path: str, name: str) -> bool:
    """A folder that is not absolute was looked for from wherever the script was."""
    folders = path.split(os.pathsep)
    return any(not os.path.isabs(each) or os.path.lexists(os.path.join(each, name)) for each in folders)
