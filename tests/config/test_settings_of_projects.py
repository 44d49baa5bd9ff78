"""A project's file may come from anywhere: it may tighten what the user allows, and nothing else."""

from __future__ import annotations

import os
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from support.config_files import Machine

from skillkit import Limits, ScriptPolicy
from skillkit.config import load_settings
from skillkit.config.keys import toml_text
from skillkit.core.values.policy import FIELDS, GUARDED, PROFILES, loosenings


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_every_field_has_an_order_with_a_reason() -> None:
    names = {each.name for each in fields(ScriptPolicy)} - {"limits"} | {
        f"limits.{each.name}" for each in fields(Limits)
    }
    assert set(FIELDS) == names
    assert all(row.tighter and row.values for row in FIELDS.values())


SWITCHES = ["allow_scripts", "allow_network", "allow_filesystem", "inherit_environment", "grant_argument_paths"]
# For each field, two values of which the second is tighter, and the first therefore looser.
TIGHTENINGS: list[tuple[str, Any, Any]] = [
    *[(name, True, False) for name in SWITCHES],
    ("allowed_hosts", ["api.example.com", "*.example.org"], ["api.example.com"]),
    ("allowed_hosts", ["*"], ["api.example.com"]),
    ("allowed_hosts", ["*.example.org"], ["*.sub.example.org", "a.example.org:443"]),
    ("allowed_hosts", ["api.example.com"], ["api.example.com:443"]),
    ("allowed_hosts", ["db.example.com private"], ["db.example.com"]),
    ("allowed_hosts", ["api.example.com"], []),
    ("timeout_seconds", 30, 29.5),
    ("allowed_commands", ["git", "ls"], ["ls"]),
    ("allowed_commands", [], ["scripts/a.py"]),
    ("allowed_commands", ["git"], ["git", "scripts/*"]),
    ("allowed_commands", ["scripts/*", "tools/*"], ["tools/*"]),
    ("allowed_interpreters", ["bash", "node"], ["bash"]),
    ("allowed_interpreters", ["bash"], []),
    ("allowed_tools_mode", "ignore", "restrict"),
    ("allowed_tools_mode", "ignore", "grant"),
    ("run_on_load", "ask", "trusted"),
    ("run_on_load", "trusted", "never"),
    ("approval", "never", "first_run"),
    ("approval", "first_run", "always"),
    ("pass_environment", ["A", "B"], ["B"]),
    ("grantable", ["host", "read"], ["read"]),
    ("readable_paths", ["/srv"], ["/srv/data"]),
    ("readable_paths", ["/srv", "/opt"], []),
    ("writable_paths", ["/srv"], ["/srv/data", "/srv/more"]),
    ("home", "kept", "fresh"),
    ("sandbox", "off", "preferred"),
    ("sandbox", "preferred", "required"),
    *[(f"limits.{each.name}", 5, 4) for each in fields(Limits)],
]
# Neither of the two is tighter: each way is a loosening.
INCOMPARABLE: list[tuple[str, Any, Any]] = [
    ("allowed_tools_mode", "restrict", "grant"),
    ("working_directory", "skill", "workspace"),
    ("working_directory", "skill", "auto"),
    ("working_directory", "workspace", "auto"),
    ("allowed_commands", ["git"], ["ls"]),
    ("allowed_commands", ["scripts/*"], ["scripts/a.py"]),
    ("allowed_commands", ["git*"], ["git-log"]),
    ("allowed_commands", ["git"], ["scripts/a", "ls"]),
    ("allowed_interpreters", ["bash"], ["node"]),
    ("pass_environment", ["A"], ["B"]),
    ("readable_paths", ["/srv/data"], ["/srv/data2"]),
    ("allowed_hosts", ["api.example.com"], ["evil.example.com"]),
    ("allowed_hosts", ["*.example.org"], ["example.org"]),
    ("allowed_hosts", ["api.example.com:8443"], ["api.example.com"]),
    ("allowed_hosts", ["*"], ["git.team.internal"]),
    ("allowed_hosts", ["*"], ["db.example.com private"]),
]


def toml(name: str, value: Any) -> str:
    return f"policy.{name} = {toml_text(value)}\n"


@pytest.mark.parametrize(("name", "loose", "tight"), TIGHTENINGS)
def test_a_project_may_tighten(machine: Machine, name: str, loose: Any, tight: Any) -> None:
    machine.user(toml(name, loose))
    machine.repository(toml(name, tight))
    origin = machine.settings().origins[f"policy.{name}"]
    assert origin.places[0].file == machine.project_file
    assert toml_text(origin.value) == toml_text(tight)


@pytest.mark.parametrize(
    ("name", "own", "given"),
    [*((name, tight, loose) for name, loose, tight in TIGHTENINGS), *INCOMPARABLE, *((n, b, a) for n, a, b in INCOMPARABLE)],
)  # fmt: skip
def test_a_project_may_not_loosen(machine: Machine, name: str, own: Any, given: Any) -> None:
    machine.user("# mine\n" + toml(name, own))
    machine.repository("\n" + toml(name, given))
    assert machine.refusal() == (
        f"{machine.project_file}:2: 'policy.{name}' is {toml_text(given)}, but your settings ({machine.user_file}:2) say "
        f"{toml_text(own)}. A project may only tighten: {FIELDS[name].tighter}.\n"
        f"Correct it, or, if you trust this project, write into {machine.user_file}:\n\n"
        f'  [projects]\n  trusted = ["{machine.project}"]'
    )
    machine.trusting(toml(name, own))
    settings = machine.settings()
    assert toml_text(settings.origins[f"policy.{name}"].value) == toml_text(given)
    assert settings.is_trusted_project


def test_a_project_opens_no_host_where_the_user_named_none(machine: Machine) -> None:
    machine.repository('policy.allowed_hosts = ["api.example.com"]')
    assert "skillkit.toml:1: 'policy.allowed_hosts' is [\"api.example.com\"], but your settings" in machine.refusal()


def test_a_project_may_name_hosts_where_the_user_opened_the_whole_network(machine: Machine) -> None:
    machine.user("policy.allow_network = true")
    machine.repository('[policy]\nallow_network = false\nallowed_hosts = ["api.example.com", "db.example.com private"]')
    policy = machine.settings().policy
    assert not policy.allow_network
    assert policy.allowed_hosts == ("api.example.com", "db.example.com private")
    machine.user("policy.allow_network = false")
    assert "'policy.allowed_hosts' is" in machine.refusal()


def test_without_a_users_file_a_project_may_tighten_the_guarded_profile(machine: Machine) -> None:
    machine.repository("profile = 'locked'\npolicy.limits.processes = 5")
    settings = machine.settings()
    assert settings.policy == replace(PROFILES["locked"], limits=Limits(processes=5))
    assert not settings.is_trusted_project


@pytest.mark.parametrize("profile", ["standard", "trusted"])
def test_a_looser_profile_is_named_with_what_it_loosens(machine: Machine, profile: str) -> None:
    machine.repository(f"profile = '{profile}'")
    message = machine.refusal()
    value = PROFILES[profile].sandbox
    assert (
        f"{machine.project_file}:1: profile '{profile}' makes 'policy.sandbox' \"{value}\", "
        f'but your settings (profile guarded) say "required".' in message
    )
    assert f"{os.environ['HOME']}/.config/skillkit/config.toml" in message


def test_a_looser_profile_is_fine_where_the_project_takes_it_all_back(machine: Machine) -> None:
    machine.repository("profile = 'standard'\n[policy]\napproval = 'first_run'\nsandbox = 'required'")
    assert machine.settings().policy == GUARDED


def test_what_the_user_set_stays_when_a_project_names_a_profile(machine: Machine) -> None:
    machine.user("profile = 'trusted'\npolicy.timeout_seconds = 5\npolicy.allow_network = false")
    machine.repository("profile = 'guarded'")
    settings = machine.settings()
    assert settings.policy == replace(GUARDED, timeout_seconds=5)
    assert str(settings.origins["policy.timeout_seconds"]) == f"{machine.user_file}:2"
    assert str(settings.origins["policy.sandbox"]) == "profile guarded"
    assert str(settings.origins["profile"]) == f"{machine.project_file}:1"


def test_a_link_of_the_project_counts_as_what_it_leads_to(machine: Machine, tmp_path: Path) -> None:
    for name in ("shared/data", "secret"):
        (tmp_path / name).mkdir(parents=True)
    machine.user(f"policy.readable_paths = ['{tmp_path / 'shared'}']")
    machine.repository("policy.readable_paths = ['data']")
    (machine.project / "data").symlink_to(tmp_path / "secret")
    assert f'is ["{tmp_path / "secret"}"]' in machine.refusal()
    (machine.project / "data").unlink()
    (machine.project / "data").symlink_to(tmp_path / "shared" / "data")
    settings = machine.settings()
    assert settings.policy.readable_paths == (tmp_path / "shared" / "data",)


def test_a_link_of_the_user_counts_as_what_it_leads_to(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "real" / "data").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    machine.user(f"policy.readable_paths = ['{tmp_path / 'link'}']")
    machine.repository(f"policy.readable_paths = ['{tmp_path / 'real' / 'data'}']")
    assert machine.settings().policy.readable_paths == (tmp_path / "real" / "data",)


def test_dots_do_not_lead_out_of_what_the_user_allows(machine: Machine) -> None:
    machine.user("policy.readable_paths = ['/srv/data']")
    machine.repository("policy.readable_paths = ['/srv/data/../secret']")
    assert 'is ["/srv/secret"]' in machine.refusal()


@pytest.mark.parametrize("key", ["paths", "plugins"])
def test_a_project_brings_skills_of_its_own_and_no_others(machine: Machine, tmp_path: Path, key: str) -> None:
    (tmp_path / "elsewhere").mkdir()
    (machine.project / "tools").mkdir(parents=True)
    machine.repository(f"skills.{key} = ['tools', '.']")
    settings = machine.settings()
    assert (settings.skill_paths or settings.plugin_dirs) == (machine.project / "tools", machine.project)
    (machine.project / "link").symlink_to(tmp_path / "elsewhere")
    for path in ("../elsewhere", "link", str(tmp_path / "elsewhere"), "~", ".."):
        machine.repository(f"skills.{key} = ['tools', '{path}']")
        assert "which is outside the project's own folder" in machine.refusal()
    machine.trusting()
    assert machine.settings().is_trusted_project


def test_trust_is_for_the_very_project(machine: Machine) -> None:
    machine.repository("profile = 'trusted'")
    for folder in (machine.project.parent, machine.project / "inner", f"{machine.project}2", "/"):
        machine.user(f"projects.trusted = ['{folder}']")
        message = machine.refusal()
        assert message.endswith(f"add \"{machine.project}\" to 'projects.trusted' in {machine.user_file}:1")


def test_trust_goes_by_real_paths(machine: Machine, tmp_path: Path) -> None:
    machine.repository("profile = 'trusted'")
    (tmp_path / "link").symlink_to(machine.project)
    machine.user(f"projects.trusted = ['{tmp_path / 'link'}']")
    assert machine.settings().profile == "trusted"
    settings = load_settings(tmp_path / "link", environ={}, user_file=machine.user_file)
    assert settings.project_file == machine.project_file


def test_a_remedy_that_is_followed_works(machine: Machine) -> None:
    machine.repository("profile = 'trusted'")
    remedy = machine.refusal().partition(":\n\n")[2]
    machine.user(remedy)
    assert machine.settings().profile == "trusted"


def test_a_trusted_project_must_be_written_by_nobody_else(machine: Machine) -> None:
    machine.trusting()
    machine.repository("profile = 'trusted'")
    assert machine.settings().profile == "trusted"
    machine.project.chmod(0o757)
    assert f"{machine.project} can be written by others" in machine.refusal()


def test_a_policy_is_no_looser_than_itself() -> None:
    for policy in PROFILES.values():
        assert list(loosenings(policy, policy)) == []
    assert [each.key for each in loosenings(PROFILES["locked"], PROFILES["trusted"])] == [
        "policy.allow_scripts",
        "policy.allow_network",
        "policy.allow_filesystem",
        "policy.approval",
        "policy.home",
        "policy.grantable",
        "policy.sandbox",
    ]


def test_a_project_may_leave_folders_of_hosts_out_but_not_bring_them_back(machine: Machine) -> None:
    machine.repository("skills.host_folders = false")
    assert machine.settings().host_folders is False
    machine.repository("skills.host_folders = true")
    assert machine.settings().host_folders is True
    machine.user("skills.host_folders = false")
    assert "skillkit.toml:1: 'skills.host_folders' is true, but your settings" in machine.refusal()


def test_that_switch_is_true_or_false(machine: Machine) -> None:
    machine.user("skills.host_folders = 'no'")
    assert "'skills.host_folders' is \"no\"; it must be true or false." in machine.refusal()
