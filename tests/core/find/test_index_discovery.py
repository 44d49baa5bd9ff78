from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.skill_folders import codes, discovered, metadata_of, skill_folder

from skillkit.core.find.index import discover
from skillkit.core.find.roots import AGENT, PROJECT, Root


def test_no_bad_neighbour_stops_a_good_skill(tmp_path: Path) -> None:
    """Every way in which a SKILL.md can be bad, side by side with one that is good."""
    root = tmp_path / "root"
    skill_folder(root, "good")
    (root / "bare").mkdir()
    (root / "bare" / "SKILL.md").write_text("# no frontmatter")
    (root / "binary").mkdir()
    (root / "binary" / "SKILL.md").write_bytes(bytes(range(256)) * 100)
    skill_folder(root, "bomb", frontmatter="a: &a [*a]\n")
    skill_folder(root, "deep", frontmatter="a: " + "[" * 100_000)
    (root / "folder" / "SKILL.md").mkdir(parents=True)
    os.truncate(skill_folder(root, "huge") / "SKILL.md", 100_000_000)
    (root / "loop").mkdir()
    (root / "loop" / "SKILL.md").symlink_to("SKILL.md")
    (root / "lost").mkdir()
    (root / "lost" / "SKILL.md").symlink_to("nowhere")
    skill_folder(root, "mute", frontmatter="name: mute\n")
    skill_folder(root, "torn", frontmatter="[a, b\n")
    if hasattr(os, "mkfifo"):
        (root / "pipe").mkdir()
        os.mkfifo(root / "pipe" / "SKILL.md")
    (root / "dead").symlink_to("nowhere")
    found = discovered(root)
    told = {(problem.path.relative_to(root).parts[0], problem.code) for problem in found.diagnostics}
    expected = {
        ("bare", "no-frontmatter"),
        ("binary", "no-frontmatter"),
        ("bomb", "invalid-yaml"),
        ("dead", "broken-link"),
        ("deep", "invalid-yaml"),
        ("folder", "no-frontmatter"),
        ("huge", "no-frontmatter"),
        ("loop", "unreadable-file"),
        ("lost", "unreadable-file"),
        ("mute", "missing-field"),
        ("torn", "invalid-yaml"),
    }
    assert told == expected | ({("pipe", "no-frontmatter")} if hasattr(os, "mkfifo") else set())
    assert list(metadata_of(found)) == ["good"]
    assert all(problem.remedy and problem.path.is_absolute() for problem in found.diagnostics)


def test_a_skill_file_that_links_to_a_command_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "commands").mkdir()
    (tmp_path / "commands" / "deploy.md").write_text("---\nname: deploy\ndescription: Deploys.\n---\nDo.\n")
    (tmp_path / "skills" / "deploy").mkdir(parents=True)
    (tmp_path / "skills" / "deploy" / "SKILL.md").symlink_to("../../commands/deploy.md")
    found = discovered(tmp_path / "skills")
    assert metadata_of(found)["deploy"].base_directory == tmp_path / "skills" / "deploy"
    assert found.diagnostics == []


def test_a_folder_reached_by_two_roots_counts_once_and_is_told_once(tmp_path: Path) -> None:
    skill_folder(tmp_path / "real", "s", frontmatter="name: other\ndescription: d\n")
    skill_folder(tmp_path / "real", "bad", frontmatter="name: bad\n")
    (tmp_path / "alias").symlink_to("real")
    roots = [Root(tmp_path / "alias", PROJECT), Root(tmp_path / "real", AGENT)]
    found = discover(roots, cache_folder=tmp_path / "cache")
    assert [(skill.name, skill.qualified_name) for skill in found.skills] == [("other", "project:other")]
    assert codes(found.diagnostics) == ["missing-field", "name-mismatch"]


def test_roots_are_read_in_their_order(tmp_path: Path) -> None:
    for root in ("one", "two"):
        skill_folder(tmp_path / root, "s")
    roots = [Root(tmp_path / "two", PROJECT), Root(tmp_path / "one", AGENT)]
    found = discover(roots, cache_folder=tmp_path / "cache")
    assert [skill.qualified_name for skill in found.skills] == ["project:s", "agent:s"]


@pytest.mark.skipif(os.name == "nt", reason="names are bytes on POSIX")
def test_folder_names_that_are_not_utf_8_are_read_again_and_again(tmp_path: Path) -> None:
    folder = os.path.join(os.fsencode(tmp_path), b"root", b"caf\xe9")
    os.makedirs(folder)
    with open(os.path.join(folder, b"SKILL.md"), "wb") as file:
        file.write(b"---\ndescription: d\n---\n")
    first, second = (discovered(tmp_path / "root") for _ in range(2))
    assert list(metadata_of(first)) == ["caf\ufffd"]
    assert metadata_of(first) == metadata_of(second)
    json.dumps([str(diagnostic) for diagnostic in first.diagnostics])


AS_SOMEBODY_ELSE = """
import json, os, sys, tempfile
from pathlib import Path
from skillkit import SkillManager
from skillkit.core.find.validation import skill_files_and_problems, validate_skill_file

root, warm = Path(sys.argv[1]), Path(tempfile.mkdtemp())
(warm / "SKILL.md").write_text("---\\nname: x\\ndescription: d: e\\n---\\n")
def seen(folder, plugins, state):  # once before, so that nothing is left to import after
    manager = SkillManager("", "", plugins, [folder], state_dir=state)
    names = [skill.name for skill in manager.list_skills()]
    told = sorted((str(d.path.relative_to(folder)), d.code, bool(d.remedy)) for d in manager.diagnostics)
    list(map(validate_skill_file, skill_files_and_problems(folder)[0]))
    return names, told
seen(warm, [], warm / "state")
import shutil
shutil.rmtree(warm)
if os.getuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
print(json.dumps(seen(root, [root / "plugins"], root / "state")))
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can enter, unlike those of pytest."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    for path in [folder, *folder.rglob("*")]:
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o755)
    shutil.rmtree(folder)


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX permissions")
def test_what_may_not_be_read_is_told_and_stops_nothing(open_folder: Path) -> None:
    """Root may read everything, so a child process gives its rights away first."""
    skill_folder(open_folder, "good")
    (skill_folder(open_folder, "closed-file") / "SKILL.md").chmod(0)
    skill_folder(open_folder, "closed-folder").chmod(0)
    skill_folder(open_folder, "no-entry").chmod(0o644)
    for name in ("fine", "shut"):
        (open_folder / "plugins" / name / ".claude-plugin").mkdir(parents=True)
        (open_folder / "plugins" / name / ".claude-plugin" / "plugin.json").write_text(json.dumps({"name": name}))
        skill_folder(open_folder, f"plugins/{name}/skills/from-{name}")
    (open_folder / "plugins" / "shut" / ".claude-plugin").chmod(0)
    code = [sys.executable, "-c", AS_SOMEBODY_ELSE, str(open_folder)]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(code, capture_output=True, text=True, check=False, env=environment, cwd="/")
    assert done.stderr == ""
    names, told = json.loads(done.stdout)
    assert names == ["from-fine", "good", "from-shut"]
    assert told == [
        ["closed-file/SKILL.md", "unreadable-file", True],
        ["closed-folder", "unreadable-folder", True],
        ["no-entry/SKILL.md", "unreadable-file", True],
        ["plugins/shut/.claude-plugin/plugin.json", "bad-plugin", True],
    ]
