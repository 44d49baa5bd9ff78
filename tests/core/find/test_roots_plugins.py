from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from support.skill_folders import skill_folder

from skillkit import ConfigurationError, ManifestNotFoundError, ManifestParseError, ManifestValidationError
from skillkit.core.find.roots import Root, plugin_roots, read_manifest
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
    with pytest.raises(ManifestParseError, match="is larger than 1000000 bytes"):
        read_manifest(plugin(tmp_path / "c", {"name": "x" * 1_000_000}))


def test_a_manifest_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    assert read_manifest(plugin(tmp_path / "p", '\ufeff{"name": "p"}')) == {"name": "p"}
