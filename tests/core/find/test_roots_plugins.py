from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from support.skill_folders import skill_folder

from skillkit import (
    ConfigurationError,
    ManifestNotFoundError,
    ManifestParseError,
    ManifestValidationError,
    SkillManager,
)
from skillkit.core.find.plugins import installed_plugin_roots, plugin_roots, read_manifest
from skillkit.core.find.roots import Root
from skillkit.core.values.skills import Diagnostic


def plugin(folder: Path, manifest: Any) -> Path:
    """A plugin folder; text is written as it is, anything else as JSON."""
    (folder / ".claude-plugin").mkdir(parents=True)
    text = manifest if isinstance(manifest, str) else json.dumps(manifest)
    (folder / ".claude-plugin" / "plugin.json").write_text(text)
    return folder


def found(*folders: Path) -> tuple[list[Root], list[Diagnostic]]:
    problems: list[Diagnostic] = []
    return plugin_roots(folders, problems), problems


def test_a_plugin_brings_its_skills_folder(tmp_path: Path) -> None:
    folder = plugin(tmp_path / "p", {"name": "tools"})
    skill_folder(folder, "skills/s")
    assert found(folder) == ([Root(folder / "skills", "tools", folder)], [])


def test_a_manifest_may_name_other_folders(tmp_path: Path) -> None:
    folder = plugin(tmp_path / "p", {"name": "tools", "skills": ["./extra/", "extra", "././extra", "more"]})
    for name in ("skills", "extra", "more"):
        (folder / name).mkdir()
    roots, problems = found(folder)
    assert ([root.path.name for root in roots], problems) == (["skills", "extra", "more"], [])


def test_one_text_names_one_folder_and_a_dot_the_plugin_itself(tmp_path: Path) -> None:
    folder = plugin(tmp_path / "p", {"name": "tools", "skills": "./"})
    assert found(folder) == ([Root(folder, "tools", folder)], [])


def test_a_collection_brings_the_plugins_one_level_below(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (plugin(tmp_path / name, {"name": name}) / "skills").mkdir()
    (tmp_path / "README.md").write_text("")
    roots, problems = found(tmp_path)
    assert ([root.source for root in roots], problems) == (["a", "b"], [])


@pytest.mark.parametrize(
    ("manifest", "message", "line"),
    [
        pytest.param("{\n  'name': 1}", "cannot be read as JSON", 2, id="not JSON"),
        pytest.param("[1]", "is not a JSON object", None, id="a list"),
        pytest.param("[" * 100_000, "cannot be read as JSON", None, id="too deep"),
        pytest.param({}, "'name' must be a text", None, id="no name"),
        pytest.param({"name": 5}, "'name' must be a text", None, id="name is a number"),
        pytest.param({"name": "a:b"}, "'name' must be a text", None, id="a colon would forge a qualified name"),
        pytest.param({"name": "a\nb"}, "'name' must be a text", None, id="a line end"),
        pytest.param({"name": "\x1b[31m"}, "'name' must be a text", None, id="a terminal code"),
        pytest.param({"name": "project"}, "uses for its own", None, id="passes for the project"),
        pytest.param({"name": "agent"}, "uses for its own", None, id="passes for the user"),
        pytest.param({"name": "path"}, "uses for its own", None, id="passes for a search path"),
        pytest.param({"name": "p", "skills": 5}, "'skills' must be a path", None, id="skills is a number"),
        pytest.param({"name": "p", "skills": [5]}, "'skills' must be a path", None, id="skills holds a number"),
        pytest.param({"name": "p", "skills": "gone"}, "names 'gone', which is not a folder", None, id="missing"),
        pytest.param({"name": "p", "skills": "../.."}, "it leads to", None, id="escapes by dots"),
        pytest.param({"name": "p", "skills": "/etc"}, "it is absolute", None, id="absolute"),
        pytest.param({"name": "p", "skills": "out"}, "it leads to", None, id="escapes by a link"),
        pytest.param({"name": "p", "skills": "a\0b"}, "no usable path", None, id="NUL"),
    ],
)
def test_a_bad_plugin_is_told_and_does_not_stop_the_others(
    tmp_path: Path, manifest: Any, message: str, line: int | None
) -> None:
    (tmp_path / "secret").mkdir()
    bad = plugin(tmp_path / "bad", manifest)
    (bad / "out").symlink_to(tmp_path / "secret")
    good = plugin(tmp_path / "good", {"name": "good"})
    (good / "skills").mkdir()
    roots, (problem,) = found(bad, good)
    assert roots == [Root(good / "skills", "good", good)]
    assert message in problem.message
    assert (problem.severity, problem.code, problem.line) == ("error", "bad-plugin", line)
    assert problem.path == bad / ".claude-plugin" / "plugin.json"
    assert problem.remedy


def test_a_link_to_skills_outside_the_plugin_is_refused(tmp_path: Path) -> None:
    folder = plugin(tmp_path / "p", {"name": "p"})
    (folder / "skills").symlink_to(tmp_path)
    roots, (problem,) = found(folder)
    assert roots == []
    assert "it leads to" in problem.message


def test_a_folder_without_a_manifest_is_told(tmp_path: Path) -> None:
    roots, (problem,) = found(tmp_path)
    assert roots == []
    assert "has no .claude-plugin/plugin.json. Add one" in problem.message


def test_a_plugin_folder_that_does_not_exist_is_a_configuration_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"plugin_dirs: .*gone is not a folder"):
        found(tmp_path / "gone")


def test_the_same_folder_named_in_many_ways_is_one_root(tmp_path: Path) -> None:
    ways = ["/".join(["."] * length) for length in range(1, 500)]
    folder = plugin(tmp_path / "p", {"name": "p", "skills": ways})
    assert found(folder) == ([Root(folder, "p", folder)], [])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_manifest_that_is_a_pipe_does_not_make_anybody_wait(tmp_path: Path) -> None:
    (tmp_path / ".claude-plugin").mkdir()
    os.mkfifo(tmp_path / ".claude-plugin" / "plugin.json")
    results: list[tuple[list[Root], list[Diagnostic]]] = []
    thread = threading.Thread(target=lambda: results.append(found(tmp_path)), daemon=True)
    thread.start()
    thread.join(20)
    assert "is not a regular file" in results[0][1][0].message


def test_reading_a_manifest_raises_by_kind(tmp_path: Path) -> None:
    with pytest.raises(ManifestNotFoundError, match="has no"):
        read_manifest(tmp_path)
    with pytest.raises(ManifestParseError, match="is not a JSON object"):
        read_manifest(plugin(tmp_path / "a", "3"))
    with pytest.raises(ManifestValidationError, match="'name' must be"):
        read_manifest(plugin(tmp_path / "b", {}))
    with pytest.raises(ManifestParseError, match="is larger than 1,000,000 bytes"):
        read_manifest(plugin(tmp_path / "c", {"name": "x" * 1_000_000}))


def test_a_manifest_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    assert read_manifest(plugin(tmp_path / "p", '\ufeff{"name": "p"}')) == {"name": "p"}


def installed(home: Path, listed: Any) -> Path:
    """Claude's folder of plugins with this list of what is installed."""
    folder = home / ".claude" / "plugins"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "installed_plugins.json").write_text(listed if isinstance(listed, str) else json.dumps(listed))
    return folder


def cached(home: Path, market: str, name: str, version: str) -> Path:
    return home / ".claude" / "plugins" / "cache" / market / name / version


def entry(place: Path, **more: str) -> dict[str, str]:
    return {"scope": "user", "installPath": str(place), "version": place.name, **more}


def test_the_plugins_that_claude_has_installed_are_found(private_home: Path) -> None:
    place = plugin(cached(private_home, "market", "tools", "1.2.0"), {"name": "tools"})
    plugin(cached(private_home, "market", "tools", "1.1.0"), {"name": "tools"})
    skill_folder(place / "skills", "deploy")
    folder = installed(private_home, {"version": 2, "plugins": {"tools@market": [entry(place)]}})
    expected = [Root(place / "skills", "tools", place, "claude")]
    assert found(folder) == (expected, [])
    problems: list[Diagnostic] = []
    assert (installed_plugin_roots(problems), problems) == (expected, [])
    assert SkillManager().get_skill("tools:deploy").host == "claude"


def test_installed_plugins_can_be_turned_off(private_home: Path) -> None:
    place = plugin(cached(private_home, "market", "tools", "1.2.0"), {"name": "tools"})
    skill_folder(place / "skills", "deploy")
    installed(private_home, {"plugins": {"tools@market": entry(place)}})  # the earlier format
    assert [skill.name for skill in SkillManager("").list_skills()] == ["deploy"]
    for manager in (SkillManager("", plugin_dirs=[]), SkillManager("", ""), SkillManager("", host_folders=False)):
        assert manager.list_skills() == []


def test_a_plugin_of_another_project_is_left_out(tmp_path: Path, private_home: Path, monkeypatch: Any) -> None:
    place = plugin(cached(private_home, "market", "tools", "1"), {"name": "tools"})
    (place / "skills").mkdir()
    (tmp_path / "project" / "sub").mkdir(parents=True)
    where = {"scope": "project", "projectPath": str(tmp_path / "project")}
    folder = installed(private_home, {"plugins": {"tools@market": [entry(place, **where)]}})
    monkeypatch.chdir(tmp_path)
    assert found(folder) == ([], [])
    monkeypatch.chdir(tmp_path / "project" / "sub")
    assert len(found(folder)[0]) == 1


def test_a_list_that_was_made_under_another_home_is_still_right(private_home: Path) -> None:
    place = plugin(cached(private_home, "market", "tools", "1"), {"name": "tools"})
    (place / "skills").mkdir()
    elsewhere = {"installPath": "/somewhere/else/.claude/plugins/cache/market/tools/1", "version": "1"}
    assert len(found(installed(private_home, {"plugins": {"tools@market": [elsewhere]}}))[0]) == 1


def test_an_installed_plugin_without_a_manifest_brings_what_its_marketplace_names(private_home: Path) -> None:
    place = cached(private_home, "market", "documents", "1")
    for name in ("pdf", "docx", "unlisted"):
        skill_folder(place / "skills", name)
    (place / ".claude-plugin").mkdir()
    entries = [{"name": "other"}, {"name": "documents", "skills": ["./skills/pdf", "./skills/docx"]}]
    (place / ".claude-plugin" / "marketplace.json").write_text(json.dumps({"plugins": entries}))
    folder = installed(private_home, {"plugins": {"documents@market": [entry(place)]}})
    roots, problems = found(folder)
    assert ([root.path.name for root in roots], {root.source for root in roots}) == (["pdf", "docx"], {"documents"})
    assert problems == []
    (place / ".claude-plugin" / "marketplace.json").unlink()
    assert [root.path.name for root in found(folder)[0]] == ["skills"]


@pytest.mark.parametrize(
    ("listed", "message"),
    [
        pytest.param("{", "cannot be read as JSON", id="not JSON"),
        pytest.param([], "is not a JSON object", id="a list"),
        pytest.param({"plugins": 1}, "'plugins' is not an object", id="plugins is a number"),
        pytest.param({"plugins": {"gone@market": [{"version": "1"}]}}, "'gone@market' is not in", id="not there"),
        pytest.param({"plugins": {"x@m": [{"installPath": "/etc"}]}}, "'x@m' is not in", id="elsewhere"),
        pytest.param({"plugins": {"x@m": [{"installPath": "a\0b"}]}}, "'x@m' is not in", id="NUL"),
        pytest.param({"plugins": {"../..@..": [{"version": "../.."}]}}, "is not in", id="dots"),
        pytest.param({"plugins": {"project@m": [{"installPath": "own"}]}}, "skillkit uses for its own", id="reserved"),
    ],
)
def test_a_bad_list_of_plugins_is_told_and_stops_nothing(private_home: Path, listed: Any, message: str) -> None:
    folder = installed(private_home, listed)
    (folder / "own" / "skills").mkdir(parents=True)
    skill_folder(private_home / ".claude/skills", "own")
    roots, (problem,) = found(folder)
    assert (roots, message in problem.message) == ([], True)
    assert [skill.name for skill in SkillManager("").list_skills()] == ["own"]


@pytest.mark.parametrize("name", ["project/codex", "system", "agent/claude"])
def test_no_plugin_passes_for_a_place_of_ours(tmp_path: Path, name: str) -> None:
    _, (problem,) = found(plugin(tmp_path / "p", {"name": name}))
    assert "which skillkit uses for its own" in problem.message
