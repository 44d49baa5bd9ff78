from __future__ import annotations

import itertools
from dataclasses import FrozenInstanceError, fields, replace
from pathlib import Path
from typing import Any

import pytest

from skillkit import GUARDED, LOCKED, STANDARD, TRUSTED, ConfigurationError, Limits, ScriptPolicy
from skillkit.core.values.needs import GRANT_KINDS
from skillkit.core.values.policy import PROFILES, loosenings, require_timeout


def test_a_bare_policy_allows_nothing() -> None:
    policy = ScriptPolicy()
    assert (policy.allow_scripts, policy.allow_network, policy.allow_filesystem) == (False, False, False)
    assert (policy.inherit_environment, policy.allowed_commands, policy.pass_environment) == (False, (), ())
    assert (policy.readable_paths, policy.writable_paths, policy.grantable) == ((), (), ())
    assert (policy.sandbox, policy.approval, policy.allowed_tools_mode) == ("required", "first_run", "restrict")
    assert (policy.timeout_seconds, policy.working_directory, policy.grant_argument_paths) == (30, "skill", True)
    assert policy.home == "fresh"
    assert policy.allowed_interpreters == ("python3", "bash", "node", "ruby", "perl")
    assert policy.limits == Limits(1024, 100, 64, 256, 64, 100)


def test_the_profiles_are_these() -> None:
    assert PROFILES == {"locked": LOCKED, "guarded": GUARDED, "standard": STANDARD, "trusted": TRUSTED}

    def differs(policy: ScriptPolicy) -> dict[str, object]:
        bare = ScriptPolicy()
        names = [each.name for each in fields(ScriptPolicy)]
        return {name: getattr(policy, name) for name in names if getattr(policy, name) != getattr(bare, name)}

    assert differs(LOCKED) == {"approval": "always"}
    assert differs(GUARDED) == {"allow_scripts": True, "home": "kept", "grantable": GRANT_KINDS}
    assert differs(STANDARD) == {
        "allow_scripts": True,
        "approval": "never",
        "home": "kept",
        "sandbox": "preferred",
        "grantable": GRANT_KINDS,
    }
    assert differs(TRUSTED) == {
        "allow_scripts": True,
        "allow_network": True,
        "allow_filesystem": True,
        "approval": "never",
        "home": "kept",
        "sandbox": "off",
        "grantable": GRANT_KINDS,
    }


def test_a_policy_never_changes() -> None:
    with pytest.raises(FrozenInstanceError, match="allow_scripts"):
        LOCKED.allow_scripts = True  # type: ignore[misc]  # that is the point


CHOICES = ("maybe", None, ["never"])
SWITCHES = (0, 1, "yes", None)
LISTS = ("bash", b"bash", None, 5, [1], [None])


@pytest.mark.parametrize(
    ("names", "values", "rule"),
    [
        pytest.param("allowed_tools_mode approval working_directory home", CHOICES, "must be one of", id="choices"),
        pytest.param("sandbox", CHOICES, "must be one of: required, preferred, off", id="walls"),
        pytest.param(
            "allow_scripts allow_network allow_filesystem inherit_environment grant_argument_paths",
            SWITCHES,
            "must be true or false",
            id="switches",
        ),
        pytest.param(
            "allowed_commands allowed_interpreters pass_environment readable_paths writable_paths grantable",
            LISTS,
            "must be a list",
            id="lists",
        ),
        pytest.param(
            "timeout_seconds", (0, 601, -1, float("nan"), "30", None, True), "A timeout is 1 to 600 seconds", id="time"
        ),
        pytest.param("limits", ({"processes": 5},), r"must be Limits\(\.\.\.\)", id="limits"),
    ],
)
def test_an_impossible_value_is_refused_by_name(names: str, values: tuple[Any, ...], rule: str) -> None:
    for name, value in itertools.product(names.split(), values):
        with pytest.raises(ConfigurationError, match=rule if name == "timeout_seconds" else rf"{name} .*{rule}"):
            ScriptPolicy(**{name: value})


@pytest.mark.parametrize("name", [each.name for each in fields(Limits)])
def test_a_limit_is_a_whole_number_above_zero(name: str) -> None:
    for value in (0, -1, 1.5, True, "5", None):
        with pytest.raises(ConfigurationError, match=rf"limits\.{name} is .*whole number above 0"):
            Limits(**{name: value})  # type: ignore[arg-type]  # that is the point


def test_lists_become_tuples_of_texts_and_absolute_paths(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/ann")
    given: Any = {
        "allowed_commands": ["git"],
        "allowed_interpreters": (name for name in ("bash", "perl")),
        "readable_paths": ["~/data", "here", Path("/there")],
    }
    policy = ScriptPolicy(**given)
    assert policy.allowed_commands == ("git",)
    assert policy.allowed_interpreters == ("bash", "perl")
    assert policy.readable_paths == (Path("/home/ann/data"), tmp_path / "here", Path("/there"))


def test_only_kinds_of_grants_are_grantable() -> None:
    assert ScriptPolicy(grantable=["host", "secret"]).grantable == ("host", "secret")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="grantable names 'package'; what can be granted is: host, secret"):
        ScriptPolicy(grantable=("package",))


def test_a_project_may_only_shorten_what_can_be_granted() -> None:
    shorter = replace(GUARDED, grantable=("host",))
    assert not [*loosenings(GUARDED, shorter)]
    assert [each.key for each in loosenings(shorter, GUARDED)] == ["policy.grantable"]
    assert not [*loosenings(TRUSTED, replace(TRUSTED, grantable=GUARDED.grantable))]


def test_an_empty_list_means_nothing() -> None:
    assert ScriptPolicy(allowed_interpreters=()).allowed_interpreters == ()


@pytest.mark.parametrize("seconds", [1, 1.5, 30, 600])
def test_times_from_one_to_six_hundred_seconds_are_fine(seconds: float) -> None:
    require_timeout(seconds)
    assert ScriptPolicy(timeout_seconds=seconds).timeout_seconds == seconds
