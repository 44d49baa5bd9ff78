"""`python -m bench.soak`: loads, looks at what is left, prints a table; exit code 1 when anything is wrong or left."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from bench.proof.figures import write_line
from bench.soak.beside import Fleet
from bench.soak.leftovers import (
    Reading,
    count_only_what_is_used,
    files_below,
    held_locks,
    is_free,
    processes_of,
    reading,
)
from bench.soak.load import Load, Tally
from bench.soak.outside import NAME
from bench.soak.scripts import write_skill
from skillkit import GUARDED, STANDARD, SkillManager, World
from skillkit.approvers.store import StoreApprover
from skillkit.core.record import AuditLog
from skillkit.core.run.tiers import sandbox_for
from skillkit.core.run.warm.spares import spares
from skillkit.core.store.state import FILE_NAME, StateStore

SECONDS = 3_600
ROUNDS = 6
FEW_ROUNDS = 3
FEW_RUNS = 150
MOST_TOLD = 20
LONG_SECONDS = 60
MEMORY_GROWTH_MB, MEMORY_SHARE = 16, 0.05
HOSTED_POLICY = replace(STANDARD, sandbox="required", allowed_hosts=(NAME,))
SPARE_LOOKS, SPARE_SECONDS = 3, 0.5  # one may be in the making
Check = tuple[str, bool, str]


def main() -> int:
    seconds = float(os.environ.get("SOAK_SECONDS", SECONDS))
    count_only_what_is_used()
    with tempfile.TemporaryDirectory(prefix="skillkit-soak-") as place:
        base = Path(place)
        for name in ("skills", "state", "tmp"):
            (base / name).mkdir()
        write_skill(base / "skills")
        # Whatever anybody in this process or below it puts into a temporary folder is seen there.
        tempfile.tempdir = os.environ["TMPDIR"] = str(base / "tmp")
        load, readings, fleet = soaked(base, seconds)
        is_long = seconds >= SECONDS
        most_growth = partial(most_of, is_long=is_long)
        checks = [*checks_of(load, readings, most_growth), *fleet.checks(most_growth), *checks_after(base, load)]
    show(load, readings, checks)
    runs, growth = (
        sum(each.milliseconds.total() for each in load.tallies.values()),
        readings[-1].memory_mb - readings[0].memory_mb,
    )
    is_kept = all(is_good for _, is_good, _ in checks)
    figures = (
        f"{seconds:.0f} s, {runs:,} runs of {len(load.tallies)} kinds, "
        f"{load.counts['warm']:,} of them warm, memory {growth:+.1f} MB ({growth / readings[0].memory_mb:+.1%}), "
        f"{fleet.told()}, "
        f"{len(checks)} looks at what is left"
    )
    return write_line("soak", figures, is_kept=is_kept)


def soaked(base: Path, seconds: float) -> tuple[Load, list[Reading], Fleet]:
    """Equal rounds; between them nothing runs, so that what is left can be counted."""
    rounds = ROUNDS if seconds >= LONG_SECONDS else FEW_ROUNDS
    places: tuple[Path, str, list[str], list[str]] = (base / "skills", "", [], [])
    with (
        answering_process(base / "state") as answerer,
        outside_process() as outside,
        World(base / "state") as world,
        SkillManager(*places, policy=STANDARD, state_dir=base / "state") as manager,
        SkillManager(*places, policy=GUARDED, state_dir=base / "state", approver=StoreApprover(world)) as asking,
        SkillManager(*places, policy=HOSTED_POLICY, state_dir=base / "state") as hosted,
        Fleet.beside() as fleet,
    ):
        load = Load(manager, asking, hosted if sandbox_for(STANDARD).opens_hosts else None, seed=1)
        readings = []
        for number in range(rounds):
            fleet.begin(seconds / rounds)
            load.work_for(seconds / rounds)
            fleet.wait()
            end_spares()
            readings.append(reading(str(base), {os.getpid(), answerer.pid, outside.pid, fleet.pid}))
            print(f"round {number + 1} of {rounds}: {readings[-1]}", file=sys.stderr, flush=True)
    return load, readings, fleet


def end_spares() -> None:
    """What was made ready for the next run is no leftover; it goes, and is made anew in the next round."""
    for _ in range(SPARE_LOOKS):
        spares.close_all(os.getpid())
        time.sleep(SPARE_SECONDS)


@contextmanager
def answering_process(state: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "bench.soak.answering", str(state)]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


@contextmanager
def outside_process() -> Iterator[subprocess.Popen[str]]:
    """What stands for the network, reached the documented way: through the proxy that the environment names."""
    command = [sys.executable, "-m", "bench.soak.outside"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        os.environ["http_proxy"] = os.environ["https_proxy"] = f"http://127.0.0.1:{process.stdout.readline().strip()}"
        yield process
        process.stdin.close()


def most_of(memory_mb: float, *, is_long: bool) -> float:
    """In an hour nothing may grow; in seconds the first round has not filled what is kept for good."""
    return memory_mb * MEMORY_SHARE if is_long else MEMORY_GROWTH_MB


def checks_of(load: Load, readings: list[Reading], most_growth: Callable[[float], float]) -> Iterator[Check]:
    """While the managers were open; the first round fills caches and pools, so growth counts from its end."""
    first, last = readings[0], readings[-1]
    wrong = [f"{name}: {text}" for name, tally in load.tallies.items() for text in tally.wrong]
    yield "every run ended as it must", not wrong, "; ".join(wrong[:MOST_TOLD])
    unused = [name for name, tally in load.tallies.items() if not tally.milliseconds]
    yield "every kind was in the mix", not unused, ", ".join(unused)
    processes = [each.processes for each in readings]
    yield "no process left after any round", not any(processes), f"left: {processes}"
    yield "no more descriptors", last.descriptors <= first.descriptors, f"{first.descriptors} -> {last.descriptors}"
    yield "no more threads", last.threads <= first.threads, f"{first.threads} -> {last.threads}"
    started = f"{load.counts['warm']} warm, {load.counts['cold']} cold"
    is_short = load.counts["warm"] + load.counts["cold"] < FEW_RUNS  # a busy machine has no time to make one ready
    yield "some runs started warm", load.counts["warm"] > 0 or is_short, started
    growth = last.memory_mb - first.memory_mb
    most = most_growth(first.memory_mb)
    yield f"memory grew by less than {most:.1f} MB", growth < most, f"{growth:+.1f} MB of {first.memory_mb:.0f}"


def checks_after(base: Path, load: Load) -> Iterator[Check]:
    """When the managers are closed."""
    left = processes_of(str(base), {os.getpid()})
    yield "no process left at the end", not left, f"left: {left}"
    files = files_below(base / "tmp")
    yield "no temporary file or folder left", not files, ", ".join(files[:5])
    locks = held_locks(base / "state")
    yield "no lock held", not locks and is_free(base / "state" / FILE_NAME), "; ".join(locks)
    with World(base / "state") as world:
        pending = world.pending()
    yield "no question left open", not pending, f"open: {len(pending)}"
    yield from checks_of_record(base / "state", load)


def checks_of_record(state: Path, load: Load) -> Iterator[Check]:
    store = StateStore(state)
    kinds = Counter(record.kind for record in AuditLog(store).records())
    store.close()
    told = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    yield "whatever started is on record as finished", kinds["started"] == kinds["finished"] > 0, told
    # A run that was cancelled is on record too, but only if it had come so far.
    over = [kinds[kind] - load.counts[kind] for kind in ("finished", "refused")]
    is_whole = min(over) >= 0 and sum(over) <= load.counts["cancelled"]
    yield "every result and every refusal is on record", is_whole, told
    command = [sys.executable, "-m", "skillkit", "audit", "verify", "--state-dir", str(state)]
    verified = subprocess.run(command, capture_output=True, text=True, check=False)
    yield "the audit verifies", verified.returncode == 0, (verified.stdout + verified.stderr).strip()


def show(load: Load, readings: list[Reading], checks: list[Check]) -> None:
    print("| kind | runs | wrong | p50 ms | worst ms |\n|---|--:|--:|--:|--:|")
    for name, tally in load.tallies.items():
        print(f"| {name} | {row_of(tally)} |")
    total = sum(tally.milliseconds.total() for tally in load.tallies.values())
    print(f"| all | {total} | | | |\n| cancelled beside these | {load.counts['cancelled']} | | | |\n")
    print("| after round | memory MB | descriptors | threads | processes |\n|---|--:|--:|--:|--:|")
    for number, each in enumerate(readings, 1):
        print(f"| {number} | {each.memory_mb:.1f} | {each.descriptors} | {each.threads} | {each.processes} |")
    print()
    for what, is_good, detail in checks:
        print(f"{'ok  ' if is_good else 'LEFT'}  {what}{f' ({detail})' if detail else ''}")


def row_of(tally: Tally) -> str:
    times = [*tally.milliseconds.elements()] or [0]
    return f"{tally.milliseconds.total()} | {len(tally.wrong)} | {statistics.median(times):.0f} | {max(times)}"


if __name__ == "__main__":
    began = time.monotonic()
    code = main()
    print(f"{time.monotonic() - began:.0f} s: {'nothing is left' if code == 0 else 'something is wrong or left'}")
    sys.exit(code)
