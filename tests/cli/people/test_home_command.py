"""`skillkit home`, run as a user runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from skillkit.testing import skill_folder

ADDING = 'mkdir -p ~/.list; echo "$1" >> ~/.list/items; cat ~/.list/items\n'


def skillkit(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "skillkit", *map(str, words)], capture_output=True, text=True, check=False
    )


def grocery_list(folder: Path) -> Path:
    skill_folder(folder / "skills", "groceries", files={"scripts/add.sh": ADDING})
    return folder / "skills"


def test_what_a_skill_keeps_is_shown_and_cleared(tmp_path: Path) -> None:
    skills = grocery_list(tmp_path)
    assert "has no home yet" in skillkit("home", "groceries", "--skills", skills).stdout
    skillkit("run", "groceries", "add", "--yes", "--skills", skills, "--", "Milk")
    again = skillkit("run", "groceries", "add", "--yes", "--skills", skills, "--", "Bread")
    assert again.stdout == "Milk\nBread\n", again.stderr
    shown = skillkit("home", "groceries", "--skills", skills).stdout
    assert "1 file, 0.0 MB of 100 MB" in shown
    cleared = skillkit("home", "groceries", "--clear", "--skills", skills)
    assert cleared.stdout == "Cleared the home of groceries: 1 file, 0.0 MB gone.\n"
    assert skillkit("run", "groceries", "add", "--yes", "--skills", skills, "--", "Tea").stdout == "Tea\n"


def test_json_tells_where_it_is_and_what_is_set_aside(tmp_path: Path) -> None:
    skills = grocery_list(tmp_path)
    skillkit("run", "groceries", "add", "--yes", "--skills", skills, "--", "Milk")
    (skills / "groceries/scripts/add.sh").write_text(ADDING + "# changed\n")
    assert skillkit("run", "groceries", "add", "--yes", "--skills", skills, "--", "Tea").stdout == "Tea\n"
    told = json.loads(skillkit("home", "groceries", "--json", "--skills", skills).stdout)
    assert Path(told["path"], ".list/items").read_text() == "Tea\n"
    (other,) = told["others"]
    assert Path(other["path"], ".list/items").read_text() == "Milk\n"
    assert (told["files"], told["is_above_limit"], told["limit_megabytes"]) == (1, False, 100)


def test_without_a_desktop_the_folder_is_named(tmp_path: Path) -> None:
    skills = grocery_list(tmp_path)
    skillkit("run", "groceries", "add", "--yes", "--skills", skills, "--", "Milk")
    ended = subprocess.run(
        [sys.executable, "-m", "skillkit", "home", "groceries", "--open", "--skills", skills],
        capture_output=True,
        text=True,
        check=False,
        env={
            "PATH": "/usr/bin:/bin",
            "HOME": str(tmp_path),
            "SKILLKIT_STATE_DIR": __import__("os").environ["SKILLKIT_STATE_DIR"],
        },
    )
    assert ended.returncode == 0
    assert "nothing here can show a folder" in ended.stderr
    assert "homes/groceries-" in ended.stdout


def test_two_wishes_at_once_are_wrong_usage(tmp_path: Path) -> None:
    assert skillkit("home", "groceries", "--open", "--clear", "--skills", grocery_list(tmp_path)).returncode == 2
