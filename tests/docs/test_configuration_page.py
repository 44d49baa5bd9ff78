"""The reference of settings says what the code does."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from support.config_files import Machine

from skillkit.config.files import SIZE_LIMIT_BYTES
from skillkit.config.keys import DOTS_IN_A_LINE, KEYS, toml_text
from skillkit.core.values.needs import GRANT_KINDS
from skillkit.core.values.policy import FIELDS, PROFILES, value_of

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "configuration.md"
LONG = 12


def kind_of(key: str) -> str:
    row = FIELDS[key.removeprefix("policy.")]
    return ", ".join(f"`{choice}`" for choice in row.choices) or row.values


def defaults_of(key: str) -> list[str]:
    """The value in each profile; a long one that is the same everywhere is written once, all kinds as "all"."""
    given = [value_of(profile, key.removeprefix("policy.")) for profile in PROFILES.values()]
    values = ["all" if value == GRANT_KINDS else f"`{toml_text(value)}`" for value in given]
    return [values[0], "same", "same", "same"] if len(values[0]) > LONG and len(set(values)) == 1 else values


def rows(heading: str) -> list[list[str]]:
    """The cells of the table below a heading."""
    section = PAGE.read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    table = [line for line in section.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table]


def test_the_table_has_every_policy_key_with_its_value_in_every_profile() -> None:
    keys = [key for key in KEYS if key.startswith("policy.")]
    expected = [[f"`{key}`", kind_of(key), *defaults_of(key)] for key in keys]
    assert [[*row[:2], *row[3:]] for row in rows("Policy")] == expected
    assert list(PROFILES) == ["locked", "guarded", "standard", "trusted"]
    assert all(len(row[2]) > LONG for row in rows("Policy"))


def test_the_other_keys_are_there_too() -> None:
    assert [row[0] for row in rows("Other settings")] == [f"`{key}`" for key in KEYS if "policy" not in key]


def test_every_field_is_in_the_table_of_what_is_tighter() -> None:
    named = [name for row in rows("A project may only tighten") for name in re.findall(r"`([a-z_.*]+)`", row[0])]
    assert sorted(named) == sorted({re.sub(r"^limits\..*", "limits.*", name) for name in FIELDS})


def test_the_limits_are_as_written() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert f"{SIZE_LIMIT_BYTES // 1000} kB" in page
    assert f"more than {DOTS_IN_A_LINE} dots" in page


EXAMPLES = re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_is_accepted(example: str, tmp_path: Path) -> None:
    assert len(EXAMPLES) >= 2
    machine = Machine(tmp_path)
    for folder in ("own/skills", "project/tools/skills"):
        (tmp_path / folder).mkdir(parents=True)
    is_users = "[projects]" in example
    text = example.replace("~/skills", "skills")
    machine.user(text) if is_users else machine.repository(text)
    assert set(tomllib.loads(example)) <= {"profile", "policy", "skills", "projects"}
    assert machine.settings().named
