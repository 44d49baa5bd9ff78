#!/usr/bin/env python3
"""Looks up a French word: its gender, what it means, an example."""

import csv
import os
import sys
from pathlib import Path

WORDS = Path(os.environ["SKILL_BASE_DIR"], "assets", "words.tsv")


def main() -> int:
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print("Usage: lookup.py WORD", file=sys.stderr)
        return 2
    wanted = sys.argv[1].strip().lower()
    with WORDS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            if row["word"] == wanted:
                print(f"{row['word']} ({row['gender']}): {row['meaning']}. Example: {row['example']}")
                return 0
    print(f"{wanted!r} is not in the list.", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
