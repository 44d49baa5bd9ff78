from __future__ import annotations

import asyncio
import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from support.skill_folders import codes, skill_folder

from skillkit import (
    ConfigurationError,
    ContentLoadError,
    ScriptMetadata,
    Skill,
    SkillManager,
    SkillMetadata,
    SkillNotFoundError,
)


def four_sources(tmp_path: Path) -> SkillManager:
    """A skill `same` in each of the four places, and one that only its place has."""
    plugin = tmp_path / "plugin"
    (plugin / ".claude-plugin").mkdir(parents=True)
    (plugin / ".claude-plugin" / "plugin.json").write_text(json.dumps({"name": "tools"}))
    for root, name in (("project", "p"), ("agent", "a"), ("plugin/skills", "t"), ("extra", "e")):
        skill_folder(tmp_path / root, "same", frontmatter=f"name: same\ndescription: from {root}\n")
        skill_folder(tmp_path / root, f"only-{name}")
    return SkillManager(tmp_path / "project", tmp_path / "agent", [plugin], [tmp_path / "extra"])


def test_project_comes_before_agent_plugins_and_paths(tmp_path: Path) -> None:
    manager = four_sources(tmp_path)
    assert manager.get_skill("same").description == "from project"
    descriptions = {
        source: manager.get_skill(f"{source}:same").description for source in ("project", "agent", "tools", "path")
    }
    assert descriptions == {
        "project": "from project",
        "agent": "from agent",
        "tools": "from plugin/skills",
        "path": "from extra",
    }
    assert codes(manager.diagnostics) == ["shadowed"] * 3
    assert [diagnostic.remedy for diagnostic in manager.diagnostics] == [
        f"It stays reachable as '{source}:same'." for source in ("agent", "tools", "path")
    ]


def test_skills_are_listed_in_order_of_precedence(tmp_path: Path) -> None:
    manager = four_sources(tmp_path)
    assert [skill.name for skill in manager.list_skills()] == ["only-p", "same", "only-a", "only-t", "only-e"]
    assert len(manager.list_skills(include_shadowed=True)) == 8


def test_without_configuration_the_usual_places_are_searched(
    tmp_path: Path, private_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder, name in (
        (tmp_path / "skills", "one"),
        (tmp_path / ".agents/skills", "two"),
        (tmp_path / ".claude/skills", "three"),
        (private_home / ".agents/skills", "four"),
        (private_home / ".claude/skills", "five"),
    ):
        skill_folder(folder, name)
    skills = [(skill.name, skill.source) for skill in SkillManager().list_skills()]
    assert skills == [
        ("one", "project"),
        ("two", "project"),
        ("three", "project"),
        ("four", "agent"),
        ("five", "agent"),
    ]


def test_nothing_configured_and_nothing_there_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    manager = SkillManager()
    assert (manager.roots, manager.list_skills(), manager.diagnostics) == ((), [], [])


def test_everything_can_be_switched_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    skill_folder(tmp_path / "skills", "one")
    assert SkillManager("", "", [], []).list_skills() == []


@pytest.mark.parametrize(
    ("setting", "given"),
    [
        ("project_skill_dir", "gone"),
        ("anthropic_config_dir", "gone"),
        ("plugin_dirs", ["gone"]),
        ("additional_search_paths", ["gone"]),
    ],
)
def test_a_path_that_does_not_exist_is_a_configuration_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str, given: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigurationError, match=rf"{setting}: .*gone is not a folder\. Create it, correct the path"):
        SkillManager(**{setting: given})


@pytest.mark.parametrize("setting", ["plugin_dirs", "additional_search_paths", "protected_paths"])
@pytest.mark.parametrize("make", [str, Path])
def test_one_path_where_a_list_belongs_is_a_configuration_error_and_no_list_of_characters(
    tmp_path: Path, setting: str, make: Any
) -> None:
    with pytest.raises(ConfigurationError, match=rf"{setting} is a list of paths; '{tmp_path}' is one path\. Write \["):
        SkillManager("", "", **{setting: make(tmp_path)})


@pytest.mark.parametrize("policy", ["guarded", {"allow_scripts": True}, "", {}])
def test_a_policy_that_is_none_is_a_configuration_error(policy: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"A policy is a ScriptPolicy; .* is not\. Name a profile"):
        SkillManager("", "", policy=policy)


@pytest.mark.parametrize("seconds", [0, 0.99, 601, -1, float("nan"), float("inf"), True])
def test_a_timeout_out_of_range_is_a_configuration_error(seconds: float) -> None:
    with pytest.raises(ConfigurationError, match=r"A timeout is 1 to 600 seconds; .* is not"):
        SkillManager("", "", default_script_timeout=seconds)


@pytest.mark.parametrize("seconds", [1, 1.5, 30, 600])
def test_a_timeout_in_range_is_kept(seconds: float) -> None:
    assert SkillManager("", "", default_script_timeout=seconds).default_script_timeout == seconds


def test_discovering_twice_says_the_same(tmp_path: Path) -> None:
    skill_folder(tmp_path / "root", "bad", frontmatter="name: bad\n")
    skill_folder(tmp_path / "root", "good", frontmatter="name: other\ndescription: a: b\nx: {y: [1, null]}\n")
    manager = SkillManager(tmp_path / "root", "")
    manager.discover()
    first = (manager.list_skills(), manager.diagnostics)
    manager.discover()
    assert (manager.list_skills(), manager.diagnostics) == first
    assert codes(first[1]) == ["missing-field", "repaired-value", "name-mismatch"]


def test_a_new_discovery_sees_what_changed(tmp_path: Path) -> None:
    root = skill_folder(tmp_path / "root", "one").parent
    manager = SkillManager(root, "")
    assert [skill.name for skill in manager.list_skills()] == ["one"]
    skill_folder(root, "two")
    assert [skill.name for skill in manager.list_skills()] == ["one"]
    manager.discover()
    assert [skill.name for skill in manager.list_skills()] == ["one", "two"]


def test_loading_gives_the_same_object_until_the_next_discovery(tmp_path: Path) -> None:
    skill_folder(tmp_path / "root", "s")
    with SkillManager(tmp_path / "root", "") as manager:
        loaded = manager.load_skill("s")
        assert manager.load_skill("project:s") is loaded
        assert loaded.base_dir == loaded.base_directory == tmp_path / "root" / "s"
        manager.discover()
        assert manager.load_skill("s") is not loaded
        assert loaded.content == "Do it.\n"


def test_a_skill_named_like_the_file_of_another_does_not_stand_in_for_it(tmp_path: Path) -> None:
    meant = skill_folder(tmp_path / "mine", "pdf")
    other = skill_folder(tmp_path / "others", "other")
    (other / "SKILL.md").write_text(f"---\nname: {meant}/SKILL.md\ndescription: Does it.\n---\nDo it.\n")
    manager = SkillManager("", "", [], [tmp_path / "mine", tmp_path / "others"])
    assert manager.load_skill(f"{meant}/SKILL.md").base_directory == other
    assert manager.load_skill("pdf").base_directory == meant
    assert manager.load_skill(f"{meant}/SKILL.md").base_directory == other


def test_a_skill_removed_after_discovery_is_an_error_when_its_text_is_asked_for(tmp_path: Path) -> None:
    folder = skill_folder(tmp_path / "root", "s")
    manager = SkillManager(tmp_path / "root", "")
    manager.discover()
    (folder / "SKILL.md").unlink()
    with pytest.raises(ContentLoadError, match="cannot be read any more"):
        manager.invoke_skill("s")


def test_an_unknown_skill_is_an_error_that_says_what_exists(tmp_path: Path) -> None:
    skill_folder(tmp_path / "root", "s")
    manager = SkillManager(tmp_path / "root", "")
    for ask in (manager.get_skill, manager.load_skill, manager.invoke_skill, manager.list_scripts):
        with pytest.raises(SkillNotFoundError, match=r"No skill is named '../../etc'\. There are: s\."):
            ask("../../etc")


def test_scripts_are_listed_at_first_use_and_kept(tmp_path: Path) -> None:
    folder = skill_folder(tmp_path / "root", "s", files={"scripts/run.py": '"""Runs it."""\n'})
    manager = SkillManager(tmp_path / "root", "")
    expected = [ScriptMetadata("run", Path("scripts/run.py"), "python", "Runs it.")]
    assert manager.list_scripts("s") == expected
    (folder / "scripts" / "more.py").write_text("")
    assert manager.list_scripts("s") == expected
    manager.list_scripts("s").clear()
    assert manager.load_skill("s").scripts == expected


def test_the_skill_is_invoked_with_everything_the_manager_knows(tmp_path: Path) -> None:
    body = "$ARGUMENTS in {baseDir} for ${CLAUDE_PROJECT_DIR} in ${CLAUDE_SESSION_ID}\n"
    folder = skill_folder(tmp_path / "root", "s", body=body)
    manager = SkillManager(tmp_path / "root", "", session_id="s-1", workspace=tmp_path)
    expected = f"Base directory for this skill: {folder}\n\nfix it in {folder} for {tmp_path} in s-1\n"
    assert manager.invoke_skill("s", "fix it") == expected
    assert asyncio.run(manager.ainvoke_skill("s", "fix it")) == expected


def test_the_state_folder_is_the_given_one_else_that_of_the_environment(tmp_path: Path, private_home: Path) -> None:
    assert SkillManager("", "", state_dir=tmp_path).state_dir == tmp_path
    assert SkillManager("", "").state_dir == private_home / "state"


def test_making_a_manager_creates_nothing(tmp_path: Path, private_home: Path) -> None:
    skill_folder(tmp_path / "root", "s")
    SkillManager(tmp_path / "root", "")
    assert list(private_home.iterdir()) == []


@pytest.mark.parametrize("method", ["discover", "invoke_skill"])
def test_async_twins_do_not_block_the_loop(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The work waits until the loop has turned, so a twin that blocks the loop never ends."""
    manager = SkillManager("", "")
    turned = threading.Event()
    worked_in: list[int] = []

    def waiting(*_: object) -> str:
        worked_in.append(threading.get_ident())
        assert turned.wait(20)
        return "done"

    monkeypatch.setattr(manager, method, waiting)

    async def both() -> None:
        arguments = ["s"] if method == "invoke_skill" else []
        task = asyncio.ensure_future(getattr(manager, f"a{method}")(*arguments))
        await asyncio.sleep(0)
        turned.set()
        await task

    asyncio.run(both())
    assert len(worked_in) == 1
    assert worked_in != [threading.get_ident()]


def test_adiscover_finds_what_discover_finds(tmp_path: Path) -> None:
    skill_folder(tmp_path / "root", "s")
    manager = SkillManager(tmp_path / "root", "")
    asyncio.run(manager.adiscover())
    assert [skill.name for skill in manager.list_skills()] == ["s"]


def test_many_threads_may_use_one_manager(tmp_path: Path) -> None:
    for number in range(20):
        skill_folder(tmp_path / "root", f"s{number}")
    manager = SkillManager(tmp_path / "root", "")
    stop = time.monotonic() + 1
    failures: list[BaseException] = []

    def use() -> None:
        try:
            while time.monotonic() < stop:
                manager.discover()
                assert len(manager.list_skills()) == 20
                assert "Do it." in manager.invoke_skill("s7")
        except BaseException as error:  # noqa: BLE001 - whatever went wrong in a thread fails the test
            failures.append(error)

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_skill_can_be_made_with_a_folder_of_its_own(tmp_path: Path) -> None:
    skill_folder(tmp_path, "one", files={"scripts/a.sh": ""})
    skill_folder(tmp_path, "two", files={"scripts/b.sh": ""})
    metadata = SkillMetadata("one", "d", tmp_path / "one" / "SKILL.md")
    assert Skill(metadata=metadata).base_directory == tmp_path / "one"
    other = Skill(metadata=metadata, base_directory=tmp_path / "two")
    assert (other.base_dir, [script.name for script in other.scripts]) == (tmp_path / "two", ["b"])
