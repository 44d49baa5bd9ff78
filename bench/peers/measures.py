"""A worker and the stage -> one cell of the table; each measure has a sentence that says what was done."""

from __future__ import annotations

import re
import statistics
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bench.peers.driver import Candidate, Reply, Worker
from bench.peers.stage import LASTS_SECONDS, OUTPUT_BYTES, Stage
from bench.runner import REPEATS, Timings

__all__ = ["MEASURES", "OVERHEAD", "Measure", "overhead"]

TIMEOUT_SECONDS = 1
TIMEOUT_TRIES = 3
GRACE_SECONDS = 3
SETTLE_SECONDS = 0.3
LATE_MILLISECONDS = 1000
TIMEOUT_WORDS = re.compile(r"tim(e|ed)[ -]?out", re.IGNORECASE)
APPROVAL_WORDS = re.compile(r"approv|confirm", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Measure:
    """One row: what it is called, what is done for it, and how its cell is found."""

    what: str
    sentence: str
    cell: Callable[[Worker, Stage], str]


def overhead(workers: Mapping[str, Worker], script: str, rounds: int) -> Timings:
    """Every round asks each worker once, so that a slow moment of the machine hits all alike."""
    for worker in workers.values():
        worked(worker.run(script), worker.candidate)
    timings = Timings()
    for _ in range(REPEATS):
        repeat: dict[str, list[float]] = {name: [] for name in workers}
        names = deque(workers)
        for _ in range(rounds):
            names.rotate(-1)
            for name in names:
                repeat[name].append(worked(workers[name].run(script), workers[name].candidate).milliseconds)
        timings.repeats.append(repeat)
    return timings


def worked(reply: Reply, candidate: Candidate) -> Reply:
    if reply.raised:
        raise RuntimeError(f"{candidate.name} could not run a script that does nothing: {reply.said}")
    return reply


def late_after_timeout(worker: Worker, _: Stage) -> str:
    replies = [worker.run("hang.py", timeout=TIMEOUT_SECONDS) for _ in range(TIMEOUT_TRIES)]
    late = statistics.median(reply.milliseconds for reply in replies) - TIMEOUT_SECONDS * 1000
    says_so = all(TIMEOUT_WORDS.search(reply.said) for reply in replies)
    return f"{duration(late)} late, {'says so' if says_so else 'does not say so'}"


def left_after_timeout(worker: Worker, stage: Stage) -> str:
    """A call that waits for the children must not seem to have ended them, so the count does not wait for the call."""
    worker.run("noop.sh", timeout=TIMEOUT_SECONDS)  # what is made for this timeout is made now
    worker.ask("tree.sh", timeout=TIMEOUT_SECONDS)
    if worker.answers_within(TIMEOUT_SECONDS + GRACE_SECONDS):
        time.sleep(SETTLE_SECONDS)
    left = told(stage.left_behind())
    late = worker.answer().milliseconds - TIMEOUT_SECONDS * 1000
    stage.clear()
    return f"{left}; {duration(late)} late" if late > LATE_MILLISECONDS else left


def left_after_exit(worker: Worker, stage: Stage) -> str:
    worker.run("daemon.sh")
    time.sleep(SETTLE_SECONDS)
    left = told(stage.left_behind())
    stage.clear()
    return left


def told(left_behind: Mapping[int, str]) -> str:
    kinds = sorted(left_behind.values())
    return f"{len(kinds)} ({', '.join(kinds)})" if kinds else "0"


def return_while_output_is_held(worker: Worker, stage: Stage) -> str:
    reply = worker.run("holder.sh")
    stage.clear()
    return f"after {duration(reply.milliseconds)}"


def memory_for_output(worker: Worker, stage: Stage) -> str:
    """In a worker of its own: memory that an earlier run left would hide what this one takes."""
    with Worker(worker.candidate, stage) as fresh:
        fresh.run("noop.sh")
        return f"{fresh.run('flood.sh').megabytes:.0f} MB"


def sees_secret(worker: Worker, _: Stage) -> str:
    return yes_or_no("it-is-seen" in worker.run("secret.sh").said)


def reads_home(worker: Worker, stage: Stage) -> str:
    return yes_or_no(f"private-{stage.nonce}" in worker.run("read.sh").said)


def writes_home(worker: Worker, stage: Stage) -> str:
    written = stage.home / "written.txt"
    written.unlink(missing_ok=True)
    worker.run("write.sh")
    return yes_or_no(written.exists())


def opens_connection(worker: Worker, stage: Stage) -> str:
    before = stage.calls
    worker.run("connect.py")
    time.sleep(SETTLE_SECONDS)
    return yes_or_no(stage.calls > before)


def asks_first(worker: Worker, _: Stage) -> str:
    said = worker.run("greet.sh", skill="unseen").said
    if "it-ran" in said:
        return "no"
    return "yes" if APPROVAL_WORDS.search(said) else "does not run"


def yes_or_no(is_so: bool) -> str:
    return "yes" if is_so else "no"


def duration(milliseconds: float) -> str:
    return f"{milliseconds:.0f} ms" if milliseconds < LATE_MILLISECONDS else f"{milliseconds / 1000:.1f} s"


OVERHEAD = {
    "bash no-op": ("noop.sh", "A bash script that does nothing; ratio of p50 to plain subprocess in the same run."),
    "python no-op": ("pass.py", "The same with a python script."),
}
MEASURES = (
    Measure(
        "return after a timeout",
        f"A python script sleeps {LASTS_SECONDS} s, the timeout is {TIMEOUT_SECONDS} s: how long after it the call "
        f"returns (median of {TIMEOUT_TRIES}), and whether the answer speaks of a timeout.",
        late_after_timeout,
    ),
    Measure(
        "left after a timeout",
        "A bash script waits for a child, beside one in the background and one in a session of its own (setsid): which "
        f"of the three are alive when the call has returned, or {GRACE_SECONDS} s after the timeout if it has not; and "
        "how late it returned if over a second.",
        left_after_timeout,
    ),
    Measure(
        "left after the script's end",
        "A bash script starts a background child and one in a session of its own, both without its output, and ends: "
        "which are alive when the call has returned.",
        left_after_exit,
    ),
    Measure(
        "return while a child holds the output",
        f"A bash script ends at once and leaves a background child of {LASTS_SECONDS} s that has its output open: when "
        "the call returns.",
        return_while_output_is_held,
    ),
    Measure(
        f"memory for {OUTPUT_BYTES // 1_000_000} MB of output",
        "How far the caller's peak memory rises over what it had before, in a fresh caller.",
        memory_for_output,
    ),
    Measure("sees a secret", "An API key is in the caller's environment: whether the script finds it.", sees_secret),
    Measure("reads the home folder", "Whether the script reads a file in the user's home folder.", reads_home),
    Measure("writes the home folder", "Whether a file that the script writes there exists afterwards.", writes_home),
    Measure(
        "opens a connection", "Whether a TCP connection of the script reaches a loopback server.", opens_connection
    ),
    Measure(
        "asks a person first",
        "A script of a skill that nobody has approved is called while nobody is there to answer: `yes` if it did not "
        "run and the answer speaks of approval.",
        asks_first,
    ),
)
