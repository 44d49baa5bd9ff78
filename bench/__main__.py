"""`python -m bench`: runs every benchmark and writes bench/results.md."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from bench import fleet, hosts, inline, needs, packages, page, reading, running, sources, tokens, walls, warm
from bench.runner import Row

PARTS = {
    "Finding and reading": reading.rows,
    "Needs": needs.rows,
    "Running": running.rows,
    "Walls": walls.rows,
    "Warm runs": warm.rows,
    "Network by host": hosts.rows,
    "Prepared packages": packages.rows,
    "Where skills come from": sources.rows,
    "Many machines": fleet.rows,
    "The approval page": page.rows,
    "Commands in model output": inline.rows,
    "What a model reads before it calls anything": tokens.rows,
}
HEADER = ("what", "measured", "must", "goal", "meets", "detail", "why not the goal")


def main() -> int:
    missed = 0
    report = ["# Measured", "", machine(), ""]
    for title, rows_of in PARTS.items():
        print(f"{title} ...", file=sys.stderr)
        with tempfile.TemporaryDirectory(prefix="skillkit-bench-") as work:
            rows = rows_of(Path(work))
        missed += sum(row.verdict == "MISSED" for row in rows)
        report += [f"## {title}", "", *table(rows), ""]
    text = "\n".join(report)
    print(text)
    Path(__file__).with_name("results.md").write_text(text)
    return 1 if missed else 0


def machine() -> str:
    load = os.getloadavg()[0]
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, {platform.system()} {platform.release().split('-')[0]} {platform.machine()}, "
        f"{os.cpu_count()} cores, Python {platform.python_version()}, load {load:.1f}. Ratios of p50 inside one "
        "interleaved run, median of three; the milliseconds only say the order of size."
    )


def table(rows: list[Row]) -> list[str]:
    lines = [HEADER, ["---"] * len(HEADER), *(row.cells() for row in rows)]
    return [f"| {' | '.join(cells)} |" for cells in lines]


if __name__ == "__main__":
    sys.exit(main())
