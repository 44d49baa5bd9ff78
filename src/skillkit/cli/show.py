"""`skillkit show`: one skill and what it offers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import click

from skillkit.cli.needs import need_lines, need_structures
from skillkit.cli.options import SKILL, Places, json_option, manager_for, roots_options
from skillkit.cli.output import echo_json, screen_width, script_structure, skill_structure
from skillkit.core.exceptions import SkillKitError
from skillkit.core.manager import SkillManager
from skillkit.core.models import Skill
from skillkit.core.values.needs import Need
from skillkit.core.values.text import visible
from skillkit.integrations.loading import bundled_files
from skillkit.present.terminal import columns

__all__ = ["show_command"]

FOLDERS = ("references/", "assets/")
SHOWN_FILES = 50


@click.command("show")
@click.argument("skill_name", metavar="SKILL", type=SKILL)
@roots_options
@click.option("--text", "with_text", is_flag=True, help="Print the text an agent reads, and nothing else.")
@json_option
def show_command(
    skill_name: str,
    with_text: bool,
    as_json: bool,
    **places: Unpack[Places],
) -> None:
    """Show one skill with its scripts.

    \b
    Examples:
      skillkit show csv-report
      skillkit show csv-report --text
      skillkit show my-plugin:csv-report --json
    """
    manager = manager_for(places)
    skill = manager.load_skill(skill_name)
    if as_json:
        echo_json(
            **skill_structure(skill.metadata),
            digest=_digest_of(skill)[0],
            signer=_signer_of(manager, skill) or None,
            scripts=[script_structure(script) for script in skill.scripts],
            needs=need_structures(manager.needs_of(skill_name)),
            files=_shown_files(skill),
            instructions=skill.content,
        )
    elif with_text:
        click.echo(visible(manager.invoke_skill(skill_name)), nl=False)
    else:
        _show_skill(skill, manager.needs_of(skill_name), _signer_of(manager, skill))


def _show_skill(skill: Skill, needs: Sequence[Need], signer: str) -> None:
    width = screen_width()
    metadata = skill.metadata
    click.secho(visible(metadata.name), bold=True)
    click.echo(click.wrap_text(visible(metadata.description), width=min(width, 100)))
    facts = [
        ("folder", str(skill.base_directory)),
        ("from", metadata.source),
        ("host", metadata.host),
        ("version", metadata.version),
        ("license", metadata.license),
        ("runs on", metadata.compatibility),
        ("tools", " ".join(metadata.allowed_tools)),
        ("digest", "".join(filter(None, _digest_of(skill)))),
        ("signed by", signer),
    ]
    click.echo()
    click.echo("\n".join(columns([(name, value) for name, value in facts if value], width)))
    _show_section("Scripts", [(s.path.as_posix(), s.script_type, s.description) for s in skill.scripts], width)
    if needs:
        click.secho("\nNeeds", bold=True)
        click.echo("\n".join(need_lines(needs)))
        unmet = any(not need.is_met for need in needs)
        click.echo(f"  'skillkit needs {visible(metadata.name)}' says what meets the rest." if unmet else "", nl=unmet)
    _show_section("Other files", [(path,) for path in _shown_files(skill)], width)


def _signer_of(manager: SkillManager, skill: Skill) -> str:
    """Who signed exactly what is there, as it was checked when it came or by `skillkit verify`."""
    from skillkit.core.store.installed import InstalledSkills
    from skillkit.core.store.state import StateStore

    store = StateStore(manager.state_dir)
    try:
        return InstalledSkills(store).signer_of(skill.base_directory, _digest_of(skill)[0] or "none")
    finally:
        store.close()


def _digest_of(skill: Skill) -> tuple[str | None, str]:
    """The digest of all that is in it, or none and why: what cannot be hashed can be shown, not run."""
    try:
        return skill.digest, ""
    except SkillKitError as error:
        return None, f"none: {error}"


def _show_section(title: str, rows: list[tuple[str, ...]], width: int) -> None:
    if rows:
        click.secho(f"\n{title}", bold=True)
        click.echo("\n".join(columns(rows, width)))


def _shown_files(skill: Skill) -> list[str]:
    """What stands in references/ and assets/, in order, at most a screenful."""
    inside = [path for path in bundled_files(skill) if path.startswith(FOLDERS)]
    return sorted(inside, key=lambda path: (not path.startswith(FOLDERS[0]), path))[:SHOWN_FILES]
