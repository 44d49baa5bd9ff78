"""A skill folder -> every way in which it departs from the open standard (agentskills.io)."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

from skillkit.core.exceptions import SkillKitError, SkillParsingError
from skillkit.core.find.reading import NAME_LIMIT
from skillkit.core.find.walk import SKILL_FILE, Walk
from skillkit.core.models import skill_file_bytes
from skillkit.core.models.frontmatter import Frontmatter, decode, read_frontmatter, text_of
from skillkit.core.values.skills import Diagnostic
from skillkit.core.values.text import grouped

__all__ = ["NAME", "NAME_LIMIT", "skill_files_and_problems", "validate_skill_file"]

NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
DESCRIPTION_LIMIT = 1024
COMPATIBILITY_LIMIT = 500
BODY_LINES = 500
BODY_CHARACTERS = 20_000  # about 5,000 tokens
STANDARD_FIELDS = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")

_Found: TypeAlias = tuple[str, str, str, str | int, str]
"""Severity, code, message, the field or the line, remedy."""


def skill_files_and_problems(path: Path) -> tuple[list[Path], list[Diagnostic]]:
    """The file itself, or every SKILL.md at or below a folder, and what kept the search from looking further."""
    if not os.path.isdir(path):
        return [path], []
    walk = Walk(str(path))
    files = sorted(Path(found) for found, _, _ in walk.files())
    nothing = [] if files else [Diagnostic("error", "no-skill", "There is no SKILL.md here.", path)]
    return files, nothing + walk.problems


def validate_skill_file(file: Path) -> list[Diagnostic]:
    """All problems at once, in the order of their lines."""
    try:
        raw = skill_file_bytes(file)
        frontmatter = read_frontmatter(raw)
    except SkillParsingError as error:
        return [Diagnostic("error", error.code, str(error), file, error.line, error.remedy)]
    except SkillKitError as error:
        return [Diagnostic("error", "unreadable-file", str(error), file)]
    problems = []
    for check in CHECKS:
        for severity, code, message, place, remedy in check(file, raw, frontmatter):
            line = place if isinstance(place, int) else frontmatter.lines.get(place, 1)
            problems.append(Diagnostic(severity, code, message, file, line, remedy))
    return sorted(problems, key=lambda problem: problem.line or 0)


def _file_problems(path: Path, raw: bytes, frontmatter: Frontmatter) -> Iterator[_Found]:
    if path.name != SKILL_FILE:
        message = f"The file is named {path.name!r}; some clients only find {SKILL_FILE!r}."
        yield "warning", "file-name", message, 1, f"Rename it to {SKILL_FILE}."
    if raw.startswith(b"\xef\xbb\xbf"):
        yield "error", "byte-order-mark", "The file starts with a byte-order mark.", 1, "Save without it."
    for note in frontmatter.notes:
        yield "error", note.code, note.message, note.line, note.remedy


def _name_problems(path: Path, _: bytes, frontmatter: Frontmatter) -> Iterator[_Found]:
    value = frontmatter.fields.get("name")
    if not isinstance(value, str) or not value.strip():
        yield "error", "missing-name", "'name' is missing or empty.", "name", "Add the folder's name."
        return
    if len(value) > NAME_LIMIT:
        message = f"'name' has {grouped(len(value))} characters; the limit is {grouped(NAME_LIMIT)}."
        yield "error", "long-name", message, "name", "Shorten it."
    if not NAME.fullmatch(value):
        message = f"'name' is {value!r}; only a-z, 0-9 and single hyphens between them are allowed."
        yield "error", "bad-name", message, "name", "Use words joined by hyphens."
    folder = Path(os.path.abspath(path)).parent.name
    if value != folder:
        message = f"'name' is {value!r} but the folder is {folder!r}; they must be equal."
        yield "error", "name-mismatch", message, "name", "Rename one of them."


def _description_problems(_path: Path, _: bytes, frontmatter: Frontmatter) -> Iterator[_Found]:
    value = frontmatter.fields.get("description")
    if value is None or not text_of(value):
        remedy = "Say what the skill does and when to use it."
        yield "error", "missing-description", "'description' is missing or empty.", "description", remedy
    elif not isinstance(value, str):
        yield "error", "bad-description", "'description' is not text.", "description", "Quote it."
    elif len(value) > DESCRIPTION_LIMIT:
        message = f"'description' has {grouped(len(value))} characters; the limit is {grouped(DESCRIPTION_LIMIT)}."
        yield "error", "long-description", message, "description", "Move detail into the body."
    elif "<" in value or ">" in value:
        message = "'description' contains '<' or '>', which some clients refuse."
        yield "warning", "markup", message, "description", "Write it without angle brackets."


def _optional_problems(_path: Path, _: bytes, frontmatter: Frontmatter) -> Iterator[_Found]:
    for key in ("license", "compatibility"):
        value = frontmatter.fields.get(key)
        if key in frontmatter.fields and (not isinstance(value, str) or not value.strip()):
            yield "error", f"bad-{key}", f"{key!r} must be a text.", key, "Write a text or remove it."
    compatibility = text_of(frontmatter.fields.get("compatibility"))
    if len(compatibility) > COMPATIBILITY_LIMIT:
        length, limit = grouped(len(compatibility)), grouped(COMPATIBILITY_LIMIT)
        message = f"'compatibility' has {length} characters; the limit is {limit}."
        yield "error", "long-compatibility", message, "compatibility", "Shorten it."
    metadata = frontmatter.fields.get("metadata")
    is_text_map = isinstance(metadata, dict) and all(isinstance(item, str) for item in metadata.values())
    if "metadata" in frontmatter.fields and not is_text_map:
        yield "error", "bad-metadata", "'metadata' must map text to text.", "metadata", "Flatten it."


def _tools_problems(_path: Path, _: bytes, frontmatter: Frontmatter) -> Iterator[_Found]:
    value = frontmatter.fields.get("allowed-tools")
    if isinstance(value, list | dict):
        message = "'allowed-tools' must be one text with spaces between the tools."
        yield "error", "bad-allowed-tools", message, "allowed-tools", "Write 'Bash(git:*) Read'."
    elif isinstance(value, str) and "," in re.sub(r"\([^()]*\)", "", value):
        message = "'allowed-tools' is separated by commas; the standard separates by spaces."
        yield "warning", "comma-tools", message, "allowed-tools", "Remove the commas."


def _vendor_problems(_path: Path, _: bytes, frontmatter: Frontmatter) -> Iterator[_Found]:
    for key in frontmatter.fields:
        if key not in STANDARD_FIELDS:
            message = f"{key!r} is not a field of the open standard; other clients may refuse the skill."
            yield "warning", "vendor-field", message, key, "Move it below 'metadata'."


def _body_problems(_path: Path, raw: bytes, frontmatter: Frontmatter) -> Iterator[_Found]:
    body = frontmatter.body
    lines = body.count("\n") + 1
    first = decode(raw)[0].count("\n") - body.count("\n") + 1
    if not body.strip():
        yield "warning", "empty-body", "There are no instructions.", first, "Say how the skill is used."
    elif lines > BODY_LINES or len(body) > BODY_CHARACTERS:
        message = f"The instructions have {grouped(lines)} lines and {grouped(len(body))} characters."
        remedy = f"Keep under {BODY_LINES} lines and {BODY_CHARACTERS} characters; move detail into references/."
        yield "warning", "long-body", message, first, remedy


CHECKS: tuple[Callable[[Path, bytes, Frontmatter], Iterator[_Found]], ...] = (
    _file_problems,
    _name_problems,
    _description_problems,
    _optional_problems,
    _tools_problems,
    _vendor_problems,
    _body_problems,
)
