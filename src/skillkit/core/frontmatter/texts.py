"""Field values as they come -> the text and the tool rules that were meant."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["Note", "Value", "split_tools", "text_of"]

Value: TypeAlias = str | list["Value"] | dict[str, "Value"] | None


@dataclass(frozen=True, slots=True)
class Note:
    """Something odd that reading got over: what it was, where, and how to write it properly."""

    code: str
    message: str
    line: int
    remedy: str


def text_of(value: Value) -> str:
    """One line of text for a field, even where something else than text was written."""
    if value is None:
        return ""
    if isinstance(value, list):
        return ", ".join(text_of(item) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{key}: {text_of(item)}" for key, item in value.items())
    return " ".join(value.split())


def split_tools(value: Value) -> tuple[str, ...]:
    """`allowed-tools` in any of its three forms; separators inside parentheses belong to the rule's scope."""
    if isinstance(value, list):
        return tuple(tool for item in value if (tool := text_of(item)))
    text = text_of(value)
    if "(" not in text:
        return tuple(rule for rule in text.replace(",", " ").split() if rule.strip("-"))
    rules, depth, word = list[str](), 0, ""
    for char in text:
        depth += (char == "(") - (char == ")" and depth > 0)
        if depth == 0 and char in ", ":
            rules.append(word)
            word = ""
        else:
            word += char
    rules.append(word)
    return tuple(rule for rule in rules if rule.strip("-"))
