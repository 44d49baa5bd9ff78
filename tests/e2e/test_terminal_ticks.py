"""What a person ticks on a real terminal, by keys alone."""

from __future__ import annotations

import pytest
from support.screens import drawn
from support.terminals import Terminal, question, script_prompt

from skillkit.core.values.needs import Need
from skillkit.core.values.questions import Tick

TICKS = (
    Tick("again", "the same again: the key OLD_KEY"),
    Tick("secret:WEATHER_API_KEY", "the key WEATHER_API_KEY"),
    Tick("write:/project/.git", "read and write /project/.git", "Git obeys it."),
)
NEEDS = (
    Need(
        "secret",
        "WEATHER_API_KEY",
        "declared",
        "SKILL.md:3",
        remedy="skillkit grant pdf-tools --secret WEATHER_API_KEY",
    ),
    Need("program", "git", "inferred", "scripts/extract.py:2", is_met=True),
)
ASKED = question(script_prompt(needs=NEEDS, had=("the key OLD_KEY",)), grants=TICKS)


def test_needs_and_ticks_are_shown_and_none_is_ticked() -> None:
    with Terminal(columns=100, rows=60) as terminal:
        asking = terminal.ask(ASKED)
        screen = drawn(terminal.text, columns=100, rows=60)
        terminal.send("1")
        answer = asking.outcome()
    assert (answer["option_id"], answer["grants"], answer["reason"]) == ("yes_once", [], "")
    shown = "\n".join(screen)
    assert "lacks secret WEATHER_API_KEY (declared, SKILL.md:3): skillkit grant pdf-tools" in " ".join(shown.split())
    assert "has   program git" in shown
    assert "had   before it changed: the key OLD_KEY" in shown
    for line in (
        "[ ] a  the same again",
        "[ ] b  the key WEATHER_API_KEY",
        "[ ] c  read and write /project/.git (Git obeys",
    ):
        assert line in shown


@pytest.mark.parametrize("columns", [24, 40, 60])
def test_a_narrow_terminal_tells_every_key_and_ticks_where_the_box_is(columns: int) -> None:
    with Terminal(columns=columns, rows=60) as terminal:
        asking = terminal.ask(ASKED)
        before = drawn(terminal.text, columns=columns, rows=60)
        terminal.send("b")
        terminal.wait_for("Ticked: b.")
        after = drawn(terminal.text, columns=columns, rows=60)
        terminal.send("1")
        assert asking.outcome()["grants"] == ["secret:WEATHER_API_KEY"]
    told = " ".join("\n".join(before).split())
    assert "v source, d changes, w walls, n why not." in told
    assert "Esc is no." in told
    assert max(map(len, before)) <= columns
    assert [line for line in after if "[x]" in line] == [
        line.replace("[ ] b", "[x] b") for line in before if "[ ] b" in line
    ]


def test_keys_toggle_and_the_screen_shows_it() -> None:
    with Terminal(columns=100, rows=60) as terminal:
        asking = terminal.ask(ASKED)
        terminal.send("b")
        terminal.wait_for("Ticked: b.")
        terminal.send("a")
        terminal.wait_for("Ticked: a, b.")
        screen = drawn(terminal.text, columns=100, rows=60)
        assert [line.split("│ ")[1][:6] for line in screen if "] a" in line or "] b" in line or "] c" in line] == [
            "[x] a ",
            "[x] b ",
            "[ ] c ",
        ]
        terminal.send("a")
        terminal.wait_for("Ticked: b.", times=2)
        terminal.send("2")
        answer = asking.outcome()
    assert (answer["option_id"], answer["grants"]) == ("yes_in_session", ["secret:WEATHER_API_KEY"])


@pytest.mark.parametrize("keys", ["3", "\x1b"])
def test_a_no_opens_nothing_whatever_is_ticked(keys: str) -> None:
    with Terminal(columns=100, rows=60) as terminal:
        asking = terminal.ask(ASKED)
        terminal.send("b")
        terminal.wait_for("Ticked: b.")
        terminal.send(keys)
        answer = asking.outcome()
    assert (answer["option_id"], answer["grants"]) == ("no", [])


def test_a_no_with_a_reason_is_typed_and_can_be_given_up() -> None:
    with Terminal(columns=100, rows=60) as terminal:
        asking = terminal.ask(ASKED)
        terminal.send("n")
        terminal.wait_for("No, because: _")
        terminal.send("\x1b")
        terminal.wait_for("Nothing chosen yet.")
        terminal.send("r")
        terminal.wait_for("No, because: _", times=2)
        terminal.send("use last yeaz")
        terminal.wait_for("use last yeaz_")
        terminal.send("\x7fr's filé\r")
        answer = asking.outcome()
    assert (answer["option_id"], answer["reason"], answer["grants"]) == ("no", "use last year's filé", [])


def test_ticks_work_where_they_are_out_of_sight_and_on_a_plain_terminal() -> None:
    for term, rows in (("xterm-256color", 8), ("dumb", 60)):
        with Terminal(columns=80, rows=rows) as terminal:
            terminal.environment["TERM"] = term
            asking = terminal.ask(ASKED)
            terminal.send("c")
            terminal.wait_for("Ticked: c.")
            terminal.send("1")
            answer = asking.outcome()
        assert answer["grants"] == ["write:/project/.git"], term
