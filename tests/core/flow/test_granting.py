"""What a person gave a skill for good, and what its runs get."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.approving import trust_demo
from support.running import made_manager, only_record, records_of

from skillkit import GUARDED, ApprovalUnavailableError, ConfigurationError, ScriptPolicy, SkillManager
from skillkit.core.values.needs import GRANT_KINDS, Grant

WALLED = replace(GUARDED, approval="never")
SHOW = 'echo "team=$TEAM"; cat "$1" 2>/dev/null; echo hi > "$2" 2>/dev/null; pwd\n'


def manager_of(folder: Path, script: str = SHOW, **settings: Any) -> SkillManager:
    return made_manager(folder, {"scripts/run.sh": script}, **{"policy": WALLED, **settings})


def said(manager: SkillManager, *argv: str, **call: Any) -> list[str]:
    return manager.execute_skill_script("demo", "run", argv=argv, **call).stdout.split()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/in.txt").write_text("inside\n")
    return tmp_path / "data"


def test_a_granted_variable_is_passed_and_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEAM", "blue")
    with manager_of(tmp_path) as manager:
        assert said(manager, "/none", "/none")[0] == "team="
        assert manager.grant("demo", variables=["TEAM"]) == (Grant("variable", "TEAM"),)
        assert said(manager, "/none", "/none")[0] == "team=blue"
        assert manager.revoke("demo", Grant("variable", "TEAM")) == (Grant("variable", "TEAM"),)
        assert said(manager, "/none", "/none")[0] == "team="


def test_a_granted_folder_is_readable_and_one_for_writing_is_writable(tmp_path: Path, data: Path) -> None:
    closed = replace(WALLED, grant_argument_paths=False)
    with manager_of(tmp_path, policy=closed) as manager:
        call = ("demo", "run", None)
        argv = [str(data / "in.txt"), str(data / "out.txt")]
        assert "inside" not in manager.execute_skill_script(*call, argv=argv).stdout
        manager.grant("demo", read=[data])
        assert "inside" in manager.execute_skill_script(*call, argv=argv).stdout
        assert not (data / "out.txt").exists()
        manager.grant("demo", write=[data])
        manager.execute_skill_script(*call, argv=argv)
        assert (data / "out.txt").read_text() == "hi\n"


def test_a_granted_working_directory_holds(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    with manager_of(tmp_path, workspace=work) as manager:
        assert said(manager, "/none", "/none")[-1] == str(tmp_path / "skills/demo")
        manager.grant("demo", working_directory="workspace")
        assert said(manager, "/none", "/none")[-1] == str(work)


def test_a_granted_interpreter_runs_a_script_that_policy_would_not(tmp_path: Path) -> None:
    narrow = replace(WALLED, allowed_interpreters=("python3",))
    with manager_of(tmp_path, policy=narrow) as manager:
        with pytest.raises(Exception, match="'bash' may not run scripts here"):
            said(manager)
        manager.grant("demo", interpreters=["bash"])
        assert said(manager, "/none", "/none")[0] == "team="


def test_only_kinds_that_policy_names_are_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEAM", "blue")
    bare = ScriptPolicy(allow_scripts=True, approval="never")
    with manager_of(tmp_path, policy=bare) as manager:
        manager.grant("demo", variables=["TEAM"])
        assert manager.grants("demo") == ()
        assert said(manager, "/none", "/none")[0] == "team="
    for grantable, expected in (
        ((*GRANT_KINDS,), "team=blue"),
        (("read", "host"), "team="),
        (("variable",), "team=blue"),
    ):
        with manager_of(tmp_path, policy=replace(WALLED, grantable=grantable)) as manager:
            assert said(manager, "/none", "/none")[0] == expected


def test_another_skill_another_folder_and_changed_content_have_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEAM", "blue")
    with manager_of(tmp_path) as manager:
        manager.grant("demo", variables=["TEAM"])
    script = tmp_path / "skills/demo/scripts/run.sh"
    with manager_of(tmp_path / "twin", state_dir=tmp_path / "state") as manager:
        assert manager.grants("demo") == ()
        assert said(manager, "/none", "/none")[0] == "team="
    with manager_of(tmp_path) as manager:
        assert said(manager, "/none", "/none")[0] == "team=blue"
        script.write_text(SHOW + "# changed\n")
        assert said(manager, "/none", "/none")[0] == "team="
        assert manager.grants("demo") == ()
        script.write_text(SHOW)
        assert said(manager, "/none", "/none")[0] == "team=blue"


@pytest.mark.parametrize(
    "given",
    [
        {"variables": ["LD_PRELOAD"]},
        {"variables": ["PATH"]},
        {"variables": ["https_proxy"]},
        {"secrets": ["SKILL_NAME"]},
        {"secrets": ["NO-NAME"]},
        {"variables": [""]},
        {"read": ["~/.ssh"]},
        {"read": ["/"]},
        {"write": ["~"]},
        {"read": ["/etc/passwd"]},
        {"read": ["/proc/self/environ"]},
        {"write": ["/nowhere/at/all"]},
        {"hosts": ["a b"]},
        {"hosts": ["https://example.com"]},
        {"hosts": ["*.com"]},
        {"interpreters": ["/bin/bash"]},
        {"interpreters": ["sudo"]},
        {"working_directory": "/"},
    ],
    ids=str,
)
def test_what_is_never_given_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, Any]
) -> None:
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    with manager_of(tmp_path) as manager:
        with pytest.raises(ConfigurationError):
            manager.grant("demo", **given)
        assert manager.grants("demo") == ()


def test_the_state_and_what_lies_in_it_are_never_given(tmp_path: Path) -> None:
    with manager_of(tmp_path) as manager:
        said(manager, "/none", "/none")
        homes = manager.state_dir / "homes/other"
        homes.mkdir(parents=True)
        for place in (manager.state_dir, homes, manager.state_dir / "state.sqlite3"):
            with pytest.raises(ConfigurationError, match="never opened to scripts"):
                manager.grant("demo", read=[place])


def test_a_path_that_came_to_lead_elsewhere_opens_nothing(tmp_path: Path, data: Path) -> None:
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "in.txt").write_text("hidden\n")
    with manager_of(tmp_path, policy=replace(WALLED, grant_argument_paths=False)) as manager:
        manager.grant("demo", read=[data])
        assert "inside" in said(manager, str(data / "in.txt"), "/none")
        data.rename(tmp_path / "moved")
        assert "inside" not in said(manager, str(data / "in.txt"), "/none")
        data.symlink_to(hidden)
        with pytest.raises(ConfigurationError, match=r"leads to .*hidden by now.*skillkit grant remove"):
            said(manager, str(data / "in.txt"), "/none")


def test_a_grant_that_became_a_closed_place_is_refused_at_use(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with manager_of(tmp_path) as manager:
        manager.grant("demo", read=[data])
        said(manager, "/none", "/none")
        monkeypatch.setenv("HOME", str(data))
        with pytest.raises(ConfigurationError, match="does not hold any more"):
            said(manager, "/none", "/none")


def test_a_lasting_grant_does_not_end_trust(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: Path) -> None:
    monkeypatch.setenv("TEAM", "blue")
    with manager_of(tmp_path, policy=GUARDED) as manager:
        with pytest.raises(ApprovalUnavailableError):
            said(manager, "/none", "/none")
        trust_demo(tmp_path, GUARDED)
        assert said(manager, "/none", "/none")[0] == "team="
        manager.grant(
            "demo", variables=["TEAM"], read=[data], interpreters=["bun"], secrets=["API_KEY"], hosts=["a.example"]
        )
        assert said(manager, "/none", "/none")[0] == "team=blue"
    wider = replace(GUARDED, pass_environment=("TEAM", "OTHER"))
    with manager_of(tmp_path, policy=wider) as manager, pytest.raises(ApprovalUnavailableError):
        said(manager, "/none", "/none")


def test_the_record_says_what_a_run_was_given(tmp_path: Path, data: Path) -> None:
    with manager_of(tmp_path) as manager:
        manager.grant("demo", variables=["TEAM"], secrets=["API_KEY"], read=[data])
        said(manager, "/none", "/none")
    assert only_record(tmp_path, "started")["grants"] == {
        "secret": ["API_KEY"],
        "variable": ["TEAM"],
        "read": [str(data)],
    }


def test_a_granted_host_opens_nothing_of_this_machine(tmp_path: Path) -> None:
    script = "exec 3<>/dev/tcp/127.0.0.1/9 && echo reached\n"
    with manager_of(tmp_path, script) as manager:
        manager.grant("demo", hosts=["*"])
        result = manager.execute_skill_script("demo", "run")
    assert "reached" not in result.stdout
    assert result.isolation.network != "none"


def test_a_world_without_grants_costs_nothing_and_makes_no_file_when_only_asked(tmp_path: Path) -> None:
    with manager_of(tmp_path) as manager:
        manager.prepare_skill_script("demo", "run")
        assert manager.grants("demo") == ()
        assert not (tmp_path / "state/state.sqlite3").exists()
        assert records_of(tmp_path) == []
    assert os.path.lexists(tmp_path / "skills/demo")
