from __future__ import annotations

import ast
import sys
import threading
import time
import warnings
from pathlib import Path

import pytest
from support.flagged import flags_of_text, kinds_of

from skillkit.core.ask.risk.python import UNREADABLE, python_seen
from skillkit.core.ask.risk.rules import PYTHON, Finding, Snippet


def said_of(code: str) -> list[str]:
    return [seen.message for seen in python_seen(code) if isinstance(seen, Finding)]


def snippets_of(code: str) -> list[str]:
    return [seen.text for seen in python_seen(code) if isinstance(seen, Snippet)]


def test_a_flag_names_function_host_file_and_line(tmp_path: Path) -> None:
    code = "import requests\nURL = 'https://evil.example/in'\n\nrequests.post(URL)\n"
    (flag,) = flags_of_text(tmp_path, "scripts/send.py", code)
    assert (flag.kind, flag.message) == ("network", "Talks to the network with requests.post: evil.example.")
    assert (flag.path, flag.line) == ("scripts/send.py", 4)


def test_odd_escapes_give_no_warning_and_leave_filters_alone(tmp_path: Path) -> None:
    before = list(warnings.filters)
    assert kinds_of(tmp_path, "run.py", "import os\nx = '\\d'\nos.system(x)\n") == {"process"}
    assert list(warnings.filters) == before


def test_threads_may_read_at_the_same_time(tmp_path: Path) -> None:
    before = list(warnings.filters)
    found: list[set[str]] = []

    def read(number: int) -> None:
        folder = tmp_path / str(number)
        found.extend(kinds_of(folder, "run.py", "import os\nos.system('\\d')\n") for _ in range(20))

    threads = [threading.Thread(target=read, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [{"process"}] * 80
    assert list(warnings.filters) == before


@pytest.mark.parametrize("name", ["os.system", "shutil.rmtree", "socket.socket", "ctypes.cdll.LoadLibrary"])
def test_a_function_is_known_by_every_way_to_its_name(name: str) -> None:
    module, _, rest = name.partition(".")
    known = [
        f"import {module}\n{name}(x)",
        f"import {module} as m\nm.{rest}(x)",
        f"from {module} import *\n{rest}(x)",
        f"import {module}\nf = {name}\nf(x)",
        f"import {module}\ng = f\nf = {name}\ng(x)",
        f"import {module}\n(f := {name})(x)",
        f"import {module}\ng, f = 1, {name}\nf(x)",
        f"__import__('{module}').{rest}(x)",
        f"import sys\nsys.modules['{module}'].{rest}(x)",
    ]
    assert name in PYTHON
    assert [code for code in known if not any(name in message for message in said_of(code))] == []


@pytest.mark.parametrize(
    ("code", "place"),
    [
        ("x = '/etc/a'\nopen(x, 'w')", "/etc/a"),
        ("x = '/etc'\ny = x + '/a'\nopen(y, 'w')", "/etc/a"),
        ("x = '/etc/a'\nx = '/etc/b'\nopen(x, 'w')", ""),
        ("open(b'/etc/' + b'a', 'w')", "/etc/a"),
        ("open('/etc/' + x, 'w')", ""),
        ("from pathlib import Path\n(Path('/etc') / x).touch()", "/etc"),
        ("from pathlib import Path\n(Path('/etc/') / 'a').touch()", "/etc/a"),
        ("open('/etc/{}'.format(x), 'w')", "/etc/{}"),
        ("open(f'/etc/{x}/a', 'w')", "/etc/{}/a"),
        ("open('a/cte/'[::-1], 'w')", "/etc/a"),
        ("open('/'.join(['/etc', 'a']), 'w')", "/etc/a"),
        ("open('/'.join(['/etc', x]), 'w')", ""),
    ],
)
def test_a_path_is_known_where_the_file_alone_tells_it(code: str, place: str) -> None:
    assert said_of(code) == ([f"Writes outside its folder: {place}."] if place else [])


def test_code_starts_at_the_first_line_or_the_one_given() -> None:
    assert [seen.line for seen in python_seen("eval(x)")] == [1]
    assert [seen.line for seen in python_seen("eval(x)", 5)] == [5]


def test_lines_are_counted_as_who_reads_the_file_counts_them() -> None:
    """A carriage return alone ends a line for Python only."""
    assert [seen.line for seen in python_seen("x = 1\reval(x)\n\rexec(x)\r\n\reval(x)")] == [1, 2, 3]
    assert [seen.line for seen in python_seen("\r\x01")] == [1, 1]


SURROGATE, DEEP, DEEPER = "\ud800", "x" + "+x" * 30_000, "-" * 200_000 + "1"
# Later Pythons read a chain of any length.
CHAIN = [] if sys.version_info >= (3, 14) else [(DEEP, 7)]


@pytest.mark.parametrize(("text", "line"), [("x\n(", 8), (SURROGATE, 7), *CHAIN, (DEEPER, 7)])
def test_what_cannot_be_parsed_is_said_to_be_so_at_its_line(text: str, line: int) -> None:
    seen = list(python_seen(text, 7))
    assert seen == [Finding("obfuscation", UNREADABLE, line), Snippet("unparsed python", text, 7)]


def test_threads_that_parse_meanwhile_upset_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Up to Python 3.12 all threads share one count of how deep a tree is; one that is upset raises SystemError."""
    parse, falls = ast.parse, [SystemError("recursion depth mismatch")] * 2

    def upset(text: str) -> ast.Module:
        if falls:
            raise falls.pop()
        return parse(text)

    monkeypatch.setattr(ast, "parse", upset)
    assert [seen.line for seen in python_seen("eval(x)")] == [1]
    assert falls == []
    falls[:] = [SystemError("recursion depth mismatch")] * 100
    assert list(python_seen("1", 7)) == [Finding("obfuscation", UNREADABLE, 7), Snippet("unparsed python", "1", 7)]


def test_parsing_gives_no_warning() -> None:
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        list(python_seen("x = '\\d'"))
        assert given == []
        ast.parse("x = '\\d'")
        assert len(given) == 1


def test_only_a_command_that_is_written_out_is_read_and_only_its_start() -> None:
    assert snippets_of("import os\nos.system(x)\nos.fork()") == []
    assert snippets_of(f"import os\nos.system('{'a' * 4_001}')") == ["a" * 4_000]
    assert snippets_of(f"import os\nos.popen({['a'] * 51})") == [" ".join(["a"] * 50)]


@pytest.mark.parametrize("start", ["", "x = "])
@pytest.mark.parametrize("length", [1, 45, 150])
def test_no_chain_of_parts_hides_what_it_starts_with(start: str, length: int) -> None:
    assert said_of(f"import os\n{start}os.system('ls')" + ".a" * length) == ["Starts programs with os.system: ls."]


@pytest.mark.parametrize("start", ["getattr(os, ", "__import__("])
def test_names_inside_names_can_be_as_deep_as_python_allows(start: str) -> None:
    assert len(said_of("import os\n" + start * 190 + "x" + ")()" * 190)) == 190


@pytest.mark.slow
def test_many_modules_imported_whole_take_no_longer_than_their_number_allows() -> None:
    code = "".join(f"from m{number} import *\n" for number in range(2_000)) + "f()\n" * 8_000
    started = time.process_time()
    assert said_of(code) == []
    assert time.process_time() - started < 5
