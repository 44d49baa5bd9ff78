"""A package's name -> a much more common one that is one letter away, as people who set traps choose theirs."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files

__all__ = ["common_name_near"]

SHORTEST = 4  # of three letters, everything is near to something


def common_name_near(name: str, kind: str) -> str:
    """Empty where the name is common itself, or near to none."""
    common = _common()[kind]
    if name in common or len(name) < SHORTEST:
        return ""
    return next((each for each in sorted(common) if len(each) >= SHORTEST and _is_one_edit(name, each)), "")


@cache
def _common() -> dict[str, frozenset[str]]:
    text = files("skillkit.packages").joinpath("common_names.json").read_text(encoding="utf-8")
    return {kind: frozenset(names.split()) for kind, names in json.loads(text).items()}


def _is_one_edit(one: str, other: str) -> bool:
    """One letter more, less or another, or two neighbours swapped."""
    if abs(len(one) - len(other)) > 1 or one == other:
        return False
    start = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    rest, more = one[start:], other[start:]
    is_swapped = len(rest) > 1 and rest[:2] == more[:2][::-1] and rest[2:] == more[2:]
    return is_swapped or rest[1:] == more[1:] or rest[1:] == more or rest == more[1:]
