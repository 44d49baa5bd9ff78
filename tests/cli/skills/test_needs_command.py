"""`skillkit needs`, run as a user runs it, and needs in `show` and `check`."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pexpect
import pytest
from support.skill_folders import skill_folder

FILES = {
    "scripts/fetch.py": "import os, requests\nrequests.get('https://api.github.com', os.environ['GITHUB_TOKEN'])\n",
    "scripts/plain.py": "print(1)\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    skill_folder(tmp_path / "skills", "forge", files=FILES)
    skill_folder(tmp_path / "skills", "quiet")
    return tmp_path / "skills"


def skillkit(root: Path, *words: str) -> subprocess.CompletedProcess[str]:
    places = ("--skills", str(root), "--state-dir", str(root.parent / "state"))
    command = [sys.executable, "-m", "skillkit", *words, *places]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=root.parent)


def test_a_skills_needs_are_told_with_place_and_remedy(root: Path) -> None:
    ended = skillkit(root, "needs", "forge")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "no   host     api.github.com  scripts/fetch.py:2, inferred\n" in ended.stdout
    assert "\n  skillkit grant forge --host api.github.com\n" in ended.stdout
    assert "\n  skillkit secret set forge GITHUB_TOKEN\n" in ended.stdout


def test_a_scripts_needs_are_its_own(root: Path) -> None:
    assert "needs nothing" in skillkit(root, "needs", "forge", "plain").stdout
    structure = json.loads(skillkit(root, "needs", "forge", "fetch", "--json").stdout)
    assert (structure["skill"], structure["script"]) == ("forge", "fetch")
    assert [(need["kind"], need["name"]) for need in structure["needs"]] == [
        ("host", "api.github.com"),
        ("secret", "GITHUB_TOKEN"),
        ("package", "requests"),
    ]
    assert structure["needs"][0] == {
        "kind": "host",
        "name": "api.github.com",
        "source": "inferred",
        "where": "scripts/fetch.py:2",
        "is_met": False,
        "remedy": "skillkit grant forge --host api.github.com",
    }


def test_without_a_name_all_skills_are_told_in_short(root: Path) -> None:
    ended = skillkit(root, "needs")
    assert "forge  1 host, 1 secret" in ended.stdout
    assert ended.stdout.endswith("2 skills; 1 of them needs nothing.\n")
    assert [each["skill"] for each in json.loads(skillkit(root, "needs", "--json").stdout)["skills"]] == [
        "forge",
        "quiet",
    ]


def test_an_unknown_script_is_told_as_elsewhere(root: Path) -> None:
    ended = skillkit(root, "needs", "forge", "absent")
    assert ended.returncode == 127
    assert "absent" in ended.stderr


def test_show_and_check_tell_the_same(root: Path) -> None:
    assert "api.github.com" in skillkit(root, "show", "forge").stdout
    shown = json.loads(skillkit(root, "show", "forge", "--json").stdout)["needs"]
    told = json.loads(skillkit(root, "needs", "forge", "--json").stdout)["needs"]
    checked = json.loads(skillkit(root, "check", "forge", "fetch", "--json").stdout)["needs"]
    assert shown == told == checked
    assert (
        "host api.github.com: skillkit grant forge --host api.github.com"
        in skillkit(root, "check", "forge", "fetch").stdout
    )
    assert "needs" not in json.loads(skillkit(root, "check", "forge", "plain", "--json").stdout)["reasons"]


def on_terminal(root: Path, columns: int, *words: str) -> str:
    """What stands on a terminal of this width; one that is not there on any line was cut."""
    places = ["--skills", str(root), "--state-dir", str(root.parent / "state")]
    if words[0] == "grant":
        places = places[2:]
    child = pexpect.spawn(
        sys.executable,
        ["-m", "skillkit", *words, *places],
        dimensions=(60, columns),
        cwd=str(root.parent),
        encoding="utf-8",
        env={**{name: value for name, value in os.environ.items() if name != "COLUMNS"}, "NO_COLOR": "1"},
    )
    child.expect(pexpect.EOF, timeout=60)
    child.close()
    return str(child.before).replace("\r\n", "\n")


def test_a_narrow_terminal_cuts_no_place_no_digest_and_no_moment(root: Path) -> None:
    told = on_terminal(root, 40, "needs", "forge")
    assert "  no   host  api.github.com\n       scripts/fetch.py:2, inferred\n" in told
    digest = json.loads(skillkit(root, "show", "forge", "--json").stdout)["digest"]
    assert digest in on_terminal(root, 60, "show", "forge").replace("\n", "")
    given = ("grant", "forge", "--host", "api.github.com", "--yes")
    subprocess.run(
        [sys.executable, "-m", "skillkit", *given, "--skills", str(root), "--state-dir", str(root.parent / "state")],
        check=True,
        capture_output=True,
        cwd=root.parent,
    )
    lines = on_terminal(root, 40, "grant", "list").splitlines()
    assert lines[:3] == ["SKILL        forge", "GRANT        host:api.github.com", "NOW          holds"]
    assert re.fullmatch(r"SINCE \(UTC\)  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d", lines[3])
    assert lines[4].startswith("FOLDER       /")
