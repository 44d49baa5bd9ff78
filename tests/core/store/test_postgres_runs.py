"""Runs as rows of a shared world: who may order, claim, start and end them, and that each happens once."""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from support.asking import request_named
from support.databases import Database
from support.running import wait_for

from skillkit import World
from skillkit.core.record import AuditLog
from skillkit.core.store.opening import open_store

psycopg = pytest.importorskip("psycopg")
Forbidden = psycopg.errors.InsufficientPrivilege
pytestmark = pytest.mark.slow
WORKER = "worker-1"


def order_text(name: str, session: str = "one") -> str:
    return json.dumps({"name": name, "session_id": session})


def order_id(content: str) -> str:
    return f"run-{sha256(content.encode()).hexdigest()}"


@dataclass
class Fleet:
    database: Database
    world: str
    front: str
    worker: str
    approver: str

    def ask(self, login: str, statement: str, *values: Any) -> Any:
        with self.database.connect(self.world, login=login) as connection:
            row = connection.execute(f"select * from {statement}", values).fetchone()
        return None if row is None else row[0]

    def fields(self, login: str) -> str:
        with self.database.connect(self.world) as connection:
            (world,) = connection.execute("select value from meta where key = 'world'").fetchone()
        return json.dumps({"login": login, "world": world}, sort_keys=True, separators=(",", ":"))

    def order(
        self, *, order: str = "run", waits: bool = False, seconds: float = 60.0, session: str = "one"
    ) -> uuid.UUID:
        run, content = uuid.uuid4(), order_text(order, session)
        values: tuple[object, ...] = (
            run,
            order_id(content),
            content,
            "d1",
            "acme.bash",
            [],
            60.0,
            seconds,
            waits,
            False,
        )
        self.ask(self.front, "order_run(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)", *values)
        return run

    def claim(self, run: uuid.UUID, seconds: float = 30.0, worker: str = WORKER) -> bool:
        return self.ask(self.worker, "claim_run(%s, %s, %s)", run, worker, seconds) is not None

    def start(self, run: uuid.UUID, worker: str = WORKER) -> int | None:
        found: int | None = self.ask(self.worker, "start_run(%s, %s, %s, null)", run, worker, self.fields(self.worker))
        return found

    def finish(self, run: uuid.UUID, state: str = "finished") -> int | None:
        values = (run, WORKER, state, self.fields(self.worker), "{}")
        found: int | None = self.ask(self.worker, "finish_run(%s, %s, %s, %s, %s)", *values)
        return found

    def state(self, run: uuid.UUID) -> str:
        return str(self.ask(self.front, "(select state from runs where id = %s) as found", run))

    def kinds(self) -> list[str]:
        store = open_store(Path(), self.database.address(self.world))
        log = AuditLog(store)
        assert log.verify().ok
        kinds = [record.kind for record in log.records()]
        store.close()
        return kinds


@pytest.fixture
def fleet(database: Database) -> Iterator[Fleet]:
    world = database.new_world()
    yield Fleet(database, world, *(database.new_login(world, role) for role in ("front", "worker", "approver")))
    database.drop_world(world)


def test_a_run_is_claimed_started_and_ended_once_whoever_tries(fleet: Fleet) -> None:
    run = fleet.order()
    with ThreadPoolExecutor(8) as pool:
        names = [f"worker-{number}" for number in range(8)]
        claimed = [*pool.map(lambda name: fleet.claim(run, worker=name), names)]
    (winner,) = [name for name, is_claimed in zip(names, claimed, strict=True) if is_claimed]
    with ThreadPoolExecutor(8) as pool:
        started = [*pool.map(lambda name: fleet.start(run, name), [*names, winner])]
    assert {number for number in started if number is not None} == {1}, "who asks again is told the same"
    assert fleet.kinds() == ["started"]


def test_record_and_row_end_together_and_nothing_ends_twice(fleet: Fleet) -> None:
    run = fleet.order()
    assert fleet.finish(run) is None, "nobody has claimed it"
    assert fleet.claim(run)
    assert fleet.finish(run) is None, "what never started did not finish"
    assert (fleet.start(run), fleet.start(run)) == (1, 1), "asked again after a lost answer, it is the same start"
    assert (fleet.finish(run), fleet.finish(run), fleet.finish(run, "cancelled")) == (2, 2, 2)
    assert (fleet.state(run), fleet.kinds()) == ("finished", ["started", "finished"])
    assert not fleet.claim(run), "a message that is delivered again claims nothing"


def test_a_lease_that_is_over_ends_the_run_or_queues_what_never_ran(fleet: Fleet) -> None:
    up = "(select seconds_now() - extract(epoch from pg_postmaster_start_time()) > 31) as found"
    assert wait_for(lambda: fleet.ask(fleet.worker, up), 60), "leases count on from the server's own start"
    never, begun = fleet.order(), fleet.order()
    assert fleet.claim(never, 0.2)
    assert fleet.claim(begun, 0.5)
    assert fleet.start(begun) == 1
    assert fleet.ask(fleet.worker, "lose_run(%s, %s)", begun, fleet.fields(fleet.worker)) is None, "it is still held"
    time.sleep(0.6)
    assert fleet.ask(fleet.worker, "renew_runs(%s, %s, %s)", [begun], WORKER, 30.0) is None, "too late"
    assert fleet.ask(fleet.worker, "requeue_runs()") == never
    assert fleet.ask(fleet.worker, "lose_run(%s, %s)", begun, fleet.fields(fleet.worker)) == 2
    assert fleet.finish(begun) is None, "who comes back late ends nothing"
    assert (fleet.state(never), fleet.state(begun)) == ("queued", "lost")
    assert fleet.kinds() == ["started", "finished"]


def test_a_waiting_run_is_moved_by_a_persons_answer_and_by_nothing_else(fleet: Fleet) -> None:
    ids = {name: order_id(order_text(name)) for name in ("yes", "no")}
    with World(state=fleet.database.address(fleet.world, login=fleet.front)) as asking:
        for name in ids.values():
            asking.open(replace(request_named(name), session_id="one"))
    yes, no = fleet.order(order="yes", waits=True), fleet.order(order="no", waits=True)
    assert not fleet.claim(yes)
    with World(state=fleet.database.address(fleet.world, login=fleet.approver)) as people:
        # Past the look at what it shows, which has tests of its own.
        people._requests.answer(ids["yes"], "yes_once", "web")
        people.answer(ids["no"], "no", "web")
    assert (fleet.state(yes), fleet.state(no)) == ("queued", "refused")
    assert fleet.claim(yes)


def test_cancelled_and_expired_runs_are_never_claimed(fleet: Fleet) -> None:
    cancelled, late, running = fleet.order(), fleet.order(seconds=-1), fleet.order()
    assert fleet.claim(running)
    assert fleet.ask(fleet.front, "cancel_run(%s)", cancelled) == "cancelled"
    assert fleet.ask(fleet.front, "cancel_run(%s)", running) == "running"
    assert not fleet.claim(cancelled)
    assert not fleet.claim(late)
    assert fleet.ask(fleet.worker, "expire_runs()") == late
    assert fleet.start(running) is None, "it was cancelled before it began"
    with fleet.database.connect(fleet.world, login=fleet.worker) as connection:
        held = connection.execute("select * from renew_runs(%s, %s, 30)", ([running], WORKER)).fetchall()
    assert held == [(running, True)]


def test_the_end_of_a_run_is_told_to_who_waits(fleet: Fleet) -> None:
    run = fleet.order()
    assert fleet.claim(run)
    fleet.start(run)
    with fleet.database.connect(fleet.world, login=fleet.front) as connection:
        connection.execute(f"listen skillkit_{fleet.world}")
        ending = threading.Timer(0.2, fleet.finish, [run])
        ending.start()
        (told,) = connection.notifies(timeout=10, stop_after=1)
        ending.join()
    assert told.payload == str(run)


def test_nobody_does_what_is_anothers_to_do(fleet: Fleet) -> None:
    run = fleet.order()
    other_front = fleet.database.new_login(fleet.world, "front")
    other_worker = fleet.database.new_login(fleet.world, "worker")
    assert fleet.claim(run)
    assert fleet.ask(other_front, "cancel_run(%s)", run) is None
    assert fleet.ask(other_worker, "start_run(%s, %s, %s, null)", run, WORKER, fleet.fields(other_worker)) is None
    theirs, rest = (order_id(order_text("x")), order_text("x")), "'d', 'q', '{}', 60, 60, false, false"
    attempts = [
        (other_front, f"select order_run(gen_random_uuid(), '{theirs[0]}', '{theirs[1]}', {rest})"),
        (fleet.front, f"select claim_run('{run}', 'me', 30)"),
        (fleet.worker, f"select order_run(gen_random_uuid(), '{theirs[0]}', '{theirs[1]}', {rest})"),
        (other_worker, f"insert into output values ('{run}', 1, 'stdout', 'lie')"),
        *[
            (login, statement)
            for login in (fleet.front, fleet.worker, fleet.approver)
            for statement in (
                "update runs set state = 'queued'",
                "delete from runs",
                "update blobs set content = ''",
                "insert into runs (id, order_id, content, digest, session, queue, state, expires_at) "
                "values (gen_random_uuid(), 'x', '{}', 'd', 'one', 'q', 'queued', 1)",
            )
        ],
    ]
    for login, statement in attempts:
        with fleet.database.connect(fleet.world, login=login) as connection, pytest.raises(Forbidden):
            connection.execute(statement)
    with fleet.database.connect(fleet.world, login=fleet.worker) as connection:  # who holds the run may
        connection.execute(f"insert into output values ('{run}', 1, 'stdout', 'true')")
