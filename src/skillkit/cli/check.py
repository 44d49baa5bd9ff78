"""`skillkit check`: whether a script may run and what it could reach, without running it."""

from __future__ import annotations

from typing import Any, Unpack

import click

from skillkit.cli import REFUSED
from skillkit.cli.options import (
    SCRIPT,
    SKILL,
    Chosen,
    current_workspace,
    input_option,
    json_option,
    manager_for,
    policy_options,
    roots_options,
    session_id,
)
from skillkit.cli.output import beside, echo_json, label_rows
from skillkit.cli.run import read_input
from skillkit.cli.skills.show import need_structures
from skillkit.core.values.needs import Need
from skillkit.core.values.runs import Decision, PreparedRun
from skillkit.core.values.text import storable, visible
from skillkit.present.glance import as_word

__all__ = ["check_command"]

LABEL_WIDTH = 10


@click.command("check", short_help="Say whether a script may run, and what it could reach.")
@click.argument("skill_name", metavar="SKILL", type=SKILL)
@click.argument("script_name", metavar="SCRIPT", type=SCRIPT)
@click.argument("argv", metavar="[-- ARGS...]", nargs=-1, type=click.UNPROCESSED)
@input_option
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
            read_input(given, chosen.get("state_dir")),
            argv=argv,
            workspace=current_workspace(chosen.get("state_dir")),
        )
        needs = manager.needs_of(skill_name, script_name)
        structure = _check_structure(prepared, manager.flow.reach((prepared.command,)), needs)
    if as_json:
        echo_json(**structure)
    else:
        click.echo("\n".join(_check_lines(structure)))
    ctx.exit(REFUSED if prepared.decision is Decision.DENY else 0)


def _check_structure(prepared: PreparedRun, walls: tuple[str, ...], needs: tuple[Need, ...]) -> dict[str, Any]:
    command = prepared.command
    return {
        "skill": command.skill_name,
        "script": command.script_name,
        "decision": prepared.decision.name.lower(),
        "reasons": list(prepared.reasons),
        "needs_approval": prepared.decision is Decision.ASK,
        "walls": list(walls),
        "needs": need_structures(needs),
        "arguments": list(map(storable, command.script_arguments)),
        "interpreter": command.argv[0],
        "folder": str(command.base_directory),
        "digest": command.digest,
    }


def _check_lines(structure: dict[str, Any]) -> list[str]:
    meaning = {
        "allow": "may run",
        "ask": "runs only when a person approves it",
        "deny": "may not run",
    }[structure["decision"]]
    unmet = [_need_text(need) for need in structure["needs"] if not need["is_met"]]
    rows = [
        ("decision", [f"{structure['decision']}: {meaning}"]),
        ("because", structure["reasons"]),
        ("walls", structure["walls"]),
        *([("needs", unmet)] if unmet else []),
        *([("arguments", [as_word(word) for word in structure["arguments"]])] if structure["arguments"] else []),
        ("runs with", [structure["interpreter"]]),
        ("skill in", [structure["folder"]]),
        ("digest", [structure["digest"]]),
    ]
    title = f"{structure['skill']}: {structure['script']}"
    lines = [
        beside(f"  {name:<{LABEL_WIDTH}} ", text) for label, texts in rows for name, text in label_rows(label, texts)
    ]
    return [visible(title), *lines]


def _need_text(need: dict[str, Any]) -> str:
    """In one line: what is not there, and what meets it."""
    return f"{need['kind'].replace('_', ' ')} {need['name']}: {need['remedy']}"
