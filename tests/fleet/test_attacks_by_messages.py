"""A broker that lies: forged, doubled, replayed, altered and late messages; and what it gets to see."""

from __future__ import annotations

import base64
import json
import threading
import time
import uuid
from typing import Any

import pytest
from support.brokers import redis
from support.databases import Database
from support.fleets import Fleet, fleet_at
from support.running import wait_for

from skillkit import GUARDED, SkillManager, World
from skillkit.fleet import FleetRun
from skillkit.fleet.broker import TASK, app_for

pytestmark = pytest.mark.slow


def order(manager: SkillManager, *argv: str) -> FleetRun:
    runner: Any = manager.runner
    run: FleetRun = runner.order(manager, "demo", "say", argv=argv)
    return run


def test_a_forged_id_runs_nothing(quiet: Fleet) -> None:
    worker = quiet.worker_here()
    for forged in (str(uuid.uuid4()), "", "x", "../../etc", "0" * 36, "'; drop table runs; --"):
        assert worker.run(forged) == "unclaimed"
    assert quiet.kinds() == {}
    assert worker.run(order(quiet.manager()).id) == "finished", "a true one is run"


def test_a_message_that_comes_many_times_is_one_start(quiet: Fleet) -> None:
    workers = [quiet.worker_here(), quiet.worker_here()]
    run = order(quiet.manager())
    said: list[str] = []
    threads = [threading.Thread(target=lambda w=w: said.append(w.run(run.id))) for w in workers * 5]
    for each in threads:
        each.start()
    for each in threads:
        each.join(60)
    assert sorted(said) == ["finished", *["unclaimed"] * 9]
    assert workers[0].run(run.id) == "unclaimed", "nor when it is replayed later"
    assert quiet.kinds() == {"started": 1, "finished": 1}
    quiet.verify()


def test_a_message_for_a_run_that_waits_for_a_person_runs_nothing(quiet: Fleet) -> None:
    worker = quiet.worker_here(GUARDED)
    run = order(quiet.manager(GUARDED))
    assert run.state == "waiting"
    assert worker.run(run.id) == "unclaimed"
    with World(quiet.folder / "person", state=quiet.address(quiet.approver)) as person:
        person.answer(person.pending()[0].id, "yes_once", "test")
    assert worker.run(run.id) == "finished", "after the answer it does"


def test_a_late_message_runs_nothing(quiet: Fleet) -> None:
    worker = quiet.worker_here()
    expired, cancelled = order(quiet.manager(sending={"patience": 0.5})), order(quiet.manager())
    time.sleep(0.6)
    cancelled.cancel()
    assert [worker.run(each.id) for each in (expired, cancelled)] == ["unclaimed"] * 2
    assert quiet.kinds() == {}


@pytest.fixture
def running(databases: Database, tmp_path_factory: pytest.TempPathFactory) -> Any:
    with redis() as broker, fleet_at(databases, broker.url, tmp_path_factory.mktemp("fleet")) as fleet:
        yield fleet


def test_altered_messages_are_ignored_and_the_worker_goes_on(running: Fleet) -> None:
    worker = running.start_worker()
    app, queue = app_for(running.broker), running.queue("python3")
    for args, kwargs in (
        ([], {}),
        ([{"skill": "demo", "script": "say"}], {}),
        (["x" * 100_000], {}),
        ([None], {"policy": "trusted"}),
        ([str(uuid.uuid4()), "say"], {"argv": ["evil"]}),
    ):
        app.send_task(TASK, args=args, kwargs=kwargs, queue=queue)
    app.send_task("os.system", args=["touch /tmp/evil"], queue=queue)
    app.send_task(TASK, args=["x"], queue=queue, serializer="json", headers={"task": "builtins.eval"})
    with app.connection_for_write() as connection:
        channel = connection.default_channel
        for body in ("not json", '[["x"], {}, {"callbacks": [1]}]', "\0"):
            content: dict[str, Any] = {
                "body": base64.b64encode(body.encode()).decode(),
                "content-type": "application/x-python-serialize",
            }
            content |= {"content-encoding": "binary", "headers": {"task": TASK, "id": "1"}}
            content |= {
                "properties": {"delivery_tag": str(uuid.uuid4()), "delivery_info": {}, "body_encoding": "base64"}
            }
            channel.client.lpush(queue, json.dumps(content))
    result = running.manager().execute_skill_script("demo", "say", argv=["still"])
    assert json.loads(result.stdout)["argv"] == ["still"]
    assert worker.process.poll() is None
    assert running.kinds() == {"started": 1, "finished": 1}


def test_the_broker_sees_ids_and_nothing_else(running: Fleet) -> None:
    """No worker runs, so that the message stays there to be read."""
    run = order(running.manager(), "WORD-OF-THE-CALL")
    with app_for(running.broker).connection_for_read() as connection:
        client = connection.default_channel.client
        (message,) = client.lrange(running.queue("python3"), 0, -1)
        everything = b"".join(key + repr(client.dump(key)).encode() for key in client.keys("*"))
    told = json.loads(message)
    assert json.loads(base64.b64decode(told["body"]))[:2] == [[run.id], {}]
    assert told["content-type"] == "application/json"
    for secret in (b"WORD-OF-THE-CALL", b"demo", b"say.py", b"postgresql"):
        assert secret not in everything + message
    assert wait_for(lambda: run.state == "queued", 5)
