"""Each test has an index of its own, which the user's settings name."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.package_index import PackageIndex, serving_index

from skillkit.core.manager import SkillManager
from skillkit.core.values.policy import STANDARD


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[PackageIndex]:
    for name in [name for name in os.environ if name.startswith(("UV_", "PIP_"))]:
        monkeypatch.delenv(name)
    with serving_index() as served:
        monkeypatch.setenv("UV_DEFAULT_INDEX", served.address)
        yield served


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[SkillManager]:
    (tmp_path / "skills").mkdir()
    given = {"project_skill_dir": "", "anthropic_config_dir": "", "additional_search_paths": [tmp_path / "skills"]}
    with SkillManager(**given, policy=STANDARD, state_dir=tmp_path / "state") as made:  # type: ignore[arg-type]
        yield made
