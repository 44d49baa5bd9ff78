"""`python -m bench [PART...]`: measures and writes bench/results.md; where parts are named, others stay.

A part is named by words that its title has: `python -m bench warm walls`.
"""

from __future__ import annotations

import os
import platform
import sys
import tempfile
from compileall import compile_dir
from datetime import UTC, datetime
from pathlib import Path

import skillkit
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
RESULTS = Path(__file__).with_name("results.md")
HEADER = ("what", "measured", "must", "goal", "meets", "detail", "why not the goal")


def main() -> int:
    compile_dir(Path(skillkit.__file__).parent, quiet=1)  # as an installer leaves it
    wanted = [word.lower() for word in sys.argv[1:]]
    missed = 0
    head = ["# Measured", "", machine(), ""]
    sections = {}
    for title, rows_of in PARTS.items():
        if wanted and not any(word in title.lower() for word in wanted):
            sections[title] = kept(title)
            continue
        print(f"{title} ...", file=sys.stderr)
        with tempfile.TemporaryDirectory(prefix="skillkit-bench-") as work:
            rows = rows_of(Path(work))
        missed += sum(row.verdict == "MISSED" for row in rows)
        sections[title] = "\n".join(table(rows))
    text = "\n".join([*head, *(f"## {title}\n\n{section}\n" for title, section in sections.items())])
    print(text)
    RESULTS.write_text(text)
    return 1 if missed else 0


def kept(title: str) -> str:
    """What was measured of this part before."""
    _, _, rest = RESULTS.read_text().partition(f"\n## {title}\n")
    return rest.partition("\n## ")[0].strip()


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
