"""A script's metadata checks itself when it is made."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from skillkit import ScriptMetadata


def test_a_script_is_named_with_its_skill_in_one_word() -> None:
    script = ScriptMetadata("extract", Path("scripts/extract.py"), "python", "Extracts.")
    assert script.get_fully_qualified_name("pdf-extractor") == "pdf-extractor.extract"
    with pytest.raises(FrozenInstanceError):
        script.name = "other"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("name", "path", "script_type", "rule"),
    [
        ("run", "/skills/demo/scripts/run.sh", "shell", "is absolute"),
        ("run", "scripts/run.sh", "cobol", "'cobol' is no script type; known: batch, "),
        ("walk", "scripts/run.sh", "shell", "'walk' is not the stem of 'run.sh'"),
    ],
)
def test_a_script_that_contradicts_itself_cannot_be_made(name: str, path: str, script_type: str, rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        ScriptMetadata(name, Path(path), script_type)
