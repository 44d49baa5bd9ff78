"""What commands show: tables and folded lines as wide as the screen, and JSON for programs."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any, Self

import click

from skillkit.core.models import SkillMetadata
from skillkit.core.values.skills import Diagnostic, ScriptMetadata
from skillkit.core.values.text import visible
from skillkit.present.terminal import columns, least_width, width_of, wrap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from skillkit.core.values.runs import ScriptExecutionResult

__all__ = [
    "PassingLine",
    "beside",
    "diagnostic_structure",
    "echo_json",
    "label_rows",
    "moment_text",
    "path_text",
    "result_structure",
    "screen_width",
    "script_structure",
    "skill_structure",
    "table",
    "table_width",
]

UNLIMITED = 10_000
LEAST_ROOM = 20
MOMENT = "(UTC)"


class PassingLine:
    """A line on a terminal's stderr that is written over and is gone at the end; none where nobody would see it."""

    def __init__(self, *, is_shown: bool = True) -> None:
        self._is_shown = is_shown and sys.stderr.isatty()
        self._is_drawn = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def show(self, text: str) -> None:
        if self._is_shown:
            self._write(text)
            self._is_drawn = True

    def clear(self) -> None:
        if self._is_drawn:
            self._write("")
            self._is_drawn = False

    def _write(self, text: str) -> None:
        # As it is: who wants no colours still wants the line erased.
        click.echo(f"\r\x1b[K{text}", nl=False, err=True, color=True)


def screen_width() -> int:
    return shutil.get_terminal_size((100, 24)).columns


def table_width() -> int:
    """As wide as the screen; in a pipe nothing is cut."""
    return screen_width() if sys.stdout.isatty() else UNLIMITED


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, whole: str = "", spare: str = "") -> str:
    """The column `whole` and moments are not cut, if need be without the column `spare`; on less each row is a list."""
    width, every = table_width(), [headings, *rows]
    names, lines = headings, every
    if spare and least_width(lines, _uncut(names, whole)) > width:
        names = [name for name in headings if name != spare]
        lines = [[cell for name, cell in zip(headings, line, strict=True) if name != spare] for line in every]
    kept = _uncut(names, whole)
    if least_width(lines, kept) > width:
        return "\n\n".join(_listed(headings, row) for row in every[1:])
    return "\n".join(columns(lines, width, indent="", whole=kept))


def _uncut(headings: Sequence[str], whole: str) -> list[int]:
    return [at for at, name in enumerate(headings) if name == whole or name.endswith(MOMENT)]


def _listed(headings: Sequence[str], row: Sequence[str]) -> str:
    column = max(map(len, headings))
    return "\n".join(beside(f"{name:<{column}}  ", cell) for name, cell in zip(headings, row, strict=True))


def beside(label: str, text: str) -> str:
    """The text folded between words where the screen ends, each line beside the label; one word stays whole."""
    indent = " " * width_of(click.unstyle(label))
    room = max(LEAST_ROOM, table_width() - len(indent)) if " " in text else UNLIMITED
    lines = (piece for line in visible(text).split("\n") for piece in wrap(line, room))
    return label + f"\n{indent}".join(lines)


def label_rows(label: str, texts: Sequence[str]) -> list[tuple[str, str]]:
    """The label once, the texts below each other beside it."""
    return [("" if number else label, text) for number, text in enumerate(texts)]


def moment_text(seconds: float) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


def path_text(path: Path) -> str:
    """A name that is not UTF-8 is shown with replacement characters; JSON could not carry it."""
    return str(path).encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def echo_json(**fields: Any) -> None:  # noqa: ANN401 - whatever JSON can say
    """One object, with dataclasses as objects too."""
    import json

    def structure(value: Any) -> Any:  # noqa: ANN401
        return asdict(value) if is_dataclass(value) and not isinstance(value, type) else str(value)

    click.echo(json.dumps({"schema_version": 1, **fields}, indent=2, ensure_ascii=False, default=structure))


def skill_structure(skill: SkillMetadata) -> dict[str, Any]:
    return {
        "name": skill.name,
        "qualified_name": skill.qualified_name,
        "description": skill.description,
        "path": str(skill.skill_path),
        "source": skill.source,
        "host": skill.host or None,
        "version": skill.version,
        "license": skill.license,
        "compatibility": skill.compatibility,
        "allowed_tools": list(skill.allowed_tools),
        "metadata": dict(skill.metadata),
        "extra": dict(skill.extra),
    }


def script_structure(script: ScriptMetadata) -> dict[str, Any]:
    return {
        "name": script.name,
        "path": script.path.as_posix(),
        "type": script.script_type,
        "description": script.description,
    }


def diagnostic_structure(diagnostic: Diagnostic) -> dict[str, Any]:
    return {**asdict(diagnostic), "path": str(diagnostic.path)}


def result_structure(result: ScriptExecutionResult) -> dict[str, Any]:
    structure = {name: value for name, value in asdict(result).items() if name not in ("artifacts", "script_path")}
    return {
        "success": result.success,
        **structure,
        "script_path": path_text(result.script_path),
        "artifacts": [{"path": path_text(item.path), "size": item.size} for item in result.artifacts],
    }
