"""`skillkit trust agent`: a lasting approval of one agent file with exactly its present content."""

from __future__ import annotations

from pathlib import Path

import click

from skillkit.cli.asking import require_yes
from skillkit.cli.options import echo_json, json_option, settings_for, state_option
from skillkit.present.terminal import visible

__all__ = ["agent_command"]

CHANNEL = "cli"


@click.command("agent")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--yes", "-y", "is_sure", is_flag=True, help="Do not ask.")
@state_option
@json_option
def agent_command(file: Path, is_sure: bool, state_dir: Path | None, as_json: bool) -> None:
    """Approve an agent file with exactly its present content.

    What it asks for beyond your settings is then believed, until the file changes.

    \b
    Examples:
      skillkit trust agent ./tutor.toml
      skillkit trust agent ./tutor.toml --yes
    """
    from skillkit.chat.agent_files import AgentWord, opened_agent_file

    found = opened_agent_file(file.absolute(), settings_for({}))
    click.echo(f"{visible(str(found.path))}\n{behind_a_bar(found.text)}\nsha256 {found.digest}", err=True)
    if not is_sure:
        require_yes()
    AgentWord(state_dir).give(found, CHANNEL)
    if as_json:
        echo_json(trusted={"file": str(found.path), "digest": found.digest, "channel": CHANNEL})
    else:
        click.echo(f"Trusted {visible(str(found.path))} with digest {found.digest[:12]}.")


def behind_a_bar(text: str) -> str:
    """Our own words stand at the left margin."""
    return "\n".join(f"  │ {line}" for line in visible(text).splitlines())
