"""The tables of names, kept as data."""

from __future__ import annotations

import json
import re
import sys
from importlib.resources import files

import pytest

from skillkit.core.find.needs.found import package_name
from skillkit.core.find.needs.packages import npm_package_of, package_of

TEXT = files("skillkit.core.find.needs").joinpath("tables.json").read_text(encoding="utf-8")
PEP_503 = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


def pairs(rows: list[tuple[str, object]]) -> dict[str, object]:
    """No name twice: the reader would keep the last without a word."""
    assert len({name for name, _ in rows}) == len(rows)
    return dict(rows)


TABLES: dict[str, dict[str, str]] = json.loads(TEXT, object_pairs_hook=pairs)
IMPORTS = TABLES["imports"]


def test_the_tables_are_sorted() -> None:
    assert all(list(table) == sorted(table) for table in TABLES.values())
    assert list(TABLES) == sorted(TABLES)


def test_names_of_packages_are_as_indexes_compare_them() -> None:
    assert [name for name in IMPORTS.values() if not PEP_503.fullmatch(name) or package_name(name) != name] == []


def test_no_module_of_the_standard_library_is_a_package() -> None:
    assert [name for name in IMPORTS if name.partition(".")[0] in sys.stdlib_module_names] == []


def test_every_row_says_what_the_name_alone_does_not() -> None:
    assert len(IMPORTS) >= 150
    assert [name for name, package in IMPORTS.items() if package_name(name.partition(".")[0]) == package] == []


@pytest.mark.parametrize(
    ("module", "package"),
    [
        ("PIL.Image", "pillow"),
        ("yaml", "pyyaml"),
        ("cv2", "opencv-python"),
        ("google.generativeai.types", "google-generativeai"),
        ("google.genai", "google-genai"),
        ("slack_sdk.web", "slack-sdk"),
        ("pandas", "pandas"),
        ("é", ""),
    ],
)
def test_an_import_becomes_the_package_that_has_it(module: str, package: str) -> None:
    assert package_of(module) == package


@pytest.mark.parametrize(
    ("specifier", "package"),
    [
        ("@a/b/c", "@a/b"),
        ("zod/v4", "zod"),
        ("npm:zod@3", "zod"),
        ("node:fs", ""),
        ("fs/promises", ""),
        ("./x", ""),
        ("@/x", ""),
        ("https://x.dev/y.ts", ""),
    ],
)
def test_a_specifier_becomes_the_package_that_has_it(specifier: str, package: str) -> None:
    assert npm_package_of(specifier) == package
