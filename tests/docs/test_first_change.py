"""The change that CONTRIBUTING.md leads a newcomer through: made in a copy of the project, it works as written."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
RULES = "src/skillkit/core/decide/rules.py"
FACTS = "tests/core/decide/test_rules.py"


def facts_hold(project: Path) -> bool:
    # The one plugin that the settings speak of; the others take longer to load than the facts to hold.
    plugins = ("-p", "pytest_timeout", "-p", "no:cacheprovider")
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--assert=plain", *plugins, FACTS],
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(project / "src"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode in (0, 1), ended.stdout + ended.stderr
    return ended.returncode == 0


@pytest.mark.slow
def test_the_first_change_works_as_it_is_written(tmp_path: Path) -> None:
    fact, rule = re.findall(r"```python\n(.*?)```", (PROJECT / "CONTRIBUTING.md").read_text(), re.DOTALL)
    for name in ("src", "tests/support"):
        shutil.copytree(PROJECT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / FACTS).parent.mkdir(parents=True)
    for name in ("pyproject.toml", "tests/conftest.py", FACTS):
        shutil.copy(PROJECT / name, tmp_path / name)
    with (tmp_path / FACTS).open("a") as file:
        file.write(f"\n\n{fact}")
    assert not facts_hold(tmp_path)
    name = re.findall(r"def (\w+)", rule)[0]
    add_before(tmp_path / RULES, "RULES: tuple[Rule, ...] = (\n", f"{rule}\n\n")
    add_before(tmp_path / RULES, ")\n", f"    {name},\n", after="RULES: tuple")
    add_before(tmp_path / FACTS, "    ]\n", f'        "{name}",\n', after="test_these_are_the_rules")
    assert facts_hold(tmp_path)


def add_before(path: Path, mark: str, text: str, after: str = "") -> None:
    content = path.read_text()
    place = content.index(mark, content.index(after))
    path.write_text(content[:place] + text + content[place:])
