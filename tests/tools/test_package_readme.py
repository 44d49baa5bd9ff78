"""What a package index shows of the README."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
TARGET = re.compile(r"\]\(([^)]*)\)")


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("package_readme", ROOT / "tools/package_readme.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_no_link_or_image_leads_to_a_file(tool: ModuleType) -> None:
    text = (ROOT / "README.md").read_text()
    shown = tool.self_contained(text)
    assert any(not target.startswith("https://") for target in TARGET.findall(text)), "there is something to do"
    assert [target for target in TARGET.findall(shown) if not target.startswith("https://")] == []
    assert "![" not in shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("With [it](docs/a.md), and", "With it (`docs/a.md`), and"),
        ("so ([how](docs/a.md)).", "so (how: `docs/a.md`)."),
        ("[Skills](https://example.org) and [up](#up)", "[Skills](https://example.org) and [up](#up)"),
        ("a\n\n![It](docs/a.png)\n\nb", "a\n\nb"),
    ],
)
def test_a_link_becomes_a_path(tool: ModuleType, text: str, shown: str) -> None:
    assert tool.self_contained(text).startswith(f"{shown}\n")


def test_the_build_takes_it_from_here(tool: ModuleType) -> None:
    metadata: dict[str, dict[str, str]] = {}
    tool.PackageReadme(str(ROOT), {}).update(metadata)
    assert metadata["readme"]["content-type"] == "text/markdown"
    assert metadata["readme"]["text"].startswith("# skillkit\n")
