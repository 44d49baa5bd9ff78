"""`python -m bench.proof.powercut`: POWERCUT_N times writers are killed at random; what they acknowledged is there.

A writer appends records, asks and answers questions, and says each on its output once it has been told that it is
kept. It dies by SIGKILL in the middle of that; on PostgreSQL the server does too, now and then. Then the world is
opened again: every acknowledged record and answer is there, and the chain verifies. Once for each kind of world.
"""

from __future__ import annotations

import logging
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from bench.proof import database
from bench.proof.figures import count_from, write_line
from skillkit import OptionRequest, SkillKitError, World
from skillkit.core.record import AuditLog
from skillkit.core.store.opening import open_store
from skillkit.core.values.questions import OPTIONS

FULL = 1_000
WRITERS = 2
LONGEST_SECONDS = 0.4
FRESH_EVERY = 100  # a new world now and then: the first moments of one are the delicate ones
SERVER_EVERY = 10


@dataclass(slots=True)
class Toll:
    """What came of the kills on one kind of world."""

    kind: str
    kills: int = 0
    records: int = 0
    answers: int = 0
    servers: int = 0
    lost: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        servers = f" and {self.servers:,} of the server" if self.servers else ""
        return (
            f"{self.kills:,} kills of two writers{servers} on {self.kind}, {self.records:,} records and "
            f"{self.answers:,} answers acknowledged, {len(self.lost)} lost"
        )


def main() -> int:
    if sys.argv[1:2] == ["write"]:
        write_for_ever(Path(sys.argv[2]), sys.argv[3], sys.argv[4])
    count, began, chance = count_from("POWERCUT_N", FULL), time.monotonic(), random.Random(1)
    os.environ.pop("SKILLKIT_STATE", None)
    tolls = [cut_power(Toll("SQLite"), count, chance)]
    if database.is_installed():
        with database.running_server() as server:
            tolls.append(cut_power(Toll("PostgreSQL"), count, chance, server))
    lost = [f"{toll.kind}: {each}" for toll in tolls for each in toll.lost]
    print("\n".join(lost[:20]), file=sys.stderr)
    without = "" if len(tolls) > 1 else "; PostgreSQL is not installed here"
    figures = f"{'; '.join(map(str, tolls))}{without}, {time.monotonic() - began:.0f} s"
    is_whole = all(toll.records > 0 for toll in tolls) and (len(tolls) > 1 or not os.environ.get("CI"))
    return write_line("powercut", figures, is_kept=not lost and is_whole)


def cut_power(toll: Toll, count: int, chance: random.Random, server: database.Server | None = None) -> Toll:
    """A new world for every so many kills; all that was acknowledged in it has to be there after each."""
    for first in range(0, count, FRESH_EVERY):
        state = server.make_world(f"w{first}") if server else ""
        with tempfile.TemporaryDirectory(prefix="skillkit-powercut-") as place:
            for number in range(first, min(first + FRESH_EVERY, count)):
                falls = server if number % SERVER_EVERY == SERVER_EVERY - 1 else None
                said = killed_writers(Path(place), number, chance, state, falls)
                toll.lost += missing(Path(place), said, state)
                toll.kills += 1
                toll.servers += falls is not None
                toll.records += sum(line.startswith("record") for line in said)
                toll.answers += sum(line.startswith("answer") for line in said)
    return toll


def killed_writers(
    place: Path, number: int, chance: random.Random, state: str = "", server: database.Server | None = None
) -> list[str]:
    """What two writers of one world acknowledged before both were killed, each at a moment of its own."""
    words = [sys.executable, "-m", "bench.proof.powercut", "write", str(place)]
    writers = [
        subprocess.Popen([*words, f"{number}-{each}", state], stdout=subprocess.PIPE, text=True)
        for each in range(WRITERS)
    ]
    for writer in writers:
        assert writer.stdout is not None
        writer.stdout.readline()
    if server is not None:
        time.sleep(chance.random() * LONGEST_SECONDS)
        server.kill_and_start()
    for writer in writers:
        time.sleep(chance.random() ** 2 * LONGEST_SECONDS)
        with suppress(ProcessLookupError):
            os.kill(writer.pid, signal.SIGKILL)
    said = [line for writer in writers for line in writer.communicate()[0].splitlines(keepends=True)]
    return [line for line in said if line.endswith("\n")]  # one that was cut off was not acknowledged


def write_for_ever(place: Path, name: str, state: str) -> None:
    logging.disable(logging.CRITICAL)  # that the server is gone is what is tried
    is_early = int(name.partition("-")[0]) % 2 == 0
    if is_early:
        print("ready", flush=True)
    log, world = AuditLog(open_store(place, state)), World(place, state=state)
    if not is_early:  # half of them have written for a while when they are killed, half may not have begun
        world.pending()
        print("ready", flush=True)
    for turn in range(1_000_000):
        try:
            record = log.append("started", {"writer": name, "turn": turn})
            print(f"record {record.seq} {name} {turn}", flush=True)
            request = world.open(OptionRequest(f"{name}-{turn}", "May it?", "m", OPTIONS, {}, "s"), expires_in=300)
            world.answer(request.id, "no", "powercut")
            print(f"answer {request.id}", flush=True)
        except SkillKitError:  # the server fell: nothing of this was acknowledged
            time.sleep(0.02)


def missing(place: Path, said: list[str], state: str = "") -> list[str]:
    """What was acknowledged and is not there."""
    store = open_store(place, state)
    log = AuditLog(store)
    verified = log.verify()
    kept = {record.seq: f"{record.fields.get('writer')} {record.fields.get('turn')}" for record in log.records()}
    store.close()
    with World(place, state=state) as world:
        answered = {past.request.id for past in world.history(limit=1_000_000)}
    problems = [] if verified.ok else [f"the chain breaks at {verified.broken_at}: {verified.problem}"]
    for line in said:
        kind, key, *rest = line.split()
        if kind == "record" and kept.get(int(key)) != " ".join(rest):
            problems.append(f"record {key} of {' '.join(rest)}: {kept.get(int(key))!r} is there")
        if kind == "answer" and key not in answered:
            problems.append(f"the answer to {key} is gone")
    return problems


if __name__ == "__main__":
    sys.exit(main())
