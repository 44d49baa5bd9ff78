"""`python -m bench.soak.fleet`: runs on two workers, beside the soak; PostgreSQL and Redis between.

A number on a line of stdin is for how many seconds it works; then it answers with one line of JSON, when nothing runs.
At the end of stdin it stops everything, looks at the record, and says one line more.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

from bench.fleet import fleet
from bench.soak.leftovers import count_only_what_is_used, memory_mb, settled_memory_mb
from skillkit import ScriptExecutionResult, SkillKitError, SkillManager
from skillkit.core.record import AuditLog
from skillkit.core.store.opening import open_store
from skillkit.testing import skill_folder

THREADS = 3
# Workers cannot be asked to give back what is free: one heap for all threads keeps little of it for later.
ONE_HEAP = {"MALLOC_ARENA_MAX": "1", "MALLOC_MMAP_THRESHOLD_": "131072", "MALLOC_TRIM_THRESHOLD_": "131072"}
SETTLE_SECONDS = 2.0
SCRIPTS = {
    "good.sh": 'printf %s "$1"\n',
    "fail.py": "import sys\nprint(sys.argv[1], end='')\nsys.exit(3)\n",
    "leave.sh": 'printf 12345 >"$SKILL_WORK_DIR/f"; printf %s "$1"\n',
    "hang.sh": "trap '' TERM; sleep 300\n",
}
Right = Callable[[ScriptExecutionResult, str], bool]
RIGHT: dict[str, Right] = {
    "good.sh": lambda ran, word: (ran.exit_code, ran.stdout) == (0, word),
    "fail.py": lambda ran, word: (ran.exit_code, ran.stdout) == (3, word),
    "leave.sh": lambda ran, word: ran.stdout == word and [each.size for each in ran.artifacts] == [5],
    "hang.sh": lambda ran, _: ran.timed_out,
}
SHARES = (10, 5, 2, 1)


class Load:
    """The same manager for the whole time."""

    def __init__(self, manager: SkillManager) -> None:
        self._manager = manager
        self._random = random.Random(1)
        self.counts = Counter[str]()
        self.wrong: list[str] = []

    def work_for(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        with ThreadPoolExecutor(THREADS) as pool:
            for each in [pool.submit(self._work, until) for _ in range(THREADS)]:
                each.result()

    def _work(self, until: float) -> None:
        while time.monotonic() < until:
            [script] = self._random.choices([*SCRIPTS], SHARES)
            word = f"word{self._random.getrandbits(64)}"
            try:
                seconds = 1 if script == "hang.sh" else 60
                ran = self._manager.execute_skill_script("fleet", script, argv=[word], timeout=seconds)
            except SkillKitError as error:
                self.wrong.append(f"{script}: {error!r}"[:500])
                continue
            self.counts["runs"] += 1
            if not RIGHT[script](ran, word):
                self.wrong.append(f"{script}: {ran!r}"[:500])


def main() -> None:
    count_only_what_is_used()
    os.environ.update(ONE_HEAP)
    with tempfile.TemporaryDirectory(prefix="skillkit-soak-fleet-") as name:
        folder = Path(name)
        skill_folder(folder / "skills", "fleet", files={f"scripts/{each}": text for each, text in SCRIPTS.items()})
        with fleet(folder, 'profile = "standard"\n') as (manager, workers, state):
            load = Load(manager)
            for line in sys.stdin:
                load.work_for(float(line))
                time.sleep(SETTLE_SECONDS)
                say(load, front=settled_memory_mb(), workers=sum(map(memory_mb, workers)))
            verified = is_whole(state, folder / "look", load)
    say(load, verified=verified)


def is_whole(state: str, folder: Path, load: Load) -> bool:
    """Whatever started is on record once, and as finished once."""
    words = [sys.executable, "-m", "skillkit", "audit", "verify", "--state", state, "--state-dir", str(folder)]
    verified = subprocess.run(words, capture_output=True, check=False).returncode == 0
    with closing(open_store(folder, state)) as store:
        kinds = Counter(record.kind for record in AuditLog(store).records())
    return verified and kinds["started"] == kinds["finished"] == load.counts["runs"]


def say(load: Load, **figures: float) -> None:
    print(json.dumps({"runs": load.counts["runs"], "wrong": load.wrong[:20], **figures}), flush=True)


if __name__ == "__main__":
    main()
