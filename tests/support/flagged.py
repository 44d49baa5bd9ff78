"""What risk flags a skill of these files gets: real folders, read as the prompt reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from skillkit.core.ask.risk import risk_flags
from skillkit.core.models.digest import manifest_of
from skillkit.core.values.questions import RiskFlag

__all__ = ["flags_of", "flags_of_text", "kinds_of"]


def flags_of(
    folder: Path, files: Mapping[str, str | bytes] | None = None, scripts: Sequence[str] = ()
) -> tuple[RiskFlag, ...]:
    for relative, content in (files or {}).items():
        path = folder / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return risk_flags(folder, manifest_of(folder), scripts)


def flags_of_text(folder: Path, name: str, content: str | bytes) -> tuple[RiskFlag, ...]:
    """Of a skill with one script."""
    return flags_of(folder, {name: content}, [name])


def kinds_of(folder: Path, name: str, content: str | bytes) -> set[str]:
    return {flag.kind for flag in flags_of_text(folder, name, content)}
