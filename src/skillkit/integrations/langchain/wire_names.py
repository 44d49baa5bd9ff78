"""Names of tools -> names that every provider takes, each its own, and the way back; also inside messages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

__all__ = ["Rename", "WireNames", "names_in", "renamed_message", "renamed_structure", "wire_name"]

Rename = Callable[[str], str]

LONGEST = 64
HASH_DIGITS = 8
SAFE = re.compile(rf"[a-zA-Z0-9_-]{{1,{LONGEST}}}")
UNSAFE = re.compile(r"[^a-zA-Z0-9_-]")
CALL_BLOCKS = ("tool_use", "tool_call", "function_call")


def wire_name(name: str) -> str:
    """The name itself where it is safe; else with `__` for its dot; where that could be another's, with a hash."""
    if SAFE.fullmatch(name):
        return name
    plain = name.replace(".", "__")
    is_clear = "__" not in name and SAFE.fullmatch(plain)
    return plain if is_clear else hashed_name(name)


def hashed_name(name: str) -> str:
    plain = UNSAFE.sub("_", name.replace(".", "__"))
    summary = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:HASH_DIGITS]
    return f"{plain[: LONGEST - HASH_DIGITS - 1]}_{summary}"


class WireNames:
    """The names of one request's tools, both ways."""

    def __init__(self, names: Iterable[str]) -> None:
        known = list(dict.fromkeys(names))
        wires = {name: name for name in known if SAFE.fullmatch(name)}
        for name in known:
            wire = wire_name(name)
            wires.setdefault(name, hashed_name(name) if wire in wires.values() else wire)
        self._wires = wires
        self._names = {wire: name for name, wire in wires.items()}
        if len(self._names) < len(wires):
            raise ValueError(f"Two of these tools cannot be told apart by a provider: {', '.join(known)}. Rename one.")

    def to_wire(self, name: str) -> str:
        """History may name tools that are gone; they need a safe name too."""
        return self._wires.get(name) or wire_name(name)

    def from_wire(self, wire: str) -> str:
        """What no tool is called stays as the model wrote it."""
        return self._names.get(wire, wire)


def renamed_message(message: BaseMessage, rename: Rename) -> BaseMessage:
    """The same message with other names for tools, wherever a provider's client keeps them."""
    if isinstance(message, ToolMessage):
        return message.model_copy(update={"name": rename(message.name)}) if message.name else message
    if not isinstance(message, AIMessage):
        return message
    update: dict[str, Any] = {
        "tool_calls": [renamed_structure(call, rename) for call in message.tool_calls],
        "invalid_tool_calls": [renamed_structure(call, rename) for call in message.invalid_tool_calls],
    }
    if not isinstance(message.content, str):
        update["content"] = [renamed_block(block, rename) for block in message.content]
    if calls := message.additional_kwargs.get("tool_calls"):
        kept = [renamed_structure(call, rename) for call in calls]
        update["additional_kwargs"] = {**message.additional_kwargs, "tool_calls": kept}
    return message.model_copy(update=update)


def renamed_block(block: str | dict[str, Any], rename: Rename) -> str | dict[str, Any]:
    is_call = isinstance(block, dict) and block.get("type") in CALL_BLOCKS
    return renamed_structure(block, rename) if is_call and isinstance(block, dict) else block


def renamed_structure(value: Mapping[str, Any], rename: Rename) -> dict[str, Any]:
    """A tool, a call or a choice of one, as OpenAI or Anthropic write it: `name`, or `function.name`."""
    changed = dict(value)
    if isinstance(changed.get("name"), str):
        changed["name"] = rename(changed["name"])
    if isinstance(changed.get("function"), Mapping):
        changed["function"] = renamed_structure(changed["function"], rename)
    return changed


def names_in(tools: Sequence[Any]) -> list[str]:
    """Of tools and of their schemas; a provider's own tools may have none."""
    found = []
    for tool in tools:
        structure = tool.get("function", tool) if isinstance(tool, Mapping) else {"name": tool.name}
        if isinstance(structure, Mapping) and isinstance(structure.get("name"), str):
            found.append(structure["name"])
    return found
