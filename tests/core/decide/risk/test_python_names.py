from __future__ import annotations

import ast

import pytest

from skillkit.core.decide.risk.python_names import Names, joined, names_of

KNOWN = "import os, sys, builtins\n"
DOTTED = [
    ("os", "os"),
    ("nobody.imported", "?nobody.imported"),
    ("__import__('shutil').rmtree", "shutil.rmtree"),
    ("__import__(x)", ""),
    ("__import__()", ""),
    ("getattr(os, 'system')", "os.system"),
    ("builtins.getattr(os, 'system')", "os.system"),
    ("getattr(os, x)", ""),
    ("getattr(os)", ""),
    ("f(os, 'system')", ""),
    ("vars(os)", "os.__dict__"),
    ("vars()", "vars()"),
    ("f(os)", ""),
    ("f()", ""),
    ("sys.modules['x']", "x"),
    ("sys.modules[x]", ""),
    ("os.environ['x']", ""),
    ("os.__dict__['system']", "os.system"),
    ("os" + ".a" * 60, "os" + ".a" * 60),
    ("os" + ".a" * 200, ""),
    ("1", ""),
]
TEXTS = [
    ("'a' + 'b'", "ab"),
    ("b'a' + b'\\xff'", "a\xff"),
    ("'a' + x", None),
    ("x + 'a'", None),
    ("1", None),
    ("'a' / x", "a"),
    ("'a' / 'b'", "a/b"),
    ("'a/' / 'b'", "a/b"),
    ("'a/' + 'b'", "a/b"),
    ("'a%s' % x", "a%s"),
    ("f'a{x}{known}'", "a{}known"),
    ("'abc'[::-1]", "cba"),
    ("x[::-1]", None),
    ("os.path.join('a', 'b', x)", "a/b/{}"),
    ("os.path.join(x, 'a')", None),
    ("os.getenv('HOME')", "~"),
    ("os.getenv('OTHER')", None),
    ("f('HOME')", None),
    ("chr(97)", "a"),
    ("chr(0)", "\0"),
    ("chr(0x10ffff)", "\U0010ffff"),
    ("chr(0x110000)", None),
    ("chr('a')", None),
    ("chr(x)", None),
    ("chr()", None),
    ("x.replace('a', '')", None),
    ("'abc'.replace('b', '')", "ac"),
    ("'abc'.replace(x, '')", "abc"),
    ("'abc'.replace('b', 'c')", None),
    ("'-'.join(['a', 'b'])", "a-b"),
    ("'-'.join(('a', 'b'))", "a-b"),
    ("'-'.join(['a', x])", None),
    ("'a'.joinpath('b', x)", "a/b/{}"),
    *((f"'a'.{name}()", "a") for name in "expanduser resolve absolute strip lower encode decode format".split()),
    ("'a'.upper()", None),
]


def last_of(code: str) -> tuple[Names, ast.expr]:
    """What is known of the names in some code, and the expression it ends with."""
    tree = ast.parse(code)
    last = tree.body[-1]
    assert isinstance(last, ast.Expr)
    return names_of(list(ast.walk(tree))), last.value


def dotted(code: str) -> str:
    names, last = last_of(code)
    return names.dotted(last)


def text(code: str) -> str | None:
    names, last = last_of(code)
    return names.text(last)


@pytest.mark.parametrize(("code", "expected"), DOTTED)
def test_what_a_name_stands_for(code: str, expected: str) -> None:
    assert dotted(KNOWN + code) == expected


@pytest.mark.parametrize(("code", "expected"), TEXTS)
def test_the_text_that_an_expression_gives(code: str, expected: str | None) -> None:
    assert text(f"{KNOWN}known = 'known'\n{code}") == expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import os.path\nos", "os"),
        ("import os.path as p\np", "os.path"),
        ("from .os import system\nsystem", "?system"),
        ("import os\na = os.system\na", "os.system"),
        ("import os\na = b\nb = os.system\na", "os.system"),
        ("import os\na = b\nb = c\nc = os.system\na", "?a"),
        ("a = __import__('os')\na", "os"),
        ("a = b\na", "?a"),
        ("a = 1\na", "?a"),
        *((f"a = {name}\na", name) for name in ("eval", "exec", "compile", "getattr", "open", "__import__")),
    ],
)
def test_the_meaning_of_a_name_that_is_given(code: str, expected: str) -> None:
    assert dotted(code) == expected


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("x = 'a'\nx", "a"),
        ("x = 'a'\nx = 'a'\nx", "a"),
        ("x = 'a'\nx = 'b'\nx", None),
        ("x = f('a')\nf = str\nx", "a"),
        ("(x := 'a')\nx", "a"),
        ("x, y = 'a', 'b'\ny", "b"),
        ("x, y = 'a', 'b', 'c'\ny", "b"),
        ("x.y, z = 'a', 'b'\nz", "b"),
    ],
)
def test_the_text_of_a_name_that_is_given(code: str, expected: str | None) -> None:
    assert text(code) == expected


def test_parts_are_joined_where_both_are_known_and_not_too_long() -> None:
    assert (joined("a", "b"), joined("", "b"), joined("a", "")) == ("a.b", "", "")
    assert (joined("a" * 200, "b"), joined("a" * 201, "b")) == ("a" * 200 + ".b", "")


def nested(shape: str, times: int, inner: str = "x") -> str:
    for _ in range(times):
        inner = shape.replace("X", inner)
    return inner


def at_once(code: str) -> tuple[Names, ast.expr]:
    """Nothing of it looked at before."""
    names = Names(meanings={"os": "os", "join": "os.path.join"}, texts={"x": "x"})
    return names, ast.parse(code, mode="eval").body


@pytest.mark.parametrize(
    ("shape", "times"), [("X.a", 40), ("X.__dict__['a']", 20), ("getattr(X, 'a')", 40), ("vars(X)", 21)]
)
def test_so_deep_is_a_name_looked_for(shape: str, times: int) -> None:
    names, node = at_once(nested(shape, times, "os"))
    assert names.dotted(node).startswith("os.")
    names, node = at_once(nested(shape, 41, "os"))
    assert names.dotted(node) == ""


def test_a_name_too_deep_to_be_looked_up_is_none() -> None:
    names, node = at_once(nested("X['a']", 41, "os"))
    assert names.dotted(node) == ""


@pytest.mark.parametrize(
    ("shape", "times", "expected"),
    [
        ("getattr(os, X.strip())", 1, "os.x"),
        ("getattr(os, X.strip())", 40, ""),
        ("__import__(X)", 1, "x"),
        ("os.__dict__[X]", 1, "os.x"),
    ],
)
def test_a_name_inside_a_name_is_looked_for(shape: str, times: int, expected: str) -> None:
    names, node = at_once(nested(shape, times))
    assert names.dotted(node) == expected


@pytest.mark.parametrize("shape", ["getattr(os, X)()", "__import__(X)()", "os.__dict__[X]()"])
def test_names_inside_names_end_at_some_depth(shape: str) -> None:
    names, node = at_once(nested(shape, 190))
    assert (names.dotted(node), names.text(node)) == ("", None)


@pytest.mark.parametrize("shape", ["getattr(os, X)", "__import__(X)", "os.__dict__[X]"])
def test_the_text_inside_a_name_is_one_step_deeper(shape: str) -> None:
    names, node = at_once(shape.replace("X", nested("'' + (X)", 39)))
    assert names.dotted(node).endswith("x")
    names, node = at_once(shape.replace("X", nested("'' + (X)", 40)))
    assert names.dotted(node) == ""


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ("X + ''", "x"),
        ("'' + (X)", "x"),
        ("X[::-1]", "x"),
        ("str(X)", "x"),
        ("''.join([X])", "x"),
        ("X.strip()", "x"),
        ("join(X)", "x"),
        ("join('', X)", "/" * 36 + "x"),
        ("''.joinpath(X)", "/" * 36 + "x"),
        ("''.joinpath('', X)", "/{}/" * 36 + "x"),
        ("'yx'.replace(X, '')", "x"),
    ],
)
def test_so_deep_is_a_text_looked_for(shape: str, expected: str) -> None:
    names, node = at_once(nested(shape, 36))
    assert names.text(node) == expected
    names, node = at_once(nested(shape, 42))
    assert "x" not in (names.text(node) or "").replace("yx", "")


def test_the_function_around_a_text_is_no_deeper_than_the_text() -> None:
    names, node = at_once(nested("str(X)", 40))
    assert names.text(node) == "x"


def test_texts_within_texts_are_looked_for_as_deep() -> None:
    def written(times: int) -> ast.expr:
        inner: ast.expr = ast.Name("x", ast.Load())
        for _ in range(times):
            inner = ast.JoinedStr([ast.FormattedValue(inner, -1)])
        return inner

    assert Names(texts={"x": "x"}).text(written(40)) == "x"
    assert Names(texts={"x": "x"}).text(written(41)) == "{}"


def test_a_text_is_cut_where_it_is_too_long() -> None:
    assert text(f"'{'a' * 3_999}' + 'b' + 'c'") == "a" * 3_999 + "b"


def test_all_texts_together_are_not_longer_than_is_allowed() -> None:
    assert names_of(list(ast.walk(ast.parse("x = 'a' + 'b'")))).budget == 1_000_000
    names = Names(budget=2)
    nodes = [ast.parse(code, mode="eval").body for code in ("'a' + 'b'", "'c' + ''", "'d' + ''")]
    assert [names.text(node) for node in nodes] == ["ab", "c", None]
    assert [names.text(node) for node in nodes] == [None, None, None]
