"""SKILL.md bytes -> fields, body, and what had to be repaired on the way. Tolerant by design."""

from __future__ import annotations

from skillkit.core.frontmatter.reader import Frontmatter, decoded, is_closed, read_frontmatter
from skillkit.core.frontmatter.texts import Value, split_tools, text_of

__all__ = [
    "Frontmatter",
    "Value",
    "decoded",
    "is_closed",
    "read_frontmatter",
    "split_tools",
    "text_of",
]
