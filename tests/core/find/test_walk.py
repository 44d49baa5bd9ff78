from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.skill_folders import codes, skill_folder

from skillkit.core.find import walk as walk_module
from skillkit.core.find.walk import Walk


def walked(root: Path) -> tuple[list[str], Walk]:
    """Paths of the skill files relative to the root, and the walk."""
    walk = Walk(str(root))
    return [os.path.relpath(path, root) for path, _, _ in walk.files()], walk


def test_skills_are_found_breadth_first_in_order(tmp_path: Path) -> None:
    for name in ("b", "a", "group/z", "group/sub/y", "a/nested"):
        skill_folder(tmp_path, name)
    found, walk = walked(tmp_path)
    assert found == ["a/SKILL.md", "b/SKILL.md", "a/nested/SKILL.md", "group/z/SKILL.md", "group/sub/y/SKILL.md"]
    assert walk.problems == []


def test_the_root_itself_may_be_a_skill(tmp_path: Path) -> None:
    skill_folder(tmp_path, "one")
    assert walked(tmp_path / "one")[0] == ["SKILL.md"]


@pytest.mark.parametrize("name", ["skill.md", "Skill.md", "SKILL.MD"])
def test_other_spellings_of_the_file_name_are_found(tmp_path: Path, name: str) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / name).write_text("")
    assert walked(tmp_path)[0] == [f"one/{name}"]


def test_the_proper_spelling_comes_first(tmp_path: Path) -> None:
    (tmp_path / "SKILL.md").write_text("")
    (tmp_path / "skill.md").write_text("")
    assert walked(tmp_path)[0] == ["SKILL.md"]


def test_what_a_skill_keeps_for_itself_is_not_entered(tmp_path: Path) -> None:
    for name in ("s", "s/scripts/a", "s/references/b", "s/assets/c", "s/more/d", "other/scripts/e"):
        skill_folder(tmp_path, name)
    assert walked(tmp_path)[0] == ["s/SKILL.md", "other/scripts/e/SKILL.md", "s/more/d/SKILL.md"]


def test_a_link_named_scripts_is_not_entered_either(tmp_path: Path) -> None:
    elsewhere = skill_folder(tmp_path, "elsewhere/a").parent
    folder = skill_folder(tmp_path / "root", "s")
    (folder / "scripts").symlink_to(elsewhere)
    assert walked(tmp_path / "root")[0] == ["s/SKILL.md"]


@pytest.mark.parametrize("name", [".git", "node_modules", "__pycache__", ".venv", "venv", "site-packages", ".hidden"])
def test_folders_that_hold_no_skills_are_skipped(tmp_path: Path, name: str) -> None:
    skill_folder(tmp_path, f"{name}/s")
    assert walked(tmp_path)[0] == []


@pytest.mark.parametrize(
    "name", [".claude", ".agents", ".github", ".codex", ".gemini", ".opencode", ".qwen", ".cursor", ".clinerules"]
)
def test_hidden_folders_of_agents_are_entered(tmp_path: Path, name: str) -> None:
    skill_folder(tmp_path, f"{name}/skills/s")
    assert walked(tmp_path)[0] == [f"{name}/skills/s/SKILL.md"]


def test_the_walk_goes_six_levels_deep(tmp_path: Path) -> None:
    skill_folder(tmp_path, "1/2/3/4/5/6")
    skill_folder(tmp_path, "x/2/3/4/5/6/7")
    found, walk = walked(tmp_path)
    assert found == ["1/2/3/4/5/6/SKILL.md"]
    (problem,) = walk.problems
    assert (problem.severity, problem.code, problem.path) == ("warning", "too-deep", tmp_path / "x/2/3/4/5/6")
    assert problem.message.endswith(f"are not searched; stopped at {tmp_path}/x/2/3/4/5/6.")
    assert "skills.paths" in problem.remedy


def test_where_it_stopped_is_told_once_however_often(tmp_path: Path) -> None:
    for name in "abc":
        skill_folder(tmp_path, f"{name}/2/3/4/5/6/7")
    (tmp_path / "d/2/3/4/5/6").mkdir(parents=True)
    (tmp_path / "d/2/3/4/5/6/file").symlink_to(tmp_path)
    (tmp_path / "e/2/3/4/5/6").mkdir(parents=True)
    (tmp_path / "e/2/3/4/5/6/file").write_text("")
    (tmp_path / "e/2/3/4/5/6/link").symlink_to("file")
    (problem,) = walked(tmp_path)[1].problems
    assert problem.message.endswith(f"stopped at {tmp_path}/a/2/3/4/5/6 and 3 more folders.")


def test_the_walk_stops_at_the_folder_limit_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk_module, "FOLDER_LIMIT", 3)
    for name in "abcd":
        skill_folder(tmp_path, name)
    found, walk = walked(tmp_path)
    assert found == ["a/SKILL.md", "b/SKILL.md"]
    (problem,) = walk.problems
    assert (problem.severity, problem.code, problem.path) == ("error", "too-many-folders", tmp_path / "c")
    assert problem.remedy == "Name a narrower path."


def test_progress_is_told_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk_module, "PROGRESS_STEP", 2)
    for name in "abcd":
        skill_folder(tmp_path, name)
    told: list[int] = []
    list(Walk(str(tmp_path), told.append).files())
    assert told == [2, 4]


def test_a_cycle_of_links_ends(tmp_path: Path) -> None:
    folder = skill_folder(tmp_path, "s")
    (folder / "self").symlink_to(".")
    (folder / "root").symlink_to("..")
    (tmp_path / "group").mkdir()
    (tmp_path / "group" / "back").symlink_to("../s")
    found, walk = walked(tmp_path)
    assert (found, walk.problems) == (["s/SKILL.md"], [])


def test_a_link_loop_and_a_broken_link_are_survived_and_told(tmp_path: Path) -> None:
    skill_folder(tmp_path, "s")
    (tmp_path / "broken").symlink_to("nowhere")
    (tmp_path / "loop").symlink_to("loop")
    found, walk = walked(tmp_path)
    assert found == ["s/SKILL.md"]
    assert [(p.severity, p.code, p.path.name) for p in walk.problems] == [
        ("warning", "broken-link", "broken"),
        ("warning", "broken-link", "loop"),
    ]
    assert all(problem.remedy for problem in walk.problems)


def test_a_linked_skill_outside_the_root_is_found(tmp_path: Path) -> None:
    target = skill_folder(tmp_path, "elsewhere/s")
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "alias").symlink_to(target)
    assert walked(tmp_path / "root")[0] == ["alias/SKILL.md"]


def test_a_skill_linked_twice_is_found_once_under_its_own_name(tmp_path: Path) -> None:
    skill_folder(tmp_path, "s")
    (tmp_path / "a").symlink_to("s")
    assert walked(tmp_path)[0] == ["s/SKILL.md"]


def test_a_link_to_a_folder_above_is_not_followed_and_told(tmp_path: Path) -> None:
    """Otherwise a link to `/` would make a project's folder speak for the whole machine."""
    skill_folder(tmp_path, "neighbour")
    skill_folder(tmp_path / "root", "s")
    (tmp_path / "root" / "up").symlink_to("..")
    (tmp_path / "root" / "top").symlink_to("/")
    found, walk = walked(tmp_path / "root")
    assert found == ["s/SKILL.md"]
    assert [(p.severity, p.code, p.path.name) for p in walk.problems] == [
        ("warning", "link-upwards", "top"),
        ("warning", "link-upwards", "up"),
    ]


def test_a_root_that_is_a_link_keeps_its_name(tmp_path: Path) -> None:
    skill_folder(tmp_path / "real", "s")
    (tmp_path / "alias").symlink_to("real")
    walk = Walk(str(tmp_path / "alias"))
    ((path, real_folder, _),) = walk.files()
    assert (path, real_folder) == (f"{tmp_path}/alias/s/SKILL.md", os.path.realpath(tmp_path / "real" / "s"))


def test_a_root_that_vanished_is_a_problem(tmp_path: Path) -> None:
    found, walk = walked(tmp_path / "gone")
    assert (found, codes(walk.problems)) == ([], ["unreadable-folder"])


def test_a_file_that_vanishes_after_it_was_listed_is_a_problem(tmp_path: Path) -> None:
    walk = Walk(str(tmp_path))
    assert walk.found_file(str(tmp_path / "SKILL.md"), str(tmp_path)) is None
    (problem,) = walk.problems
    assert (problem.code, problem.path, problem.remedy) == (
        "unreadable-file",
        tmp_path / "SKILL.md",
        "Make it readable or remove it.",
    )


def test_a_skill_file_that_is_a_link_loop_is_a_problem(tmp_path: Path) -> None:
    skill_folder(tmp_path, "good")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "SKILL.md").symlink_to("SKILL.md")
    found, walk = walked(tmp_path)
    assert (found, codes(walk.problems)) == (["good/SKILL.md"], ["unreadable-file"])


def test_ten_thousand_files_in_a_skill_are_no_trouble(tmp_path: Path) -> None:
    folder = skill_folder(tmp_path, "s")
    for number in range(10_000):
        (folder / f"file{number}.txt").touch()
    found, walk = walked(tmp_path)
    assert (found, walk.problems, walk.folders) == (["s/SKILL.md"], [], 2)


@pytest.mark.skipif(os.name == "nt", reason="names are bytes on POSIX")
def test_names_that_are_not_utf_8_are_walked(tmp_path: Path) -> None:
    odd = os.path.join(os.fsencode(tmp_path), b"caf\xe9")
    os.mkdir(odd)
    with open(os.path.join(odd, b"SKILL.md"), "wb"), open(os.path.join(odd, b"\xff\xfe.txt"), "wb"):
        pass
    assert walked(tmp_path)[0] == ["caf\udce9/SKILL.md"]
