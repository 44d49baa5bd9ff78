"""The faults that `tools/mutants` puts into what decides."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="module")
def mutations() -> Any:
    path = Path(__file__).parents[2] / "tools/mutants/mutations.py"
    spec = importlib.util.spec_from_file_location("mutations", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["mutations"] = module
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        del sys.modules["mutations"]


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("a = b == c", ["module: b == c -> b != c"]),
        ("a = b < c", ["module: b < c -> b <= c", "module: b < c -> b >= c"]),
        ("a = b in c", ["module: b in c -> b not in c"]),
        ("a = b and c", ["module: b and c -> b or c", "module: b and c -> b", "module: b and c -> c"]),
        ("a = not b", ["module: not b -> b"]),
        ("a = True", ["module: True -> False"]),
        ("a = Decision.ASK", ["module: Decision.ASK -> Decision.ALLOW", "module: Decision.ASK -> Decision.DENY"]),
        ("a = any(b)", ["module: any(b) -> all(b)"]),
        ("RULES = (b, c)", ["module: without an entry b", "module: without an entry c"]),
        ("T = {b: c}", ["module: without an entry b"]),
        ("def f() -> bool:\n    return g", ["f: return g -> return not g"]),
        ("def f() -> str:\n    return g", ["f: return g -> return None"]),
        ("def f():\n    yield g", ["f: yield g -> pass"]),
        ("if a:\n    b = c", ["module: a -> True", "module: a -> False"]),
        ("a = [b for b in c if b]", ["module: b -> True", "module: b -> False"]),
    ],
)
def test_each_thing_that_decides_gets_its_faults(mutations: Any, text: str, faults: list[str]) -> None:
    found = list(mutations.mutants_of(text))
    assert [each.key for each in found] == faults
    assert all(ast.dump(ast.parse(each.text)) != ast.dump(ast.parse(text)) for each in found)


@pytest.mark.parametrize(
    "text",
    [
        "a = 'text'",
        "a = f'{b == c}'",
        "__all__ = ['a']",
        "def f(a: X[True] = b) -> Y[False]: pass",
        "import a",
        "R = C[[A, B], D]",
    ],
)
def test_texts_types_and_exports_get_none(mutations: Any, text: str) -> None:
    assert list(mutations.mutants_of(text)) == []


def test_one_fault_at_a_time(mutations: Any) -> None:
    texts = [each.text for each in mutations.mutants_of("a = b == c\nd = e == f")]
    assert texts == ["a = b != c\nd = e == f", "a = b == c\nd = e != f"]
