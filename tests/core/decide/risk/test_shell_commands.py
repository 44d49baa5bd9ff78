from __future__ import annotations

import pytest

from skillkit.core.decide.risk.shell_commands import DOCUMENTS, WORD_LIMIT, commands_in


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("\n;;\n", [], id="nothing"),
        pytest.param("echo $(ls", [["ls"], ["echo"]], id="a substitution that never closes"),
        pytest.param("(ls)", [["ls"]], id="a subshell"),
        pytest.param("{ ls; }", [["ls"]], id="a group"),
        pytest.param("echo 'x'{", [["echo", "x{"]], id="a brace in a word"),
        pytest.param("echo `ls` x", [["ls"], ["echo", "{}", "x"]], id="ticks"),
        pytest.param("echo $(cat `ls`)", [["ls"], ["cat", "{}"], ["echo", "{}"]], id="ticks in a substitution"),
        pytest.param("echo 'ab", [["echo", "ab"]], id="a quote that never closes"),
        pytest.param("echo ''x", [["echo", "x"]], id="empty quotes"),
        pytest.param(r"echo 'a\x41'", [["echo", r"a\x41"]], id="escapes in plain quotes"),
        pytest.param(r"echo $'a\x41'", [["echo", "aA"]], id="escapes in quotes for them"),
        pytest.param(r'echo "a\"b"', [["echo", 'a"b']], id="a quote in quotes"),
        pytest.param(r"""echo 'a\"b'""", [["echo", r"a\"b"]], id="another quote in quotes"),
        pytest.param("cat <<A\nx\n", [["cat"], ["x"]], id="a document without its end"),
        pytest.param("cat <<A\nx\nA\nls\nA\nid", [["cat"], ["ls"], ["A"], ["id"]], id="a document ends once"),
        pytest.param("cat a<<A$x\n1\nA\n", [["cat", "a", "$x"]], id="a word before a document"),
    ],
)
def test_the_words_of_commands(text: str, words: list[list[str]]) -> None:
    assert [command.words for command in commands_in(text)] == words


@pytest.mark.parametrize(
    ("text", "words", "writes", "reads"),
    [
        ("> x", [], ["x"], []),
        ("< x", [], [], ["x"]),
        ("ls a>b", ["ls", "a"], ["b"], []),
        ("ls 2>&1 x", ["ls", "x"], [], []),
        ("ls >&- x", ["ls", "x"], [], []),
        ("ls >&2 x", ["ls", "x"], [], []),
        ("ls &> x", ["ls"], ["x"], []),
    ],
)
def test_where_a_command_writes_and_reads(text: str, words: list[str], writes: list[str], reads: list[str]) -> None:
    (command,) = commands_in(text)
    assert (command.words, command.writes, command.reads, command.line) == (words, writes, reads, 1)


def test_a_substitution_knows_the_program_whose_word_it_is() -> None:
    assert [command.inside for command in commands_in("bash x $(curl y; ls) | id")] == ["bash", "bash", "", ""]


def test_an_endless_word_is_cut() -> None:
    assert WORD_LIMIT == 4_000
    assert [command.words for command in commands_in("'" + "a" * 4_000 + "'b")] == [["a" * 4_000]]
    assert [command.words for command in commands_in("'" + "a" * 3_999 + "'b")] == [["a" * 3_999 + "b"]]


def test_so_many_documents_of_one_line_are_read() -> None:
    first, *others = commands_in("cat <<A <<B <<C <<D <<E\na\nA\nb\nB\nc\nC\nd\nD\ne\nE\n")
    assert [text.strip() for _, text in first.documents] == ["a", "b", "c", "d"]
    assert [command.words for command in others] == [["e"], ["E"]]


def test_so_many_documents_are_read_in_all() -> None:
    commands = list(commands_in("cat <<A\nx\nA\n" * (DOCUMENTS + 1)))
    assert DOCUMENTS == 100
    assert sum(len(command.documents) for command in commands) == DOCUMENTS
    assert [command.words for command in commands[DOCUMENTS:]] == [["cat"], ["x"], ["A"]]
