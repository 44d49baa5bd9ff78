#!/usr/bin/env python3
"""Summarises a CSV as Markdown: for each column its kind, gaps, distinct values, range, mean, top value."""

from __future__ import annotations

import argparse
import math
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
# A compiled file left in the skill folder would count as a change of the skill.
sys.dont_write_bytecode = True
sys.path.insert(0, str(HERE / "lib"))

from columns import EXIT_CODES, Column, columns_of, csv_text  # noqa: E402  (the path is set above)

SAMPLE = HERE.parent / "assets" / "sample.csv"
HEADINGS = ("column", "kind", "gaps", "distinct", "lowest", "highest", "mean", "most frequent")


def plain(number: float) -> str:
    return format(number, ".10g")


def cell(text: str) -> str:
    """Text that cannot break a Markdown table."""
    text = " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|")
    return text if len(text) <= 40 else text[:39] + "\u2026"


def line_for(column: Column, rows: int) -> tuple[str, ...]:
    lowest = highest = mean = ""
    if column.kind == "number":
        numbers = column.numbers()
        lowest, highest = plain(numbers[0]), plain(numbers[-1])
        # Dividing first keeps a sum of very large numbers finite.
        mean = format(math.fsum(number / len(numbers) for number in numbers), ".6g")
    elif column.kind == "date":
        lowest, highest = min(column.counts), max(column.counts)
    top = ", ".join(f"{cell(value)} ({count})" for value, count in column.most_frequent(1) if count > 1)
    gaps = str(rows - column.filled)
    return (cell(column.name), column.kind, gaps, str(len(column.counts)), lowest, highest, mean, top)


def report_of(rows: int, columns: list[Column]) -> str:
    lines = [HEADINGS, ("---",) * len(HEADINGS), *(line_for(column, rows) for column in columns)]
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return f"# CSV report\n\nRows: {rows}. Columns: {len(columns)}.\n\n{table}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, epilog=EXIT_CODES)
    source = parser.add_mutually_exclusive_group()
    source.add_argument("file", nargs="?", help="CSV file; without it, or with -, standard input is read")
    source.add_argument(
        "--sample", action="store_true", help="report on the sample that comes with the skill"
    )
    parser.add_argument("--delimiter", metavar="CHARACTER", help="separator, instead of the one found")
    options = parser.parse_args()
    if options.delimiter is not None and (len(options.delimiter) != 1 or options.delimiter in '"\r\n'):
        parser.error("--delimiter takes one character, no quote and no line end")
    sys.stdout.reconfigure(encoding="utf-8", errors="replace")
    text = csv_text(str(SAMPLE) if options.sample else options.file)
    print(report_of(*columns_of(text, options.delimiter)))


if __name__ == "__main__":
    main()
