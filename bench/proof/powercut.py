"""`python -m bench.proof.powercut`: POWERCUT_N times writers are killed at random; what they acknowledged is there.

A writer appends records, asks and answers questions, and says each on its output once it has been told that it is
kept. It dies by SIGKILL in the middle of that. Then the world is opened again: every acknowledged record and answer
is there, and the chain verifies.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from bench.proof.figures import count_from, write_line
from skillkit import OptionRequest, World
from skillkit.core.record import AuditLog
from skillkit.core.store.state import StateStore
from skillkit.core.values.questions import OPTIONS

FULL = 1_000
WRITERS = 2
LONGEST_SECONDS = 0.4
FRESH_EVERY = 100  # a new world now and then: the first moments of one are the delicate ones


def main() -> int:
    if sys.argv[1:2] == ["write"]:
        write_for_ever(Path(sys.argv[2]), sys.argv[3])
    count, began, chance = count_from("POWERCUT_N", FULL), time.monotonic(), random.Random(1)
    records, answers, lost = 0, 0, list[str]()
    for first in range(0, count, FRESH_EVERY):
        with tempfile.TemporaryDirectory(prefix="skillkit-powercut-") as place:
            for number in range(first, min(first + FRESH_EVERY, count)):
                said = killed_writers(Path(place), number, chance)
                lost += missing(Path(place), said)
                records += sum(line.startswith("record") for line in said)
                answers += sum(line.startswith("answer") for line in said)
    print("\n".join(lost[:20]), file=sys.stderr)
    figures = (
        f"{count:,} kills of two writers on SQLite, {records:,} records and {answers:,} answers acknowledged, "
        f"{len(lost)} lost, {time.monotonic() - began:.0f} s"
    )
    return write_line("powercut", figures, is_kept=not lost and records > 0)


def killed_writers(place: Path, number: int, chance: random.Random) -> list[str]:
    """What two writers of one world acknowledged before both were killed, each at a moment of its own."""
    words = [sys.executable, "-m", "bench.proof.powercut", "write", str(place)]
    writers = [
        subprocess.Popen([*words, f"{number}-{each}"], stdout=subprocess.PIPE, text=True) for each in range(WRITERS)
    ]
    for writer in writers:
        assert writer.stdout is not None
        writer.stdout.readline()  # it has opened the world, or is about to
        time.sleep(chance.random() ** 2 * LONGEST_SECONDS)
        with suppress(ProcessLookupError):
            os.kill(writer.pid, signal.SIGKILL)
    said = [line for writer in writers for line in writer.communicate()[0].splitlines(keepends=True)]
    return [line for line in said if line.endswith("\n")]  # one that was cut off was not acknowledged


def write_for_ever(place: Path, name: str) -> None:
    print("ready", flush=True)
    log, world = AuditLog(StateStore(place)), World(place)
    for turn in range(1_000_000):
        record = log.append("started", {"writer": name, "turn": turn})
        print(f"record {record.seq} {name} {turn}", flush=True)
        request = world.open(OptionRequest(f"{name}-{turn}", "May it?", "m", OPTIONS, {}, "s"), expires_in=300)
        world.answer(request.id, "no", "powercut")
        print(f"answer {request.id}", flush=True)


def missing(place: Path, said: list[str]) -> list[str]:
    """What was acknowledged and is not there."""
    store = StateStore(place)
    log = AuditLog(store)
    verified = log.verify()
    kept = {record.seq: f"{record.fields.get('writer')} {record.fields.get('turn')}" for record in log.records()}
    store.close()
    with World(place) as world:
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
