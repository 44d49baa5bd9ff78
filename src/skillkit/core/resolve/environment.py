"""Policy and the caller's environment -> the script's environment, name by name, and the programs on its PATH.

A program is the real one, found outside skill and workspace: what a script could have put there never runs another.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from skillkit._version import __version__
from skillkit.core.exceptions import InterpreterNotAllowedError, InterpreterNotFoundError
from skillkit.core.models.detect import LANGUAGE_INTERPRETERS
from skillkit.core.paths import is_decided_inside, is_inside, is_of_packages, real_path
from skillkit.core.values.names import is_never_passed
from skillkit.core.values.policy import ScriptPolicy
from skillkit.core.values.runs import OwnProgram, Prepared

__all__ = [
    "Interpreter",
    "Runner",
    "find_program",
    "forget_interpreters",
    "interpreter_for",
    "is_within",
    "own_programs",
    "programs_on",
    "script_environment",
    "search_path",
    "version_of",
    "with_prepared",
]

PASSED = frozenset(
    "LANG TZ HOME TMPDIR LC_ALL LC_CTYPE LC_COLLATE LC_MESSAGES LC_MONETARY LC_NUMERIC LC_TIME LC_ADDRESS "
    "LC_IDENTIFICATION LC_MEASUREMENT LC_NAME LC_PAPER LC_TELEPHONE".split()
)
DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"
# Folders in which languages look for code: passed without those that scripts can write.
CODE_FOLDERS = frozenset("NODE_PATH GEM_HOME GEM_PATH PYTHONUSERBASE PYTHONPYCACHEPREFIX PERLLIB".split())
FIXED = {"PYTHONUTF8": "1", "PYTHONDONTWRITEBYTECODE": "1", "GIT_CONFIG_NOSYSTEM": "1"}
# Without it, bash looks the user's shell up in the system's list of users at each start, which takes its time.
USUAL = {"SHELL": "/bin/sh"} if os.name == "posix" else {}

Runner = Callable[[Sequence[str], str], str]
"""Runs a program briefly, with cwd `/` and the given PATH, and gives its output; empty when it failed."""

# `sh` counts as bash: it runs shell scripts where bash is missing.
PROGRAMS = {"bash": ("bash", "sh"), "python3": ("python3", "python"), "cmd": ("cmd.exe", "cmd")}
LISTED_AS = {"powershell": "pwsh"}
SYSTEM_FOLDERS = frozenset(("/usr/bin", "/bin", "/usr/local/bin", "/usr/sbin", "/sbin", "/usr/local/sbin"))
# What makes a program say where its real binary is.
SELF_QUESTIONS = {
    "python3": ("-I", "-c", "import sys; print(sys.executable)"),
    "node": ("-e", "console.log(process.execPath)"),
    "ruby": ("-e", "puts RbConfig.ruby"),
    "perl": ("-e", "print $^X"),
}
# Scripts by nature: that they start with `#!` does not make them shims.
SCRIPT_PROGRAMS = frozenset(("tsx", "ts-node"))
SHIM_PROGRAMS = frozenset(("volta-shim", "mise", "rtx", "asdf", "shim"))
TYPES_STRIPPED_SINCE = "22.18 or 23.6"
LEADING_ARGUMENTS = {"deno": ("run",), "pwsh": ("-NoProfile", "-File"), "cmd": ("/d", "/c")}

VERSION_CHARACTERS = 200

_found: dict[tuple[str, str], str] = {}
_versions: dict[tuple[object, ...], str] = {}


def script_environment(
    policy: ScriptPolicy,
    own: Mapping[str, str],
    *,
    skill_name: str,
    skill_version: str | None,
    base_directory: Path,
    workspace: Path | None,
) -> dict[str, str]:
    """An allow-list, what policy passes by name, and what the script should know of its skill and its place."""
    named = own if policy.inherit_environment else policy.pass_environment
    # Only names that are set are asked for, each once: another thread may remove one meanwhile.
    asked = (*PASSED.intersection(own), *(name for name in named if not is_never_passed(name)))
    built = USUAL | {name: value for name in asked if (value := own.get(name)) is not None}
    for name in CODE_FOLDERS & built.keys():
        if folders := _outside_folders(built.pop(name), base_directory, workspace):
            built[name] = folders
    folder = str(base_directory)
    built |= FIXED | {
        "PATH": search_path(own, base_directory, workspace),
        "SKILL_NAME": skill_name,
        "SKILL_BASE_DIR": folder,
        "SKILL_DIR": folder,
        "CLAUDE_SKILL_DIR": folder,
        "SKILL_VERSION": skill_version or "0.0.0",
        "SKILLKIT_VERSION": __version__,
    }
    if workspace is not None:
        built |= {"SKILL_WORKSPACE": str(workspace), "CLAUDE_PROJECT_DIR": str(workspace)}
    if "\0" in "".join(built.values()):
        return {name: value for name, value in built.items() if "\0" not in value}
    return built


def with_prepared(environment: dict[str, str], prepared: Sequence[Prepared]) -> dict[str, str]:
    """The same, where programs and packages that were prepared are found before others."""
    environment = dict(environment) if prepared else environment
    for each in prepared:
        environment["PATH"] = os.pathsep.join((str(each.programs), environment["PATH"]))
        if each.kind == "node":
            folders = (str(each.tree / "node_modules"), environment.get("NODE_PATH", ""))
            environment["NODE_PATH"] = os.pathsep.join(filter(None, folders))
    return environment


def search_path(own: Mapping[str, str], base_directory: Path, workspace: Path | None) -> str:
    """Absolute folders only, none of them inside the skill or the workspace, none with programs of npm's packages."""
    return _outside_folders(own.get("PATH") or DEFAULT_PATH, base_directory, workspace) or DEFAULT_PATH


@lru_cache(maxsize=256)
def _outside_folders(path: str, base_directory: Path, workspace: Path | None) -> str:
    """Looked at once: following the links of a long PATH takes as long as starting a small script."""
    closed = [os.path.realpath(folder) for folder in (base_directory, workspace) if folder is not None]
    folders = [folder for folder in path.split(os.pathsep) if os.path.isabs(folder) and not is_of_packages(folder)]
    return os.pathsep.join(folder for folder in folders if not is_decided_inside(folder, closed))


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
            program = find_program(name, path, run, closed)
            if program and (language != "typescript" or name != "node" or strips_types(program, path, run)):
                return Interpreter(name, program, LEADING_ARGUMENTS.get(name, ()))
        elif not unlisted and any(programs_on(name, path)):
            unlisted = name
    if unlisted:
        raise InterpreterNotAllowedError(
            f"{unlisted!r} may not run scripts here. Allowed: {', '.join(listed) or 'none'}. "
            "Add it to 'allowed_interpreters' if that is wanted.",
            interpreter=unlisted,
            allowed=listed,
        )
    raise InterpreterNotFoundError(
        _not_found(language, tuple(dict.fromkeys(names)), listed, path), interpreter=names[0]
    )


def _not_found(language: str, names: tuple[str, ...], listed: tuple[str, ...], path: str) -> str:
    """Of those that may run it; what is there may be too old for it."""
    usable = [name for name in names if name in listed]
    if language == "typescript" and "node" in usable and any(programs_on("node", path)):
        return (
            f"The 'node' on PATH runs no TypeScript by itself; {TYPES_STRIPPED_SINCE} and later do, but for Debian's "
            "own. Install one of these, or 'tsx' and add that to 'allowed_interpreters'."
        )
    wanted = " or ".join(map(repr, usable or names))
    remedy = "Install it or remove the script." if usable else "Install one and add it to 'allowed_interpreters'."
    return f"{wanted} is not on PATH; a {language} script needs it. {remedy}"


def find_program(name: str, path: str, run: Runner, closed: Sequence[Path]) -> str:
    """Looked up once for each PATH, because asking a version manager takes a tenth of a second."""
    known = _found.get((name, path))
    if known and os.access(known, os.X_OK) and not is_within(known, closed):
        return known
    for candidate in programs_on(name, path):
        program = "" if is_within(candidate, closed) else _real_program(name, candidate, path, run)
        if program and not is_within(program, closed):
            _found[name, path] = program
            return program
    return ""


def own_programs(names: Iterable[str], path: str, run: Runner, closed: Sequence[Path] = ()) -> tuple[OwnProgram, ...]:
    """Of these interpreters, those that the caller's PATH gives from elsewhere than the system's own folders."""
    found: list[OwnProgram] = []
    for name in sorted(names):
        first = next((each for each in programs_on(name, path) if not is_within(each, closed)), "")
        if not first or os.path.dirname(first) in SYSTEM_FOLDERS:
            continue
        program = find_program(name, path, run, closed)
        if program:
            called = [each for each in PROGRAMS.get(name, (name,)) if any(_on(each, path))]
            found += [OwnProgram(each, program, is_shim=program != first) for each in called]
    return tuple(found)


def _on(program: str, path: str) -> Iterable[str]:
    return (folder for folder in path.split(os.pathsep) if os.access(os.path.join(folder, program), os.X_OK))


def forget_interpreters() -> None:
    """Look everything up again, as after an installation."""
    _found.clear()


def programs_on(name: str, path: str) -> Iterable[str]:
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


def _real_program(name: str, candidate: str, path: str, run: Runner) -> str:
    """The candidate itself, or the binary behind a version manager's shim; a venv's link is kept as it is."""
    if name in SCRIPT_PROGRAMS and not _is_version_manager(candidate):
        return candidate
    if not _is_shim(candidate):
        return candidate
    question = SELF_QUESTIONS.get(name)
    answer = run((candidate, *question), path).strip() if question else ""
    is_binary = os.path.isabs(answer) and os.access(answer, os.X_OK) and not _is_shim(answer)
    return answer if is_binary else ""


def _is_shim(candidate: str) -> bool:
    """A program that is itself a script, or a link to a version manager, only starts another one."""
    if _is_version_manager(candidate):
        return True
    try:
        with open(candidate, "rb", buffering=0) as file:
            return file.read(2) == b"#!"
    except OSError:
        return False


def _is_version_manager(candidate: str) -> bool:
    return os.path.basename(os.path.realpath(candidate)) in SHIM_PROGRAMS


def version_of(program: str, path: str, run: Runner) -> str:
    """What an interpreter says of itself, asked once for each file that it is; empty where it says nothing."""
    try:
        seen = os.stat(program)
    except OSError:
        return ""
    key = (program, seen.st_dev, seen.st_ino, seen.st_mtime_ns, seen.st_size)
    if key not in _versions:
        _versions[key] = next(iter(run((program, "--version"), path).strip().splitlines()), "")[:VERSION_CHARACTERS]
    return _versions[key]


def strips_types(node: str, path: str, run: Runner) -> bool:
    """Node runs TypeScript by itself since 22.18 and 23.6, where it was not built without: Debian's is."""
    return run((node, "-p", "process.features.typescript"), path).strip() in ("strip", "transform")
