"""Text of a shell -> which file each command in it runs, and with which arguments."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from skillkit.core.models.shell import Command, Word, commands_in

__all__ = ["Invocation", "invocation_in", "simple_commands", "typed_text"]

ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
PROMPT = re.compile(r"[ \t]*(?:[$%\u276f\u279c]|PS [^>\n]{0,80}>)[ \t]+")
OPENING = frozenset("if for while until case select function".split())
CLOSING = frozenset("fi done esac".split())
SHAPING = OPENING | CLOSING | frozenset("then do else elif ! time".split())

PYTHON = re.compile(r"python(?:3(?:\.\d+)?)?|py|pypy3?")
SHELLS = ("bash", "sh", "zsh", "dash", "ksh")
NODE_FLAGS = ("-r", "--require", "--import", "--loader", "--experimental-loader", "--env-file", "-C", "--conditions")
# Programs that run a file, and those of their options that take a value.
RUNNERS: dict[str, tuple[str, ...]] = {
    "python": ("-X", "-W"),
    **dict.fromkeys(SHELLS, ("-o", "-O", "+o")),
    **dict.fromkeys(("node", "tsx", "ts-node", "ts-node-esm"), NODE_FLAGS),
    **dict.fromkeys(("bun", "deno"), ("--config", "-c", "--env-file", "--import-map")),
    "ruby": ("-I", "-r"),
    "perl": ("-I", "-M"),
    **dict.fromkeys(("pwsh", "powershell"), ("-ExecutionPolicy",)),
}
# What stands before a runner or a file and takes both as arguments.
UV_FLAGS = tuple("--with --python -p --extra --group --project --directory --with-requirements --env-file".split())
WRAPPERS: dict[tuple[str, ...], tuple[str, ...]] = {
    ("uv", "run"): UV_FLAGS,
    ("npx",): ("-p", "--package"),
    ("env",): ("-u",),
    **dict.fromkeys([(each, "run") for each in ("poetry", "pdm", "pipenv", "rye")], ()),
    **dict.fromkeys([("pnpm", "exec"), ("pnpm", "dlx"), ("bunx",), ("exec",)], ()),
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


def typed_text(text: str) -> str:
    """Where prompts are shown, only what is typed at them; what is printed becomes empty lines."""
    lines = text.split("\n")
    if not any(PROMPT.match(line) for line in lines):
        return text
    kept, goes_on = [], False
    for line in lines:
        prompt = PROMPT.match(line)
        typed = line[prompt.end() :] if prompt else line if goes_on else ""
        goes_on = typed.rstrip("\r").endswith("\\")
        kept.append(typed)
    return "\n".join(kept)


def simple_commands(text: str) -> Iterator[Command]:
    """Without the words that only shape the flow; what stands in a condition or a loop is not plain."""
    depth = 0
    for command in commands_in(text, is_prose=True):
        start = 0
        for word in command.words:
            if word.text not in SHAPING and not ASSIGNMENT.match(word.raw):
                break
            depth = max(0, depth + (word.text in OPENING) - (word.text in CLOSING))
            start += 1
        command.is_plain = command.is_plain and not start and not depth
        command.words = command.words[start:]
        if command.words:
            yield command


def invocation_in(words: Sequence[Word]) -> Invocation | None:
    if len(words) > WORDS_IN_ONE_COMMAND:
        return None
    rest, is_wrapped = list(words), False
    while rest and (wrapper := _wrapper_at(rest)) is not None:
        rest = _after_options(rest[len(wrapper) :], WRAPPERS[wrapper])
        is_wrapped = True
    if not rest:
        return None
    name = _runner_named(rest[0].text)
    if name is None:
        return Invocation(rest[0], tuple(rest[1:]), has_runner=is_wrapped)
    return _run_by(name, rest[1:])


def _run_by(name: str, rest: list[Word]) -> Invocation | None:
    if name in ("bun", "deno") and rest and rest[0].text == "run":
        rest = rest[1:]
    elif name == "deno":
        return None
    refused = ("-c",) if name in SHELLS else NO_FILE.get(name, ())
    behind = _after_options(rest, RUNNERS[name])
    options = rest[: len(rest) - len(behind)]
    if any(word.text in refused for word in options) or (rest and rest[0].text in refused):
        return None
    if name == "python" and (modules := [at for at, word in enumerate(options) if word.text == "-m"]):
        rest = rest[modules[0] + 1 :]
        return Invocation(rest[0], tuple(rest[1:]), has_runner=True, is_module=True) if rest else None
    return Invocation(behind[0], tuple(behind[1:]), has_runner=True) if behind else None


def _wrapper_at(words: Sequence[Word]) -> tuple[str, ...] | None:
    texts = tuple(word.text for word in words[:2])
    first = texts[0].rpartition("/")[2]
    return next((wrapper for wrapper in WRAPPERS if (first, *texts[1:])[: len(wrapper)] == wrapper), None)


def _runner_named(text: str) -> str | None:
    name = text.rpartition("/")[2].removesuffix(".exe")
    if PYTHON.fullmatch(name):
        return "python"
    return name if name in RUNNERS else None


def _after_options(words: Sequence[Word], valued: Sequence[str]) -> list[Word]:
    """What is left behind the options, and behind the values of those that take one."""
    rest = list(words)
    while rest and rest[0].text[:1] in ("-", "+") and len(rest[0].text) > 1:
        rest = rest[2 if rest[0].text in valued else 1 :]
    return rest
