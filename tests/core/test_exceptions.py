"""Every error is raised by a real request and carries what its caller needs; one that nothing provokes fails here."""

from __future__ import annotations

import copy
import pickle
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from support.running import made_manager

import skillkit
from skillkit import GUARDED, OptionRequest, ScriptPolicy, SkillKitError, World
from skillkit.approvers.callback import CallbackApprover
from skillkit.approvers.store import LaterApprover, StoreApprover
from skillkit.core import exceptions
from skillkit.core.find.plugins import read_manifest
from skillkit.core.find.reading import fields_of
from skillkit.core.models.frontmatter import read_frontmatter
from skillkit.core.run import tiers
from skillkit.core.run.sandbox.choose import Choice
from skillkit.core.values.runs import NO_CONTROL
from skillkit.fleet import FleetRun
from skillkit.fleet.rows import Row
from skillkit.sources.listing import Listed, require_content
from skillkit.sources.opening import FolderTree
from skillkit.testing import ScriptedApprover

Provocation = Callable[[Path, pytest.MonkeyPatch], object]
PROVOCATIONS: dict[str, tuple[Provocation, dict[str, object]]] = {}
OPEN = ScriptPolicy(allow_scripts=True, approval="never", sandbox="required")
# Callers catch these; nobody raises them.
FAMILIES = {
    *("SkillKitError", "SkillParsingError", "SkillInvocationError", "PluginError", "SkillSecurityError"),
    "ScriptError",
}


def provokes(name: str, **attributes: object) -> Callable[[Provocation], Provocation]:
    """Notes that a function asks for something that gets this error, with these attributes."""

    def noted(provocation: Provocation) -> Provocation:
        PROVOCATIONS[name] = (provocation, attributes)
        return provocation

    return noted


def run(
    folder: Path,
    script: str = "scripts/run.sh",
    arguments: object = None,
    *,
    policy: ScriptPolicy = OPEN,
    approver: object = None,
    tools: str = "",
) -> object:
    frontmatter = f"name: demo\ndescription: A demo.\n{tools}"
    files = {"scripts/run.sh": "echo ran\n", "scripts/run.rb": "puts 1\n"}
    with made_manager(folder, files, policy=policy, approver=approver, frontmatter=frontmatter) as manager:
        return manager.execute_skill_script("demo", script, arguments)


def manifest(folder: Path, text: str) -> Path:
    (folder / ".claude-plugin").mkdir()
    (folder / ".claude-plugin" / "plugin.json").write_text(text)
    return folder


@provokes("ConfigurationError")
def missing_folder(folder: Path, _: pytest.MonkeyPatch) -> object:
    return skillkit.SkillManager(folder / "missing")


@provokes("SkillNotFoundError", skill_name="other", available=("demo",))
def unknown_skill(folder: Path, _: pytest.MonkeyPatch) -> object:
    with made_manager(folder) as manager:
        return manager.get_skill("other")


@provokes("InvalidYAMLError", line=3, column=1)
def no_yaml(*_: object) -> object:
    return read_frontmatter(b"---\n[a, b\n---\n")


@provokes("MissingRequiredFieldError", field_name="description", line=1)
def no_description(*_: object) -> object:
    return fields_of(read_frontmatter(b"---\nname: a\n---\n"), [])


@provokes("InvalidFrontmatterError", line=1)
def no_frontmatter(*_: object) -> object:
    return read_frontmatter(b"# Hello\n")


@provokes("ArgumentProcessingError")
def endless_arguments(folder: Path, _: pytest.MonkeyPatch) -> object:
    with made_manager(folder) as manager:
        return manager.invoke_skill("demo", "x" * 1_000_001)


@provokes("ContentLoadError")
def removed_text(folder: Path, _: pytest.MonkeyPatch) -> object:
    with made_manager(folder) as manager:
        skill = manager.load_skill("demo")
        (folder / "skills/demo/SKILL.md").unlink()
        return skill.content


@provokes("ManifestNotFoundError")
def no_manifest(folder: Path, _: pytest.MonkeyPatch) -> object:
    return read_manifest(folder)


@provokes("ManifestParseError")
def manifest_of_a_number(folder: Path, _: pytest.MonkeyPatch) -> object:
    return read_manifest(manifest(folder, "3"))


@provokes("ManifestValidationError")
def manifest_without_a_name(folder: Path, _: pytest.MonkeyPatch) -> object:
    return read_manifest(manifest(folder, "{}"))


@provokes("StateUnavailableError")
def no_database(folder: Path, _: pytest.MonkeyPatch) -> object:
    (folder / "state.sqlite3").write_bytes(b"hello " * 1000)
    return World(folder).pending()


@provokes("RequestClosedError", request_id="nobody-asked")
def late_answer(folder: Path, _: pytest.MonkeyPatch) -> object:
    return World(folder).answer("nobody-asked", "yes_once", "test")


@provokes("PathSecurityError", requested_path="../outside.sh")
def way_out(folder: Path, _: pytest.MonkeyPatch) -> object:
    return run(folder, "../outside.sh")


@provokes("SizeLimitExceededError", size=10_000_001, limit=10_000_000)
def grown_text(folder: Path, _: pytest.MonkeyPatch) -> object:
    with made_manager(folder) as manager:
        skill = manager.load_skill("demo")
        with (folder / "skills/demo/SKILL.md").open("r+b") as file:
            file.truncate(10_000_001)
        return skill.content


@provokes("SourceUnavailableError")
def no_such_source(folder: Path, _: pytest.MonkeyPatch) -> object:
    return FolderTree(str(folder / "nothing"))


@provokes("SourceRefusedError")
def a_link_out(_: Path, __: pytest.MonkeyPatch) -> None:
    require_content("demo", Listed("way-out", "link", 9, None), b"../../etc")


@provokes("ToolRestrictionError", skill_name="demo", allowed_tools=("Read",))
def tools_without_bash(folder: Path, _: pytest.MonkeyPatch) -> object:
    return run(folder, tools="allowed-tools: Read")


@provokes("ScriptNotFoundError", skill_name="demo", script_name="x", available=("scripts/run.rb", "scripts/run.sh"))
def unknown_script(folder: Path, _: pytest.MonkeyPatch) -> object:
    return run(folder, "x")


@provokes("ScriptPermissionError")
def setuid_script(folder: Path, _: pytest.MonkeyPatch) -> object:
    with made_manager(folder, {"scripts/run.sh": "echo ran\n"}) as manager:
        (folder / "skills/demo/scripts/run.sh").chmod(0o4755)
        return manager.execute_skill_script("demo", "run")


@provokes("InterpreterNotFoundError", interpreter="ruby")
def no_ruby(folder: Path, patch: pytest.MonkeyPatch) -> object:
    patch.setenv("PATH", str(folder))
    return run(folder, "run.rb")


@provokes("InterpreterNotAllowedError", interpreter="bash", allowed=("python3",))
def bash_not_listed(folder: Path, _: pytest.MonkeyPatch) -> object:
    policy = ScriptPolicy(allow_scripts=True, approval="never", allowed_interpreters=("python3",))
    return run(folder, policy=policy)


@provokes("ArgumentSerializationError")
def no_number(folder: Path, _: pytest.MonkeyPatch) -> object:
    return run(folder, arguments={"x": float("nan")})


@provokes("ArgumentSizeError", size=10_000_001, limit=10_000_000)
def ten_megabytes(folder: Path, _: pytest.MonkeyPatch) -> object:
    return run(folder, arguments="x" * 9_999_999)


@provokes("ScriptRefusedError", reasons=("Policy does not allow scripts; set 'allow_scripts'.",))
def nothing_allowed(folder: Path, _: pytest.MonkeyPatch) -> object:
    return run(folder, policy=ScriptPolicy())


@provokes("ApprovalDeclinedError")
def person_says_no(folder: Path, _: pytest.MonkeyPatch) -> object:
    return run(folder, policy=GUARDED, approver=ScriptedApprover("no"))


@provokes("ApprovalUnavailableError")
def nobody_there(folder: Path, _: pytest.MonkeyPatch) -> object:
    return run(folder, policy=GUARDED)


@provokes("ApprovalWaitingError")
def nobody_yet(folder: Path, _: pytest.MonkeyPatch) -> object:
    with World(folder / "state") as world:
        return run(folder, policy=GUARDED, approver=LaterApprover(StoreApprover(world)))


@provokes("ContentChangedError")
def changed_meanwhile(folder: Path, _: pytest.MonkeyPatch) -> object:
    def agree_too_late(_: OptionRequest) -> str:
        (folder / "skills/demo/scripts/run.sh").write_text("echo other\n")
        return "yes_once"

    return run(folder, policy=GUARDED, approver=CallbackApprover(agree_too_late))


@provokes("SandboxUnavailableError")
def no_walls(folder: Path, patch: pytest.MonkeyPatch) -> object:
    patch.setattr(tiers, "this_machines", Choice({}))
    return run(folder)


@provokes("RunLostError", run_id="r")
def lost_run(_: Path, __: pytest.MonkeyPatch) -> object:
    """As its row says; how one comes to be lost is shown in tests/fleet/test_failures.py."""
    row = Row("r", "", "", "", "q", "lost", 1, 2, None, is_streamed=False, is_cancelled=False)
    return FleetRun("r", cast("Any", None), cast("Any", None))._outcome(row, NO_CONTROL)


@provokes("AuditUnavailableError", result=None)
def audit_without_its_table(folder: Path, _: pytest.MonkeyPatch) -> object:
    with made_manager(folder, {"scripts/run.sh": "echo ran\n"}) as manager:
        manager.execute_skill_script("demo", "run")
        holder = sqlite3.connect(folder / "state/state.sqlite3", isolation_level=None)
        try:
            holder.execute("drop table audit")
            return manager.execute_skill_script("demo", "run")
        finally:
            holder.close()


@provokes("ModelUnavailableError", is_about_tools=False)
def model_that_is_not_there(_: Path, __: pytest.MonkeyPatch) -> object:
    pytest.importorskip("openai")
    from skillkit.chat.endpoint import Endpoint

    return list(Endpoint("a-model", "http://127.0.0.1:1/v1", "key", "KEY").stream([{"role": "user", "content": "?"}]))


def classes() -> dict[str, type[SkillKitError]]:
    """Every error that the module defines, by its own name."""
    found = (value for value in vars(exceptions).values() if isinstance(value, type))
    return {each.__name__: each for each in found if issubclass(each, SkillKitError)}


def test_every_error_is_provoked_or_a_family() -> None:
    assert sorted([*PROVOCATIONS, *FAMILIES]) == sorted(classes())
    assert all(classes()[name].__subclasses__() for name in FAMILIES)


@pytest.mark.parametrize("name", PROVOCATIONS)
def test_an_error_is_exactly_this_kind_and_says_what_is_needed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    provocation, attributes = PROVOCATIONS[name]
    with pytest.raises(SkillKitError) as caught:
        provocation(tmp_path, monkeypatch)
    error = caught.value
    assert type(error) is classes()[name]
    assert {key: getattr(error, key) for key in attributes} == attributes
    assert len(str(error)) > 20
    assert getattr(skillkit, name) is type(error)


def test_a_refusal_gives_its_reasons_and_missing_walls_their_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ApprovalDeclinedError", "ApprovalUnavailableError", "ApprovalWaitingError", "ContentChangedError"):
        place = tmp_path / name
        place.mkdir()
        with pytest.raises(skillkit.ScriptRefusedError) as refused:
            PROVOCATIONS[name][0](place, monkeypatch)
        assert refused.value.reasons
    with pytest.raises(skillkit.SandboxUnavailableError) as caught:
        no_walls(tmp_path, monkeypatch)
    assert caught.value.missing
    assert caught.value.remedy
    assert caught.value.remedy in str(caught.value)


def test_an_error_says_its_reason_and_remedy_in_one_message() -> None:
    refused = skillkit.ScriptRefusedError.because("It has been used", "Ask again.", about="demo: run may not run.")
    assert (str(refused), refused.reasons) == (
        "demo: run may not run. It has been used. Ask again.",
        ("It has been used",),
    )
    assert str(skillkit.ScriptRefusedError.because("It names no script")) == "It names no script."
    alone = skillkit.ApprovalUnavailableError.because("nobody answered", about="May it run?")
    assert (str(alone), alone.reasons) == ("May it run? Not approved: nobody answered.", ("nobody answered",))
    walls = skillkit.SandboxUnavailableError.because("bwrap is not installed", "Install it.", missing=["bwrap"])
    assert (str(walls), walls.missing) == ("bwrap is not installed. Install it.", ("bwrap",))
    for error in (refused, alone, walls):
        for same in (copy.copy(error), pickle.loads(pickle.dumps(error))):
            assert (type(same), str(same), vars(same)) == (type(error), str(error), vars(error))
