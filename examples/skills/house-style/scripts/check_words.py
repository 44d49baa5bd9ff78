#!/usr/bin/env python3
"""Reports words that the house style avoids, with file, line and what to write; code is left alone."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

WORDS = Path(__file__).resolve().parent.parent / "assets" / "words.tsv"
FENCE = re.compile(r"\s*(?:```|~~~)")
INLINE_CODE = re.compile(r"`[^`]*`")
EXIT_CODES = "exit codes: 0 clean; 1 a file cannot be read; 2 wrong use of the command line; 3 words found"


def text_of(path: str) -> str:
    try:
        raw = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        sys.exit(f"check_words: cannot read {path}: {error.strerror}.")
    return raw.decode("utf-8-sig", errors="replace")


def replacements() -> dict[str, str]:
    rows = (line.partition("\t") for line in text_of(str(WORDS)).splitlines())
    return {avoided: instead for avoided, _, instead in rows if avoided}


def pattern_for(words: list[str]) -> re.Pattern[str]:
    """Longest first, so that a phrase wins over a word that it contains."""
    choices = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))
    return re.compile(rf"(?<!\w)(?:{choices})(?!\w)", re.IGNORECASE)


def findings_in(text: str, pattern: re.Pattern[str]) -> list[tuple[int, str]]:
    findings, in_code = [], False
    for number, line in enumerate(text.splitlines(), start=1):
        if FENCE.match(line):
            in_code = not in_code
        elif not in_code:
            findings += [(number, found) for found in pattern.findall(INLINE_CODE.sub("``", line))]
    return findings


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, epilog=EXIT_CODES)
    parser.add_argument("files", nargs="+", metavar="FILE", help="text to check; - is standard input")
    options = parser.parse_args()
    if "-" in options.files and (sys.stdin is None or sys.stdin.isatty()):
        parser.error("- needs text on standard input")
    sys.stdout.reconfigure(encoding="utf-8", errors="replace")
    instead = replacements()
    pattern = pattern_for(list(instead))
    total = 0
    for path in options.files:
        for number, found in findings_in(text_of(path), pattern):
            print(f"{path}:{number}: {found} -> {instead[found.lower()]}")
            total += 1
    print(f"check_words: {total} found.", file=sys.stderr)
    return 3 if total else 0


if __name__ == "__main__":
    sys.exit(main())
