"""A script in walls and the world's state: the token of the page in it would let the script answer for the person."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.skill_folders import skill_folder

from skillkit import STANDARD, SkillManager

READS = """
import os, sys
folder = sys.argv[1]
print(sorted(os.listdir(folder)))
for name in ("mine.txt", "state/page.json", "state/later.json"):
    try:
        print(open(os.path.join(folder, name)).read())
    except OSError:
        print("out of reach")
"""


@pytest.fixture
def around(tmp_path: Path) -> Iterator[Path]:
    """Among users' files, which temporary ones are not where walls have a place of their own for those."""
    place = next((each for each in ("/srv", os.path.expanduser("~root")) if os.access(each, os.W_OK)), str(tmp_path))
    with tempfile.TemporaryDirectory(prefix="skillkit-proof-", dir=place) as folder:
        yield Path(folder)


@pytest.mark.parametrize("grant", ["readable_paths", "writable_paths", "workspace", "allow_filesystem"])
def test_no_grant_of_a_folder_around_it_opens_the_state(tmp_path: Path, around: Path, tier: str, grant: str) -> None:
    if grant == "allow_filesystem" and around.is_relative_to(tmp_path):
        pytest.skip("there is no folder outside the temporary ones")
    (around / "state").mkdir(parents=True)
    (around / "mine.txt").write_text("mine")
    (around / "state" / "page.json").write_text("token")
    skill_folder(tmp_path / "skills", "demo", files={"scripts/reads.py": READS})
    granted: dict[str, Any] = {} if grant == "workspace" else {grant: grant == "allow_filesystem" or (around,)}
    policy = replace(STANDARD, allow_network=True, **granted)
    workspace = around if grant == "workspace" else None
    with SkillManager(
        tmp_path / "skills", "", [], [], policy=policy, state_dir=around / "state", workspace=workspace
    ) as manager:
        result = manager.execute_skill_script("demo", "reads", argv=[str(around)])
    assert (result.isolation.tier, result.stderr) == (tier, "")
    listed, mine, *state = result.stdout.splitlines()
    assert "mine.txt" in listed
    assert mine == "mine", "the rest of the folder can be read"
    assert state == ["out of reach", "out of reach"]
