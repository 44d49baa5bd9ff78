"""What a person sees: text that flows, and outcomes on lines of their own."""

from __future__ import annotations

import io

import pytest

from skillkit.chat.events import Note, ToolOutcome
from skillkit.chat.screen import Screen
from skillkit.integrations.inline import CommandOutcome, Text
from skillkit.integrations.inline.syntax import Command

SPOKE = CommandOutcome(Command("effect", "%{say a}", "say a"), "ok")
LINE = "  [say a: ok]\n"


class Terminal(io.StringIO):
    """Says that it is one."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    return Terminal()


def test_an_outcome_stands_below_the_line_its_command_was_in(terminal: Terminal) -> None:
    screen = Screen(terminal)
    for event in (Text("Listen: "), SPOKE, Text("a.\nAnd"), Text(" b."), Note("Told.")):
        screen.show(event)
    screen.finish()
    assert terminal.getvalue() == f"Listen: a.\n{LINE}And b.\n  Told.\n"


def test_a_line_goes_on_below_a_question(terminal: Terminal) -> None:
    screen = Screen(terminal)
    screen.show(Text("Listen: "))
    screen.make_room()
    terminal.write("May it? 1\n")
    screen.note_new_line()
    for event in (SPOKE, Text(" le chat.")):
        screen.show(event)
    screen.finish()
    assert terminal.getvalue() == f"Listen: \nMay it? 1\n{LINE}le chat.\n"


def test_waiting_is_shown_and_taken_away(terminal: Terminal) -> None:
    screen = Screen(terminal)
    screen.wait()
    screen.show(Text("I look."))
    screen.wait()
    screen.show(Text("Hello."))
    screen.finish()
    assert terminal.getvalue() == "…\r\x1b[KI look.\n…\r\x1b[KHello.\n"


def test_in_a_pipe_remarks_go_elsewhere_and_nothing_moves() -> None:
    out, remarks = io.StringIO(), io.StringIO()
    screen = Screen(out, remarks)
    screen.wait()
    for event in (Text("A"), SPOKE, Text("B\n"), ToolOutcome("t\x1b[2J", "{}", "refused", '{"message": "no\\nway"}')):
        screen.show(event)
    screen.finish()
    assert out.getvalue() == "AB\n"
    assert remarks.getvalue() == f"{LINE}  [t\\x1b[2J: not run: no way]\n"
