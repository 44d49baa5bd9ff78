"""The faults that `tools/mutants` puts into what decides."""

from __future__ import annotations

import ast
import importlib.util
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

TOOL = Path(__file__).parents[2] / "tools/mutants"


def loaded(name: str, file: str) -> Iterator[Any]:
    spec = importlib.util.spec_from_file_location(name, TOOL / file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
        yield module
    finally:
        del sys.modules[name]


@pytest.fixture(scope="module")
def mutations() -> Iterator[Any]:
    yield from loaded("mutations", "mutations.py")


@pytest.fixture(scope="module")
def mutants(mutations: Any) -> Iterator[Any]:
    assert mutations.__name__ == "mutations"
    yield from loaded("mutants", "__main__.py")


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


def test_whatever_is_listed_as_equivalent_is_a_fault_of_its_module(mutations: Any, mutants: Any) -> None:
    for module, entries in tomllib.loads((TOOL / "equivalent.toml").read_text()).items():
        faults = {key for _, key in mutations.faults_in(ast.parse(mutants.text_of(module)))}
        assert entries.keys() - faults == set(), module


@pytest.mark.parametrize(
    ("module", "first"),
    [
        ("decide/rules", "decide/test_rules.py"),
        ("store/request_rows", "store/test_request_rows_deadlines.py"),
        ("ask/risk", "ask/risk/test_risk.py"),
        ("ask/risk/rules", "ask/risk"),
    ],
)
def test_a_module_is_tested_by_the_files_named_for_it_or_by_its_room(mutants: Any, module: str, first: str) -> None:
    tests = mutants.tests_of(module)
    assert tests[0] == str(mutants.PROJECT / "tests/core" / first)
    assert (mutants.PROPERTIES in tests) == (module in mutants.USUAL)


def test_every_file_of_tests_that_is_listed_exists(mutants: Any) -> None:
    for module, others in mutants.ALSO_TESTED_BY.items():
        assert mutants.text_of(module)
        assert all(any(mutants.own_tests(other)) for other in others), module
