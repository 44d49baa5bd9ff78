"""Commands that a skill's text asks for, on workers: each is asked about by itself, and a yes is for what was shown."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from support.databases import Database
from support.fleets import Fleet, fleet_at
from support.running import wait_for
from support.skill_folders import skill_folder

from skillkit import GUARDED, ConfigurationError, OptionRequest, SkillManager, World
from skillkit.approvers.store import StoreApprover
from skillkit.core.ask.approvals import with_what_is_kept
from skillkit.core.ask.questions import joint_request
from skillkit.core.store.requests import question_from
from skillkit.core.values.questions import Prompt
from skillkit.core.values.runs import Decision, ScriptExecutionResult, digest_of_commands
from skillkit.fleet import showing, shown
from skillkit.integrations.batch import Outcome, execute_batch
from skillkit.testing import ScriptedApprover

pytestmark = pytest.mark.slow
WORDS = ("one", "two")


@pytest.fixture
def fleet(databases: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with fleet_at(databases, "memory://", tmp_path_factory.mktemp("fleet")) as made:
        skill_folder(made.skills, "lister", files={"scripts/say.sh": 'echo "said $1"\n'})
        yield made


def person(fleet: Fleet) -> World:
    return World(fleet.folder / "person", state=fleet.address(fleet.approver))


def together(manager: SkillManager, *words: str, **options: Any) -> list[Outcome | None]:
    listed = digest_of_commands(("scripts/say.sh", word) for word in words)
    calls = [
        manager.call_for("scripts/say.sh", argv=[word], from_instructions=listed, agent_facing=True) for word in words
    ]
    return execute_batch(manager.flow, manager.load_skill("lister"), calls, **options)


def answering(fleet: Fleet, number: int, option: str, seen: list[OptionRequest]) -> None:
    """As somebody else, one question after the other; and a worker that takes what is queued."""
    worker = fleet.worker_here(GUARDED)
    with person(fleet) as world:
        for _ in range(number):
            assert wait_for(lambda: world.pending(is_patient=True), 60)
            (asked,) = world.pending(is_patient=True)
            seen.append(asked)
            world.answer(asked.id, option, "test")
            assert wait_for(lambda: fleet.rows("select 1 from runs where state = 'queued'"), 60)
            (run,) = fleet.rows("select id::text from runs where state = 'queued'")[0]
            worker.run(run)


def said(outcomes: list[Outcome | None]) -> list[str]:
    return [each.stdout.strip() if isinstance(each, ScriptExecutionResult) else repr(each) for each in outcomes]


@pytest.mark.parametrize("option", ["yes_once", "yes_in_session"])
def test_each_command_of_a_list_is_asked_about_by_itself_and_runs(fleet: Fleet, option: str) -> None:
    """Of a login that may not approve: a question about all of them would be an answer to none of their orders."""
    manager = fleet.manager(GUARDED)
    manager.approver = StoreApprover(World(manager.state_dir, state=manager.state), expires_in=90)
    seen: list[OptionRequest] = []
    other = threading.Thread(target=answering, args=(fleet, len(WORDS), option, seen))
    other.start()
    outcomes = together(manager, *WORDS)
    other.join()
    assert said(outcomes) == ["said one", "said two"]
    shown_words = [each.context["prompt"]["commands"][0]["argv"] for each in seen]
    assert shown_words == [["one"], ["two"]], "and the yes to the first, for the session too, was none to the second"
    assert all(len(each.context["prompt"]["commands"]) == 1 for each in seen)


def test_a_yes_for_the_session_to_a_list_of_one_is_a_word_about_the_list(fleet: Fleet) -> None:
    manager = fleet.manager(GUARDED)
    manager.approver = StoreApprover(World(manager.state_dir, state=manager.state), expires_in=90)
    other = threading.Thread(target=answering, args=(fleet, 1, "yes_in_session", []))
    other.start()
    assert said(together(manager, "one")) == ["said one"]
    other.join()
    listed = digest_of_commands([("scripts/say.sh", "one")])
    assert fleet.rows("select commands from on_load") == [(listed,)]
    assert manager.prepare_skill_script("lister", "say", argv=["one"]).decision is Decision.ALLOW


def test_where_nobody_is_to_be_asked_nothing_is_asked(fleet: Fleet) -> None:
    assert together(fleet.manager(GUARDED), *WORDS, may_ask=False) == [None, None]
    assert fleet.rows("select id from requests") == []


def joint_question(manager: SkillManager) -> OptionRequest:
    """One about two runs, as it is asked where runs happen here."""
    runs = [manager.prepare_skill_script("lister", "say", argv=[word]) for word in WORDS]
    prompts = [Prompt.from_context(run.request.context) for run in runs if run.request]
    assert prompts[0] is not None
    assert prompts[1] is not None
    return joint_request(runs, replace(prompts[0], commands=(*prompts[0].commands, *prompts[1].commands)))


@pytest.mark.parametrize("role", ["front", "worker"])
def test_a_question_about_several_runs_of_who_only_orders_shows_nothing_and_gives_nothing(
    fleet: Fleet, role: str
) -> None:
    """The control: one that runs scripts on its own machine asks about several at once, and is believed."""
    login = fleet.database.new_login(fleet.world, *{"front", role})
    manager = fleet.manager(GUARDED, login=login)
    asked = joint_question(manager)
    flow: Any = manager.flow
    flow.requests.open(question_from(asked, 60, asked.single_use, is_held=False))
    with person(fleet) as world:
        (found,) = world.pending()
        if role == "worker":
            assert len(found.context["prompt"]["commands"]) == 2
            assert world.answer(asked.id, "yes_once", "test").option_id == "yes_once"
            return
        assert (found.title, found.context) == (shown.FALSE_TITLE, {})
        assert [option.id for option in found.options] == ["no"]
        assert world.find(asked.id) == found
        for option in ("yes_once", "yes_in_session"):
            with pytest.raises(ConfigurationError, match="about no order"):
                world.answer(asked.id, option, "test")
        assert world.answer(asked.id, "no", "test").option_id == "no"


def test_a_login_that_is_gone_hides_no_question(fleet: Fleet) -> None:
    login = fleet.database.new_login(fleet.world, "front")
    manager = fleet.manager(GUARDED, login=login)
    asked = joint_question(manager)
    flow: Any = manager.flow
    flow.requests.open(question_from(asked, 60, asked.single_use, is_held=False))
    manager.close()
    with fleet.database.connect(fleet.world) as owner:
        owner.execute(f'alter role "{login}" rename to "{login}-gone"')
    try:
        with person(fleet) as world:
            assert [each.title for each in world.pending()] == [shown.FALSE_TITLE]
    finally:
        with fleet.database.connect(fleet.world) as owner:
            owner.execute(f'alter role "{login}-gone" rename to "{login}"')


def test_one_command_keeps_no_word_about_a_list(fleet: Fleet) -> None:
    """What a front writes into the question: that a yes to one command is one to a list with others."""
    manager = fleet.manager(GUARDED)
    call = manager.call_for("say", argv=["one"], from_instructions="0" * 64)
    prepared = manager.flow.prepare(manager.load_skill("lister"), call)
    assert prepared.request is not None
    true = with_what_is_kept(prepared.request, prepared)
    assert true.context["keeps"]["on_load"] == ""
    context = json.loads(json.dumps(true.context))
    context["keeps"]["on_load"] = "0" * 64
    with person(fleet) as world:
        assert showing.difference(world._store, true) == "", "the control"
        assert "keeps" in showing.difference(world._store, replace(true, context=context))


def test_a_person_at_the_terminal_of_the_front_is_asked_one_by_one_too(fleet: Fleet) -> None:
    manager = fleet.manager(GUARDED, login=fleet.person)
    approver = ScriptedApprover("no", "no")
    together(manager, *WORDS, approver=approver)
    assert [len(each.context["prompt"]["commands"]) for each in approver.requests] == [1, 1]
