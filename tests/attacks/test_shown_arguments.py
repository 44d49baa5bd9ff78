"""Arguments that look like others: one that looks like three, one that hides, one that is not there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.approving import asking_manager
from support.page_visits import text_of, visiting

from skillkit.cli.main import cli
from skillkit.cli.people.approvals import approvals
from skillkit.core.values.questions import Prompt
from skillkit.present.form import form_text
from skillkit.present.glance import as_word
from skillkit.present.request import prompt_text, source_text, whole_text

WORDS = {
    "one\n2. --force\n3. /": r'"one\n2. --force\n3. /"',
    "a\tb": r'"a\tb"',
    "a\rb": r'"a\x0db"',
    "a\x1b[2Jb": r'"a\x1b[2Jb"',
    "a\u202eb": r'"a\u202eb"',
    "a\u200bb": r'"a\u200bb"',
    "a\u00a0b": r'"a\xa0b"',
    "a\u2003b": r'"a\u2003b"',
    "a\u2028b": r'"a\u2028b"',
    r"a\nb": r'"a\\nb"',
    "": '""',
    " ": '" "',
    "|": '"|"',
    "$(id)": '"$(id)"',
}


def views(folder: Path, *argv: str) -> dict[str, str]:
    with asking_manager(folder) as manager:
        request = manager.prepare_skill_script("demo", "run", argv=argv).request
    assert request is not None
    prompt = Prompt.from_context(request.context)
    assert prompt is not None
    places = ["--skills", str(folder / "skills"), "--state-dir", str(folder / "state")]
    seen = {
        "terminal": prompt_text(request, 300),
        "pages of the terminal": source_text(prompt, 300),
        "form": form_text(request, 300, source_rows=150),
        "whole": whole_text(prompt, 300),
        "check": CliRunner().invoke(cli, ["check", "demo", "run", *places, "--", *argv]).output,
    }
    with visiting(folder / "state") as visit:
        visit.world.open(request)
        seen["page"] = text_of(visit.client.get(f"/requests/{request.id}").text)
        words = ["show", request.id, "--state-dir", str(folder / "state")]
        seen["approvals show"] = CliRunner().invoke(approvals, words).output
    return seen


@pytest.mark.parametrize(("argument", "shown"), WORDS.items(), ids=WORDS.values())
def test_every_view_shows_the_word_that_it_is(tmp_path: Path, argument: str, shown: str) -> None:
    for name, text in views(tmp_path, argument, "next").items():
        assert shown in text, name
        assert argument in (" ", "", "|") or f" {argument} " not in f" {text} ", name


def test_no_two_words_look_the_same() -> None:
    words = [*WORDS, *WORDS.values(), "plain", '"plain"', "\\", "\\\\", '"', "\\x1b", "\x1b", "'"]
    assert len({as_word(word) for word in words}) == len(set(words))


def test_the_end_of_a_row_is_not_the_end_of_a_word(tmp_path: Path) -> None:
    """Where the arguments do not fit on one row, each has its number and stands by itself."""
    with asking_manager(tmp_path) as manager:
        request = manager.prepare_skill_script("demo", "run", argv=["a" * 59, "b " * 60, "", "c"]).request
    assert request is not None
    lines = [line.partition("│ ")[2] for line in prompt_text(request, 80).splitlines() if "│" in line]
    first = next(number for number, line in enumerate(lines) if line.startswith("1  "))
    assert lines[first] == f"1  {'a' * 59}"
    assert lines[first + 1].startswith('2  "b b b')
    assert [line for line in lines[first:] if line[:3] in ("3  ", "4  ")][:2] == ['3  ""', "4  c"]


def test_many_arguments_are_counted_where_they_are_cut(tmp_path: Path) -> None:
    with asking_manager(tmp_path) as manager:
        request = manager.prepare_skill_script("demo", "run", argv=[f"word-{n}" for n in range(100)]).request
    assert request is not None
    assert "90 more arguments; v shows all" in prompt_text(request, 80)
    prompt = Prompt.from_context(request.context)
    assert prompt is not None
    assert "100  word-99" in whole_text(prompt, 80)


def test_check_gives_the_arguments_as_data_too(tmp_path: Path) -> None:
    with asking_manager(tmp_path):
        places = ["--skills", str(tmp_path / "skills"), "--state-dir", str(tmp_path / "state")]
    done = CliRunner().invoke(cli, ["check", "demo", "run", "--json", *places, "--", "a\nb", ""])
    assert json.loads(done.output)["arguments"] == ["a\nb", ""]
