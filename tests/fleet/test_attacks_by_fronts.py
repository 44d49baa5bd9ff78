"""A front that writes what it likes: into questions while they are answered, into orders, and into messages."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import asdict, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from support.databases import Database
from support.fleets import Fleet, fleet_at
from support.running import wait_for

from skillkit import GUARDED, STANDARD, OptionRequest, RequestClosedError, ScriptRefusedError, SkillManager, World
from skillkit.core.ask.approvals import with_what_is_kept
from skillkit.core.paths.trees import size_of_tree
from skillkit.core.store.requests import Requests, question_from
from skillkit.fleet import FleetRun, orders, packing, sending, showing
from skillkit.fleet.orders import Input, Order

pytestmark = pytest.mark.slow
EVIL = "e" * 64


@pytest.fixture
def fleet(databases: Database, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with fleet_at(databases, "memory://", tmp_path_factory.mktemp("fleet")) as made:
        yield made


def order(manager: SkillManager, *argv: str, script: str = "say") -> FleetRun:
    runner: Any = manager.runner
    run: FleetRun = runner.order(manager, "demo", script, argv=argv)
    return run


def person(fleet: Fleet) -> World:
    return World(fleet.folder / "person", state=fleet.address(fleet.approver))


def order_of(fleet: Fleet, run: FleetRun) -> Order:
    return Order.from_text(fleet.rows("select content from runs where id = %s", uuid.UUID(run.id))[0][0])


def send(fleet: Fleet, text: str, *, needs_answer: bool = False) -> str:
    """Any text that has a session, as an order: what a front's login can do without our program."""
    run = uuid.uuid4()
    name = f"run-{sha256(text.encode()).hexdigest()}"
    with fleet.database.connect(fleet.world, login=fleet.front) as connection:
        connection.execute(
            "select order_run(%s, %s, %s, 'd', 'q', '{}', 60, 60, %s, false)", (run, name, text, needs_answer)
        )
    return str(run)


# A question that is another one by the time it is answered.


def ask(manager: SkillManager) -> OptionRequest:
    prepared = manager.prepare_skill_script("demo", "say", argv=["true"])
    assert prepared.request is not None
    asked = with_what_is_kept(prepared.request, prepared)
    flow: Any = manager.flow
    flow.requests.open(question_from(asked, 300, asked.single_use, is_held=False))
    return asked


def exchange(fleet: Fleet, asked: OptionRequest) -> None:
    """By the front's login: the same id, the same moment, and a yes for the session that is kept for something else."""
    context = json.loads(json.dumps(asked.context))
    for told in (context["prompt"], context["keeps"]):
        told |= {"skill": "evil", "digest": EVIL}
    with fleet.database.connect(fleet.world, login=fleet.front) as front:
        front.execute("update requests set state = 'withdrawn' where id = %s and state = 'pending'", (asked.id,))
        front.execute(
            "insert into requests (id, content, context, single_use, is_held, created_at, expires_at, boot, deadline) "
            "select id, content, %s, single_use, is_held, created_at, expires_at, boot, deadline from requests "
            "where id = %s",
            (json.dumps(context), asked.id),
        )


def test_a_question_that_is_exchanged_while_it_is_answered_gives_nothing(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, looked = ask(fleet.manager(GUARDED)), showing.require_true

    def look_and_exchange(store: Any, request: OptionRequest) -> None:
        looked(store, request)
        exchange(fleet, asked)

    monkeypatch.setattr(showing, "require_true", look_and_exchange)
    with person(fleet) as world:
        (found,) = world.pending()
        with pytest.raises(RequestClosedError, match="asked anew"):
            world.answer(asked.id, "yes_in_session", "test", created_at=found.created_at)
    assert fleet.rows("select * from approvals") == []


def test_control_who_answers_what_is_there_approves_what_nobody_saw(fleet: Fleet) -> None:
    asked = ask(fleet.manager(GUARDED))
    with person(fleet) as world:
        (found,) = world.pending()
        showing.require_true(world._store, found)
        exchange(fleet, asked)
        Requests(world._store).answer(asked.id, "yes_in_session", "test", found.created_at)
    assert fleet.rows("select skill, digest from approvals") == [("evil", EVIL)]


def test_control_what_stays_the_same_is_answered(fleet: Fleet) -> None:
    asked = ask(fleet.manager(GUARDED))
    with person(fleet) as world:
        assert world.answer(asked.id, "yes_in_session", "test").option_id == "yes_in_session"
    assert fleet.rows("select skill from approvals") == [("demo",)]


def test_the_no_to_a_question_of_another_login_is_none_to_the_run(fleet: Fleet) -> None:
    """Ids can be read by all who may ask, and used; what a person says to that is said to who asked it."""
    run = order(fleet.manager(GUARDED), "mine")
    name = order_of(fleet, run).id
    with person(fleet) as world:
        world.answer(name, "yes_once", "test")
        other = fleet.database.new_login(fleet.world, "front")
        with fleet.database.connect(fleet.world, login=other) as stranger:
            stranger.execute(
                "insert into requests (id, content, context, single_use, is_held, created_at, expires_at, boot, deadline)"
                " select id, %s, '{}', single_use, 0, created_at, expires_at, boot, deadline from requests where id = %s",
                (json.dumps({"id": name, "title": "t", "message": "", "options": [], "session_id": None}), name),
            )
        assert world.answer(name, "no", "test").option_id == "no"
    assert fleet.rows("select option_id from requests order by seq") == [("yes_once",), ("no",)]
    assert fleet.worker_here(GUARDED).run(run.id) == "finished"


# Orders that stop who looks after all others.

POISON: dict[str, str] = {
    "a number": '{"session_id": "s", "skill": 1.5}',
    "a long number": f'{{"session_id": "s", "skill": {"9" * 5_000}}}',
    "deep": f'{{"session_id": "s", "skill": {"[" * 5_000}{"]" * 5_000}}}',
    "a mapping": '{"session_id": "s", "script": {"a": 1.5}, "digest": null}',
    "half a character": '{"session_id": "s", "skill": "\\ud800"}',
    "NUL": '{"session_id": "s", "skill": "\\u0000"}',
}


@pytest.mark.parametrize("what", POISON)
def test_an_order_that_cannot_be_read_keeps_no_other_from_its_end(fleet: Fleet, what: str) -> None:
    """Each is over at once, for no question was asked; a worker records the ends of those whose callers are gone."""
    worker = fleet.worker_here()
    poisoned = send(fleet, POISON[what], needs_answer=True)
    plain = send(fleet, '{"session_id": "s", "skill": "demo"}', needs_answer=True)
    ended = "select count(*) from runs where finished_seq is not null"

    def all_recorded() -> bool:
        worker.reaper.reap()
        return bool(fleet.rows(ended) == [(2,)])

    assert wait_for(all_recorded, 20)
    told = fleet.rows("select readable(fields) ->> 'run' from audit where kind = 'refused'")
    assert sorted(told) == sorted([(poisoned,), (plain,)])


# Orders that nobody approved, and the disk of who looks at them.


@pytest.mark.parametrize("name", [".hidden-{0}", "plain-{0}"])
def test_one_content_under_many_names_is_not_unpacked_without_end(fleet: Fleet, name: str) -> None:
    """The control are names without a dot, of which a few were kept before too."""
    worker, manager = fleet.worker_here(GUARDED), fleet.manager(GUARDED)
    (fleet.skills / "demo/data").write_bytes(bytes(1_000_000))
    first = order_of(fleet, order(manager, "names"))
    for number in range(12):
        text = replace(first, folder=name.format(number)).to_text()
        assert worker.run(send(fleet, text)) == "refused"
    assert len(packing.kept_in(worker.folder / "fleet/skills" / first.digest)) <= packing.KEPT_NAMES
    assert size_of_tree(worker.folder / "fleet").bytes < 10_000_000


def test_no_folder_is_named_as_what_is_being_unpacked(fleet: Fleet) -> None:
    worker, run = fleet.worker_here(GUARDED), order(fleet.manager(GUARDED), "drafts")
    text = replace(order_of(fleet, run), folder=f"{packing.DRAFT}0").to_text()
    assert worker.run(send(fleet, text)) == "refused"
    assert not list((worker.folder / "fleet/skills").glob("*/*"))


@pytest.mark.parametrize("what", ["many", "much", "more than it says", "no number", "as it says"])
def test_inputs_are_no_more_than_an_order_may_have(fleet: Fleet, what: str) -> None:
    """One blob in the database is as many files on a worker's disk as an order names, before anybody is asked."""
    worker, manager = fleet.worker_here(), fleet.manager()
    content = bytes(1_000_000)
    digest, run = sha256(content).hexdigest(), order(manager, "inputs")
    with fleet.database.connect(fleet.world, login=fleet.front) as front:
        front.execute("insert into blobs (digest, size, content) values (%s, %s, %s)", (digest, len(content), content))
    sizes: dict[str, list[Any]] = {
        "many": [0] * (orders.MOST_INPUTS + 1),
        "much": [len(content)] * (orders.INPUTS_BYTES // len(content) + 1),
        "more than it says": [1],
        "no number": [1e6],
        "as it says": [len(content)] * 3,
    }
    named = [asdict(Input(f"/in/{number}", digest, size)) for number, size in enumerate(sizes[what])]
    text = json.dumps(
        {**json.loads(order_of(fleet, run).to_text()), "inputs": named}, sort_keys=True, separators=(",", ":")
    )
    assert worker.run(send(fleet, text)) == ("finished" if what == "as it says" else "refused")


def test_a_caller_hears_which_files_are_too_much(fleet: Fleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending, "INPUTS_BYTES", 5)
    (tmp_path / "file").write_text("123456")
    manager = fleet.manager(STANDARD, sending={"workspace": "inputs"})
    with pytest.raises(ScriptRefusedError, match="can be sent along"):
        order(manager, str(tmp_path / "file"), script="cat")


# Messages.


@pytest.mark.parametrize("form", ["{0}", "urn:uuid:{0}", "{{{0}}}"])
def test_however_a_message_writes_an_id_the_run_is_held(fleet: Fleet, form: str) -> None:
    """Else it is taken for lost when its lease is renewed, and killed."""
    worker, run = fleet.worker_here(), order(fleet.manager(), "7", script="nap")
    worker.start()
    assert worker.run(form.format(run.id)) == "finished"
    assert run.result().stdout == "slept\n"
