from __future__ import annotations

import re

from hypothesis import example, given, settings
from hypothesis import strategies as st

from skillkit import SkillParsingError
from skillkit.core.models.frontmatter import Frontmatter, Value, read_frontmatter, split_tools, text_of

BOUNDED = settings(max_examples=300, deadline=None, derandomize=True)

PIECES = [
    "---", "--- ", "----", "\n", "\n\n", "\r\n", "\r", "\t", " ", "  ", "name", "description", "metadata", ":", ": ",
    "- ", "? ", "[", "]", "{", "}", ",", "&a ", "*a", "!!str ", "!x", "|", ">-", "\n  ", "\n    ", "#", " #x", "'", '"',
    "\\", "\\u", "\\ud83d", "%YAML", "...", "<<", "<<<<<<< x\n", "@", "`", "**", "null", "~", "\0", "\x1b", "\x80",
    "\x85", "\u2028", "\ufeff", "\ufffd", "é", "文", "x", "name: a\n", "description: d\n",
]  # fmt: skip


def assert_plain(value: Value) -> None:
    """Only text, None, lists and maps of such, and no character that a terminal or JSON chokes on."""
    if isinstance(value, list):
        for item in value:
            assert_plain(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            assert type(key) is str
            assert_plain(item)
    else:
        assert value is None or type(value) is str
        (value or "").encode("utf-8")


def assert_readable(raw: bytes) -> Frontmatter | None:
    try:
        frontmatter = read_frontmatter(raw)
    except SkillParsingError as error:
        refused = error
    else:
        return assert_sound(frontmatter, lines=raw.count(b"\n") + raw.count(b"\r") + 1)
    assert str(refused)
    assert refused.remedy
    return None


def assert_sound(frontmatter: Frontmatter, lines: int) -> Frontmatter:
    assert_plain(dict(frontmatter.fields))
    assert text_of(dict(frontmatter.fields)) is not None
    assert all(1 <= line <= lines for line in frontmatter.lines.values())
    assert all(note.message and note.remedy and 1 <= note.line <= lines for note in frontmatter.notes)
    return frontmatter


@BOUNDED
@given(raw=st.binary(max_size=400))
@example(raw=b"\xff\xfe---\n")
@example(raw=b"\xfe\xff")
@example(raw=b"---\n\xef\xbb\xbf: \n---\n")
def test_no_bytes_raise_anything_else(raw: bytes) -> None:
    assert_readable(raw)


@BOUNDED
@given(raw=st.binary(max_size=400))
def test_no_bytes_between_fences_raise_anything_else(raw: bytes) -> None:
    assert_readable(b"---\nname: a\n" + raw + b"\n---\nBody")


@BOUNDED
@given(pieces=st.lists(st.sampled_from(PIECES), max_size=30))
def test_no_pieces_of_yaml_raise_anything_else(pieces: list[str]) -> None:
    assert_readable(f"---\n{''.join(pieces)}\n---\nBody".encode())


@BOUNDED
@given(pieces=st.lists(st.sampled_from(PIECES), max_size=12))
def test_a_bad_field_never_costs_the_description(pieces: list[str]) -> None:
    """One line of anything before it: the description is still read when there is still a block."""
    line = "".join(pieces).replace("\n", " ").replace("\r", " ").strip("\x85\u2028 \t")
    frontmatter = assert_readable(f"---\nname: a\nx: z {line}\ndescription: d\n---\nBody".encode())
    if frontmatter is not None:
        assert "d" in text_of(dict(frontmatter.fields))


WORDS = st.text(st.characters(categories=["L", "N"]) | st.sampled_from("_-.:*/&|<>#'\"$"), min_size=1, max_size=8)
SCOPES = st.lists(WORDS, min_size=1, max_size=4).map(", ".join)
RULES = st.tuples(WORDS.filter(lambda word: word.strip("-")), st.none() | SCOPES).map(
    lambda rule: rule[0] if rule[1] is None else f"{rule[0]}({rule[1]})"
)


@BOUNDED
@given(rules=st.lists(RULES, max_size=6), separator=st.sampled_from([" ", ", ", ",", " , ", "  "]))
def test_rules_come_back_whole_whatever_separates_them(rules: list[str], separator: str) -> None:
    assert split_tools(separator.join(rules)) == tuple(rules)
    assert split_tools(list[Value](rules)) == tuple(rules)


@BOUNDED
@given(value=st.text(st.sampled_from("ab(), -*:\n\t"), max_size=40))
def test_no_parenthesis_or_letter_is_ever_lost(value: str) -> None:
    kept = "".join(split_tools(value))
    assert re.sub(r"[\s,-]", "", kept) == re.sub(r"[\s,-]", "", value)


@BOUNDED
@given(text=st.text(max_size=200))
def test_a_quoted_description_comes_back_as_written(text: str) -> None:
    """Whatever a person writes, in single quotes on one line, is the description."""
    written = " ".join(text.split())
    clean = re.sub("[^\x20-\x7e\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]|[\u2028\u2029]", "", written)
    quoted = "'" + clean.replace("'", "''") + "'"
    frontmatter = read_frontmatter(f"---\ndescription: {quoted}\n---\n".encode())
    assert (frontmatter.fields, frontmatter.notes) == ({"description": clean}, ())
