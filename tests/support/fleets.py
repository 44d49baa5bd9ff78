"""A fleet for tests: a world in a real PostgreSQL, a real broker, workers as processes or in this one; gone at the end."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from skillkit import STANDARD, ScriptPolicy, SkillManager
from skillkit.core.record import AuditLog
from skillkit.core.run.tiers import sandbox_for
from skillkit.core.store.shared.postgres import SharedStore, WorldAddress
from skillkit.fleet import CeleryRunner, Worker
from skillkit.fleet.broker import app_for, queue_name
from support.databases import Database
from support.running import wait_for
from support.skill_folders import skill_folder

__all__ = ["SCRIPTS", "Fleet", "WorkerProcess", "fleet_at", "ordered_again", "tier_here"]

MEMORY = "memory://"
LONG = f"58.{os.getpid():08d}"
"""Seconds that nobody else sleeps, so that who does can be told: what is kept ready for the next run does not."""
SCRIPTS = {
    "scripts/say.py": """
import json, os, sys
print(json.dumps({"argv": sys.argv[1:], "stdin": sys.stdin.read(), "key": os.environ.get("FLEET_KEY", "")}))
""",
    "scripts/make.sh": 'mkdir "$SKILL_WORK_DIR/in"; printf made > "$SKILL_WORK_DIR/in/out.txt"; echo done\n',
    "scripts/count.sh": "for i in 1 2 3 4 5 6 7 8 9; do echo $i; sleep 0.2; done\n",
    "scripts/long.sh": f"echo began; sleep {LONG}; echo ended\n",
    "scripts/fail.sh": "echo wrong >&2; exit 3\n",
    "scripts/much.py": "import sys; sys.stdout.write('x' * 9_900_000)\n",
    "scripts/beat.sh": 'i=0; while [ $i -lt 600 ]; do date +%s.%N >> "$SKILL_WORKSPACE/beats"; i=$((i+1)); sleep 0.1; done\n',
    "scripts/cat.py": "import sys; print(open(sys.argv[1]).read())\n",
    "scripts/nap.sh": "sleep ${1:-1}; echo slept\n",
}


def tier_here() -> str:
    """The walls of this machine."""
    return sandbox_for(STANDARD).tier


class WorkerProcess:
    """`skillkit worker` as a process of its own, with a state folder of its own."""

    def __init__(self, words: list[str], log: Path, environment: Mapping[str, str]) -> None:
        self.log = log
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                words, stdout=output, stderr=output, env=dict(environment), stdin=subprocess.DEVNULL
            )

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(30)

    def terminate(self, seconds: float = 60) -> int:
        self.process.terminate()
        return self.process.wait(seconds)

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.kill()


class Fleet:
    """One world with a login for each role, skills, and whatever runs in it."""

    def __init__(self, database: Database, broker: str, folder: Path) -> None:
        self.database, self.broker, self.folder = database, broker, folder
        self.world = database.new_world()
        self.front = database.new_login(self.world, "front")
        self.approver = database.new_login(self.world, "approver")
        self.person = database.new_login(self.world, "front", "approver")
        self.worker = database.new_login(self.world, "worker")
        self.skills = folder / "skills"
        skill_folder(self.skills, "demo", files=SCRIPTS)
        self._made = contextlib.ExitStack()
        self._numbers = iter(range(1000))

    def address(self, login: str) -> str:
        return self.database.address(self.world, login=login)

    def queue(self, interpreter: str, label: str = "") -> str:
        """Of runs that are ordered here: within the walls of this machine."""
        return queue_name(self.world, interpreter, tier_here(), label)

    def manager(self, policy: ScriptPolicy = STANDARD, *, login: str | None = None, **options: Any) -> SkillManager:
        runner = options.pop("runner", None) or CeleryRunner(self.broker, **options.pop("sending", {}))
        manager = SkillManager(
            self.skills,
            "",
            [],
            [],
            policy=policy,
            state=self.address(login or self.front),
            runner=runner,
            state_dir=self.folder / f"front-{next(self._numbers)}",
            **options,
        )
        self._made.callback(manager.close)
        return manager

    def start_worker(
        self, *options: str, login: str | None = None, environment: Mapping[str, str] | None = None
    ) -> WorkerProcess:
        number = next(self._numbers)
        words = [
            sys.executable,
            "-m",
            "skillkit",
            "worker",
            "--broker",
            self.broker,
            "--state",
            self.address(login or self.worker),
        ]
        words += ["--state-dir", str(self.folder / f"worker-{number}"), *(options or ("--policy", "standard"))]
        known = {**os.environ, **(environment or {})}
        worker = WorkerProcess(words, self.folder / f"worker-{number}.log", known)
        self._made.callback(worker.end)
        wait_for(lambda: worker.process.poll() is not None or b"ready." in worker.log.read_bytes(), 60)
        assert worker.process.poll() is None, worker.log.read_text()
        return worker

    def worker_here(self, policy: ScriptPolicy = STANDARD, *, login: str | None = None, **options: Any) -> Worker:
        """One in this process, to be given ids by hand, as a broker would."""
        worker = Worker(
            app_for(MEMORY),
            state=self.address(login or self.worker),
            policy=policy,
            state_dir=self.folder / f"here-{next(self._numbers)}",
            **options,
        )
        self._made.callback(worker.close)
        return worker

    def rows(self, sql: str, *values: object) -> list[Any]:
        """As the owner sees it."""
        with self.database.connect(self.world) as connection:
            return list(connection.execute(sql, values).fetchall())

    def states(self) -> dict[str, int]:
        return dict(self.rows("select state, count(*) from runs group by state"))

    def kinds(self) -> dict[str, int]:
        return dict(self.rows("select kind, count(*) from audit group by kind"))

    def verify(self) -> None:
        """The chain holds; each run started at most once, has one end, and both are in the record."""
        store = SharedStore(WorldAddress.from_text(self.address(self.approver)), self.folder / "verifier")
        try:
            found = AuditLog(store).verify()
        finally:
            store.close()
        assert found.ok, found.problem
        twice = self.rows(
            "select fields::json ->> 'run', kind, count(*) from audit where fields::json ->> 'run' is not null "
            "group by 1, 2 having count(*) > 1"
        )
        assert twice == []
        ends = self.rows("select id from runs where (ended_at is null) or (finished_seq is null)")
        assert ends == [], "every run has an end, and it is on record"
        recorded = self.rows(
            "select r.id from runs r left join audit a on a.seq = r.finished_seq where a.fields::json ->> 'run' is distinct from r.id::text"
        )
        assert recorded == []

    def settle(self, seconds: float = 90) -> None:
        """Until nothing is under way, and every end is recorded."""
        open_ones = "select 1 from runs where ended_at is null or finished_seq is null limit 1"
        assert wait_for(lambda: not self.rows(open_ones), seconds), self.states()

    def close(self) -> None:
        self._made.close()
        self.database.drop_world(self.world)


@contextlib.contextmanager
def fleet_at(database: Database, broker: str, folder: Path) -> Iterator[Fleet]:
    fleet = Fleet(database, broker, folder)
    try:
        yield fleet
    finally:
        fleet.close()


def ordered_again(fleet: Fleet, run: str, **changes: object) -> str:
    """The id of a run whose order is that of another but for these changes: what a front's login can do by itself."""
    (text,) = fleet.rows("select content from runs where id = %s", uuid.UUID(run))[0]
    told = {**json.loads(text), **changes}
    content, new = json.dumps(told, sort_keys=True, separators=(",", ":")), uuid.uuid4()
    given = (new, f"run-{sha256(content.encode()).hexdigest()}", content, told["digest"], "q", [told["package"]])
    with fleet.database.connect(fleet.world, login=fleet.front) as connection:
        found = connection.execute(
            "select said from order_run(%s, %s, %s, %s, %s, %s, 60, 60, false, false)", given
        ).fetchone()
    assert found == ("queued",)
    return str(new)


def processes_of(mark: str = f"sleep\0{LONG}") -> list[int]:
    """Whose command line holds this text."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if mark.encode() in (entry / "cmdline").read_bytes() and int(entry.name) != os.getpid():
                found.append(int(entry.name))
    return found


def nobody_left(seconds: float = 10) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not processes_of():
            return True
        time.sleep(0.05)
    return False
