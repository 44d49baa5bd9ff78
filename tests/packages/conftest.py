"""Each test has an index of its own, which the user's settings name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.package_index import PackageIndex, only_index

from skillkit.core.manager import SkillManager
from skillkit.core.values.policy import STANDARD


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[PackageIndex]:
    with only_index(monkeypatch) as served:
        yield served


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[SkillManager]:
    (tmp_path / "skills").mkdir()
    given = {"project_skill_dir": "", "anthropic_config_dir": "", "additional_search_paths": [tmp_path / "skills"]}
    with SkillManager(**given, policy=STANDARD, state_dir=tmp_path / "state") as made:  # type: ignore[arg-type]
        yield made
