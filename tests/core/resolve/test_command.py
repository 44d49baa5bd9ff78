from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from support.skill_folders import skill_folder

from skillkit import (
    ArgumentSerializationError,
    ConfigurationError,
    ScriptNotFoundError,
    ScriptPolicy,
    Skill,
    SkillMetadata,
)
from skillkit.core.models.digest import manifest_of
from skillkit.core.resolve import CallArguments, resolve_command
from skillkit.core.resolve.command import refuse_batch_metacharacters

POLICY = ScriptPolicy(allow_scripts=True)


def never(argv: Sequence[str], path: str) -> str:
    raise AssertionError(f"{argv} was run with {path}")


@pytest.fixture
def skill(tmp_path: Path) -> Skill:
    base = skill_folder(tmp_path, "demo", files={"scripts/run.sh": "echo ran\n"})
    return Skill(SkillMetadata("demo", "Demo.", base / "SKILL.md", allowed_tools=("Bash",), version="1.0"))


def test_a_command_holds_everything_that_is_needed_to_start(skill: Skill, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/bash").symlink_to("/bin/true")
    call = CallArguments("run", {"a": 1}, ["-x"], None, 5, 100, "session", None)
    own = {"PATH": str(tmp_path / "bin"), "SECRET": "x"}
    command = resolve_command(skill, call, POLICY, own, never)
    base = Path(os.path.realpath(tmp_path)) / "demo"
    assert (command.skill_name, command.script_name, command.interpreter) == ("demo", "scripts/run.sh", "bash")
    assert (command.base_directory, command.script_path, command.cwd) == (base, base / "scripts/run.sh", str(base))
    assert command.argv == (f"{tmp_path}/bin/bash", f"{base}/scripts/run.sh", "-x")
    assert (command.stdin, command.arguments, command.script_arguments) == (b'{"a": 1}', {"a": 1}, ("-x",))
    assert (command.timeout, command.output_limit, command.session_id, command.workspace) == (5, 100, "session", None)
    assert (command.allowed_tools, command.digest) == (("Bash",), manifest_of(base).digest)
    assert "SECRET" not in command.environment


def test_resolving_twice_gives_the_same_command_and_changes_nothing(skill: Skill, tmp_path: Path) -> None:
    before = sorted(tmp_path.rglob("*"))
    call = CallArguments("run", {"a": 1})
    first, second = (resolve_command(skill, call, POLICY, {"PATH": "/bin:/usr/bin"}, never) for _ in range(2))
    assert first == second
    assert sorted(tmp_path.rglob("*")) == before


def test_the_language_is_that_of_the_file_as_it_is_now(skill: Skill) -> None:
    assert [script.script_type for script in skill.scripts] == ["shell"]
    (skill.base_directory / "scripts/run.sh").write_text("#!/usr/bin/perl\n")
    command = resolve_command(skill, CallArguments("run"), POLICY, {"PATH": "/bin:/usr/bin"}, never)
    assert command.interpreter == "perl"


def test_a_script_that_a_link_inside_the_skill_leads_to_is_named_by_its_real_path(skill: Skill) -> None:
    (skill.base_directory / "scripts/alias.sh").symlink_to("run.sh")
    command = resolve_command(skill, CallArguments("alias.sh"), POLICY, {"PATH": "/bin:/usr/bin"}, never)
    assert command.script_name == "scripts/run.sh"


@pytest.mark.parametrize("requested", [".git/hooks/evil.sh", "scripts/alias.sh"])
def test_a_script_that_the_digest_does_not_cover_is_refused(skill: Skill, requested: str) -> None:
    hooks = skill.base_directory / ".git/hooks"
    hooks.mkdir(parents=True)
    (hooks / "evil.sh").write_text("echo evil\n")
    (skill.base_directory / "scripts/alias.sh").symlink_to("../.git/hooks/evil.sh")
    with pytest.raises(ScriptNotFoundError, match="no part of the skill"):
        resolve_command(skill, CallArguments(requested), POLICY, {"PATH": "/bin:/usr/bin"}, never)


def test_a_workspace_that_policy_wants_must_be_named(skill: Skill, tmp_path: Path) -> None:
    policy = replace(POLICY, working_directory="workspace")
    own = {"PATH": "/bin:/usr/bin"}
    with pytest.raises(ConfigurationError, match="the caller named no workspace"):
        resolve_command(skill, CallArguments("run"), policy, own, never)
    command = resolve_command(skill, CallArguments("run", workspace=tmp_path), policy, own, never)
    assert command.cwd == str(tmp_path)


@pytest.mark.parametrize("word", ["a&b", "a|b", "<x", ">x", "^", "%PATH%", "!x!", 'say "x"', "(x)", "a\nb"])
def test_batch_files_refuse_what_cmd_would_interpret(word: str) -> None:
    with pytest.raises(ArgumentSerializationError, match="cmd would interpret"):
        refuse_batch_metacharacters("cmd", ("fine", word))
    refuse_batch_metacharacters("bash", (word,))
    refuse_batch_metacharacters("cmd", ("fine", "C:\\x", "a-b_c.d"))


def test_a_command_knows_which_paths_its_arguments_name(skill: Skill, tmp_path: Path) -> None:
    root = Path(os.path.realpath(tmp_path))
    (root / "state").mkdir()
    (root / "data").write_text("x")
    call = CallArguments("run", {"a": str(root / "data")}, [str(root / "state")], agent_facing=True, call_id="7")
    command = resolve_command(skill, call, POLICY, {"PATH": "/bin:/usr/bin"}, never, state_folder=root / "state")
    assert command.argument_paths == (str(root / "state"), str(root / "data"))
    assert command.closed_paths == (str(root / "state"),)
    assert (command.agent_facing, command.call_id, command.has_unread_arguments) == (True, "7", False)
    plain = resolve_command(skill, CallArguments("run"), POLICY, {"PATH": "/bin:/usr/bin"}, never)
    assert (plain.argument_paths, plain.agent_facing, plain.call_id) == ((), False, "")


def test_paths_in_a_text_for_stdin_that_is_json_count_too(skill: Skill, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("x")
    call = CallArguments("run", stdin=f'["{tmp_path}/data"]')
    command = resolve_command(skill, call, POLICY, {"PATH": "/bin:/usr/bin"}, never)
    assert command.argument_paths == (os.path.realpath(tmp_path / "data"),)


def test_a_workspace_is_what_its_links_lead_to(skill: Skill, tmp_path: Path) -> None:
    """Behind walls the link would not be there."""
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    policy = replace(POLICY, working_directory="workspace")
    call = CallArguments("run", workspace=tmp_path / "link")
    command = resolve_command(skill, call, policy, {"PATH": "/bin:/usr/bin"}, never)
    real = os.path.realpath(tmp_path / "real")
    assert (command.cwd, str(command.workspace), command.environment["SKILL_WORKSPACE"]) == (real, real, real)


def test_no_interpreter_is_taken_from_a_workspace_that_a_link_leads_to_since_the_last_run(
    skill: Skill, tmp_path: Path
) -> None:
    for name in ("old", "new", "bin"):
        (tmp_path / name).mkdir()
    (tmp_path / "new/bash").write_bytes(Path("/bin/true").read_bytes())
    (tmp_path / "new/bash").chmod(0o755)
    (tmp_path / "bin/bash").symlink_to("../new/bash")
    link, path = tmp_path / "work", {"PATH": f"{tmp_path}/bin:/bin:/usr/bin"}

    def interpreter() -> str:
        return resolve_command(skill, CallArguments("run", workspace=link), POLICY, path, never).argv[0]

    link.symlink_to("old")
    assert interpreter() == f"{tmp_path}/bin/bash"
    link.unlink()
    link.symlink_to("new")
    assert interpreter() in ("/bin/bash", "/usr/bin/bash")


def test_a_skill_behind_a_link_is_found_where_it_is_after_its_parent_moved(tmp_path: Path) -> None:
    base = skill_folder(tmp_path / "first", "demo", files={"scripts/run.sh": "echo ran\n"})
    (tmp_path / "current").symlink_to("first")
    skill = Skill(SkillMetadata("demo", "Demo.", tmp_path / "current" / "demo" / "SKILL.md"))

    def folder() -> Path:
        return resolve_command(skill, CallArguments("run"), POLICY, {"PATH": "/bin:/usr/bin"}, never).base_directory

    assert folder() == base.resolve()
    (tmp_path / "first").rename(tmp_path / "second")
    (tmp_path / "current").unlink()
    (tmp_path / "current").symlink_to("second")
    skill_folder(tmp_path / "first", "demo", files={"scripts/run.sh": "echo somebody else\n"})
    assert folder() == (tmp_path / "second" / "demo").resolve()
