from __future__ import annotations

import time

import pytest
from support.inline_answers import events_of

from skillkit.integrations.inline.syntax import COMMAND_LIMIT_CHARACTERS, Command, InlineParser, Text


def bodies(text: str) -> list[str]:
    return [event.body for event in events_of(text) if isinstance(event, Command)]


@pytest.mark.parametrize(
    ("source", "kind", "body"),
    [
        pytest.param('%{say "hello world"}', "effect", 'say "hello world"', id="effect"),
        pytest.param("!{scripts/lookup.py term}", "capture", "scripts/lookup.py term", id="capture"),
        pytest.param('!{! say "hello"}', "effect", 'say "hello"', id="spelled-out"),
        pytest.param('!{x {"a": {"b": "}"}}}', "capture", 'x {"a": {"b": "}"}}', id="json"),
        pytest.param("%{x '}' \"}\" \\}}", "effect", "x '}' \"}\" \\}", id="quoted-braces"),
        pytest.param('%{x "a \\" } b"}', "effect", 'x "a \\" } b"', id="escaped-quote"),
        pytest.param("%{x\n  a\n  b}", "effect", "x\n  a\n  b", id="lines"),
    ],
)
def test_a_command_ends_at_its_own_brace(source: str, kind: str, body: str) -> None:
    (before, command, after) = events_of(f"a {source} b")
    assert (before, after) == (Text("a "), Text(" b"))
    assert isinstance(command, Command)
    assert (command.kind, command.source, command.body) == (kind, source, body)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("`%{x}`", id="span"),
        pytest.param("``a ` %{x}``", id="long-span"),
        pytest.param("a `b\n%{x} c`", id="span-over-lines"),
        pytest.param("```\n%{x}\n```\n", id="fence"),
        pytest.param("~~~ sh\n%{x}\n```\n%{x}\n~~~\n", id="tildes"),
        pytest.param("``` %{x}\n%{x}\n", id="never-closed"),
        pytest.param("````\n```\n%{x}\n````\n", id="shorter-marks-inside"),
        pytest.param("```\n``` no end\n%{x}\n", id="closing-marks-alone"),
        pytest.param("- ```\n  %{x}\n  ```\n", id="in-a-list"),
        pytest.param("> ```\n> %{x}\n> ```\n", id="in-a-quotation"),
        pytest.param("%{x", id="unterminated"),
        pytest.param("%{x 'a}", id="open-quote"),
        pytest.param("%{} !{} !{!} %{ \n }", id="names-nothing"),
        pytest.param("%{x\n\n}", id="empty-line"),
        pytest.param("100% {x} !x{y} % {", id="no-opener"),
    ],
)
def test_this_is_text_however_it_comes(text: str) -> None:
    assert events_of(text) == [Text(text)]
    assert events_of(*text) == [Text(text)]


@pytest.mark.parametrize(
    ("text", "commands"),
    [
        pytest.param("`a` %{x}", ["x"], id="after-a-span"),
        pytest.param("it`s\n\n%{x}", ["x"], id="stray-backtick"),
        pytest.param(r"\` %{x}", ["x"], id="escaped-backtick"),
        pytest.param("```\n%{a}\n```\n%{x}", ["x"], id="after-a-fence"),
        pytest.param("```a``` %{x}", ["x"], id="marks-on-one-line"),
        pytest.param("a ```\n%{x}", [], id="marks-inside-a-line"),
        pytest.param("%{don't do it}\n\n%{x}", ["x"], id="after-an-open-quote"),
        pytest.param("%{a}!{b}", ["a", "b"], id="side-by-side"),
        pytest.param("%{a `b` c} %{x}", ["a `b` c", "x"], id="backticks-inside"),
    ],
)
def test_commands_outside_code_are_found(text: str, commands: list[str]) -> None:
    assert bodies(text) == commands


def test_a_backslash_makes_it_text_and_goes_away() -> None:
    assert events_of(r"\%{x} \!{y} %{z}") == [Text("%{x} !{y} "), Command("effect", "%{z}", "z")]


def test_commands_in_what_was_no_command_do_not_run() -> None:
    text = 'see %{a "%{b} !{c}'
    assert events_of(text) == [Text(text)]


def test_a_fence_in_what_was_no_command_is_seen() -> None:
    assert bodies("%{a '\n```\n\n%{x}\n```\n%{y}") == ["y"]


def test_text_is_released_before_the_command_ends() -> None:
    parser = InlineParser()
    assert parser.feed("Hello %") == [Text("Hello ")]
    assert parser.feed("{say") == []
    assert parser.feed(" hi} and") == [Command("effect", "%{say hi}", "say hi"), Text(" and")]


def test_a_sign_between_chunks_is_neither_lost_nor_leaked() -> None:
    parser = InlineParser()
    assert parser.feed("100%") == [Text("100")]
    assert parser.feed(" sure") == [Text("% sure")]
    assert parser.feed("!") == []
    assert parser.finish() == [Text("!")]


def test_a_command_that_is_too_long_is_text() -> None:
    longest = "%{x " + "a" * (COMMAND_LIMIT_CHARACTERS - 5) + "}"
    assert len(longest) == COMMAND_LIMIT_CHARACTERS
    assert len(bodies(longest)) == 1
    longer = longest.replace("x ", "xa ")
    assert events_of(longer) == [Text(longer)]
    assert events_of(longer[:7], longer[7:]) == [Text(longer)]


def test_a_finished_parser_is_as_new() -> None:
    parser = InlineParser()
    parser.feed("```\n%{a")
    parser.finish()
    assert parser.feed("%{x}") == [Command("effect", "%{x}", "x")]


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["%{", "`", "\\", "~", "%{\n\n", '%{"', "```\n", "!{{", "> "])
def test_no_text_makes_reading_slow(piece: str) -> None:
    """Each would take minutes if something were read again and again."""
    text = piece * (300_000 // len(piece))
    started = time.monotonic()
    events_of(text)
    events_of(*text[:60_000])
    assert time.monotonic() - started < 30
