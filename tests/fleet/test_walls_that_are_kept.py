"""A yes for the session is kept within the walls that were shown, whatever walls a front writes into its order."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from support.databases import Database
from support.fleets import Fleet, fleet_at

from skillkit import GUARDED, OptionRequest, RequestClosedError, SkillManager, World
from skillkit.core.ask.approvals import with_what_is_kept
from skillkit.core.ask.reach import reach_marks
from skillkit.core.store.requests import Requests, question_from
from skillkit.core.values.bounds import ANY_WORKSPACE, Bounds, walls_digest
from skillkit.core.values.runs import Decision
from skillkit.fleet import showing
from skillkit.fleet.orders import Order

pytestmark = pytest.mark.slow
WIDER: dict[str, dict[str, Any]] = {
    "network": {"network": True},
    "hosts": {"hosts": ("api.example.com",)},
    "files": {"filesystem": True},
    "paths in words": {"argument_paths": True},
    "a path to read": {"readable": ("/etc",)},
    "a path to write": {"writable": ("/srv",)},
    "variables": {"variables": ("KEY",)},
    "all variables": {"all_variables": True},
    "keys": {"secrets": ("KEY",)},
    "interpreters": {"interpreters": ("bash", "python3", "pwsh")},
    "seconds": {"seconds": 600.0},
    "any workspace": {"workspace": ANY_WORKSPACE},
    "another workspace": {"workspace": "volume:data"},
    "limits": {},
}


@pytest.fixture
def fleet(databases: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with fleet_at(databases, "memory://", tmp_path_factory.mktemp("fleet")) as made:
        yield made


def person(fleet: Fleet) -> World:
    return World(fleet.folder / "person", state=fleet.address(fleet.approver))


def question(manager: SkillManager) -> OptionRequest:
    prepared = manager.prepare_skill_script("demo", "say", argv=["walls"])
    assert prepared.request is not None
    return with_what_is_kept(prepared.request, prepared)


def within(request: OptionRequest, **changes: object) -> OptionRequest:
    """The question of an order that names other walls: all of it as a front that lies would make it fit."""
    order = Order.from_text(request.context["order"])
    bounds: Bounds = replace(order.bounds, **changes)  # type: ignore[arg-type]
    order = replace(order, walls=bounds.to_text())
    context = json.loads(json.dumps(request.context))
    context |= {"order": order.to_text(), "walls_digest": walls_digest([bounds])}
    context["keeps"]["walls"] = bounds.to_text()
    context["prompt"]["marks"] = [asdict(each) for each in reach_marks(bounds)]
    return replace(request, id=order.id, context=context)


@pytest.mark.parametrize("what", WIDER)
def test_walls_wider_than_those_that_are_shown_are_not_approved(fleet: Fleet, what: str) -> None:
    asked = question(fleet.manager(GUARDED))
    changes = WIDER[what]
    if what == "limits":
        limits = Order.from_text(asked.context["order"]).bounds.limits
        changes = {"limits": tuple((name, value * 2) for name, value in limits)}
    with person(fleet) as world:
        assert showing.difference(world._store, within(asked)) == "", "the control: made in the same way, and true"
        assert showing.difference(world._store, within(asked, **changes)) != ""


@pytest.mark.parametrize("looks", [True, False])
def test_a_yes_without_a_network_covers_no_run_with_one(fleet: Fleet, looks: bool) -> None:
    """The control: to who does not look, it does."""
    strict = fleet.manager(GUARDED, session_id="one")
    asked = within(question(strict), network=True)
    flow: Any = strict.flow
    flow.requests.open(question_from(asked, 60, asked.single_use, is_held=False))
    assert any("It cannot use the network" in each for each in asked.context["prompt"]["walls"])
    with person(fleet) as world:
        if looks:
            with pytest.raises(RequestClosedError, match="more than it shows"):
                world.answer(asked.id, "yes_in_session", "test")
        else:
            Requests(world._store).answer(asked.id, "yes_in_session", "test")
    wide = replace(GUARDED, allow_network=True)
    run: Any = fleet.manager(wide, session_id="one").prepare_skill_script("demo", "say", argv=["more"])
    assert run.decision is (Decision.ASK if looks else Decision.ALLOW)


def test_what_a_person_gave_for_good_may_be_named(fleet: Fleet, tmp_path: Path) -> None:
    manager = fleet.manager(
        replace(GUARDED, working_directory="auto"),
        login=fleet.person,
        sending={"volumes": {"data": tmp_path}},
        workspace=tmp_path,
    )
    manager.grant("demo", hosts=["api.example.com"], secrets=["KEY"], variables=["REGION"])
    asked = question(manager)
    named = Order.from_text(asked.context["order"]).bounds
    assert (named.hosts, named.secrets, named.variables) == (("api.example.com",), ("KEY",), ("REGION",))
    with person(fleet) as world:
        assert showing.difference(world._store, asked) == ""
        manager.revoke("demo")
        assert showing.difference(world._store, asked) != "", "taken back meanwhile, it would not run either"
