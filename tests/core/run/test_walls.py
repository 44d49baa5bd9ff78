from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from skillkit import GUARDED, STANDARD, TRUSTED, Limits, SandboxUnavailableError, ScriptPolicy
from skillkit.core.run import walls_for
from skillkit.core.runs import Isolation


def test_without_walls_asked_for_there_are_none(caplog: pytest.LogCaptureFixture) -> None:
    assert walls_for(TRUSTED) == Isolation()
    assert caplog.records == []


def test_preferred_walls_that_are_missing_are_named_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    assert walls_for(STANDARD) == Isolation(degraded=("limits", "files", "network"))
    assert [(each.name, each.levelno, each.getMessage()) for each in caplog.records] == [
        ("skillkit.run", logging.WARNING, "running without walls: limits, files, network")
    ]


def test_what_policy_allows_is_not_missing() -> None:
    policy = replace(STANDARD, allow_network=True, allow_filesystem=True)
    assert walls_for(policy).degraded == ("limits",)


def test_required_walls_that_are_missing_are_an_error_with_the_remedy() -> None:
    with pytest.raises(SandboxUnavailableError, match="nothing here can enforce it") as caught:
        walls_for(GUARDED)
    assert caught.value.missing == ("limits", "files", "network")
    assert "sandbox='preferred'" in caught.value.remedy
    assert caught.value.remedy in str(caught.value)


@pytest.mark.parametrize("sandbox", ["required", "preferred", "off"])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("readable_paths", (Path("/data"),)),
        ("writable_paths", (Path("/data"),)),
        ("grant_argument_paths", False),
        ("limits", Limits(processes=8)),
    ],
)
def test_a_field_that_is_set_and_cannot_be_kept_refuses(sandbox: str, name: str, value: Any) -> None:
    policy = ScriptPolicy(allow_scripts=True, sandbox=sandbox, **{name: value})
    with pytest.raises(SandboxUnavailableError, match=f"Leave out: {name}") as caught:
        walls_for(policy)
    assert caught.value.missing == (name,)
