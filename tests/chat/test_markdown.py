"""A model's Markdown on a terminal: shown as it is meant, early, and the same however it is cut."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from skillkit.chat.markdown import BOLD, CODE, ITALIC, LONGEST_SPAN, PLAIN, STRUCK, UNDERLINED, Markdown


def rendered(*chunks: str, columns: int = 80) -> str:
    markdown = Markdown(columns)
    return "".join([*map(markdown.feed, chunks), markdown.finish()])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Plain words, 2 * 3 * 4 and a_snake_case.", "Plain words, 2 * 3 * 4 and a_snake_case."),
        (
            "It is **bold** and *soft* and ~~gone~~.",
            f"It is {BOLD}bold{PLAIN} and {ITALIC}soft{PLAIN} and {STRUCK}gone{PLAIN}.",
        ),
        ("Run `ls -l *.py` now", f"Run {CODE}ls -l *.py{PLAIN} now"),
        ("**a `b` c**", f"{BOLD}a {CODE}b{PLAIN}{BOLD} c{PLAIN}"),
        ("## The title\ntext", f"{BOLD}The title{PLAIN}\ntext"),
        ("- one\n  * two\n3. three", "• one\n  • two\n3. three"),
        ("> said *so*", f"│ said {ITALIC}so{PLAIN}"),
        ("---\n", f"{'─' * 24}\n"),
        ("see [the page](https://a.example/x)", f"see {UNDERLINED}the page (https://a.example/x){PLAIN}"),
        ("\\*not soft\\*", "*not soft*"),
        ("never **closed", "never **closed"),
        ("#hashtag and -5", "#hashtag and -5"),
        ("```python\nx = '**not bold**'\n```\nafter", f"  {CODE}x = '**not bold**'{PLAIN}\nafter"),
        ("````\n```\n````\n*a*", f"  {CODE}```{PLAIN}\n{ITALIC}a{PLAIN}"),
        ("| a | bb |\n|---|:--|\n| 1 | 2 |\nend", f"{BOLD}a │ bb{PLAIN}\n──────\n1 │ 2\nend"),
        ("| no table |\nend", "| no table |\nend"),
    ],
)
def test_it_is_shown_as_it_is_meant(text: str, shown: str) -> None:
    assert rendered(text) == shown


def test_a_table_that_does_not_fit_stays_as_it_was_written() -> None:
    text = f"| a | b |\n|---|---|\n| {'x' * 30} | 2 |\n"
    assert rendered(text, columns=20) == text


def test_words_come_at_once_and_only_what_cannot_be_told_yet_waits() -> None:
    markdown = Markdown(80)
    assert markdown.feed("Once upon") == "Once upon"
    assert markdown.feed(" a **ti") == " a "
    assert markdown.feed("me** there") == f"{BOLD}time{PLAIN} there"
    assert markdown.feed("\n```\nprint(") == f"\n  {CODE}print("
    assert markdown.feed("1)\n") == f"1){PLAIN}\n"


def test_a_sign_that_is_never_closed_holds_nothing_back_for_long() -> None:
    markdown = Markdown(80)
    assert markdown.feed("a **" + "b" * (LONGEST_SPAN // 2)) == "a "
    assert markdown.feed("b" * LONGEST_SPAN).startswith("**bbb")


def test_after_something_that_came_between_a_block_of_code_goes_on() -> None:
    markdown = Markdown(80)
    assert markdown.feed("```\na = 1\nb =") == f"  {CODE}a = 1{PLAIN}\n  {CODE}b ="
    assert markdown.finish(is_over=False) == PLAIN
    assert markdown.feed(" 2\n```\n*c*\n") == f"  {CODE} 2{PLAIN}\n{ITALIC}c{PLAIN}\n"


PIECES = st.sampled_from(
    [
        "*",
        "**",
        "_",
        "__",
        "`",
        "```",
        "~~",
        "[",
        "](",
        ")",
        "|",
        "\n",
        "\n\n",
        "- ",
        "> ",
        "# ",
        "\\",
        " ",
        "---",
        "a",
        "b c",
        "é",
        "1. ",
    ]
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(PIECES, max_size=60), st.lists(st.integers(0, 200), max_size=20))
def test_any_chunking_shows_the_same(pieces: list[str], cuts: list[int]) -> None:
    text = "".join(pieces)
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    chunks = [text[start:end] for start, end in pairwise(places)]
    assert rendered(*chunks) == rendered(text) == rendered(*text)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(PIECES, max_size=60))
def test_no_letter_is_lost_and_styles_end(pieces: list[str]) -> None:
    shown = rendered("".join(pieces))
    words = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    fences = "```" in "".join(pieces)  # what stands behind an opening fence names its language
    assert fences or [char for char in words if char.isalnum()] == [char for char in "".join(pieces) if char.isalnum()]
    assert shown.rfind("\x1b[") == -1 or shown.rfind(PLAIN) == shown.rfind("\x1b[")
