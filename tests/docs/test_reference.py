"""The reference names everything that there is: commands, options, names, exit codes, variables, settings."""

from __future__ import annotations

import importlib
import importlib.util
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import click
import pytest
from support.doc_pages import ROOT

import skillkit
from skillkit import STANDARD
from skillkit import cli as exit_codes
from skillkit.cli import main as command_line
from skillkit.config.keys import KEYS
from skillkit.core.resolve import environment
from skillkit.core.values import names
from skillkit.core.values.runs import TIMEOUT_EXIT_CODE

PUBLIC_MODULES = (
    "skillkit.approvers.callback",
    "skillkit.approvers.store",
    "skillkit.approvers.terminal",
    "skillkit.integrations.functions",
    "skillkit.integrations.inline",
    "skillkit.integrations.langchain",
    "skillkit.testing",
)


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def cli_reference() -> ModuleType:
    spec = importlib.util.spec_from_file_location("cli_reference", ROOT / "tools/cli_reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_commands_and_their_options_are_what_the_command_line_says(cli_reference: ModuleType) -> None:
    by_hand, mark, generated = page("reference/cli.md").partition(cli_reference.BEGIN)
    assert mark
    assert generated.strip() == cli_reference.reference().strip(), "run: .venv/bin/python tools/cli_reference.py"
    assert re.findall(r"^## skillkit (\w+)$", generated, re.MULTILINE) == list(command_line.COMMANDS)
    assert all(f"(#skillkit-{name})" in by_hand for name in command_line.COMMANDS)


def commands(group: click.Group, context: click.Context) -> Iterator[tuple[str, click.Command]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        inner = click.Context(command, info_name=name, parent=context)
        yield inner.command_path, command
        if isinstance(command, click.Group):
            yield from commands(command, inner)


COMMANDS = dict(commands(command_line.cli, click.Context(command_line.cli, info_name="skillkit")))
EXAMPLES = {
    path: [line.strip() for line in (command.help or "").splitlines() if re.match(r" +skillkit ", line)]
    for path, command in COMMANDS.items()
}


@pytest.mark.parametrize("path", EXAMPLES)
def test_an_example_in_a_help_text_names_commands_and_options_that_exist(path: str) -> None:
    for example in EXAMPLES[path]:
        words = shlex.split(re.split(r" {2,}| [|>] ", example)[0])
        depth = next((depth for depth in (3, 2) if len(words) >= depth and " ".join(words[:depth]) in COMMANDS), 0)
        assert depth, example
        command = COMMANDS[" ".join(words[:depth])]
        context = click.Context(command, info_name=words[depth - 1])
        command.make_parser(context).parse_args(words[depth:])


def test_the_glossary_names_what_is_in_the_code() -> None:
    sources = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    rows = re.findall(r"^\| \*\*.*\| (.*) \|$", page("glossary.md"), re.MULTILINE)
    named = [name for row in rows for name in re.findall(r"`([\w.]+)=?`", row)]
    assert len(named) > len(rows) / 2
    assert [name for name in named if not re.search(rf"\b{name.rpartition('.')[2]}\b", sources)] == []


def test_every_public_name_is_in_the_api_reference() -> None:
    described = re.findall(r"^::: ([\w.]+)$", page("reference/api.md"), re.MULTILINE)
    expected = {f"skillkit.{name}" for name in skillkit.__all__} - {"skillkit.__version__", "skillkit.SkillsUseError"}
    for module in PUBLIC_MODULES:
        expected |= {f"{module}.{name}" for name in importlib.import_module(module).__all__}
    assert expected <= set(described)
    assert len(described) == len(set(described))
    for name in described:
        module, _, attribute = name.rpartition(".")
        assert hasattr(importlib.import_module(module), attribute), name


def test_the_tree_of_errors_is_the_one_in_the_code() -> None:
    from skillkit.core import exceptions

    tree = str(exceptions.__doc__).partition("\n\n")[2].strip()
    assert tree in page("reference/api.md")


def test_every_exit_code_is_explained() -> None:
    codes = re.findall(r"^\| (\d+)", page("reference/exit-codes.md"), re.MULTILINE)
    own = (exit_codes.OWN_FAILURE, exit_codes.REFUSED, exit_codes.NOT_FOUND, exit_codes.INTERRUPTED)
    assert {str(code) for code in (0, 1, 2, TIMEOUT_EXIT_CODE, *own)} == set(codes) - {"128"}
    rows = dict(re.findall(r"^\| (\d+) \| (.*)$", page("reference/exit-codes.md"), re.MULTILINE))
    assert all(f"`{kind.__name__}`" in rows[str(code)] for kind, code in command_line.EXIT_CODES.items())


def test_every_variable_that_a_script_sees_or_skillkit_reads_is_listed(tmp_path: Path) -> None:
    text = page("reference/environment.md")
    seen, read = text.partition("\n## What skillkit reads\n")[::2]
    built = environment.script_environment(
        STANDARD, {}, skill_name="x", skill_version=None, base_directory=tmp_path, workspace=tmp_path
    )
    assert [name for name in built if f"`{name}`" not in seen] == []
    never = {*names.NEVER_PASSED, *(f"{prefix}*" for prefix in names.NEVER_PASSED_PREFIXES)}
    assert sorted(name for name in never if f"`{name}`" not in seen) == []
    sources = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    own = set(re.findall(r'"(SKILLKIT_[A-Z_]+[A-Z])"', sources))
    assert [name for name in own if f"`{name}`" not in text] == []
    assert all(name in own or name in sources for name in re.findall(r"^\| `(_?SKILLKIT_\w+)`", read, re.MULTILINE))


def test_every_setting_is_described() -> None:
    text = page("reference/configuration.md")
    assert [key for key in KEYS if f"`{key}`" not in text] == []
