"""The command line's own help -> the list of commands in docs/reference/cli.md. Run it after changing a command."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import click

from skillkit.cli.main import cli

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "cli.md"
BEGIN = "<!-- from here on written by tools/cli_reference.py -->\n"


def main() -> None:
    by_hand, _, _ = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    PAGE.write_text(by_hand + BEGIN + "\n" + reference(), encoding="utf-8")


def reference() -> str:
    return "\n".join(sections(cli, click.Context(cli, info_name="skillkit")))


def sections(group: click.Group, context: click.Context) -> Iterator[str]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None or command.hidden:
            continue
        inner = click.Context(command, info_name=name, parent=context)
        yield section(command, inner)
        if isinstance(command, click.Group):
            yield from sections(command, inner)


def section(command: click.Command, context: click.Context) -> str:
    depth = context.command_path.count(" ")
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    parts = [f"{'#' * (1 + depth)} {context.command_path}\n", f"`{usage}`\n", *paragraphs(command)]
    rows = [row(option) for option in command.params if isinstance(option, click.Option) and not option.hidden]
    if rows:
        parts.append("| option | |\n|---|---|\n" + "\n".join(rows) + "\n")
    return "\n".join(parts)


def paragraphs(command: click.Command) -> Iterator[str]:
    """The help text without its examples: those stand beside what they need, in the other pages."""
    text = inspect.cleandoc(command.help or "").partition("\f")[0]
    for paragraph in re.split(r"\n\s*\n", text):
        if not paragraph.startswith("\b"):
            yield escaped(" ".join(paragraph.split())) + "\n"


def row(option: click.Option) -> str:
    names = ", ".join(f"`{name}`" for name in option.opts + option.secondary_opts)
    value = "" if option.is_flag or option.count else f" `{shown_value(option)}`"
    default = f" Default: {option.default}." if option.show_default and option.default is not None else ""
    again = " Repeatable." if option.multiple and "repeatable" not in (option.help or "") else ""
    return f"| {names}{value.replace('|', chr(92) + '|')} | {escaped(option.help or '')}{default}{again} |"


def shown_value(option: click.Option) -> str:
    if isinstance(option.type, click.Choice):
        return "|".join(option.type.choices)
    return option.metavar or option.type.name.upper().replace(" RANGE", "")


def escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


if __name__ == "__main__":
    main()
