"""Text of a skill that wants to be somebody else, on a real terminal: it reaches the person, and nothing but them."""

from __future__ import annotations

import re
import unicodedata

import pytest
from support.terminals import Asking, Terminal, question, script_prompt, shown, without_controls

from skillkit.core.values.questions import FileChange, Prompt, PromptCommand, RiskFlag

ATTACKS = {
    "colours": "\x1b[31mFAKE\x1b[0m",
    "clears the screen": "FAKE\x1b[2J\x1b[H",
    "window title": "FAKE\x1b]0;owned\x07",
    "clipboard": "FAKE\x1b]52;c;cm0gLXJmIH4=\x1b\\",
    "eight-bit controls": "FAKE\x9b31m\x9d0;owned\x9c",
    "hyperlink": "FAKE\x1b]8;;https://evil.example\x1b\\safe\x1b]8;;\x1b\\",
    "answers by report": "FAKE\x1b[6n\x1b[c",
    "overwrites": "FAKE rm -rf ~\rprint('hello')          ",
    "erases": "FAKE" + "\x08" * 40 + "  1  Yes once",
    "fake options": "FAKE\n  1  Yes once             this time only\n  2  FAKE Yes\n\nPress 1, 2 or 3. FAKE",
    "fake button": "FAKE [ Approve ]\n┌──────────┐\n│ FAKE Yes │\n└──────────┘",
    "fake label": "FAKE\n  Walls       │ FAKE none needed\nApproved once: FAKE",
    "bidirectional": "FAKE \u202e\u2066 reversed \u2069\u202c \u200f\u061c",
    "zero width": "FA\u200bKE \u2060\ufeff\u00ad\U000e0041 FAKE",
    "other line ends": "FAKE\u2028  1  FAKE\u2029  2  FAKE\x0b\x0c\x85  3  FAKE",
    "combining pile": "FAKE e" + "\u0301" * 300 + "\n\u0301\u0301 FAKE",
    "long line": "FAKE " + "A" * 5000 + "  1  Yes once FAKE",
    "wide line": "FAKE " + "漢" * 500 + "  1  Yes once FAKE",
    "blank letters": "FAKE \u3164\u115f\uffa0\u2800 FAKE",
    "lone surrogate": "FAKE \udcff",
}
OUR_OPTIONS = ["  1  Yes once", "  2  Yes in this session", "  3  No"]
HIDDEN = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


def hostile_prompt(text: str) -> Prompt:
    """The text wherever a skill or a caller can put one."""
    return script_prompt(
        skill=text,
        origin=text,
        reasons=(text,),
        risks=(RiskFlag("network", text, text, 1), RiskFlag(text, "FAKE", "FAKE", 1)),
        changes=(FileChange("changed", text, f"@@ -1 +1 @@\n+{text}"), FileChange(text, "FAKE", "")),
        commands=(PromptCommand(text, ("--name", text), text, text), PromptCommand("other", (), "", text)),
        walls=(text,),
        digest=text,
    )


def columns_of(line: str) -> int:
    """As a terminal counts that knows wide characters."""
    return sum(0 if unicodedata.combining(char) else 1 + (unicodedata.east_asian_width(char) in "WF") for char in line)


@pytest.mark.parametrize("width", [50, 80])
@pytest.mark.parametrize("name", ATTACKS)
def test_hostile_text_is_shown_harmlessly(name: str, width: int) -> None:
    from skillkit.present.request import diff_text, prompt_text, source_text

    prompt = hostile_prompt(ATTACKS[name])
    for text in (prompt_text(question(prompt), width), source_text(prompt, width), diff_text(prompt, width)):
        assert {char for char in text if unicodedata.category(char) in HIDDEN} <= {"\n"}
        assert not re.search("[\u0300-\u036f]{5}", text)
        lines = text.split("\n")
        assert [
            line for line in lines if "FAKE" in line and not re.match(r" {2,}│ |  [A-Z][a-z ]{3,10}\d? +│ ", line)
        ] == []
        assert max(map(columns_of, lines)) <= width
        assert "FAKE" in text


@pytest.mark.parametrize("name", ATTACKS)
def test_the_options_are_ours_and_stand_last(name: str) -> None:
    from skillkit.present.request import prompt_text

    lines = prompt_text(question(hostile_prompt(ATTACKS[name])), 80).split("\n")
    at_the_left = [line for line in lines if re.match(r" {0,4}\d", line)]
    assert [line[: len(ours)] for line, ours in zip(at_the_left, OUR_OPTIONS, strict=True)] == OUR_OPTIONS
    assert lines[-4:-1] == at_the_left


def test_what_reaches_the_terminal_moves_nothing_but_what_we_move() -> None:
    text = "\n".join(attack for name, attack in ATTACKS.items() if name != "lone surrogate")
    prompt = hostile_prompt(text)
    assert "\x1b" in prompt.commands[0].source
    with Terminal() as terminal:
        asking = terminal.ask(question(prompt))
        terminal.send("v")
        terminal.wait_for("q goes back")
        for _ in range(3):
            terminal.send(" ")
            terminal.read(0.2)
        terminal.send("q")
        terminal.wait_for_bytes("\x1b[?1049l")
        terminal.read(0.3)
        terminal.send("d")
        terminal.wait_for("Changes, 1 to")
        terminal.send("q")
        terminal.wait_for_bytes("\x1b[?1049l")
        assert terminal.press("3", asking)["option_id"] == "no"
        terminal.wait_for("Not approved: ")
    seen = without_controls(terminal.text)
    assert {char for char in seen if unicodedata.category(char) in HIDDEN} <= {"\n"}
    assert r"\x1b]52;c;" in seen
    # Only the line that tells the decision has a name of the skill's behind our own words, cut to one line.
    forged = [line for line in shown(terminal.text) if "FAKE" in line and "│" not in line]
    assert [line[:14] for line in forged] == ["Not approved: "]


def test_the_same_text_written_as_it_is_would_reach_the_terminal() -> None:
    with Terminal() as terminal:
        program = terminal.start(
            "import os, sys; tty = os.open(sys.argv[1], os.O_RDWR); os.write(tty, sys.stdin.readline().encode()); input()"
        )
        Asking(program).tell(ATTACKS["clipboard"])
        terminal.wait_for("52;c;")
        assert "\x1b]52;c;" in terminal.text
