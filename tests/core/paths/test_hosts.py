"""The table of hosts' folders: what is searched is what is guarded."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from skillkit.core.paths.guarded_names import guarded_inside, is_guarded_name, is_obeyed_folder
from skillkit.core.paths.hosts import HOSTS, PROJECT_LEVEL, SYSTEM_LEVEL, USER_LEVEL, folders_at
from skillkit.core.run.guard.tree import Tree

EVERYTHING = sorted({folder for host in HOSTS for folder in (*host.project, *host.user)})


def test_the_order_in_a_level_is_skills_agents_claude_then_by_name() -> None:
    for level in (PROJECT_LEVEL, USER_LEVEL):
        folders = [folder for folder, _ in folders_at(level)]
        first = [name for name in ("skills", ".agents/skills", ".claude/skills") if name in folders]
        assert folders[: len(first)] == first
        assert folders[len(first) :] == sorted(folders[len(first) :])
        assert [folder for folder, _ in folders_at(level, of_all_hosts=False)] == first


@pytest.mark.parametrize(
    ("level", "host", "folders"),
    [
        (PROJECT_LEVEL, "codex", [".codex/skills"]),
        (USER_LEVEL, "codex", [".codex/skills"]),
        (PROJECT_LEVEL, "opencode", [".opencode/skill", ".opencode/skills"]),
        (USER_LEVEL, "goose", [".config/agents/skills", ".config/goose/skills"]),
        (PROJECT_LEVEL, "copilot", [".github/skills"]),
        (USER_LEVEL, "copilot", [".copilot/skills"]),
        (PROJECT_LEVEL, "cline", [".cline/skills", ".clinerules/skills"]),
        (PROJECT_LEVEL, "", ["skills", ".agents/skills"]),
    ],
)
def test_each_host_has_its_folders(level: str, host: str, folders: list[str]) -> None:
    assert [folder for folder, name in folders_at(level) if name == host] == folders


@pytest.mark.skipif(os.name == "nt", reason="there anybody may make a folder /etc")
def test_the_machine_has_folders_of_two_hosts() -> None:
    assert folders_at(SYSTEM_LEVEL) == (
        ("/etc/claude-code/.claude/skills", "claude"),
        ("/etc/codex/skills", "codex"),
    )


@pytest.mark.parametrize("folder", EVERYTHING)
def test_the_name_of_every_folder_that_is_searched_is_guarded(folder: str) -> None:
    first, *rest = folder.split("/")
    assert is_guarded_name(first) or (
        is_obeyed_folder(first) and (not rest or [*guarded_inside(first, rest)] == rest[:1])
    )


@pytest.mark.parametrize("folder", EVERYTHING)
def test_a_skill_that_is_made_in_any_of_them_is_seen_by_the_guard(tmp_path: Path, folder: str) -> None:
    (tmp_path / "sub").mkdir()
    tree = Tree(str(tmp_path))
    assert tree.look() == ()
    skill = tmp_path / "sub" / folder / "evil"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: evil\ndescription: x\n---\n")
    (seen,) = tree.look(is_after_run=True)
    assert skill.is_relative_to(seen.path)
    tree.close()
