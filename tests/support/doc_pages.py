"""README and docs -> the blocks on each page, and how the output that a page shows is compared.

What a reader does not see stands in comments before a block:

    <!-- not run: reason -->            it cannot run here; the reasons are counted
    <!-- keys: 2 -->                    what the person presses at the questions of the next block (else 3, no)
    <!-- ends with: Ctrl-C -->          what the person presses once it waits for them, else it would never end
    <!-- in the background -->          it waits for what comes later on the page
    <!-- where 3f2a: COMMAND -->        what stands for 3f2a in the next block
    <!-- run: bash ... -->              more lines in between, bash or python

A fence with a title is the file of that name: it is written when the page comes to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

__all__ = ["LANGUAGES", "ROOT", "Block", "Command", "as_pattern", "blocks_of", "commands_of", "is_as_shown", "pages"]

ROOT = Path(__file__).resolve().parents[2]
LANGUAGES = ("bash", "console", "css", "html", "http", "ini", "js", "json", "python", "text", "toml", "xml", "yaml")

FENCE = re.compile(r"^(?P<indent> *)```(?P<language>[\w+-]*)(?P<rest>[^`]*)$")
TITLE = re.compile(r'title="([^"]+)"')
COMMENT = re.compile(
    r"<!-- (not run|keys|ends with|in the background|where|run)(?: ([^\s:]+))?(?:: ?(.*?))?\s*-->", re.DOTALL
)
QUESTION = "Press 1, 2 or 3."

HOLE = re.compile(r"^(?:\.\.\.|\[ .* \])$")


@dataclass(frozen=True)
class Command:
    """One line behind a `$`, and what the page shows of its output; None where it shows nothing."""

    text: str
    output: str | None

    @property
    def may_fail(self) -> bool:
        """A page that shows skillkit's own sentence or its no, or leaves off at a question, shows a failure."""
        shown = self.output or ""
        return bool(re.search(r"^skillkit: |^ *decision +deny", shown, re.MULTILINE)) or self.ends_with_question

    @property
    def ends_with_question(self) -> bool:
        lines = (self.output or "").strip().splitlines()
        return bool(lines) and lines[-1].startswith(QUESTION)


@dataclass(frozen=True)
class Block:
    language: str
    text: str
    line: int
    title: str = ""
    not_run: str = ""
    keys: str = ""
    ends_with: str = ""
    in_background: bool = False
    where: dict[str, str] = field(default_factory=dict)


def pages() -> list[str]:
    """Relative to the repository."""
    found = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md", *sorted(ROOT.glob("docs/**/*.md"))]
    return [str(path.relative_to(ROOT)) for path in found]


def blocks_of(text: str) -> Iterator[Block]:
    """In the order of the page, the unseen ones too."""
    lines = text.splitlines()
    said: dict[str, str] = {}
    where: dict[str, str] = {}
    number = 0
    while number < len(lines):
        opened = FENCE.match(lines[number])
        if lines[number].lstrip().startswith("<!-- "):
            end = next(index for index in range(number, len(lines)) if "-->" in lines[index])
            comment = COMMENT.search("\n".join(lines[number : end + 1]))
            if comment is not None and comment[1] == "run":
                yield replace(unseen(comment[3], number + 1), in_background="in the background" in said, where=where)
                said, where = {}, {}
            elif comment is not None and comment[1] == "where":
                where[comment[2]] = comment[3]
            elif comment is not None:
                said[comment[1]] = comment[3] or "yes"
            number = end + 1
        elif opened is not None:
            end = closing_line(lines, number)
            inside = "\n".join(line.removeprefix(opened["indent"]) for line in lines[number + 1 : end])
            title = TITLE.search(opened["rest"])
            yield Block(
                language=opened["language"],
                text=inside + "\n",
                line=number + 1,
                title=title[1] if title else "",
                not_run=said.get("not run", ""),
                keys=said.get("keys", ""),
                ends_with=said.get("ends with", ""),
                in_background="in the background" in said,
                where=where,
            )
            said, where, number = {}, {}, end + 1
        else:
            number += 1


def unseen(text: str, line: int) -> Block:
    language, _, body = text.partition("\n")
    return Block(language=language.strip(), text=body + "\n", line=line)


def closing_line(lines: list[str], opening: int) -> int:
    return next(index for index in range(opening + 1, len(lines)) if lines[index].strip() == "```")


def commands_of(console: str) -> list[Command]:
    """A line that begins with `> ` continues the command above it."""
    found: list[tuple[list[str], list[str]]] = []
    for line in console.splitlines():
        if line.startswith("$ "):
            found.append(([line[2:]], []))
        elif line.startswith("> ") and found and not found[-1][1]:
            found[-1][0].append(line[2:])
        elif found:
            found[-1][1].append(line)
        elif line:
            raise AssertionError(f"output before the first command: {line!r}")
    return [Command("\n".join(words), "\n".join(output).strip() or None) for words, output in found]


def as_pattern(shown: str) -> str:
    """Digests, times, durations and what was cut off may be others; a line `...` stands for any lines."""
    lines = [line.strip() for line in shown.strip().splitlines()]
    return r"\s*".join(".*?" if HOLE.match(line) else line_pattern(line) for line in lines if line)


def line_pattern(line: str) -> str:
    words = without_gutter(line).split()
    units = [*words[1:], ""]
    return r"\s+".join(word_pattern(word, unit) for word, unit in zip(words, units, strict=True))


def word_pattern(word: str, unit: str) -> str:
    if unit.rstrip(".") in ("s", "ms") and re.fullmatch(r"[\d.]+", word):
        return r"[\d.]+"
    if word.endswith("…"):
        return re.escape(word[:-1]) + r"[^\n]*?"
    if re.fullmatch(r"[0-9a-f]{12,64}[.,]?", word):
        return "[0-9a-f]+" + re.escape(word[-1:] if word[-1] in ".," else "")
    if re.fullmatch(r"(?:\d{4}-)?\d\d-\d\d|\d\d:\d\d(?::\d\d)?", word):
        return re.sub(r"\d+", r"\\d+", re.escape(word))
    return ".*?".join(re.escape(part) for part in word.split("..."))


def without_gutter(text: str) -> str:
    return text.replace("│", " ")


def is_as_shown(shown: str, real: str) -> bool:
    """White space and the edges of boxes do not count."""
    told = "\n".join(without_gutter(line).strip() for line in real.splitlines() if line.strip())
    return re.fullmatch(as_pattern(shown), told.strip(), re.DOTALL) is not None
