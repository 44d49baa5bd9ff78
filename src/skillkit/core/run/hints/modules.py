"""A script that could not load a module -> which one, for which interpreter, and how it gets it."""

from __future__ import annotations

import os
import posixpath
import re
import shlex
import sys
from glob import escape, glob

from skillkit.core.paths import is_inside
from skillkit.core.run.hints.failure import Failure, tail
from skillkit.core.values.runs import PREPARE

__all__ = ["PACKAGES", "missing_module"]

# Where the package that brings a module is called otherwise.
PACKAGES = {
    "PIL": "pillow",
    "yaml": "PyYAML",
    "cv2": "opencv-python",
    "fitz": "pymupdf",
    "docx": "python-docx",
    "pptx": "python-pptx",
    "sklearn": "scikit-learn",
    "bs4": "beautifulsoup4",
    "dotenv": "python-dotenv",
    "google": "",
    "dateutil": "python-dateutil",
    "serial": "pyserial",
    "Crypto": "pycryptodome",
    "jwt": "PyJWT",
    "OpenSSL": "pyOpenSSL",
    "magic": "python-magic",
    "attr": "attrs",
    "skimage": "scikit-image",
    "win32com": "pywin32",
    "usb": "pyusb",
    "github": "PyGithub",
    "telegram": "python-telegram-bot",
    "discord": "discord.py",
    "slack_sdk": "slack-sdk",
    "markdown_it": "markdown-it-py",
    "pkg_resources": "setuptools",
}
"""Import name -> package name; empty where several packages share the name."""

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
ENVIRONMENT = "~/.venvs/skills"


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
    return _with_remedy(f"The script asks for the Python package {asked['name']!r}", asked["name"], failure, "")


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
    package = PACKAGES.get(top, top.replace("_", "-"))
    said = f"The Python module {name!r} is missing"
    return _with_remedy(said, package, failure, found["program"] or "")


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


def _with_remedy(said: str, package: str, failure: Failure, program: str) -> str:
    python = program or _python_of(failure)
    skipped = _skipped_environment(failure)
    if skipped:
        said += f" for {python}; the environment {skipped} is not used, because it lies where scripts may write"
        python = os.path.realpath(python) if python else ""
    elif python:
        said += f" for {python}"
    if not package or (not python and failure.command.is_program):
        return f"{said}."
    if not failure.command.is_program:
        return f"{said}: {prepare_remedy(failure.command.skill_name)}"
    command = "" if skipped else _pip_command(python, package)
    command = command or _environment_command(python, package)
    return f"{said}: {command}" if command else f"{said}; install it there."


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


def _prefix(python: str) -> str:
    own = os.path.dirname(os.path.dirname(python))
    if os.path.isfile(os.path.join(own, "pyvenv.cfg")):
        return own
    return os.path.dirname(os.path.dirname(os.path.realpath(python)))


def _pip_command(python: str, package: str) -> str:
    """Empty where pip would refuse, or install to a place that a run does not see."""
    library = f"{escape(_prefix(python))}/lib/python3*"
    sites = glob(f"{library}/site-packages")
    can_write = any(os.access(site, os.W_OK) for site in sites)
    has_pip = any(os.path.isdir(os.path.join(site, "pip")) for site in sites)
    if not can_write or not has_pip or glob(f"{library}/EXTERNALLY-MANAGED"):
        return ""
    return f"{shlex.quote(python)} -m pip install {package}"


def _environment_command(python: str, package: str) -> str:
    """A new environment, first on PATH, is what a run finds; the system's Python may not be changed."""
    base = os.path.realpath(python)
    if not glob(f"{escape(os.path.dirname(os.path.dirname(base)))}/lib/python3*/ensurepip"):
        return ""
    return (
        f"{shlex.quote(base)} -m venv {ENVIRONMENT} && {ENVIRONMENT}/bin/python -m pip install {package} && "
        f"export PATH={ENVIRONMENT}/bin:$PATH"
    )


def _node(failure: Failure, line: str) -> str:
    if failure.command.is_program:
        return ""
    found = NODE.search(line)
    if found is None or found["name"].startswith("node:"):
        return ""
    return f"The Node package {found['name']!r} is missing: {prepare_remedy(failure.command.skill_name)}"


def prepare_remedy(skill_name: str) -> str:
    return f"{PREPARE}{shlex.quote(skill_name)}"
