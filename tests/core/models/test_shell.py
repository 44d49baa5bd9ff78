from __future__ import annotations

import shlex

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from skillkit.core.models.shell import COMMENT_CHARACTERS, DOCUMENTS, commands_in, split_words


def words_in(text: str, *, is_prose: bool = False) -> list[list[str]]:
    return [[word.text for word in command.words] for command in commands_in(text, is_prose=is_prose)]


@pytest.mark.parametrize(
    "body",
    [
        "a b  c",
        "a 'b c' d",
        r'a "b \" c" \d',
        r'"a\nb" \  x',
        r"a\'b",
        "''",
        "a'b'\"c\"d",
        "$HOME `id` $(id) *.py ~ ; | & >x",
        "",
    ],
)
def test_words_are_split_as_posix_quotes_them_and_nothing_is_expanded(body: str) -> None:
    assert split_words(body) == split_words(body, keeps_braces=True) == shlex.split(body)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        pytest.param('x {"a": "b c"}', ["x", '{"a": "b c"}'], id="json"),
        pytest.param('x --d={"a": [1, {"b": "}"}]} y', ["x", '--d={"a": [1, {"b": "}"}]}', "y"], id="inside-a-word"),
        pytest.param("x '{' \"{\" \\{", ["x", "{", "{", "{"], id="quoted"),
        pytest.param("x }", ["x", "}"], id="closing-only"),
    ],
)
def test_braces_keep_json_as_it_is_written(body: str, words: list[str]) -> None:
    assert split_words(body, keeps_braces=True) == words


@pytest.mark.parametrize("body", ["'a", '"a', "a\\", "{a", '{"a}'])
def test_what_is_left_open_gives_no_words(body: str) -> None:
    assert split_words(body, keeps_braces=True) is None


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
        pytest.param("sh <(ls) x", [["ls"], ["sh", "{}", "x"]], id="a substitution that is read as a file"),
        pytest.param("echo 'ab", [["echo", "ab"]], id="a quote that never closes"),
        pytest.param("echo ''x", [["echo", "x"]], id="empty quotes"),
        pytest.param(r"echo 'a\x41'", [["echo", r"a\x41"]], id="escapes in plain quotes"),
        pytest.param(r"echo $'a\x41\102\u0043\D'", [["echo", "aABCD"]], id="escapes in quotes for them"),
        pytest.param(r'echo "a\"b\$c\d"', [["echo", r'a"b$c\d']], id="a quote in quotes"),
        pytest.param(r"""echo 'a\"b'""", [["echo", r"a\"b"]], id="another quote in quotes"),
        pytest.param("cat <<A\nx\n", [["cat"], ["x"]], id="a document without its end"),
        pytest.param("cat <<A\nx\nA\nls\nA\nid", [["cat"], ["ls"], ["A"], ["id"]], id="a document ends once"),
        pytest.param("cat a<<A$x\n1\nA\n", [["cat", "a", "$x"]], id="a word before a document"),
        pytest.param("ls#x # id\nid", [["ls#x"], ["id"]], id="a remark, and a sign in a word"),
        pytest.param("a `b`#; id", [["b"], ["a", "{}#"], ["id"]], id="a sign behind a substitution"),
        pytest.param("a \\ #; id", [["a", " #"], ["id"]], id="a sign behind a space that is part of the word"),
    ],
)
def test_the_words_of_the_commands_in_a_script(text: str, words: list[list[str]]) -> None:
    assert words_in(text) == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("run <in file> now", [["run", "<in file>", "now"]], id="a word to be filled in"),
        pytest.param("don't\nrun x", [["don't"], ["run", "x"]], id="an apostrophe"),
        pytest.param("run $(date) `id`", [["run", "$(date)", "`id`"]], id="substitutions are pieces of words"),
        pytest.param("cat <<A\nrun x\n", [["cat"]], id="a document without its end"),
    ],
)
def test_the_words_of_the_commands_in_prose(text: str, words: list[list[str]]) -> None:
    assert words_in(text, is_prose=True) == words


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
    assert [word.text for word in command.words] == words
    assert (command.writes, command.reads, command.line, command.is_plain) == (writes, reads, 1, False)


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("a; b && c\nd", [True] * 4),
        ("a | b", [False, False]),
        ("a || b; c", [True, False, True]),
        ("a & b", [False, True]),
        ("(a; b; c)\nd", [False, False, False, True]),
        ("{ a; b; }\nc", [False, False, True]),
        ("a 2>&1", [False]),
        ("a <<E\nE\nb", [False, True]),
        ("a) b", [False, True]),
    ],
)
def test_what_means_the_same_by_itself(text: str, plain: list[bool]) -> None:
    assert [command.is_plain for command in commands_in(text, is_prose=True)] == plain


@pytest.mark.parametrize(
    ("written", "is_literal"),
    [
        *(("a", True), ("'$a'", True), ('"a b"', True), (r"a\*", True), ('"\\$a"', True)),
        *(("$a", False), ('"$a"', False), ("*.x", False), ("~/x", False), ("{a,b}", False), ("<a>", False)),
        *(("'a", False), ("$'a'", False), ("`a`", False), ("$(a)", False), ("${a}", False)),
    ],
)
def test_whether_a_shell_passes_on_exactly_this_text(written: str, is_literal: bool) -> None:
    (command,) = commands_in(f"run {written}", is_prose=True)
    assert [(word.raw, word.is_literal) for word in command.words[1:]] == [(written, is_literal)]


def test_a_remark_belongs_to_its_line_and_the_next_and_is_cut() -> None:
    commands = commands_in(f"# one\na; b # two\nc #{'x' * 2_000}\n# gone\n\nd")
    assert [command.comment for command in commands] == ["# one", "# one # two", "#" + "x" * 999, ""]
    assert COMMENT_CHARACTERS == 1_000


def test_a_command_knows_its_line_and_what_it_is_piped_from() -> None:
    commands = commands_in("a \\\n  x\ncat <<E |\n1\nE\nb 'two\nlines'\nc", 5)
    assert [(command.words[0].text, command.line) for command in commands] == [
        *(("a", 5), ("cat", 7), ("b", 10), ("c", 12)),
    ]
    assert commands[1].documents == [(8, "1\n")]
    first, second = commands_in("a | b")
    assert second.piped_from is first


def test_a_substitution_knows_the_program_whose_word_it_is() -> None:
    assert [command.inside for command in commands_in("bash x $(curl y; ls) | id")] == ["bash", "bash", "", ""]
    assert [command.inside for command in commands_in("bash <(curl y | (ls))")] == ["bash", "bash", ""]


def test_so_many_documents_of_one_line_are_read() -> None:
    first, *others = commands_in("cat <<A <<B <<C <<D <<E\na\nA\nb\nB\nc\nC\nd\nD\ne\nE\n")
    assert [text.strip() for _, text in first.documents] == ["a", "b", "c", "d"]
    assert [[word.text for word in command.words] for command in others] == [["e"], ["E"]]


def test_so_many_documents_are_read_in_all() -> None:
    commands = commands_in("cat <<A\nx\nA\n" * (DOCUMENTS + 1))
    assert DOCUMENTS == 100
    assert sum(len(command.documents) for command in commands) == DOCUMENTS
    assert [command.words[0].text for command in commands[DOCUMENTS:]] == ["cat", "x", "A"]


PIECES = (
    "a b 'c' \" ' ` $( ( ) <( { } | || & && ; > 2>&1 < <<E \nE\n \n # \\ \\\n $' ${x $x (( )) <file> \0 \ud800 é".split(
        " "
    )
)


@settings(derandomize=True, deadline=None, max_examples=300)
@given(text=st.lists(st.sampled_from([*PIECES, " "]), max_size=40).map("".join) | st.text(max_size=60))
@pytest.mark.parametrize("is_prose", [False, True])
def test_any_text_is_read_and_every_word_stands_in_it(is_prose: bool, text: str) -> None:
    for command in commands_in(text, is_prose=is_prose):
        assert 1 <= command.line <= text.count("\n") + 1
        assert command.words or command.writes or command.reads
        for word in command.words:
            assert 0 <= word.start < word.end <= len(text)
            assert word.raw == word.text or not word.raw.isalnum()
    split_words(text)
    split_words(text, keeps_braces=True)
