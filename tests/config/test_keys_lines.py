"""On which line a key stands, whatever stands around it."""

from __future__ import annotations

import tomllib

import pytest

from skillkit.config.keys import key_lines

TEXT = '''# policy = 1
profile = "guarded" # approval = 2

[policy] # [skills]
text = """
approval = "always"
[skills]
\\""" still inside """""
literal = \'\'\'
x = 1
\'\'\'\'
 "quoted key" . 'two.words'  = [ # a comment with ] in it
    "]", ']', [1,
    2], { inner = 1, other = [
       3 ] } ,
]
approval = 1979-05-27 07:32:00Z
[ policy . "li\\u006dits" ]
processes=5
[[list]]
first = {a.b = {c = "}"}}
[[list]]
first = 2
second = ""
'''


def test_each_key_has_the_line_it_first_stands_on() -> None:
    assert key_lines(TEXT) == {
        ("profile",): 2,
        ("policy",): 4,
        ("policy", "text"): 5,
        ("policy", "literal"): 9,
        ("policy", "quoted key"): 12,
        ("policy", "quoted key", "two.words"): 12,
        ("policy", "approval"): 17,
        ("policy", "limits"): 18,
        ("policy", "limits", "processes"): 19,
        ("list",): 20,
        ("list", "first"): 21,
        ("list", "first", "a"): 21,
        ("list", "second"): 24,
    }


def test_the_example_is_toml() -> None:
    assert tomllib.loads(TEXT)["policy"]["limits"] == {"processes": 5}


@pytest.mark.parametrize("end", ["", "\n", " # end", "\r\n\r\n"])
def test_the_end_of_a_file_may_be_anything(end: str) -> None:
    assert key_lines(f"\r\na = 1\r\nb = 2{end}") == {("a",): 2, ("b",): 3}


def test_deeper_keys_are_found_when_asked_for() -> None:
    assert ("list", "first", "a", "b", "c") in key_lines(TEXT, depth=9)
