"""How a request is shown: what, in which order, and how it fits."""

from __future__ import annotations

import re
import textwrap
from dataclasses import replace

import pytest
from support.terminals import question, script_prompt

from skillkit.core.values.needs import Need
from skillkit.core.values.questions import (
    SINGLE_USE,
    FileChange,
    Option,
    OptionRequest,
    PromptCommand,
    ReachMark,
    RiskFlag,
    Tick,
)
from skillkit.present.glance import stopped_words
from skillkit.present.request import decision_text, diff_text, prompt_text, source_text, walls_text, whole_text


def test_the_whole_question_at_a_glance() -> None:
    expected = """\
        May this script run?

          Runs        │ python3 scripts/extract.py --pages 1-3
          Skill       │ pdf-tools
          From        │ /home/ana/skills/pdf-tools
          Why asked   │ Policy asks a person before a skill's first run.
          Reach       │ no network · no packages · own home

          Risks       │ network  opens a connection (line 2)

          New           1 added line in 1 file (1 changed); d shows all
                      │ changed  scripts/extract.py
                      │   @@ -1 +1 @@
                      │   -old words
                      │   +new words

          Walls       │ No network.

          Source        2 lines
                      │  1  import os
                      │ !2  import socket

          Digest      │ d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1d1

          1  Yes once             this time only
          2  Yes in this session  this skill, until it changes
          3  No                   nothing runs
        """
    assert prompt_text(question(), 80) == textwrap.dedent(expected)


def test_where_every_run_is_asked_about_no_yes_claims_to_last() -> None:
    request = question()
    every_time = replace(request, context={**request.context, SINGLE_USE: ["yes_once", "yes_in_session"]})
    lasting, single = (
        prompt_text(each, 80).splitlines()[-3:]
        for each in (replace(request, context={**request.context, SINGLE_USE: ["yes_once"]}), every_time)
    )
    assert lasting == prompt_text(request, 80).splitlines()[-3:]
    assert single[1].split() == "2 Yes in this session this time only".split()
    assert (single[0], single[2]) == (lasting[0], lasting[2])


def test_a_narrow_page_has_its_labels_above() -> None:
    text = prompt_text(question(), 40)
    assert "  Skill\n  │ pdf-tools\n" in text
    assert max(map(len, text.split("\n"))) <= 40


def test_a_narrow_page_says_below_an_answer_what_it_covers() -> None:
    text = " ".join(prompt_text(question(), 40).split())
    assert text.endswith(
        "1 Yes once this time only 2 Yes in this session this skill, until it changes 3 No nothing runs"
    )


@pytest.mark.parametrize("width", [24, 40, 60, 80, 120, 300])
def test_nothing_is_wider_than_the_page(width: int) -> None:
    command = PromptCommand("scripts/" + "x" * 500, ("a b " * 200,), "{" + "1" * 900, "y = 1 " * 300)
    request = question(script_prompt(commands=(command, command), reasons=("long " * 100,), origin="/o" * 300))
    assert max(map(len, prompt_text(request, width).split("\n"))) <= width


def test_a_question_about_something_else_shows_its_title_and_message() -> None:
    request = OptionRequest("1", "Which?", "Two\nlines.", (Option("a", "This one"), Option("b", "That")))
    expected = "A question for you\n\n  Question    │ Which?\n\n  Message     │ Two\n              │ lines.\n\n"
    assert prompt_text(request, 80) == f"{expected}  1  This one\n  2  That\n"


def test_several_scripts_are_numbered_and_all_shown() -> None:
    commands = tuple(PromptCommand(f"scripts/{name}.sh", (name,), "", f"echo {name}\n") for name in ("one", "two"))
    text = prompt_text(question(script_prompt(commands=commands)), 80)
    assert text.startswith("May these 2 scripts run?\n")
    found = [line.strip() for line in text.split("\n") if re.match(r"  (Runs|Arguments|Source) \d", line)]
    assert found == [
        "Runs 1      │ scripts/one.sh one",
        "Runs 2      │ scripts/two.sh two",
        "Source 1      1 line",
        "Source 2      1 line",
    ]


@pytest.mark.parametrize(
    ("argument", "word"),
    [
        pytest.param("plain", "plain", id="plain"),
        pytest.param("", '""', id="empty"),
        pytest.param("two words", '"two words"', id="space"),
        pytest.param("a\nb\tc", r'"a\nb\tc"', id="newline and tab"),
        pytest.param(r"a\nb", r'"a\\nb"', id="a backslash is no newline"),
        pytest.param('say "hi"', r'"say \"hi\""', id="quotes"),
        pytest.param("a\x1bb", r'"a\x1bb"', id="control"),
    ],
)
def test_an_argument_shows_where_it_begins_ends_and_breaks(argument: str, word: str) -> None:
    command = PromptCommand("scripts/extract.py", (argument, "next"), "", "")
    assert f"  Runs        │ scripts/extract.py {word} next\n" in prompt_text(
        question(script_prompt(commands=(command,))), 80
    )


def test_what_is_too_long_is_cut_here_and_whole_in_the_pages() -> None:
    source = "".join(f"line {number}\n" for number in range(1, 101))
    given = "\n".join(f"given {number}" for number in range(1, 101))
    risks = tuple(RiskFlag("network", f"risk {number}", "elsewhere", number) for number in range(1, 21))
    prompt = script_prompt(commands=(PromptCommand("scripts/a.py", (), given, source),), risks=risks)
    text = prompt_text(question(prompt), 80)
    assert "the beginning of 100 lines; v shows all" in text
    assert "17 more; v shows all" in text
    assert text.count("  line ") == 20
    assert text.count("given ") == 10
    assert text.count("risk ") == 3
    whole = source_text(prompt, 80)
    assert (whole.count("  line "), whole.count("given "), whole.count("risk ")) == (100, 100, 20)


def test_a_single_endless_line_does_not_push_the_question_away() -> None:
    command = PromptCommand("scripts/a.py", ("a" * 100_000,), "b" * 1_000_000, "c" * 1_000_000)
    text = prompt_text(question(script_prompt(commands=(command,))), 80)
    assert text.count("\n") < 80
    assert text.count("v shows all") == 4


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        pytest.param(None, "all of it: never approved before", id="new"),
        pytest.param((), "nothing since the last approval", id="same"),
        pytest.param(
            (FileChange("added", "a", ""), FileChange("removed", "b", "")),
            "0 added lines in 2 files (1 added, 1 removed)",
            id="changed",
        ),
    ],
)
def test_what_changed_is_always_said(changes: tuple[FileChange, ...] | None, words: str) -> None:
    assert f"  New           {words}" in prompt_text(question(script_prompt(changes=changes)), 80)


def test_the_diff_is_short_in_the_question_and_whole_in_its_pages() -> None:
    diff = "@@ -0,0 +1,50 @@\n" + "".join(f"+new {number}\n" for number in range(50))
    prompt = script_prompt(changes=(FileChange("changed", "a.py", diff), FileChange("added", "logo.png", "")))
    text = prompt_text(question(prompt), 80)
    assert text.count("+new") == 11
    assert "added    logo.png" in text
    whole = diff_text(prompt, 80)
    assert whole.count("+new") == 50
    assert "no text to compare" in whole


def test_read_in_one_piece_nothing_is_cut_and_no_key_is_named() -> None:
    diff = "@@ -1 +1,50 @@\n" + "+new\n" * 50
    risks = tuple(RiskFlag("network", "opens a connection", "a.py", line) for line in range(1, 31))
    command = PromptCommand("a.py", ("word",) * 500, "line\n" * 40, "pass\n" * 200)
    prompt = script_prompt(changes=(FileChange("changed", "a.py", diff),), risks=risks, commands=(command,))
    whole, cut = whole_text(prompt, 80), prompt_text(question(prompt), 80)
    for words, count in (("+new", 50), ("opens a connection", 30), ("pass", 200), ("  word", 500), ("│ line", 40)):
        assert whole.count(words) == count
        assert cut.count(words) < count
    assert "shows all" in cut
    assert "shows all" not in whole
    assert "Yes once" not in whole, "how to answer is said by who shows it"


def test_no_risk_found_and_no_walls_are_said() -> None:
    text = prompt_text(question(script_prompt(risks=(), walls=())), 80)
    assert "  Risks         none found, which proves nothing\n" in text
    assert "  Walls         none\n" in text


def test_an_empty_script_and_windows_line_ends_are_told_apart() -> None:
    empty, windows = PromptCommand("a.sh", (), "", ""), PromptCommand("b.sh", (), "", "one\r\ntwo\r\n")
    text = prompt_text(question(script_prompt(commands=(empty, windows), risks=())), 80)
    assert "  Source 1      empty\n" in text
    assert "  Source 2      2 lines\n              │  1  one\n              │  2  two\n" in text


def test_colour_is_decoration_only() -> None:
    text = prompt_text(question(), 80, color=True)
    assert re.sub(r"\x1b\[\d+m", "", text) == prompt_text(question(), 80)
    assert text != prompt_text(question(), 80)


def test_a_decision_is_told_on_one_line() -> None:
    request = question(script_prompt(skill="two\nlines" * 40))
    line = decision_text(request, request.options[0], 60)
    assert line.startswith("Approved once: scripts/extract.py of two\\nlines")
    assert len(line) == 60


WORDS_OF_A_YES = {
    "": "never approved before",
    "once": "the last yes was for one run",
    "lasting": "the copy that was approved is gone",
}


@pytest.mark.parametrize("last_yes", WORDS_OF_A_YES)
def test_what_is_new_never_contradicts_an_earlier_yes(last_yes: str) -> None:
    text = prompt_text(question(script_prompt(changes=None, last_yes=last_yes)), 80)
    assert [words in text for words in WORDS_OF_A_YES.values()] == [each == last_yes for each in WORDS_OF_A_YES]


def test_a_risk_that_the_walls_stop_says_so_and_a_tick_that_opens_it_too() -> None:
    prompt = script_prompt(risks=(RiskFlag("network", "opens a connection", "a.py", 2, 40, is_blocked=True),))
    assert "opens a connection (a.py:2; blocked by the walls)" in prompt_text(question(prompt), 100)
    asked = question(prompt, grants=(Tick("host:a.example", "the host a.example"),))
    assert "blocked by the walls, unless you tick more" in prompt_text(asked, 100)
    assert "blocked by the walls, unless you tick more" in source_text(prompt, 100, ticks=asked.grants), (
        "and so all pages"
    )


def test_no_tick_is_said_to_open_a_place_where_secrets_are_kept() -> None:
    key = (Tick("secret:WEATHER_API_KEY", "the key WEATHER_API_KEY"),)
    place = RiskFlag("credentials", "Names .netrc, where secrets are kept", "a.py", 2, 75, is_blocked=True)
    assert stopped_words(place, key) == "blocked by the walls"
    variable = RiskFlag("credentials", "Reads the environment variable WEATHER_API_KEY", "a.py", 1, 35, is_blocked=True)
    assert stopped_words(variable, key) == "blocked by the walls, unless you tick more"


def test_several_flags_of_one_line_are_one_thing_to_look_at() -> None:
    risks = tuple(RiskFlag(kind, f"{kind} it is", "a.sh", 7, 60) for kind in ("network", "delete", "obfuscation"))
    other = RiskFlag("process", "starts something", "b.sh", 1, 20)
    text = prompt_text(question(script_prompt(risks=(*risks, other))), 80)
    assert text.count("(a.sh:7)") == 1
    assert "starts something" in text


def test_a_long_command_breaks_between_words_alone() -> None:
    words = tuple(f"--option-{number}" for number in range(8))
    text = prompt_text(question(script_prompt(commands=(PromptCommand("s/a.py", words, "", "x\n", "python3"),))), 80)
    first, second = (line.partition("│ ")[2] for line in text.splitlines() if "--option" in line)
    assert first.endswith(" \\")
    assert f"{first.removesuffix(chr(92))}{second.strip()}".split() == ["python3", "s/a.py", *words]


ORDINARY_WALLS = tuple(
    f"A sentence about what the walls number {number} will and will not allow." for number in range(9)
)


@pytest.mark.parametrize("is_new", [True, False], ids=["first run", "changed"])
@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (100, 40)])
def test_all_that_must_be_known_fits_the_screen(columns: int, rows: int, is_new: bool) -> None:
    """Three rows are the terminal's own: the one above, the one below and the line of keys."""
    kinds = ("delete", "network", "process", "credentials", "obfuscation")
    risks = tuple(RiskFlag(kind, f"Does {kind}.", f"scripts/{kind}.py", 3, 50) for kind in kinds)
    source = "".join(f"line {number}\n" for number in range(1, 200))
    diff = "@@ -1,9 +1,9 @@\n" + "".join(f"-was {number}\n+is {number}\n" for number in range(30))
    prompt = script_prompt(
        risks=risks,
        walls=ORDINARY_WALLS,
        needs=(
            Need("host", "api.example.org", "inferred", "a.py:1", remedy="skillkit grant x --host api.example.org"),
        ),
        changes=None if is_new else (FileChange("changed", "scripts/report.py", diff, 0, 30),),
        commands=(PromptCommand("scripts/report.py", ("data.csv", "--top", "5"), "", source, "python3"),),
    )
    asked = question(prompt, grants=(Tick("host:api.example.org", "the host api.example.org"),))
    text = prompt_text(asked, columns, rows=rows - 3)
    assert text.count("\n") <= rows - 3
    must = ["python3 scripts/report.py data.csv --top 5", "no network", "(scripts/delete.py:3)", "[ ] a  the host"]
    must += ["line 1" if is_new else "+is 0", "1  Yes once", "2  Yes in this session", "3  No"]
    assert [words for words in must if words not in text] == []
    assert text.index(must[0]) < text.index("Does") < text.index(must[4]) < text.index("1  Yes once")
    assert sum(f"Does {kind}." in text for kind in kinds) == 3


@pytest.mark.parametrize("is_new", [True, False], ids=["first run", "changed"])
@pytest.mark.parametrize("ticks", [0, 3, 5])
def test_sentences_as_long_as_real_ones_fit_the_smallest_screen_too(is_new: bool, ticks: int) -> None:
    """Each of these takes two or three rows where there is room for them; then the command was out of sight."""
    place = "scripts/forecast.py"
    told = {
        "credentials": ("Names .netrc, where secrets are kept, and reads what stands in it.", True),
        "process": ("Starts programs with subprocess.run: notify-send {} --urgency critical.", False),
        "network": ("Talks to the network with urllib.request.urlopen: api.weather.example.", True),
        "delete": ("Deletes files with shutil.rmtree: the folder that it was given.", False),
    }
    risks = tuple(RiskFlag(kind, said, place, at, 50, no) for at, (kind, (said, no)) in enumerate(told.items(), 1))
    diff = "@@ -1,9 +1,9 @@\n" + "".join(f"-was {number}\n+is {number}\n" for number in range(30))
    marks = ("no network", "writes the workspace", "no keys", "own home, kept")
    prompt = script_prompt(
        origin="/home/ana/work/a-project-with-a-long-name/.claude/skills/weather",
        reasons=("Policy asks a person again, because the skill changed since it was approved.",),
        risks=risks,
        walls=ORDINARY_WALLS,
        marks=tuple(ReachMark(words.split()[-1], words, "open") for words in marks),
        changes=None if is_new else (FileChange("changed", place, diff, 0, 30),),
        commands=(PromptCommand(place, ("Lake Garda", "--days", "3"), "", "import os\n" * 40, "python3"),),
    )
    offered = tuple(Tick(f"host:{number}.example", f"the host {number}.example") for number in range(ticks))
    text = prompt_text(question(prompt, grants=offered), 80, rows=21)
    assert text.count("\n") <= 21
    must = ['python3 scripts/forecast.py "Lake Garda" --days 3', "own home, kept", "blocked by the walls"]
    must += ["import os" if is_new else "+is 0", *(f"the host {number}." for number in range(ticks)), "3  No"]
    assert [words for words in must if words not in text] == []
    assert sum(said[:20] in text for said, _ in told.values()) == 3
    walls = walls_text(prompt, 80)
    assert prompt.origin in "".join(walls.replace("│", "").split())
    assert "because the skill changed" in walls, "what has no room is one key away"


def test_whatever_does_not_fit_the_command_and_the_answers_stay() -> None:
    command = PromptCommand("scripts/a.py", ("x" * 9_000, *["word"] * 900), "in\n" * 500, "line\n" * 900, "python3")
    prompt = script_prompt(commands=(command,), origin="/o" * 400, skill="s" * 900)
    text = prompt_text(question(prompt), 80, rows=21)
    assert "python3 scripts/a.py" in text
    assert text.count("\n") <= 21
    assert text.endswith("3  No                   nothing runs\n")
