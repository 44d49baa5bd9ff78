from __future__ import annotations

import subprocess
import sys

import pytest

import skillkit

HEAVY = ("yaml", "click", "rich", "json", "logging", "asyncio", "dataclasses", "pathlib", "re", "platformdirs")


def modules_after(statement: str) -> set[str]:
    """What a fresh interpreter has loaded after the statement and not before it."""
    code = f"import sys; before = set(sys.modules); {statement}; print(*(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_each_public_name_is_listed_once() -> None:
    assert sorted(skillkit.__all__) == sorted(set(skillkit.__all__))


def test_dir_shows_the_public_names_and_nothing_else() -> None:
    assert dir(skillkit) == sorted(skillkit.__all__)


def test_every_public_name_can_be_imported() -> None:
    assert [name for name in skillkit.__all__ if getattr(skillkit, name, None) is None] == []


def test_every_error_is_public_and_has_one_base() -> None:
    from skillkit.core import exceptions

    assert set(exceptions.__all__) <= set(skillkit.__all__)
    assert all(issubclass(getattr(exceptions, name), exceptions.SkillKitError) for name in exceptions.__all__)
    assert skillkit.SkillsUseError is skillkit.SkillKitError


def test_a_name_that_is_not_public_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'skillkit' has no attribute 'Nonsense'"):
        _ = skillkit.Nonsense


def test_importing_skillkit_loads_nothing_else() -> None:
    loaded = modules_after("import skillkit")
    assert {name for name in loaded if name.split(".")[0] == "skillkit"} == {"skillkit", "skillkit._version"}
    assert loaded.isdisjoint(HEAVY)


def test_a_manager_is_made_without_parsers_and_command_line() -> None:
    loaded = modules_after("from skillkit import SkillManager; SkillManager('', '')")
    assert loaded.isdisjoint(("yaml", "click", "rich", "asyncio", "markdown_it"))
