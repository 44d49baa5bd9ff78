"""Files and command line together: what holds, and where it came from."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import pytest
from support.config_files import Machine
from support.skill_folders import skill_folder

from skillkit import ConfigurationError, SkillManager
from skillkit.config import Settings, load_settings
from skillkit.config.keys import KEYS
from skillkit.core.values.policy import GUARDED, PROFILES, TRUSTED


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_without_files_the_guarded_profile_holds(machine: Machine) -> None:
    settings = machine.settings()
    assert settings == Settings(user_file=Path.home() / ".config" / "skillkit" / "config.toml")
    assert settings.policy == GUARDED
    assert set(settings.origins) == set(KEYS)
    assert {str(origin) for key, origin in settings.origins.items() if key.startswith("policy.")} == {"profile guarded"}
    others = {key: (origin.value, str(origin)) for key, origin in settings.origins.items() if "policy" not in key}
    assert others == {
        "profile": ("guarded", "default"),
        "packages_min_age_days": (7, "default"),
        "skills.paths": ((), "default"),
        "skills.plugins": ((), "default"),
        "skills.host_folders": (True, "default"),
        "projects.trusted": ((), "default"),
    }


def test_settings_never_change(machine: Machine) -> None:
    with pytest.raises(FrozenInstanceError):
        machine.settings().profile = "trusted"  # type: ignore[misc]


def test_the_project_wins_over_the_user_key_by_key(machine: Machine) -> None:
    machine.user("[policy]\ntimeout_seconds = 60\napproval = 'always'\n")
    machine.repository("[policy]\ntimeout_seconds = 10\n")
    settings = machine.settings()
    assert settings.policy == replace(GUARDED, timeout_seconds=10, approval="always")
    assert str(settings.origins["policy.timeout_seconds"]) == f"{machine.project_file}:2"
    assert str(settings.origins["policy.approval"]) == f"{machine.user_file}:3"
    assert (settings.user_file, settings.project_file) == (machine.user_file, machine.project_file)


def test_folders_of_skills_add_up_the_projects_first(machine: Machine, tmp_path: Path) -> None:
    for folder in (machine.project / "tools", tmp_path / "mine"):
        folder.mkdir(parents=True)
    machine.user("skills.paths = ['../mine']")
    machine.repository("\nskills.paths = ['tools']")
    settings = machine.settings()
    assert settings.skill_paths == (machine.project / "tools", tmp_path / "mine")
    assert str(settings.origins["skills.paths"]) == f"{machine.project_file}:2, {machine.user_file}:1"


def test_the_files_that_may_loosen_are_known_so_that_walls_can_close_them(machine: Machine) -> None:
    own = Path.home() / ".config" / "skillkit"
    assert machine.settings().loosening_files == (own / "config.toml", own / "agents")
    machine.trusting()
    machine.repository("")
    agents = machine.user_file.parent / "agents"
    assert machine.settings().loosening_files == (machine.user_file, agents, machine.project_file)


def test_a_profile_from_the_command_line_stands_alone(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    machine.user("policy.timeout_seconds = 5\nskills.paths = ['../mine']")
    chosen = machine.settings().chosen(profile="trusted")
    assert chosen.policy == TRUSTED
    assert chosen.skill_paths == (tmp_path / "mine",)
    assert str(chosen.origins["profile"]) == "command line --policy"
    assert str(chosen.origins["policy.timeout_seconds"]) == "profile trusted"


def test_without_a_choice_the_files_hold(machine: Machine) -> None:
    machine.user("policy.timeout_seconds = 5")
    assert machine.settings().chosen() == machine.settings()


def test_an_unknown_profile_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="No profile is named 'gaurded'; there are: locked, guarded"):
        Settings().chosen(profile="gaurded")


@pytest.mark.parametrize("profile", [None, *PROFILES])
def test_more_reach_for_one_call_is_added_to_whatever_holds(machine: Machine, profile: str | None) -> None:
    machine.user("policy.readable_paths = ['/srv']")
    chosen = machine.settings().chosen(profile=profile, readable=[Path("/data")], writable=[Path("/out")], network=True)
    assert chosen.policy == replace(
        PROFILES[profile or "guarded"],
        readable_paths=(Path("/data"),) if profile else (Path("/data"), Path("/srv")),
        writable_paths=(Path("/out"),),
        allow_network=True,
    )
    assert str(chosen.origins["policy.allow_network"]) == "command line --network"
    own = "" if profile else f", {machine.user_file}:1"
    assert str(chosen.origins["policy.readable_paths"]) == f"command line --read{own}"


def test_named_folders_are_the_only_ones(machine: Machine, tmp_path: Path) -> None:
    for name in ("mine", "given", "plugin", "other"):
        (tmp_path / name).mkdir()
    machine.user("skills.paths = ['../mine']\nskills.plugins = ['../other']")
    chosen = machine.settings().chosen(skills=[tmp_path / "given"], plugins=[tmp_path / "plugin"])
    assert chosen.manager_arguments() == {
        "project_skill_dir": "",
        "anthropic_config_dir": "",
        "plugin_dirs": (tmp_path / "plugin",),
        "additional_search_paths": (tmp_path / "given",),
        "policy": GUARDED,
        "protected_paths": chosen.loosening_files,
        "host_folders": True,
    }
    added = machine.settings().chosen(plugins=[tmp_path / "plugin"])
    assert added.plugin_dirs == (tmp_path / "plugin", tmp_path / "other")
    assert added.manager_arguments()["project_skill_dir"] is None


def test_a_manager_takes_the_settings(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    skill_folder(machine.project / "tools", "from-settings")
    skill_folder(machine.project / "skills", "from-the-usual-place")
    machine.repository("skills.paths = ['tools']\npolicy.timeout_seconds = 7")
    monkeypatch.chdir(machine.project)
    with SkillManager(**machine.settings().manager_arguments()) as manager:
        assert [skill.name for skill in manager.list_skills()] == ["from-the-usual-place", "from-settings"]
        assert manager.default_script_timeout == 7


def test_one_setting_leaves_the_folders_of_other_hosts_out(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in (".codex/skills", ".claude/skills"):
        skill_folder(machine.project / folder, folder.split("/")[0].strip("."))
    monkeypatch.chdir(machine.project)
    with SkillManager(**machine.settings().manager_arguments()) as manager:
        assert [skill.name for skill in manager.list_skills()] == ["claude", "codex"]
    machine.user("skills.host_folders = false")
    with SkillManager(**machine.settings().manager_arguments()) as manager:
        assert [skill.name for skill in manager.list_skills()] == ["claude"]


def test_reading_costs_nothing_where_there_is_nothing_to_read(tmp_path: Path) -> None:
    import subprocess
    import sys

    program = (
        "import sys; from pathlib import Path; from skillkit.config import load_settings\n"
        f"load_settings(Path({str(tmp_path)!r})).chosen(skills=[Path('/')])\n"
        "print([name for name in ('tomllib', 'difflib', 'platformdirs', 'json') if name in sys.modules])"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout.strip() == "[]"


def test_a_relative_start_is_the_current_folders(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.repository("profile = 'locked'")
    (machine.project / "inner").mkdir()
    monkeypatch.chdir(machine.project / "inner")
    for start in (Path(), Path("..")):
        assert load_settings(start, environ={}).profile == "locked"


def test_folders_and_files_may_be_given_as_text(machine: Machine, tmp_path: Path) -> None:
    machine.repository("[policy]\ntimeout_seconds = 7\n")
    (project,) = {path.parent for path in tmp_path.rglob("skillkit.toml")}
    own = tmp_path / "own.toml"
    own.write_text("[policy]\ntimeout_seconds = 9\n")
    settings = load_settings(str(project), environ={}, user_file=str(own))
    assert settings == load_settings(project, environ={}, user_file=own)
    assert (settings.policy.timeout_seconds, settings.user_file) == (7, own)
