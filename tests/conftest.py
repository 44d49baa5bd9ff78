"""Every test has a home and a state folder of its own, and nothing is left behind."""

from __future__ import annotations

import os
import signal
import tempfile
from pathlib import Path

import pytest
from hypothesis.configuration import set_hypothesis_home_dir

pytest_plugins = ["support.databases", "support.tier_watch", "support.warm_runs"]


# Each of these starts programs again and again, or waits for them: seconds a test.
LONG = (
    "tests/e2e/",
    "tests/bench/",
    "tests/integrations/mcp/",
    "tests/core/test_running_in_every_language.py::test_an_endless_script",
    "tests/attacks/test_mcp_",
    "tests/attacks/test_self_approval",
    "tests/attacks/test_slow_texts",
    "tests/attacks/test_swapped_paths.py::test_a_script_that_swaps",
    "tests/attacks/test_swapped_paths.py::test_control_who_looks",
    "tests/attacks/test_work_folder_trees",
    "tests/attacks/test_idle_connections",
    "tests/core/paths/test_trees.py::test_the_usual_way_fails",
    "tests/core/paths/test_trees.py::test_a_look_for_files_ends",
    "tests/cli/test_chat_",
    "tests/packages/test_node",
    "tests/packages/test_commands",
    "tests/cli/test_mcp_",
    "tests/cli/test_web_",
    "tests/core/ask/test_approvals_between_",
    "tests/core/store/test_world_between_",
    "tests/sources/",
    "tests/attacks/test_hostile_sources",
    "tests/attacks/test_locks_give_no_trust",
    "tests/attacks/test_swapped_signers",
    "tests/attacks/test_warm",
    "tests/core/run/warm/",
    "tests/attacks/test_what_was_shown",
    "tests/attacks/test_guarded_names",
    "tests/attacks/test_ways_around_the_guard",
    "tests/attacks/test_escapes_",
    "tests/attacks/test_host_names",
    "tests/attacks/test_host_endings",
    "tests/attacks/test_hosts",
    "tests/integrations/test_refused_hosts_told",
    "tests/web/test_running_runs",
    "tests/attacks/test_packages",
    "tests/attacks/test_kept_homes",
    "tests/attacks/test_hidden_changes",
    "tests/attacks/test_oversized_skills",
    "tests/attacks/test_leftovers",
    "tests/core/run/hints/test_causes",
    "tests/core/run/sandbox/test_seccomp",
    "tests/core/run/process/test_survivors",
    "tests/core/ask/test_approvals_together",
    "tests/integrations/test_stopped_scripts",
    "tests/packages/test_p",
    "tests/cli/skills/",
    "tests/cli/test_doctor_command",
    "tests/cli/people/test_home_command",
    "tests/cli/test_run_command",
    "tests/chat/test_talk",
    "tests/properties/test_hostile_workspaces",
    "tests/attacks/test_planted_links",
    "tests/attacks/test_kept_artifacts",
    "tests/attacks/test_host_clients",
    "tests/attacks/test_code_from_outside",
    "tests/attacks/test_hints",
    "tests/attacks/test_recorded_text",
    "tests/attacks/test_unsayable_names",
    "tests/core/run/compiled/",
    "tests/core/run/sandbox/test_keeper",
    "tests/cli/test_demo_command",
    "tests/integrations/langchain/test_imports",
    "tests/integrations/test_given_answers",
    "tests/test_architecture.py::test_an_import_against_the_arrows",
)


LONG_FILES = tuple(each for each in LONG if "::" not in each)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Where no long test is asked for, a file of nothing else is not read: every process of a suite would read it."""
    name = f"{collection_path.relative_to(config.rootpath).as_posix()}/"
    return ("not slow" in config.getoption("markexpr") and name.startswith(LONG_FILES)) or None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith(LONG):
            item.add_marker(pytest.mark.slow)


def pytest_configure(config: pytest.Config) -> None:
    """Property tests are derandomised; what Hypothesis notes for later runs goes away with the session."""
    folder = tempfile.TemporaryDirectory()
    set_hypothesis_home_dir(folder.name)
    config.add_cleanup(folder.cleanup)
    # Programs that tests start in other folders find what this one found.
    if entries := os.environ.get("PYTHONPATH"):
        os.environ["PYTHONPATH"] = os.pathsep.join(map(os.path.abspath, entries.split(os.pathsep)))
    # Started by nohup or in the background, these would be ignored by every script that a test starts.
    for name in ("SIGINT", "SIGQUIT", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if name == "SIGINT" else signal.SIG_DFL)


@pytest.fixture(autouse=True)
def private_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own skills, settings and state are never seen or touched."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("USERPROFILE", str(home))
    monkeypatch.setenv("SKILLKIT_STATE_DIR", str(home / "state"))
    for name in ("SKILLKIT_CONFIG", "SKILLKIT_STATE", "SKILLKIT_SKILLS", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    return home


@pytest.fixture(params=("bubblewrap", "landlock"))
def tier(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Only this kind of walls exists."""
    from skillkit.core.run import tiers
    from skillkit.core.run.sandbox.choose import Choice
    from skillkit.core.run.tiers import machine_tiers

    attempt = next((each for each in machine_tiers() if each.tier == request.param), None)
    if attempt is None or attempt.sandbox is None:
        pytest.skip(f"no {request.param} here")
    sandbox = attempt.sandbox
    monkeypatch.setattr(tiers, "this_machines", Choice({request.param: lambda: sandbox}))
    return str(request.param)
