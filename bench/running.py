"""How fast and how exactly scripts run, against `subprocess.run` of the same interpreter and script."""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from bench.runner import Row, Work, measure, percentile
from skillkit import TRUSTED, SkillManager

SCRIPTS = {
    "noop.sh": ":\n",
    "noop.py": "pass\n",
    "noop.js": "\n",
    "hang.sh": "sleep 60\n",
    "flood.sh": "head -c 1000000000 /dev/zero\n",
}
DRAINED_BYTES = 1_000_000_000
BALLAST_BYTES = 1_000_000_000
WHY = (
    "about 1 ms of Python for each run: two chained records in SQLite, two looks at every file of the skill, "
    "the decision and the hunt for leftovers; the script itself takes 2 ms. subprocess.run has two speeds: it sleeps "
    "for 1 ms when it looks for the exit too early; a bash no-op comes to 1.1 x of the slower and 1.4 x of the faster"
)
WHY_DRAIN = (
    "between two reads it looks at the time, at cancellation and at both streams; the plain loop looks at nothing"
)
WHY_SHIM = "the same binary is started both times; the rest is noise"
WHY_AT_ONCE = (
    "the scripts alone keep both cores busy, so whatever a run costs beyond its process is missing from the rate; "
    "the start and the waiting alone reach 1.0 to 1.2 x; a prototype with half of the steps came to 0.8 x"
)
TIMEOUT_SECONDS = 1


def rows(work: Path) -> list[Row]:
    folder = work / "skills" / "runs"
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: runs\ndescription: Scripts to measure.\n---\n")
    for name, text in SCRIPTS.items():
        (folder / "scripts" / name).write_text(text)
    with SkillManager("", "", [], [work / "skills"], policy=TRUSTED, state_dir=work / "state") as manager:
        bench = Runs(manager, folder)
        return [
            *bench.drain(),  # first: the highest memory so far must not be somebody else's
            *bench.overhead(),
            bench.shim(work),
            bench.lateness(),
            *bench.throughput(),
            *bench.overhead_of_a_large_caller(),
        ]


class Runs:
    """The same scripts through skillkit and through the plain way."""

    def __init__(self, manager: SkillManager, folder: Path) -> None:
        self.manager = manager
        self.folder = folder

    def skillkit(self, script: str) -> Work:
        return lambda: self.manager.execute_skill_script("runs", script)

    def plain(self, script: str) -> Work:
        command = [*real_interpreter(script), str(self.folder / "scripts" / script)]
        return lambda: subprocess.run(command, capture_output=True, timeout=30, check=True, stdin=subprocess.DEVNULL)

    def overhead(self) -> list[Row]:
        return [
            self.against_plain("noop.sh", 1.3, 0.9, 200),
            self.against_plain("noop.py", 1.1, 1.0, 30),
            self.against_plain("noop.js", 1.1, 1.0, 15),
        ]

    def against_plain(self, script: str, must: float, goal: float, rounds: int, note: str = "") -> Row:
        timings = measure({"plain": self.plain(script), "skillkit": self.skillkit(script)}, rounds)
        what = f"a whole run of {script}{note} / subprocess.run"
        ratio = timings.ratio("skillkit", "plain")
        return Row(what, ratio, must, goal, detail=timings.detail("skillkit", "plain"), why=WHY)

    def overhead_of_a_large_caller(self) -> list[Row]:
        """A start must not cost by the size of the caller."""
        ballast = bytearray(os.urandom(4096) * (BALLAST_BYTES // 4096))
        row = self.against_plain("noop.sh", 1.4, 1.0, 100, " from a caller of 1 GB")
        assert len(ballast) > 0
        return [row]

    def shim(self, work: Path) -> Row:
        """Behind a version manager's shim, after the first run."""
        folder = work / "shims"
        folder.mkdir()
        shim = folder / "python3"
        shim.write_text(f'#!/bin/bash\nsleep 0.1\nexec {real_interpreter("noop.py")[0]} "$@"\n')
        shim.chmod(0o755)
        usual = os.environ["PATH"]

        def through_shim() -> None:
            os.environ["PATH"] = f"{folder}:{usual}"
            try:
                self.skillkit("noop.py")()
            finally:
                os.environ["PATH"] = usual

        timings = measure({"real": self.skillkit("noop.py"), "shim": through_shim}, 30)
        ratio = timings.ratio("shim", "real")
        detail = timings.detail("shim", "real")
        return Row("python3 behind a shim / the real binary", ratio, 1.1, 1.03, detail=detail, why=WHY_SHIM)

    def lateness(self) -> Row:
        late = []
        for _ in range(40):
            started = time.perf_counter()
            result = self.manager.execute_skill_script("runs", "hang.sh", timeout=TIMEOUT_SECONDS)
            assert result.timed_out
            late.append((time.perf_counter() - started - TIMEOUT_SECONDS) * 1000)
        return Row(
            "return after a timeout, p95", percentile(late, 95), 100, 10, "ms", f"p50 {statistics.median(late):.1f} ms"
        )

    def throughput(self) -> list[Row]:
        """Both ends: a script that costs next to nothing, where only the way counts, and the usual kind."""
        bounds = (("noop.sh", 512, 0.6, 0.8), ("noop.py", 128, 0.9, 1.0))  # two durable records a run cost a no-op most
        return [
            self.at_once(script, threads, total, must, goal)
            for script, total, must, goal in bounds
            for threads in (64, 256)
        ]

    def at_once(self, script: str, threads: int, total: int, must: float, goal: float) -> Row:
        runs = max(total, threads)
        ratios = []
        for _ in range(3):
            plain = per_second(self.plain(script), threads, runs)
            ratios.append(per_second(self.skillkit(script), threads, runs) / plain)
        what = f"runs of {script} per second, {threads} at once / threads + subprocess.run"
        return Row(what, statistics.median(ratios), must, goal, at_least=True, why=WHY_AT_ONCE)

    def drain(self) -> list[Row]:
        """1 GB of output: how fast it is taken in, and what it costs in memory."""
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        timings = measure({"plain": poll_and_read, "skillkit": self.skillkit("flood.sh")}, 2)
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        rate = DRAINED_BYTES / 1e6 / (timings.p50("skillkit") / 1000)
        ratio = 1 / timings.ratio("skillkit", "plain")
        return [
            Row(
                "drain of 1 GB / plain poll + read",
                ratio,
                0.6,
                0.9,
                "x",
                f"{rate:.0f} MB/s",
                at_least=True,
                why=WHY_DRAIN,
            ),
            Row("memory over idle while 1 GB is drained", grown, 64, 25, "MB"),
        ]


def real_interpreter(script: str) -> list[str]:
    name = {".sh": "bash", ".py": "python3", ".js": "node"}[Path(script).suffix]
    if name == "python3":
        return [
            subprocess.run(
                ["python3", "-c", "import sys; print(sys.executable)"], capture_output=True, text=True, check=True
            ).stdout.strip()
        ]
    return [shutil.which(name) or name]


def per_second(work: Callable[[], object], threads: int, total: int) -> float:
    share = total // threads
    failed: list[BaseException] = []

    def several() -> None:
        try:
            for _ in range(share):
                work()
        except BaseException as error:  # noqa: BLE001 - reported below
            failed.append(error)

    workers = [threading.Thread(target=several) for _ in range(threads)]
    started = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if failed:
        raise failed[0]
    return share * threads / (time.perf_counter() - started)


def poll_and_read() -> None:
    """As little as any program can do with the output of a child."""
    import select

    with subprocess.Popen(["head", "-c", str(DRAINED_BYTES), "/dev/zero"], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        poller = select.poll()
        poller.register(child.stdout, select.POLLIN)
        while poller.poll() and os.read(child.stdout.fileno(), 65_536):
            pass


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as scratch:
        for row in rows(Path(scratch)):
            print(" | ".join(row.cells()), file=sys.stderr)
