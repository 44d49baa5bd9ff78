"""Settings under any files: a key's line is the line of its statement, and a project never loosens."""

from __future__ import annotations

import tempfile
import tomllib
from dataclasses import fields
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.config_files import Machine

from skillkit import ConfigurationError, Limits, ScriptPolicy
from skillkit.config.files import Place
from skillkit.config.keys import KeyPath, config_file, key_lines, toml_text
from skillkit.core.values.policy import PROFILES

BOUNDED = settings(
    max_examples=80, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

SCALARS = (
    *("1", "-0.5e3", "true", "inf", "0xdead", "1979-05-27 07:32:00Z", "07:32:00.5", "1979-05-27"),
    *('""', "''", '"#"', "'#'", '"a\\"b"', "'\\'", '"]"', "'}'", '"a = 1"', "'[x]'", '"\\\\"', "'\"'", '"\'"'),
    *(
        '""""""',
        "''''''",
        '"""a\n[b]\nc = 1\n"""',
        "'''\nx = \"\"\"\n'''",
        '"""a"""""',
        "'''a'''''",
        '"""\\"""\n# x"""',
    ),
    *('"""\\\\"""', '"""a\\\n   b"""', "'''\\'''", "'''\n\n#'''"),
)
GAPS = st.sampled_from(["", " ", "\n", " # ] } = [x]\n", "\t\n\n", "#\n"])


class Document:
    """TOML text that notes, while it is written, on which line the statement begins that names a key."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.text = ""
        self.count = 0
        self.line = 1
        self.lists = 0
        self.expected: dict[KeyPath, int] = {}

    def write(self, text: str) -> None:
        self.text += text

    def name(self) -> tuple[str, str]:
        """A key that no other one equals, and one of the ways to write it."""
        self.count += 1
        kind = self.draw(st.sampled_from(["bare", "text", "literal"]))
        if kind == "bare":
            plain = f"key-{self.count}_"
            return plain, plain
        if kind == "literal":
            plain = str(self.count) + self.draw(st.sampled_from(["", " . ", "#", "]", '"', "="]))
            return plain, f"'{plain}'"
        plain = f"{self.count}{self.draw(st.text(max_size=4))}"
        return plain, toml_text(plain)

    def key(self, table: KeyPath) -> KeyPath:
        path = table
        for index in range(self.draw(st.integers(1, 3))):
            if index:
                self.write(self.draw(st.sampled_from([".", " . ", "\t."])))
            plain, text = self.name()
            path = (*path, plain)
            if not self.lists:
                self.expected.setdefault(path, self.line)
            self.write(text)
        return path

    def pair(self, table: KeyPath, depth: int) -> None:
        path = self.key(table)
        self.write(self.draw(st.sampled_from(["=", " = ", "\t=  "])))
        self.value(path, depth)

    def value(self, path: KeyPath, depth: int) -> None:
        kind = self.draw(st.sampled_from(["scalar", "list", "table"])) if depth else "scalar"
        if kind == "scalar":
            self.write(self.draw(st.sampled_from(SCALARS)))
        elif kind == "list":
            self.list(path, depth)
        else:
            self.write("{ ")
            for index in range(self.draw(st.integers(0, 2))):
                self.write(", " if index else "")
                self.pair(path, depth - 1)
            self.write("}")

    def list(self, path: KeyPath, depth: int) -> None:
        self.write("[")
        self.lists += 1
        for _ in range(self.draw(st.integers(0, 3))):
            self.write(self.draw(GAPS))
            self.value(path, depth - 1)
            self.write(self.draw(GAPS) + ",")
        self.lists -= 1
        self.write(self.draw(GAPS) + "]")

    def statement(self, table: KeyPath) -> KeyPath:
        self.write(self.draw(st.sampled_from(["", "\n", "# a = 1\n", "  ", "\t# [x]\n\n"])))
        self.line = self.text.count("\n") + 1
        kind = self.draw(st.sampled_from(["pair", "pair", "[", "[["]))
        if kind == "pair":
            self.pair(table, depth=3)
        else:
            self.write(kind + self.draw(st.sampled_from(["", " "])))
            table = self.key(())
            self.write(self.draw(st.sampled_from(["", " "])) + "]" * len(kind))
        self.write(self.draw(st.sampled_from(["\n", " \n", " # ' \" = [\n"])))
        return table


@st.composite
def documents(draw: st.DrawFn) -> tuple[str, dict[KeyPath, int]]:
    document = Document(draw)
    table: KeyPath = ()
    for _ in range(draw(st.integers(0, 6))):
        table = document.statement(table)
    return document.text, document.expected


def key_paths(value: Any, above: KeyPath = ()) -> set[KeyPath]:
    """Without those that stand in a list: no setting does."""
    if not isinstance(value, dict):
        return set()
    return {(*above, key) for key in value}.union(*(key_paths(each, (*above, key)) for key, each in value.items()))


@BOUNDED
@given(documents())
def test_the_line_of_a_key_is_the_line_of_its_statement(document: tuple[str, dict[KeyPath, int]]) -> None:
    text, expected = document
    found = key_lines(text, depth=100)
    assert found == expected
    assert key_paths(tomllib.loads(text)) <= set(found)
    assert key_lines(text.replace("\n", "\r\n"), depth=100) == expected


@BOUNDED
@given(st.text(st.sampled_from("ab.=[]{}'\"#\n ,1\\")))
def test_whatever_tomllib_takes_has_a_line_for_every_key(text: str) -> None:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    assert key_paths(data) <= set(key_lines(text, depth=100))


@BOUNDED
@given(st.text() | st.text(st.sampled_from("ab.=[]{}'\"#\n ,1\\")))
def test_any_text_is_settings_or_a_configuration_error(text: str) -> None:
    try:
        config_file(Place("project", Path("/project/skillkit.toml")), text)
    except ConfigurationError as error:
        message = str(error)
    else:
        return
    assert message.startswith("/project/skillkit.toml:")


FOLDERS = ["/srv", "/srv/data", "/srv/data/deep", "/srv/../opt", "/opt", "/srv2"]
ENTRIES = ["git", "g*", "ls", "*", "scripts/*", "scripts/a.py", "scripts/b.py", "demo:scripts/a.py", "*/a.py"]
NAMES = ["python3", "bash", "node"]
VALUES: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(
        ("allow_scripts", "allow_network", "allow_filesystem", "inherit_environment", "grant_argument_paths"),
        st.booleans(),
    ),
    "timeout_seconds": st.integers(1, 600) | st.floats(1, 600),
    "allowed_commands": st.lists(st.sampled_from(ENTRIES), max_size=3),
    "allowed_interpreters": st.lists(st.sampled_from(NAMES), max_size=3),
    "pass_environment": st.lists(st.sampled_from(["A", "B", "C"]), max_size=3),
    "grantable": st.lists(st.sampled_from(["host", "secret", "read"]), max_size=3),
    "readable_paths": st.lists(st.sampled_from(FOLDERS), max_size=2),
    "writable_paths": st.lists(st.sampled_from(FOLDERS), max_size=2),
    "allowed_tools_mode": st.sampled_from(["restrict", "grant", "ignore"]),
    "approval": st.sampled_from(["never", "first_run", "always"]),
    "run_on_load": st.sampled_from(["ask", "trusted", "never"]),
    "sandbox": st.sampled_from(["off", "preferred", "required"]),
    "working_directory": st.sampled_from(["skill", "workspace", "auto"]),
    "home": st.sampled_from(["kept", "fresh"]),
    **{f"limits.{each.name}": st.integers(1, 2000) for each in fields(Limits)},
}


@st.composite
def policy_texts(draw: st.DrawFn) -> str:
    profile = draw(st.none() | st.sampled_from(list(PROFILES)))
    names = draw(st.lists(st.sampled_from(list(VALUES)), max_size=4, unique=True))
    lines = [f"profile = {toml_text(profile)}"] if profile else []
    return "\n".join([*lines, *(f"policy.{name} = {toml_text(draw(VALUES[name]))}" for name in names)])


def can_do(policy: ScriptPolicy) -> set[object]:
    """What a policy lets happen, as facts: a tighter policy has no fact that a looser one lacks."""
    facts: set[object] = {name for name in VALUES if getattr(policy, name, None) is True}
    facts |= {("interpreter", name) for name in policy.allowed_interpreters}
    facts |= {("variable", name) for name in policy.pass_environment}
    facts |= {
        (list_name, path)
        for list_name in ("readable_paths", "writable_paths")
        for path in FOLDERS
        for folder in getattr(policy, list_name)
        if Path(path).resolve().is_relative_to(folder.resolve())
    }
    programs = [entry for entry in policy.allowed_commands if "/" not in entry]
    scripts = [entry for entry in policy.allowed_commands if "/" in entry] or ["*"]
    facts |= {("program", word) for word in ("git", "gh", "ls", "rm") for entry in programs if fnmatchcase(word, entry)}
    for script in ("scripts/a.py", "scripts/b.py", "tools/a.py", "c.py"):
        if any(fnmatchcase(name, entry) for name in (script, f"demo:{script}") for entry in scripts):
            facts.add(("script", script))
    facts |= {("unasked", when) for when in {"never": (1, 2), "first_run": (2,), "always": ()}[policy.approval]}
    facts |= {("without walls", how) for how in {"off": (1, 2), "preferred": (2,), "required": ()}[policy.sandbox]}
    tools = {"ignore": ("empty", "other", "asked"), "grant": ("asked",), "restrict": ("empty",)}
    facts |= {("tools", which) for which in tools[policy.allowed_tools_mode]}
    facts |= {("finds what earlier runs left",)} if policy.home == "kept" else set()
    return facts | {("directory", policy.working_directory)}


@settings(BOUNDED, max_examples=120)
@given(user=policy_texts(), project=policy_texts())
def test_no_project_loosens_what_the_user_allows(user: str, project: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(Path(folder).resolve())
        machine.user(user)
        own = machine.settings().policy
        machine.repository(project)
        merged = accepted(machine)
        machine.trusting(user)
        wished = machine.settings().policy
    if merged is None:
        assert wished != own
        return
    assert merged == wished
    assert can_do(merged) <= can_do(own)
    assert merged.timeout_seconds <= own.timeout_seconds
    for each in fields(Limits):
        assert getattr(merged.limits, each.name) <= getattr(own.limits, each.name)


def accepted(machine: Machine) -> ScriptPolicy | None:
    try:
        return machine.settings().policy
    except ConfigurationError:
        return None


@settings(BOUNDED, max_examples=120)
@given(user=policy_texts())
def test_a_project_that_wants_what_the_user_allows_is_never_refused(user: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(Path(folder).resolve())
        machine.user(user)
        machine.repository(user)
        assert machine.settings().policy == accepted(machine)


def test_the_facts_tell_the_profiles_apart() -> None:
    """A positive control: what a project would gain is seen."""
    facts = [can_do(PROFILES[name]) for name in ("locked", "guarded", "standard", "trusted")]
    assert all(tighter < looser for tighter, looser in pairwise(facts))
