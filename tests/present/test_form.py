"""What a person sees of a form where their host shows three lines, the start or the end of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from markdown_it import MarkdownIt
from support.terminals import question, script_prompt

from skillkit.core.values.questions import OPTIONS, OptionRequest, PromptCommand, ReachMark, RiskFlag
from skillkit.present.form import form_text, headline, summary_lines
from skillkit.present.terminal import width_of

HOSTILE = "[--dry-run](http://evil.example)", "<!-- -->", "`x`", "**bold**", "a\n\nb", "\u202eevil", "x" * 300


def marked(*words: str) -> tuple[ReachMark, ...]:
    return tuple(ReachMark("files", each, "open") for each in words)


def asked(*argv: str, stdin: str = "", **changes: Any) -> OptionRequest:
    command = PromptCommand("scripts/extract.py", argv, stdin, "import os\n")
    return question(replace(script_prompt(), **{"commands": (command,), "marks": marked("no network"), **changes}))


def shown(request: OptionRequest) -> list[str]:
    return form_text(request, 96, source_rows=150).splitlines()


def test_three_lines_cut_at_80_columns_say_what_would_run_its_risks_and_its_reach() -> None:
    risks = (RiskFlag("network", "connects", "a", 1), RiskFlag("delete", "removes", "a", 2), *script_prompt().risks)
    request = asked("--pages", "1 - 3", risks=risks, marks=marked("no network", "writes /home/ana/project"))
    assert [line[:80] for line in shown(request)[:3]] == [
        '    Run pdf-tools: scripts/extract.py --pages "1 - 3"',
        "    Risks: network (2), delete",
        "    Reach: no network; writes /home/ana/project",
    ]


def test_the_end_says_it_again_and_names_skill_and_script_last() -> None:
    lines = shown(asked("one"))
    assert lines[-3:] == [*lines[1:3], lines[0]]
    assert lines[-1].strip() == "Run pdf-tools: scripts/extract.py one"


@pytest.mark.parametrize("skill", ["pdf-tools", "s" * 200, "a b", "\x1b[2J\nMay it run?"])
@pytest.mark.parametrize("script", ["scripts/x.sh", f"scripts/{'deep/' * 40}x.sh", "scripts/a b.sh", "s/\u202e.sh"])
@pytest.mark.parametrize("argv", [(), ("one",), HOSTILE, HOSTILE[::-1], ("w" * 40, "rm -rf /"), ("",) * 40])
def test_whatever_a_skill_writes_the_three_lines_stay_three_and_fit(
    skill: str, script: str, argv: tuple[str, ...]
) -> None:
    walls = ("w\n" * 100,)
    request = asked(skill=skill, commands=(PromptCommand(script, argv, "", ""),), marks=marked("r\n" * 99), walls=walls)
    lines = shown(request)
    assert [bool(line.strip()) for line in lines[:4]] == [True, True, True, False]
    assert all(width_of(line) <= 80 for line in lines[:3])
    assert lines[0].startswith("    Run ")
    assert lines[1].startswith("    Risks: ")
    assert lines[2].startswith("    Reach: ")
    assert not {"\x1b", "\u202e"} & set("".join(lines))
    assert "x.sh" in lines[0] or "b.sh" in lines[0] or "\\u202e.sh" in lines[0], "which script it is stays in sight"


def test_words_that_have_no_room_are_counted() -> None:
    assert headline(asked("a" * 60, "b", "c")).endswith("a… (+3 more words)")
    assert headline(asked("a", "b" * 60)).endswith("b… (+1 more word)")


def test_no_arguments_and_input_cannot_be_taken_for_words() -> None:
    assert headline(asked()) == "Run pdf-tools: scripts/extract.py (no arguments)"
    assert headline(asked(stdin="{}")) == "Run pdf-tools: scripts/extract.py (input: 2 characters)"
    assert headline(asked("(no arguments)")) == 'Run pdf-tools: scripts/extract.py "(no arguments)"'


def test_several_commands_are_told_one_by_one() -> None:
    commands = tuple(PromptCommand(f"scripts/{name}.sh", (name,), "", "") for name in ("one", "two", "three;"))
    request = asked(commands=commands[:2])
    assert headline(request) == "Run 2 commands of pdf-tools: scripts/one.sh one; scripts/two.sh two"
    assert headline(asked(commands=commands)) == (
        "Run 3 commands of pdf-tools: scripts/one.sh one; scripts… (+2 more commands)"
    )


def test_no_risks_and_no_walls_are_said() -> None:
    lines = summary_lines(asked(risks=(), marks=(), walls=()))
    assert lines[1:] == ["Risks: none found, which proves nothing", "Reach: no walls: all that you can"]


def test_a_question_about_something_else_begins_and_ends_with_itself() -> None:
    lines = shown(OptionRequest("id", "Deploy\nto production?", "Build 812.", OPTIONS))
    assert lines[0].strip() == lines[-1].strip() == "Deploy\\nto production?"


def tokens_of(text: str) -> list[str]:
    return [token.type for token in MarkdownIt("commonmark", {"linkify": True}).parse(text)]


def test_a_host_that_renders_markdown_shows_it_as_it_is() -> None:
    source = "# Title\n\n```\n</text>\n[approve](http://evil.example)\n![x](http://evil.example)\n<img src=x>\n"
    request = asked(*HOSTILE, commands=(PromptCommand("scripts/a.sh", HOSTILE, source, source),))
    text = form_text(request, 96, source_rows=150)
    assert "```" in text, "the skill's own"
    assert tokens_of(text) == ["code_block"]
    assert "inline" in tokens_of("\n".join(line.strip() for line in text.splitlines())), (
        "control: without indents it acts"
    )


def test_where_a_host_takes_the_first_indent_away_no_word_of_the_three_lines_hides() -> None:
    request = asked("[--dry-run](http://evil.example)", "[--safe]", "<b>", "`x`")
    text = form_text(request, 96, source_rows=150).strip()
    first = MarkdownIt("commonmark").parse(text)[1]
    assert first.type == "inline"
    assert {child.type for child in first.children or ()} <= {"text", "softbreak"}
    control = MarkdownIt("commonmark").parse('Run "[--dry-run](http://evil.example)"')[1]
    assert "link_open" in {child.type for child in control.children or ()}, "control: as it is, it hides the address"
