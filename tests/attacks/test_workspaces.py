"""A workspace that is, holds or lies in what stays closed, and one that is replaced after it was named."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from support.inline_answers import outcomes_in
from support.running import kinds, made_manager
from support.skill_folders import skill_folder
from support.workspaces import WALLS

from skillkit import TRUSTED, ConfigurationError, ScriptPolicy, SkillManager
from skillkit.cli.main import cli
from skillkit.core.paths import judge
from skillkit.core.paths.forbidden import named_workspace
from skillkit.core.run import reach
from skillkit.integrations.functions import SkillFunctions
from skillkit.integrations.inline import InlineProcessor

READS = 'cat "$SKILL_WORKSPACE/secret"; echo evil > "$SKILL_WORKSPACE/made"\n'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With keys in it, below a folder of homes."""
    folder = tmp_path / "homes" / "me"
    for name in (".ssh", ".config/gh", "project/sub", "elsewhere"):
        (folder / name).mkdir(parents=True)
    (folder / "secret").write_text("mine")
    (folder / "elsewhere/secret").write_text("mine too")
    monkeypatch.setenv("HOME", str(folder))
    return folder


def manager_at(tmp_path: Path, workspace: Path, **settings: Any) -> SkillManager:
    settings = {"policy": WALLS, **settings}
    return made_manager(tmp_path, {"scripts/reads.sh": READS}, workspace=workspace, **settings)


CLOSED = {
    "home": ".",
    "the folder of homes": "..",
    "a parent further above": "../..",
    "keys": ".ssh",
    "a folder that holds keys": ".config",
    "inside a folder of keys": ".config/gh",
    "the state": "../../state",
    "inside the state": "../../state/snapshots",
    "a link to home": "project/link",
    "a link of a link": "project/link-of-link",
    "below a link to home": "project/link/.ssh",
    "the machine's": "/etc",
    "everything": "/",
    "where users have their homes": "/home",
}


@pytest.fixture
def closed(home: Path, tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    (home / "project/link").symlink_to(home)
    (home / "project/link-of-link").symlink_to("link")
    (tmp_path / "state/snapshots").mkdir(parents=True)
    path: Path = home / request.param
    if not path.is_dir():
        pytest.skip(f"there is no {path} here")
    return path


@pytest.mark.parametrize("closed", list(CLOSED.values()), ids=list(CLOSED), indirect=True)
def test_a_closed_place_is_no_workspace_by_whatever_name(closed: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"never opened to scripts.*Name a folder"):
        manager_at(tmp_path, closed)
    with made_manager(tmp_path, {"scripts/reads.sh": READS}) as manager:
        with pytest.raises(ConfigurationError, match="never opened to scripts"):
            manager.execute_skill_script("demo", "reads", workspace=closed)
        prepared = manager.prepare_skill_script("demo", "reads", workspace=closed)
        with pytest.raises(ConfigurationError, match="never opened to scripts"):
            manager.complete_skill_script(prepared)
        assert kinds(tmp_path) == ["refused", "refused"]
        with pytest.raises(ConfigurationError, match="never opened to scripts"):
            InlineProcessor(manager, workspace=closed)


def test_without_the_rule_the_walls_would_open_home_to_a_script(home: Path, tmp_path: Path, tier: str) -> None:
    """What is asked of the walls they give: the rule is what keeps home closed."""
    from skillkit.core.paths import forbidden

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forbidden, "_refuse_closed", lambda *_: None)
        with manager_at(tmp_path, home) as manager:
            result = manager.execute_skill_script("demo", "reads")
    assert (result.stdout, result.isolation.tier) == ("mine", tier)


def test_a_project_below_home_is_a_workspace(home: Path, tmp_path: Path, tier: str) -> None:
    (home / "project/secret").write_text("of the project")
    with manager_at(tmp_path, home / "project") as manager:
        result = manager.execute_skill_script("demo", "reads")
    assert (result.stdout, result.isolation.tier) == ("of the project", tier)
    assert (home / "project/made").read_text() == "evil\n"


@pytest.mark.parametrize("here", ["homes", "homes/me", ".", "homes/me/.ssh", "homes/me/project"])
@pytest.mark.parametrize("command", ["run", "check"])
def test_a_closed_current_folder_means_no_workspace_and_a_person_is_told(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, here: str, command: str
) -> None:
    skill_folder(tmp_path / "skills", "demo", files={"scripts/where.sh": 'echo "${SKILL_WORKSPACE:-none}"\n'})
    monkeypatch.chdir(tmp_path / here)
    words = [command, "demo", "where", "--skills", str(tmp_path / "skills"), "--state-dir", str(tmp_path / "state")]
    ended = CliRunner().invoke(cli, [*words, *(["--yes"] if command == "run" else [])], catch_exceptions=False)
    is_open = here.endswith("project")
    assert ended.exit_code == 0, ended.output
    is_expected = is_open or here == "homes/me"
    assert ("The current folder is no workspace" in ended.stderr) is not is_expected
    named = str(home / "project") if is_open else "none"
    assert (ended.stdout.strip() == named) if command == "run" else (("the workspace" in ended.stdout) is is_open)


def test_the_mcp_command_refuses_a_closed_workspace(home: Path, tmp_path: Path) -> None:
    pytest.importorskip("mcp")
    ended = CliRunner().invoke(cli, ["mcp", "--workspace", str(home.parent), "--skills", str(tmp_path)])
    assert isinstance(ended.exception, ConfigurationError)
    assert str(home) in str(ended.exception)


@pytest.mark.parametrize("setting", ["readable_paths", "writable_paths"])
@pytest.mark.parametrize("closed", list(CLOSED.values()), ids=list(CLOSED), indirect=True)
def test_no_policy_opens_a_closed_place(closed: Path, tmp_path: Path, setting: str) -> None:
    paths: dict[str, Any] = {setting: (closed,)}
    policy = replace(WALLS, **paths)
    with (
        made_manager(tmp_path, {"scripts/reads.sh": READS}, policy=policy) as manager,
        pytest.raises(ConfigurationError, match=f"{setting}: .* is never opened to scripts"),
    ):
        manager.execute_skill_script("demo", "reads")
    assert kinds(tmp_path) == ["refused"]


@pytest.mark.parametrize("option", ["--read", "--write"])
def test_no_option_opens_a_closed_place(home: Path, tmp_path: Path, option: str) -> None:
    skill_folder(tmp_path / "skills", "demo", files={"scripts/run.sh": "echo ran\n"})
    words = ["run", "demo", "run", "--yes", "--skills", str(tmp_path / "skills"), option]

    def error(path: Path) -> str:
        return str(CliRunner().invoke(cli, [*words, str(path)]).exception)

    assert f"{home}/.ssh is never opened to scripts" in error(home / ".ssh")
    assert "never opened" in error(home.parent)
    assert error(home / "elsewhere") == "None"


def test_a_link_that_a_script_made_opens_nothing_that_policy_did_not_name(
    home: Path, tmp_path: Path, tier: str
) -> None:
    """The settings name a folder of the workspace; a script replaces it by a link, and the next run reads them again."""
    workspace = home / "project"
    swap = f'rmdir "$SKILL_WORKSPACE/sub" && ln -s "{home}/elsewhere" "$SKILL_WORKSPACE/sub"\n'
    files = {"scripts/swap.sh": swap, "scripts/reads.sh": f'cat "{home}/elsewhere/secret"\n'}
    policy = replace(WALLS, readable_paths=(workspace / "sub",))
    with made_manager(tmp_path, files, policy=policy, workspace=workspace) as manager:
        assert manager.execute_skill_script("demo", "swap").success
        with pytest.raises(ConfigurationError, match=f"If you want what it leads to, name that: {home}/elsewhere"):
            manager.execute_skill_script("demo", "reads")
    named = replace(WALLS, readable_paths=(home / "elsewhere",))
    with made_manager(tmp_path, files, policy=named, workspace=workspace) as manager:
        result = manager.execute_skill_script("demo", "reads")
    assert (result.stdout, result.isolation.tier) == ("mine too", tier)


def replaced_by_link(sub: Path, other: Path) -> None:
    os.rename(sub, sub.with_name("old"))
    sub.symlink_to(other)


def parent_replaced(sub: Path, other: Path) -> None:
    os.rename(sub.parent, sub.parent.with_name("old"))
    sub.parent.symlink_to(other.parent)
    other.rename(other.with_name(sub.name))


def parent_moved_and_linked(sub: Path, _: Path) -> None:
    """The very folder, by the same name, but on another way."""
    os.rename(sub.parent, sub.parent.with_name("old"))
    sub.parent.symlink_to("old")


def made_anew(sub: Path, _: Path) -> None:
    sub.rmdir()
    sub.mkdir()


def exchanged(sub: Path, other: Path) -> None:
    os.rename(sub, sub.with_name("old"))
    os.rename(other, sub)


def a_file_now(sub: Path, _: Path) -> None:
    sub.rmdir()
    sub.write_text("no folder")


def gone(sub: Path, _: Path) -> None:
    sub.rmdir()


def closed_by_now(sub: Path, _: Path) -> None:
    (sub / ".ssh").mkdir()


REPLACEMENTS = (
    *(replaced_by_link, parent_replaced, parent_moved_and_linked, made_anew),
    *(exchanged, a_file_now, gone, closed_by_now),
)
SURFACES: dict[str, Callable[[SkillManager], tuple[bool, str]]] = {}


def surface(function: Callable[[SkillManager], tuple[bool, str]]) -> Callable[[SkillManager], tuple[bool, str]]:
    SURFACES[function.__name__] = function
    return function


@surface
def python(manager: SkillManager) -> tuple[bool, str]:
    try:
        return True, manager.execute_skill_script("demo", "reads").stdout
    except ConfigurationError as error:
        return False, str(error)


@surface
def functions(manager: SkillManager) -> tuple[bool, str]:
    arguments = {"skill_name": "demo", "script": "scripts/reads.sh"}
    result = SkillFunctions(manager).call("skills_run_script", arguments)
    return result.status != "refused", result.content


@surface
def inline(manager: SkillManager) -> tuple[bool, str]:
    (outcome,) = outcomes_in(InlineProcessor(manager).feed("!{scripts/reads.sh}"))
    return outcome.result is not None, f"{outcome.line}{outcome.output}"


@surface
def langchain(manager: SkillManager) -> tuple[bool, str]:
    tools = pytest.importorskip("skillkit.integrations.langchain")
    (tool,) = (each for each in tools.create_langchain_tools(manager) if each.name == "demo.reads")
    text = str(tool.invoke({}))
    return "workspace:" not in text, text


@pytest.mark.parametrize("replacement", REPLACEMENTS, ids=lambda each: each.__name__)
@pytest.mark.parametrize("ask", SURFACES.values(), ids=SURFACES.keys())
def test_a_folder_that_took_the_workspaces_place_is_not_opened(
    home: Path,
    tmp_path: Path,
    ask: Callable[[SkillManager], tuple[bool, str]],
    replacement: Callable[[Path, Path], None],
) -> None:
    sub, other = home / "project/sub", home / "other/place"
    other.mkdir(parents=True)
    (other / "secret").write_text("mine too")
    with manager_at(tmp_path, sub) as manager:
        assert ask(manager)[0]
        (sub / "made").unlink()
        replacement(sub, other)
        has_run, said = ask(manager)
        assert not has_run
        assert "workspace: " in said
        assert "name" in said.lower()
        assert "mine too" not in said
        assert not ask(manager)[0], "each run"


@pytest.mark.parametrize("replacement", [replaced_by_link, exchanged, parent_replaced], ids=lambda each: each.__name__)
def test_named_again_the_folder_in_its_place_is_opened(
    home: Path, tmp_path: Path, tier: str, replacement: Callable[[Path, Path], None]
) -> None:
    """The attack works on whoever looks the name up anew."""
    sub, other = home / "project/sub", home / "other/place"
    other.mkdir(parents=True)
    (other / "secret").write_text("mine too")
    with manager_at(tmp_path, sub) as manager:
        replacement(sub, other)
        manager.workspace = sub
        result = manager.execute_skill_script("demo", "reads")
    assert (result.stdout, result.isolation.tier) == ("mine too", tier)


def test_a_script_that_replaces_the_workspace_of_a_server_gains_nothing(home: Path, tmp_path: Path, tier: str) -> None:
    """One script's workspace holds that of another server."""
    script = f'cd "$SKILL_WORKSPACE" && mv sub old && ln -s "{home}/elsewhere" sub\n'
    with (
        manager_at(tmp_path / "server", home / "project/sub") as server,
        made_manager(tmp_path / "other", {"scripts/swap.sh": script}, policy=WALLS, workspace=home / "project") as own,
    ):
        assert server.execute_skill_script("demo", "reads").isolation.tier == tier
        assert own.execute_skill_script("demo", "swap").success
        assert os.path.realpath(home / "project/sub") == str(home / "elsewhere")
        with pytest.raises(ConfigurationError, match="was replaced since it was named and leads to"):
            server.execute_skill_script("demo", "reads")
    assert not (home / "elsewhere/made").exists()


def test_what_replaces_the_workspace_between_the_last_look_and_the_walls_is_not_mounted(
    home: Path, tmp_path: Path, tier: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The walls compare with what was named, not with what they find."""
    sub, other = home / "project/sub", home / "elsewhere"
    whole, looks = reach.reach_of, list[int]()

    def swapped(*given: Any, **named: Any) -> Any:
        if not looks:  # a run that is started ahead looks twice
            exchanged(sub, other)
        looks.append(1)
        return whole(*given, **named)

    monkeypatch.setattr("skillkit.core.run.place.reach_of", swapped)
    with manager_at(tmp_path, sub) as manager, pytest.raises(Exception, match="walls could not be put up"):
        manager.execute_skill_script("demo", "reads")
    assert not (sub / "made").exists()
    assert tier in ("bubblewrap", "landlock")


def test_a_prepared_run_is_bound_to_the_workspace_it_was_prepared_with(home: Path, tmp_path: Path) -> None:
    policy = ScriptPolicy(allow_scripts=True, approval="never", sandbox="off")
    with manager_at(tmp_path, home / "project/sub", policy=policy) as manager:
        prepared = manager.prepare_skill_script("demo", "reads")
        exchanged(home / "project/sub", home / "elsewhere")
        with pytest.raises(ConfigurationError, match="was replaced"):
            manager.complete_skill_script(prepared)
    assert kinds(tmp_path) == ["refused"]


def test_a_workspace_holds_its_folder_only_as_long_as_somebody_has_it(tmp_path: Path) -> None:
    def held() -> int:
        return sum(os.path.realpath(f"/proc/self/fd/{each}") == str(tmp_path) for each in os.listdir("/proc/self/fd"))

    workspace = named_workspace(tmp_path, None)
    assert held() == 1
    del workspace
    assert held() == 0


def test_without_walls_the_same_rules_hold(home: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="never opened"):
        manager_at(tmp_path, home, policy=TRUSTED)
    with manager_at(tmp_path, home / "project/sub", policy=TRUSTED) as manager:
        shutil.rmtree(home / "project/sub")
        (home / "project/sub").symlink_to(home)
        with pytest.raises(ConfigurationError, match="was replaced"):
            manager.execute_skill_script("demo", "reads")


@pytest.mark.parametrize("is_replaced", [True, False], ids=["replaced", "the same"])
def test_nothing_is_moved_out_of_a_folder_that_took_the_workspaces_place_during_a_run(
    home: Path, tmp_path: Path, tier: str, is_replaced: bool
) -> None:
    """All that is obeyed in it would look as if the script had made it."""
    sub, other = home / "project/sub", home / "project/mine"
    for name in (".git/config", "deep/CLAUDE.md"):
        (other / name).parent.mkdir(parents=True, exist_ok=True)
        (other / name).write_text("mine")
    (sub / "deep").mkdir()
    (sub / "deep/CLAUDE.md").write_text("of sub")
    script = "mkdir -p $SKILL_WORKSPACE/.cursor; echo started; sleep 0.5\n"
    with made_manager(tmp_path, {"scripts/run.sh": script}, policy=WALLS, workspace=sub) as manager:

        def swap(*_: object) -> None:
            if is_replaced and not (sub.parent / "old").exists():
                exchanged(sub, other)

        result = manager.execute_skill_script("demo", "run", on_output=swap)
    assert result.isolation.tier == tier
    if is_replaced:
        assert (sub / ".git/config").read_text() == "mine"
        assert (sub / "deep/CLAUDE.md").read_text() == "mine"
        assert str(sub.parent / "old/.cursor") in result.hint, "where the workspace is now, it is looked after"
        assert str(sub) not in result.hint
    else:
        assert str(sub / ".cursor") in result.hint


def test_what_a_killed_run_left_is_not_looked_for_in_another_folder(home: Path, tmp_path: Path) -> None:
    from skillkit.core.run.guard import Guard
    from skillkit.core.run.guard.restore import Before, Journal

    sub, other, state = home / "project/sub", home / "elsewhere", tmp_path / "state"
    for place in (sub, other):
        (place / ".envrc").write_text("mine")
    for is_replaced in (True, False):
        root = judge(sub)
        assert root is not None
        _, descriptor = Journal(state).begin(Before(root, frozenset(), frozenset(), began=0), timeout=3600)
        os.close(descriptor)
        if is_replaced:
            exchanged(sub, other)
        guard = Guard(state)
        guard.end(guard.begin([str(home / "project")], 1))
        guard.close()
        assert (sub / ".envrc").exists() is is_replaced
