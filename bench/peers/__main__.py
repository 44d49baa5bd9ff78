"""`python -m bench.peers`: installs the other runtimes, measures all in one run and writes bench/peers/results.md."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from bench.peers.driver import OURS, PLAIN, Candidate, Worker
from bench.peers.environments import FOLDER, installed_peers
from bench.peers.measures import MEASURES, OVERHEAD, overhead
from bench.peers.stage import Stage, staged

NOTES = """\
Every runtime is used by its own call for a skill's script, at its defaults, with python and bash scripts that are
executable and have a first line naming their interpreter. Each lives in a process and an environment of its own;
the time is taken inside that process.

- *plain subprocess*: `subprocess.run` of interpreter and script with `capture_output`, `text` and a timeout.
- *ours, GUARDED* is the tool `skills_run_script` of an agent under the default policy, with the skill trusted by
  `skillkit trust add`; *STANDARD* and *TRUSTED* are `SkillManager.execute_skill_script` under these profiles. TRUSTED
  has no walls by its meaning: the script has the caller's own rights, only not the caller's environment.
- *skillkit 0.4.0* is another package with the same import name: `SkillManager.execute_skill_script`.
- *pydantic-ai-skills*: the script objects of `SkillsCapability`, which its tool `run_skill_script` calls; its
  sandboxes (a container service, a virtual file system) must be asked for and are not measured.
- *agno*: the tool `get_skill_script` with `execute=True`.
- *google-adk*: the tool `run_skill_script` of `SkillToolset`. By default it has no executor and runs nothing; measured
  with `UnsafeLocalCodeExecutor`, the one that needs no container or service.
"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.peers")
    parser.add_argument("--rounds", type=int, default=20, help="runs of each no-op in each of three repeats")
    rounds = parser.parse_args().rounds
    candidates = [PLAIN, *OURS, *installed_peers()]
    FOLDER.mkdir(parents=True, exist_ok=True)
    # Not in the folder for temporary files: some walls give scripts one of their own.
    with tempfile.TemporaryDirectory(prefix="stage-", dir=FOLDER) as work, staged(Path(work)) as stage:
        text = report(candidates, stage, rounds)
    print(text)
    Path(__file__).with_name("results.md").write_text(text)
    return 0


def report(candidates: Sequence[Candidate], stage: Stage, rounds: int) -> str:
    load = os.getloadavg()[0]
    rows = measured(candidates, stage, rounds)
    header = ["", *(candidate.name for candidate in candidates)]
    lines = [header, ["---"] * len(header), *rows]
    sentences = [f"- *{what}*: {sentence}" for what, (_, sentence) in OVERHEAD.items()]
    sentences += [f"- *{measure.what}*: {measure.sentence}" for measure in MEASURES]
    missing = [f"- *{each.name}* is not installed: {each.missing}." for each in candidates if each.missing]
    table = [f"| {' | '.join(cells)} |" for cells in lines]
    parts = [["# Measured against others"], [machine(load, rounds)], table, ["What each row is:"], sentences, missing]
    return "\n\n".join("\n".join(part) for part in parts if part) + f"\n\n{NOTES}"


def machine(load: float, rounds: int) -> str:
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, {platform.system()} {platform.release().split('-')[0]} {platform.machine()}, "
        f"{os.cpu_count()} cores, Python {platform.python_version()}, load {load:.1f} at the start and "
        f"{os.getloadavg()[0]:.1f} at the end. No-ops: p50 of {rounds} interleaved rounds, median of three; the "
        "milliseconds only say the order of size."
    )


def measured(candidates: Sequence[Candidate], stage: Stage, rounds: int) -> list[list[str]]:
    with ExitStack() as stack:
        present = [each for each in candidates if not each.missing]
        workers = {each.name: stack.enter_context(Worker(each, stage)) for each in present}
        rows = []
        for what, (script, _) in OVERHEAD.items():
            print(f"{what} ...", file=sys.stderr)
            timings = overhead(workers, script, rounds)
            cells = {
                name: f"{timings.ratio(name, candidates[0].name):.2f} x ({timings.p50(name):.1f} ms)"
                for name in workers
            }
            rows.append([what, *(cells.get(each.name, "not installed") for each in candidates)])
        for measure in MEASURES:
            print(f"{measure.what} ...", file=sys.stderr)
            found = {name: measure.cell(worker, stage) for name, worker in workers.items()}
            rows.append([measure.what, *(found.get(each.name, "not installed") for each in candidates)])
    return rows


if __name__ == "__main__":
    sys.exit(main())
