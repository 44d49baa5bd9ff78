"""Two workers on machines of their own: what is approved on the page runs on either, and a changed skill asks again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.brokers import redis
from support.databases import Database, running_server
from support.fleets import WorkerProcess, tier_here
from support.machines import Machine, can_make_machines, machine
from support.page_visits import answer_over_http
from support.running import wait_for
from support.skill_folders import skill_folder

from skillkit import GUARDED, ScriptRefusedError, SkillManager
from skillkit.core.record import AuditLog
from skillkit.core.store.opening import open_store
from skillkit.fleet import CeleryRunner

pytest.importorskip("celery")
pytestmark = pytest.mark.slow
KINDS = [
    "folders",
    pytest.param("namespaces", marks=pytest.mark.skipif(not can_make_machines(), reason="needs root and iproute2")),
]
REACH = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 3)"


class Places:
    """A database and a broker here, and two machines from which both are reached."""

    def __init__(self, stack: ExitStack, folder: Path, machines: Sequence[Machine], database: Database) -> None:
        self.stack, self.folder, self.machines, self.database = stack, folder, machines, database
        self.broker = stack.enter_context(redis(["127.0.0.1", *(each.gateway for each in machines)]))
        self.world = database.new_world()
        self.logins = {role: database.new_login(self.world, role) for role in ("front", "worker", "approver")}
        self.skill = skill_folder(folder / "skills", "demo", files={"scripts/say.sh": "echo one\n"})

    @property
    def broker_port(self) -> int:
        return int(self.broker.url.rpartition(":")[2].partition("/")[0])

    def address(self, role: str, number: int | None = None) -> str:
        """As it is called from that machine."""
        login = self.logins[role]
        if number is None or not self.machines:
            return self.database.address(self.world, login=login)
        gateway = self.machines[number].gateway
        return f"postgresql://{login}@{gateway}/postgres?world={self.world}"

    def before(self, number: int) -> tuple[str, ...]:
        return self.machines[number].before if self.machines else ()

    def start_worker(self, number: int) -> WorkerProcess:
        host = self.machines[number].gateway if self.machines else "127.0.0.1"
        folder = self.folder / f"machine-{number}"
        folder.mkdir()
        words = [*self.before(number), sys.executable, "-m", "skillkit", "worker", "--label", f"m{number}"]
        words += ["--broker", f"redis://{host}:{self.broker_port}/0", "--state", self.address("worker", number)]
        words += ["--state-dir", str(folder / "state"), "--queues", f"{self.world}.bash.{tier_here()}.m{number}"]
        environment = {**os.environ, "HOME": str(folder), "TMPDIR": str(folder)}
        worker = WorkerProcess(words, folder / "log", environment)
        self.stack.callback(worker.end)
        assert wait_for(lambda: b"ready." in worker.log.read_bytes() or worker.process.poll() is not None, 60)
        assert worker.process.poll() is None, worker.log.read_text()
        return worker

    def page(self) -> str:
        words = [sys.executable, "-m", "skillkit", "web", "--json", "--no-open", "--port", "0"]
        environment = {**os.environ, "SKILLKIT_STATE": self.address("approver")}
        environment["SKILLKIT_STATE_DIR"] = str(self.folder / "page")
        page = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment)
        self.stack.callback(page.communicate)
        self.stack.callback(page.terminate)
        assert page.stdout is not None
        return str(json.loads(page.stdout.readline())["link"])

    def front(self, number: int) -> tuple[SkillManager, CeleryRunner]:
        """Whose runs go to that machine alone; one session."""
        runner = CeleryRunner(self.broker.url, label=f"m{number}")
        options: dict[str, Any] = {"policy": GUARDED, "session_id": "one", "runner": runner}
        manager = SkillManager(
            self.folder / "skills",
            "",
            [],
            [],
            state=self.address("front"),
            state_dir=self.folder / f"front-{number}",
            **options,
        )
        self.stack.callback(manager.close)
        return manager, runner


@pytest.fixture(params=KINDS)
def places(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Places]:
    with ExitStack() as stack:
        if request.param == "folders":
            yield Places(stack, tmp_path, (), request.getfixturevalue("databases"))
            return
        machines = [stack.enter_context(machine()) for _ in range(2)]
        database = stack.enter_context(running_server([each.gateway for each in machines]))
        yield Places(stack, tmp_path, machines, database)


@contextmanager
def both(places: Places) -> Iterator[list[WorkerProcess]]:
    workers = [places.start_worker(number) for number in range(2)]
    yield workers
    for each in workers:
        assert each.terminate() == 0


def require_apart(places: Places, workers: list[WorkerProcess]) -> None:
    """Each sees a network of its own: the broker by its cable, and not by the loopback of this machine."""
    namespaces = {os.readlink(f"/proc/{pid}/ns/net") for pid in (os.getpid(), *(w.process.pid for w in workers))}
    assert len(namespaces) == 3
    for number, each in enumerate(places.machines):
        for host, is_reached in (
            (each.gateway, True),
            ("127.0.0.1", False),
            (places.machines[1 - number].gateway, False),
        ):
            words = [*each.before, sys.executable, "-c", REACH, host, str(places.broker_port)]
            assert (subprocess.run(words, check=False, capture_output=True).returncode == 0) is is_reached


def test_what_is_approved_on_the_page_runs_on_the_other_machine_and_a_change_asks_again(places: Places) -> None:
    with both(places) as workers:
        if places.machines:
            require_apart(places, workers)
        link = places.page()
        (one, first), (other, second) = places.front(0), places.front(1)

        asked = first.order(one, "demo", "say.sh")
        assert asked.state == "waiting"
        assert "echo one" in answer_over_http(link, "yes_in_session")
        assert asked.result(60).stdout == "one\n"

        ran = second.order(other, "demo", "say.sh")
        assert ran.result(60).stdout == "one\n", "approved once, run elsewhere without another question"
        places_of = {each[0]: each[1] for each in rows(places, "select id::text, worker from runs")}
        assert len({places_of[asked.id], places_of[ran.id]}) == 2
        pids = {int(name.split("-")[-2]) for name in places_of.values()}
        assert len(pids) == 2

        (places.skill / "scripts/say.sh").write_text("echo two\n")
        other.discover()
        changed = second.order(other, "demo", "say.sh")
        assert changed.state == "waiting", "what was approved is the content, there too"
        shown = answer_over_http(link_again(places), "no")
        assert "echo two" in shown
        with pytest.raises(ScriptRefusedError):
            changed.result(60)
    store = open_store(places.folder / "verifier", places.address("approver"))
    log = AuditLog(store)
    assert log.verify().ok
    kinds = [record.kind for record in log.records()]
    store.close()
    assert (kinds.count("started"), kinds.count("finished"), kinds.count("refused")) == (2, 2, 1)


def link_again(places: Places) -> str:
    """A link is for one use: the same command gives another to the page that is there."""
    words = [sys.executable, "-m", "skillkit", "web", "--json", "--no-open"]
    environment = {**os.environ, "SKILLKIT_STATE": places.address("approver")}
    environment["SKILLKIT_STATE_DIR"] = str(places.folder / "page")
    said = subprocess.run(words, env=environment, capture_output=True, text=True, check=True, timeout=60).stdout
    return str(json.loads(said.splitlines()[0])["link"])


def rows(places: Places, sql: str) -> list[Any]:
    with places.database.connect(places.world) as connection:
        return list(connection.execute(sql).fetchall())
