"""`python -m bench.proof.storm`: STORM_N scripts that attack whoever runs them, many at once, in each kind of walls.

Each run must end as it must, in time; afterwards no process, file or lock of theirs is left, and the record is whole.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from bench.proof.figures import count_from, write_line
from bench.runner import only_walls
from bench.soak.leftovers import files_below, held_locks, processes_of
from skillkit import STANDARD, ScriptExecutionResult, SkillKitError, SkillManager
from skillkit.core.record import AuditLog
from skillkit.core.run.tiers import machine_tiers
from skillkit.core.store.state import StateStore

FULL = 10_000
AT_ONCE = 8
SETTLE_SECONDS = 10
KEEPER = "skillkit spares"
TIMEOUT = 4
LATE, LATE_SHARE = "was timed out", 0.03  # eight at once on two cores: some are too slow, and none may hang
SKILL = Path(__file__).with_name("storm_skill")
ENDLESS = ("stopped", "deaf", "flood", "fork_bomb")
STOPPED = ("memory", "disk", "segfault", "kills_group")
HINDERED = ("threads", "listeners", "descriptors", "closes_all")  # limits and walls may stop them before they are done


def main() -> int:
    count, began = count_from("STORM_N", FULL), time.monotonic()
    kinds = [each.tier for each in machine_tiers() if each.sandbox is not None and each.tier != "none"]
    total, late, wrong, left = 0, 0, list[str](), list[str]()
    for kind in kinds:
        with tempfile.TemporaryDirectory(prefix="skillkit-storm-") as place, only_walls(kind), temporary(Path(place)):
            said = raged(Path(place), count // len(kinds))
            total, late = total + len(said), late + sum(text.endswith(LATE) for text in said)
            wrong += [f"{kind}: {text}" for text in said if text and not text.endswith(LATE)]
            left += [f"{kind}: {text}" for text in what_is_left(Path(place))]
    print("\n".join([*wrong[:20], *left[:20]]), file=sys.stderr)
    figures = (
        f"{total:,} hostile runs of {len(names())} kinds in {' and '.join(kinds)}, {len(wrong)} ended otherwise than "
        f"they must, {late} too slow for their {TIMEOUT} s, {len(left)} leftovers, {time.monotonic() - began:.0f} s"
    )
    is_kept = not wrong and not left and len(kinds) > 0 and late <= total * LATE_SHARE
    return write_line("storm", figures, is_kept=is_kept)


@contextmanager
def temporary(place: Path) -> Iterator[None]:
    """Whatever anybody here or below puts into a temporary folder lies there."""
    before = tempfile.gettempdir()
    (place / "tmp").mkdir()
    tempfile.tempdir = os.environ["TMPDIR"] = str(place / "tmp")
    try:
        yield
    finally:
        tempfile.tempdir = os.environ["TMPDIR"] = before


def names() -> list[str]:
    return sorted(path.name for path in (SKILL / "scripts").iterdir() if path.suffix in (".py", ".sh"))


def raged(place: Path, count: int) -> list[str]:
    """Of each run what was wrong with it, or nothing."""
    shutil.copytree(SKILL, place / "skills" / "storm")
    quick = [name for name in names() if name.partition(".")[0] not in ENDLESS]
    turns = [*quick, *quick, *quick, *(f"{name}.py" for name in ENDLESS)]  # to wait for an end takes seconds
    limits = replace(STANDARD.limits, data_megabytes=256, file_megabytes=16)
    policy = replace(STANDARD, sandbox="required", limits=limits)
    with SkillManager(place / "skills", "", [], [], policy=policy, state_dir=place / "state") as manager:

        def run(number: int) -> str:
            name, began = turns[number % len(turns)], time.monotonic()
            try:
                said = problem_with(name, manager.execute_skill_script("storm", name, timeout=TIMEOUT))
            except SkillKitError as error:
                said = f"{name}: {type(error).__name__}: {error}"
            took = time.monotonic() - began
            return said if took < TIMEOUT + 20 else f"{name}: returned after {took:.1f} s"

        with ThreadPoolExecutor(AT_ONCE) as pool:
            return list(pool.map(run, range(count)))


def problem_with(name: str, result: ScriptExecutionResult) -> str:
    """Nothing, or how it ended although it should not have."""
    attack = name.partition(".")[0]
    if attack in ENDLESS:
        return "" if result.timed_out else f"{name}: was not stopped: {result}"[:300]
    if result.timed_out:
        return f"{name}: {LATE}"
    if attack in STOPPED:
        return "" if not result.success else f"{name}: succeeded"
    return "" if attack in HINDERED or "done" in result.stdout else f"{name}: {result}"[:300]


def what_is_left(place: Path) -> Iterator[str]:
    until = time.monotonic() + SETTLE_SECONDS
    while processes_of(str(place), {os.getpid()}) and time.monotonic() < until:
        time.sleep(0.1)
    looks: dict[str, Callable[[], list[object]]] = {
        "processes": lambda: [*processes_of(str(place), {os.getpid()})],
        "files": lambda: [*files_below(place / "tmp")],
        "locks": lambda: [*held_locks(place / "state")],
        # One thread keeps spares for the next runs as long as the process lives.
        "threads": lambda: [each.name for each in threading.enumerate() if each.name not in ("MainThread", KEEPER)],
    }
    for what, look in looks.items():
        if found := look():
            yield f"{what}: {found[:5]}"
    store = StateStore(place / "state")
    log = AuditLog(store)
    kinds = Counter(record.kind for record in log.records())
    if kinds["started"] != kinds["finished"]:
        yield f"records: {dict(kinds)}"
    if not log.verify().ok:
        yield "the audit does not verify"
    store.close()


if __name__ == "__main__":
    sys.exit(main())
