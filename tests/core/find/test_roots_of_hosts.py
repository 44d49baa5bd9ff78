"""Which folders of hosts are searched, in which order: of the project, above it, of the user, of the machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.skill_folders import codes, skill_folder

from skillkit import SkillManager
from skillkit.core.find.roots import agent_roots, project_roots
from skillkit.core.paths.hosts import PROJECT_LEVEL, USER_LEVEL, folders_at
from skillkit.core.values.skills import Diagnostic


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository; the current folder is two levels below its top."""
    top = tmp_path / "outside" / "repository"
    for folder in (top / ".git", top / "packages" / "web"):
        folder.mkdir(parents=True)
    monkeypatch.chdir(top / "packages" / "web")
    return top


def names() -> list[str]:
    return [skill.name for skill in SkillManager().list_skills()]


@pytest.mark.parametrize(("folder", "host"), folders_at(PROJECT_LEVEL))
def test_a_projects_folder_of_any_host_is_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, host: str
) -> None:
    monkeypatch.chdir(tmp_path)
    skill_folder(tmp_path / folder, "deploy")
    (skill,) = SkillManager().list_skills()
    assert (skill.source, skill.host, skill.base_directory) == ("project", host, tmp_path / folder / "deploy")


@pytest.mark.parametrize(("folder", "host"), folders_at(USER_LEVEL))
def test_a_users_folder_of_any_host_is_searched(
    tmp_path: Path, private_home: Path, monkeypatch: pytest.MonkeyPatch, folder: str, host: str
) -> None:
    monkeypatch.chdir(tmp_path)
    skill_folder(private_home / folder, "deploy")
    (skill,) = SkillManager().list_skills()
    assert (skill.source, skill.host) == ("agent", host)


def test_nearer_folders_come_first_and_the_users_last(repository: Path, private_home: Path) -> None:
    for folder, name in (
        (private_home / ".agents/skills", "five"),
        (repository / ".codex/skills", "four"),
        (repository / "skills", "three"),
        (repository / "packages/.claude/skills", "two"),
        (repository / "packages/web/.qwen/skills", "one"),
    ):
        skill_folder(folder, name)
    assert names() == ["one", "two", "three", "four", "five"]


def test_above_the_top_of_the_repository_nothing_is_searched(repository: Path) -> None:
    skill_folder(repository.parent / ".claude/skills", "outside")
    skill_folder(repository / ".claude/skills", "inside")
    assert names() == ["inside"]


def test_without_a_repository_only_the_project_is_searched(repository: Path) -> None:
    (repository / ".git").rmdir()
    skill_folder(repository / ".claude/skills", "above")
    skill_folder(repository / "packages/web/.claude/skills", "here")
    assert names() == ["here"]


def test_a_worktrees_mark_is_a_file(repository: Path) -> None:
    (repository / ".git").rmdir()
    (repository / ".git").write_text("gitdir: elsewhere\n")
    skill_folder(repository / ".claude/skills", "above")
    assert names() == ["above"]


def test_a_repository_of_the_home_folder_does_not_make_it_a_project(
    private_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = private_home / "work" / "project"
    work.mkdir(parents=True)
    (private_home / ".git").mkdir()
    skill_folder(private_home / "skills", "not-a-place-of-the-user")
    skill_folder(private_home / ".claude/skills", "own")
    skill_folder(private_home / "work" / "skills", "above")
    monkeypatch.chdir(work)
    assert [(skill.name, skill.source) for skill in SkillManager().list_skills()] == [
        ("above", "project"),
        ("own", "agent"),
    ]


def test_nothing_above_the_home_folder_is_searched(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    skill_folder(repository / "skills", "above")
    assert names() == ["above"]
    monkeypatch.setenv("HOME", str(repository / "packages"))
    assert names() == []


def test_at_home_a_folder_is_searched_once(private_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    skill_folder(private_home / ".claude/skills", "own")
    monkeypatch.chdir(private_home)
    assert [root.path for root in SkillManager().roots] == [private_home / ".claude/skills"]


def test_off_means_the_first_three_folders_of_project_and_user(repository: Path, private_home: Path) -> None:
    here = repository / "packages" / "web"
    for folder in (here, private_home, repository):
        for name, _ in folders_at(PROJECT_LEVEL):
            skill_folder(folder / name, f"{folder.name}-{name.replace('/', '-').strip('.')}")
    roots = [root.path for root in SkillManager(host_folders=False).roots]
    three = ("skills", ".agents/skills", ".claude/skills")
    assert roots == [here / name for name in three] + [private_home / name for name in three[1:]]
    assert len(SkillManager().roots) > len(roots)


def test_a_folder_that_was_named_is_used_alone(repository: Path, private_home: Path) -> None:
    skill_folder(repository / ".codex/skills", "above")
    skill_folder(private_home / ".codex/skills", "own")
    skill_folder(repository / "given", "given")
    manager = SkillManager(repository / "given", "")
    assert [skill.name for skill in manager.list_skills()] == ["given"]
    assert (project_roots(""), agent_roots("")) == ([], [])


def test_losers_of_one_source_stay_reachable_by_their_host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in (".claude/skills", ".codex/skills", ".gemini/skills"):
        skill_folder(tmp_path / folder, "deploy", body=f"As {folder} says.\n")
    manager = SkillManager()
    assert manager.get_skill("deploy").host == "claude"
    assert manager.get_skill("project/codex:deploy").host == "codex"
    assert manager.get_skill("project/gemini:deploy").host == "gemini"
    assert codes(manager.diagnostics) == ["shadowed", "shadowed"]
    assert [problem.remedy for problem in manager.diagnostics] == [
        "It stays reachable as 'project/codex:deploy'.",
        "It stays reachable as 'project/gemini:deploy'.",
    ]


# Whoever can put a folder above the project can offer skills there. /tmp is everybody's.


@pytest.mark.skipif(os.name == "nt", reason="no owners there")
def test_a_repository_in_a_folder_of_everybody_gives_no_skills(repository: Path) -> None:
    skill_folder(repository / ".claude/skills", "planted")
    assert names() == ["planted"]  # control: in a folder of one's own it counts
    repository.chmod(0o1777)
    problems: list[Diagnostic] = []
    assert project_roots(None, problems=problems) == []
    (problem,) = problems
    assert problem.code == "folder-of-others"
    assert problem.message.startswith(f"Not searched, because {repository} can be written by everybody: ")
    manager = SkillManager()
    assert (manager.list_skills(), codes(manager.diagnostics)) == ([], ["folder-of-others"])


OF_ROOT_ALONE = pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")


@OF_ROOT_ALONE
@pytest.mark.parametrize(
    "given_away", [".git", ".", "packages", "packages/.claude", "packages/.claude/skills"], ids=repr
)
def test_what_another_user_made_above_the_project_gives_no_skills(repository: Path, given_away: str) -> None:
    skill_folder(repository / "packages/.claude/skills", "planted")
    assert names() == ["planted"]
    os.chown(repository / given_away, 65534, 65534)
    manager = SkillManager()
    assert manager.list_skills() == []
    (problem,) = manager.diagnostics
    assert "belongs to another user (number 65534)" in problem.message


@OF_ROOT_ALONE
def test_a_nearer_mark_of_another_user_does_not_open_what_is_above(repository: Path) -> None:
    """It may hide the user's repository, but nothing more is searched for it."""
    skill_folder(repository / ".claude/skills", "above")
    (repository / "packages" / ".git").mkdir()
    os.chown(repository / "packages" / ".git", 65534, 65534)
    skill_folder(repository / "packages/.claude/skills", "planted")
    assert names() == []


def test_a_planted_skill_cannot_take_a_folders_name(tmp_path: Path) -> None:
    mine = skill_folder(tmp_path / "b", "deploy", body="Mine.\n")
    skill_folder(tmp_path / "a", "deploy", body="First.\n")
    skill_folder(tmp_path / "a", "other", frontmatter=f"name: {mine}\ndescription: takes its place\n")
    manager = SkillManager("", "", None, [tmp_path / "a", tmp_path / "b"])
    assert manager.get_skill(str(mine)).base_directory == mine


def test_copies_are_one_skill_with_several_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in (".agents/skills", ".claude/skills", ".codex/skills", ".gemini/skills"):
        skill_folder(tmp_path / folder, "deploy", files={"scripts/run.sh": "echo run\n"})
    (tmp_path / ".codex/skills/deploy/scripts/run.sh").write_text("echo other\n")
    manager = SkillManager()
    assert codes(manager.diagnostics) == ["shadowed"]
    found = manager.skill_places(include_shadowed=True)
    assert {name: [place.host for place in places] for name, places in found.items()} == {
        "deploy": ["", "claude", "gemini"],
        "project/codex:deploy": ["codex"],
    }
    assert list(manager.skill_places()) == ["deploy"]
    assert len(manager.list_skills(include_shadowed=True)) == 4


def test_a_copy_that_cannot_be_read_as_a_whole_is_no_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in (".agents/skills", ".claude/skills"):
        (skill_folder(tmp_path / folder, "deploy") / "pipe").mkdir()
    os.mkfifo(tmp_path / ".claude/skills/deploy/pipe/in")
    assert codes(SkillManager().diagnostics) == ["shadowed"]
