"""`python -m bench.peers`: installs the other runtimes, measures all in one run and writes bench/peers/results.md."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path

from bench.peers.driver import OURS, PLAIN, Candidate, Worker
from bench.peers.environments import FOLDER, installed_peers, plain_python
from bench.peers.measures import FIRST_RUN, FIRST_RUN_SENTENCE, MEASURES, OVERHEAD, first_runs, overhead
from bench.peers.stage import Stage, staged
from bench.runner import Timings

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
- *agent-framework-core*: the tool `run_skill_script` of `SkillsProvider`, as after a person's yes; whether it asks was
  seen with an agent whose model calls the tool. It ships no runner; measured with one like that of its samples, which
  starts python scripts only.
- *deepagents*, *openai-agents* and *strands-agents* have no call for scripts: a model writes a shell line. Measured are
  `LocalShellBackend.execute`, `exec` of a session of `UnixLocalSandboxClient` (whose skills are copied into its
  workspace), and the tool `shell` of an agent without a sandbox. deepagents passes no environment, so `python3` is the
  one that the shell's own search finds. Their containers and services must be asked for and are not measured; the same
  holds for asking a person (`interrupt_on`, `needs_approval`, a handler).
"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.peers")
    parser.add_argument("--rounds", type=int, default=20, help="runs of each no-op in each of three repeats")
    rounds = parser.parse_args().rounds
    candidates = [PLAIN, *OURS, *installed_peers()]
    FOLDER.mkdir(parents=True, exist_ok=True)
    python = plain_python()
    # Not in the folder for temporary files: some walls give scripts one of their own.
    with tempfile.TemporaryDirectory(prefix="stage-", dir=FOLDER) as work, staged(Path(work), python) as stage:
        text = report(candidates, stage, rounds)
    print(text)
    Path(__file__).with_name("results.md").write_text(text)
    return 0


def report(candidates: Sequence[Candidate], stage: Stage, rounds: int) -> str:
    load = os.getloadavg()[0]
    rows = measured(candidates, stage, rounds)
    header = ["", *(candidate.name for candidate in candidates)]
    lines = [header, ["---"] * len(header), *rows]
    sentences = [f"- *{FIRST_RUN}*: {FIRST_RUN_SENTENCE}"]
    sentences += [f"- *{what}*: {sentence}" for what, (_, sentence) in OVERHEAD.items()]
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
        for what, timed in timings_of(workers, rounds):
            told = dict.fromkeys(workers, "does not run it") | {
                name: f"{timed.ratio(name, candidates[0].name):.2f} x ({timed.p50(name):.1f} ms)"
                for name in timed.repeats[0]
            }
            rows.append([what, *(told.get(each.name, "not installed") for each in candidates)])
        for measure in MEASURES:
            print(f"{measure.what} ...", file=sys.stderr)
            found = {name: measure.cell(worker, stage) for name, worker in workers.items()}
            rows.append([measure.what, *(found.get(each.name, "not installed") for each in candidates)])
    return rows


def timings_of(workers: Mapping[str, Worker], rounds: int) -> Iterator[tuple[str, Timings]]:
    for worker in workers.values():
        worker.run("pass.py")  # what is made at the first call of all is made now
    print(f"{FIRST_RUN} ...", file=sys.stderr)
    yield FIRST_RUN, first_runs(workers)
    for what, (script, _) in OVERHEAD.items():
        print(f"{what} ...", file=sys.stderr)
        yield what, overhead(workers, script, rounds)


if __name__ == "__main__":
    sys.exit(main())
