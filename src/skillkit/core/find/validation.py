"""A skill folder -> every way in which it departs from the open standard (agentskills.io)."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from skillkit.core.exceptions import SkillKitError, SkillParsingError
from skillkit.core.find.reading import NAME_LIMIT
from skillkit.core.find.walk import SKILL_FILE, Walk
from skillkit.core.frontmatter import Frontmatter, Value, decoded, read_frontmatter, text_of
from skillkit.core.models import skill_file_bytes
from skillkit.core.values import Diagnostic

__all__ = ["NAME", "NAME_LIMIT", "skill_files_and_problems", "validate_skill_file"]

NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
DESCRIPTION_LIMIT = 1024
COMPATIBILITY_LIMIT = 500
BODY_LINES = 500
BODY_CHARACTERS = 20_000  # about 5,000 tokens
STANDARD_FIELDS = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")


def skill_files_and_problems(path: Path) -> tuple[list[Path], list[Diagnostic]]:
    """The file itself, or every SKILL.md at or below a folder, and what kept the search from looking further."""
    if not path.is_dir():
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
    checked = CheckedFile(file, raw, frontmatter)
    problems = [problem for check in CHECKS for problem in check(checked)]
    return sorted(problems, key=lambda problem: problem.line or 0)


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """One SKILL.md under the eyes of the checks."""

    path: Path
    raw: bytes
    frontmatter: Frontmatter

    def field(self, key: str) -> Value:
        return self.frontmatter.fields.get(key)

    def error(self, code: str, message: str, key: str | int, remedy: str) -> Diagnostic:
        return self.problem("error", code, message, key, remedy)

    def warning(self, code: str, message: str, key: str | int, remedy: str) -> Diagnostic:
        return self.problem("warning", code, message, key, remedy)

    def problem(self, severity: str, code: str, message: str, key: str | int, remedy: str) -> Diagnostic:
        line = key if isinstance(key, int) else self.frontmatter.lines.get(key, 1)
        return Diagnostic(severity, code, message, self.path, line, remedy)


def file_problems(checked: CheckedFile) -> Iterator[Diagnostic]:
    if checked.path.name != SKILL_FILE:
        message = f"The file is named {checked.path.name!r}; some clients only find {SKILL_FILE!r}."
        yield checked.warning("file-name", message, 1, f"Rename it to {SKILL_FILE}.")
    if checked.raw.startswith(b"\xef\xbb\xbf"):
        yield checked.error("byte-order-mark", "The file starts with a byte-order mark.", 1, "Save without it.")
    for note in checked.frontmatter.notes:
        yield checked.error(note.code, note.message, note.line, note.remedy)


def name_problems(checked: CheckedFile) -> Iterator[Diagnostic]:
    value = checked.field("name")
    if not isinstance(value, str) or not value.strip():
        yield checked.error("missing-name", "'name' is missing or empty.", "name", "Add the folder's name.")
        return
    if len(value) > NAME_LIMIT:
        message = f"'name' has {len(value)} characters; the limit is {NAME_LIMIT}."
        yield checked.error("long-name", message, "name", "Shorten it.")
    if not NAME.fullmatch(value):
        message = f"'name' is {value!r}; only a-z, 0-9 and single hyphens between them are allowed."
        yield checked.error("bad-name", message, "name", "Use words joined by hyphens.")
    folder = Path(os.path.abspath(checked.path)).parent.name
    if value != folder:
        message = f"'name' is {value!r} but the folder is {folder!r}; they must be equal."
        yield checked.error("name-mismatch", message, "name", "Rename one of them.")


def description_problems(checked: CheckedFile) -> Iterator[Diagnostic]:
    value = checked.field("description")
    if value is None or not text_of(value):
        remedy = "Say what the skill does and when to use it."
        yield checked.error("missing-description", "'description' is missing or empty.", "description", remedy)
    elif not isinstance(value, str):
        yield checked.error("bad-description", "'description' is not text.", "description", "Quote it.")
    elif len(value) > DESCRIPTION_LIMIT:
        message = f"'description' has {len(value)} characters; the limit is {DESCRIPTION_LIMIT}."
        yield checked.error("long-description", message, "description", "Move detail into the body.")
    elif "<" in value or ">" in value:
        message = "'description' contains '<' or '>', which some clients refuse."
        yield checked.warning("markup", message, "description", "Write it without angle brackets.")


def optional_problems(checked: CheckedFile) -> Iterator[Diagnostic]:
    for key in ("license", "compatibility"):
        value = checked.field(key)
        if key in checked.frontmatter.fields and (not isinstance(value, str) or not value.strip()):
            yield checked.error(f"bad-{key}", f"{key!r} must be a text.", key, "Write a text or remove it.")
    compatibility = text_of(checked.field("compatibility"))
    if len(compatibility) > COMPATIBILITY_LIMIT:
        message = f"'compatibility' has {len(compatibility)} characters; the limit is {COMPATIBILITY_LIMIT}."
        yield checked.error("long-compatibility", message, "compatibility", "Shorten it.")
    metadata = checked.field("metadata")
    if "metadata" in checked.frontmatter.fields and not is_text_map(metadata):
        yield checked.error("bad-metadata", "'metadata' must map text to text.", "metadata", "Flatten it.")


def is_text_map(value: Value) -> bool:
    return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())


def tools_problems(checked: CheckedFile) -> Iterator[Diagnostic]:
    value = checked.field("allowed-tools")
    if isinstance(value, list | dict):
        message = "'allowed-tools' must be one text with spaces between the tools."
        yield checked.error("bad-allowed-tools", message, "allowed-tools", "Write 'Bash(git:*) Read'.")
    elif isinstance(value, str) and "," in re.sub(r"\([^()]*\)", "", value):
        message = "'allowed-tools' is separated by commas; the standard separates by spaces."
        yield checked.warning("comma-tools", message, "allowed-tools", "Remove the commas.")


def vendor_problems(checked: CheckedFile) -> Iterator[Diagnostic]:
    for key in checked.frontmatter.fields:
        if key not in STANDARD_FIELDS:
            message = f"{key!r} is not a field of the open standard; other clients may refuse the skill."
            yield checked.warning("vendor-field", message, key, "Move it below 'metadata'.")


def body_problems(checked: CheckedFile) -> Iterator[Diagnostic]:
    body = checked.frontmatter.body
    lines = body.count("\n") + 1
    first = decoded(checked.raw)[0].count("\n") - body.count("\n") + 1
    if not body.strip():
        yield checked.warning("empty-body", "There are no instructions.", first, "Say how the skill is used.")
    elif lines > BODY_LINES or len(body) > BODY_CHARACTERS:
        message = f"The instructions have {lines} lines and {len(body)} characters."
        remedy = f"Keep under {BODY_LINES} lines and {BODY_CHARACTERS} characters; move detail into references/."
        yield checked.warning("long-body", message, first, remedy)


CHECKS: tuple[Callable[[CheckedFile], Iterator[Diagnostic]], ...] = (
    file_problems,
    name_problems,
    description_problems,
    optional_problems,
    tools_problems,
    vendor_problems,
    body_problems,
)
