#!/usr/bin/env python3
"""Lists the columns of a CSV with the kind of their values (number, date, text, empty) as JSON."""

from __future__ import annotations

import argparse
import csv
import io
import json
import math
import re
import sys
from collections import Counter
from dataclasses import dataclass, field

LIMIT_BYTES = 100_000_000
# A leading zero marks a code (postcode, article number), not a quantity.
NUMBER = re.compile(r"[+-]?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[T ][0-9:.]+(?:Z|[+-][0-9:]+)?)?")
EXIT_CODES = "exit codes: 0 done; 1 the file cannot be read as CSV; 2 wrong use of the command line"


@dataclass
class Column:
    """One column: its name and how often each value occurs, gaps left out."""

    name: str
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def kind(self) -> str:
        if not self.counts:
            return "empty"
        if all(is_number(value) for value in self.counts):
            return "number"
        return "date" if all(DATE.fullmatch(value) for value in self.counts) else "text"

    @property
    def filled(self) -> int:
        return sum(self.counts.values())

    def numbers(self) -> list[float]:
        """Every value as a number, in ascending order."""
        pairs = sorted((float(value), count) for value, count in self.counts.items())
        return [number for number, count in pairs for _ in range(count)]

    def most_frequent(self, limit: int) -> list[tuple[str, int]]:
        return sorted(self.counts.items(), key=lambda item: (-item[1], item[0]))[:limit]


def is_number(value: str) -> bool:
    return NUMBER.fullmatch(value) is not None and math.isfinite(float(value))


def csv_text(path: str | None) -> str:
    """The decoded text of the file, or of standard input when the path is `-` or absent."""
    if path in (None, "-") and (sys.stdin is None or sys.stdin.isatty()):
        sys.exit("csv-report: name a CSV file, or send CSV text on standard input.")
    try:
        with open(path, "rb") if path not in (None, "-") else sys.stdin.buffer as file:
            raw = file.read(LIMIT_BYTES + 1)
    except OSError as error:
        sys.exit(f"csv-report: cannot read {path}: {error.strerror}.")
    if len(raw) > LIMIT_BYTES:
        sys.exit(
            f"csv-report: the input is larger than {LIMIT_BYTES // 1_000_000} MB. Report on a part of it."
        )
    text = raw.decode("utf-8-sig", errors="replace")
    if "\ufffd" in text:
        print("csv-report: the input is not all UTF-8; unknown bytes are shown as \ufffd.", file=sys.stderr)
    return text


def columns_of(text: str, delimiter: str | None = None) -> tuple[int, list[Column]]:
    """The number of rows and the columns; rows of another length than the header are reported and kept."""
    first_line = text.lstrip("\r\n").partition("\n")[0]
    chosen = delimiter or max(",;\t|", key=first_line.count)
    rows = (row for row in csv.reader(io.StringIO(text, newline=""), delimiter=chosen) if row)
    total = uneven = 0
    try:
        header = next(rows, None)
        if header is None:
            sys.exit("csv-report: the input is empty; a CSV starts with a line of column names.")
        columns = [Column(name.strip() or f"column {place}") for place, name in enumerate(header, start=1)]
        for row in rows:
            total += 1
            uneven += len(row) != len(columns)
            for column, cell in zip(columns, row):
                if value := cell.strip():
                    column.counts[value] += 1
    except csv.Error as error:
        sys.exit(f"csv-report: not readable as CSV after {total} rows: {error}.")
    if uneven:
        print(f"csv-report: {uneven} of {total} rows are longer or shorter than the header.", file=sys.stderr)
    return total, columns


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, epilog=EXIT_CODES)
    parser.add_argument("file", nargs="?", help="CSV file; without it, or with -, standard input is read")
    options = parser.parse_args()
    _, columns = columns_of(csv_text(options.file))
    print(json.dumps([{"name": column.name, "kind": column.kind} for column in columns], indent=2))


if __name__ == "__main__":
    main()
