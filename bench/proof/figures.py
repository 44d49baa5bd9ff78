"""A program's name and figures -> its line in bench/proof.md; the other lines stay as they are."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from pathlib import Path

__all__ = ["PAGE", "count_from", "write_line"]

PAGE = Path(__file__).parents[1] / "proof.md"
HEAD = """# Proof

What is promised, tried so often that luck does not help. `make proof` runs all of it at full size; each line is the
last run of its program.

| program | verdict | figures | when, where |
| --- | --- | --- | --- |
"""


def count_from(variable: str, usual: int) -> int:
    """How often, by the environment; the full size unless it says less."""
    return int(os.environ.get(variable, usual))


def write_line(program: str, figures: str, *, is_kept: bool) -> int:
    """Say it, write it, and give the exit code: 1 when a promise was broken."""
    where = f"{datetime.now(UTC):%Y-%m-%d}, {os.cpu_count()} cores, Python {platform.python_version()}"
    line = f"| {program} | {'kept' if is_kept else 'BROKEN'} | {figures} | {where} |"
    print(line)
    # A small round, as CI runs it, is no figure that anybody should read later.
    if os.environ.get("PROOF_PAGE") != "off":
        lines = dict[str, str]()
        if PAGE.exists():
            rows = PAGE.read_text().split("| --- | --- | --- | --- |\n")[-1].splitlines()
            lines = {row.split("|")[1].strip(): row for row in rows if row.startswith("| ")}
        PAGE.write_text(HEAD + "".join(f"{row}\n" for _, row in sorted({**lines, program: line}.items())))
    return 0 if is_kept else 1
