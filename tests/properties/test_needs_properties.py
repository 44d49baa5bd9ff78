"""Whatever bytes a skill's files hold, its needs are told, and in time that grows as the files do."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support.growth import GROWTH, grows_fast, repeated, seconds_for

from skillkit.core.find.needs import Surroundings, met, needs_of
from skillkit.core.find.needs.declared import declared_facts
from skillkit.core.find.needs.found import Facts
from skillkit.core.find.needs.installing import instructed_facts
from skillkit.core.find.needs.javascript_code import javascript_facts
from skillkit.core.find.needs.manifests import block_facts, manifest_facts, script_block
from skillkit.core.find.needs.python_code import python_facts
from skillkit.core.find.needs.shell_code import shell_facts
from skillkit.core.find.needs.texts import note_patterns
from skillkit.core.models import Skill, SkillMetadata
from skillkit.core.values.policy import GUARDED

NAMES = st.sampled_from(
    "SKILL.md scripts/a.py scripts/b.sh scripts/c.mjs scripts/d.ts scripts/e.ps1 scripts/f.rb scripts/g run.pl "
    "requirements.txt pyproject.toml package.json scripts/lib/h.py".split()
)
PIECES = st.sampled_from(
    [
        "import a.b as c\n", "from . import x\n", "os.environ['X_TOKEN']\n", "'https://{}.x.dev:99999'", "$(", "`", "((",
        "case x in a|b)", "<<EOF\n", "#!/usr/bin/env python3\n", "# /// script\n# dependencies = [\n", "pip install ", '"',
        "'", "\\", "/*", "//", "process.env.", "${", "~/.x/", "Path.home() / ", "f'{a}{a}'", "a = a + a\n", "\r\n", "\x00",
        "```bash\n", "export A_KEY=", "[project]\n", '{"dependencies": {', "\ud800", "é" * 5, "---\n", "\t", "::1", "]]", "=~ (",
    ]
)  # fmt: skip
CONTENT = st.one_of(st.binary(max_size=300), st.lists(PIECES, max_size=30).map(lambda pieces: "".join(pieces).encode("utf-8", "surrogatepass")))  # fmt: skip
ANY = st.recursive(
    st.one_of(st.none(), st.text(max_size=30), st.integers()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from("requires bins env name install primaryEnv openclaw".split()), inner, max_size=4
        ),
    ),
    max_leaves=10,
)


@settings(suppress_health_check=[HealthCheck.too_slow])  # how fast inputs are made says how busy the machine is
@example(files={}, metadata=None, requires=None, script="\0")
@given(files=st.dictionaries(NAMES, CONTENT, max_size=5), metadata=ANY, requires=ANY, script=st.one_of(st.none(), NAMES, st.text()))  # fmt: skip
def test_any_bytes_in_any_file_give_needs(
    files: dict[str, bytes], metadata: object, requires: object, script: str | None
) -> None:
    with tempfile.TemporaryDirectory() as work:
        for name, content in files.items():
            path = Path(work, name)
            path.parent.mkdir(exist_ok=True, parents=True)
            path.write_bytes(content)
        known = metadata if isinstance(metadata, dict) else {}
        found = SkillMetadata("x", "y", Path(work, "SKILL.md"), metadata=known, extra={"requires": requires})
        needs = needs_of(Skill(found), script)
        assert needs == needs_of(Skill(found), script)
        assert len({(need.kind, need.name) for need in needs}) == len(needs)
        assert all(need.is_met or need.remedy for need in met(needs, Surroundings("x", GUARDED)))
        assert all("\n" not in f"{need.name}{need.where}" for need in needs)


READERS: dict[str, Callable[[str], Facts]] = {
    "python": python_facts,
    "shell": shell_facts,
    "javascript": javascript_facts,
    "unparsed": lambda text: note_patterns(text, "python"),
    "instructions": instructed_facts,
    "block": block_facts,
    "requirements": lambda text: manifest_facts("requirements.txt", text),
    "pyproject": lambda text: manifest_facts("pyproject.toml", text),
    "package": lambda text: manifest_facts("package.json", text),
    "compatibility": lambda text: declared_facts({"compatibility": text, "requires": text}, text),
}
UNITS = (
    "a = f'{a}{a}{a}{a}'\n", "x + ", "Path.home() / ", "os.environ['A_TOKEN'] ", "import a.b.c\n", "https://", "https://a.", "a.",
    "in|", "in a|", "a|", "| ", ";;", "'", '"', "`", "``", "$(", "${A_KEY:-", "((", "<<A\n", "/*", "//", "/", "~/", "~/a/ ", "import ",
    "import {a, ", "export * ", "process.env.A || ", "{a,", "# /// script\n", "#\n", "[", "{", '{"a":', "pip install ", "npm i ", "export ",
    "A_", "A", " ", "\n", "\t", "@", "{$.", "%.", "-", "my-domain", "homedir(), 'a', ", "spawn('a b'); child_process ", "alias a=", "f() ", "=~ (a|b)\n",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("unit", UNITS)
def test_reading_takes_time_that_grows_as_the_text_does(reader: str, unit: str) -> None:
    assert not grows_fast(READERS[reader], repeated(unit))
    assert not grows_fast(READERS[reader], repeated(unit, before="esac https:// import a from '"))


# As PEP 723 writes it down; it looks at all lines of a comment again for each opening line in it.
PEP_723 = re.compile(r"(?m)^# /// script[ \t]*\n((?:#(?: [^\n]*)?\n)+)# ///[ \t]*$")


@given(
    st.lists(
        st.sampled_from(("# /// script", "# /// script ", "# ///", "# ///\t", "#", "# a = 1", "#a", "x", "")),
        max_size=12,
    )
)
def test_a_block_is_where_the_standard_sees_it(lines: list[str]) -> None:
    text = "\n".join(lines)
    block = PEP_723.search(text)
    expected = ("", 0)
    if block is not None:
        toml = "\n".join(line[2:] for line in block[1].removesuffix("\n").split("\n"))
        expected = (toml, text.count("\n", 0, block.start(1)) + 1)
    assert script_block(text) == expected


def test_a_comment_that_opens_many_blocks_is_read_as_fast_as_one_block() -> None:
    """Searched by the standard's pattern, each opening line is one more look at all that follow."""
    times = 3_000
    one = seconds_for(lambda: [script_block("# /// script\n" + "# another =\n" * times) for _ in range(10)])
    many = seconds_for(lambda: [script_block("# /// script\n" * times) for _ in range(10)])
    assert many < GROWTH * one
    assert seconds_for(lambda: PEP_723.search("# /// script\n" * times)) > GROWTH * many / 10
