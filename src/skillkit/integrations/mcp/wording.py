"""Texts with pieces of file names that are not UTF-8 -> texts that can travel as JSON."""

from __future__ import annotations

from typing import Any

__all__ = ["in_unicode"]


def in_unicode(value: Any) -> Any:  # noqa: ANN401 - whatever JSON can say, as what it was
    """A half of a character that stands for a byte ends the whole connection when it is written; here it is `?`."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, list | tuple):
        return [in_unicode(each) for each in value]
    if isinstance(value, dict):
        return {in_unicode(key): in_unicode(each) for key, each in value.items()}
    return value
