"""What a script prints, on the way to a terminal."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pexpect
import pytest
from support.skill_folders import skill_folder

from skillkit.cli.run import TerminalText, host_remark
from skillkit.core.values.hosts import HostUse

# Each would be obeyed by some terminal: clipboard, title, cursor, clearing, a question it answers, the second screen.
OBEYED = [
    "\x1b]52;c;cm0gLXJm\x07",
    "\x1b]0;title\x07",
    "\x1b[2A",
    "\x1b[2J",
    "\x1b[6n",
    "\x1b[?1049h",
    "\x9b2J",
    "\x1bc",
    "\b",
]


def as_shown(text: str, size: int) -> str:
    data, tame = text.encode(), TerminalText()
    parts = [tame.of(data[at : at + size]) for at in range(0, len(data), size)]
    return "".join(parts) + tame.end()


@pytest.mark.parametrize("size", [1, 3, 100])
@pytest.mark.parametrize("sequence", OBEYED)
def test_nothing_but_colours_reaches_a_terminal(sequence: str, size: int) -> None:
    shown = as_shown(f"before{sequence}after\n", size)
    assert all(char.isprintable() or char == "\n" for char in shown)
    assert shown.startswith("before\\x")
    assert shown.endswith("after\n")


@pytest.mark.parametrize("size", [1, 3, 100])
def test_text_colours_and_progress_stay(size: int) -> None:
    text = "10 %\r20 %\r\n\ttab \x1b[1;31mrot: ä€👩‍💻\x1b[0m\n"
    assert as_shown(text, size) == text + "\x1b[0m"


def test_what_is_cut_off_at_the_end_is_shown_and_the_line_is_ended() -> None:
    assert as_shown("half \x1b[3", 4) == "half \\x1b[3\n"
    assert as_shown("", 4) == ""


def test_on_a_terminal_it_is_tame_and_in_a_pipe_it_is_exact(tmp_path: Path) -> None:
    line = "printf '\\033[31mred\\033]0;title\\007'\n"
    skills = skill_folder(tmp_path / "skills", "demo", files={"scripts/say.sh": line}).parent
    words = ["-m", "skillkit", "run", "demo", "say", "--policy", "trusted", "--skills", str(skills)]
    words += ["--state-dir", str(tmp_path / "state")]
    child = pexpect.spawn(sys.executable, words, encoding="utf-8", timeout=60)
    seen = child.read()
    child.close()
    assert seen == "\x1b[31mred\\x1b]0;title\\x07\x1b[0m\r\n"
    piped = subprocess.run([sys.executable, *words], capture_output=True, check=True)
    assert piped.stdout == b"\x1b[31mred\x1b]0;title\x07"


@pytest.mark.parametrize(
    ("refused", "told"),
    [
        ("No grant opens it.", "refused a.example.com:443: No grant opens it."),
        ("a.example.com:443 cannot be reached: no route", "a.example.com:443 cannot be reached: no route"),
    ],
)
def test_a_host_that_was_not_reached_is_named_once(refused: str, told: str) -> None:
    assert host_remark(HostUse("a.example.com:443", refused)) == told
