"""Texts that are made to keep their reader busy: the time to read one grows as the text does, and nothing recurses."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.growth import grows_fast, repeated
from support.running import made_manager
from support.skill_folders import skill_folder

from skillkit import GUARDED, SkillManager
from skillkit.core.ask.risk import risk_flags
from skillkit.core.models.digest import manifest_of
from skillkit.core.values.text import toml_of
from skillkit.integrations.functions import SkillFunctions
from skillkit.integrations.inline import InlineProcessor

UNITS = {
    "spans": "`a",
    "commands": "Run `x y` ",
    "own scripts": "Run `scripts/run.sh <a>` ",
    "links": "[x](a.md) ",
    "links to scripts": "run [x](scripts/run.sh), ",
    "files": "see `a.md` ",
    "denials": "do not run, not, `a b` ",
    "open links": "[a](",
    "open brackets": "![",
    "open tags": '<a b="',
    "open comments": "<!--",
    "emphasis": "*a **b",
    "quotations": "> ",
    "lists": "- - ",
    "headings": "#\n",
    "fences": "```\na\n```\n",
    "tables": "a|b\n-|-\n",
    "definitions": "[a]: b\n",
    "placeholders": "$ARGUMENTS[",
    "folders": "{skill ",
}
SHELL_UNITS = {
    "substitutions": "$(",
    "backticks": "`a",
    "signs": "a#",
    "conditions": "if ",
    "variables": "a=b ",
    "wrappers": "env ",
    "options": "-a ",
    "quotes": "\"a '",
    "documents": "<<A\n",
    "braces": "{a,",
    "examples": "<a",
    "backslashes": '\\"',
    "separators": "./scripts/run.sh a;",
}


def loading(folder: Path) -> Callable[[str], object]:
    def load(body: str) -> object:
        skill_folder(folder / "skills", "demo", body=body, files={"scripts/run.sh": "echo ran\n"})
        with SkillManager(folder / "skills", "", [], [], policy=GUARDED, state_dir=folder / "state") as manager:
            return SkillFunctions(manager).load_skill("demo")

    return load


def test_control_looking_at_all_that_stands_before_each_span_grows_too_fast() -> None:
    def read(text: str) -> None:
        for span in re.finditer("`", text):
            re.search(r"\bnever\b", text[: span.start()])

    assert grows_fast(read, repeated("`a "), of_three=any)


@pytest.mark.parametrize("unit", UNITS.values(), ids=UNITS)
def test_instructions_are_read_in_time_that_grows_as_they_do(tmp_path: Path, unit: str) -> None:
    assert not grows_fast(loading(tmp_path), repeated(unit))


@pytest.mark.parametrize("unit", SHELL_UNITS.values(), ids=SHELL_UNITS)
def test_commands_in_instructions_are_read_in_time_that_grows_as_they_do(tmp_path: Path, unit: str) -> None:
    assert not grows_fast(loading(tmp_path), repeated(unit, "```bash\n./scripts/run.sh ", "\n```\n"))


COMPOUND: dict[str, Callable[[int], str]] = {
    "a long text above many blocks": lambda n: "word " * (n // 10) + "\n\n" + "```\nx\n```\n\n" * (n // 24),
    "a long text above a list": lambda n: "never " * (n // 12) + ":\n\n" + "- `a b`\n" * (n // 16),
    "a long remark above many commands": lambda n: (
        f"```bash\n# {'never ' * (n // 12)}\n{'./scripts/run.sh;' * (n // 34)}\n```"
    ),
    "a word of capitals": lambda n: f"```bash\n./scripts/run.sh A{'0' * n}a\n```",
    "a path of many folders": lambda n: f"Run `{'a/' * (n // 2)}x.sh` now, then `{'a/' * (n // 2)}x.md`.",
    "lists in lists": lambda n: "".join(f"{' ' * depth}- a\n" for depth in range(int((2 * n) ** 0.5))),
}


@pytest.mark.parametrize("text_of", COMPOUND.values(), ids=COMPOUND)
def test_no_part_of_instructions_makes_another_slow(tmp_path: Path, text_of: Callable[[int], str]) -> None:
    assert not grows_fast(loading(tmp_path), text_of)


def test_many_scripts_and_many_spans_do_not_multiply(tmp_path: Path) -> None:
    def load(text: str) -> object:
        folder = tmp_path / str(len(text))
        files = {f"scripts/s{number}.sh": "" for number in range(len(text) // 40)}
        skill_folder(folder / "skills", "demo", body=text, files=files)
        with SkillManager(folder / "skills", "", [], [], policy=GUARDED, state_dir=folder / "state") as manager:
            return SkillFunctions(manager).load_skill("demo")

    assert not grows_fast(load, repeated("Run `tools/x a` "))


FRONTMATTER = {
    "lists": "a: " + "[" * 50_000,
    "maps": "a: " + "{a: " * 20_000,
    "indents": "".join(f"{' ' * depth}a:\n" for depth in range(400)),
    "aliases": "a: &a x\nb: [" + "*a," * 20_000 + "]",
    "broken entries": "x: [\n" + "".join(f"k{number}: [\n" for number in range(5_000)),
    "broken maps": "x: [\na:\n" + "".join(f" k{number}: [\n" for number in range(5_000)),
    "questions": "? " * 30_000,
}


@pytest.mark.parametrize("block", FRONTMATTER.values(), ids=FRONTMATTER)
def test_odd_frontmatter_is_a_remark_and_never_a_crash(tmp_path: Path, block: str) -> None:
    manager = made_manager(tmp_path, {}, frontmatter=f"name: demo\ndescription: d\n{block}")
    skill_folder(tmp_path / "skills", "good")
    with manager:
        assert "good" in [skill.name for skill in manager.list_skills()]
        assert manager.diagnostics


@pytest.mark.parametrize(
    "unit",
    ["$(", "`", "((", "{ ", "if a; then ", "eval '", "<<A\n", "f'{", "lambda:", "a.b(", "[", "not ", "/*", '"""'],
)
@pytest.mark.parametrize("name", ["x.py", "x.sh", "x.js", "x.rb", "x.pl", "x.ps1", "x.md"])
def test_code_is_looked_through_in_time_that_grows_as_it_does(tmp_path: Path, name: str, unit: str) -> None:
    def read(text: str) -> object:
        (tmp_path / name).write_text(text)
        return risk_flags(tmp_path, manifest_of(tmp_path), [name])

    assert not grows_fast(read, repeated(unit))


@pytest.mark.parametrize("unit", ["!{", "!{a\n\n", "%{a {", "`", "~~~\n", "\\", "!{'", "!{a b}", "{"])
def test_an_answer_is_read_in_time_that_grows_as_it_does(tmp_path: Path, unit: str) -> None:
    with made_manager(tmp_path, {}, policy=GUARDED) as manager:

        def read(text: str) -> None:
            processor = InlineProcessor(manager, skills=[])
            for start in range(0, len(text), 7):
                processor.feed(text[start : start + 7])
            processor.finish()

        assert not grows_fast(read, repeated(unit))


LOAD = """
import sys
from skillkit import SkillManager, GUARDED
from skillkit.integrations.functions import SkillFunctions
with SkillManager(sys.argv[1], "", [], [], policy=GUARDED, state_dir=sys.argv[2]) as manager:
    print(SkillFunctions(manager).load_skill("demo").status)
"""


@pytest.mark.parametrize("unit", ["`a", "Run `x` ", "![", "#\n", "[x](a.md) "])
def test_a_megabyte_of_such_text_is_loaded(tmp_path: Path, unit: str) -> None:
    skill_folder(tmp_path / "skills", "demo", body=unit * (1_000_000 // len(unit)), files={"scripts/run.sh": ""})
    command = [sys.executable, "-c", LOAD, str(tmp_path / "skills"), str(tmp_path / "state")]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert (ended.stdout, ended.stderr) == ("ok\n", "")


LONG_KEYS = {
    "plain": "a" + ".a" * 30_000 + " = 1\n",
    "spaced": "a" + " . a" * 30_000 + " = 1\n",
    "quoted": '" "' + '." "' * 30_000 + " = 1\n",
    "long words": "a" * 70 + f".{'a' * 70}" * 1_700 + " = 1\n",
    "a table": "[a" + ".a" * 60_000 + "]\n",
    "inside": "x = {a" + ".a" * 30_000 + " = 1}\n",
    "quotes that do not close": '"' + '\\"' * 30_000 + "." * 101 + "\n",
}


@pytest.mark.parametrize("key", LONG_KEYS)
def test_a_long_key_in_somebody_elses_toml_is_refused_at_once(tmp_path: Path, key: str) -> None:
    """The library for TOML takes the square of its length: half a minute for the first of these."""
    code = """
import sys
from pathlib import Path
from skillkit.core.exceptions import SkillKitError
from skillkit.core.find.needs.manifests import block_facts, manifest_facts
from skillkit.packages.skill_lock import python_pins_of
from skillkit.sources.lock import read_lock
folder = Path(sys.argv[1])
text = (folder / "uv.lock").read_text()
manifest_facts("pyproject.toml", text)
block_facts("# /// script\\n# " + text + "# ///\\n")
for read in (lambda: python_pins_of(folder), lambda: read_lock(folder / "skills.lock")):
    try:
        read()
    except SkillKitError:
        pass
print("done")
"""
    for name in ("uv.lock", "skills.lock", "requirements.lock"):
        (tmp_path / name).write_text(LONG_KEYS[key])
    words = [sys.executable, "-c", code, str(tmp_path)]
    began = resource_of_children()
    said = subprocess.run(words, check=True, capture_output=True, text=True)
    assert said.stdout == "done\n"
    assert resource_of_children() - began < 8, "seconds of the processor; unguarded it is a minute"


def resource_of_children() -> float:
    spent = os.times()
    return spent.children_user + spent.children_system


def test_usual_manifests_with_many_dots_are_read() -> None:
    listed = ", ".join(f'"package-{number}==1.2.{number}"' for number in range(200))
    assert toml_of(f"[project]\ndependencies = [{listed}]\n")["project"]["dependencies"][199] == "package-199==1.2.199"
