"""What one run gets, compared with what a person was shown."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from support.commands import BOUNDS, COMMAND, WIDER, bounds_under

from skillkit import GUARDED
from skillkit.core.values.bounds import ANY_WORKSPACE, Bounds
from skillkit.core.values.skills import Workspace


def test_a_run_like_the_one_that_was_shown_is_within_its_bounds() -> None:
    assert BOUNDS.hold(BOUNDS)
    assert BOUNDS.hold(replace(BOUNDS, interpreter="python3", program=("/usr/bin/python3",))), "another script of it"


@pytest.mark.parametrize("change", WIDER, ids=str)
def test_a_run_that_gets_one_thing_more_is_not(change: dict[str, object]) -> None:
    wider = replace(BOUNDS, **change)  # type: ignore[arg-type]  # any field
    assert not BOUNDS.hold(wider)


@pytest.mark.parametrize("number", range(len(BOUNDS.limits)))
def test_every_limit_counts(number: int) -> None:
    limits = [*BOUNDS.limits]
    limits[number] = (limits[number][0], limits[number][1] + 1)
    assert not BOUNDS.hold(replace(BOUNDS, limits=tuple(limits)))


def test_what_is_narrower_is_within() -> None:
    shown = replace(
        BOUNDS, tier="landlock", network=True, workspace="/w", readable=("/data",), variables=("A", "B"), as_root=True
    )
    limits = tuple((name, value - 1) for name, value in BOUNDS.limits)
    for narrower in (
        {"tier": "bubblewrap"},
        {"network": False},
        {"workspace": "/w/inner"},
        {"workspace": ""},
        {"readable": ("/data/inner",)},
        {"readable": ()},
        {"variables": ("B",)},
        {"as_root": False},
        {"argument_paths": False},
        {"limits": limits},
        {"seconds": 1.0},
    ):
        assert shown.hold(replace(shown, **narrower)), narrower
    assert not replace(shown, argument_paths=False).hold(shown)
    assert not replace(shown, as_root=False).hold(shown)
    assert not shown.hold(replace(shown, readable=("/database",))), "a name that begins alike is another folder"


def test_a_kind_of_walls_that_nobody_knows_holds_only_itself() -> None:
    unknown = replace(BOUNDS, tier="later")
    assert unknown.hold(unknown)
    assert not unknown.hold(BOUNDS)
    assert not replace(BOUNDS, tier="none").hold(unknown)


def test_trust_is_for_any_workspace(tmp_path: Path) -> None:
    trusted = bounds_under(GUARDED)
    assert trusted.workspace == ANY_WORKSPACE
    assert trusted.hold(bounds_under(GUARDED, replace(COMMAND, workspace=Workspace(tmp_path, 1, 2))))


def test_what_a_link_led_to_when_it_was_shown_is_what_counts(tmp_path: Path) -> None:
    for name in ("shown", "other"):
        (tmp_path / name).mkdir()
    link = tmp_path / "link"
    link.symlink_to("shown")
    policy = replace(GUARDED, writable_paths=(link,))
    shown = bounds_under(policy, COMMAND)
    assert shown.hold(bounds_under(policy, COMMAND))
    link.unlink()
    link.symlink_to("other")
    assert not shown.hold(bounds_under(policy, COMMAND))


def test_bounds_come_back_from_their_text_or_not_at_all() -> None:
    odd = replace(BOUNDS, workspace="/w/\udcff", readable=("/a", "/b"))
    assert Bounds.from_text(odd.to_text()) == odd
    kept = json.loads(odd.to_text())
    more, less = {**kept, "later": 1}, {name: value for name, value in kept.items() if name != "network"}
    for text in ("", "{}", "null", "[]", "no", json.dumps(more, sort_keys=True), json.dumps(less, sort_keys=True)):
        assert Bounds.from_text(text) is None


def test_a_yes_where_content_decides_covers_a_start_in_the_skill_and_not_the_reverse() -> None:
    shown = replace(BOUNDS, working_directory="auto")
    assert shown.hold(replace(BOUNDS, working_directory="skill"))
    assert not BOUNDS.hold(shown)
    assert not shown.hold(replace(BOUNDS, working_directory="workspace"))


def test_a_yes_for_a_kept_home_covers_a_fresh_one_and_not_the_reverse() -> None:
    kept = replace(BOUNDS, home="kept")
    assert kept.hold(BOUNDS)
    assert not BOUNDS.hold(kept)
