"""`skillkit trust agent`: a person's word on one agent file, with exactly its present content."""

from __future__ import annotations

from pathlib import Path

import click

from skillkit.cli.deciding import require_person
from skillkit.cli.options import json_option, require_yes, settings_for, state_option
from skillkit.cli.output import echo_json
from skillkit.core.values.text import visible
from skillkit.present.terminal import behind_bar

__all__ = ["agent_command"]

CHANNEL = "cli"


@click.command("agent")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--yes", "-y", "is_sure", is_flag=True, help="Do not ask.")
@state_option
@json_option
def agent_command(file: Path, is_sure: bool, state_dir: Path | None, as_json: bool) -> None:
    """Approve an agent file with exactly its present content.

    What it asks for beyond your settings is then believed, until the file changes. What the chat could not read as an
    agent file is refused. 'skillkit trust remove FILE' takes it back.

    \b
    Examples:
      skillkit trust agent ./tutor.toml
      skillkit trust agent ./tutor.toml --yes
    """
    from skillkit.chat.agent import require_agent
    from skillkit.chat.agent_files import AgentWord, open_agent_file

    require_person(state_dir, "trust agent")
    settings = settings_for({})
    found = open_agent_file(file.absolute(), settings)
    require_agent(found, settings)
    bar = "\n".join(behind_bar(found.text))
    click.echo(f"{visible(str(found.path))}\n{bar}\nsha256 {found.digest}", err=True)
    if not is_sure:
        require_yes()
    AgentWord(state_dir).give(found, CHANNEL)
    if as_json:
        echo_json(trusted={"file": str(found.path), "digest": found.digest, "channel": CHANNEL})
    else:
        click.echo(f"Trusted {visible(str(found.path))} with digest {found.digest[:12]}.")
