"""A worker and the stage -> one cell of the table; each measure has a sentence that says what was done."""

from __future__ import annotations

import re
import shutil
import statistics
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bench.peers.driver import Candidate, Reply, Worker, as_a_person
from bench.peers.stage import FIRSTS, GRANTED, LASTS_SECONDS, OTHER, OUTPUT_BYTES, Stage
from bench.runner import REPEATS, Timings

__all__ = ["FIRST_RUN", "FIRST_RUN_SENTENCE", "MEASURES", "OVERHEAD", "Measure", "first_runs", "overhead"]

TIMEOUT_SECONDS = 1
TIMEOUT_TRIES = 3
GRACE_SECONDS = 3
SETTLE_SECONDS = 0.3
SPARE_SECONDS = 0.15
LATE_MILLISECONDS = 1000
RAN = "it-ran"
TIMEOUT_WORDS = re.compile(r"tim(e|ed)[ -]?out", re.IGNORECASE)
APPROVAL_WORDS = re.compile(r"approv|confirm", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Measure:
    """One row: what it is called, what is done for it, and how its cell is found."""

    what: str
    sentence: str
    cell: Callable[[Worker, Stage], str]


def overhead(workers: Mapping[str, Worker], script: str, rounds: int) -> Timings:
    """Every round asks each worker once, so that a slow moment of the machine hits all alike.

    One that cannot run the script at all is left out.
    """
    able = {name: worker for name, worker in workers.items() if ran(worker.run(script))}
    timings = Timings()
    for _ in range(REPEATS):
        repeat: dict[str, list[float]] = {name: [] for name in able}
        names = deque(able)
        for _ in range(rounds):
            names.rotate(-1)
            for name in names:
                repeat[name].append(worked(able[name].run(script), able[name].candidate).milliseconds)
                settle(able[name].candidate)
        timings.repeats.append(repeat)
    return timings


def first_runs(workers: Mapping[str, Worker]) -> Timings:
    """Each script is run once by each worker; there are as many skills as rounds."""
    names = deque(workers)
    taken: dict[str, list[float]] = {name: [] for name in workers}
    for number in range(FIRSTS):
        names.rotate(-1)
        for name in names:
            reply = workers[name].run("greet.py", skill=f"first-{number}")
            taken[name].append(worked(reply, workers[name].candidate).milliseconds)
            settle(workers[name].candidate)
    return Timings([taken])


def settle(candidate: Candidate) -> None:
    """Ours makes the next run ready after its answer, which must not count for whoever is asked next."""
    if candidate.profile:
        time.sleep(SPARE_SECONDS)


def ran(reply: Reply) -> bool:
    return RAN in reply.said and not reply.raised


def worked(reply: Reply, candidate: Candidate) -> Reply:
    if not ran(reply):
        raise RuntimeError(f"{candidate.name} could not run a script that does nothing: {reply.said}")
    return reply


def late_after_timeout(worker: Worker, _: Stage) -> str:
    replies = [worker.run("hang.py", timeout=TIMEOUT_SECONDS) for _ in range(TIMEOUT_TRIES)]
    late = statistics.median(reply.milliseconds for reply in replies) - TIMEOUT_SECONDS * 1000
    says_so = all(TIMEOUT_WORDS.search(reply.said) for reply in replies)
    return f"{duration(late)} late, {'says so' if says_so else 'does not say so'}"


def left_after_timeout(worker: Worker, stage: Stage) -> str:
    """A call that waits for the children must not seem to have ended them, so the count does not wait for the call."""
    worker.run("pass.py", timeout=TIMEOUT_SECONDS)  # what is made for this timeout is made now
    worker.ask("tree.py", timeout=TIMEOUT_SECONDS)
    if worker.answers_within(TIMEOUT_SECONDS + GRACE_SECONDS):
        time.sleep(SETTLE_SECONDS)
    left = told(stage.left_behind())
    late = worker.answer().milliseconds - TIMEOUT_SECONDS * 1000
    stage.clear()
    return f"{left}; {duration(late)} late" if late > LATE_MILLISECONDS else left


def left_after_exit(worker: Worker, stage: Stage) -> str:
    worker.run("daemon.py")
    time.sleep(SETTLE_SECONDS)
    left = told(stage.left_behind())
    stage.clear()
    return left


def told(left_behind: Mapping[int, str]) -> str:
    kinds = sorted(left_behind.values())
    return f"{len(kinds)} ({', '.join(kinds)})" if kinds else "0"


def return_while_output_is_held(worker: Worker, stage: Stage) -> str:
    reply = worker.run("holder.py")
    stage.clear()
    return f"after {duration(reply.milliseconds)}"


def memory_for_output(worker: Worker, stage: Stage) -> str:
    """In a worker of its own: memory that an earlier run left would hide what this one takes."""
    with Worker(worker.candidate, stage) as fresh:
        fresh.run("pass.py")
        return f"{fresh.run('flood.py').megabytes:.0f} MB"


def sees_secret(worker: Worker, _: Stage) -> str:
    return yes_or_no("it-is-seen" in worker.run("secret.py").said)


def reads_home(worker: Worker, stage: Stage) -> str:
    return yes_or_no(f"private-{stage.nonce}" in worker.run("read.py").said)


def writes_home(worker: Worker, stage: Stage) -> str:
    written = stage.home / "written.txt"
    written.unlink(missing_ok=True)
    worker.run("write.py")
    return yes_or_no(written.exists())


def opens_connection(worker: Worker, stage: Stage) -> str:
    before = stage.calls
    worker.run("connect.py")
    time.sleep(SETTLE_SECONDS)
    return yes_or_no(stage.calls > before)


def asks_first(worker: Worker, _: Stage) -> str:
    said = worker.run("greet.py", skill="unseen").said
    if RAN in said:
        return "no"
    return "yes" if APPROVAL_WORDS.search(said) else "does not run"


def runs_with_package(worker: Worker, stage: Stage) -> str:
    """With ours a person prepares it, as the first answer says."""
    said = worker.run("need.py", skill="packaged").said
    if "it-is-there" in said:
        return "runs"
    first = "import error" if "ModuleNotFoundError" in said else "does not run"
    if not worker.candidate.profile:
        return first
    remedy = "names the remedy" if "skillkit prepare packaged" in said else first
    as_a_person(worker.candidate, stage, "prepare", "packaged")
    asked = len(stage.index.asked)
    runs = "it-is-there" in worker.run("need.py", skill="packaged").said and len(stage.index.asked) == asked
    return f"{remedy}; prepared, it {'runs offline' if runs else 'does not run'}"


def installs_package(worker: Worker, stage: Stage) -> str:
    placed = stage.home / "installed"
    shutil.rmtree(placed, ignore_errors=True)
    worker.run("install.py")
    return yes_or_no((placed / "zebra.py").exists())


def reaches_hosts(worker: Worker, stage: Stage) -> str:
    """With ours a person grants one of the two; the others have no such call."""
    if worker.candidate.profile:
        as_a_person(worker.candidate, stage, "grant", "calls", "--host", GRANTED)
    stage.hosts.clear()
    said = worker.run("hosts.py", skill="calls").said
    reached = [host for host in (GRANTED, OTHER) if host in stage.hosts]
    if reached == [GRANTED]:
        return f"only the granted one{', names the remedy' if f'--host {OTHER}' in said else ''}"
    return "both" if reached == [GRANTED, OTHER] else f"{len(reached)} of them"


def yes_or_no(is_so: bool) -> str:
    return "yes" if is_so else "no"


def duration(milliseconds: float) -> str:
    return f"{milliseconds:.0f} ms" if milliseconds < LATE_MILLISECONDS else f"{milliseconds / 1000:.1f} s"


FIRST_RUN = "python, first run of a script"
FIRST_RUN_SENTENCE = (
    f"A python script that does nothing and that this process has not run before, one in each of {FIRSTS} skills; "
    "ratio of p50 to plain subprocess in the same run."
)
OVERHEAD = {
    "python, again": (
        "pass.py",
        "A script that does nothing, again and again in one process; ratio of p50 to plain subprocess in the same run.",
    ),
    "python with argparse, json and re, again": ("usual.py", "The same for a script that imports these three."),
    "bash, again": ("noop.sh", "The same for a bash script that does nothing."),
}
MEASURES = (
    Measure(
        "return after a timeout",
        f"A script sleeps {LASTS_SECONDS} s, the timeout is {TIMEOUT_SECONDS} s: how long after it the call "
        f"returns (median of {TIMEOUT_TRIES}), and whether the answer speaks of a timeout.",
        late_after_timeout,
    ),
    Measure(
        "left after a timeout",
        "A script waits for a child, beside one in the background and one in a session of its own (setsid): which "
        f"of the three are alive when the call has returned, or {GRACE_SECONDS} s after the timeout if it has not; and "
        "how late it returned if over a second.",
        left_after_timeout,
    ),
    Measure(
        "left after the script's end",
        "A script starts a background child and one in a session of its own, both without its output, and ends: "
        "which are alive when the call has returned.",
        left_after_exit,
    ),
    Measure(
        "return while a child holds the output",
        f"A script ends at once and leaves a background child of {LASTS_SECONDS} s that has its output open: when "
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
        "two hosts, one of them granted",
        "The script asks both for a page, through the proxy that the caller's environment names. Here a person has "
        "granted one (`skillkit grant`): which were reached, and whether the answer says how to open the other.",
        reaches_hosts,
    ),
    Measure(
        "a script that needs a package",
        "It imports a package that is not installed, declared as PEP 723 has it. Here the first answer names "
        "`skillkit prepare`, a person runs it, and the script is called again.",
        runs_with_package,
    ),
    Measure(
        "installs a package by itself",
        "The script calls pip with an index on loopback: whether the package is in the home folder afterwards.",
        installs_package,
    ),
    Measure(
        "asks a person first",
        "A script of a skill that nobody has approved is called while nobody is there to answer: `yes` if it did not "
        "run and the answer speaks of approval.",
        asks_first,
    ),
)
