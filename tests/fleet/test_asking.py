"""A person's word for a run elsewhere: asked here, answered anywhere, used there once; waiting holds nothing."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from support.brokers import Broker
from support.databases import Database
from support.fleets import Fleet, fleet_at
from support.running import wait_for

from skillkit import GUARDED, ApprovalDeclinedError, ApprovalUnavailableError, ScriptRefusedError, SkillManager, World
from skillkit.approvers.store import StoreApprover
from skillkit.testing import ScriptedApprover

pytestmark = pytest.mark.slow


def person(fleet: Fleet) -> World:
    return World(fleet.folder / "person", state=fleet.address(fleet.approver))


def answer(fleet: Fleet, manager: SkillManager, option: str, **more: Any) -> None:
    """As somebody else, on another machine: what this manager asks, whatever others left unanswered."""
    with person(fleet) as world:

        def asked() -> list[str]:
            return [each.id for each in world.pending() if each.session_id == manager.session_id]

        assert wait_for(asked, 60)
        world.answer(asked()[0], option, "test", **more)


def asking(fleet: Fleet, **options: Any) -> SkillManager:
    manager = fleet.manager(GUARDED, **options)
    if "approver" not in options:
        manager.approver = StoreApprover(World(manager.state_dir, state=manager.state))
    return manager


@pytest.fixture(scope="module")
def fleet(databases: Database, broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """With a worker whose own policy is what agents get: walls, and a person asked."""
    with fleet_at(databases, broker.url, tmp_path_factory.mktemp("fleet")) as made:
        made.start_worker("--policy", "guarded")
        yield made


def test_a_yes_given_elsewhere_runs_it_once(fleet: Fleet) -> None:
    manager = asking(fleet)
    other = threading.Thread(target=answer, args=(fleet, manager, "yes_once"))
    other.start()
    result = manager.execute_skill_script("demo", "say", argv=["asked"])
    other.join()
    assert json.loads(result.stdout)["argv"] == ["asked"]
    (told,) = fleet.rows("select fields from audit where kind = 'started' order by seq desc limit 1")[0]
    assert json.loads(told)["answer"] == "yes_once"
    assert json.loads(told)["channel"] == "test"


def test_a_yes_for_the_session_holds_there_for_the_next_run(fleet: Fleet) -> None:
    manager = asking(fleet)
    other = threading.Thread(target=answer, args=(fleet, manager, "yes_in_session"))
    other.start()
    assert manager.execute_skill_script("demo", "say", argv=["one"]).success
    other.join()
    assert manager.execute_skill_script("demo", "say", argv=["two"]).success, "without a question"


def test_a_changed_skill_asks_again_there(fleet: Fleet) -> None:
    manager = asking(fleet, session_id="changing")
    other = threading.Thread(target=answer, args=(fleet, manager, "yes_in_session"))
    other.start()
    assert manager.execute_skill_script("demo", "fail").exit_code == 3
    other.join()
    unattended = asking(fleet, session_id="changing", approver=None)
    assert unattended.execute_skill_script("demo", "fail").exit_code == 3, "covered by the yes for the session"
    script = fleet.skills / "demo/scripts/fail.sh"
    before = script.read_text()
    script.write_text("exit 4\n")
    try:
        with pytest.raises(ApprovalUnavailableError):
            unattended.execute_skill_script("demo", "fail")
    finally:
        script.write_text(before)


def test_a_no_is_a_no(fleet: Fleet) -> None:
    manager = asking(fleet)
    other = threading.Thread(target=answer, args=(fleet, manager, "no"), kwargs={"reason": "not today"})
    other.start()
    with pytest.raises(ApprovalDeclinedError, match="not today"):
        manager.execute_skill_script("demo", "say", argv=["declined"])
    other.join()


def test_waiting_for_a_person_is_a_row_and_nothing_else(fleet: Fleet) -> None:
    manager = asking(fleet, approver=None)
    runner: Any = manager.runner
    run = runner.order(manager, "demo", "say", argv=["later"])
    assert run.state == "waiting"
    manager.close()  # whoever asked may be gone
    answer(fleet, manager, "yes_once")
    assert json.loads(runner.find(run.id).result().stdout)["argv"] == ["later"]


def test_who_ordered_and_was_declined_hears_it(fleet: Fleet) -> None:
    manager = asking(fleet, approver=None)
    runner: Any = manager.runner
    run = runner.order(manager, "demo", "say", argv=["never"])
    answer(fleet, manager, "no", reason="no need")
    with pytest.raises(ApprovalDeclinedError, match="no need"):
        run.result()
    fleet.settle()
    fleet.verify()


def test_an_answer_at_this_terminal_needs_the_role_to_approve(fleet: Fleet) -> None:
    manager = asking(fleet, approver=ScriptedApprover("yes_once"))
    with pytest.raises(Exception, match="does not let this login do that"):
        manager.execute_skill_script("demo", "say", argv=["self"])
    allowed = asking(fleet, approver=ScriptedApprover("yes_once", "yes_once"), login=fleet.person)
    assert allowed.execute_skill_script("demo", "say", argv=["self"]).success
    assert allowed.execute_skill_script("demo", "say", argv=["self"]).success, "asked and answered anew"
    before = fleet.rows("select count(*) from audit where kind = 'started'")
    lonely = asking(fleet, approver=None)
    with pytest.raises(ApprovalUnavailableError):
        lonely.execute_skill_script("demo", "say", argv=["self"])
    assert fleet.rows("select count(*) from audit where kind = 'started'") == before


def test_an_order_looser_than_the_workers_policy_is_refused_there(fleet: Fleet) -> None:
    for loose in (
        replace(GUARDED, approval="never"),
        replace(GUARDED, allow_network=True),
        replace(GUARDED, sandbox="preferred"),
        replace(GUARDED, pass_environment=("HOME_KEY",)),
    ):
        manager = fleet.manager(loose, login=fleet.person, approver=ScriptedApprover("yes_once"))
        with pytest.raises(ScriptRefusedError, match="looser than the worker's own"):
            manager.execute_skill_script("demo", "say")
    strict = fleet.manager(
        replace(GUARDED, approval="always"), login=fleet.person, approver=ScriptedApprover("yes_once")
    )
    assert strict.execute_skill_script("demo", "say").success, "less may be ordered"
