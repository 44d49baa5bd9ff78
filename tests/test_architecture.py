"""The house: who may import whom, and how long things may be."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]
SOURCES = PROJECT / "src" / "skillkit"


def lint(project: Path) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("lint-imports")
    return subprocess.run(
        [program, "--no-cache"],
        capture_output=True,
        text=True,
        check=False,
        cwd=project,
        env={**os.environ, "PYTHONPATH": str(project / "src")},
    )


@pytest.mark.parametrize(
    ("module", "line", "broken"),
    [
        pytest.param("core/values.py", "from skillkit.core import manager", "Arrows inside the core", id="upward"),
        pytest.param("core/detect/languages.py", "import skillkit.core.frontmatter", "Arrows inside", id="sideways"),
        pytest.param("core/paths.py", "def f():\n    import skillkit.cli.main", "between the rooms", id="hidden"),
        pytest.param("core/decide/rules.py", "import skillkit.core.decide.risk", "no rule decides", id="risk"),
        pytest.param("core/paths.py", "import subprocess", "starts processes", id="process"),
        pytest.param("core/find/roots.py", "def f():\n    import skillkit.core.find.walk", "cycles", id="cycle"),
    ],
)
def test_an_import_against_the_arrows_is_caught(tmp_path: Path, module: str, line: str, broken: str) -> None:
    shutil.copytree(SOURCES, tmp_path / "src" / "skillkit")
    shutil.copy(PROJECT / "pyproject.toml", tmp_path)
    if broken == "cycles":
        with (tmp_path / "src/skillkit/core/find/walk.py").open("a") as file:
            file.write("\nfrom skillkit.core.find import roots\n")
    with (tmp_path / "src" / "skillkit" / module).open("a") as file:
        file.write(f"\n{line}\n")
    ended = lint(tmp_path)
    assert ended.returncode == 1, ended.stdout
    assert any(broken in kept and "BROKEN" in kept for kept in ended.stdout.splitlines()), ended.stdout


def test_the_contracts_hold() -> None:
    assert lint(PROJECT).returncode == 0


def functions() -> Iterator[tuple[str, int]]:
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{path.name}:{node.name}", (node.end_lineno or node.lineno) - node.lineno + 1


def test_functions_and_modules_stay_short() -> None:
    lengths = dict(functions())
    assert {name: length for name, length in lengths.items() if length > 50} == {}
    ordered = sorted(lengths.values())
    assert ordered[int(len(ordered) * 0.9)] <= 30
    modules = {path.name: path.read_text().count("\n") for path in SOURCES.rglob("*.py")}
    assert {name: length for name, length in modules.items() if length > 400} == {}


def test_no_file_names_a_place_to_download_from() -> None:
    named = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=False, cwd=PROJECT).stdout.split(
        "\n"
    )
    assert [name for name in named if name.endswith((".lock", "pylock.toml"))] == []
