"""What a configuration file may say, and what it gets for saying anything else."""

from __future__ import annotations

import os
from dataclasses import fields
from pathlib import Path

import pytest
from support.config_files import Machine

from skillkit import Limits, ScriptPolicy
from skillkit.config.keys import KEYS
from skillkit.core.values.policy import GUARDED


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_every_field_of_a_policy_is_a_key() -> None:
    names = {f"policy.{each.name}" for each in fields(ScriptPolicy)} - {"policy.limits"}
    limits = {f"policy.limits.{each.name}" for each in fields(Limits)}
    assert (
        set(KEYS)
        == {
            "profile",
            "packages_min_age_days",
            "skills.paths",
            "skills.plugins",
            "skills.host_folders",
            "projects.trusted",
        }
        | names
        | limits
    )


def test_every_key_reaches_the_setting_it_names(machine: Machine, tmp_path: Path) -> None:
    for name in ("skills", "plugins"):
        (tmp_path / name).mkdir()
    machine.user("""
        profile = "standard"
        packages_min_age_days = 30
        [policy]
        allow_scripts = false
        allow_network = true
        allowed_hosts = ["api.example.com"]
        allow_filesystem = true
        timeout_seconds = 12.5
        allowed_commands = ["git", "scripts/*.py"]
        allowed_interpreters = ["bash"]
        allowed_tools_mode = "grant"
        approval = "always"
        run_on_load = "trusted"
        working_directory = "workspace"
        pass_environment = ["EDITOR"]
        inherit_environment = true
        readable_paths = ["../data", "~/notes", "/srv"]
        writable_paths = ["out"]
        grant_argument_paths = false
        home = "fresh"
        grantable = ["host"]
        sandbox = "off"
        warm = "off"
        [policy.limits]
        data_megabytes = 1
        file_megabytes = 2
        processes = 3
        open_files = 4
        temporary_megabytes = 5
        home_megabytes = 6
        warm_sandboxes = 7
        warm_megabytes = 8
        [skills]
        paths = ["../skills"]
        plugins = ["../plugins"]
        host_folders = false
        [projects]
        trusted = ["/somewhere"]
    """)
    settings = machine.settings()
    assert settings.policy == ScriptPolicy(
        allow_scripts=False,
        allow_network=True,
        allowed_hosts=("api.example.com",),
        allow_filesystem=True,
        timeout_seconds=12.5,
        allowed_commands=("git", "scripts/*.py"),
        allowed_interpreters=("bash",),
        allowed_tools_mode="grant",
        approval="always",
        run_on_load="trusted",
        working_directory="workspace",
        pass_environment=("EDITOR",),
        inherit_environment=True,
        readable_paths=(tmp_path / "data", Path(os.environ["HOME"], "notes"), Path("/srv")),
        writable_paths=(machine.user_file.parent / "out",),
        grant_argument_paths=False,
        home="fresh",
        grantable=("host",),
        sandbox="off",
        warm="off",
        limits=Limits(1, 2, 3, 4, 5, 6, 7, 8),
    )
    assert settings.packages_min_age_days == 30
    assert settings.profile == "standard"
    assert (settings.skill_paths, settings.plugin_dirs) == ((tmp_path / "skills",), (tmp_path / "plugins",))
    assert set(settings.named) == set(KEYS)
    assert all(origin.places[0].file == machine.user_file for origin in settings.origins.values())


@pytest.mark.parametrize(
    "text",
    [
        "policy.limits.processes = 5",
        "[policy]\nlimits.processes = 5",
        "[policy]\nlimits = {processes = 5}",
        "policy = {limits = {'processes' = 5}}",
        '["policy" . limits]\n"pro\\u0063esses" = 5',
    ],
)
def test_a_key_may_be_written_in_every_way_toml_knows(machine: Machine, text: str) -> None:
    machine.repository(text)
    assert machine.settings().policy.limits == Limits(processes=5)
    assert machine.settings().origins["policy.limits.processes"].places[0].line == text.count("\n") + 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[policy]\naproval = 'never'", ":2: 'policy.aproval' is no setting. Did you mean 'policy.approval'?"),
        ("allow_network = false", ":1: 'allow_network' is no setting. Did you mean 'policy.allow_network'?"),
        ("[policy]\nprocesses = 5", ":2: 'policy.processes' is no setting. Did you mean 'policy.limits.processes'?"),
        ("[policy]\nprofile = 'guarded'", ":2: 'policy.profile' is no setting. 'profile' stands at the top level, above all tables."),
        (
            "[policy.limits]\nmemory = 5",
            ":2: 'policy.limits.memory' is no setting. In [policy.limits] there are: data_megabytes, ",
        ),
        ("\n[polcy]\napproval = 'always'", ":2: 'polcy' is no setting. Did you mean 'policy'?"),
        ("[[policy]]\napproval = 'always'", ":1: 'policy' is [{'approval': 'always'}]; it must be a table: [policy]."),
        ("policy = 3", ":1: 'policy' is 3; it must be a table: [policy]."),
        ("policy.limits = 3", ":1: 'policy.limits' is 3; it must be a table: [policy.limits]."),
        ("'policy.approval' = 'always'", """:1: '"policy.approval"' is no setting. """),
        ("'policy.limits' = {}", """:1: '"policy.limits"' is no setting. """),
        ("'' = 1", """:1: '""' is no setting. """),
        ("[skills]\nqqqq = 1", ":2: 'skills.qqqq' is no setting. In [skills] there are: paths, plugins, host_folders."),
        ("zzzz = 1", ":1: 'zzzz' is no setting. There are 'profile' and the tables policy, policy.limits, projects, skills."),
        ("profile = 'gaurded'", ":1: 'profile' is \"gaurded\"; it must be one of: locked, guarded, standard, trusted."),
        ("profile = ['locked']", ":1: 'profile' is [\"locked\"]; it must be one of: "),
        ("policy.approval = 'sometimes'", ":1: 'policy.approval' is 'sometimes'; it must be one of: never, first_run, always."),
        ("policy.allow_network = 'no'", ":1: 'policy.allow_network' is 'no'; it must be true or false."),
        ("policy.timeout_seconds = 601", ":1: 'policy.timeout_seconds': A timeout is 1 to 600 seconds; 601 is not."),
        ("policy.timeout_seconds = nan", ":1: 'policy.timeout_seconds': A timeout is 1 to 600 seconds; nan is not."),
        ("policy.pass_environment = ['A', 'LD_PRELOAD']", ":1: 'policy.pass_environment' has \"LD_PRELOAD\", which is never passed"),
        ("policy.pass_environment = ['A B']", ":1: 'policy.pass_environment' has \"A B\", which is no name of a variable."),
        ("policy.pass_environment = 'HOME'", ":1: 'policy.pass_environment' is 'HOME'; it must be a list of texts."),
        ("policy.allowed_interpreters = [1]", ":1: 'policy.allowed_interpreters' is [1]; it must be a list of texts."),
        ("policy.readable_paths = '/a'", ":1: 'policy.readable_paths' is \"/a\"; it must be a list of paths."),
        ("policy.readable_paths = ['']", ":1: 'policy.readable_paths' is [\"\"]; it must be a list of paths."),
        ('policy.readable_paths = ["a\\u0000"]', ":1: 'policy.readable_paths' is [\"a\\u0000\"]; it must be a list of paths."),
        ("policy.readable_paths = ['~nobody-has-this-name/x']", ":1: 'policy.readable_paths' names '~nobody-has-this-name/x', and there is no such user."),
        ("policy.limits.processes = 0", ":1: 'policy.limits.processes' is 0; it must be a whole number above 0."),
        ("policy.limits.processes = 1.5", ":1: 'policy.limits.processes' is 1.5; it must be a whole number above 0."),
        ("policy.limits.processes = 1979-05-27", ":1: 'policy.limits.processes' is datetime.date(1979, 5, 27); it must be a whole number"),
        ("skills.paths = ['nowhere']", ":1: 'skills.paths' names 'nowhere', and "),
        ("projects.trusted = ['/a']", ":1: 'projects.trusted' may stand in the user's own file only: no project trusts itself."),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_its_line_and_what_to_write(machine: Machine, text: str, expected: str) -> None:
    machine.repository(text)
    assert f"{machine.project_file}{expected}" in machine.refusal()


def test_every_problem_is_named_at_once(machine: Machine) -> None:
    machine.repository("a = 1\n[policy]\nb = 1\napproval = 5\n")
    assert [line.partition(": ")[0].rpartition(":")[2] for line in machine.refusal().splitlines()] == ["1", "3", "4"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("profile = 'locked'\nb ! 2", ":2:3: this is not TOML: Expected '=' after a key"),
        ("profile = 'locked'\n\na = [", ":3: this is not TOML: Invalid value"),
        ("a = 1\na = 2", ":2: this is not TOML: Cannot overwrite a value"),
        ("a = '\x07'", ":1:6: this is not TOML: Found invalid character '\\x07'"),
        (f"a = {'9' * 5000}", ": this is not TOML: "),
        ("a = 99999-01-01", ":1:"),
    ],
)
def test_what_is_no_toml_is_refused_with_line_and_column(machine: Machine, text: str, expected: str) -> None:
    machine.repository(text)
    message = machine.refusal()
    assert message.startswith(f"{machine.project_file}{expected}")
    assert message.endswith("Correct it.")


@pytest.mark.parametrize("text", ["a = " + "[" * 30_000, "a = " + "[" * 20_000 + "]" * 20_000, "{a=" * 9_000])
def test_deep_nesting_is_refused(machine: Machine, text: str) -> None:
    machine.repository(text)
    assert str(machine.project_file) in machine.refusal()


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(f"key{number} = 1" for number in range(4000)),
        f"{'k' * 60_000} = 1",
        f"profile = '{'p' * 60_000}'",
        f"policy.pass_environment = [{'1,' * 30_000}]",
        "policy.allowed_commands = ['git'" + ", 'git'" * 8_000 + "]",
        "skills.paths = ['/etc'" + ", '/etc'" * 7_000 + "]",
        f"{'.'.join('a' * 30_000)} = 1",
        f"[{'.'.join('a' * 100)}]\n" + "\n".join(f"key{number} = 1" for number in range(4000)),
    ],
)  # fmt: skip
def test_a_hostile_file_gets_a_short_answer(machine: Machine, text: str) -> None:
    machine.repository(text)
    assert len(machine.refusal()) < 10_000


def test_an_empty_file_changes_nothing(machine: Machine) -> None:
    machine.repository("")
    assert machine.settings().policy == GUARDED
    machine.user("")
    assert machine.settings().named == {}


def test_a_trusted_project_is_named_by_its_whole_path(machine: Machine) -> None:
    machine.user("projects.trusted = ['project']")
    assert "'projects.trusted' names 'project'; a project is named by its whole path." in machine.refusal()
