from __future__ import annotations

import pytest

from skillkit.core.ask.risk.rules import Finding, Snippet
from skillkit.core.ask.risk.shell import shell_seen


def seen_kinds(code: str) -> set[str]:
    return {seen.kind for seen in shell_seen(code) if isinstance(seen, Finding)}


@pytest.mark.parametrize(
    "start",
    [
        *"then do else elif if while until time ! { } builtin command coproc".split(),
        *"sudo doas env nohup exec xargs setsid nice ionice stdbuf busybox unbuffer".split(),
        *("timeout 5", "timeout 5s", "nice -n 5", "A=1 B+=2", "/usr/bin/env -i", "sudo env A=1"),
    ],
)
def test_what_stands_before_a_program_is_passed_over(start: str) -> None:
    assert "network" in seen_kinds(f"{start} curl -x sudo")


@pytest.mark.parametrize("words", ["sudo", "9 curl", "-x curl sudo", "ls -x 5 curl"])
def test_what_stands_for_itself_is_not(words: str) -> None:
    assert seen_kinds(words) == set()


@pytest.mark.parametrize(
    ("code", "language"),
    [
        *((f"{name} -c 'x y'", "shell") for name in "sh bash dash zsh ksh ash fish".split()),
        *(("python -c 'x y'", "python"), ("python3 -c 'x y'", "python")),
        *(("node -e 'x y'", "javascript"), ("bun -e 'x y'", "javascript")),
        *(("ruby -e 'x y'", "ruby"), ("perl -ne 'x y'", "perl"), ("osascript -e 'x y'", "shell")),
        *(("bash -x -c 'x y' z w", "shell"), ("ruby x -e 'x y' z", "ruby")),
    ],
)
def test_a_program_inside_a_command_is_read_in_its_language(code: str, language: str) -> None:
    assert [seen for seen in shell_seen(code) if isinstance(seen, Snippet)] == [Snippet(language, "x y", 1)]


def test_what_is_run_is_shown_so_far() -> None:
    words = " ".join(f"w{number}" for number in range(1, 14))
    messages = [seen.message for code in (f"rm {words}", f"rm {'x' * 80}") for seen in shell_seen(code)]  # type: ignore[union-attr]
    shown = " ".join(f"w{number}" for number in range(1, 13))
    assert messages == [f"Deletes: rm {shown}.", f"Deletes: rm {'x' * 77}...."]


def test_only_the_shells_own_words_print_and_no_program_of_that_name() -> None:
    assert seen_kinds("echo ~/.ssh/id_rsa") == seen_kinds("sudo printf ~/.ssh/id_rsa") - {"process"} == set()
    assert seen_kinds("./echo ~/.ssh/id_rsa") == seen_kinds("scripts/printf ~/.ssh/id_rsa") == {"credentials"}


@pytest.mark.parametrize(("program", "kind"), [("crontab", "outside_write"), ("pass", "credentials")])
def test_an_empty_word_is_an_order_and_no_word_is_none(program: str, kind: str) -> None:
    assert seen_kinds(program) == set()
    assert seen_kinds(f'{program} "" x') == {kind}


def test_what_decodes_or_sends_code_is_found_ten_pipes_before() -> None:
    for pipes, is_found in ((10, True), (11, False)):
        assert ("obfuscation" in seen_kinds("curl a.example" + " | cat" * (pipes - 1) + " | sh")) is is_found


def test_the_words_of_an_order_are_among_the_first() -> None:
    assert seen_kinds("git -C x push") == {"network"}
    assert seen_kinds("git log a b push") == set()


def test_of_one_word_so_many_substitutions_are_read() -> None:
    seen = list(shell_seen('echo "$(a) $(b) $(c) $(d) $(e) $(f)"'))
    assert len([each for each in seen if isinstance(each, Snippet)]) == 4


def test_an_endless_word_is_read_so_far() -> None:
    assert seen_kinds("ls '" + "a" * 3_980 + " ~/.ssh/id_rsa'") == {"credentials"}
    assert seen_kinds("ls '" + "a" * 4_000 + " ~/.ssh/id_rsa'") == set()
