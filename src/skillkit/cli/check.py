"""`skillkit check`: whether a script may run and what it could reach, without running it."""

from __future__ import annotations

from typing import Any, Unpack

import click

from skillkit.cli.asking import session_id
from skillkit.cli.exit_codes import REFUSED
from skillkit.cli.options import (
    SCRIPT,
    SKILL,
    Chosen,
    beside,
    echo_json,
    json_option,
    manager_for,
    policy_options,
    roots_options,
)
from skillkit.cli.run import current_workspace, parsed_input
from skillkit.core.runs import Decision, PreparedRun
from skillkit.present.request import as_word
from skillkit.present.terminal import visible

__all__ = ["check_command"]

LABEL_WIDTH = 10


@click.command("check", short_help="Say whether a script may run, and what it could reach.")
@click.argument("skill_name", metavar="SKILL", type=SKILL)
@click.argument("script_name", metavar="SCRIPT", type=SCRIPT)
@click.argument("argv", metavar="[-- ARGS...]", nargs=-1, type=click.UNPROCESSED)
@click.option("--input", "given", metavar="JSON|@FILE|-", help="JSON for the script's stdin; @FILE or - reads it.")
@policy_options
@roots_options
@json_option
@click.pass_context
def check_command(
    ctx: click.Context,
    skill_name: str,
    script_name: str,
    argv: tuple[str, ...],
    given: str | None,
    as_json: bool,
    **chosen: Unpack[Chosen],
) -> None:
    """Say whether a script may run, why, and what it could reach; nothing is run.

    The exit code is 0 when it may run or would be asked about, 126 when it may not.

    \b
    Examples:
      skillkit check csv-report report
      skillkit check csv-report report --policy locked
      skillkit check csv-report report --json -- ~/data/sales.csv
    """
    with manager_for(chosen, session_id=session_id()) as manager:
        prepared = manager.prepare_skill_script(
            skill_name,
            script_name,
            parsed_input(given, chosen.get("state_dir")),
            argv=argv,
            workspace=current_workspace(chosen.get("state_dir")),
        )
        structure = check_structure(prepared, manager.flow.reach((prepared.command,)))
    if as_json:
        echo_json(**structure)
    else:
        click.echo("\n".join(check_lines(structure)))
    ctx.exit(REFUSED if prepared.decision is Decision.DENY else 0)


def check_structure(prepared: PreparedRun, walls: tuple[str, ...]) -> dict[str, Any]:
    command = prepared.command
    return {
        "skill": command.skill_name,
        "script": command.script_name,
        "decision": prepared.decision.name.lower(),
        "reasons": list(prepared.reasons),
        "needs_approval": prepared.decision is Decision.ASK,
        "walls": list(walls),
        "arguments": [word.encode("utf-8", "backslashreplace").decode() for word in command.script_arguments],
        "interpreter": command.argv[0],
        "folder": str(command.base_directory),
        "digest": command.digest,
    }


def check_lines(structure: dict[str, Any]) -> list[str]:
    meaning = {
        "allow": "may run",
        "ask": "runs only when a person approves it",
        "deny": "may not run",
    }[structure["decision"]]
    rows = [
        ("decision", [f"{structure['decision']}: {meaning}"]),
        ("because", structure["reasons"]),
        ("walls", structure["walls"]),
        *([("arguments", [as_word(word) for word in structure["arguments"]])] if structure["arguments"] else []),
        ("runs with", [structure["interpreter"]]),
        ("skill in", [structure["folder"]]),
        ("digest", [structure["digest"]]),
    ]
    title = f"{structure['skill']}: {structure['script']}"
    return [visible(title), *(line for label, texts in rows for line in labelled(label, texts))]


def labelled(label: str, texts: list[str]) -> list[str]:
    """The label once, the texts below each other beside it."""
    return [beside(f"  {(label if number == 0 else ''):<{LABEL_WIDTH}} ", text) for number, text in enumerate(texts)]
