"""Many machines on one: private servers, two workers and the page; an approval, a killed worker, one record.

Everything listens on this machine alone and is gone at the end. `--ask` lets you answer on the page yourself.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from support.brokers import redis  # noqa: E402 - the servers that tests use too
from support.databases import Database, running_server  # noqa: E402
from support.page_visits import answer_over_http  # noqa: E402

from skillkit import GUARDED, SkillManager  # noqa: E402
from skillkit.core.exceptions import RunLostError  # noqa: E402
from skillkit.core.store.shared.postgres import WorldAddress, make_world  # noqa: E402
from skillkit.fleet import CeleryRunner, FleetRun  # noqa: E402

WORLD = "acme"
STATS = ["Many machines, one question, one record."]
SLOW = "57.125"
"""Seconds that nobody else on this machine sleeps."""
SKILL = {
    "SKILL.md": "---\nname: night-shift\ndescription: Works for a while and says so. Use it to watch a fleet.\n---\n",
    "scripts/hello.py": "import os\nprint('hello from the skill', os.environ['SKILL_NAME'])\n",
    "scripts/slow.sh": f"echo began\nsleep {SLOW}\necho ended\n",
}


class Demo:
    """What was started, by role; each machine has a state folder of its own."""

    def __init__(self, database: Database, broker: str, folder: Path, stack: ExitStack) -> None:
        self.database, self.broker, self.folder, self._stack = database, broker, folder, stack
        make_world(WorldAddress.from_text(database.address(WORLD)))
        self.logins = {role: database.new_login(WORLD, role) for role in ("front", "worker", "approver")}

    def address(self, role: str) -> str:
        return self.database.address(WORLD, login=self.logins[role])

    def start(self, name: str, role: str, *words: str) -> subprocess.Popen[bytes]:
        """One skillkit command as another machine would run it."""
        environment = {**os.environ, "SKILLKIT_STATE": self.address(role), "SKILLKIT_BROKER": self.broker}
        environment["SKILLKIT_STATE_DIR"] = str(self.folder / name)
        # What a killed one leaves is looked for by the next of the machine; here the machine is gone.
        environment["TMPDIR"] = tempfile.mkdtemp(prefix=f"{name}-", dir=self.folder)
        with (self.folder / f"{name}.log").open("wb") as log:
            started = subprocess.Popen(
                [sys.executable, "-m", "skillkit", *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
            )
        self._stack.callback(end, started)
        return started

    def told(self, name: str, pattern: str) -> str:
        """What a command printed, as soon as it did."""
        found = wait_for(lambda: re.search(pattern, (self.folder / f"{name}.log").read_text()), 60)
        assert found, (self.folder / f"{name}.log").read_text()
        return str(found[1])

    def manager(self) -> tuple[SkillManager, CeleryRunner]:
        runner = CeleryRunner(self.broker)
        manager = SkillManager(
            self.folder / "skills",
            "",
            [],
            [],
            policy=GUARDED,
            state=self.address("front"),
            state_dir=self.folder / "front",
            session_id="demo",
            runner=runner,
        )
        self._stack.callback(manager.close)
        return manager, runner

    def worker_of(self, run: FleetRun) -> str:
        with self.database.connect(WORLD) as connection:
            return str(connection.execute("select worker from runs where id = %s", (run.id,)).fetchone()[0])

    def say_records(self) -> None:
        for words in (("audit", "tail"), ("audit", "verify")):
            environment = {**os.environ, "SKILLKIT_STATE": self.address("approver"), "COLUMNS": "110"}
            subprocess.run([sys.executable, "-m", "skillkit", *words], env=environment, check=True)


def end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)


def wait_for(look: Any, seconds: float) -> Any:  # noqa: ANN401 - what was looked for
    until = time.monotonic() + seconds
    while not (found := look()) and time.monotonic() < until:
        time.sleep(0.1)
    return found


def step(text: str) -> None:
    print(f"\n\033[1m{text}\033[0m" if sys.stdout.isatty() else f"\n{text}", flush=True)


def say(text: str) -> None:
    print(f"  {text}", flush=True)


def left_over() -> list[str]:
    """Processes of scripts that outlived their worker."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if words[:2] == [b"sleep", SLOW.encode()]:
            found.append(entry.name)
    return found


@contextmanager
def started() -> Iterator[Demo]:
    with tempfile.TemporaryDirectory(prefix="skillkit-fleet-demo-") as name, ExitStack() as stack:
        folder = Path(name)
        for path, text in SKILL.items():
            place = folder / "skills/night-shift" / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
        database = stack.enter_context(running_server())
        broker = stack.enter_context(redis())
        yield Demo(database, broker.url, folder, stack)
    assert not folder.exists()


def approve(demo: Demo, run: FleetRun, option: str, *, asks: bool) -> None:
    """On the page, which another login serves: neither who asks nor who runs can approve."""
    link = json.loads(demo.told("page", r"(\{.*\})"))["link"]
    if asks:
        say(f"Answer it yourself: {link}")
        assert wait_for(lambda: run.state != "waiting", 600), "nobody answered"
        return
    seen = answer_over_http(link, option)
    asked = re.search(r"Run .*?\?", seen)
    say(f"the page asks: {asked[0] if asked else seen[:100]}")
    say(f"a person answers on the page: {option}")


def main() -> int:
    asks = "--ask" in sys.argv[1:]
    began = time.monotonic()
    with started() as demo:
        step("1. A private PostgreSQL and Redis, one world, a login for each role")
        say(f"{demo.database.folder} (socket), {demo.broker}")
        step("2. Two workers with state folders of their own, and the page")
        workers = {f"worker-{number}": demo.start(f"worker-{number}", "worker", "worker") for number in (1, 2)}
        demo.start("page", "approver", "web", "--json", "--no-open", "--port", "0")
        names = {demo.told(each, r"worker (\S+) of postgresql"): each for each in workers}
        for each in workers:
            say(f"{each}: takes {demo.told(each, r'takes (.*)')}")
            demo.told(each, r"(ready\.)")
        manager, runner = demo.manager()
        step("3. A run that a person must approve waits as a row: no worker and no thread holds it")
        run = runner.order(manager, "night-shift", "hello.py")
        say(f"run {run.id}: {run.state}")
        approve(demo, run, "yes_in_session", asks=asks)
        result = run.result(60)
        say(f"run {run.id}: {run.state} on {names[demo.worker_of(run)]}, in walls: {result.isolation.tier}")
        say(f"it says: {result.stdout.strip()}")
        kill_a_worker(demo, manager, runner, workers, names)
        step("5. One record of all of it")
        demo.say_records()
    step(f"Nothing is left of it. {time.monotonic() - began:.0f} s.")
    return 0


def kill_a_worker(
    demo: Demo,
    manager: SkillManager,
    runner: CeleryRunner,
    workers: dict[str, subprocess.Popen[bytes]],
    names: dict[str, str],
) -> None:
    step("4. A worker is killed while it runs a script")
    slow = runner.order(manager, "night-shift", "slow.sh")
    assert wait_for(lambda: slow.state == "running" and left_over(), 60)
    name = names[demo.worker_of(slow)]
    killed_at = time.monotonic()
    workers[name].send_signal(signal.SIGKILL)
    workers[name].wait(10)
    assert wait_for(lambda: not left_over(), 30)
    say(f"kill -9 {name}: its script is dead {time.monotonic() - killed_at:.1f} s later")
    other = runner.order(manager, "night-shift", "hello.py")
    assert other.result(60).success
    say(f"the other one goes on: run {other.id} on {names[demo.worker_of(other)]}, approved for the session already")
    try:
        slow.result(90)
    except RunLostError as lost:
        say(f"after {time.monotonic() - killed_at:.0f} s, when its lease is over: {lost}")
    else:
        raise AssertionError("a killed worker finished a run")


if __name__ == "__main__":
    sys.exit(main())
