#!/usr/bin/env python3
"""Draws one column of a CSV as an SVG bar chart: a histogram for numbers, the most frequent values otherwise.

Writes chart.svg into the folder that SKILL_WORK_DIR names, or where --output says, and prints the path.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from xml.sax.saxutils import escape

HERE = Path(__file__).resolve().parent
# A compiled file left in the skill folder would count as a change of the skill.
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE / "lib"))

from columns import Column, columns_of, csv_text  # noqa: E402  (the path is set above)

BARS = 10
ROW, LEFT, WIDTH = 28, 190, 640
SAMPLE = HERE.parent / "assets" / "sample.csv"
EXIT_CODES = (
    "exit codes: 0 drawn; 1 the input, the column or the output is unusable; 2 wrong use of the command line"
)


def histogram_of(numbers: list[float]) -> list[tuple[str, int]]:
    low, high = numbers[0], numbers[-1]
    # Halves first: the distance between two very large numbers of opposite sign would be infinite.
    step = (high / 2 - low / 2) / BARS * 2
    if step == 0:
        return [(format(low, ".6g"), len(numbers))]
    counts = [0] * BARS
    for number in numbers:
        counts[min(BARS - 1, int((number / 2 - low / 2) / (step / 2)))] += 1
    edges = [format(low + step * place, ".4g") for place in range(BARS)] + [format(high, ".4g")]
    return [(f"{edges[place]} to {edges[place + 1]}", count) for place, count in enumerate(counts)]


def svg_of(title: str, bars: list[tuple[str, int]]) -> str:
    most = max(count for _, count in bars)
    height = ROW * (len(bars) + 2)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" font-family="Arial">',
        f"<title>{clean(title)}</title>",
        '<rect width="100%" height="100%" fill="white"/>',
        f'<text x="12" y="{ROW}" font-size="16">{clean(title)}</text>',
    ]
    for place, (label, count) in enumerate(bars):
        y = ROW * (place + 1) + ROW // 2
        length = round((WIDTH - LEFT - 60) * count / most)
        lines += [
            f'<text x="{LEFT - 8}" y="{y + 16}" font-size="13" text-anchor="end">{clean(label, 24)}</text>',
            f'<rect x="{LEFT}" y="{y}" width="{length}" height="{ROW - 8}" fill="#3b6ea5"/>',
            f'<text x="{LEFT + length + 6}" y="{y + 16}" font-size="13">{count}</text>',
        ]
    return "\n".join([*lines, "</svg>", ""])


def clean(text: str, limit: int = 60) -> str:
    """Text that is safe and short enough inside SVG; XML forbids control characters even when escaped."""
    shown = "".join(letter for letter in text if letter.isprintable())
    return escape(shown if len(shown) <= limit else shown[: limit - 1] + "\u2026")


def named_column(columns: list[Column], name: str) -> Column:
    for column in columns:
        if column.name == name:
            if not column.counts:
                sys.exit(f"csv-report: column {name!r} has no values to draw.")
            return column
    names = ", ".join(column.name for column in columns)
    sys.exit(f"csv-report: there is no column {name!r}. The columns are: {names}.")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0], epilog=EXIT_CODES)
    source = parser.add_mutually_exclusive_group()
    source.add_argument("file", nargs="?", help="CSV file; without it, or with -, standard input is read")
    source.add_argument(
        "--sample", action="store_true", help="draw from the sample that comes with the skill"
    )
    parser.add_argument("--column", required=True, metavar="NAME", help="the column to draw")
    parser.add_argument(
        "--output", metavar="FILE", help="where to write (default: chart.svg in SKILL_WORK_DIR)"
    )
    options = parser.parse_args()
    work_folder = os.environ.get("SKILL_WORK_DIR")
    if options.output is None and not work_folder:
        parser.error("SKILL_WORK_DIR is not set; name the chart's file with --output")
    sys.stdout.reconfigure(encoding="utf-8", errors="replace")
    _, columns = columns_of(csv_text(str(SAMPLE) if options.sample else options.file))
    column = named_column(columns, options.column)
    bars = histogram_of(column.numbers()) if column.kind == "number" else column.most_frequent(BARS)
    target = Path(options.output) if options.output is not None else Path(work_folder or "", "chart.svg")
    try:
        target.write_text(svg_of(column.name, bars), encoding="utf-8")
    except OSError as error:
        sys.exit(f"csv-report: cannot write {target}: {error.strerror}.")
    print(target)


if __name__ == "__main__":
    main()
