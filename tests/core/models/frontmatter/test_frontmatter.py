from __future__ import annotations

import subprocess
import sys
import tracemalloc

import pytest

from skillkit import InvalidFrontmatterError, InvalidYAMLError, SkillParsingError
from skillkit.core.models.frontmatter import Frontmatter, Value, is_closed, read_frontmatter, text_of
from skillkit.core.models.frontmatter.block import NOTE_LIMIT


def read(block: str, body: str = "Body.\n") -> Frontmatter:
    return read_frontmatter(f"---\n{block}\n---\n{body}".encode())


def note_codes(frontmatter: Frontmatter) -> list[str]:
    return [note.code for note in frontmatter.notes]


PLAIN = {"name": "a", "description": "d"}


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"---\nname: a\ndescription: d\n---\nBody\n", id="plain"),
        pytest.param(b"\xef\xbb\xbf---\nname: a\ndescription: d\n---\nBody\n", id="byte-order mark"),
        pytest.param(b"---\r\nname: a\r\ndescription: d\r\n---\r\nBody\r\n", id="CRLF"),
        pytest.param(b"---\rname: a\rdescription: d\r---\rBody\r", id="CR"),
        pytest.param(b"---\r\nname: a\ndescription: d\r---\nBody\r\n", id="mixed line ends"),
        pytest.param(b"\n \n---\nname: a\ndescription: d\n---\nBody\n", id="blank lines before it"),
        pytest.param(b"---  \t\nname: a\ndescription: d\n--- \nBody\n", id="spaces after the fences"),
    ],
)
def test_every_line_end_and_byte_order_mark_gives_the_same(raw: bytes) -> None:
    frontmatter = read_frontmatter(raw)
    assert (frontmatter.fields, frontmatter.body, frontmatter.notes) == (PLAIN, "Body\n", ())


@pytest.mark.parametrize(
    ("before", "line"),
    [
        ("<!-- Copyright -->\n", 1),
        ("\n\n<!-- one -->\n  <!-- two\nlines -->\n\n", 3),
        ("<!--\n---\nname: other\n---\n-->\n", 1),
        ("\ufeff<!-- a -->\n", 1),
    ],
)
def test_a_comment_before_the_frontmatter_is_stepped_over_and_noted(before: str, line: int) -> None:
    raw = f"{before}---\nname: a\ndescription: d\n---\nBody\n".encode()
    frontmatter = read_frontmatter(raw)
    assert (frontmatter.fields, frontmatter.body) == (PLAIN, "Body\n")
    (note,) = frontmatter.notes
    assert (note.code, note.line) == ("leading-comment", line)
    assert frontmatter.lines["name"] == before.count("\n") + 2
    assert not is_closed(raw), "fences may stand in the comment"


@pytest.mark.parametrize(
    "before", ["<!-- never closed\n", "<!-- a --> text\n", "text <!-- a -->\n", "<!-- a -->\ntext\n"]
)
def test_what_is_no_comment_alone_is_not_stepped_over(before: str) -> None:
    with pytest.raises(InvalidFrontmatterError, match="There is no frontmatter"):
        read_frontmatter(f"{before}---\nname: a\ndescription: d\n---\n".encode())


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_with_a_mark_is_read_and_noted(encoding: str) -> None:
    mark = {"utf-16": b"", "utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}[encoding]
    frontmatter = read_frontmatter(mark + "---\nname: a\ndescription: d\n---\nBody\n".encode(encoding))
    assert (frontmatter.fields, frontmatter.body, note_codes(frontmatter)) == (PLAIN, "Body\n", ["encoding"])


def test_utf_16_without_a_mark_has_no_frontmatter() -> None:
    with pytest.raises(InvalidFrontmatterError, match="There is no frontmatter"):
        read_frontmatter("---\nname: a\n---\n".encode("utf-16-le"))


def test_bytes_that_are_not_utf_8_are_replaced_and_noted_with_their_line() -> None:
    frontmatter = read_frontmatter(b"---\r\nname: a\r\ndescription: caf\xe9\r\n---\r\n")
    assert frontmatter.fields["description"] == "caf\ufffd"
    assert [(note.code, note.line) for note in frontmatter.notes] == [("encoding", 3)]
    cr_only = read_frontmatter(b"---\rname: a\rdescription: caf\xe9\r---\r")
    assert [(note.code, note.line) for note in cr_only.notes] == [("encoding", 3)]


@pytest.mark.parametrize("character", ["\0", "\x01", "\x1b", "\x7f", "\x80", "\x9f", "\ufffe", "\uffff"])
def test_a_character_yaml_refuses_is_shown_as_a_replacement_and_noted(character: str) -> None:
    frontmatter = read(f"name: a\ndescription: d{character}e")
    assert frontmatter.fields == {"name": "a", "description": "d\ufffde"}
    assert [(note.code, note.line) for note in frontmatter.notes] == [("control-character", 3)]


def test_every_character_of_unicode_can_stand_in_a_description() -> None:
    """Nothing that a file may hold makes YAML refuse it."""
    skipped = set(range(0xD800, 0xE000)) | {ord(char) for char in "\n\r#:"}
    for start in range(1, 0x110000, 0x1000):
        text = "".join(chr(code) for code in range(start, min(start + 0x1000, 0x110000)) if code not in skipped)
        assert "description" in read_frontmatter(f"---\ndescription: x{text}\n---\n".encode()).fields


@pytest.mark.parametrize("character", ["\x85", "\u2028", "\u2029"])
def test_only_a_line_feed_or_carriage_return_ends_a_line(character: str) -> None:
    frontmatter = read(f"name: a\ndescription: one{character}two: three\nlicense: MIT")
    assert frontmatter.fields == {"name": "a", "description": "one two: three", "license": "MIT"}
    assert frontmatter.lines == {"name": 2, "description": 3, "license": 4}


def test_a_control_character_written_as_an_escape_does_not_survive() -> None:
    frontmatter = read('name: "\\e[31mred\\0"\ndescription: "a: \\x1b" b')
    assert frontmatter.fields["name"] == "\ufffd[31mred\ufffd"
    assert "\x1b" not in str(frontmatter.fields["description"])


@pytest.mark.parametrize(
    "scalar", ["1.10", "1.0", "no", "yes", "on", "true", "2024-01-01", "0x10", "0o17", "1e3", "010", "12:30", "=", "<<"]
)
def test_a_scalar_stays_the_text_that_was_written(scalar: str) -> None:
    assert read(f"x: {scalar}").fields == {"x": scalar}


@pytest.mark.parametrize(
    ("scalar", "expected"),
    [
        ("null", None),
        ("~", None),
        ("", None),
        ("Null", None),
        ('"null"', "null"),
        ("'~'", "~"),
        ('""', ""),
        ("nULL", "nULL"),
    ],
)
def test_a_plain_null_is_nothing_and_a_quoted_one_is_text(scalar: str, expected: str | None) -> None:
    assert read(f"x: {scalar}").fields == {"x": expected}


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        pytest.param("x: |\n  a\n  b", "a\nb\n", id="literal"),
        pytest.param("x: >-\n  a\n  b", "a b", id="folded"),
        pytest.param("x: a\n  b", "a b", id="plain on two lines"),
        pytest.param("x: {a: 1, b: [2, 3]}", {"a": "1", "b": ["2", "3"]}, id="flow"),
        pytest.param('x: {"a": {"b": null}}', {"a": {"b": None}}, id="JSON"),
        pytest.param("x: !!python/object/apply:os.system ['true']", ["true"], id="tags construct nothing"),
        pytest.param("x: !!binary aGk=", "aGk=", id="binary stays text"),
        pytest.param("x: &a [1]\ny: *a", ["1"], id="alias"),
        pytest.param("x: |\n  a\n  ---\n  b", "a\n---\nb\n", id="dashes inside a value"),
        pytest.param("x: a --- b", "a --- b", id="dashes inside a line"),
    ],
)  # fmt: skip
def test_every_kind_of_value_is_read_as_text_lists_and_maps(block: str, expected: Value) -> None:
    frontmatter = read(block)
    assert (frontmatter.fields["x"], frontmatter.notes) == (expected, ())


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        pytest.param("description: Fixes issue #12 fast", "Fixes issue #12 fast", id="one line"),
        pytest.param("description:   Fixes issue #12", "Fixes issue #12", id="more spaces"),
        pytest.param("description: Fixes it's #12", "Fixes it's #12", id="with an apostrophe"),
        pytest.param("description: Fixes issue #12\n  and more", "Fixes issue #12 and more", id="first of two lines"),
        pytest.param("description: Fixes\n  issue #12 and more", "Fixes issue #12 and more", id="second of two lines"),
        pytest.param("description:\n  Fixes issue #12", "Fixes issue #12", id="on the next line"),
    ],
)
def test_a_hash_in_a_plain_description_is_text(block: str, expected: str) -> None:
    frontmatter = read(f"name: a\n{block}\nlicense: MIT")
    assert frontmatter.fields == {"name": "a", "description": expected, "license": "MIT"}
    assert [(note.code, note.line) for note in frontmatter.notes] == [("hash-in-text", 3)]


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        pytest.param('description:  "Fixes issue #12"', "Fixes issue #12", id="double quotes after two spaces"),
        pytest.param("description:  'Fixes issue #12'", "Fixes issue #12", id="single quotes"),
        pytest.param("description: |\n  Fixes issue #12", "Fixes issue #12\n", id="block"),
        pytest.param("description: a # a comment", "a", id="a comment with a space"),
        pytest.param("description: a\n  #comment", "a", id="a line that is a comment"),
        pytest.param("#description: x #y\ndescription: C#", "C#", id="no space before it"),
    ],
)
def test_a_hash_that_yaml_reads_right_is_left_alone(block: str, expected: str) -> None:
    frontmatter = read(block)
    assert (frontmatter.fields, frontmatter.notes) == ({"description": expected}, ())


def test_lines_are_those_of_the_file() -> None:
    frontmatter = read_frontmatter(b"\n\n---\nname: a\n# comment\ndescription: |\n  x\n  y\nversion: 1\n---\n")
    assert frontmatter.lines == {"name": 4, "description": 6, "version": 9}


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "There is no frontmatter"),
        (b"# Title\n", "There is no frontmatter"),
        (b"# Title\n---\nname: a\n---\n", "There is no frontmatter"),
        (b"----\nname: a\n----\n", "There is no frontmatter"),
        (b"---\nname: a\n", "The frontmatter is never closed"),
        (b"---", "The frontmatter is never closed"),
        (b"---\n- a\n- b\n---\n", "not made of 'key: value' lines"),
        (b"---\njust text\n---\n", "not made of 'key: value' lines"),
        (b"---\nx: " + b"a" * 300_000 + b"\n---\n", "has 300,004 characters; the limit is 262,144"),
    ],
)
def test_what_has_no_fields_is_an_error_with_line_and_remedy(raw: bytes, message: str) -> None:
    with pytest.raises(InvalidFrontmatterError, match=message) as refused:
        read_frontmatter(raw)
    assert refused.value.line is not None
    assert refused.value.remedy


def test_yaml_that_no_repair_can_help_is_an_error_with_line_and_column() -> None:
    with pytest.raises(InvalidYAMLError, match="The frontmatter is not valid YAML") as refused:
        read("\n[a, b")
    assert refused.value.line is not None
    assert refused.value.column is not None
    assert refused.value.remedy


def test_an_empty_block_has_no_fields() -> None:
    assert read_frontmatter(b"---\n---\nBody") == Frontmatter({}, "Body", {}, ())


SMALL_BOMB = "k: [&a [x,x,x,x,x,x,x,x,x],&b [*a,*a,*a,*a,*a,*a],&c [*b,*b,*b,*b], *c,*c]\n"
NESTED = "\n".join("  " * depth + f"k{depth}:" for depth in range(30))
ODD_KEYS = ",".join("? [x] : y" for _ in range(3000))
BILLION = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 10)}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(BILLION, id="a billion aliases"),
        pytest.param("a: &a [*a]", id="an alias of itself in a list"),
        pytest.param("a: &a {b: *a}", id="an alias of itself in a map"),
        pytest.param("x: &a " + "b" * 100_000 + "\ny: [" + "*a," * 9_000 + "]", id="long text, many times"),
        pytest.param("x: &a {" + "k" * 1_000 + ": v}\ny: [" + "*a," * 4_000 + "]", id="long key, many times"),
        pytest.param("[" * 200_000, id="brackets"),
        pytest.param("a: " + "{b: " * 50_000, id="braces"),
        pytest.param("- " * 100_000, id="dashes"),
        pytest.param("a:\n  " + "- " * 100_000, id="dashes below a key"),
        pytest.param("? " * 100_000, id="question marks"),
        pytest.param("\n".join(" " * depth + "a:" for depth in range(600)), id="indentation"),
        pytest.param("x: y: z\n" + "a:\n" * 80_000, id="entries to repair"),
        pytest.param("".join(f"k{number}: v\n" for number in range(20_000)), id="keys"),
        pytest.param("x: y: z\n" + SMALL_BOMB * 500, id="a small bomb in each repaired entry"),
        pytest.param("a: b: c\n" * 30_000, id="entries that are only text"),
    ],
)  # fmt: skip
def test_what_multiplies_or_nests_too_much_is_refused(block: str) -> None:
    with pytest.raises(InvalidYAMLError, match=r"more than 10,000 values or 32 levels") as refused:
        read(block)
    assert refused.value.line is not None
    assert refused.value.remedy == "Write it without aliases and deep nesting."


def test_the_memory_of_a_bomb_stays_small() -> None:
    tracemalloc.start()
    try:
        with pytest.raises(InvalidYAMLError, match="more than"):
            read("x: &a " + "b" * 100_000 + "\ndescription: [" + "*a," * 9_000 + "]")
        assert tracemalloc.get_traced_memory()[1] < 50_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("opener", ["[", "{a: ", "- ", "? ", "a:\n  - - ", ": "])
def test_a_hundred_thousand_levels_do_not_bring_the_process_down(opener: str) -> None:
    """In a process of its own: the C parser would take the interpreter with it."""
    code = (
        "import sys; from skillkit import SkillParsingError; from skillkit.core.models.frontmatter import read_frontmatter\n"
        "try: read_frontmatter(('---\\nx: y\\nz: ' + sys.argv[1] * 100_000)[:250_000].encode() + b'\\n---\\n')\n"
        "except SkillParsingError: pass\n"
        "print('alive')"
    )
    done = subprocess.run([sys.executable, "-c", code, opener], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "alive\n")


@pytest.mark.parametrize(
    "block",
    [
        pytest.param("x: y: z\na" + " " * 250_000 + "b", id="spaces after a word"),
        pytest.param("x: y: z\na" + "\t" * 120_000 + "b", id="tabs after a word"),
        pytest.param("x: y: z\n" + "a b " * 60_000, id="words"),
        pytest.param("description:" + " " * 250_000 + "# ", id="spaces before a hash"),
        pytest.param("description: a" + " #" * 120_000, id="hashes"),
        pytest.param("description: a" + " " * 250_000 + "#", id="spaces inside a description"),
        pytest.param("description: a\n" + "  b # c\n" * 30_000, id="comments in a description"),
        pytest.param("#" * 250_000, id="one comment"),
        pytest.param("#\n" * 125_000, id="comments"),
        pytest.param("a" + ":" * 250_000, id="colons"),
        pytest.param("a: " * 80_000, id="colons and spaces"),
        pytest.param("-" * 250_000, id="a long line of dashes"),
        pytest.param("---x\n" * 50_000, id="glued fences"),
        pytest.param(" ---\n" * 50_000, id="indented fences"),
        pytest.param("\n" * 250_000, id="line ends"),
        pytest.param(" " * 250_000, id="spaces"),
        pytest.param("a: '" + "'" * 250_000, id="quotes"),
        pytest.param('a: "' + '\\"' * 120_000, id="escapes"),
        pytest.param("a: " + "*" * 250_000, id="stars"),
        pytest.param("%" * 250_000, id="percent signs"),
        pytest.param("a: |\n" + " x\n" * 80_000, id="block text"),
        pytest.param("]" * 250_000, id="closing brackets"),
        pytest.param("x: {" + ",".join("? [a] : b" for _ in range(20_000)) + "}", id="odd keys"),
        pytest.param(f"x: &a {{{ODD_KEYS}}}\ny: [" + "*a," * 3000 + "]", id="odd keys, many times"),
        pytest.param(NESTED + "\n" + ("  " * 31 + "a: b: c\n") * 2_000, id="nested repairs"),
        pytest.param("<<<<<<< a\n" * 20_000, id="conflict marks"),
        pytest.param("x: y: z\n" + "é\u2028" * 80_000, id="line separators"),
    ],
)  # fmt: skip
def test_hostile_text_ends_quickly(block: str) -> None:
    """Each takes well under a second; the suite's timeout is the limit, and a quadratic reader hits it."""
    try:
        frontmatter = read_frontmatter(f"---\n{block}\n---\nBody".encode())
    except SkillParsingError:
        return
    assert len(frontmatter.notes) <= NOTE_LIMIT + 1


@pytest.mark.slow
def test_ten_megabytes_without_a_closing_fence_end_quickly() -> None:
    for unit in (b" ", b"-", b"\n", b"--- x\n", b"---"):
        with pytest.raises(SkillParsingError, match=r".+"):
            read_frontmatter(b"---\n" + (unit * 10_000_000)[:10_000_000])


def test_notes_are_listed_up_to_a_limit() -> None:
    frontmatter = read("x: y: z\n" + "a: 1\n" * 500)
    assert len(frontmatter.notes) == NOTE_LIMIT + 1
    assert frontmatter.notes[-1].code == "more"


def test_duplicate_keys_are_noted_and_the_last_one_counts() -> None:
    frontmatter = read("name: a\nname: b\nm: {x: 1, x: 2}")
    assert frontmatter.fields == {"name": "b", "m": {"x": "2"}}
    assert [(note.code, note.line) for note in frontmatter.notes] == [("duplicate-key", 3), ("duplicate-key", 4)]


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (b"---\na: b\n---\n", True),
        (b"---\r\na: b\r\n---\r\n", True),
        (b"--- \na: b\n---\t\n", True),
        (b"---\na: b\n", False),
        (b"---\na: b\n----\n", False),
        (b"---\na: b ---\n", False),
        (b"", False),
    ],
)
def test_a_head_is_closed_by_two_whole_fence_lines(head: bytes, expected: bool) -> None:
    assert is_closed(head) is expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, ""),
        ("  a\n b\t c ", "a b c"),
        (["a", ["b", None]], "a, b, "),
        ({"a": "1", "b": ["2"]}, "a: 1, b: 2"),
    ],
)
def test_any_value_has_one_line_of_text(value: Value, expected: str) -> None:
    assert text_of(value) == expected
