"""How fast the needs of skills are read, against reading the same files without a look at them."""

from __future__ import annotations

import os
from pathlib import Path

from bench.folders import make_skills
from bench.runner import Row, measure
from skillkit import SkillManager
from skillkit.core.find.needs import needs_of
from skillkit.core.models import Skill

SCRIPT = '''#!/usr/bin/env python3
"""Fetch report {number} and keep it."""
import argparse, json, os
from pathlib import Path
import requests

BASE = "https://api.reports.dev/v1"
CACHE = Path.home() / ".cache" / "reports-{number}"


def fetch(name):
    key = os.environ.get("REPORTS_API_KEY")
    if not key:
        raise SystemExit("REPORTS_API_KEY is not set; see https://reports.dev/keys")
    answer = requests.get(f"{{BASE}}/reports/{{name}}", headers={{"Authorization": f"Bearer {{key}}"}}, timeout=30)
    answer.raise_for_status()
    return answer.json()
'''
STEP = '''

def step_{step}(rows):
    """Sum the figures of part {step}."""
    total = 0
    for row in rows:
        value = row.get("value_{step}", 0)
        if isinstance(value, (int, float)):
            total += value * {step}
    return {{"part": {step}, "total": total}}
'''
STEPS = 6


def rows(work: Path) -> list[Row]:
    few, many = (_needs(work, count) for count in (1_000, 10_000))
    growth = Row("the same ratio for 10,000 skills / for 1,000", many.figure / few.figure, 1.5, 1.1, detail="1: linear")
    return [few, many, growth]


def _needs(work: Path, count: int) -> Row:
    root = make_skills(work / str(count), count)
    for number in range(count):
        text = SCRIPT.format(number=number) + "".join(STEP.format(step=step) for step in range(STEPS))
        (root / f"skill-{number:05d}" / "scripts" / "fetch.py").write_text(text)
    found = SkillManager("", "", [], [root], state_dir=work / "state").list_skills()

    def read_all() -> None:
        for folder, _, names in os.walk(root):
            for name in names:
                (Path(folder) / name).read_bytes()

    def needs_of_all() -> None:
        assert all(len(needs_of(Skill(metadata))) == 4 for metadata in found)

    timings = measure({"find + read": read_all, "needs": needs_of_all}, max(1, 2_000 // count))
    return Row(
        f"needs of {count:,} skills / find + read of the same files",
        timings.ratio("needs", "find + read"),
        40,
        20,
        detail=timings.detail("needs", "find + read"),
        why="half of it is making the syntax tree, by Python's own parser",
    )
