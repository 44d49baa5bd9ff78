"""`python -m bench.proof.fuzz`: FUZZ_N inputs that nobody wrote, through every door; each refusal is in our own words.

The inputs are spread over the cores in slices; a slice that hangs names its input, and any input can be made again
from its target and number (`python -m bench.proof.fuzz TARGET NUMBER`).
"""

from __future__ import annotations

import logging
import os
import random
import signal
import sys
import tempfile
import time
import traceback
import warnings
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from bench.proof.figures import count_from, write_line
from bench.proof.targets import SHARES, TARGETS, Call
from skillkit import SkillKitError

FULL = 1_000_000
SLICE = 2_000
HANG_SECONDS = 20  # of the processor's time: a busy machine makes nobody hang
SLOW_SECONDS = 180  # by the clock, for who waits, or starts a server for many inputs
_MANY = {"MCP": 50}


class HangError(Exception):
    """One input took too long."""


@dataclass(slots=True)
class Slice:
    """What came of some inputs of one target."""

    target: str
    inputs: int = 0
    refused: int = 0
    faults: list[str] = field(default_factory=list)
    slowest: float = 0.0
    seconds: float = 0.0


def main() -> int:
    if len(sys.argv) > 1:
        return _repeat(sys.argv[1], int(sys.argv[2]))
    count, began = count_from("FUZZ_N", FULL), time.monotonic()
    parts = [
        (target, start, min(SLICE, end - start))
        for target, share in SHARES.items()
        for end in [max(_MANY.get(target, 1), count * share // 100)]
        for start in range(0, end, SLICE)
    ]
    with ProcessPoolExecutor(os.cpu_count(), initializer=_quieten) as pool:
        slices = list(pool.map(_fuzz, *zip(*parts, strict=True)))
    faults = [f"{each.target}: {fault}" for each in slices for fault in each.faults]
    for target in TARGETS:
        mine = [each for each in slices if each.target == target]
        total, refused = sum(each.inputs for each in mine), sum(each.refused for each in mine)
        slowest, spent = max(each.slowest for each in mine), sum(each.seconds for each in mine)
        took = f"{spent:.0f} s, {spent / total * 1000:.2f} ms each, slowest {slowest * 1000:.0f} ms"
        print(f"{target}: {total:,} inputs, {refused:,} refused, {took}", file=sys.stderr)
    print("\n".join(faults[:20]), file=sys.stderr)
    total = sum(each.inputs for each in slices)
    seconds = time.monotonic() - began
    figures = f"{total:,} inputs through {len(TARGETS)} doors, {len(faults)} faults or hangs, {seconds:.0f} s"
    return write_line("fuzz", figures, is_kept=not faults)


def _quieten() -> None:
    """A process of the pool: what is refused a million times need not be said."""
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")


def _fuzz(target: str, start: int, count: int) -> Slice:
    """One slice, in a process of the pool."""
    found, each, began = Slice(target), _MANY.get(target, 1), time.monotonic()
    for ring in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(ring, _ring)
    with tempfile.TemporaryDirectory(prefix="skillkit-fuzz-") as folder:
        os.environ["HOME"] = folder
        try:
            with TARGETS[target](Path(folder)) as call:
                for number in range(start, start + count, each):
                    _try(call, number, found)
                    found.inputs += each
        except Exception:  # noqa: BLE001 - the door itself did not close
            found.faults.append(f"at the end of {start} to {start + count}: {traceback.format_exc(limit=-3)}")
    found.seconds = time.monotonic() - began
    return found


def _try(call: Call, number: int, found: Slice) -> None:
    began = time.monotonic()
    signal.alarm(SLOW_SECONDS)
    signal.setitimer(signal.ITIMER_PROF, HANG_SECONDS)
    try:
        call(random.Random(f"{found.target} {number}"))
    except SkillKitError:
        found.refused += 1
    except Exception:  # noqa: BLE001 - that is what is looked for
        found.faults.append(f"input {number}: {traceback.format_exc(limit=-4)}")
    finally:
        signal.alarm(0)
        signal.setitimer(signal.ITIMER_PROF, 0)
    found.slowest = max(found.slowest, time.monotonic() - began)


def _ring(*_: object) -> None:
    raise HangError


def _repeat(target: str, number: int) -> int:
    """One input again, with its whole traceback."""
    with tempfile.TemporaryDirectory() as folder, TARGETS[target](Path(folder)) as call, suppress(SkillKitError):
        call(random.Random(f"{target} {number}"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
