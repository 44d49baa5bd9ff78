"""A question on a real terminal: what answers it, what does not, and how the terminal is left."""

from __future__ import annotations

import re
import signal
import termios
import time
from collections.abc import Callable

import pytest
from support.running import wait_for
from support.terminals import (
    READY,
    Asking,
    Terminal,
    as_line,
    asker_code,
    question,
    script_prompt,
    shown,
    without_controls,
)

from skillkit.approvers.screen import KEPT_BYTES
from skillkit.core.values.questions import FileChange, Option, PromptCommand, RiskFlag, Tick

Ending = Callable[[Terminal, Asking], object]


def send(keys: str) -> Ending:
    return lambda terminal, _: terminal.send(keys)


@pytest.mark.parametrize(
    ("keys", "option_id", "line"),
    [
        pytest.param("1", "yes_once", "Approved once: scripts/extract.py of pdf-tools", id="1"),
        pytest.param("2", "yes_in_session", "Approved in this session: scripts/extract.py of pdf-tools", id="2"),
        pytest.param("3", "no", "Not approved: scripts/extract.py of pdf-tools", id="3"),
        pytest.param("\x1b", "no", "Not approved: scripts/extract.py of pdf-tools", id="Esc"),
        pytest.param("\x1b\x1b", "no", "Not approved: scripts/extract.py of pdf-tools", id="Esc twice"),
        pytest.param("\x03", "no", "Not approved: scripts/extract.py of pdf-tools", id="Ctrl-C"),
        pytest.param("\x04", "no", "Not approved: scripts/extract.py of pdf-tools", id="Ctrl-D"),
        pytest.param("\x1c", "no", "Not approved: scripts/extract.py of pdf-tools", id="Ctrl-backslash"),
    ],
)
def test_one_key_answers_and_a_line_stays_that_says_so(keys: str, option_id: str, line: str) -> None:
    with Terminal() as terminal:
        asking = terminal.ask(question())
        terminal.send(keys)
        answer = asking.outcome()
        assert (answer["option_id"], answer["channel"], answer["request_id"]) == (option_id, "terminal", "request-1")
        terminal.wait_for(line)
        terminal.wait_for_bytes("\r\n\x1b[?2004l")


# The last 1 would be read alone.
MORE_THAN_ONE_READ = "x" * KEPT_BYTES + "1"
NO_ANSWERS = {
    "keys": ["\r", "\n", " ", "y", "q", "4", "0", "\t", "\x7f"],
    "sequences": ["\x1b[A", "\x1bOB", "\x1b1", "\x1b[1;5C", "\x1b[99z", "\x1b[I"],
    "bursts": ["11", "1\r", "x1", "3\x1b[A1", "\x1b[200~1\x1b[201~", "é", "1" * 3000, MORE_THAN_ONE_READ],
}


@pytest.mark.parametrize("kind", NO_ANSWERS)
def test_anything_else_is_no_answer(kind: str) -> None:
    with Terminal() as terminal:
        asking = terminal.ask(question())
        for keys in NO_ANSWERS[kind]:
            terminal.send(keys)
            assert not asking.has_answer(0.4), keys
        assert terminal.press("1", asking)["option_id"] == "yes_once"


def test_a_key_that_means_nothing_gets_a_hint_and_an_arrow_gets_none() -> None:
    with Terminal() as terminal:
        terminal.ask(question())
        terminal.send("\x1b[A")
        assert terminal.read(0.5) == ""
        terminal.send("\r")
        terminal.wait_for("Nothing chosen yet. Press 1, 2 or 3. Esc is no.")


def test_what_was_typed_before_the_question_is_dropped() -> None:
    with Terminal() as terminal:
        terminal.send("1\n1")
        assert wait_for(lambda: terminal.waiting_bytes() > 0)
        asking = terminal.ask(question())
        assert not asking.has_answer(0.5)
        terminal.send("3")
        assert asking.outcome()["option_id"] == "no"


def test_what_is_typed_while_the_question_appears_is_dropped() -> None:
    with Terminal() as terminal:
        asking = terminal.ask(question(), ready="May this script run?")
        terminal.send("1")
        terminal.wait_for(READY)
        assert not asking.has_answer(0.5)
        terminal.send("3")
        assert asking.outcome()["option_id"] == "no"


def test_it_asks_from_any_thread() -> None:
    with Terminal() as terminal:
        ask = "thread = threading.Thread(target=asked, args=(line,))\nthread.start()\nthread.join()"
        asking = terminal.ask(question(), ask=ask)
        terminal.send("2")
        assert asking.outcome()["option_id"] == "yes_in_session"


def test_a_question_with_other_options_is_answered_by_their_digits() -> None:
    request = question(title="Which one?", options=(Option("red", "Red"), Option("blue", "Blue")), context={})
    with Terminal() as terminal:
        asking = terminal.ask(request, ready="Press 1 or 2. Esc gives no answer.")
        terminal.send("2")
        assert asking.outcome()["option_id"] == "blue"
        terminal.wait_for("Blue: Which one?")


def test_escape_is_no_answer_where_no_is_not_offered() -> None:
    with Terminal() as terminal:
        asking = terminal.ask(question(options=(Option("red", "Red"),), context={}), ready="Press 1.")
        terminal.send("\x1b")
        assert "dismissed" in asking.outcome()["unavailable"]


def cancelled(_: Terminal, asking: Asking) -> None:
    asking.tell("cancel")


def interrupted(_: Terminal, asking: Asking) -> None:
    asking.program.send_signal(signal.SIGINT)


def left_from_the_pager(terminal: Terminal, asking: Asking) -> None:
    terminal.send("v")
    terminal.wait_for("q goes back")
    asking.tell("cancel")


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        pytest.param(send("1"), "option_id", id="yes"),
        pytest.param(send("3"), "option_id", id="no"),
        pytest.param(send("\x1b"), "option_id", id="Esc"),
        pytest.param(send("\x03"), "option_id", id="Ctrl-C"),
        pytest.param(cancelled, "unavailable", id="withdrawn"),
        pytest.param(interrupted, "interrupted", id="interrupt"),
        pytest.param(left_from_the_pager, "unavailable", id="withdrawn while paging"),
        pytest.param(lambda terminal, _: terminal.resize(10, 10), "unavailable", id="too narrow"),
    ],
)
def test_the_terminal_is_left_as_it_was_found(end: Ending, expected: str) -> None:
    with Terminal() as terminal:
        before = terminal.modes()
        asking = terminal.ask(question())
        assert not terminal.modes()[3] & (termios.ECHO | termios.ICANON | termios.ISIG)
        end(terminal, asking)
        assert expected in asking.outcome()
        assert terminal.modes() == before
        terminal.read(0.2)
        for begun, ended in (("\x1b[?2004h", "\x1b[?2004l"), ("\x1b[?1049h", "\x1b[?1049l"), ("\x1b[?7l", "\x1b[?7h")):
            assert terminal.text.count(begun) == terminal.text.count(ended)


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        pytest.param(lambda _, asking: asking.tell("cancel"), "was withdrawn", id="cancelled"),
        pytest.param(lambda terminal, _: terminal.close(), "terminal was closed", id="closed"),
        pytest.param(lambda terminal, _: terminal.resize(12, 20), "12 columns wide", id="too narrow"),
    ],
)
def test_a_question_that_cannot_be_answered_any_more_is_unavailable(end: Ending, reason: str) -> None:
    with Terminal() as terminal:
        asking = terminal.ask(question())
        end(terminal, asking)
        assert reason in asking.outcome()["unavailable"]


def test_an_expired_question_is_unavailable() -> None:
    with Terminal() as terminal:
        asking = terminal.ask(question(expires_at=time.time() + 3), ready="")
        assert "expired" in asking.outcome()["unavailable"]
        terminal.send("1")
        assert not asking.has_answer(0.3)


def test_without_a_controlling_terminal_nobody_is_asked() -> None:
    with Terminal() as terminal:
        asking = terminal.ask(question(), with_terminal=False, ready="")
        assert "no controlling terminal" in asking.outcome()["unavailable"]
        assert terminal.read(0.2) == ""


IN_THE_BACKGROUND = """
import subprocess
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, process_group=0)
os.tcsetpgrp(os.open(sys.argv[1], os.O_RDWR), other.pid)
"""


def test_in_the_background_nobody_is_asked() -> None:
    with Terminal() as terminal:
        ask = "asked(line)\nother.communicate()"
        asking = terminal.ask(question(), prepare=IN_THE_BACKGROUND, ask=ask, ready="")
        told = asking.outcome()["unavailable"]
        assert "in the background" in told
        assert "fg" in told
        assert terminal.read(0.2) == ""


def test_moved_to_the_background_while_asking_the_question_ends_and_the_terminal_is_left_as_found() -> None:
    later = IN_THE_BACKGROUND.replace("os.tcsetpgrp", 'orders["move"] = lambda: os.tcsetpgrp')
    ask = "asked(line)\nother.communicate()"
    with Terminal() as terminal:
        before = terminal.modes()
        asking = terminal.ask(question(), prepare=later, ask=ask)
        asking.tell("move")
        assert "in the background" in asking.outcome()["unavailable"]
        assert terminal.modes() == before


# A shell in small: runs the asker in a group of its own, notices that it stops, and brings it back.
SHELL = """
import json, os, signal, subprocess, sys, termios
tty = os.open(sys.argv[1], os.O_RDWR)
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
before = termios.tcgetattr(tty)
restored = lambda: signal.signal(signal.SIGTTOU, signal.SIG_DFL)
asker = subprocess.Popen([sys.executable, "-c", os.environ["ASKER"], ""], process_group=0, preexec_fn=restored)
os.tcsetpgrp(tty, asker.pid)
_, status = os.waitpid(asker.pid, os.WUNTRACED)
print(json.dumps({"stopped": os.WIFSTOPPED(status), "restored": termios.tcgetattr(tty) == before}), flush=True)
os.tcsetpgrp(tty, asker.pid)
os.killpg(asker.pid, signal.SIGCONT)
asker.wait()
"""


def test_ctrl_z_stops_with_the_terminal_restored_and_goes_on_with_the_question() -> None:
    with Terminal() as terminal:
        terminal.environment["ASKER"] = asker_code()
        asking = Asking(terminal.start(SHELL))
        asking.tell(as_line(question()))
        terminal.wait_for(READY)
        terminal.send("\x1a")
        assert asking.outcome() == {"stopped": True, "restored": True}
        terminal.wait_for(READY, times=2)
        terminal.send("1")
        assert asking.outcome()["option_id"] == "yes_once"


TWO = """
import subprocess
for name in ("first", "second"):
    environment = {**os.environ, "SKILLKIT_STATE_DIR": os.environ["SKILLKIT_STATE_DIR"] + SUFFIX}
    asker = subprocess.Popen([sys.executable, "-c", os.environ["ASKER"], ""], stdin=subprocess.PIPE, text=True, env=environment)
    asker.stdin.write(line.replace("pdf-tools", name))
    asker.stdin.flush()
"""


def two_askers(terminal: Terminal, suffix: str) -> Asking:
    terminal.environment["ASKER"] = asker_code()
    return terminal.ask(question(), ask=TWO.replace("SUFFIX", suffix))


def test_two_processes_on_one_terminal_ask_one_after_the_other() -> None:
    with Terminal() as terminal:
        asking = two_askers(terminal, '""')
        terminal.read(1.5)
        assert without_controls(terminal.text).count("May this script run?") == 1
        terminal.send("1")
        assert asking.outcome()["option_id"] == "yes_once"
        terminal.wait_for(READY, times=2)
        terminal.send("3")
        assert asking.outcome()["option_id"] == "no"
        terminal.wait_for("Not approved")
        order = re.findall(r"May this script run\?|Approved once|Not approved", without_controls(terminal.text))
        assert order == ["May this script run?", "Approved once", "May this script run?", "Not approved"]


def test_processes_that_share_no_lock_would_mix_their_questions() -> None:
    with Terminal() as terminal:
        asking = two_askers(terminal, "name")
        terminal.wait_for("May this script run?", times=2)
        assert not asking.has_answer(0)


def test_two_threads_of_one_process_ask_one_after_the_other() -> None:
    ask = "threads = [threading.Thread(target=asked, args=(line,)) for _ in range(2)]\n"
    ask += "[thread.start() for thread in threads]\n[thread.join() for thread in threads]"
    with Terminal() as terminal:
        asking = terminal.ask(question(), ask=ask)
        terminal.read(1)
        assert without_controls(terminal.text).count("May this script run?") == 1
        terminal.send("1")
        terminal.wait_for(READY, times=2)
        terminal.send("2")
        assert [asking.outcome()["option_id"], asking.outcome()["option_id"]] == ["yes_once", "yes_in_session"]


def test_a_narrower_window_gets_the_question_anew() -> None:
    with Terminal(columns=100) as terminal:
        asking = terminal.ask(question())
        terminal.resize(60, 40)
        terminal.wait_for(READY, times=2)
        again = shown(terminal.text.rpartition("May this script run?")[2])
        assert max(map(len, again)) <= 60
        terminal.send("2")
        assert asking.outcome()["option_id"] == "yes_in_session"


@pytest.mark.parametrize("is_new", [True, False], ids=["first run", "changed"])
@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (100, 40)])
def test_a_person_sees_all_that_they_must_know_without_scrolling(columns: int, rows: int, is_new: bool) -> None:
    """Counted in rows of a real terminal: from the heading to the line of keys, all on one screen."""
    source = "".join(f"print({number})\n" for number in range(300))
    added = "@@ -1,9 +1,99 @@\n" + "".join(f" same\n+added {number}\n" for number in range(90))
    kinds = ("delete", "network", "process", "credentials")
    prompt = script_prompt(
        commands=(PromptCommand("scripts/report.py", ("data.csv", "--top", "5"), "", source, "python3"),),
        changes=None if is_new else (FileChange("changed", "scripts/report.py", added, 0, 90),),
        risks=tuple(
            RiskFlag(
                kind,
                f"Does {kind}. Told in a sentence as long as the longest of real ones.",
                "scripts/report.py",
                at,
                60,
            )
            for at, kind in enumerate(kinds, 1)
        ),
        walls=tuple(f"Sentence {number} about walls, of which there are as many as real ones." for number in range(9)),
    )
    with Terminal(columns=columns, rows=rows) as terminal:
        asking = terminal.ask(question(prompt, grants=(Tick("host:a.example", "the host a.example"),)))
        seen = shown(terminal.text)[-rows:]
        at = {words: next((row for row, line in enumerate(seen) if words in line), -1) for words in MUST_SEE}
        assert -1 not in at.values(), at
        assert list(at.values()) == sorted(at.values()), "in the order in which a person reads"
        assert any(("+added 0" if not is_new else "print(0)") in line for line in seen)
        assert max(map(len, seen)) <= columns
        terminal.send("w")
        terminal.wait_for("Walls, 1 to")
        assert "Sentence 8" in last_page(terminal)
        terminal.send("q")
        assert terminal.press("3", asking)["option_id"] == "no"


MUST_SEE = (
    *("May this script run?", "python3 scripts/report.py data.csv --top 5", "no network", "Does delete."),
    *("New  ", "[ ] a  the host a.example", "1  Yes once", "2  Yes in this session", "3  No", READY),
)


def test_a_wider_window_needs_no_new_question() -> None:
    with Terminal() as terminal:
        asking = terminal.ask(question())
        terminal.resize(120, 60)
        assert terminal.read(0.6) == ""
        terminal.send("1")
        assert asking.outcome()["option_id"] == "yes_once"


LONG_SOURCE = "".join(f"print('line {number}')\n" for number in range(1, 10_001))


def last_page(terminal: Terminal) -> str:
    return without_controls(terminal.text.rpartition("\x1b[H")[2])


def test_ten_thousand_lines_are_paged_to_their_end_and_the_question_comes_back() -> None:
    command = PromptCommand("scripts/extract.py", (), "", LONG_SOURCE)
    with Terminal(columns=80, rows=30) as terminal:
        asking = terminal.ask(question(script_prompt(commands=(command,))))
        terminal.send("v")
        terminal.wait_for("Source, 1 to 29 of 10,0")
        terminal.send(" ")
        terminal.wait_for("Source, 29 to 57 of")
        terminal.send("\x1b[A")
        terminal.wait_for("Source, 28 to 56 of")
        terminal.send("\x1b[6~")
        terminal.wait_for("Source, 56 to 84 of")
        terminal.send("\x1b[F")
        terminal.wait_for("10000  print('line 10000')")
        terminal.send("1")
        assert not asking.has_answer(0.3)
        terminal.send("q")
        terminal.wait_for_bytes("\x1b[?25h\x1b[?1049l")
        assert terminal.press("1", asking)["option_id"] == "yes_once"
        assert without_controls(terminal.text).count("May this script run?") == 1


def test_keys_behind_the_one_that_leaves_the_pages_are_dropped() -> None:
    with Terminal() as terminal:
        asking = terminal.ask(question())
        terminal.send("v")
        terminal.wait_for("q goes back")
        terminal.send("q" + MORE_THAN_ONE_READ[1:])
        assert not asking.has_answer(0.6)
        assert terminal.press("1", asking)["option_id"] == "yes_once"


def test_a_resized_window_is_paged_at_its_new_size() -> None:
    source = "".join(f"{number} {'word ' * 40}\n" for number in range(200))
    command = PromptCommand("scripts/extract.py", (), "", source)
    with Terminal(columns=100, rows=30) as terminal:
        asking = terminal.ask(question(script_prompt(commands=(command,))))
        terminal.send("v")
        terminal.wait_for("q goes back")
        terminal.resize(60, 20)
        terminal.wait_for("Source, 1 to 19 of")
        page = last_page(terminal).split("\n")
        assert len(page) == 20
        assert max(map(len, page)) == 60
        terminal.send("q")
        terminal.wait_for(READY, times=2)
        terminal.send("3")
        assert asking.outcome()["option_id"] == "no"


def test_the_changes_have_pages_of_their_own() -> None:
    with Terminal() as terminal:
        terminal.ask(question())
        terminal.send("d")
        terminal.wait_for("Changes, 1 to")
        page = last_page(terminal)
        assert "-old words" in page
        assert "import socket" not in page


def test_without_changes_there_is_nothing_to_page() -> None:
    with Terminal() as terminal:
        terminal.ask(
            question(script_prompt(changes=None)), ready="Press 1, 2 or 3. Esc is no. v source, w walls, n why not."
        )
        terminal.send("d")
        terminal.wait_for("Nothing chosen yet.")


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_no_colour_where_none_is_wanted(name: str, value: str) -> None:
    with Terminal() as terminal:
        terminal.environment[name] = value
        terminal.ask(question())
        assert not re.search(r"\x1b\[[\d;]*m", terminal.text)
    with Terminal() as terminal:
        terminal.ask(question())
        assert re.search(r"\x1b\[1m", terminal.text)


def test_a_terminal_that_knows_no_sequences_gets_none() -> None:
    with Terminal() as terminal:
        terminal.environment["TERM"] = "dumb"
        asking = terminal.ask(question())
        terminal.send("x")
        terminal.wait_for("Nothing chosen yet.")
        terminal.send("v")
        terminal.wait_for(READY, times=3)
        terminal.send("1")
        assert asking.outcome()["option_id"] == "yes_once"
        terminal.wait_for("Approved once")
        assert "\x1b" not in terminal.text
