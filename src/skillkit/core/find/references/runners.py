"""The words of a command -> which file they run and with which arguments; None for what runs no file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from skillkit.core.find.references.shell_words import Word

__all__ = ["Invocation", "invocation_in"]

PYTHON = re.compile(r"python(?:3(?:\.\d+)?)?|py|pypy3?")
SHELLS = ("bash", "sh", "zsh", "dash", "ksh")
SHELL_FLAGS = ("-o", "-O", "+o")
NODE_FLAGS = ("-r", "--require", "--import", "--loader", "--experimental-loader", "--env-file", "-C", "--conditions")
# Programs that run a file, and those of their options that take a value.
RUNNERS: dict[str, tuple[str, ...]] = {
    "python": ("-X", "-W"),
    **dict.fromkeys(SHELLS, SHELL_FLAGS),
    **dict.fromkeys(("node", "tsx", "ts-node", "ts-node-esm"), NODE_FLAGS),
    **dict.fromkeys(("bun", "deno"), ("--config", "-c", "--env-file", "--import-map")),
    "ruby": ("-I", "-r"),
    "perl": ("-I", "-M"),
    **dict.fromkeys(("pwsh", "powershell"), ("-ExecutionPolicy",)),
}
# What stands before a runner or a file and takes both as arguments.
UV_FLAGS = ("--with", "--python", "-p", "--extra", "--group", "--project", "--directory", "--with-requirements")
WRAPPERS: dict[tuple[str, ...], tuple[str, ...]] = {
    ("uv", "run"): (*UV_FLAGS, "--env-file"),
    ("poetry", "run"): (),
    ("pdm", "run"): (),
    ("pipenv", "run"): (),
    ("rye", "run"): (),
    ("pnpm", "exec"): (),
    ("pnpm", "dlx"): (),
    ("npx",): ("-p", "--package"),
    ("bunx",): (),
    ("exec",): (),
    ("env",): ("-u",),
}
WORDS_IN_ONE_COMMAND = 1_000  # no command in instructions has more
NO_FILE = {"python": ("-c", "-"), "node": ("-e", "--eval", "-p", "--print", "-"), "ruby": ("-e",), "perl": ("-e",)}


@dataclass(frozen=True, slots=True)
class Invocation:
    """A file that is run."""

    script: Word
    arguments: tuple[Word, ...]
    has_runner: bool
    is_module: bool = False
    """Named as `scripts.x` after `python -m`."""


def invocation_in(words: Sequence[Word]) -> Invocation | None:
    if len(words) > WORDS_IN_ONE_COMMAND:
        return None
    rest, is_wrapped = list(words), False
    while rest and (wrapper := wrapper_at(rest)) is not None:
        rest = after_options(rest[len(wrapper) :], WRAPPERS[wrapper])
        is_wrapped = True
    if not rest:
        return None
    name = runner_named(rest[0].text)
    if name is None:
        return Invocation(rest[0], tuple(rest[1:]), has_runner=is_wrapped)
    return run_by(name, rest[1:])


def run_by(name: str, rest: list[Word]) -> Invocation | None:
    if name in ("bun", "deno") and rest and rest[0].text == "run":
        rest = rest[1:]
    elif name == "deno":
        return None
    refused = ("-c",) if name in SHELLS else NO_FILE.get(name, ())
    options = rest[: len(rest) - len(after_options(rest, RUNNERS[name]))]
    if any(word.text in refused for word in options) or (rest and rest[0].text in refused):
        return None
    if name == "python" and (modules := [at for at, word in enumerate(options) if word.text == "-m"]):
        rest = rest[modules[0] + 1 :]
        return Invocation(rest[0], tuple(rest[1:]), has_runner=True, is_module=True) if rest else None
    rest = after_options(rest, RUNNERS[name])
    return Invocation(rest[0], tuple(rest[1:]), has_runner=True) if rest else None


def wrapper_at(words: Sequence[Word]) -> tuple[str, ...] | None:
    texts = tuple(word.text for word in words[:2])
    first = texts[0].rpartition("/")[2]
    return next((wrapper for wrapper in WRAPPERS if (first, *texts[1:])[: len(wrapper)] == wrapper), None)


def runner_named(text: str) -> str | None:
    name = text.rpartition("/")[2].removesuffix(".exe")
    if PYTHON.fullmatch(name):
        return "python"
    return name if name in RUNNERS else None


def after_options(words: Sequence[Word], valued: Sequence[str]) -> list[Word]:
    """What is left behind the options, and behind the values of those that take one."""
    rest = list(words)
    while rest and rest[0].text[:1] in ("-", "+") and len(rest[0].text) > 1:
        rest = rest[2 if rest[0].text in valued else 1 :]
    return rest
