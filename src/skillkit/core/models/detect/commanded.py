"""Instructions -> the files outside `scripts/` and the top of the skill that they write as a command.

Where scripts lie is a convention, and some authors have another: `node lib/cli.js`. One look at each line, by words;
what is only mentioned is not listed.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence

from skillkit.core.models.detect.languages import INTERPRETER_MAP

__all__ = ["commanded_paths"]

READ_CHARACTERS = 200_000
MOST_PATHS = 50
RUNNER = re.compile(
    r"(?:.*/)?(?:python(?:3(?:\.\d+)?)?|py|bash|sh|zsh|node|ruby|perl|tsx|ts-node|bun|deno|pwsh|powershell|uv|npx|run|exec)"
)
SHELL_FENCE = re.compile(r"(?:```+|~~~+)\s*(?:bash|sh|shell|zsh|console|terminal|shellscript|powershell|pwsh)\b")
FENCES = ("```", "~~~")
# The skill's own folder, however it is written, and its folder among skills.
OWN_FOLDER = re.compile(
    r"(?:\$\{?[A-Z_]*SKILL_?(?:DIR|BASE_DIR|ROOT|PATH|FOLDER)\}?|\{\{?(?:baseDir|base_dir|skill_dir)\}?\}|\./)/?"
    r"|<[^<>/]*skill[^<>/]*>/|(?:.*/)?skills/[^/]+/"
)
BETWEEN = re.compile(r"[\s\"'()|;&,]+")
PROMPTS = ("$", "%", ">")
ENDINGS = tuple(INTERPRETER_MAP)


def commanded_paths(text: str) -> list[str]:
    """Relative, without detours, in order of appearance, each once; whether they exist is not looked at."""
    found: dict[str, None] = {}
    is_fenced = is_shell = False
    for line in text[:READ_CHARACTERS].splitlines():
        bare = line.strip()
        if bare.startswith(FENCES):
            is_fenced = not is_fenced
            is_shell = is_fenced and SHELL_FENCE.match(bare) is not None
        elif "/" in bare and any(ending in bare for ending in ENDINGS):
            found.update(dict.fromkeys(_paths_in(bare, is_fenced=is_fenced, is_shell=is_shell)))
            if len(found) >= MOST_PATHS:
                break
    return list(found)


def _paths_in(line: str, *, is_fenced: bool, is_shell: bool) -> Iterator[str]:
    """A line in a block is code as a whole; elsewhere what stands between backticks is."""
    pieces = [line] if is_fenced else line.split("`")[1::2]
    for piece in pieces:
        words = [word for word in BETWEEN.split(piece) if word]
        words = words[1:] if words and words[0] in PROMPTS else words
        for position, word in enumerate(words):
            if not word.lower().endswith(ENDINGS):
                continue
            path = _plain_path(word)
            # A first word alone is a command in a shell's block; elsewhere it needs arguments, or it is only a name.
            is_first = position == 0 and (is_shell or (len(words) > 1 and not is_fenced) or word.startswith("./"))
            if path and (is_first or _is_run(words[:position])):
                yield path


def _is_run(before: Sequence[str]) -> bool:
    """Whether a program that runs files stands right before, or before its own options."""
    for word in reversed(before):
        if not word.startswith("-"):
            return RUNNER.fullmatch(word) is not None
    return False


def _plain_path(word: str) -> str:
    """Empty for what is no path below the skill, or is found anyway."""
    path = word.replace("\\", "/")
    own = OWN_FOLDER.match(path)
    path = posixpath.normpath(path[own.end() :] if own else path)
    is_below = path[0] not in "/~$<{." and "://" not in path and "/" in path
    return path if is_below and not path.startswith("scripts/") and "\0" not in path else ""
