#!/usr/bin/env python3
"""Measures a text: words, sentences, reading time, Flesch scores, longest sentence, frequent words.

Takes a file as argument, or the JSON object {"text": "..."} on standard input.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter

LIMIT_BYTES = 50_000_000
WORDS_PER_MINUTE = 230
FREQUENT_WORDS = 5
# Words may hold an apostrophe or a hyphen, but not begin or end with one.
WORD = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*")
SENTENCE_END = re.compile(r"[.!?\u2026]+[\"')\]\u201d\u2019]*(?=\s)")
ABBREVIATION = re.compile(r"(?:\b(?:[A-Za-z]|e\.g|i\.e|etc|vs|cf|Mr|Mrs|Ms|Dr|Prof|St|No|Fig))\.$")
EXIT_CODES = "exit codes: 0 measured; 1 the input cannot be measured; 2 wrong use of the command line"


def input_bytes(path: str | None) -> bytes:
    try:
        with open(path, "rb") if path is not None else sys.stdin.buffer as file:
            raw = file.read(LIMIT_BYTES + 1)
    except OSError as error:
        sys.exit(f"stats: cannot read {path or 'standard input'}: {error.strerror}.")
    if len(raw) > LIMIT_BYTES:
        sys.exit(f"stats: the input is larger than {LIMIT_BYTES // 1_000_000} MB. Measure a part of it.")
    return raw


def text_from_json(raw: bytes) -> str:
    try:
        request = json.loads(raw)
    except (ValueError, RecursionError) as error:
        sys.exit(f'stats: standard input is not JSON ({error}). Send {{"text": "..."}} or name a file.')
    if not isinstance(request, dict) or set(request) != {"text"} or not isinstance(request["text"], str):
        sys.exit('stats: the JSON must be an object with the one key "text", and its value must be a string.')
    return request["text"]


def text_from_bytes(raw: bytes) -> str:
    text = raw.decode("utf-8-sig", errors="replace")
    if "\ufffd" in text:
        print("stats: the file is not all UTF-8; unknown bytes count as punctuation.", file=sys.stderr)
    return text


def sentences_of(paragraph: str) -> list[str]:
    """The paragraph cut after . ! ? that are followed by space, but not after an abbreviation or initial."""
    sentences, start = [], 0
    for end in SENTENCE_END.finditer(paragraph):
        if not ABBREVIATION.search(paragraph, max(start, end.end() - 8), end.end()):
            sentences.append(paragraph[start : end.end()])
            start = end.end()
    sentences.append(paragraph[start:])
    return [" ".join(sentence.split()) for sentence in sentences if WORD.search(sentence)]


def syllables_in(word: str) -> int:
    groups = len(re.findall(r"[aeiouy]+", word))
    has_silent_end = word.endswith("e") and not word.endswith(("le", "ee"))
    return max(1, groups - 1 if has_silent_end else groups)


def measures_of(text: str) -> dict[str, object]:
    words = [word.lower() for word in WORD.findall(text)]
    if not words:
        sys.exit("stats: the text holds no words.")
    paragraphs = [part for part in re.split(r"\n[^\S\n]*\n", text.replace("\r\n", "\n")) if WORD.search(part)]
    sentences = [sentence for part in paragraphs for sentence in sentences_of(part)]
    longest = max(sentences, key=lambda sentence: len(WORD.findall(sentence)))
    counts = Counter(words)
    latin = sum(count for word, count in counts.items() if re.match(r"[a-z\u00c0-\u024f]", word))
    pace = len(words) / len(sentences)
    weight = sum(syllables_in(word) * count for word, count in counts.items()) / len(words)
    scored = latin * 2 > len(words)
    long_words = [item for item in counts.items() if len(item[0]) > 3]
    frequent = sorted(long_words, key=lambda item: (-item[1], item[0]))[:FREQUENT_WORDS]
    return {
        "characters": len(text),
        "words": len(words),
        "sentences": len(sentences),
        "paragraphs": len(paragraphs),
        "words_per_sentence": round(pace, 1),
        "reading_seconds": round(len(words) * 60 / WORDS_PER_MINUTE),
        "reading_ease": round(206.835 - 1.015 * pace - 84.6 * weight, 1) if scored else None,
        "grade_level": round(0.39 * pace + 11.8 * weight - 15.59, 1) if scored else None,
        "longest_sentence_words": len(WORD.findall(longest)),
        "longest_sentence": longest if len(longest) <= 200 else longest[:199] + "\u2026",
        "frequent_words": dict(frequent),
    }


def shown(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{word} ({count})" for word, count in value.items()) or "none"
    return "not measured" if value is None else str(value)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0], epilog=EXIT_CODES)
    parser.add_argument("file", nargs="?", help='without it, {"text": "..."} is read from standard input')
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    options = parser.parse_args()
    sys.stdout.reconfigure(encoding="utf-8", errors="replace")
    if options.file is None and (sys.stdin is None or sys.stdin.isatty()):
        parser.error('name a file, or send {"text": "..."} on standard input')
    raw = input_bytes(options.file)
    text = text_from_json(raw) if options.file is None else text_from_bytes(raw)
    measures = measures_of(text)
    lines = (f"{name.replace('_', ' '):<24}{shown(value)}" for name, value in measures.items())
    print(json.dumps(measures, indent=2) if options.json else "\n".join(lines))


if __name__ == "__main__":
    main()
